# %% [markdown]
# # Planning a DP-SGD run
#
# You want to train on 50 000 examples for 20 epochs in batches of 500, and spend at most ε = 3 at
# δ = 1e-6. How much noise does it take, and what if you change your mind?

# %%
import symdp

EXAMPLES, BATCH, EPOCHS, DELTA = 50_000, 500, 20, 1e-6
RATE = f"{BATCH}/{EXAMPLES}"
STEPS = EPOCHS * EXAMPLES // BATCH


def run(multiplier, steps=STEPS):
    noise = symdp.mechanisms.gaussian(sigma=multiplier)
    return symdp.compose(noise.subsample("poisson", RATE), steps)


print(STEPS, "steps at a rate of", RATE)

# %% [markdown]
# ## The noise for a budget
#
# `calibrate` solves for one free parameter and rounds it to the safe side.

# %%
template = symdp.mechanisms.gaussian.subsample("poisson", RATE)
found = symdp.calibrate(template, "sigma", STEPS, epsilon=3.0, delta=DELTA, digits=4)
print(found)
multiplier = found.value
assert run(multiplier).epsilon(DELTA).epsilon <= 3.0

# %% [markdown]
# ## The price of one more epoch, and of less noise
#
# Every answer is the exact formula. Compare it with the Rényi bound that many libraries print:
# the difference is budget that you need not spend.

# %%
for epochs in (10, 20, 40):
    steps = run(multiplier, epochs * EXAMPLES // BATCH)
    exact, bound = steps.epsilon(DELTA), steps.epsilon(DELTA, method="renyi")
    print(f"{epochs} epochs: ε = {exact:.4f}, by the Rényi bound {bound:.4f}")
    assert exact.epsilon < bound.epsilon

# %% [markdown]
# ## Whom it protects
#
# These batches are Poisson: every example takes part in a step on its own. The number protects
# one example added or removed. If your loader shuffles instead, no pair is known, and this ε does
# not hold.

# %%
print(run(multiplier).protection.sentence)
