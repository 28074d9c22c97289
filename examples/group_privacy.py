# %% [markdown]
# # Group privacy
#
# A household has three members in the data. How well is the household protected, if the run was
# accounted for one record?

# %%
import math

import symdp

RATE, STEPS, DELTA = "1/100", 1000, 1e-6


def run(group):
    noise = symdp.mechanisms.gaussian(sigma=2)
    return symdp.compose(noise.subsample("poisson", RATE, group=group), STEPS)


single, household = run(1), run(3)
print(single.epsilon(DELTA))
print(household.epsilon(DELTA))
print(household.protection.sentence)

# %% [markdown]
# ## Why not simply three times ε?
#
# The textbook rule turns an (ε, δ) for one record into (k·ε, δ·(e^{kε} − 1)/(e^ε − 1)) for k
# records. It holds for every mechanism, and so it is coarse. To promise the δ above for the
# group, the δ for one record must be smaller:

# %%
K = 3
small = DELTA / (1 + math.exp(1) + math.exp(2))  # safe as long as ε for one record stays below 1
one = single.epsilon(small).epsilon
assert one < 1
by_rule = K * one
found = household.epsilon(DELTA).epsilon
print(f"by the rule ε = {by_rule:.4f}, by the pair of the group {found:.4f}")
assert found < by_rule

# %% [markdown]
# ## Larger groups
#
# The pair of a group is a mixture of shifts with binomial weights. It is proved to dominate for
# log-concave noise.

# %%
values = [run(group).epsilon(DELTA).epsilon for group in (1, 2, 5)]
print([round(value, 4) for value in values])
assert values == sorted(values)
