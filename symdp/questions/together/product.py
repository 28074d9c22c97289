r"""Several releases of the same records as one step, which one sample of the records is drawn for.

Let (Pᵢ, Qᵢ) dominate release i with the record and without it, whatever the others returned. Then
(P₁ ⋯ Pₖ, Q₁ ⋯ Qₖ) dominates all of them together [Zhu, Dong, Wang 2022], and under
Poisson sampling at rate q

.. math:: ((1 - q)\, Q_1 \cdots Q_k + q\, P_1 \cdots P_k,\ Q_1 \cdots Q_k)

does, for removing a record, and its reverse for adding one. It is not the product of
the sampled pairs: the record is in the sample for all of them or for none.

*Normal noise.* With shifts of at most Dᵢ, outputs xᵢ/σᵢ are normal noise of deviation 1 on a vector
that a record moves by at most D in length, D² = Σ Dᵢ²/σᵢ². Its tests are those on a line: at size
u no test has more power against a shift than the half-space across it, which depends on the length
alone. So that noise on a line stands for all, with every sampling that it has a pair for.

*Finite lists* have a finite list as their product; outcomes of one ratio P/Q are one outcome.

Every other product is bounded: see `symdp.questions.together.table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp

from symdp.arguments import AT_MOST, checked_count
from symdp.errors import InputError
from symdp.model import tidy
from symdp.model.mechanism import Mechanism
from symdp.model.relation import PAIR, is_local
from symdp.model.sampling import Laws, Noise, Radial, RenyiCurve
from symdp.questions.steps.accounted import accounted, is_skewed, listed_steps, merged_steps
from symdp.questions.together.table import ProductLaws, bounded

_MOST_OUTCOMES = 400  # of a product of lists: each is a formula of its own
_LONGEST_NAME = 60


def together(steps: Sequence[Mechanism | tuple[Mechanism, int]]) -> Mechanism:
    """Return the one step that makes all releases on the same records; give it its sampling.

    Parameters
    ----------
    steps : mechanisms with all values, or pairs of one and its count, without sampling

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> mean, count = mechanisms.gaussian(sigma=3), mechanisms.gaussian(sigma=4)
    >>> once = together([mean, count]).subsample("poisson", "1/100")
    >>> print(f"{compose(once, 1000).epsilon(1e-5).epsilon:.6f}")
    0.495466
    """
    merged = merged_steps(
        (mechanism, checked_count(count)) for mechanism, count in listed_steps(steps)
    )
    for step in merged:
        _check(step)
    answers = accounted(merged)
    product = _normal(merged) or _list(merged)
    if product is None:
        product = bounded(answers)
    relation = next((step.relation for step in merged if step.relation is not None), None)
    if isinstance(product.source, ProductLaws) and product.source.made_for != PAIR:
        relation = product.source.made_for
    return replace(
        product,
        name=_name([step.name for step in merged]),
        relation=relation,
        modes=1 if answers.protection.by_author else None,
    )


def _check(step: Mechanism) -> None:
    """Raise InputError for what has no pair that its sample could be drawn for once."""
    if step.sampling is not None:
        raise InputError(
            f"{step.summary}: what is released together is drawn once: give the steps without "
            "sampling, and the sampling to all of them"
        )
    if is_local(step) or isinstance(step.source, RenyiCurve):
        raise InputError(
            f"{step.summary} is released together with others where a pair of laws is known of "
            "it; give noise, or a pair"
        )
    if isinstance(step.source, Noise) and step.shift == AT_MOST and is_skewed(step):
        raise InputError(
            f"{step.summary}: of skewed noise a record may raise one output and lower another; "
            'for one sign say shift = "up" or "down", for both shift = "either way"'
        )


def _name(names: Sequence[str]) -> str:
    """Return the names of all releases, or how many they are."""
    text = " and ".join(dict.fromkeys(names)) + " together"
    if len(text) <= _LONGEST_NAME:
        return text
    return f"{len(names)} releases together"


def _normal(steps: dict[Mechanism, int]) -> Mechanism | None:
    """Return the normal noise that stands for several, None where a step is something else."""
    squares = []
    moved = []
    for step, count in steps.items():
        precision = _precision(step)
        if precision is None:
            return None
        source = step.source
        squares.append(count * precision * source.sensitivity**2)  # type: ignore[union-attr]
        twice = getattr(source, "substitution_sensitivity", 2 * source.sensitivity)  # type: ignore[union-attr]
        moved.append(count * precision * twice**2)
    x = sp.Symbol("x", real=True)
    density = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
    return Mechanism.additive(
        density,
        x,
        sp.sqrt(sp.Add(*squares)),
        substitution_sensitivity=sp.sqrt(sp.Add(*moved)),
        parameters={},
    )


def _precision(step: Mechanism) -> sp.Expr | None:
    """Return 1/σ² of normal noise, None of other noise."""
    source = step.source
    if not isinstance(source, Noise | Radial) or step.support.kind != "interval":
        return None
    if isinstance(source, Noise) and not (step.support.lower == -sp.oo == -step.support.upper):
        return None
    x = step.variable
    slope = sp.diff(sp.expand_log(sp.log(source.density), force=True), x)
    bend = tidy.cancel(-sp.diff(slope, x))
    if x in bend.free_symbols or not bend.is_positive:
        return None
    is_falling_from_0 = isinstance(source, Noise) or tidy.cancel(slope + bend * x) == 0
    if is_falling_from_0:
        return bend
    return None


def _list(steps: dict[Mechanism, int]) -> Mechanism | None:
    """Return the product of finite lists, None where a step is none or the product is long."""
    sources = [step.source for step in steps]
    if not all(isinstance(source, Laws) and isinstance(source.P, tuple) for source in sources):
        return None
    product: dict[sp.Expr, tuple[sp.Expr, sp.Expr]] = {sp.S.One: (sp.S.One, sp.S.One)}
    for step, count in steps.items():
        outcomes = list(zip(step.source.P, step.source.Q, strict=True))  # type: ignore[union-attr]
        for _ in range(count):
            product = _times(product, outcomes)
            if len(product) > _MOST_OUTCOMES:
                return None
    P, Q = zip(*product.values(), strict=True)
    points = {"points": list(range(len(P)))}
    mechanism = Mechanism.from_pair(P, Q, sp.Symbol("x", real=True), points)
    relations = {step.neighbours for step in steps} - {PAIR}
    laws = ProductLaws(
        P,
        Q,
        is_bound=any(source.is_bound for source in sources),  # type: ignore[union-attr]
        is_envelope=any(source.is_envelope for source in sources),  # type: ignore[union-attr]
        made_for=next(iter(relations), PAIR),
    )
    return replace(mechanism, source=laws)


def _times(
    product: dict[sp.Expr, tuple[sp.Expr, sp.Expr]], outcomes: list[tuple[sp.Expr, sp.Expr]]
) -> dict[sp.Expr, tuple[sp.Expr, sp.Expr]]:
    """Return the outcomes of two lists by their ratios; what neither law has is left out."""
    longer: dict[sp.Expr, tuple[sp.Expr, sp.Expr]] = {}
    for mass, other in product.values():
        for factor, divisor in outcomes:
            p = sp.expand_mul(mass * factor)
            q = sp.expand_mul(other * divisor)
            if p == 0 and q == 0:
                continue
            ratio = sp.oo if q == 0 else sp.powsimp(p / q)
            before = longer.get(ratio, (sp.S.Zero, sp.S.Zero))
            longer[ratio] = (before[0] + p, before[1] + q)
    return longer
