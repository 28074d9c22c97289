# %% [markdown]
# # Auditing a published ε
#
# The tutorial of TensorFlow Privacy trains on 60 000 examples in batches of 256 for 60 epochs
# with noise multiplier 1.12, and printed ε = 2.92 at δ = 1e-5. Was that number right? What was
# it?

# %%
import symdp

PRINTED, DELTA = 2.92, 1e-5
noise = symdp.mechanisms.gaussian(sigma="1.12").subsample("poisson", "256/60000")
steps = symdp.compose(noise, 14_063)  # 60 epochs of 234.375 batches, rounded up
exact = steps.epsilon(DELTA)
print(exact)
assert exact.epsilon < PRINTED

# %% [markdown]
# So the printed number is safe and too large. Which method gives it?

# %%
for method in ("moments-plain", "moments", "renyi", "clt"):
    print(f"{steps.epsilon(DELTA, method=method):.4f}", method)
assert round(steps.epsilon(DELTA, method="moments-plain").epsilon, 2) == PRINTED

# %% [markdown]
# It was the moments bound in its first form. The noise that the printed ε pays for is more than
# was needed; or, with the same noise, the true guarantee is stronger.
#
# ## Proved
#
# An audit should not rest on floating point. `certify` bounds every rounding:

# %%
proved = steps.certify(PRINTED, digits=6)
print(proved.lower_decimal, "≤ δ(2.92) ≤", proved.upper_decimal)
assert float(proved.upper_decimal) < DELTA

# %% [markdown]
# ## What an audit of numbers cannot show
#
# That batches were drawn as Poisson batches. The tutorial's loop shuffled, for which no exact
# accounting is known. If its batches of 256 had been drawn anew each step, a record's *value*
# would be protected, at this price:

# %%
drawn = symdp.mechanisms.gaussian(sigma="1.12").subsample("without_replacement", "256/60000")
fixed = symdp.compose(drawn, 14_063).epsilon(DELTA)
print(fixed, fixed.protection.sentence)
assert fixed.epsilon > exact.epsilon
