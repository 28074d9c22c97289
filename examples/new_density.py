# %% [markdown]
# # A new density
#
# Somebody proposes noise with the hyperbolic secant density 1/(π·s·cosh(x/s)). It is not built
# in. All that is needed is the formula.

# %%
import symdp

secant = symdp.Mechanism.from_toml("""
name = "hyperbolic_secant"
variable = "x"
support = ["-oo", "oo"]

[parameters]
s = "positive"

[noise]
density = "1/(pi*s*cosh(x/s))"
sensitivity = 1
""")

# %% [markdown]
# ## What follows from it
#
# The privacy loss ℓ(x) = log(P(x)/Q(x)), its range, and its mean are derived, not typed in.

# %%
derivation = symdp.derive(secant)
print("ℓ(x) =", derivation.loss)
print("range:", derivation.loss_range)
assert derivation.dominating_direction.value == "both"

# %% [markdown]
# The range is finite: one step is purely private, with ε = 1/s. Ask for many:

# %%
steps = symdp.compose(secant(s=4), 50)
answer = steps.epsilon(1e-5)
print(answer)
assert answer.epsilon < 50 / 4

# %% [markdown]
# ## Can it be believed?
#
# `certify` proves an interval for δ, every rounding included. The floating-point answer lies
# within.

# %%
delta = steps.delta(2.5).delta
proved = steps.certify(2.5, digits=8)
print(proved.lower_decimal, "≤ δ(2.5) ≤", proved.upper_decimal, "and δ(2.5) =", delta)
assert float(proved.lower_decimal) <= delta <= float(proved.upper_decimal)

# %% [markdown]
# ## Against Gaussian noise of the same variance
#
# Its standard deviation is s·π/2. Does the new noise buy anything?

# %%
gaussian = symdp.compose(symdp.mechanisms.gaussian(sigma="6.2832"), 50)
new, old = answer, gaussian.epsilon(1e-5)
print(f"ε = {new:.4f} for the new noise, {old:.4f} for the Gaussian")
