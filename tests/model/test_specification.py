"""TOML mechanisms and compositions, the built-in ones, and every way to get a file wrong."""

# ruff: noqa: SIM300 (it takes the laws P and Q for constants)

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import sympy as sp

from symdp import mechanisms
from symdp.errors import InputError
from symdp.mechanisms import resolve
from symdp.model.mechanism import Mechanism, Support
from symdp.model.sampling import Laws, Noise
from symdp.model.specification import load, loads
from symdp.questions.parallel import read_parts

LOGISTIC = """
name = "logistic"
variable = "x"
support = ["-oo", "oo"]
[parameters]
s = "positive"
[noise]
density = "exp(-x/s)/(s*(1 + exp(-x/s))**2)"
sensitivity = 1
[sampling]
scheme = "poisson"
rate = "q"
"""
X = sp.Symbol("x", real=True)
S = sp.Symbol("s", positive=True)


def message_of(text: str) -> str:
    with pytest.raises(InputError) as caught:
        loads(text, source="file.toml")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("file.toml: ")
    assert len(message) < 300
    return message


def changed(old: str, new: str) -> str:
    assert old in LOGISTIC
    return LOGISTIC.replace(old, new)


def test_the_documented_example() -> None:
    mechanism = loads(LOGISTIC)
    density = sp.exp(-X / S) / (S * (1 + sp.exp(-X / S)) ** 2)
    assert mechanism.source == Noise(density, sp.Integer(1))
    assert mechanism.support == Support("interval", -sp.oo, sp.oo)
    assert list(mechanism.parameters) == ["s", "q"]
    assert mechanism.parameters["q"].is_nonnegative
    assert mechanism == mechanisms.logistic.subsample("poisson", "q")
    assert mechanism == loads(LOGISTIC)
    with pytest.raises(InputError, match="q must be from 0 to 1"):
        mechanism(q=1.5)


def test_numbers_in_a_file_are_the_decimals_that_are_written() -> None:
    text = changed("sensitivity = 1", "sensitivity = 0.1").replace('"q"', "1e-400")
    mechanism = loads(text.replace('["-oo", "oo"]', "[-0.30, inf]"))
    assert mechanism.source.sensitivity == sp.Rational(1, 10)
    assert mechanism.sampling.rate == sp.Rational(1, 10**400)
    assert mechanism.support == Support("interval", sp.Rational(-3, 10), sp.oo)


def test_supports_and_pairs() -> None:
    uniform = loads("""
        name = "uniform"
        variable = "x"
        support = ["-w/2", "w/2"]
        parameters = { w = "positive" }
        noise = { density = "1/w", sensitivity = "w/4" }
    """)
    w = uniform.parameters["w"]
    assert uniform.pair().support == Support("interval", -w / 2, 3 * w / 4)
    naturals = loads("""
        name = "geometric"
        variable = "k"
        support = "naturals"
        noise = { density = "2**(-k - 1)" }
    """)
    assert naturals.variable.is_nonnegative
    assert naturals.source.sensitivity == 1
    formula = loads("""
        name = "three"
        variable = "v"
        support = [0, 1, 2.5]
        [pair]
        P = "v + 1"
        Q = [1, "1/2", 0.25]
        normalize = true
    """)
    quarter = sp.Rational(1, 4)
    assert formula.support.points == (0, 1, sp.Rational(5, 2))
    thirteenths = tuple(sp.Rational(n, 13) for n in (2, 4, 7))
    sevenths = tuple(sp.Rational(n, 7) for n in (4, 2, 1))
    assert formula.source == Laws(thirteenths, sevenths)
    anonymous = loads("""
        name = "coin"
        support = { points = [0, 1] }
        pair = { P = ["3/4", 0.25], Q = [0.25, "3/4"] }
    """)
    assert anonymous.pair().P == (3 * quarter, quarter)
    pair = loads("""
        name = "shift"
        variable = "x"
        support = [0, "oo"]
        pair = { P = "2*exp(-2*x)", Q = "exp(-x)" }
    """)
    assert (pair.pair("add").P, pair.pair("add").Q) == (sp.exp(-X), 2 * sp.exp(-2 * X))


def test_texts_are_kept() -> None:
    head = 'title = "Logistic noise"\ndescription = "d"\ncitation = "c"\n'
    mechanism = loads(head + LOGISTIC)
    texts = (mechanism.title, mechanism.description, mechanism.citation)
    assert texts == ("Logistic noise", "d", "c")
    assert mechanism(s=1, q=0.5).title == "Logistic noise"


NOISE = LOGISTIC[LOGISTIC.index("[noise]") : LOGISTIC.index("[sampling]")]
PAIR = '[pair]\nP = "x"\nQ = "x"\n'
POINTS = 'name = "n"\nsupport = [0, 1, 2]\n[pair]\nP = [1, 2, 3]\nQ = [3, 2, 1]\n'

BAD = [
    ("name = \n", ["not TOML", "line 1"]),
    ("name = mine\n", ["not TOML", "line 1", "text has quotes around it"]),
    ("a = 1\na = 2", ["not TOML"]),
    ("x = " + "[" * 2000, ["not TOML"]),
    ("x = " + "1" * 5000, ["not TOML"]),
    ("", ["the key 'name' is missing"]),
    (changed('name = "logistic"\n', ""), ["the key 'name' is missing: write name = "]),
    (changed('variable = "x"\n', ""), ["the key 'variable' is missing"]),
    (changed('support = ["-oo", "oo"]\n', ""), ["the key 'support' is missing: write where"]),
    (changed("support", "suport"), ["unknown key 'suport'", "did you mean 'support'?"]),
    (changed("[noise]", "[nois]"), ["unknown key 'nois'", "did you mean 'noise'?"]),
    (changed("density", "densty"), ["[noise]", "unknown key 'densty'", "'density'?"]),
    (changed("rate", "rat"), ["[sampling]", "unknown key 'rat'", "did you mean 'rate'?"]),
    ("normalize = true\n" + LOGISTIC, ["'normalize'; it is a key of [noise] and [pair]"]),
    (changed("density", "support"), ["[noise]", "'support'; it is a key of the top of the file"]),
    (changed("scheme", "zzzzz"), ["unknown key 'zzzzz'", "known are scheme, rate, batch"]),
    (changed('"logistic"', "3"), ["name must be text, not '3'"]),
    (changed('"logistic"', '""'), ["name must be 1 to 60 printable characters"]),
    (changed('"logistic"', '"a\\nb"'), ["name must be 1 to 60 printable characters"]),
    (changed('"logistic"', '"' + "a" * 61 + '"'), ["name must be 1 to 60 printable"]),
    ('title = 3\n' + LOGISTIC, ["title must be text"]),
    (changed('variable = "x"', "variable = 1"), ["variable must be text"]),
    (changed('variable = "x"', 'variable = "s"'), ["variable", "'s' is a parameter too"]),
    (changed('variable = "x"', 'variable = "pi"'), ["variable", "'pi' is reserved"]),
    (changed('variable = "x"', 'variable = "x y"'), ["variable", "must be a letter followed"]),
    (changed('variable = "x"', 'variable = "y"'), ["[noise]: density: unknown name 'x'"]),
    (changed('["-oo", "oo"]', '"integer"'), ["support", "did you mean 'integers'?"]),
    (changed('["-oo", "oo"]', "3"), ["support", "must be [lower, upper]"]),
    (changed('["-oo", "oo"]', "[0]"), ["support", "must be [lower, upper]"]),
    (changed('["-oo", "oo"]', "[1, 0]"), ["the support [1, 0] is empty"]),
    (changed('["-oo", "oo"]', "[nan, 0]"), ["support", "finite number"]),
    (changed('["-oo", "oo"]', '["-o", 1]'), ["support: unknown name 'o'"]),
    (changed('["-oo", "oo"]', '["x", 1]'), ["support: unknown name 'x'"]),
    (changed('["-oo", "oo"]', "[true, 1]"), ["support", "must be a number, not True"]),
    (changed('["-oo", "oo"]', "{ points = 3 }"), ["support: points must be a list"]),
    (changed('["-oo", "oo"]', "{ point = [1] }"), ["support", "points = [...]"]),
    (changed('["-oo", "oo"]', "[1, 2, 3]"), ["additive noise needs an interval"]),
    (changed('s = "positive"', 's = "positiv"'), ["[parameters]", "s", "'positive'?"]),
    (changed('s = "positive"', "s = 1"), ["[parameters]: s must be a word such as 'positive'"]),
    (changed('s = "positive"', 'E = "positive"'), ["[parameters]", "'E' is reserved"]),
    (changed('s = "positive"', '"a b" = "positive"'), ["must be a letter followed by"]),
    (changed('s = "positive"', 's = "positive"\nt = "real"'), ["declares 't' but no formula"]),
    (changed('[parameters]\ns = "positive"', "parameters = 1"), ["parameters must be a table"]),
    (changed(NOISE, ""), ["[noise] table or a [pair] table; this has neither"]),
    (LOGISTIC + PAIR, ["this has both"]),
    (changed(NOISE, "[noise]\n"), ["[noise]: the key 'density' is missing"]),
    (changed('density = "exp', 'density = "exq'), ["[noise]: density: unknown function 'exq'"]),
    (changed("x/s)/(s", "x/t)/(s"), ["[noise]: density: unknown name 't'", "known are s, x"]),
    (changed('density = "exp(-x/s)', 'density = "__import__(x)'), ["density", "is code"]),
    (changed("sensitivity = 1", "sensitivity = -1"), ["[noise]", "above 0, not -1"]),
    (changed("sensitivity = 1", "sensitivity = true"), ["[noise]: sensitivity", "number"]),
    (changed("sensitivity = 1", 'sensitivity = "x"'), ["[noise]: sensitivity: unknown name"]),
    (changed("sensitivity = 1", "sensitivity = nan"), ["[noise]: sensitivity", "finite"]),
    (changed("sensitivity = 1", "sensitivity = 1e99999"), ["sensitivity", "over 1000 digits"]),
    (changed("sensitivity = 1", "normalize = 1"), ["normalize must be true or false"]),
    (changed(NOISE, '[pair]\nP = "x"\n'), ["[pair]: the key 'Q' is missing"]),
    (changed(NOISE, '[pair]\nP = [1, 2]\nQ = "x"\n'), ["P is a list, but the support is no list"]),
    (changed(NOISE, '[pair]\nP = "x +"\nQ = "x"\n'), ["[pair]: P: a number or a name is missing"]),
    (changed(NOISE, "[pair]\nP = {}\nQ = 1\n"), ["[pair]: P", "must be a number"]),
    (POINTS.replace("[1, 2, 3]", "[1, 2]"), ["P has 2 masses but the support has 3 points"]),
    (POINTS.replace("[0, 1, 2]", "[0, 1, 1]"), ["the point 1 of the support is there twice"]),
    (POINTS.replace("[3, 2, 1]", '[3, 2, "x"]'), ["must not depend on the variable x"]),
    (changed('"poisson"', '"poison"'), ["[sampling]", "did you mean 'poisson'?"]),
    (changed('"poisson"', "1"), ["[sampling]: scheme must be text"]),
    (changed('rate = "q"', ""), ["[sampling]: the key 'rate' is missing"]),
    (changed('"q"', "1.5"), ["[sampling]", "must be a probability, 0 to 1, not 3/2"]),
    (changed('"q"', "nan"), ["[sampling]: rate must be a finite number"]),
    (changed('"q"', "[1]"), ["[sampling]: rate must be a number"]),
    (changed('"q"', '"q/2"'), ["[sampling]", "unknown name 'q'"]),
    (changed('"q"', '"q"\nbatch = 3'), ["[sampling]", "poisson sampling takes no batch"]),
    (changed('"poisson"', '"with_replacement"'), ["[sampling]", "needs batch"]),
    (changed('"poisson"', '"with_replacement"\nbatch = 2.5'), ["batch must be a whole number"]),
    (changed('"poisson"', '"with_replacement"\nbatch = true'), ["batch must be a whole number"]),
    ("sampling = 3\n" + LOGISTIC[: LOGISTIC.index("[sampling]")], ["sampling must be a table"]),
    ('[[step]]\nmechanism = "gaussian"\n', ["this is a composition"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "parts"), BAD, ids=[" ".join(parts) for _, parts in BAD])
def test_bad_text_names_file_and_key(text: str, parts: list[str]) -> None:
    message = message_of(text)
    assert [part for part in parts if part not in message] == []


VALUES = ["1", "-1.5", "nan", "-inf", "true", '""', '"x"', '"s"', '"(("', "[]", "[[]]", "{}",
          "[1, 2, 3]", '{ points = [1, "s"] }', "1979-05-27", '["-oo", []]', "1e-5000"]  # fmt: skip
KEYS = ["name", "title", "variable", "support", "parameters", "noise", "pair", "sampling",
        "parameters.s", "noise.density", "noise.sensitivity", "noise.normalize", "pair.P",
        "sampling.scheme", "sampling.rate", "sampling.batch"]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_any_value_anywhere_raises_nothing_but_input_error(key: str) -> None:
    inline = tomllib.loads(LOGISTIC)
    flat = {
        path: value
        for top, held in inline.items()
        for path, value in (
            {f"{top}.{inner}": value for inner, value in held.items()}
            if isinstance(held, dict)
            else {top: held}
        ).items()
        if not f"{path}.".startswith(f"{key}.")
    }
    lines = [f"{path} = {value!r}" for path, value in flat.items()]
    for value in VALUES:
        text = "\n".join([*lines, f"{key} = {value}"])
        try:
            assert isinstance(loads(text), Mechanism)
        except InputError as error:
            message = str(error)
            assert "\n" not in message


def test_bad_files(tmp_path: Path) -> None:
    def message(path: Path | str) -> str:
        with pytest.raises(InputError) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: ")
        return str(caught.value)

    file = tmp_path / "m.toml"
    assert "there is no such file" in message(file)
    assert "this is a directory" in message(tmp_path)
    assert "no ordinary file" in message("/dev/null")
    assert "cannot be read" in message(tmp_path / ("a" * 300 + ".toml"))
    assert "no such file" in message("a\0b")
    file.write_bytes(b'name = "\xff"')
    assert "not UTF-8 text (byte 8)" in message(file)
    file.write_text("#" * 1_000_001)
    assert "at most 1000000 bytes" in message(file)
    file.write_text("hello")
    assert "not TOML" in message(file)
    file.write_bytes(b"\xef\xbb\xbf" + LOGISTIC.replace("\n", "\r\n").encode())
    assert load(str(file)) == loads(LOGISTIC)


def test_every_built_in_loads_and_makes_both_pairs() -> None:
    values = {"gaussian": {"sigma": 1.5}, "laplace": {"b": 2}, "logistic": {"s": 2},
              "gumbel": {"b": 2}, "student_t": {"nu": 3, "s": 1},
              "randomized_response": {"epsilon_0": 1}, "discrete_laplace": {"b": 2},
              "discrete_gaussian": {"sigma": 1.5},
              "approximate_dp": {"epsilon_0": 1, "delta_0": 1e-5},
              "k_ary_randomized_response": {"epsilon_0": 1, "k": 4},
              "permute_and_flip": {"epsilon_0": 1}, "exponential": {"epsilon_0": 1},
              "bounded_range": {"epsilon_0": 1, "u": 0.5}, "skellam": {"mu": 2},
              "negative_binomial": {"r": 2, "p": 0.5}, "gnmax": {"sigma": 4},
              "staircase": {"epsilon_0": 1, "gamma_0": 0.5},
              "adaptive_clipping": {"z": 1, "sigma_b": 5},
              "sparse_histogram": {"sigma": 2, "tau": 5, "j": 1, "m": 2},
              "l2_laplace": {"s": 1, "d": 3}, "multivariate_t": {"nu": 5, "s": 1, "d": 3},
              "von_mises_fisher": {"kappa": 1, "h": 0.5, "m": 2}}  # fmt: skip
    assert mechanisms.names() == sorted(values)
    for name in mechanisms.names():
        mechanism = getattr(mechanisms, name)
        assert mechanism.name == name
        assert mechanism is resolve(name) is getattr(mechanisms, name)
        assert mechanism.title
        assert mechanism.description
        assert set(mechanism.parameters) == set(values[name])
        bound = mechanism(**values[name])
        if name == "multivariate_t":  # of vectors: no pair on a line
            continue
        pair = bound.require_concrete().pair()
        free = sp.Tuple(pair.P, pair.Q).free_symbols
        assert free <= {pair.variable}
        assert bound.pair("add") == pair.reversed()
        assert mechanism == load(Path(mechanisms.__file__).parent / f"{name}.toml")


def test_built_in_densities_have_total_one() -> None:
    gauss = mechanisms.gaussian(sigma=2).source.density
    assert sp.integrate(gauss, (X, -sp.oo, sp.oo)) == 1
    student = mechanisms.student_t(nu=3, s=2).source.density
    assert sp.simplify(sp.integrate(student, (X, -sp.oo, sp.oo))) == 1
    discrete = mechanisms.discrete_laplace(b=2)
    total = sum(float(discrete.source.density.subs(discrete.variable, k)) for k in range(-80, 81))
    assert abs(total - 1) < 1e-12
    response = mechanisms.randomized_response.source
    assert [sp.simplify(sum(law)) for law in (response.P, response.Q)] == [1, 1]


def test_unknown_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="'gausian'; did you mean 'gaussian'"):
        _ = mechanisms.gausian
    with pytest.raises(AttributeError, match="did you mean 'laplace'"):
        _ = mechanisms.laplce
    assert not hasattr(mechanisms, "__wrapped__")
    assert "gaussian" in dir(mechanisms)
    monkeypatch.chdir(tmp_path)
    for wrong, part in [
        ("gausian", "did you mean 'gaussian'?"),
        ("zzzz", "built in are adaptive_clipping, approximate_dp, bounded_range"),
        ("none.toml", "none.toml: there is no such file"),
        ("a/b", "a/b: there is no such file"),
        ("a" * 5000, "built in are"),
        ("", "this is a directory"),
    ]:
        with pytest.raises(InputError) as caught:
            resolve(wrong)
        assert part in str(caught.value)
    Path("mine").write_text(LOGISTIC)
    Path("gaussian").write_text("not TOML")
    assert resolve("mine") == loads(LOGISTIC)
    assert resolve("gaussian") is mechanisms.gaussian
    with pytest.raises(InputError, match="not TOML"):
        resolve("./gaussian")


def test_names_and_errors_do_not_import_sympy() -> None:
    code = (
        "import sys, symdp.errors, symdp.mechanisms; symdp.mechanisms.names();"
        " symdp.mechanisms.__dir__(); hasattr(symdp.mechanisms, '__wrapped__');"
        " sys.exit('sympy' in sys.modules)"
    )
    root = Path(mechanisms.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


PLAN = """
[[step]]
mechanism = "gaussian"
parameters = { sigma = 1.1 }
sampling = { scheme = "poisson", rate = "1/100" }
count = 700

[[step]]
mechanism = "mine.toml"
parameters = { s = "1/3", q = 0.5 }
"""


def plan(tmp_path: Path, text: str) -> list[tuple[Mechanism, int]]:
    folder = tmp_path / "plans"
    folder.mkdir(exist_ok=True)
    (folder / "mine.toml").write_text(LOGISTIC)
    (folder / "plan.toml").write_text(text)
    return read_parts(folder / "plan.toml")[""]


def test_composition(tmp_path: Path) -> None:
    (first, count), (second, once) = plan(tmp_path, PLAN)
    assert first == mechanisms.gaussian(sigma="1.1").subsample("poisson", 0.01)
    assert second == loads(LOGISTIC)(s="1/3", q="1/2")
    assert (count, once) == (700, 1)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (PLAN, "", ["the key 'step' is missing"]),
        (PLAN, "step = []", ["there is no [[step]]"]),
        (PLAN, '[[steps]]\nmechanism = "gaussian"', ["'steps'", "did you mean 'step'"]),
        (PLAN, 'name = "mine"\nsupport = "integers"', ["one mechanism", "without --composition"]),
        (PLAN, "step = [1]", ["[[step]] 1: a step is a table"]),
        (PLAN, "step = 1", ["step must be a list"]),
        (PLAN, PLAN + "\n[stp]\n", ["unknown key 'stp'", "did you mean 'step'?"]),
        ('mechanism = "gaussian"\n', "", ["[[step]] 1", "the key 'mechanism' is missing"]),
        ('"gaussian"', '"gausian"', ["[[step]] 1", "did you mean 'gaussian'?"]),
        ('"mine.toml"', '"yours.toml"', ["[[step]] 2", "yours.toml: there is no such file"]),
        ('"mine.toml"', '"plan.toml"', ["[[step]] 2", "this is a composition"]),
        ("count = 700", "count = 0", ["[[step]] 1", "count must be a whole number from 1"]),
        ("count = 700", "count = 1.5", ["[[step]] 1", "count must be a whole number"]),
        ("count = 700", "count = true", ["[[step]] 1", "count must be a whole number"]),
        ("count = 700", "count = 10000000000000", ["[[step]] 1", "to 1000000000000"]),
        ("count = 700", "cuont = 700", ["[[step]] 1", "did you mean 'count'?"]),
        ("sigma = 1.1", "sigm = 1.1", ["[[step]] 1: parameters", "did you mean 'sigma'?"]),
        ("sigma = 1.1", "self = 1.1", ["[[step]] 1: parameters", "no parameter 'self'"]),
        ("sigma = 1.1", "sigma = -1", ["[[step]] 1: parameters", "sigma must be above 0"]),
        ("sigma = 1.1", "", ["[[step]] 1: gaussian needs a value for sigma"]),
        ('s = "1/3", ', "", ["[[step]] 2: logistic needs a value for s"]),
        ('"1/100"', '"q"', ["[[step]] 1: gaussian needs a value for q"]),
        ('"1/100"', "2", ["[[step]] 1: [sampling]", "must be a probability"]),
    ],
)
def test_bad_compositions(tmp_path: Path, old: str, new: str, parts: list[str]) -> None:
    assert old in PLAN
    with pytest.raises(InputError) as caught:
        plan(tmp_path, PLAN.replace(old, new))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(tmp_path / "plans" / "plan.toml"))
    assert [part for part in parts if part not in message] == []
