# %% [markdown]
# # The cheapest training run at an ε
#
# Noise multiplier σ, sampling rate q and steps n trade against each other at one (ε, δ). What is
# best depends on what you pay for. Here the error of the averaged gradients over the run, σ²/(q²n),
# and the examples that are worked on, qn.

# %%
import symdp
from symdp.questions.design.plan import plan

step = symdp.mechanisms.gaussian.subsample("poisson", "q")
cost = "sigma**2/(q**2*n) + q*n/2"
ranges = {"sigma": (0.8, 10), "q": (0.005, 0.1), "n": (100, 4000)}
best = plan(step, cost, ranges, epsilon=2, delta=1e-5)
print(best)

# %% [markdown]
# The plan meets ε by the accountant's own upper bound, and its neighbours cost more: at another
# rate, with the σ that this rate needs, the same formula is larger.

# %%
n = int(best.values["n"])
for factor in (0.8, 1.25):
    q = best.values["q"] * factor
    known = symdp.calibrate(step(q=q), "sigma", n, epsilon=2, delta=1e-5, digits=6)
    sigma = float(known.value)
    other = sigma**2 / (q**2 * n) + q * n / 2
    print(f"q = {q:.5f} needs sigma = {sigma:.5f}, and costs {other:.6f}")
    assert other >= best.cost * (1 - 1e-4) or q > 0.1

# %% [markdown]
# Which parameter moves ε most, in per cent for a per cent:

# %%
steps = symdp.compose(step(sigma=best.values["sigma"], q=best.values["q"]), n)
for slope in steps.gradient(delta=1e-5).slopes:
    share = slope.derivative * slope.value / best.guarantee.epsilon
    print(f"{slope.parameter}: {share:.3f}")
