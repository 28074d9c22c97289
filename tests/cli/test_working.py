"""What a slow question shows on a terminal, and that nothing of it is seen anywhere else."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from symdp.cli.working import MESSAGE, PATIENCE, Work, report_to, working

pty = pytest.importorskip("pty")

# Every command on a terminal, each made slow where its work begins.
SLOW = """
import time
import sys
import rich.progress  # whoever draws finds it imported
from importlib import import_module
from symdp.cli import main, working
from symdp.questions.composition import Composition
from symdp.errors import InputError

working.PATIENCE = 0.05

def slow(module, name):
    module = import_module(module) if isinstance(module, str) else module
    real = getattr(module, name)
    def replaced(*words, **more):
        time.sleep(0.6)
        if module is not Composition:
            raise InputError("slept long enough")
        return real(*words, **more)
    setattr(module, name, replaced)

for module, name in [
    (Composition, "delta"), (Composition, "epsilon"), (Composition, "certify"),
    ("symdp.questions.calibrate", "calibrate"), ("symdp.derive", "derive"),
    ("symdp.page.verification", "verify"), ("symdp.page.report", "analysing"),
]:
    slow(module, name)
for line in LINES:
    print("RUN", line, flush=True)
    sys.argv[1:] = line.split()
    main()
working.PATIENCE = 3600.0
print("RUN quick", flush=True)
sys.argv[1:] = LINES[0].split()
main()
print("RUN end", flush=True)
"""
STEPS = "laplace b=2 -n 2"
# The commands of the quick cases, and those of the slow ones.
TOGETHER = (
    (f"delta {STEPS} --epsilon 0.5", "derive laplace"),
    (
        f"epsilon {STEPS} --delta 0.01",
        f"certify {STEPS} --epsilon 0.5 --digits 4",
        f"curve {STEPS} --points 2 --epsilon-range 0 0.5",
        "calibrate laplace --parameter b -n 2 --epsilon 0.5 --delta 0.01",
        f"verify {STEPS}",
        f"report {STEPS} -o never.html",
    ),
)


def on_a_terminal(words, seconds, *, stop_after=None, cwd=None):
    """Run a process whose three streams are one terminal; return its code and all that it wrote."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen(
        words,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        cwd=cwd,
        start_new_session=True,
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    end = time.monotonic() + seconds
    written = b""
    while time.monotonic() < end:
        try:
            part = os.read(ours, 1 << 16)
        except BlockingIOError:
            part = None
        except OSError:  # nobody has the terminal open any more
            break
        if part == b"":
            break
        written += part or b""
        if stop_after is not None and stop_after in written:
            os.killpg(process.pid, signal.SIGINT)
            stop_after = None
        if part is None:
            time.sleep(0.02)
    else:
        process.kill()
    os.close(ours)
    return process.wait(), written.decode()


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Return what a command wrote on the terminal, one process for all that are asked together."""
    folder = tmp_path_factory.mktemp("terminal")
    texts = {}

    def shown(command):
        if command not in texts:
            (lines,) = (lines for lines in TOGETHER if command in " ".join(lines).split())
            texts.update(written_by(lines, folder) | texts)
        return texts[command]

    return shown


def written_by(lines, folder):
    """Map every command, and the quick one after them, to what it wrote."""
    script = f"LINES = {lines!r}\n{SLOW}"
    code, text = on_a_terminal([sys.executable, "-c", script], 60, cwd=folder)
    assert code == 0, text
    parts = re.split(r"^.*RUN (.*)\r?\n", text, flags=re.MULTILINE)
    return {line.split()[0]: shown for line, shown in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.quick_cases("derive-derivation of laplace")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("delta", "δ(0.5) of laplace, n = 2"),
        ("epsilon", "ε(δ = 0.01) of laplace, n = 2"),
        ("certify", "proof of δ(0.5) of laplace, n = 2"),
        ("curve", "1 of 2"),
        ("derive", "derivation of laplace"),
        ("calibrate", "calibrating b of laplace, n = 2"),
        ("verify", "truth and accountants for laplace, n = 2"),
        ("report", "report on laplace, n = 2"),
    ],
)
def test_every_slow_question_says_what_it_is_at(seen, command, words):
    assert words in seen(command)
    assert "\x1b[?25l" in seen(command), "the cursor is hidden while something is drawn"
    # What was drawn is gone, and the cursor is back, before the answer or the error is printed.
    answer = seen(command).split("\x1b[?25h")[-1]
    assert words not in answer.replace("profile of", "")
    assert "δ" in answer or "ε" in answer or "slept long enough" in answer


def test_nothing_is_drawn_before_two_seconds(seen):
    assert PATIENCE == 2.0
    seen("delta")
    assert "exact formula" in seen("quick")
    assert "\x1b[?25" not in seen("quick")  # the cursor is neither hidden nor shown again


@pytest.mark.usefixtures("interrupts_are_heeded")
def test_an_interrupt_on_a_terminal_leaves_it_as_it_was():
    script = textwrap.dedent(
        """
        import sys, time
        from symdp.cli import main, working
        from symdp.questions.composition import Composition
        working.PATIENCE = 0.05
        Composition.delta = lambda *_: time.sleep(60)
        sys.argv[1:] = "delta laplace b=2 -n 2 --epsilon 0.5".split()
        sys.exit(main())
        """
    )
    code, text = on_a_terminal([sys.executable, "-c", script], 30, stop_after=b"laplace, n = 2")
    assert code == 130, text
    assert text.endswith("\x1b[?25h") or "\x1b[?25h" in text[-40:]
    assert "Traceback" not in text


def test_nothing_is_told_without_a_terminal():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        report_to(theirs)
        try:
            with working("nothing", 0.0) as work:
                work.say("more", 1, 2)
        finally:
            report_to(None)
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.recv(1)


@pytest.mark.parametrize("listens", [True, False])
def test_a_message_is_short_and_nobody_need_hear_it(listens):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with theirs:
        report_to(theirs)
        try:
            if not listens:
                ours.close()
            for _ in range(200):  # more than wait to be heard
                Work("work", is_shown=True).say("\udcff" + "𝛿" * 100_000)
        finally:
            report_to(None)
        if listens:
            assert b"what" in ours.recv(1 << 20, socket.MSG_PEEK)
            assert len(ours.recv(1 << 20)) <= MESSAGE
            ours.close()
