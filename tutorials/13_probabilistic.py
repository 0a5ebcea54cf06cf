# %% [markdown]
# # 13 · Probabilistic forecasts, calibration, conformal
#
# "About 400" is half a forecast. How sure are we? This tutorial is about saying so, about checking whether it was true, and
# about intervals that hold even when the model is wrong.
#
# **After this you can**
#
# - ask any model for intervals, quantiles and paths, and say which to use when
# - measure calibration and sharpness: coverage, width, pinball loss, CRPS, Winkler score
# - draw a calibration curve, and see a model that is too sure
# - compute a conformal interval by hand, and say what it promises and what not

# %%
import os

import matplotlib.pyplot as plt
import numpy as np

from deepforecast import AutoETS, Conformal, LinearModel, SeasonalNaive, cross_validate, datasets, errors, plot, score

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

# %% [markdown]
# ## Three ways to say it
#
# - an **interval** of level 80 %: the value lies inside with probability 0.8
# - a **quantile** $q_\tau$: the value lies below with probability $\tau$
# - **paths**: whole futures, drawn at random, each as likely as the others
#
# An 80 % interval goes from the 10 % to the 90 % quantile.

# %%
frame = datasets.load("elec_equip")
model = AutoETS(horizon=12).fit(frame)
forecast = model.predict(level=80, quantiles=[0.1, 0.9])
np.testing.assert_allclose(forecast["AutoETS-lo-80"], forecast["AutoETS-q-0.1"])
np.testing.assert_allclose(forecast["AutoETS-hi-80"], forecast["AutoETS-q-0.9"])
plot(frame, model.predict(level=[50, 80, 95]), max_history=72)

# %% [markdown]
# Intervals are of one month each. Many questions are about several: how much in the whole year? **Do not add up bounds.**
# Errors of different months partly cancel, so the sum is surer than its parts. Add up paths.

# %%
paths = model.simulate(2000, seed=1)
year = paths.groupby("sample")["AutoETS"].sum()
low, high = np.quantile(year, [0.1, 0.9])
print(f"the year, from paths:        {low:.0f} to {high:.0f}, width {high - low:.0f}")
print(f"bounds of the months summed: {forecast['AutoETS-lo-80'].sum():.0f} to {forecast['AutoETS-hi-80'].sum():.0f}, "
      f"width {(forecast['AutoETS-hi-80'] - forecast['AutoETS-lo-80']).sum():.0f}")  # fmt: skip
assert high - low < (forecast["AutoETS-hi-80"] - forecast["AutoETS-lo-80"]).sum()

# %% [markdown]
# ## Was it true? Calibration and sharpness
#
# A probability cannot be right or wrong once. It can over many forecasts. **Calibration**: intervals of 80 % hold 80 % of the
# values. **Sharpness**: they are narrow. Wide is easy, narrow is easy; both at once is the art.
#
# For a real check we need many forecasts: 192 countries and their fertility. From `cross_validate` we get values and bounds;
# **coverage** is the share of values inside.

# %%
fertility = datasets.load("fertility")
years = fertility.groupby("unique_id")["y"].transform("count")
fertility = fertility[years == 52]
if SHORT:
    fertility = fertility[fertility["unique_id"].isin(fertility["unique_id"].unique()[:60])]
levels = [20, 40, 60, 80, 90]
models = [AutoETS(), LinearModel(intervals="conformal")]
folds = cross_validate(models, fertility, horizon=3, n_windows=2, level=levels)
inside = folds["y"].between(folds["AutoETS-lo-80"], folds["AutoETS-hi-80"])
table = score(folds, metrics=["coverage", "width"]).set_index("model")
np.testing.assert_allclose(inside.mean(), table.loc["AutoETS", "coverage-80"])
print(table[[f"coverage-{level}" for level in levels]].round(3).to_string())

# %% [markdown]
# Do this for all levels and you have a **calibration curve**: on the diagonal is honest, below it too sure, above it too
# careful.

# %%
figure, axes = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
axes.plot([0, 100], [0, 100], color="grey", linewidth=0.8)
for name in table.index:
    axes.plot(levels, [100 * table.loc[name, f"coverage-{level}"] for level in levels], "o-", label=name)
axes.set(xlabel="level asked, %", ylabel="values inside, %", xlim=(0, 100), ylim=(0, 100))
_ = axes.legend()

# %% [markdown]
# AutoETS is near the diagonal. The linear model with conformal intervals is too careful here: they are as wide as its errors of
# the past were, and the errors to come turned out smaller. Further down we see when that is promised, and when not.

# %% [markdown]
# ## Scores for a whole distribution
#
# Coverage alone can be cheated: forecast an endless interval in 8 of 10 cases. A **proper score** cannot. Its expectation is
# best for whoever says what he really believes. The **pinball loss** of a quantile:
#
# $$\rho_\tau(y, q) = \begin{cases} \tau (y - q) & y \ge q \\ (1 - \tau)(q - y) & y < q \end{cases}$$
#
# The **Winkler score** of an interval $[l, u]$ of level $1 - \alpha$: its width, and a fine for misses,
#
# $$W_\alpha = (u - l) + \frac{2}{\alpha} \left( (l - y)_+ + (y - u)_+ \right).$$
#
# The **CRPS** of a distribution is twice the pinball loss, averaged over all $\tau$ from 0 to 1. For paths $X, X'$ it is
#
# $$\text{CRPS} = \mathbb E |X - y| - \tfrac12 \mathbb E |X - X'|.$$

# %%
y, lo, up = (folds[name].to_numpy() for name in ("y", "AutoETS-lo-80", "AutoETS-hi-80"))
alpha = 0.2
winkler = (up - lo) + 2 / alpha * (np.maximum(lo - y, 0) + np.maximum(y - up, 0))
np.testing.assert_allclose(winkler.mean(), score(folds, metrics=["winkler"]).set_index("model").loc["AutoETS", "winkler-80"])


def pinball(y, q, tau):
    return np.where(y >= q, tau * (y - q), (1 - tau) * (q - y))


# The Winkler score is the pinball loss of both ends, over alpha / 2.
np.testing.assert_allclose(winkler, (pinball(y, lo, alpha / 2) + pinball(y, up, 1 - alpha / 2)) / (alpha / 2))

train, test = frame.iloc[:-12], frame.iloc[-12:]
drawn = AutoETS(horizon=12).fit(train).simulate(400, seed=0)
X = drawn["AutoETS"].to_numpy().reshape(400, 12)
truth = test["y"].to_numpy()
crps = np.abs(X - truth).mean() - 0.5 * np.abs(X[:, None] - X[None, :]).mean()
library = score(drawn, actual=test, metrics=["crps_from_samples"])["crps_from_samples"].item()
print(f"CRPS by hand {crps:.3f}, by the library {library:.3f}")
print(f"mean absolute error of the median {np.abs(np.median(X, axis=0) - truth).mean():.3f}")
np.testing.assert_allclose(crps, library, rtol=5e-3)

# %% [markdown]
# The CRPS is in units of $y$, like the absolute error, and equals it where the forecast is a single number. A good
# distribution is better than its own median.
#
# ## Conformal intervals
#
# Every interval so far trusts a model. **Conformal prediction** trusts the past errors instead. Take a model, any. Let it
# forecast windows it was not fitted on. Sort its $n$ absolute errors at a step $h$. The half width is the
#
# $$k\text{-th smallest}, \qquad k = \lceil (n + 1)(1 - \alpha) \rceil.$$
#
# If errors to come are like those errors (**exchangeable**: no order matters), a new error is equally likely to fall at any
# of the $n + 1$ places among them. So it is within the half width with probability at least $1 - \alpha$. No normal
# distribution, no right model: that is all.
#
# `LinearModel` has no distribution of its own. Asked for one, the library refuses and says what to do:

# %%
try:
    LinearModel(horizon=12).fit(frame).predict(level=80)
except errors.CapabilityError as error:
    print(error)

# %% [markdown]
# By hand, with the seasonal naive forecast, one step ahead. The library takes up to 100 windows, each one row after the other:

# %%
values = frame["y"].to_numpy()
n, horizon = 100, 12
origins = np.arange(len(values) - horizon - n + 1, len(values) - horizon + 1)  # the last known row of each window, plus one
misses = np.abs(values[origins] - values[origins - 12])
k = int(np.ceil((n + 1) * 0.8))
half = np.sort(misses)[k - 1]
conformal = Conformal(SeasonalNaive(), horizon=horizon).fit(frame).predict(level=80)
first = conformal.iloc[0]
print(f"half width one month ahead, by hand {half:.2f}, by the library {first['Conformal-hi-80'] - first['Conformal']:.2f}")
np.testing.assert_allclose(first["Conformal-hi-80"] - first["Conformal"], half)

# %%
plot(frame, conformal, max_history=72)

# %% [markdown]
# ### What it promises, and what not
#
# We test the promise where it must hold: noise around a mean, thousands of worlds, few errors each.

# %%
generator = np.random.default_rng(0)
worlds = np.abs(generator.standard_t(3, size=(1000 if SHORT else 10_000, 20)))  # heavy tails, far from normal
past, coming = np.sort(worlds[:, :-1], axis=1), worlds[:, -1]
for level in (0.5, 0.8, 0.9):
    place = int(np.ceil(20 * level)) - 1
    held = (coming <= past[:, place]).mean()
    print(f"level {level:.0%}: held {held:.1%} of the time")
    assert abs(held - level) < 0.04

# %% [markdown]
# It holds, for any distribution. But it is a promise on average over all times, not for each; and not if the world changes.
# When errors grow, yesterday's errors are too small:

# %%
growing = np.abs(generator.standard_normal((2000, 120))) * np.linspace(1, 4, 120)
held = (growing[:, -1] <= np.sort(growing[:, :-1], axis=1)[:, int(np.ceil(120 * 0.8)) - 1]).mean()
print(f"errors that grow: an 80 % interval holds {held:.0%}")
assert held < 0.7

# %% [markdown]
# `Conformal(model, method="adaptive")` adapts to misses by widening its intervals. And `pool=True` shares errors among series,
# for short ones.
#
# ## Exercises
#
# 1. Why does conformal take $\lceil (n+1)(1-\alpha) \rceil$ and not the plain 80 % quantile of the errors? Try $n = 8$ with
#    $n(1-\alpha)$.
# 2. How many errors does a level of 99 % need? What does the library do if there are fewer?
# 3. You sell newspapers: one costs 1 and brings 3. Which quantile of demand do you order? Show it with 10,000 draws.
# 4. Repeat the growing errors with $\alpha_t$ adapted: after each miss widen, after each hit narrow a little (Gibbs & Candès).

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# The new error is one of $n + 1$, not one of $n$. The plain quantile of few errors is too small.

# %%
few = worlds[:, -9:]  # eight errors, and the one to come
past, coming = np.sort(few[:, :-1], axis=1), few[:, -1]
for rule, place in [("n (1 - alpha)", int(np.ceil(8 * 0.8))), ("(n + 1)(1 - alpha)", int(np.ceil(9 * 0.8)))]:
    print(f"{rule:19s} place {place} of 8 holds {(coming <= past[:, place - 1]).mean():.1%}")
assert (coming <= past[:, 6]).mean() < 0.8 < (coming <= past[:, 7]).mean()

# %% [markdown]
# ### Solution 2
#
# $\lceil (n + 1) \, 0.99 \rceil \le n$ needs $n \ge 99$. With fewer the library refuses; it never returns a narrower interval
# under the requested level.

# %%
short = frame.iloc[-60:]
try:
    Conformal(SeasonalNaive(), horizon=12).fit(short).predict(level=99)
except errors.CapabilityError as error:
    print(error)

# %% [markdown]
# ### Solution 3
#
# One paper too few loses the gain of 2, one too many the cost of 1. Order the quantile $\tau = \frac{2}{2 + 1}$: the pinball
# loss, in money.

# %%
demand = generator.gamma(4, 25, 10_000)
orders = np.arange(0, 300)
profit = [np.mean(3 * np.minimum(demand, order) - order) for order in orders]
best = orders[int(np.argmax(profit))]
print(f"best order {best}, the quantile 2/3 of demand is {np.quantile(demand, 2 / 3):.0f}")
assert abs(best - np.quantile(demand, 2 / 3)) < 4

# %% [markdown]
# ### Solution 4
#
# $\alpha_{t+1} = \alpha_t + \gamma \, (0.2 - [\text{missed at } t])$: the miss rate is steered to 20 %, whatever the errors do.

# %%
runs = growing[: 50 if SHORT else 300]
missed = []
for run in runs:
    alpha_t = 0.2
    for t in range(30, 120):
        seen = np.sort(run[:t])
        place = int(np.ceil((t + 1) * (1 - alpha_t)))
        half = np.inf if place > t else seen[max(place, 1) - 1]
        miss = run[t] > half
        missed.append(miss)
        alpha_t += 0.05 * (0.2 - miss)
print(f"adaptive: an 80 % interval holds {1 - np.mean(missed):.0%}")
assert abs(1 - np.mean(missed) - 0.8) < 0.05

# %% [markdown]
# ## Reference
#
# - `Conformal`, `AutoETS`, `LinearModel`, `SeasonalNaive`
# - `cross_validate`, `score`, `plot`, `Forecaster.simulate`, `Forecaster.predict`
#
# To read on: Gneiting & Raftery (2007), *Strictly proper scoring rules*; Lei et al. (2018), *Distribution-free predictive
# inference for regression*; Gibbs & Candès (2021), *Adaptive conformal inference under distribution shift*.
