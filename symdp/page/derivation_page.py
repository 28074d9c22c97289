"""A derivation page of a new mechanism: MyST, executed with its asserts, as those of the built-ins.

What is printed comes from the sections of the derivation, and every cell holds the package against
something that it did not come from: numerical integrals, differences, proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from symdp.density.signs import random_values
from symdp.errors import InputError
from symdp.page.document import Section
from symdp.page.markdown import markdown_blocks
from symdp.page.step_log import step_log

if TYPE_CHECKING:
    import sympy as sp

    from symdp.derive.derivation import Derivation

_HEAD = """---
file_format: mystnb
kernelspec:
  name: python3
---

# {title}

{description}

```{{code-cell}} ipython3
import numpy as np
import sympy as sp
from scipy.integrate import quad

import symdp
from symdp.emit import compile_numpy
from symdp.prove.truth import privacy_profile

mechanism = {source}
found = symdp.derive(mechanism, direction="{direction}")
values = {values}
step = mechanism(**values) if values else mechanism
own = symdp.derive(step, direction="{direction}")
pair = own.pair
```
"""
_MEASURE = """
The two laws, and sums or integrals over them by quadrature of their densities between kinks:

```{code-cell} ipython3
if own.points:
    places = [(float(point.p), float(point.q)) for point in own.points]

    def total(f):
        return sum(f(p, q) for p, q in places)
else:
    P, Q = (compile_numpy(law, [pair.variable]) for law in (pair.P, pair.Q))
    smooth = [piece for piece in own.pieces if piece.place is None]
    ends = [float(piece.lower) for piece in smooth] + [float(smooth[-1].upper)]
    masses = [[float(m) for _, m in pair.atoms_under(w)] for w in (pair.p_weights, pair.q_weights)]
    atoms = list(zip(*masses, strict=True))
    whole = bool(pair.variable.is_integer)
    if whole:
        low, high = (max(ends[0], -2000.0), min(ends[-1], 2000.0))
        x = np.arange(low, high + 1)
        places = [(float(P(one)), float(Q(one))) for one in x]

    def total(f):
        if whole:
            return sum(f(p, q) for p, q in places)
        def inside(x):  # far out, factors of a density overflow where it is no more than 0
            with np.errstate(all="ignore"):
                p, q = (float(np.nan_to_num(np.real(law(x)))) for law in (P, Q))
            return f(p, q)

        cuts = sorted({*ends, 0.0} if ends[0] < 0 < ends[-1] else {*ends})
        parts = zip(cuts, cuts[1:], strict=False)
        whole_integral = sum(quad(inside, a, b, limit=400, epsabs=1e-13)[0] for a, b in parts)
        return whole_integral + sum(f(p, q) for p, q in atoms)


assert abs(total(lambda p, q: p) - 1) < 1e-9
assert abs(total(lambda p, q: q) - 1) < 1e-9
```
"""
_LOSS = """
The loss that was derived is the logarithm of the ratio of the two:

```{code-cell} ipython3
if not own.points:
    inner = range(-3, 4) if whole else np.linspace(-3, 3, 13) + 0.013
    inner = [place for place in inner if ends[0] < place < ends[-1]]
    loss = compile_numpy(own.loss, [own.variable])
    for place in inner:
        p, q = float(np.real(P(place))), float(np.real(Q(place)))
        if p > 1e-290 and q > 1e-290:
            assert abs(float(np.real(loss(place))) - np.log(p / q)) < 1e-9
```
"""
_CGF = """
K is the logarithm of a mean, at tilts inside its domain:

```{code-cell} ipython3
low, high = (-1.0, 1.0) if own.cgf.domain is None else map(float, own.cgf.domain)
tilts = [t for t in (-0.7, -0.25, 0.15, 0.4, 0.9) if low < t < high]
for t in tilts:
    M = total(lambda p, q: p * (p / q) ** t if p > 0 and q > 0 else 0.0)
    if own.cgf.expression is not None:
        K = float(sp.N(own.cgf.expression.subs(own.cgf.tilt, sp.Float(t, 30)), 20))
        assert abs(K - np.log(M)) < 1e-7
```
"""
_TRUTH = """
## Against truth

One step from the definition; several from the default method and from a proof, or from two
evaluations of the definition that agree:

```{{code-cell}} ipython3
for epsilon in (0.05, 0.3):
    direct = total(lambda p, q: max(0.0, p - np.exp(epsilon) * q))
    answer = symdp.compose(step).delta(epsilon, direction="{direction}")
    assert abs(answer.delta - direct) < 1e-7
few = symdp.compose(step, {count})
answer = few.delta(0.5, direction="{direction}")
try:
    truth = privacy_profile([(pair, {count})], 0.5, digits=12)
    low = high = float(truth)
except symdp.AccuracyError:  # out of reach: a proof of some digits
    proved = few.certify(0.5, digits=4, direction="{direction}")
    low, high = proved.lower, proved.upper
assert answer.lower <= high * (1 + 1e-10)
assert low <= answer.upper * (1 + 1e-10)
print(few.delta(0.5))
```
"""
_COUNT = 8  # steps: of so few truth may be out of reach


def derivation_page(d: Derivation, source: str, values: Mapping[str, str], order: int = 2) -> str:
    """Return a derivation as an executable page."""
    if d.pair.alternatives:
        raise InputError("a public choice among pairs has no page: derive one of them")
    found = dict(_drawn(d)) | dict(values)
    description = d.mechanism.description or "Derived by symdp from its density, and checked below."
    head = _HEAD.format(
        title=d.mechanism.title or f"The mechanism {d.mechanism.name}",
        description=description,
        source=source,
        direction=d.direction,
        values=repr(found),
    )
    by_key: dict[str, list[Section]] = {}
    for section in d.sections(order):
        by_key.setdefault(section.key, []).append(section)
    parts = [head]
    for key, cell in (("mechanism", _MEASURE), ("loss", _LOSS), ("cumulants", "")):
        parts += [_prose(section) for section in by_key.pop(key, [])]
        parts.append(cell)
    parts += [_prose(step_log(d)), _CGF]
    parts += [_prose(section) for sections in by_key.values() for section in sections]
    parts.append(_TRUTH.format(count=_COUNT, direction=d.direction))
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def _drawn(d: Derivation) -> Iterator[tuple[str, str]]:
    """Yield the free parameters, each with an exact number inside its domain."""
    drawn = random_values(d.mechanism.parameters.values(), 1, d.below_one)
    names: dict[sp.Symbol, str] = {s: name for name, s in d.mechanism.parameters.items()}
    yield from ((names[symbol], str(value)) for symbol, value in drawn.items())


def _prose(section: Section) -> str:
    """Return a section as a heading, formulas and sentences."""
    return f"{markdown_blocks(section.blocks(2))}\n"
