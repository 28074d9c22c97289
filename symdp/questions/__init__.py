"""What people ask: compositions and guarantees, ledgers, calibration, trade-offs, certificates.

In come steps, mechanisms with their counts; `steps/accounted.py` resolves once whose privacy they
speak of and which pairs answer, and every other file takes its record. Out go answers with their
ends and their kind, see `guarantee.py`. Read `composition.py` first.
"""
