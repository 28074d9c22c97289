"""Several releases on one sample of the records: a product of pairs under one sampling.

In come steps without sampling; out goes one mechanism, that `subsample` draws once for all of
them. Read `product.py` first; `table.py` bounds what has no pair in closed form.
"""
