"""Individual and fully adaptive accounting: every record's ε, filters and odometers.

In come counts of steps for each record, or the norms that `recorder.py` counts, out go arrays with
ends and kinds, see `result.py`; filters decide before a step is run. Read `accounting.py` first,
then `methods.py`, which asks rows of `symdp.numeric`, and `filters.py`.

>>> import symdp
>>> two = symdp.individual.from_counts(noise=[1, 4], counts=[[100, 0], [0, 100]], rate=0.01)
>>> two.epsilon(1e-5).epsilon.round(6).tolist()
[0.718036, 0.079514]
"""

from __future__ import annotations

from symdp.individual.accounting import IndividualAccountant, from_counts, from_mechanisms
from symdp.individual.files import create, load_filter, open_accountant
from symdp.individual.filters import Decision, GaussianFilter, Odometer, RenyiFilter
from symdp.individual.gaussian import StepMu, pure_mu, step_mu
from symdp.individual.individual_filter import ActiveSet, IndividualFilter
from symdp.individual.recorder import Recorder
from symdp.individual.result import IndividualResult

__all__ = [
    "ActiveSet",
    "Decision",
    "GaussianFilter",
    "IndividualAccountant",
    "IndividualFilter",
    "IndividualResult",
    "Odometer",
    "Recorder",
    "RenyiFilter",
    "StepMu",
    "create",
    "from_counts",
    "from_mechanisms",
    "load_filter",
    "open_accountant",
    "pure_mu",
    "step_mu",
]
