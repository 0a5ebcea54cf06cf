# %% [markdown]
# # 01 · What forecasting is, baselines and honest evaluation
#
# A forecast says what is likely, before it is known. Anyone can make one. The art is to know how good it is. So this course
# begins with the simplest forecasts there are, and with the right way to judge any forecast.
#
# **After this you can**
#
# - write down a forecasting task: data, cutoff, horizon
# - compute four baselines by hand and with the library
# - evaluate models by rolling cutoffs, and say what each metric rewards
# - spot two ways of fooling yourself: errors on the data a model was fitted to, and leakage
# - read a leaderboard

# %%
import os

import matplotlib.pyplot as plt
import numpy as np

from deepforecast import (
    AutoETS,
    Drift,
    Mean,
    Naive,
    SeasonalNaive,
    WindowMean,
    check,
    compare,
    cross_validate,
    datasets,
    plot,
    score,
)
from deepforecast.plotting import plot_cross_validation

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

# %% [markdown]
# ## The task
#
# A **time series** is a list of values in the order of time, $y_1, y_2, \dots, y_T$. Ours counts the passengers of
# international airlines, in thousands, each month from 1949 to 1960. The library wants one row a value: which series
# (`unique_id`), when (`ds`), how much (`y`). `check` looks for what usually goes wrong: gaps, duplicates, constants.

# %%
frame = datasets.load("air_passengers")
print(frame.head(3).to_string(index=False))
print(check(frame))

# %%
plot(frame)

# %% [markdown]
# Two things repeat. The series rises: a **trend**. Each summer is high, each winter is low: a **season** of $m = 12$ months.
#
# We stand at the end, at time $T$. This is the **cutoff**: what came before is known, what comes after is not. How far we look
# ahead is the **horizon** $H$. A forecast made at $T$ for $h$ steps later is written
#
# $$\hat y_{T+h \mid T}, \qquad h = 1, \dots, H.$$
#
# Read the bar as "given what is known at". It is the most important sign of this course.

# %% [markdown]
# ## Four baselines
#
# A **baseline** is a forecast that costs nothing. If a model does not beat it, the model is not needed.
#
# | name | idea | formula |
# |---|---|---|
# | mean | the future is like the whole past | $\hat y_{T+h \mid T} = \frac{1}{T} \sum_{t=1}^{T} y_t$ |
# | naive | the future is like the last value | $\hat y_{T+h \mid T} = y_T$ |
# | drift | it goes on as from the first value to the last | $\hat y_{T+h \mid T} = y_T + h \, \frac{y_T - y_1}{T - 1}$ |
# | seasonal naive | like the same month a year ago | $\hat y_{T+h \mid T} = y_{T + h - m k}, \quad k = \lceil h / m \rceil$ |
#
# Each formula is one line of code.

# %%
horizon, season = 12, 12
y = frame["y"].to_numpy()
T = len(y)
h = np.arange(1, horizon + 1)

by_hand = {
    "Mean": np.full(horizon, y.mean()),
    "Naive": np.full(horizon, y[-1]),
    "Drift": y[-1] + h * (y[-1] - y[0]) / (T - 1),
    "SeasonalNaive": y[T + h - season * np.ceil(h / season).astype(int) - 1],  # - 1: Python counts from 0
}

# %% [markdown]
# The library has them as models. Every model of the library is used in the same way: make it, `fit` it, `predict`.

# %%
baselines = [Mean(), Naive(), Drift(), SeasonalNaive()]
forecast = frame[["unique_id", "ds"]].iloc[:0]
for model in baselines:
    one = model.fit(frame).predict(horizon)
    np.testing.assert_allclose(one[model.name], by_hand[model.name])
    forecast = one if forecast.empty else forecast.merge(one)
print("the library's forecasts are those by hand")

# %%
plot(frame, forecast, max_history=48)

# %% [markdown]
# Only the seasonal naive forecast has the shape of a year. It has no trend: it repeats the last year, at the height of the
# last year. Which of the four is best? Looking at the picture we may guess. To know, we have to wait. Or, better, to go back.

# %% [markdown]
# ## First way of fooling yourself: judging on the data of the fit
#
# Let us fit polynomials in time, $\hat y_t = \sum_{k=0}^{K} \beta_k t^k$, to all but the last 12 months, by least squares. The
# more powers, the smaller the root of the mean squared error (RMSE) on these months. Does that make a better forecast?

# %%
time = np.linspace(-1, 1, T)
known, future = slice(0, T - horizon), slice(T - horizon, T)
degrees = range(1, 15)
fit_error, forecast_error = [], []
for degree in degrees:
    curve = np.polynomial.Polynomial.fit(time[known], y[known], degree)(time)
    fit_error.append(np.sqrt(((y - curve)[known] ** 2).mean()))
    forecast_error.append(np.sqrt(((y - curve)[future] ** 2).mean()))

for degree in (1, 2, 6, 10, 14):
    print(f"degree {degree:2d}: RMSE on the fit {fit_error[degree - 1]:5.1f}, a year ahead {forecast_error[degree - 1]:7.1f}")
assert (np.diff(fit_error) < 1e-9).all()
assert forecast_error[-1] > 10 * forecast_error[1]

# %%
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.semilogy(degrees, fit_error, "o-", label="on the months of the fit")
axes.semilogy(degrees, forecast_error, "s--", label="on the 12 months after it")
axes.set(xlabel="degree of the polynomial", ylabel="root of the mean squared error")
_ = axes.legend()

# %% [markdown]
# The error on the fit never rises. The error of the forecast explodes. A model that is rich enough learns the past by heart;
# this is called **overfitting**. So the first rule of honest evaluation: **judge a model only on values that came after its
# cutoff.**

# %% [markdown]
# ## Rolling cutoffs
#
# One year is one exam. It may have been an easy one. So we move the cutoff through the past: fit on everything up to it,
# forecast the 12 months after it, move on, do it again. This is called **rolling-origin evaluation**, backtesting, or
# **cross-validation of time series**. Here are 8 cutoffs, a year apart.

# %%
n_windows = 8
folds = cross_validate(baselines, frame, horizon=horizon, n_windows=n_windows)
print(folds.head(3).to_string(index=False))
print(f"{folds['cutoff'].nunique()} cutoffs, {len(folds)} forecasts of each model")
assert (folds["ds"] > folds["cutoff"]).all()

# %%
plot_cross_validation(folds, models=["Drift", "SeasonalNaive"], level=[])

# %% [markdown]
# The column `cutoff` is the last month that a forecast has seen. Every stamp forecast lies after it. The library keeps this
# promise for every model; a test of its own perturbs the future and looks whether any forecast moves.

# %% [markdown]
# ## Metrics: what is a good forecast?
#
# Write $e_i = y_i - \hat y_i$ for the errors over all $n$ points judged.
#
# $$\text{MAE} = \frac{1}{n} \sum_i |e_i| \qquad \text{RMSE} = \sqrt{\frac{1}{n} \sum_i e_i^2} \qquad
# \text{bias} = \frac{1}{n} \sum_i (\hat y_i - y_i)$$
#
# They are in units of $y$: thousands of passengers. To compare over series of different size, divide. MASE divides by the
# error that the seasonal naive forecast makes one season ahead, over the values before the cutoff:
#
# $$\text{MASE} = \frac{1}{n} \sum_i \frac{|e_i|}{q_i}, \qquad
# q_i = \frac{1}{T_i - m} \sum_{t=m+1}^{T_i} |y_t - y_{t-m}|, \quad T_i \text{ the cutoff of point } i.$$
#
# Below 1 means: better than the seasonal naive forecast used to be.

# %%
error = folds["y"] - folds["SeasonalNaive"]
mae = error.abs().mean()
rmse = np.sqrt((error**2).mean())
bias = -error.mean()

stamps = frame["ds"]
changes = np.abs(y[season:] - y[:-season])
scale = {cutoff: changes[: (stamps <= cutoff).sum() - season].mean() for cutoff in folds["cutoff"].unique()}
mase = (error.abs() / folds["cutoff"].map(scale)).mean()

metrics = score(folds, metrics=["mae", "rmse", "bias", "mase"], train=frame)
print(metrics.round(3).to_string(index=False))
np.testing.assert_allclose(metrics.set_index("model").loc["SeasonalNaive"].astype(float), [mae, rmse, bias, mase])
assert (metrics.set_index("model").abs().idxmin() == "SeasonalNaive").all()

# %% [markdown]
# The seasonal naive forecast wins by every metric. Its bias is negative: its forecasts are too low, because the series rises
# and the forecast does not.
#
# Why is its own MASE not exactly 1? The scale is its error in the past; the numerator is its error after the cutoff. The series
# grows, and the errors grow with it.

# %% [markdown]
# ### What a metric rewards
#
# No metric is neutral. Suppose that demand is 0 on most days, and sometimes high. We look for the one number $c$ that
# forecasts it best, by each metric.

# %%
demand = np.repeat([0.0, 1.0, 2.0, 10.0, 30.0], [5, 2, 1, 1, 1])
candidates = np.linspace(0, 30, 301)
absolute = [np.abs(demand - c).mean() for c in candidates]
squared = [np.sqrt(((demand - c) ** 2).mean()) for c in candidates]
best_absolute, best_squared = candidates[np.argmin(absolute)], candidates[np.argmin(squared)]
print(f"demand {demand.astype(int).tolist()}: median {np.median(demand)}, mean {demand.mean():.1f}")
print(f"least MAE at {best_absolute:.1f}, least RMSE at {best_squared:.1f}")
assert np.median(demand) >= best_absolute
assert abs(best_squared - demand.mean()) < 0.1

# %% [markdown]
# **MAE rewards the median, RMSE rewards the mean.** Whoever orders goods by a forecast of the median here orders next to
# nothing. Choose the metric before you look at results, by what an error costs you. The first line of a leaderboard names
# the metric that ranks; its report says what each metric rewards.

# %% [markdown]
# ## Second way of fooling yourself: leakage
#
# **Leakage** is when a forecast uses something that was not known at its cutoff. It is seldom done on purpose. Here is the
# usual accident: to hold out months at random, as one does with data that have no order in time.
#
# Look what happens. Between the months of the fit lie those of the test, so each month of the test has neighbours, before it
# and *after* it. To take their mean is not forecasting. It is filling gaps.

# %%
generator = np.random.default_rng(0)
held_out = generator.choice(np.arange(1, T - 1), size=24, replace=False)
kept = np.setdiff1d(np.arange(T), held_out)
filled = np.interp(held_out, kept, y[kept])
leaky = np.abs(y[held_out] - filled).mean()
honest = metrics.set_index("model")["mae"]
print(f"months held out at random, filled from their neighbours: MAE {leaky:.1f}")
print(f"the best honest baseline, a year ahead:                  MAE {honest.min():.1f}")
assert leaky < honest.min()

# %% [markdown]
# The leaky number looks far better, and it is worth nothing: tomorrow has no neighbour after it. The same accident has many
# faces: a scaling computed over all the data, a moving average that is centred, a price that is known only a day later.
# The second rule: **whatever a forecast uses must be known at its cutoff.** A result that looks too good is leakage until shown
# otherwise.

# %% [markdown]
# ## A leaderboard
#
# `compare` does all this in one call. Beside the baselines we enter a real model, `AutoETS` (tutorial 03). With `level=80`
# every model also says an interval that is to hold 80 % of the values.

# %%
board = compare([*baselines, AutoETS()], frame, horizon=horizon, n_windows=4 if SHORT else n_windows, level=80)
table = board.table
print(table[["rank", "model", "mase", "rmsse", "relative_bias", "coverage-80"]].round(3).to_string(index=False))
assert table["model"].iloc[0] == "AutoETS"

# %%
board.plot()

# %% [markdown]
# How to read it:
#
# - `mase` decides. AutoETS has a smaller error than the best baseline: it earns its place.
# - `coverage-80` is the share of actual values inside the prediction interval. It should be near 0.8. Where it is below 0.7,
#   `compare` warns: such intervals are too narrow to rely on.
# - It is one series. That the order is the same on another one, nobody has shown. Tutorial 14 compares on many.
#
# `print(board)` gives the same as text, `board.report("report.html")` a page with everything.
#
# ## How far ahead?
#
# Errors grow with the horizon, but not equally. `score(..., by="step")` tells them apart.

# %%
steps = score(folds, metrics=["mae"], by="step").pivot(index="step", columns="model", values="mae")
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
for name in ["Naive", "Drift", "SeasonalNaive"]:
    axes.plot(steps.index, steps[name], "o-", label=name)
axes.set(xlabel="months ahead", ylabel="mean absolute error", ylim=(0, None))
_ = axes.legend()

# %% [markdown]
# All cutoffs are at the end of December here. So steps 7 and 8 are July and August, the peak, where a forecast without a season
# is worst. One month ahead the naive forecast is better than the seasonal one. "Which model is best?" always needs "at which
# horizon?"

# %%
assert steps.loc[1, "Naive"] < steps.loc[1, "SeasonalNaive"]
assert steps["Naive"].idxmax() in (7, 8)

# %% [markdown]
# ## Exercises
#
# 1. `WindowMean(window=12)` forecasts the mean of the last year. Where does it stand among the four baselines by MAE, and why?
# 2. Up to how many months ahead is `Drift` better than `SeasonalNaive`? Use `steps`.
# 3. Yearly sunspots (`datasets.load("sunspots")`) come and go in about eleven years. Which baseline is best 5 years ahead? Try
#    `SeasonalNaive(season_length=11)` too.
# 4. Make an honest forecast that beats `SeasonalNaive` with one line of numpy: raise last year's values by last year's growth.

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# It is far better than the mean of all years, since it is near the present. It also beats the naive forecast and the drift:
# these start from December, a low month, and a whole year is a better guess of the height than one month. It is worse than
# the seasonal naive forecast, for the mean of a year has no season.

# %%
more = cross_validate([*baselines, WindowMean(window=12)], frame, horizon=horizon, n_windows=n_windows)
ranked = score(more, metrics=["mae"]).sort_values("mae")
print(ranked.round(1).to_string(index=False))
assert ranked["model"].tolist()[:3] == ["SeasonalNaive", "WindowMean", "Drift"]

# %% [markdown]
# ### Solution 2

# %%
better = (steps["Drift"] < steps["SeasonalNaive"]).to_numpy()
print("Drift is better at the steps", (np.flatnonzero(better) + 1).tolist())
assert (np.flatnonzero(better) + 1).tolist() == [1, 2, 4, 10, 11, 12]

# %% [markdown]
# It is better in January, February and April, then the season takes over, and again from October to December: the winter
# months are about as high as the December the line starts from. No single step is where one model hands over to the other.
#
# ### Solution 3

# %%
sunspots = datasets.load("sunspots")
models = [Mean(), Naive(), Drift(), SeasonalNaive(season_length=11, alias="Eleven years ago")]
spots = compare(models, sunspots, horizon=5, n_windows=20, metrics=["mae"], season_length=1)
print(spots.table[["rank", "model", "mae"]].round(1).to_string(index=False))
assert spots.table["model"].iloc[0] == "Eleven years ago"

# %% [markdown]
# The cycle is not exactly eleven years long, but near enough to help. The library cannot infer such a season from the
# calendar of yearly data: you have to say it.
#
# ### Solution 4
#
# With $g$ the growth of the last year over the year before it, $\hat y_{T+h \mid T} = g \, y_{T+h-m}$ for $h \le m$. Every
# number in it is known at the cutoff.

# %%
grown = folds.copy()
for cutoff in grown["cutoff"].unique():
    past = y[: (stamps <= cutoff).sum()]
    growth = past[-season:].sum() / past[-2 * season : -season].sum()
    grown.loc[grown["cutoff"] == cutoff, "Grown"] = growth * past[-season:]
result = score(grown, metrics=["mae", "bias"]).set_index("model")
print(result.round(1).to_string())
assert result.loc["Grown", "mae"] < result.loc["SeasonalNaive", "mae"]

# %% [markdown]
# ## Reference
#
# - `Mean`, `Naive`, `Drift`, `SeasonalNaive`, `WindowMean`, `AutoETS`
# - `cross_validate`, `score`, `compare`, `Leaderboard`, `check`, `plot`, `datasets`
#
# To read on: Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, chapters 1 and 5; Tashman (2000),
# *Out-of-sample tests of forecasting accuracy*; Hyndman & Koehler (2006), *Another look at measures of forecast accuracy*
# (MASE).
