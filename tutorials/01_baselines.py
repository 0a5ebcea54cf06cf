# %% [markdown]
# # 01 · What forecasting is, baselines and honest evaluation
#
# Making a forecast is easy; judging how good it is, is difficult. This course therefore begins with the simplest
# forecasting methods and with the correct way to evaluate any forecast.
#
# **After this you can**
#
# - write down a forecasting task: data, cutoff, horizon
# - compute four baselines by hand and with the library
# - evaluate models with rolling cutoffs, and state what each metric rewards
# - recognize two common mistakes: evaluation on the training data, and leakage
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
# A **time series** is a sequence of values ordered in time, $y_1, y_2, \dots, y_T$. Ours is the monthly number of
# international airline passengers, in thousands, from 1949 to 1960. The library expects one row per value: the series
# (`unique_id`), the timestamp (`ds`), and the value (`y`). `check` reports common problems: gaps, duplicates,
# constants.

# %%
frame = datasets.load("air_passengers")
print(frame.head(3).to_string(index=False))
print(check(frame))

# %%
plot(frame)

# %% [markdown]
# Two patterns are visible. The series rises: this is a **trend**. Values are high each summer and low each winter:
# this is **seasonality** with a period of $m = 12$ months.
#
# The last observation is at time $T$, the **cutoff**: values up to it are known, later ones are not. The number of
# steps to forecast is the **horizon** $H$. A forecast made at $T$ for $h$ steps later is written
#
# $$\hat y_{T+h \mid T}, \qquad h = 1, \dots, H.$$
#
# Read the bar as "given the information at". It is the most important symbol of this course.

# %% [markdown]
# ## Four baselines
#
# A **baseline** is a forecast that costs almost nothing. A model that does not beat it is not needed.
#
# | name | idea | formula |
# |---|---|---|
# | mean | the mean of all observations | $\hat y_{T+h \mid T} = \frac{1}{T} \sum_{t=1}^{T} y_t$ |
# | naive | the last observation | $\hat y_{T+h \mid T} = y_T$ |
# | drift | the line from the first to the last value | $\hat y_{T+h \mid T} = y_T + h \, \frac{y_T - y_1}{T - 1}$ |
# | seasonal naive | the same month of the last year | $\hat y_{T+h \mid T} = y_{T+h-mk}, \; k = \lceil h/m \rceil$ |
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
# The library has them as models. Every model is used in the same way: construct it, `fit`, `predict`.

# %%
baselines = [Mean(), Naive(), Drift(), SeasonalNaive()]
forecast = frame[["unique_id", "ds"]].iloc[:0]
for model in baselines:
    prediction = model.fit(frame).predict(horizon)
    np.testing.assert_allclose(prediction[model.name], by_hand[model.name])
    forecast = prediction if forecast.empty else forecast.merge(prediction)
print("the forecasts of the library equal those computed by hand")

# %%
plot(frame, forecast, max_history=48)

# %% [markdown]
# Only the seasonal naive forecast is seasonal. It has no trend: it repeats the last year at the same level. Which of
# the four is best? The plot allows a guess. To know, we could wait for the future, or forecast the past.

# %% [markdown]
# ## First mistake: evaluation on the training data
#
# We fit polynomials in time, $\hat y_t = \sum_{k=0}^{K} \beta_k t^k$, to all but the last 12 months by least squares.
# The higher the degree, the smaller the root mean squared error (RMSE) on the training data. Does the forecast improve
# as well?

# %%
time = np.linspace(-1, 1, T)
train, test = slice(0, T - horizon), slice(T - horizon, T)
degrees = range(1, 15)
training_error, forecast_error = [], []
for degree in degrees:
    curve = np.polynomial.Polynomial.fit(time[train], y[train], degree)(time)
    training_error.append(np.sqrt(((y - curve)[train] ** 2).mean()))
    forecast_error.append(np.sqrt(((y - curve)[test] ** 2).mean()))

for degree in (1, 2, 6, 10, 14):
    rmse_train, rmse_test = training_error[degree - 1], forecast_error[degree - 1]
    print(f"degree {degree:2d}: training RMSE {rmse_train:5.1f}, RMSE of the 12 months after {rmse_test:7.1f}")
assert (np.diff(training_error) < 1e-9).all()
assert forecast_error[-1] > 10 * forecast_error[1]

# %%
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.semilogy(degrees, training_error, "o-", label="training data")
axes.semilogy(degrees, forecast_error, "s--", label="12 months after the training data")
axes.set(xlabel="degree of the polynomial", ylabel="root mean squared error (RMSE)")
_ = axes.legend()

# %% [markdown]
# The training error never rises, but the forecast error becomes very large. A sufficiently flexible model fits the
# noise of the past; this is called **overfitting**. So the first rule of honest evaluation: **evaluate a model only on
# values after its cutoff.**

# %% [markdown]
# ## Rolling cutoffs
#
# A single test year may happen to be easy to forecast. We therefore move the cutoff through the past: fit on all values
# up to it, forecast the 12 months after it, move on and repeat. This is called **rolling-origin evaluation**,
# backtesting, or **time series cross-validation**. Here are 8 cutoffs, one year apart.

# %%
n_windows = 8
folds = cross_validate(baselines, frame, horizon=horizon, n_windows=n_windows)
print(folds.head(3).to_string(index=False))
print(f"{folds['cutoff'].nunique()} cutoffs, {len(folds)} forecasts of each model")
assert (folds["ds"] > folds["cutoff"]).all()

# %%
plot_cross_validation(folds, models=["Drift", "SeasonalNaive"], level=[])

# %% [markdown]
# The column `cutoff` is the last month of the training data. All timestamps of the forecasts lie after it. The library
# guarantees this for every model: a test perturbs the values after the cutoff and checks that no forecast changes.

# %% [markdown]
# ## Metrics: what is a good forecast?
#
# Let $e_i = y_i - \hat y_i$ be the errors of all $n$ forecasts.
#
# $$\text{MAE} = \frac{1}{n} \sum_i |e_i| \qquad \text{RMSE} = \sqrt{\frac{1}{n} \sum_i e_i^2} \qquad
# \text{bias} = \frac{1}{n} \sum_i (\hat y_i - y_i)$$
#
# They are in units of $y$: thousands of passengers. To compare series of different scale, MASE divides by the mean
# absolute error of the seasonal naive forecast one season ahead, on the values up to the cutoff:
#
# $$\text{MASE} = \frac{1}{n} \sum_i \frac{|e_i|}{q_i}, \qquad
# q_i = \frac{1}{T_i - m} \sum_{t=m+1}^{T_i} |y_t - y_{t-m}|, \quad T_i \text{ the cutoff of point } i.$$
#
# A value below 1 is better than the seasonal naive forecast on the training data.

# %%
errors = folds["y"] - folds["SeasonalNaive"]
mae = errors.abs().mean()
rmse = np.sqrt((errors**2).mean())
bias = -errors.mean()

timestamps = frame["ds"]
differences = np.abs(y[season:] - y[:-season])  # |y_t - y_{t-m}|
scale = {cutoff: differences[: (timestamps <= cutoff).sum() - season].mean() for cutoff in folds["cutoff"].unique()}
mase = (errors.abs() / folds["cutoff"].map(scale)).mean()

metrics = score(folds, metrics=["mae", "rmse", "bias", "mase"], train=frame)
print(metrics.round(3).to_string(index=False))
np.testing.assert_allclose(metrics.set_index("model").loc["SeasonalNaive"].astype(float), [mae, rmse, bias, mase])
assert (metrics.set_index("model").abs().idxmin() == "SeasonalNaive").all()

# %% [markdown]
# The seasonal naive forecast is best by every metric. Its bias is negative: its forecasts are too low, because the
# series rises and the forecast does not.
#
# Why is its own MASE not exactly 1? The scale is its error in the past; the numerator is its error after the cutoff.
# The series grows, and the errors grow with it.

# %% [markdown]
# ### What a metric rewards
#
# No metric is neutral. Suppose that demand is 0 on most days, and sometimes high. Which constant forecast $c$ is best
# by each metric?

# %%
demand = np.repeat([0.0, 1.0, 2.0, 10.0, 30.0], [5, 2, 1, 1, 1])
candidates = np.linspace(0, 30, 301)
absolute = [np.abs(demand - c).mean() for c in candidates]
squared = [np.sqrt(((demand - c) ** 2).mean()) for c in candidates]
best_absolute, best_squared = candidates[np.argmin(absolute)], candidates[np.argmin(squared)]
print(f"demand {demand.astype(int).tolist()}: median {np.median(demand)}, mean {demand.mean():.1f}")
print(f"lowest MAE at c = {best_absolute:.1f}, lowest RMSE at c = {best_squared:.1f}")
assert np.median(demand) >= best_absolute
assert abs(best_squared - demand.mean()) < 0.1

# %% [markdown]
# **MAE rewards the median, RMSE rewards the mean.** Ordering goods by the median forecast means ordering next to
# nothing here. Choose the metric before you look at results, by the cost of errors. The first line of a leaderboard
# states the metric used for the ranks; its report explains what each metric rewards.

# %% [markdown]
# ## Second mistake: leakage
#
# **Leakage** means that a forecast uses information that was not available at its cutoff. It is rarely intentional. A
# common cause is to hold out months at random, as for data without an order in time.
#
# Each test month then has neighbours in the training data, before it and *after* it. Taking their mean is not
# forecasting but interpolation.

# %%
generator = np.random.default_rng(0)
held_out = generator.choice(np.arange(1, T - 1), size=24, replace=False)
training = np.setdiff1d(np.arange(T), held_out)
filled = np.interp(held_out, training, y[training])
leaky = np.abs(y[held_out] - filled).mean()
honest = metrics.set_index("model")["mae"]
print(f"months held out at random, interpolated:       MAE {leaky:.1f}")
print(f"best baseline, up to 12 months after a cutoff: MAE {honest.min():.1f}")
assert leaky < honest.min()

# %% [markdown]
# The error with leakage looks far better, and it is worthless: tomorrow has no later neighbour. Leakage has many
# causes: scaling computed on all data, a centred moving average, a price that is known only a day later. The second
# rule: **everything a forecast uses must be known at its cutoff.** If a result looks too good to be true, suspect
# leakage.

# %% [markdown]
# ## A leaderboard
#
# `compare` does all this in one call. In addition to the baselines we include `AutoETS` (tutorial 03). With `level=80`
# every model also computes an interval that should cover 80 % of the values.

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
# - `mase` determines the ranks. AutoETS has a smaller error than the best baseline.
# - `coverage-80` is the share of actual values inside the prediction interval. It should be near 0.8. Where it is below
#   0.7, `compare` warns: such intervals are too narrow to rely on.
# - This is one series; the ranks may differ on another. Tutorial 14 compares models on many series.
#
# `print(board)` prints the same as text, `board.report("report.html")` writes a full report.
#
# ## Errors by horizon
#
# Errors grow with the horizon, but not equally for all models. `score(..., by="step")` computes them for each step.

# %%
steps = score(folds, metrics=["mae"], by="step").pivot(index="step", columns="model", values="mae")
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
for name in ["Naive", "Drift", "SeasonalNaive"]:
    axes.plot(steps.index, steps[name], "o-", label=name)
axes.set(xlabel="months ahead", ylabel="mean absolute error (MAE)", ylim=(0, None))
_ = axes.legend()

# %% [markdown]
# All cutoffs are at the end of December, so steps 7 and 8 are July and August, the peak, where non-seasonal forecasts
# are worst. One month ahead the naive forecast is better than the seasonal naive one. Which model is best depends on
# the horizon.

# %%
assert steps.loc[1, "Naive"] < steps.loc[1, "SeasonalNaive"]
assert steps["Naive"].idxmax() in (7, 8)

# %% [markdown]
# ## Exercises
#
# 1. `WindowMean(window=12)` forecasts the mean of the last year. Where does it rank among the four baselines by MAE,
#    and why?
# 2. Up to how many months ahead is `Drift` better than `SeasonalNaive`? Use `steps`.
# 3. Yearly sunspots (`datasets.load("sunspots")`) have a cycle of about eleven years. Which baseline is best 5 years
#    ahead? Try `SeasonalNaive(season_length=11)` too.
# 4. Beat `SeasonalNaive` without leakage with one line of numpy: multiply last year's values by last year's growth.

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# It is far better than the mean of all years, since it uses recent values only. It also beats the naive and drift
# forecasts: these start from December, a low month, and a full year estimates the level better than one month. It is
# worse than the seasonal naive forecast, because it is not seasonal.

# %%
extended = cross_validate([*baselines, WindowMean(window=12)], frame, horizon=horizon, n_windows=n_windows)
ranked = score(extended, metrics=["mae"]).sort_values("mae")
print(ranked.round(1).to_string(index=False))
assert ranked["model"].tolist()[:3] == ["SeasonalNaive", "WindowMean", "Drift"]

# %% [markdown]
# ### Solution 2

# %%
drift_is_better = steps.index[steps["Drift"] < steps["SeasonalNaive"]].tolist()
print("Drift is better at the steps", drift_is_better)
assert drift_is_better == [1, 2, 4, 10, 11, 12]

# %% [markdown]
# It is better in January, February and April, and again from October to December: the winter months are about as high
# as the December the line starts from. In between seasonality dominates. There is no single step from which one model
# is better.
#
# ### Solution 3

# %%
sunspots = datasets.load("sunspots")
models = [Mean(), Naive(), Drift(), SeasonalNaive(season_length=11, alias="Eleven years ago")]
sunspot_board = compare(models, sunspots, horizon=5, n_windows=20, metrics=["mae"], season_length=1)
print(sunspot_board.table[["rank", "model", "mae"]].round(1).to_string(index=False))
assert sunspot_board.table["model"].iloc[0] == "Eleven years ago"

# %% [markdown]
# The cycle is not exactly eleven years long, but close enough to help. The library cannot infer it from the yearly
# frequency, so `season_length` must be set.
#
# ### Solution 4
#
# With $g$ the ratio of the last year to the year before it, $\hat y_{T+h \mid T} = g \, y_{T+h-m}$ for $h \le m$. All
# these values are known at the cutoff.

# %%
with_growth = folds.copy()
for cutoff in with_growth["cutoff"].unique():
    past = y[: (timestamps <= cutoff).sum()]
    growth = past[-season:].sum() / past[-2 * season : -season].sum()
    with_growth.loc[with_growth["cutoff"] == cutoff, "SeasonalNaive * growth"] = growth * past[-season:]
result = score(with_growth, metrics=["mae", "bias"]).set_index("model")
print(result.round(1).to_string())
assert result.loc["SeasonalNaive * growth", "mae"] < result.loc["SeasonalNaive", "mae"]

# %% [markdown]
# ## Reference
#
# - `Mean`, `Naive`, `Drift`, `SeasonalNaive`, `WindowMean`, `AutoETS`
# - `cross_validate`, `score`, `compare`, `Leaderboard`, `check`, `plot`, `datasets`
#
# To read on: Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, chapters 1 and 5; Tashman (2000),
# *Out-of-sample tests of forecasting accuracy*; Hyndman & Koehler (2006), *Another look at measures of forecast
# accuracy* (MASE).
