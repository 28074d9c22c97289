# %% [markdown]
# # The risk of an attack
#
# Somebody wants to know whether your record was in the data. They see the model and may know all
# other records. How often can they be right?

# %%
import math

import symdp

noise = symdp.mechanisms.gaussian(sigma=1).subsample("poisson", "1/100")
steps = symdp.compose(noise, 1000)
print(steps.epsilon(1e-5))

# %% [markdown]
# ## Few false alarms
#
# A test has false alarms (it says *in* of somebody who was not) and misses. `trade_off(α)` is the
# least miss rate of any test at false alarm rate α. What it finds is the rest:

# %%
for alarms in (0.001, 0.01, 0.1):
    found = 1 - steps.trade_off(alarms)
    print(f"at {alarms:.1%} false alarms at most {found:.2%} are found")
    assert alarms < found < 1

# %% [markdown]
# ## A guess
#
# If *in* and *out* are equally likely beforehand, blind guessing is right half the time. The best
# attacker is right a little more often:

# %%
right = 1 - steps.bayes_error()
advantage = steps.membership_advantage()
print(f"right at most {right:.2%} of the time; advantage {advantage:.4f}")
assert abs((2 * right - 1) - advantage) < 1e-9

# %% [markdown]
# ## From ε alone?
#
# (ε, δ) alone would promise less: e^ε times the false alarms plus δ. The composition knows its
# whole privacy profile, and says more.

# %%
epsilon = steps.epsilon(1e-5).epsilon
for alarms in (0.001, 0.01, 0.1):
    by_epsilon = min(1.0, math.exp(epsilon) * alarms + 1e-5)
    print(f"at {alarms:.1%}: {1 - steps.trade_off(alarms):.2%}, by (ε, δ) alone {by_epsilon:.2%}")
    assert 1 - steps.trade_off(alarms) <= by_epsilon
