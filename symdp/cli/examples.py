"""The examples that end the help of every command; a test runs each of them."""

from __future__ import annotations

_JOB = "gaussian sigma=1.12 --sampling poisson --rate 256/60000 -n 14063"
_DATA = "--examples 60000 --batch 256 --epochs 60"
_RUN = f"{_DATA} --noise 1.12"
_PLAN = f"{_DATA} --target-epsilon 3"

EXAMPLES: dict[str, tuple[str, ...]] = {
    "list": ("symdp list",),
    "methods": ("symdp methods",),
    "derive": (
        "symdp derive laplace",
        "symdp derive gaussian sigma=1.5 --sampling poisson --rate 0.01 -n 10000 --epsilon 1",
        "symdp derive examples/logistic.toml --format latex",
        "symdp derive gaussian --format javascript",
    ),
    "delta": (
        "symdp delta laplace b=2 -n 1 --epsilon 0.4",
        "symdp delta examples/logistic.toml s=4 -n 50 --epsilon 2.5 --json",
        "symdp delta laplace b=20 -n 50 --epsilon 1 --method prv --eps-error 1e-3",
    ),
    "epsilon": (
        f"symdp epsilon {_JOB} --delta 1e-5",
        "symdp epsilon --composition examples/composition.toml --delta 1e-6",
    ),
    "curve": ("symdp curve gaussian sigma=2 -n 10 --epsilon-range 0 5 --plot curve.svg",),
    "verify": ("symdp verify gaussian sigma=2 -n 10 --method moments",),
    "certify": (
        "symdp certify gaussian sigma=2 -n 10 --epsilon 3 --digits 8",
        "symdp certify gaussian sigma=2 -n 30 --epsilon 3 --digits 8 --certificate proof.json",
    ),
    "check": ("symdp check proof.json",),
    "calibrate": (
        "symdp calibrate gaussian --parameter sigma -n 10 --epsilon 2 --delta 1e-5",
        "symdp calibrate gaussian sigma=2 --parameter n --epsilon 2 --delta 1e-5",
        "symdp calibrate gaussian --parameter sigma -n 10 --advantage 0.1",
    ),
    "tradeoff": ("symdp tradeoff gaussian sigma=4 -n 10 --alpha 0.001,0.01 --plot attack.svg",),
    "audit": (
        "symdp audit --tp 90/100 --fp 5/100 --delta 1e-5",
        "symdp audit gaussian sigma=5 -n 1 --tp 200/400 --fp 40/400",
    ),
    "train": (f"symdp train {_RUN} --delta 1e-5", f"symdp train {_PLAN} --delta 1e-5"),
    "card": (f"symdp card {_RUN} -o card.json", "symdp card --check card.json"),
    "ledger": (
        "symdp ledger add budget.json gaussian sigma=2 --sampling poisson --rate 1/100 -n 600",
        "symdp ledger epsilon budget.json --delta 1e-5",
    ),
    "ledger add": (
        "symdp ledger add budget.json gaussian sigma=2 --sampling poisson --rate 1/100 -n 600",
    ),
    "ledger epsilon": ("symdp ledger epsilon budget.json --delta 1e-5",),
    "ledger show": ("symdp ledger show budget.json",),
    "explore": ("symdp explore gaussian sigma=1.12 --sampling poisson -n 14063 -o page.html",),
    "report": ("symdp report gaussian sigma=2 -n 10 -o report.html",),
    "individual": (
        "symdp individual norms.npy --multiplier 1 --clip 1 --rate 0.01 --delta 1e-5"
        " --layout steps-records",
    ),
    "filter": (
        "symdp filter new budget.json --epsilon 2 --delta 1e-6",
        "symdp filter ask budget.json 0.1",
    ),
    "filter new": ("symdp filter new budget.json --epsilon 2 --delta 1e-6",),
    "filter ask": ("symdp filter ask budget.json 0.1",),
    "filter commit": ("symdp filter commit budget.json 0.1 --step 1",),
    "filter status": ("symdp filter status budget.json",),
}


def epilog(command: str) -> str:
    """Return the end of a command's help: its examples, one a line.

    >>> print(epilog("list").strip("\\b\\n"))
    Examples:
      symdp list
    """
    lines = "\n".join(f"  {example}" for example in EXAMPLES[command])
    return f"\b\nExamples:\n{lines}"
