"""A certificate as a file that anyone can check, and the checker in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from symdp.arguments import Direction, a_path, real, sides
from symdp.errors import AccuracyError, InputError
from symdp.exact_number import exact_number
from symdp.model.allocation import OneStep
from symdp.model.relation import ONE_MODE_BY_AUTHOR, is_shuffled
from symdp.prove import check_certificate, witness
from symdp.questions.composition import Composition

CHECKER = Path(check_certificate.__file__)
_MOST_DIGITS = 15
_MOST_MEMORY = 1 << 30  # bytes that a check may hold
_TRIES = 3  # with an ε ten times further above the root


class Verdict(NamedTuple):
    """What the checker says: exit code 0 for proved, 1 for refused, 2 for no certificate."""

    code: int
    text: str


def certificate(
    composition: Composition,
    *,
    epsilon: float | Fraction | str | None = None,
    delta: float | Fraction | str | None = None,
    digits: int = 10,
    direction: Direction = "both",
) -> dict[str, Any]:
    r"""Return a proof of δ(ε) that a program of its own checks, as JSON values.

    .. math:: \frac1Λ \sum_k \frac{M(z_k)^n e^{-εz_k}}{z_k(z_k+1)} = \sum_m e^{-amΛ} E[g(S-ε+mΛ)]
              \ge δ(ε), \qquad z_k = a + 2πik/Λ,\quad g(s) = (1-e^{-s})^+

    The page "Check it yourself" has the proof, the fields and the checker.

    Parameters
    ----------
    composition
        Steps with densities on the line, or a part of it; AccuracyError where the checker's
        mathematics does not reach them.
    epsilon
        In nats, taken exactly: δ(ε) is proved to lie between two decimals. Text such as "1/3" is
        exact too.
    delta
        In place of ε: an ε is found, a little above the smallest, of which δ(ε) ≤ δ is proved.
    digits
        Significant digits of what is proved, 1 to 15.
    direction
        "remove" (P, Q), "add" (Q, P), or "both": the larger δ of the two.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> steps = compose(mechanisms.gaussian(sigma=2), 30)
    >>> made = certificate(steps, epsilon="3/2", digits=6, direction="remove")
    >>> made["claim"]["lower"][:6], made["claim"]["upper"][:6]
    ('6.7057', '6.7057')
    """
    if (epsilon is None) == (delta is None):
        raise InputError("give epsilon or delta, one of the two")
    if type(digits) is not int or not 1 <= digits <= _MOST_DIGITS:
        raise InputError(f"digits = {digits!r}: a whole number from 1 to {_MOST_DIGITS}")
    directions = sides(direction)
    if any(is_shuffled(mechanism) for mechanism, _ in composition.given_steps()):
        return _of_round(composition, epsilon, digits)
    steps = _pairs(composition, directions)
    if epsilon is not None:
        document = witness.make(steps, directions, _exact(epsilon, "epsilon"), digits)
        return document | _assumed(composition)
    target = _exact(delta, "delta")
    if not 0 < target < 1:
        raise InputError(f"delta = {delta!r}: it must lie strictly between 0 and 1")
    root = Fraction(composition.epsilon(float(target), direction=direction).epsilon)
    for spare in range(_TRIES):
        unit = Fraction(10) ** (spare - digits) * max(abs(root), Fraction(1))
        places = Fraction(10) ** (digits + 1)
        above = Fraction(-((-(root + unit) * places) // 1), places)
        document = witness.make(steps, directions, above, digits + 1)
        if Fraction(document["claim"]["upper"]) <= target:
            document["claim"]["upper"] = str(target)
            return document | _assumed(composition)
    raise AccuracyError("no ε was found of which δ(ε) ≤ δ is proved; ask for fewer digits")


def _of_round(
    composition: Composition, epsilon: float | Fraction | str | None, digits: int
) -> dict[str, Any]:
    """Return a certificate of one round of shuffled answers."""
    from symdp.questions.shuffled.file import certificate_of_round

    ((mechanism, count),) = composition.given_steps()
    if count > 1 or epsilon is None:
        raise InputError(
            "certificate files of shuffled answers are of one round, at an epsilon: ask without a "
            "file, or for one round and an epsilon"
        )
    return certificate_of_round(mechanism, _exact(epsilon, "epsilon"), digits)


def _assumed(composition: Composition) -> dict[str, str]:
    """Return what is taken on an author's word, that the pair dominates all smaller shifts."""
    if not composition.accounted.protection.by_author:
        return {}
    return {"assumed": ONE_MODE_BY_AUTHOR}


def told_steps(composition: Composition) -> list[dict[str, Any]]:
    """Return the steps as a certificate of both directions tells them."""
    return witness.tell(_pairs(composition, sides("both")))


def _pairs(composition: Composition, directions: tuple[str, ...]) -> list[tuple[OneStep, int]]:
    composition.accounted.require_one_sign("a certificate file")
    return [(_pair(mechanism, directions), count) for mechanism, count in composition.steps]


def _exact(value: Any, name: str) -> Fraction:
    if isinstance(value, str):
        return exact_number(value)
    if isinstance(value, Fraction):
        return value
    return Fraction(real(value, name))


def _pair(mechanism: Any, directions: tuple[str, ...]) -> OneStep:
    """Return the pair as removing a record has it; the other direction must be its mirror image."""
    remove = mechanism.pair("remove")
    if "add" not in directions:
        return remove  # type: ignore[no-any-return]
    add = mechanism.pair("add").reversed()
    if directions == ("add",) or add == remove:
        return add  # type: ignore[no-any-return]
    raise AccuracyError("the two directions are of two pairs: ask for one, as in direction='add'")


def check(path: Path, seconds: float | None = 60.0) -> Verdict:
    """Run the checker on a file in an interpreter of its own, with bounded time and memory."""
    # -I: nothing of this environment is imported.
    command = [sys.executable, "-I", str(CHECKER), str(a_path(path, "a certificate").absolute())]
    bound = _bound if os.name == "posix" else None
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, preexec_fn=bound, check=False
        )
    except subprocess.TimeoutExpired:
        raise AccuracyError(f"not checked within {seconds:g} s: raise --time-limit") from None
    text = (done.stdout or done.stderr).strip().splitlines()
    return Verdict(done.returncode if done.returncode in (0, 1, 2) else 1, text[-1] if text else "")


def _bound() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
