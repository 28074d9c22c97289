"""What steps are accounted for, and whose privacy the answer speaks of.

In come steps with their counts; `accounted.py` resolves which pairs answer for them, with
`worst_shift.py` where one pair stands for every shift; `total_law.py` adds their losses up;
`known.py` answers by the facts of an earlier process. Read `accounted.py` first.
"""
