"""What people ask: compositions, guarantees, ledgers, calibration, trade-offs, certificates."""
