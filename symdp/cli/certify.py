"""`symdp certify`: δ or ε between proved ends, for people or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symdp.cli.display import console, print_json, print_protection, steps_of

if TYPE_CHECKING:
    from symdp.certify import Certificate


def print_certificate(proved: Certificate, as_json: bool) -> None:
    """Print the two ends, the lower one rounded down and the upper one up."""
    if as_json:
        print_json(proved.to_json())
        return
    from rich.text import Text

    screen = console()
    if proved.asked == "epsilon":
        head = f"ε({proved.delta_text()}) lies between\n"
    else:
        head = f"δ({proved.epsilon_text()}) lies between\n"
    ends = f"  {proved.lower_decimal}\n  {proved.upper_decimal}"
    screen.print(Text(head).append(ends, style="bold"), soft_wrap=True)
    screen.print(Text("  proved, every rounding included"), soft_wrap=True)
    screen.print(
        Text(
            f"  method {proved.method}, direction {proved.direction}, "
            f"{steps_of(proved.count)}, {proved.seconds:.2g} s",
            style="dim",
        ),
        soft_wrap=True,
    )
    print_protection(proved)
