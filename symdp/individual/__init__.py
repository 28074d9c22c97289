"""Individual and fully adaptive accounting: every record's ε, filters and odometers.

>>> import symdp
>>> two = symdp.individual.from_counts(noise=[1, 4], counts=[[100, 0], [0, 100]], rate=0.01)
>>> two.epsilon(1e-5).epsilon.round(6).tolist()
[0.718036, 0.079514]
"""

from __future__ import annotations

from symdp.individual.accounting import IndividualAccountant, from_counts, from_mechanisms
from symdp.individual.gdp import StepMu, pure_mu, step_mu
from symdp.individual.result import IndividualResult

__all__ = [
    "IndividualAccountant",
    "IndividualResult",
    "StepMu",
    "from_counts",
    "from_mechanisms",
    "pure_mu",
    "step_mu",
]
