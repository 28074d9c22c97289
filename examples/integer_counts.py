# %% [markdown]
# # Counts with integer noise
#
# A statistics office releases 12 counts that one person can change by at most 1 each. Whole
# numbers should stay whole, so it adds the discrete Gaussian: normal noise restricted to the
# integers.

# %%
import symdp

COUNTS, DELTA = 12, 1e-6
discrete = symdp.compose(symdp.mechanisms.discrete_gaussian(sigma=4), COUNTS)
print(discrete.epsilon(DELTA))

# %% [markdown]
# The continuous Gaussian of the same σ is often used as a stand-in. It is close, and not the
# same:

# %%
continuous = symdp.compose(symdp.mechanisms.gaussian(sigma=4), COUNTS)
print(continuous.epsilon(DELTA))
ratio = discrete.epsilon(DELTA).epsilon / continuous.epsilon(DELTA).epsilon
assert 0.9 < ratio < 1.1

# %% [markdown]
# ## Two-sided geometric noise
#
# The discrete Laplace mechanism is purely private: ε = 1/b a count even at δ = 0. Composed, a
# small δ buys a smaller ε.

# %%
geometric = symdp.compose(symdp.mechanisms.discrete_laplace(b=5), COUNTS)
found = geometric.epsilon(DELTA)
print(found, "instead of", COUNTS / 5)
assert found.epsilon <= COUNTS / 5

# %% [markdown]
# ## Proved
#
# A release for the public may need a number that nobody can dispute: every rounding error is
# bounded.

# %%
proved = discrete.certify(1.0, digits=6)
print(proved.lower_decimal, "≤ δ(1) ≤", proved.upper_decimal)
assert float(proved.lower_decimal) <= discrete.delta(1.0).delta <= float(proved.upper_decimal)
