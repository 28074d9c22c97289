"""Enclose Bessel functions sharply where Arb's own series cancels, or the order is a range."""

from __future__ import annotations

from flint import acb, arb, ctx, fmpq

_MOST_BITS = 20_000


def bessel_k_ball(order: acb | fmpq, value: acb, *, scaled: bool = False) -> acb:
    """Enclose K_ν(z), or exp(z) K_ν(z).

    Arb's series loses about 3|z| bits at middling |z|, of the argument's own width too.  For
    Re z > 0 and an exact rational ν the midpoint is evaluated with as many bits more, and the
    width enters through |K_ν′(z)| ≤ (K_{|ν−1|}(Re z) + K_{ν+1}(Re z))/2, which follows from
    K_ν(z) = ∫₀^∞ exp(−z cosh t) cosh(νt) dt.

    Examples
    --------
    >>> bessel_k_ball(fmpq(1, 3), acb(50)).real
    [3.41392178135836e-23 +/- 7.37e-38]
    """
    direct = acb(value.bessel_k(acb(order), scaled=scaled))
    left = arb(value.real.lower())
    wanted = min(value.rel_accuracy_bits(), ctx.prec) - 30
    if direct.rel_accuracy_bits() >= wanted or not isinstance(order, fmpq) or not left > 0:
        return direct
    middle = acb(value.real.mid(), value.imag.mid())
    extra = 3 * float(middle.abs_upper())
    if extra > _MOST_BITS:
        return direct
    with ctx.workprec(ctx.prec + int(extra) + 16):
        centre = acb(middle.bessel_k(acb(order)))
        slope = (left.bessel_k(arb(abs(order - 1))) + left.bessel_k(arb(order + 1))).upper() / 2
    reach = (slope * (value.real.rad() + value.imag.rad())).upper()
    enclosure = centre + acb(arb(0, reach), arb(0, reach))
    return enclosure * value.exp() if scaled else +enclosure


def log_bessel_i_ball(order: acb, value: acb) -> acb | None:
    """Enclose log I_ν(x) for a range of real ν ≥ 0 and a real x > 0, None for anything else.

    I falls as ν grows, and all terms of its series are positive:

        F(ν) ≤ log I_ν(x) ≤ F(ν) + x²/(4(ν + 1)),    F(ν) = ν log(x/2) − log Γ(ν + 1).

    Examples
    --------
    >>> wide = log_bessel_i_ball(acb(arb(150, 50)), acb(2))
    >>> wide.real.contains(acb(2).bessel_i(acb(123)).log().real)
    True
    """
    low, high, x = arb(order.real.lower()), arb(order.real.upper()), value.real
    if not (order.imag.is_zero() and value.imag.is_zero() and low >= 0 and x > 0):
        return None
    ends = [nu * (x / 2).log() - (nu + 1).lgamma() for nu in (low, high)]
    top = ends[0] + x * x / (4 * (low + 1))
    return acb(arb(ends[1].lower()).union(arb(top.upper())))
