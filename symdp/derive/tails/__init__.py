"""Tail constants of the loss: symbolic where a formula exists, proved in ball arithmetic always."""

from __future__ import annotations

from symdp.derive.tails.constants import derive_tails
from symdp.derive.tails.records import TailConstant, Tails, to_json

__all__ = ["TailConstant", "Tails", "derive_tails", "to_json"]
