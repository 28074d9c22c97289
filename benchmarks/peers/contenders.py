"""Who takes part, with which settings."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec

import symdp
from benchmarks.peers.answers import Contender
from benchmarks.peers.programs import PRV_FOLDER
from symdp.methods import names

DOTS = "Google PLD, connect the dots"
BUCKETS = "Google PLD, privacy buckets"
OPTIMISTIC = "Google PLD, buckets rounded down"
RDP = "Google RDP"
PRV = "prv-accountant"
DOT_INTERVALS = (1e-2, 1e-3, 1e-4, 1e-5)
BUCKET_INTERVALS = (1e-3, 1e-4)
EPS_ERRORS = (1.0, 0.1, 0.01)
AUTODP = "autodp, Rényi"
ALLOCATION = "PLD_accounting"
ALLOCATION_INTERVALS = (5e-2, 2e-2, 1e-3, 1e-4)


_NEEDS = {
    "google": "dp_accounting",
    "google rdp": "dp_accounting",
    "prv": "prv_accountant",
    "autodp": "autodp",
    "allocation": "PLD_accounting",
    "riskcal": "riskcal",
}


def is_installed(contender: Contender) -> bool:
    """Return whether the program of a contender is there to take part."""
    needed = _NEEDS.get(contender.program)
    if needed is None or find_spec(needed) is not None:
        return True
    return contender.program == "prv" and (PRV_FOLDER / needed).is_dir()


def installed(everyone: Iterable[Contender]) -> list[Contender]:
    """Return those whose program is there."""
    return [contender for contender in everyone if is_installed(contender)]


def named(contender: Contender) -> tuple[str, str]:
    """Return the program of a contender, and its setting."""
    label = contender.label.replace("`", "")
    if contender.program.startswith("symdp"):
        return "symdp", label
    program, _, setting = label.rpartition(", ")
    return (program, setting) if program else (label, "")


def version(contender: Contender) -> str:
    """Return the version of a contender's program."""
    needed = _NEEDS.get(contender.program)
    if needed is None:
        return symdp.__version__
    try:
        return metadata.version(needed)
    except metadata.PackageNotFoundError:
        return "not known"  # it stands in a folder of its own


def missing() -> list[str]:
    """Return the packages that the page names and that are not there."""
    lacking = {_NEEDS[peer.program] for peer in (*peers(), riskcal()) if not is_installed(peer)}
    return sorted(name.replace("_", "-") for name in lacking)


def dots(interval: float) -> Contender:
    return Contender("google", (interval, "dots"), f"{DOTS}, {interval:g}", DOTS)


def buckets(interval: float) -> Contender:
    return Contender("google", (interval, "buckets"), f"{BUCKETS}, {interval:g}", BUCKETS)


def optimistic(interval: float) -> Contender:
    # It shares its construction with the pessimistic one, and so its ladder.
    return Contender("google", (interval, "optimistic"), f"{OPTIMISTIC}, {interval:g}", BUCKETS)


def rdp() -> Contender:
    return Contender("google rdp", (), RDP, RDP)


def prv(eps_error: float) -> Contender:
    return Contender("prv", (eps_error,), f"{PRV}, ε error {eps_error:g}", PRV)


def autodp() -> Contender:
    return Contender("autodp", (), AUTODP, AUTODP)


def allocation(interval: float) -> Contender:
    return Contender("allocation", (interval,), f"{ALLOCATION}, {interval:g}", ALLOCATION)


def riskcal() -> Contender:
    return Contender("riskcal", (1e-4,), "riskcal", "riskcal")


def ours(method: str, direction: str = "remove") -> Contender:
    return Contender("symdp", (method, direction), f"`{method}`", method)


def grid(reach: float, points: int) -> Contender:
    label = f"`fourier`, {points:,} points of [−{reach:g}, {reach:g})"
    return Contender("symdp grid", (reach, points), label, "grid")


def peers() -> list[Contender]:
    """Every peer with its settings, from coarse to fine."""
    found = [dots(interval) for interval in DOT_INTERVALS]
    for interval in BUCKET_INTERVALS:
        found += [buckets(interval), optimistic(interval)]
    found += [rdp(), autodp(), *(prv(error) for error in EPS_ERRORS)]
    return found + [allocation(interval) for interval in ALLOCATION_INTERVALS]


def methods() -> list[Contender]:
    """Every method of symdp, and its proof."""
    return [ours(name) for name in (*names(), "certified")]


def defaults() -> list[Contender]:
    """One setting of each program: its default, or where it has none that of its documentation."""
    return [
        ours("contour"),
        ours("fourier"),
        dots(1e-4),
        buckets(1e-4),
        rdp(),
        autodp(),
        prv(0.1),
        allocation(1e-4),
    ]
