"""Individual and fully adaptive accounting: every record's ε, filters and odometers.

>>> import symdp
>>> two = symdp.individual.from_counts(noise=[1, 4], counts=[[100, 0], [0, 100]], rate=0.01)
>>> two.epsilon(1e-5).epsilon.round(6).tolist()
[0.718036, 0.079514]
"""

from __future__ import annotations

from symdp.individual.accounting import IndividualAccountant, from_counts, from_mechanisms
from symdp.individual.filters import Decision, GaussianFilter
from symdp.individual.gdp import StepMu, pure_mu, step_mu
from symdp.individual.individual_filter import ActiveSet, IndividualFilter
from symdp.individual.kept import in_folder
from symdp.individual.odometer import Odometer
from symdp.individual.recorder import Recorder
from symdp.individual.renyi_filter import RenyiFilter
from symdp.individual.result import IndividualResult
from symdp.individual.runs import open_accountant
from symdp.individual.stored import create, load_filter

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
    "in_folder",
    "load_filter",
    "open_accountant",
    "pure_mu",
    "step_mu",
]
