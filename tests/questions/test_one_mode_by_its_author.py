"""The author's word that noise has one mode: what rests on it says so, and values may refuse it.

The truth is a sum over a grid of values of the density, which knows nothing of modes.
"""

from __future__ import annotations

import copy
import math
import pickle
import re

import numpy as np
import pytest
import sympy as sp

from symdp import Mechanism, compose
from symdp.balls.modes import one_mode
from symdp.errors import InputError
from symdp.model.fact import AUTHOR, OPEN
from symdp.page.card import differences, make_card
from symdp.questions.certificate_file import certificate
from symdp.questions.ledger import Ledger

X, R = sp.Symbol("x", real=True), sp.Symbol("r", positive=True)
# One mode, as the second factor is too flat to undo the fall of the first; no rule sees it.
BENT = sp.exp(-sp.Abs(X)) * (1 + sp.exp(-(X**2)) * sp.cos(X) / 10)
NORMAL = sp.exp(-(X**2) / 8) / sp.sqrt(8 * sp.pi)
WORD = "that the noise has one mode is its author's word"
FAR_NORMALS = sp.exp(-((X - 5) ** 2)) + sp.exp(-((X + 5) ** 2))
TEXT = """
name = "bent"
variable = "x"
support = ["-oo", "oo"]
[parameters]
s = "positive"
[noise]
density = "exp(-abs(x)/s)*(1 + exp(-x**2)*cos(x)/10)"
normalize = true
{}
"""


def bent(**options):
    return Mechanism.additive(BENT, X, 1, normalize=True, **options)


def delta_on_a_grid(shift, epsilon):
    """δ(ε) of one step, by the trapezoidal rule on either side of each kink."""
    total = mass = 0.0
    for low, high in ((-40.0, 0.0), (0.0, shift), (shift, 40.0)):
        x = np.linspace(low, high, 400_001)
        p, q = (np.exp(-np.abs(y)) * (1 + np.exp(-(y**2)) * np.cos(y) / 10) for y in (x - shift, x))
        mass += np.trapezoid(q, x)
        total += np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), x)
    return total / mass


@pytest.mark.slow
def test_no_proof_is_found_of_the_example():
    assert one_mode(bent()).by == OPEN
    fact = one_mode(bent(modes=1))
    assert fact
    assert fact.by == AUTHOR


@pytest.fixture
def no_proofs(monkeypatch):
    """No rule and no balls, so that noise with quick answers rests on its author's word."""
    nothing = one_mode(bent())
    for name in ("one_mode_always", "_by_balls"):
        monkeypatch.setattr(f"symdp.balls.modes.{name}", lambda *_: nothing)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 0.8])
def test_the_largest_shift_answers_and_says_on_whose_word(epsilon):
    answer = compose(bent(modes=1), 1).delta(epsilon)
    assert answer.delta == pytest.approx(delta_on_a_grid(1.0, epsilon), rel=1e-6)
    assert answer.delta > delta_on_a_grid(0.6, epsilon)
    assert WORD in answer.protection.sentence
    assert answer.to_json()["one_mode_by"] == "author"
    open_one = compose(bent(), 1).delta(epsilon)
    assert "was not shown to have one mode" in open_one.protection.sentence
    assert "one_mode_by" not in open_one.to_json()
    assert open_one.delta >= answer.delta


def test_a_word_is_not_named_where_nothing_rests_on_it():
    laplace = Mechanism.additive(sp.exp(-sp.Abs(X)) / 2, X, 1, modes=1)
    for step in (laplace, bent(modes=1, shift="exactly")):
        answer = compose(step, 1).delta(0.5)
        assert WORD not in answer.protection.sentence
        assert "one_mode_by" not in answer.to_json()
    # a rule shows it of the first, the second asks for one shift alone
    integers = Mechanism.from_toml(
        'name = "m"\nvariable = "k"\nsupport = "integers"\n'
        '[noise]\ndensity = "2**(-abs(k))/3"\nmodes = 1'
    )
    assert WORD not in compose(integers, 2).delta(0.5).protection.sentence


@pytest.mark.slow_cases(
    "add_remove-density4-support4",
    "add_remove-density1-support1",
    "add_remove-density0-support0",
    "substitution-density4-support4",
)
@pytest.mark.parametrize(
    ("density", "support"),
    [
        (FAR_NORMALS, (-sp.oo, sp.oo)),
        (sp.exp(-(X**2)) * (1 + 9 * sp.cos(4 * X) ** 2), (-sp.oo, sp.oo)),
        (1 + X**2, (-1, 1)),
        (sp.exp(-X) + sp.exp(-((X - 6) ** 2)), (0, sp.oo)),
        (1 / (1 + (X - 9) ** 2) ** 2 + 1 / (1 + X**2) ** 2, (-sp.oo, sp.oo)),
    ],
)
@pytest.mark.parametrize("relation", ["add_remove", "substitution"])
def test_values_that_contradict_the_author_refuse(density, support, relation):
    step = Mechanism.additive(density, X, 1, support, normalize=True, modes=1).under(relation)
    with pytest.raises(InputError, match=r"modes = 1 says that .* falls and rises again") as error:
        compose(step, 1).delta(0.5)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_vectors():
    g = sp.exp(-R) * (1 + sp.exp(-(R**2)) * sp.cos(R) / 10)
    with pytest.raises(InputError, match="modes = 1"):
        compose(Mechanism.radial(g, R, 2), 1).delta(0.5)
    answer = compose(Mechanism.radial(g, R, 2, modes=1), 1).delta(0.5)
    assert WORD in answer.protection.sentence
    rising = Mechanism.radial(R**4 * sp.exp(-R), R, 2, modes=1)
    with pytest.raises(InputError, match="leave modes out"):
        compose(rising, 1).delta(0.5)
    text = 'name = "v"\nvariable = "r"\n[noise]\ndensity = "exp(-r)"\nnorm = "l2"\ndimension = 2\n'
    assert Mechanism.from_toml(text + "modes = 1").modes == 1


@pytest.mark.slow
def test_a_record_that_takes_anothers_place():
    with pytest.raises(InputError, match="say modes = 1 if you know that it falls"):
        compose(bent().under("substitution"), 1).delta(0.5)
    step = bent(modes=1)
    answer = compose(step.under("substitution"), 1).delta(0.5)
    assert answer.delta == pytest.approx(delta_on_a_grid(2.0, 0.5), rel=1e-6)
    assert WORD in answer.protection.sentence
    for sampling in ({"records": 100, "released": "average"}, {"records": 100, "batch": 20}):
        scheme = "truncated_poisson" if "batch" in sampling else "poisson"
        whose = compose(step.subsample(scheme, "1/10", **sampling), 1).protection
        assert WORD in whose.sentence


def test_averages_are_answered_where_balls_show_one_mode():
    step = Mechanism.additive(sp.exp(-(X**2) / 8) * (2 + sp.cos(X / 100)), X, 1, normalize=True)
    assert one_mode(step)
    drawn = step.subsample("poisson", "1/10", records=50, released="average")
    whose = compose(drawn, 1).protection
    assert WORD not in whose.sentence


def test_copies_and_files_keep_the_word():
    step = Mechanism.from_toml(TEXT.format("modes = 1"))(s=1)
    plain = Mechanism.from_toml(TEXT.format(""))(s=1)
    assert step != plain
    assert step.key != plain.key
    assert "author's word" in step.summary
    assert "author's word" not in plain.summary
    kept = (
        copy.deepcopy(step),
        pickle.loads(pickle.dumps(step)),
        step.under("add_remove"),
        step.shifted("exactly").shifted("at most"),
        step.moved_by(2),
        step.subsample("poisson", "1/10"),
        step.normalized(),
    )
    assert all(other.modes == 1 for other in kept)
    assert kept[0] == kept[1] == step
    assert hash(kept[0]) == hash(step)


@pytest.mark.usefixtures("no_proofs")
def test_ledgers_and_cards_keep_the_word():
    ledger = Ledger()
    ledger.add(Mechanism.additive(NORMAL, X, 1, modes=1), 2)
    again = Ledger.from_state_dict(ledger.state_dict())
    ((read, _),) = again.composition().given_steps()
    assert read.modes == 1
    assert WORD in again.composition().protection.sentence
    card = make_card(again.composition(), title="run", deltas=(0.1,))
    assert WORD in card["neighboring_datasets"]["protects"]
    assert not differences(card)


@pytest.mark.slow
def test_certificates_and_claims_say_so():
    steps = compose(bent(modes=1), 1)
    assert WORD in steps.certify(0.5, 6).protection.sentence
    assert steps.check_claim(0.9, 0.3).to_json()["one_mode_by"] == "author"
    smooth = Mechanism.additive(NORMAL, X, 1, modes=1)
    assert "assumed" not in certificate(
        compose(smooth, 30), epsilon=1, digits=4, direction="remove"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("no_proofs")
def test_a_certificate_file_names_what_is_assumed():
    smooth = Mechanism.additive(NORMAL, X, 1, modes=1)
    made = certificate(compose(smooth, 30), epsilon=1, digits=4, direction="remove")
    assert WORD in made["assumed"]


@pytest.mark.parametrize("modes", [0, 2, True, 1.0, "1"])
def test_other_numbers_of_modes_are_refused(modes):
    with pytest.raises(InputError, match=re.escape("modes = ")):
        bent(modes=modes)


def test_the_word_belongs_to_noise():
    text = 'name = "p"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[pair]\nP = "exp(-abs(x))/2"\n'
    with pytest.raises(InputError, match="modes"):
        Mechanism.from_toml(text + 'Q = "exp(-abs(x - 1))/2"\nmodes = 1')
