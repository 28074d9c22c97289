"""Powers in ball arithmetic, of balls that are wide or hold zero too."""

from __future__ import annotations

from flint import acb, arb

from symdp.emit.enclose import between

_NARROW = 4  # bits of a ball whose powers are hardly wider than they must be


def integer_power(exponent: int, _analytic: bool, base: acb) -> acb:
    """Return baseⁿ, the better of products and what the ends of a wide real ball say."""
    raised = base**exponent
    ends = _ends(base)
    if ends is None or not raised.is_finite():
        return raised
    # Products of wide balls are wider than what they stand for.
    united = (ends[0] ** exponent).union(ends[1] ** exponent)
    return united if exponent % 2 or not base.contains(0) else united.union(acb(0))


def power(_detail: object, analytic: bool, base: acb, exponent: acb) -> acb:
    """Return baseᵉ on the principal branch."""
    if not analytic and base.contains(0) and exponent.imag.is_zero() and exponent.real > 0:
        return _power_about_zero(base, exponent)
    raised = base.pow(exponent, analytic=analytic)
    ends = _ends(base)
    if ends is None or not exponent.imag.is_zero() or not (base.real > 0 and raised.is_finite()):
        return raised
    return ends[0].pow(exponent).union(ends[1].pow(exponent))


def _power_about_zero(base: acb, exponent: acb) -> acb:
    """Enclose zᵉ from |zᵉ| = |z|ᵉ where the ball holds 0, at which log z is not finite."""

    def size(of: arb) -> arb:
        return acb(of.upper()).pow(exponent).real.upper()

    largest = size(abs(base))
    if not base.imag.is_zero():
        return acb(arb(0, largest), arb(0, largest))
    below = size((-base.real).max(arb(0)))
    return acb(between(-below, largest), arb(0, below))


def _ends(value: acb) -> tuple[acb, acb] | None:
    """Return the ends of a wide real interval, None for any other ball."""
    if value.rel_accuracy_bits() >= _NARROW or not value.imag.is_zero():
        return None
    return acb(value.real.lower()), acb(value.real.upper())
