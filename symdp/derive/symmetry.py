"""Which of two directions dominates, where a symmetry of the pair proves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import sympy as sp

from symdp.density.signs import DIGITS, random_values
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.model.pair import Pair

Direction = Literal["both", "remove", "add", "unknown"]
_MOST_ZEROS = 4  # of either density, whose sums are tried
_POINTS = 6  # random places at which a symmetry must hold


@dataclass(frozen=True)
class Dominance:
    """The direction whose δ(ε) is the larger at every ε ≥ 0, and why.

    Attributes
    ----------
    value
        "both" where the two are equal, "remove", "add", or "unknown": compare the two in numbers.
    proof
        The argument in words; what is left to do where there is none.
    """

    value: Direction
    proof: str


def dominating_direction(pair: Pair) -> Dominance:
    """Return which direction of a mechanism's remove pair dominates.

    A reflection x → c − x that exchanges f₁ and f₀ exchanges P and Q of the plain pair, so that
    both hockey-stick curves are one, H.  Poisson sampling at rate q makes of it, with α = e^ε ≥ 1,
    q·H(1 + (α − 1)/q) in the remove direction, (1 − α(1 − q))⁺·H(αq/(1 − α(1 − q))) in the
    other: the smaller factor with the later argument, so that remove dominates [SPA Lemma 3].
    On finite lists any exchange of points serves.
    """
    compare = "no symmetry was found: compare both directions in numbers"
    if pair.alternatives:  # the profile is the mean of theirs
        dominances = [dominating_direction(dominance) for _, dominance in pair.alternatives]
        alike = (
            len({dominance.value for dominance in dominances}) == 1
            and dominances[0].value != "unknown"
        )
        proof = f"of every pair of the public choice {dominances[0].proof}"
        if alike:
            return Dominance(dominances[0].value, proof)
        return Dominance("unknown", compare)
    used = [[i for i, w in enumerate(ws) if w != 0] for ws in (pair.p_weights, pair.q_weights)]
    plain = len(used[0]) == 1 and len(used[1]) == 1
    poisson = len(used[0]) == 2 and len(used[1]) == 1 and used[1][0] in used[0]
    if plain:
        exchange = _exchange(pair, used[0][0], used[1][0])
        if exchange:
            return Dominance("both", f"{exchange} exchanges P and Q, so that δ(P‖Q) = δ(Q‖P)")
    if poisson:
        (base,) = used[1]
        (other,) = (i for i in used[0] if i != base)
        exchange = _exchange(pair, other, base)
        if exchange:
            return Dominance(
                "remove",
                f"{exchange} exchanges the two densities that Poisson sampling mixes; of such a "
                "pair the remove direction dominates [SPA Lemma 3]",
            )
    if not plain and not poisson and _mirrored_mixture(pair):
        return Dominance("both", "a reflection exchanges P and Q, so that δ(P‖Q) = δ(Q‖P)")
    return Dominance("unknown", compare)


def _exchange(pair: Pair, first: int, second: int) -> str:
    """Say what exchanges two components; empty where nothing was found."""
    f = pair.components[first]
    g = pair.components[second]
    if isinstance(f, tuple) and isinstance(g, tuple):
        # Sorting the pairs (f, g) and (g, f) must give the same list.
        there = sorted((sp.srepr(tidy.simplify(a)), sp.srepr(tidy.simplify(b)))
                       for a, b in zip(f, g, strict=True))  # fmt: skip
        back = sorted((b, a) for a, b in there)
        if there == back:
            return "an exchange of points"
        return ""
    if isinstance(f, tuple) or isinstance(g, tuple):
        return ""
    x = pair.variable
    for centre in _centres(pair, f, g):
        image = centre - x
        if pair.support.lower + pair.support.upper not in (centre, sp.nan):
            both = pair.support.lower is -sp.oo and pair.support.upper is sp.oo
            if not both and tidy.simplify(pair.support.lower + pair.support.upper - centre) != 0:
                continue
        if not _exchanges_atoms(pair, centre, first, second):
            continue
        if _equal(f.subs(x, image), g, x) and _equal(g.subs(x, image), f, x):
            return f"the reflection {x} → {image}".replace("-", "−").replace("*", "·")
    return ""


def _exchanges_atoms(pair: Pair, centre: sp.Expr, first: int, second: int) -> bool:
    """Return whether x → c − x puts every atom on one whose two masses are exchanged."""
    atoms = [(value, masses[first], masses[second]) for value, masses in pair.atoms]
    return all(
        any(
            all(tidy.simplify(gap) == 0 for gap in (centre - value - image, f - v, g - u))
            for image, u, v in atoms
        )
        for value, f, g in atoms
    )


def _mirrored_mixture(pair: Pair) -> bool:
    """Whether P(c − x) = Q(x) for the c that the symmetric mixtures of substitution have, 0."""
    if isinstance(pair.P, tuple) or isinstance(pair.Q, tuple):
        return False
    if pair.atoms:
        return False
    x = pair.variable
    symmetric = tidy.simplify(pair.support.lower + pair.support.upper) in (0, sp.nan)
    return bool(symmetric) and _equal(pair.P.subs(x, -x), pair.Q, x)


def _centres(pair: Pair, f: sp.Expr, g: sp.Expr) -> list[sp.Expr]:
    """Candidates for c: the ends of the support, 0, shifts D seen as x − D, and sums of two.

    A reflection that exchanges f and g takes a place a that f names to one that g names, c − a.
    """
    x = pair.variable
    support = pair.support
    centres: list[sp.Expr] = []
    if not (support.lower.is_infinite or support.upper.is_infinite):
        centres.append(sp.expand(support.lower + support.upper))
    zeros = _zeros(f, x), _zeros(g, x)
    centres += [*zeros[0], *zeros[1], sp.S.Zero]
    centres += [tidy.cancel(a + b) for a in zeros[0][:_MOST_ZEROS] for b in zeros[1][:_MOST_ZEROS]]
    return list(dict.fromkeys(centres))


def _zeros(density: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """Return where the linear functions of x in a density vanish."""
    zeros = []
    for node in sorted(density.atoms(sp.Add), key=sp.default_sort_key):
        if node.is_polynomial(x) and sp.degree(node, x) == 1:
            zeros.append(tidy.cancel(-node.subs(x, 0) / sp.diff(node, x)))
    return list(dict.fromkeys(zeros))


def _equal(a: sp.Expr, b: sp.Expr, x: sp.Symbol) -> bool:
    """Whether two densities are one function: by algebra, and at random rational points besides."""
    if a == b:
        return True
    symbols = (a.free_symbols | b.free_symbols) - {x}
    for seed in range(_POINTS):
        values = dict(random_values(symbols, seed))
        at = sp.Integer(3 * seed - 8) if x.is_integer else sp.Rational(37 * seed - 101, 23)
        if x.is_nonnegative:
            at = abs(at)
        gap = (a - b).subs(values).subs(x, at)
        size = abs(sp.N(gap, DIGITS, maxn=400))
        if not size.is_number or not (size < sp.Float(10) ** (10 - DIGITS)):
            return False
    return bool(_canonical(a - b, x) == 0 or tidy.simplify(a - b) == 0)


def _canonical(gap: sp.Expr, x: sp.Symbol) -> sp.Expr:
    even = gap.replace(
        lambda node: isinstance(node, sp.Abs),
        lambda node: sp.Abs(-node.args[0] if _is_turned(node.args[0], x) else node.args[0]),
    )
    return tidy.simplify(sp.expand(sp.powsimp(sp.expand(even.rewrite(sp.exp)))))


def _is_turned(argument: sp.Expr, x: sp.Symbol) -> bool:
    return bool(sp.expand(argument).coeff(x).could_extract_minus_sign())
