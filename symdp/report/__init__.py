"""Reports: every accountant against truth, the privacy profile drawn, and pages of both."""

from __future__ import annotations
