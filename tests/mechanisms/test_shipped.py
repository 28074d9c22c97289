"""What comes with the package is what is derived; run as a script, this file writes it anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms, shipped
from symdp.cli.job import Job
from symdp.cli.question import Composed
from symdp.density.shapes import shape_of
from symdp.durable import checksum
from symdp.model.sampling import Noise
from symdp.numeric import formula as formulas
from symdp.numeric import residues
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.questions.steps.known import facts_of

# Values at which a formula is derived: it holds for others, but of whole numbers.
VALUES: dict[str, dict[str, str]] = {
    "adaptive_clipping": {"z": "3/2", "sigma_b": "5/3"},
    "discrete_laplace": {"b": "3/2"},
    "exponential": {"epsilon_0": "3/2"},
    "gaussian": {"sigma": "3/2"},
    "gnmax": {"sigma": "3/2"},
    "gumbel": {"b": "3/2"},
    "laplace": {"b": "3/2"},
    "logistic": {"s": "3/2"},
    "permute_and_flip": {"epsilon_0": "3/2"},
    "randomized_response": {"epsilon_0": "3/2"},
    "student_t": {"nu": "7/2", "s": "3/2"},
}
QUICK = ("gaussian", "laplace")


def steps(name: str) -> Iterator[Mechanism]:
    """The mechanism with values, as it is and sampled."""
    bound = getattr(mechanisms, name)(**VALUES[name])
    yield bound
    yield bound.subsample("poisson", "1/50")


def jobs(name: str) -> Iterator[Job]:
    """What is asked of it on a command line: one step and more, as it is and sampled."""
    values = [f"{key}={value}" for key, value in VALUES[name].items()]
    for count in ("1", "2"):
        yield Job(mechanism=name, values=values, count=count)
        yield Job(mechanism=name, values=values, count=count, sampling="poisson", rate="1/50")


def derived(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Everything that is shipped of a mechanism, derived without what is shipped."""
    monkeypatch.setattr(shipped, "_held", lambda _: {})
    formulas._shipped_formula.cache_clear()
    found: dict[str, dict[str, Any]] = {"formulas": {}, "facts": {}, "proper": {}}
    for step in steps(name):
        for direction in ("remove", "add"):
            pair = formulas.formula_of(step, direction)
            assert pair is not None
            if direction == "remove" or pair[0].is_discrete:
                place = checksum(formulas.key_of(step, direction))
                found["formulas"][place] = formulas.encode(pair[0])
    for job in jobs(name):
        asked = Composed(job)
        facts = facts_of(asked._made())
        assert asked._asked is not None
        if facts is None:  # as of skewed noise, sampled: its directions have four laws
            continue
        for part in ("formula", "added"):
            if facts[part] is not None:
                named = [key for key, held in found["formulas"].items() if held == facts[part]]
                facts[part] = named[0]
        found["facts"][checksum(asked._asked.key)] = facts
        # Facts are of densities whose mass is 1 at three values.
        found["proper"][checksum([getattr(mechanisms, name).key])] = True
    noise = getattr(mechanisms, name)
    if isinstance(noise.source, Noise):
        shape = shape_of(noise.source.density, noise.variable, noise.support)
        found["shapes"] = {checksum([noise.key]): shape.data}
    return json.loads(json.dumps(found))


@pytest.mark.slow_cases("laplace")
@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in VALUES],
)
def test_what_is_shipped_is_what_is_derived(name, monkeypatch):
    held = json.loads((shipped.FOLDER / f"{name}.json").read_text("utf-8"))
    assert held == derived(name, monkeypatch)


def test_every_file_is_of_a_mechanism():
    assert {path.stem for path in shipped.FOLDER.glob("*.json")} == set(VALUES)


@pytest.mark.slow_cases("gaussian")
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_an_answer_of_what_is_shipped_is_that_of_what_is_derived(name, monkeypatch):
    values = {key: value.replace("3", "5") for key, value in VALUES[name].items()}
    bound = getattr(mechanisms, name)(**values)
    quick = compose(bound.subsample("poisson", "1/30"), 40).epsilon(1e-6)
    monkeypatch.setattr(shipped, "_held", lambda _: {})
    formulas._shipped_formula.cache_clear()
    other = compose(bound.subsample("poisson", "1/30"), 40).epsilon(1e-6)
    assert abs(quick.epsilon - other.epsilon) <= 1e-13 * other.epsilon


@pytest.mark.parametrize("name", VALUES)
def test_a_shipped_generating_function_has_the_values_of_nodes(name):
    """At small values of the parameters and at large ones: what is shipped is not compared."""
    for factor in map(sp.Rational, ("1/5", "2", "31")):
        bound = {key: sp.Rational(value) * factor for key, value in VALUES[name].items()}
        for step in (
            getattr(mechanisms, name)(**bound),
            getattr(mechanisms, name)(**bound).subsample("poisson", "1/30"),
        ):
            law = loss_law(step, "remove")
            moment = law.moment
            if moment is not None and law.is_spread:  # residues are of losses with a density
                assert moment.is_checked
                assert residues._agrees_with_nodes(law, moment)


def test_what_is_shipped_serves_many_values_at_once():
    steps = [(mechanisms.laplace(b=2 + sp.Rational(k, 40)), 5) for k in range(40)]
    many = compose(steps).epsilon(1e-6)
    alone = compose([(mechanisms.laplace(b=2 + sp.Rational(k, 40)), 5) for k in range(0, 40, 8)])
    assert many.kind == "exact"
    assert many.epsilon > alone.epsilon(1e-6).epsilon


def test_another_density_of_the_same_name_has_none_of_it():
    x = mechanisms.gaussian.variable
    sigma = mechanisms.gaussian.parameters["sigma"]
    density = sp.exp(-sp.Abs(x) / sigma) / (2 * sigma)
    other = Mechanism.additive(density, x, name="gaussian", parameters={"sigma": "positive"})
    assert not shipped.fact("gaussian", "proper", other.key)
    found = compose(other(sigma=1), 1).delta(0.5, direction="remove")
    assert abs(float(found) - 0.2211992169285951) < 1e-12  # 1 − e^{(ε − 1)/2}


@pytest.mark.parametrize("name", VALUES)
def test_a_shipped_shape_is_that_of_its_density(name):
    noise = getattr(mechanisms, name)
    shape = noise(**VALUES[name]).shipped_shape
    if not isinstance(noise.source, Noise):
        assert shape is None
        return
    assert shape == shape_of(noise.source.density, noise.variable, noise.support)


def test_a_name_is_no_path():
    for name in ("../gaussian", "", "a/b", "nobody"):
        assert shipped.fact(name, "formulas", "key") is None


if __name__ == "__main__":
    shipped.FOLDER.mkdir(exist_ok=True)
    for one in VALUES:
        with pytest.MonkeyPatch.context() as patch:
            text = json.dumps(derived(one, patch), sort_keys=True, separators=(",", ":"))
        (shipped.FOLDER / f"{one}.json").write_text(text + "\n", "utf-8")
        print(one, len(text))
