"""What a proof may cost: what is spent is gone, what is only asked for is not."""

from __future__ import annotations

import pytest

from symdp.errors import AccuracyError
from symdp.prove.work import UNITS, limited, spare_products, spend, spend_products

A_UNIT = 300.0  # products of balls


def spend_both(values: float, products: float) -> None:
    """Spend shares of the limit."""
    with limited(0):
        spend(values * UNITS)
        spend_products(products * UNITS * A_UNIT)


def test_what_is_spent_is_gone():
    spend_both(0.6, 0.4)
    with pytest.raises(AccuracyError, match="too much work"):
        spend_both(0.6, 0.41)


def test_what_comes_next_is_asked_for_and_not_taken():
    with limited(0):
        for _ in range(5):
            spare_products(0.9 * UNITS * A_UNIT)
        spend(0.95 * UNITS)
    with pytest.raises(AccuracyError, match="too much work"), limited(0):
        spare_products(1.01 * UNITS * A_UNIT)


def test_more_digits_and_a_share_move_the_limit():
    with limited(50):
        spend(1.9 * UNITS)  # 4 000 units for each digit
    with pytest.raises(AccuracyError), limited(50, share=0.5):
        spend(1.1 * UNITS)
    spend(100.0 * UNITS)  # outside nothing is counted
