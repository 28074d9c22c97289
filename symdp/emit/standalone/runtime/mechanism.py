"""What each emitted file puts before the accountant: the tables and functions of one mechanism."""

from __future__ import annotations

from typing import Any

PIECES = 0
POINTS = 0
INTEGERS = 0
# places of these among the constants
LEAST = 0
LARGEST = 0
FIRST = 0
LAST = 0
KIND: Any = None  # 1: P alone, −1: Q alone
FLAT: Any = None  # whether the loss is constant
LOWER: Any = None  # places of a piece's ends among the constants
UPPER: Any = None
LOSS: Any = None
SERIES_LOW: Any = None
SERIES_HIGH: Any = None
PLACES: Any = None
WEIGHTS: Any = None
SCALED_ERFC: Any = None  # coefficients, that of the highest power first
SMALL_ERF: Any = None
log_p: Any = None
log_q: Any = None
loss_at: Any = None
term: Any = None
