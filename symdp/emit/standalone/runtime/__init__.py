"""Source that goes into emitted accountants: each file is used from its marker line on."""

from __future__ import annotations
