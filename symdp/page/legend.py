"""What the symbols of a derivation mean, section by section."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symdp.page.layout import layout
from symdp.page.section import Section, token

if TYPE_CHECKING:
    from symdp.derive.records import HasCGF

_COMMON = {
    "n": "the number of steps",
    "ε": "the privacy parameter",
    "δ": "the largest P(S) − e^ε·Q(S) over events S",
    "δ_∞": "the mass of an infinite loss",
    "δ_(−∞)": "the mass that Q has where P is 0",
    "ℓ": "the privacy loss log(P/Q)",
    "P": "the first law of the pair",
    "Q": "the second law of the pair",
    "P_j": "the first law of pair j",
    "Q_j": "the second law of pair j",
    "f_j": "the laws that are mixed",
    "Pr": "the probability of a public choice",
    "ω": "the density of the loss under P, atoms apart",
    "K": "the cumulant generating function of one step's loss under P",
    "κ_j": "the cumulants of one step's loss under P, the derivatives of K at 0",
    "m_j": "the moments of one step's loss, tilted by t where t is written",
    "Φ": "the normal distribution function",
    "φ": "the normal density",
    "z_δ": "the normal quantile of 1 − δ",
    "j": "a whole number",
    "k": "a whole number",
    "O": "a remainder of that order",
}
_OWN = {
    "loss": {"F": "the distribution function of the loss under P, atoms apart", "s": "a loss"},
    "cumulants": {
        "P_j": "the Legendre function of degree t",
        "j": "how many of the factors come from P, or a whole number",
    },
    "series": {
        "F": "the exponent of the integral for δ",
        "F_j": "the derivatives of F at t",
        "z": "its argument",
        "c_j": "the corrections",
        "ρ_j": "the standardised derivatives",
        "E": "the distribution function of the standardised sum of losses",
        "E_j": "that under P or Q",
        "x_j": "ε, standardised under P or Q",
        "x": "the argument of a distribution function",
        "e_j": "the corrections",
        "λ_j": "the standardised cumulants of n steps",
        "He_j": "the Hermite polynomials",
    },
    "asymptotics": {
        "t_j": "the saddle point",
        "ξ": "the distance from the mean, in standard deviations",
        "θ": "the tilt to which the saddle point tends",
        "r": "the limit of ε/n",
        "K_j": "the j-th derivative of K at θ",
    },
    "tails": {
        "τ": "the width of the loss",
        "η": "minus the mean loss under Q",
        "s_j": "a sub-Gaussian constant",
        "α_j": "the scale of a sub-exponential constant",
        "ν_j": "a sub-exponential constant",
        "P_j": "P_t the third absolute moment at the tilt t; elsewhere bounds under P",
        "Q_j": "bounds under Q",
        "E_j": "the mean of the finite loss under that law",
        "V_j": "the constants of a bound on the characteristic function",
        "a": "the lower end of an interval of tilts",
        "b": "its upper end",
        "y": "a frequency",
    },
    "composed": {
        "M": "e^K",
        "z": "its argument",
        **dict.fromkeys("bacdg", "the rates of the exponentials in M^n"),
        "R_j": "their rational factors",
        "p": "the poles that lie left of the line",
        "Res": "the residue",
        "b_k": "the exponent of the k-th term of M^n: e^{b_k t}",
        "r_j": "the residues at t = 0 and t = −1",
        "g_k": "a function whose series at w = 0 gives the residue at the pole of M",
        "w": "the distance from that pole",
        **dict.fromkeys("kjilm", "the number of the term, 0 to n"),
        "C": "the binomial coefficient",
    },
    "epoch": {
        "W": "the likelihood ratio P/Q of one step",
        "Y": "the sum of independent copies of W under Q",
        "φ": "the transform of W under Q",
    },
}


def meanings(d: HasCGF, key: str, extra: dict[str, str]) -> dict[str, str]:
    """Return what the symbols of one section mean."""
    tilt = token(layout(d.cgf.tilt))
    found = _COMMON | {tilt: "the tilt"} | _OWN.get(key, {}) | extra
    found |= {f"{tilt}₋": "where K begins to be finite", f"{tilt}₊": "where it ends"}
    for p in d.mechanism.declared:
        found[token(layout(p.symbol))] = f"a parameter {p.rule}"
    return found


def explained(d: HasCGF, sections: list[Section], extra: dict[str, str]) -> list[Section]:
    """Return sections with their legends."""
    return [s.explained(meanings(d, s.key, extra)) for s in sections]
