# %% [markdown]
# # 13 · Probabilistic forecasts, calibration and conformal prediction
#
# A point forecast of 400 is incomplete without its uncertainty. This tutorial shows how to forecast uncertainty, how to
# evaluate such forecasts, and how to compute prediction intervals that are valid even if the model is wrong.
#
# **After this you can**
#
# - compute prediction intervals, quantiles and sample paths with any model, and decide which of them to use
# - measure calibration and sharpness: coverage, width, pinball loss, CRPS, Winkler score
# - draw a calibration curve, and recognize an overconfident model
# - compute a conformal interval by hand, and state what it guarantees and what it does not

# %%
import os

import matplotlib.pyplot as plt
import numpy as np

from deepforecast import AutoETS, Conformal, LinearModel, SeasonalNaive, cross_validate, datasets, errors, plot, score

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

# %% [markdown]
# ## Three representations of uncertainty
#
# - an 80 % **prediction interval**: it contains the value with probability 0.8
# - a **quantile** $q_\tau$: the value is below it with probability $\tau$
# - **sample paths**: possible futures over the whole horizon, drawn at random with equal probability
#
# An 80 % interval goes from the 10 % quantile to the 90 % quantile.

# %%
frame = datasets.load("elec_equip")
model = AutoETS(horizon=12).fit(frame)
forecast = model.predict(level=80, quantiles=[0.1, 0.9])
np.testing.assert_allclose(forecast["AutoETS-lo-80"], forecast["AutoETS-q-0.1"])
np.testing.assert_allclose(forecast["AutoETS-hi-80"], forecast["AutoETS-q-0.9"])
plot(frame, model.predict(level=[50, 80, 95]), max_history=72)

# %% [markdown]
# Each interval is for a single month. Often the total over several months is needed, here over the whole year. **Do not
# add up the bounds of the intervals.** Errors of different months partly cancel, so the relative uncertainty of the
# total is smaller. Add up the values of each sample path instead.

# %%
paths = model.simulate(2000, seed=1)
yearly_totals = paths.groupby("sample")["AutoETS"].sum()
low, high = np.quantile(yearly_totals, [0.1, 0.9])
summed_low, summed_high = forecast["AutoETS-lo-80"].sum(), forecast["AutoETS-hi-80"].sum()
print(f"80 % interval of the yearly total, from sample paths: {low:.0f} to {high:.0f}, width {high - low:.0f}")
print(f"sum of the monthly bounds: {summed_low:.0f} to {summed_high:.0f}, width {summed_high - summed_low:.0f}")
assert high - low < summed_high - summed_low

# %% [markdown]
# ## Evaluation: calibration and sharpness
#
# A single observation cannot show whether a probability is right; many forecasts can. **Calibration** means that 80 %
# intervals contain 80 % of the values. **Sharpness** means that the intervals are narrow. Each is easy to reach without
# the other; a good forecast is calibrated and sharp.
#
# For a reliable evaluation we need many forecasts: the fertility rates of 192 countries. `cross_validate` returns the
# values and the bounds of the intervals. **Coverage** is the share of the values that are inside.

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
# Coverage as a function of the level is the **calibration curve**. A calibrated model is on the diagonal. Below the
# diagonal the intervals are too narrow (overconfident), above it they are too wide (underconfident).

# %%
figure, axes = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
axes.plot([0, 100], [0, 100], color="grey", linewidth=0.8)
for name in table.index:
    axes.plot(levels, [100 * table.loc[name, f"coverage-{level}"] for level in levels], "o-", label=name)
axes.set(xlabel="level (%)", ylabel="coverage (%)", xlim=(0, 100), ylim=(0, 100))
_ = axes.legend()

# %% [markdown]
# AutoETS is close to the diagonal. The conformal intervals of the linear model are too wide here: their width is that
# of its past errors, and its later errors were smaller. The section on conformal intervals states when their coverage
# is guaranteed.

# %% [markdown]
# ## Scores for predictive distributions
#
# Coverage alone is not a sufficient criterion: a forecast with an infinite interval in 8 of 10 cases, and an empty one
# otherwise, has a coverage of 80 %. A **proper scoring rule** cannot be gamed in this way: its expected value is best
# if the forecast is the true distribution. The **pinball loss** of a quantile is
#
# $$\rho_\tau(y, q) = \begin{cases} \tau (y - q) & y \ge q \\ (1 - \tau)(q - y) & y < q. \end{cases}$$
#
# The **Winkler score** of an interval $[l, u]$ of level $1 - \alpha$ is its width plus a penalty for values outside it:
#
# $$W_\alpha = (u - l) + \frac{2}{\alpha} \left( (l - y)_+ + (y - u)_+ \right).$$
#
# The **CRPS** (continuous ranked probability score) of a distribution is twice the pinball loss, averaged over all
# $\tau$ from 0 to 1. In terms of two independent samples $X, X'$ from the distribution it is
#
# $$\text{CRPS} = \mathbb E |X - y| - \tfrac12 \mathbb E |X - X'|.$$

# %%
y, lower, upper = (folds[name].to_numpy() for name in ("y", "AutoETS-lo-80", "AutoETS-hi-80"))
alpha = 0.2
winkler = (upper - lower) + 2 / alpha * (np.maximum(lower - y, 0) + np.maximum(y - upper, 0))
winkler_scores = score(folds, metrics=["winkler"]).set_index("model")
np.testing.assert_allclose(winkler.mean(), winkler_scores.loc["AutoETS", "winkler-80"])


def pinball(y, q, tau):
    return np.where(y >= q, tau * (y - q), (1 - tau) * (q - y))


# The Winkler score is the sum of the pinball losses of both bounds, divided by alpha / 2.
np.testing.assert_allclose(winkler, (pinball(y, lower, alpha / 2) + pinball(y, upper, 1 - alpha / 2)) / (alpha / 2))

train, test = frame.iloc[:-12], frame.iloc[-12:]
sample_paths = AutoETS(horizon=12).fit(train).simulate(400, seed=0)
X = sample_paths["AutoETS"].to_numpy().reshape(400, 12)
actual = test["y"].to_numpy()
crps = np.abs(X - actual).mean() - 0.5 * np.abs(X[:, None] - X[None, :]).mean()
crps_of_library = score(sample_paths, actual=test, metrics=["crps_from_samples"])["crps_from_samples"].item()
print(f"CRPS by hand {crps:.3f}, by the library {crps_of_library:.3f}")
print(f"mean absolute error of the median {np.abs(np.median(X, axis=0) - actual).mean():.3f}")
np.testing.assert_allclose(crps, crps_of_library, rtol=5e-3)

# %% [markdown]
# The CRPS has the unit of $y$, like the absolute error, and is equal to it if the forecast is a single number. So the
# two can be compared: a good predictive distribution has a smaller CRPS than the absolute error of its median.
#
# ## Conformal intervals
#
# All intervals so far rely on the assumptions of a model. **Conformal prediction** uses the errors of past forecasts
# instead, and works with any model. Let the model forecast windows on which it was not fitted, and sort its $n$
# absolute errors at step $h$. The half-width of the interval is the
#
# $$k\text{-th smallest absolute error}, \qquad k = \lceil (n + 1)(1 - \alpha) \rceil.$$
#
# If the new error and the past errors are **exchangeable** (their joint distribution does not depend on their order),
# the rank of the new error among all $n + 1$ errors is uniformly distributed. So it is at most the half-width with
# probability at least $1 - \alpha$. Neither a normal distribution nor a correct model is assumed.
#
# `LinearModel` has no predictive distribution. The library raises an error that states how to get intervals:

# %%
try:
    LinearModel(horizon=12).fit(frame).predict(level=80)
except errors.CapabilityError as error:
    print(error)

# %% [markdown]
# By hand, we compute the interval of the seasonal naive method one step ahead. The library uses up to 100 windows, each
# one step after the previous one:

# %%
values = frame["y"].to_numpy()
n, horizon = 100, 12
targets = np.arange(len(values) - horizon - n + 1, len(values) - horizon + 1)  # the first row after each cutoff
absolute_errors = np.abs(values[targets] - values[targets - 12])
k = int(np.ceil((n + 1) * 0.8))
half_width = np.sort(absolute_errors)[k - 1]
conformal = Conformal(SeasonalNaive(), horizon=horizon).fit(frame).predict(level=80)
first = conformal.iloc[0]
half_width_of_library = first["Conformal-hi-80"] - first["Conformal"]
print(f"half-width one month ahead, by hand {half_width:.2f}, by the library {half_width_of_library:.2f}")
np.testing.assert_allclose(half_width_of_library, half_width)

# %%
plot(frame, conformal, max_history=72)

# %% [markdown]
# ### The guarantee and its limits
#
# We first test the guarantee where its assumption holds: independent errors with a heavy-tailed distribution, in
# thousands of simulations with 19 past errors and one new error each.

# %%
generator = np.random.default_rng(0)
simulated = np.abs(generator.standard_t(3, size=(1000 if SHORT else 10_000, 20)))  # heavy tails, far from normal
past_errors, new_error = np.sort(simulated[:, :-1], axis=1), simulated[:, -1]
for level in (0.5, 0.8, 0.9):
    k = int(np.ceil(20 * level))
    coverage = (new_error <= past_errors[:, k - 1]).mean()
    print(f"level {level:.0%}: coverage {coverage:.1%}")
    assert abs(coverage - level) < 0.04

# %% [markdown]
# The coverage is right although the errors are not normal. But it is guaranteed on average over time, not at each time,
# and not if the distribution of the errors changes. If errors grow, past errors are too small:

# %%
growing_errors = np.abs(generator.standard_normal((2000, 120))) * np.linspace(1, 4, 120)
past_errors, new_error = np.sort(growing_errors[:, :-1], axis=1), growing_errors[:, -1]
coverage = (new_error <= past_errors[:, int(np.ceil(120 * 0.8)) - 1]).mean()
print(f"growing errors: coverage of an 80 % interval {coverage:.0%}")
assert coverage < 0.7

# %% [markdown]
# `Conformal(model, method="adaptive")` widens its intervals after values outside them. `pool=True` shares the errors of
# all series, which helps if the series are short.
#
# ## Exercises
#
# 1. Why does conformal prediction use $\lceil (n+1)(1-\alpha) \rceil$ instead of the 80 % quantile of the errors? Try
#    $n = 8$ with $n(1-\alpha)$.
# 2. How many errors are needed for a level of 99 %? What does the library do if there are fewer?
# 3. You sell newspapers. One copy costs 1 and is sold for 3. Which quantile of the demand do you order? Show it with
#    10,000 samples of the demand.
# 4. Repeat the simulation of growing errors with an adaptive $\alpha_t$: widen the interval after each value outside
#    it, and narrow it a little after each value inside it (Gibbs & Candès).

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# The new error is one of $n + 1$ exchangeable errors, not one of $n$. The empirical quantile of few errors is too
# small.

# %%
few = simulated[:, -9:]  # eight past errors and a new one
past_errors, new_error = np.sort(few[:, :-1], axis=1), few[:, -1]
for rule, k in [("n (1 - alpha)", int(np.ceil(8 * 0.8))), ("(n + 1)(1 - alpha)", int(np.ceil(9 * 0.8)))]:
    print(f"{rule:19s} k = {k} of 8: coverage {(new_error <= past_errors[:, k - 1]).mean():.1%}")
assert (new_error <= past_errors[:, 6]).mean() < 0.8 < (new_error <= past_errors[:, 7]).mean()

# %% [markdown]
# ### Solution 2
#
# $\lceil (n + 1) \, 0.99 \rceil \le n$ requires $n \ge 99$. With fewer errors the library raises an error. It never
# returns an interval of a lower level than requested.

# %%
short = frame.iloc[-60:]
try:
    Conformal(SeasonalNaive(), horizon=12).fit(short).predict(level=99)
except errors.CapabilityError as error:
    print(error)

# %% [markdown]
# ### Solution 3
#
# One copy too few costs the lost profit of 2, one copy too many costs 1. So the cost is a multiple of the pinball loss,
# and the best order is the quantile $\tau = \frac{2}{2 + 1}$.

# %%
demand = generator.gamma(4, 25, 10_000)
orders = np.arange(0, 300)
profit = [np.mean(3 * np.minimum(demand, order) - order) for order in orders]
best_order = orders[int(np.argmax(profit))]
print(f"best order {best_order}, 2/3 quantile of the demand {np.quantile(demand, 2 / 3):.0f}")
assert abs(best_order - np.quantile(demand, 2 / 3)) < 4

# %% [markdown]
# ### Solution 4
#
# The update is $\alpha_{t+1} = \alpha_t + \gamma \, (0.2 - m_t)$, where $m_t$ is 1 if the value at $t$ is outside the
# interval, else 0. It keeps the long-run share of values outside the interval at 20 % for any sequence of errors.

# %%
misses = []
for errors_of_run in growing_errors[: 50 if SHORT else 300]:
    alpha_t = 0.2
    for t in range(30, 120):
        past_errors = np.sort(errors_of_run[:t])
        k = int(np.ceil((t + 1) * (1 - alpha_t)))
        half_width = np.inf if k > t else past_errors[max(k, 1) - 1]
        miss = errors_of_run[t] > half_width
        misses.append(miss)
        alpha_t += 0.05 * (0.2 - miss)
print(f"adaptive: coverage of an 80 % interval {1 - np.mean(misses):.0%}")
assert abs(1 - np.mean(misses) - 0.8) < 0.05

# %% [markdown]
# ## Reference
#
# - `Conformal`, `AutoETS`, `LinearModel`, `SeasonalNaive`
# - `cross_validate`, `score`, `plot`, `Forecaster.simulate`, `Forecaster.predict`
#
# Further reading: Gneiting & Raftery (2007), *Strictly proper scoring rules*; Lei et al. (2018), *Distribution-free
# predictive inference for regression*; Gibbs & Candès (2021), *Adaptive conformal inference under distribution shift*.
