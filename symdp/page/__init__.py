"""Documents: derivations, reports, cards and calculations, and the printers of their formulas."""

from __future__ import annotations
