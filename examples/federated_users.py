# %% [markdown]
# # Federated averaging, with a user as the unit
#
# A server asks a random part of 10 000 phones for an update each round, clips every phone's
# update to norm 1, adds normal noise to the sum, and averages. What is one *record* here? Not an
# example on a phone, but the phone: it is added or removed with all that it holds, because the
# clip is on the phone's whole update. So the numbers below protect users.

# %%
import symdp

USERS, ROUNDS, DELTA = 10_000, 500, 1e-6
noise = symdp.mechanisms.gaussian(sigma="0.9")
rounds = symdp.compose(noise.subsample("poisson", f"100/{USERS}"), ROUNDS)
print(rounds.epsilon(DELTA))
print(rounds.protection.sentence)

# %% [markdown]
# ## A cohort of fixed size
#
# Many servers draw exactly 100 phones each round. Then no phone can be added or removed alone:
# another takes its place. The number protects one phone's *data* instead, and the same noise buys
# less.

# %%
cohort = symdp.mechanisms.gaussian(sigma="0.9").subsample("without_replacement", f"100/{USERS}")
fixed = symdp.compose(cohort, ROUNDS)
print(fixed.epsilon(DELTA))
print(fixed.protection.sentence)
assert fixed.epsilon(DELTA).epsilon > rounds.epsilon(DELTA).epsilon

# %% [markdown]
# ## A ledger on the server
#
# Rounds differ: fewer phones are awake at night. Count what was done, and ask when you like.

# %%
ledger = symdp.Ledger()
for awake in (USERS, USERS // 2):
    ledger.add(noise.subsample("poisson", f"100/{awake}"), 250)
spent = ledger.epsilon(DELTA)
print(ledger, spent)
assert spent.epsilon > rounds.epsilon(DELTA).epsilon
