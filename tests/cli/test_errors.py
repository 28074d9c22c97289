"""Commands that fail: one line on standard error, an exit code, nothing on standard output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from symdp.errors import AccuracyError

GAUSSIAN = "gaussian sigma=1.5 -n 100"
SAMPLED = "delta gaussian sigma=2 -n 5 --epsilon 1"

# Command, then what its message must hold: the culprit, and the rule or the remedy.
BAD = [
    # options and words
    (f"delta {GAUSSIAN}", ["--epsilon", "--help"]),
    (f"epsilon {GAUSSIAN}", ["--delta", "--help"]),
    (f"delta {GAUSSIAN} --epsilo 1", ["--epsilo", "--epsilon"]),
    (f"delta {GAUSSIAN} --epsilon", ["--epsilon"]),
    ("dleta gaussian", ["dleta", "delta"]),
    ("certfy gaussian sigma=1 -n 5 --epsilon 1", ["certfy", "--help"]),
    ("delta -n 5 --epsilon 1", ["MECHANISM", "symdp list"]),
    (f"curve {GAUSSIAN} --points 1", ["--points"]),
    (f"curve {GAUSSIAN} --points many", ["--points", "many"]),
    ("derive gaussian --order 0", ["--order"]),
    # the number of steps
    ("delta gaussian sigma=1 -n 0 --epsilon 1", ["-n 0", "1 or more"]),
    ("delta gaussian sigma=1 -n -3 --epsilon 1", ["-n -3", "1 or more"]),
    ("delta gaussian sigma=1 -n 2.5 --epsilon 1", ["-n 2.5", "whole number"]),
    ("delta gaussian sigma=1 -n nan --epsilon 1", ["-n", "nan", "finite"]),
    ("delta gaussian sigma=1 -n many --epsilon 1", ["-n", "many", "not a number"]),
    ("delta gaussian sigma=1 -n 1e16 --epsilon 1", ["at most"]),
    # ε and δ
    (f"delta {GAUSSIAN} --epsilon nan", ["--epsilon", "nan", "finite"]),
    (f"delta {GAUSSIAN} --epsilon inf", ["--epsilon", "inf", "finite"]),
    (f"delta {GAUSSIAN} --epsilon 1e400", ["--epsilon", "double range"]),
    (f"delta {GAUSSIAN} --epsilon 1+1", ["--epsilon", "1+1"]),
    (f"epsilon {GAUSSIAN} --delta 0", ["--delta", "between 0 and 1"]),
    (f"epsilon {GAUSSIAN} --delta 1", ["--delta", "between 0 and 1"]),
    (f"epsilon {GAUSSIAN} --delta -1e-5", ["--delta", "between 0 and 1"]),
    (f"epsilon {GAUSSIAN} --delta nan", ["--delta", "finite"]),
    (f"epsilon {GAUSSIAN} --delta 1e-400", ["--delta", "double"]),
    (f"curve {GAUSSIAN} --epsilon-range 2 1", ["--epsilon-range", "below"]),
    (f"curve {GAUSSIAN} --epsilon-range 2", ["--epsilon-range"]),
    # parameters
    ("delta gaussian sigm=1 -n 5 --epsilon 1", ["sigm", "did you mean 'sigma'"]),
    ("delta gaussian -n 5 --epsilon 1", ["sigma", "above 0"]),
    ("delta student_t s=1 -n 5 --epsilon 1", ["nu", "above 0"]),
    ("delta gaussian sigma=-1 -n 5 --epsilon 1", ["sigma", "above 0", "-1"]),
    ("delta gaussian sigma=0 -n 5 --epsilon 1", ["sigma", "above 0"]),
    ("delta gaussian sigma=nan -n 5 --epsilon 1", ["sigma", "finite"]),
    ("delta gaussian sigma= -n 5 --epsilon 1", ["sigma"]),
    ("delta gaussian sigma -n 5 --epsilon 1", ["NAME=VALUE"]),
    ("delta gaussian sigma=1 sigma=2 -n 5 --epsilon 1", ["sigma", "twice"]),
    ("delta gaussian sigma=1/0 -n 5 --epsilon 1", ["sigma", "zero"]),
    # names
    ("delta gausian sigma=1 -n 5 --epsilon 1", ["gausian", "did you mean 'gaussian'"]),
    ("delta nowhere.toml -n 5 --epsilon 1", ["nowhere.toml", "no such file"]),
    (f"delta {GAUSSIAN} --epsilon 1 --method contuor", ["contuor", "did you mean 'contour'"]),
    (f"delta {GAUSSIAN} --epsilon 1 --method msd", ["msd", "order"]),
    (f"delta {GAUSSIAN} --epsilon 1 --direction ad", ["ad", "did you mean 'add'"]),
    ("derive gaussian --direction both", ["both", "remove or add"]),
    ("derive gaussian --format tex", ["tex", "did you mean 'text'"]),
    ("derive gaussian --format rust", ["'rust'", "latex"]),
    # sampling
    (f"{SAMPLED} --rate 0.1", ["--rate", "--sampling"]),
    (f"{SAMPLED} --batch-size 3", ["--batch-size", "--sampling"]),
    (f"{SAMPLED} --sampling poisson", ["--sampling", "--rate"]),
    (f"{SAMPLED} --sampling poison --rate 0.1", ["poison", "did you mean 'poisson'"]),
    (f"{SAMPLED} --sampling poisson --rate 1.5", ["3/2"]),
    (f"{SAMPLED} --sampling poisson --rate -0.1", ["-1/10"]),
    (f"{SAMPLED} --sampling poisson --rate nan", ["--rate", "finite"]),
    (f"{SAMPLED} --sampling poisson --rate 0.1 --batch-size 3", ["batch"]),
    (f"{SAMPLED} --sampling with_replacement --rate 0.1", ["batch"]),
    (f"{SAMPLED} --sampling with_replacement --rate 0.1 --batch-size 0", ["--batch-size 0"]),
    # files
    ("check nowhere.json", ["nowhere.json", "no such file", "--certificate"]),
    (f"curve {GAUSSIAN} --plot curve.jpg", ["curve.jpg", ".svg"]),
    (f"curve {GAUSSIAN} --points 2 --plot /nowhere/curve.svg", ["/nowhere/curve.svg"]),
    (f"report {GAUSSIAN} -o report.txt", ["report.txt", ".html"]),
    (f"report {GAUSSIAN}", ["-o"]),
    ("delta gaussian -n 1 --epsilon 1 --composition a.toml", ["--composition", "gaussian"]),
    ("delta --epsilon 1 --composition nowhere.toml", ["nowhere.toml", "no such file"]),
    ("delta --epsilon 1 --composition a.toml --rate 0.1", ["--composition", "sampling"]),
]


@pytest.mark.slow_cases("epsilon gaussian sigma=1.5 -n 100")
@pytest.mark.parametrize(("line", "parts"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_is_one_line_and_code_2(shell, line, parts):
    ran = shell(line)
    assert ran.code == 2, ran
    assert ran.out == ""
    assert ran.err.startswith("symdp: ")
    assert ran.err.count("\n") == 1
    assert ran.err.endswith("\n")
    for part in parts:
        assert part in ran.err


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("not toml at all", "TOML"),
        ('name = "a"\nvariable = "x"\nsupport = ["-oo", "oo"]\n', "[noise]"),
        (
            'name = "a"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\n'
            "density = \"__import__('os').system('touch owned')\"\n",
            "density",
        ),
        ('name = "a"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[nose]\n', "noise"),
    ],
)
def test_a_bad_file_is_named(shell, tmp_path, monkeypatch, text, part):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    ran = shell("delta bad.toml -n 5 --epsilon 1")
    assert ran.code == 2
    assert ran.err.startswith("symdp: bad.toml: ")
    assert part in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "owned").exists()


NORMAL = "exp(-x**2/2)/sqrt(2*pi)"


@pytest.mark.parametrize(
    ("density", "part"),
    [
        ("exp(-Abs(x))", "integrates to 2"),
        (f"0.999*{NORMAL}", "integrates to 0.999"),
        (f"1.001*{NORMAL}", "integrates to 1.001"),
        ("1/(1 + abs(x))", "mass 1"),
        ("exp(x**2/2)", "mass 1"),
        (f"{NORMAL}*Piecewise((-1, (x > 1) & (x < 1.001)), (1, True))", "negative at x = 1"),
        (f"{NORMAL}*((x - 1)**2 - 0.00000025)/(2 - 0.00000025)", "negative at x = 1"),
        ("gama(x)*exp(-x)", "did you mean 'gamma'"),
        ("foo(x)", "unknown function 'foo'"),
    ],
)
def test_a_density_that_is_none_is_refused(shell, tmp_path, monkeypatch, density, part):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none.toml").write_text(
        f'name = "a"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\ndensity = "{density}"\n',
        encoding="utf-8",
    )
    ran = shell("delta none.toml -n 5 --epsilon 1")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("symdp: none.toml: ")
    assert part in ran.err
    assert ran.err.count("\n") == 1


def test_no_terminal_obeys_a_file_s_name(shell):
    ran = shell("delta", "\x1b[2Jevil\nname", "-n", "5", "--epsilon", "1")
    assert ran.code == 2
    assert "\x1b" not in ran.err
    assert ran.err.count("\n") == 1


def test_an_accuracy_that_is_out_of_reach_is_code_1(shell, monkeypatch):
    from symdp.questions.composition import Composition

    def fails(*_):
        raise AccuracyError("two evaluations\ndiffer")

    monkeypatch.setattr(Composition, "delta", fails)
    ran = shell(f"delta {GAUSSIAN} --epsilon 1")
    assert (ran.code, ran.out, ran.err) == (
        1,
        "",
        "symdp: two evaluations differ; see docs/refused.md\n",
    )


def test_a_bug_is_called_one(shell, monkeypatch):
    from symdp.questions.composition import Composition

    def breaks(*_):
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(Composition, "delta", breaks)
    monkeypatch.delenv("SYMDP_DEBUG", raising=False)
    ran = shell(f"delta {GAUSSIAN} --epsilon 1")
    assert ran.code == 1
    assert ran.err.startswith("symdp: a bug in symdp, please report it: RuntimeError: unforeseen")
    assert ran.err.count("\n") == 1
    monkeypatch.setenv("SYMDP_DEBUG", "1")
    with pytest.raises(RuntimeError, match="unforeseen"):
        shell(f"delta {GAUSSIAN} --epsilon 1")


def test_an_interrupt_is_quiet(shell, monkeypatch):
    from symdp.questions.composition import Composition

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Composition, "delta", interrupted)
    ran = shell(f"delta {GAUSSIAN} --epsilon 1")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_as_a_process_bad_input_is_code_2():
    words = ["delta", "gaussian", "sigm=1", "-n", "5", "--epsilon", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "symdp", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_control_c_ends_a_process_quietly():
    script = (
        "import sys\n"
        "from symdp.cli import main\n"
        "from symdp.questions.composition import Composition\n"
        "real = Composition.delta\n"
        "def told(*words):\n"
        "    print('asked', flush=True)\n"
        "    return real(*words)\n"
        "Composition.delta = told\n"
        "sys.exit(main('curve gaussian sigma=5 -n 10 --points 10000'.split()))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job starts with the signal ignored, and its children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint == ""
