"""Sections of a derivation: loss, series, local randomizers, and the steps that found them."""
