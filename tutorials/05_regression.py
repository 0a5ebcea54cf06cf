# %% [markdown]
# # 05 · Machine-learning regressors: lags, leakage, recursive and direct, SHAP
#
# Any method that maps features to a number can be used for forecasting: linear regression, decision trees, gradient
# boosting. The series only has to be turned into a table of features. This is easy to do, and just as easy to do wrong.
#
# **After this you can**
#
# - turn a series into a table of lags, and fit a regression by hand and with the library
# - recognize three kinds of leakage in features
# - distinguish recursive from direct forecasts, and compute both
# - forecast a trend with trees, which cannot extrapolate
# - decompose a forecast into Shapley values, by hand for a linear model
#
# The trees in this tutorial are those of LightGBM: `pip install '.[lightgbm]'` from the checkout.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np

from deepforecast import (
    AutoETS,
    LightGBM,
    LinearModel,
    Naive,
    Regression,
    SeasonalNaive,
    compare,
    cross_validate,
    datasets,
    plot,
    score,
)

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training
TREES = 50 if SHORT else 200

# %% [markdown]
# ## A series as a table
#
# Our series is the sea surface temperature of the Pacific off Peru, in which El Niño is visible. One row of the table
# is one month: the **target** $y_t$, and **features** that were known before it. The simplest features are **lags**,
# that is, earlier values:
#
# $$y_t \approx \beta_0 + \beta_1 y_{t-1} + \beta_2 y_{t-2} + \beta_3 y_{t-12}.$$

# %%
frame = datasets.load("elnino")
y = frame["y"].to_numpy()
plot(frame, max_history=240)

# %%
lags = [1, 2, 12]


def lag_table(y, lags):
    """Features (a constant and the lags) and target of all months for which the lags are available."""
    first = max(lags)
    columns = [y[first - lag : len(y) - lag] for lag in lags]
    return np.column_stack([np.ones(len(y) - first), *columns]), y[first:]


X, target = lag_table(y, lags)
print("features of the first rows:\n", X[:3].round(2), "\ntargets:", target[:3].round(2))
beta = np.linalg.lstsq(X, target, rcond=None)[0]
print("beta:", beta.round(3))

# %% [markdown]
# `LinearModel` does this for any number of series. By default it also adds features, such as rolling means and calendar
# features, and selects the strength of a ridge penalty. All of this can be switched off.

# %%
plain = {"lags": lags, "lag_transforms": None, "calendar": None, "differences": None, "scale": False, "ridge": 0.0}
model = LinearModel(**plain).fit(frame)
next_month = model.predict(1)["LinearModel"].item()
np.testing.assert_allclose(next_month, beta @ [1, y[-1], y[-2], y[-12]])
print("one step ahead, by hand and by the library:", round(next_month, 4))

# %% [markdown]
# ## Three kinds of leakage
#
# The table looks like any other table. But its rows are ordered in time, and a feature may only contain information
# that is known at the cutoff. Here are three common mistakes and the errors that they produce. For comparison, the
# error without leakage comes first: fit on the first 600 months, forecast one step ahead on the others.


# %%
def holdout_error(X, target, is_train):
    beta = np.linalg.lstsq(X[is_train], target[is_train], rcond=None)[0]
    return np.abs(target - X @ beta)[~is_train].mean()


is_train = np.arange(len(target)) < 600
mae = {"no leakage": holdout_error(X, target, is_train)}

# mean of the last month, this month and the next month
centred_mean = np.convolve(y, np.ones(3) / 3, mode="same")[max(lags) :]
mae["window includes the target"] = holdout_error(np.column_stack([X, centred_mean]), target, is_train)

late_column = np.append(y[max(lags) + 1 :], y[-1])  # a column that is only known one month later
mae["column known too late"] = holdout_error(np.column_stack([X, late_column]), target, is_train)

for name, value in mae.items():
    print(f"{name:27s} mean absolute error {value:.3f}")
assert max(mae.values()) == mae["no leakage"]

# %% [markdown]
# The third mistake is to select the test rows at random. Each of them then has neighbours in time in the training data,
# later ones too. Methods that memorize training rows benefit, such as nearest neighbours or trees. As an example, take
# the simplest feature, the number of the month:

# %%
month_number = np.arange(len(y))
generator = np.random.default_rng(0)
splits = {"random split": generator.random(len(y)) < 0.85, "split in time": month_number < 0.85 * len(y)}
for name, is_train in splits.items():
    distances = np.abs(month_number[~is_train][:, None] - month_number[is_train][None, :])
    nearest = distances.argsort(axis=1)[:, :3]
    mae[name] = np.abs(y[~is_train] - y[is_train][nearest].mean(axis=1)).mean()
    print(f"{name:14s} mean absolute error of three nearest neighbours {mae[name]:.2f}")
assert mae["random split"] < 0.6 * mae["split in time"]

# %% [markdown]
# The library prevents leakage where it can: its windows end before the target, covariates that are declared as `past`
# are lagged, and `cross_validate` splits in time. Whether the values of a column are available at the cutoff, only you
# can know.
#
# ## Recursive or direct?
#
# Forecasting one step ahead is straightforward. But $y_{T+2}$ depends on $y_{T+1}$, which is unknown at the cutoff.
# There are two strategies.
#
# **Recursive**: forecast one step, use the forecast in place of the value, and continue with the same regression:
#
# $$\hat y_{T+h} = \beta_0 + \beta_1 \hat y_{T+h-1} + \beta_2 \hat y_{T+h-2} + \beta_3 \hat y_{T+h-12}, \qquad
# \hat y_t = y_t \text{ for } t \le T.$$
#
# **Direct**: fit a separate regression for each step of the horizon, with observed values only:
#
# $$\hat y_{T+h} = \beta^{(h)}_0 + \beta^{(h)}_1 y_T + \beta^{(h)}_2 y_{T-1} + \beta^{(h)}_3 y_{T-11}.$$

# %%
horizon = 12
path = [*y]
for _ in range(horizon):
    path.append(beta @ [1, path[-1], path[-2], path[-12]])
recursive = LinearModel(**plain, alias="recursive").fit(frame).predict(horizon)
np.testing.assert_allclose(recursive["recursive"], path[-horizon:])

by_hand = []
for h in range(1, horizon + 1):
    shifted_lags = [lag + h - 1 for lag in lags]  # lag 1 at the cutoff is h steps before the target
    beta_h = np.linalg.lstsq(*lag_table(y, shifted_lags), rcond=None)[0]
    by_hand.append(beta_h @ [1, y[-1], y[-2], y[-12]])
direct = LinearModel(**plain, strategy="direct", horizon=horizon, alias="direct").fit(frame).predict()
np.testing.assert_allclose(direct["direct"], by_hand)

# %%
plot(frame, recursive.merge(direct), max_history=60)

# %% [markdown]
# The recursive strategy uses a single regression, whose errors are fed back into later steps. The direct strategy fits
# each step separately, but each fit has a larger variance, and neighbouring steps are forecast independently of each
# other. Which one is better depends on the data. We compare them with all lags of two years, on the differences from
# one year to the next.

# %%
yearly = {"differences": [12]}
models = [
    LinearModel(lags=24, alias="linear, recursive", **yearly),
    LinearModel(lags=24, strategy="direct", alias="linear, direct", **yearly),
    LightGBM(lags=24, n_estimators=TREES, alias="trees, recursive", **yearly),
    LightGBM(lags=24, n_estimators=TREES, strategy="direct", alias="trees, direct", **yearly),
    LightGBM(n_estimators=TREES, alias="trees, default features", **yearly),
    SeasonalNaive(),
]
folds = cross_validate(models, frame, horizon=horizon, n_windows=4 if SHORT else 20, refit=False)
ranking = score(folds, metrics=["mae", "mase"], train=frame).sort_values("mae")
print(ranking.round(3).to_string(index=False))
assert SHORT or ranking["model"].iloc[0] == "trees, default features"

# %%
steps = score(folds, metrics=["mae"], by="step").pivot(index="step", columns="model", values="mae")
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
for name in ["linear, recursive", "linear, direct", "SeasonalNaive"]:
    axes.plot(steps.index, steps[name], "o-", label=name)
axes.set(xlabel="months ahead", ylabel="mean absolute error", ylim=(0, None))
_ = axes.legend()
reduction = (1 - steps[["linear, recursive", "linear, direct"]].mean(axis=1) / steps["SeasonalNaive"]).round(2)
print("error reduction of the linear models by step, relative to SeasonalNaive:", reduction.tolist())
assert SHORT or reduction[1] > 0.4 > 0.1 > reduction.loc[2:7].max()

# %% [markdown]
# One month ahead, the regressions reduce the error of the seasonal naive forecast by more than half. Two months ahead
# little of this advantage remains; half a year ahead they are no better than last year's values. The choice between
# recursive and direct matters less than the choice of features. This is a useful rule: improve the features first.
#
# ## Trees and trends
#
# The prediction of a tree is a mean of training targets. A tree can therefore not forecast values above those it was
# trained on, which is a serious problem for a rising series. One parameter solves it: train on the **differences**, and
# integrate the forecasts.

# %%
passengers = datasets.load("air_passengers")
train = passengers.iloc[:-24]
without = LightGBM(differences=None, scale=False, alias="without differences").fit(train).predict(24)
differenced = LightGBM(differences=[1], alias="with differences").fit(train).predict(24)
assert without["without differences"].max() <= train["y"].max() < differenced["with differences"].max()
plot(passengers, without.merge(differenced), max_history=72)

# %% [markdown]
# `differences="auto"`, the default, first applies tests for unit roots and for seasonality (tutorial 04). It uses the
# differences they suggest only if these clearly reduce the error of forecasts, at the horizon, of later parts of the
# series. For one series the error must be reduced by 30 % in three of four windows after two of three fits, and by some
# amount after each fit. For $n$ series the required reduction is divided by $\sqrt{n}$; from 20 series on, one fit is
# used. With a strategy other than recursive, the difference at each step is taken from the last observed value, so that
# errors do not accumulate.
#
# ## One model for all series
#
# A table may contain the rows of many series. A single model is then trained on all of them: a **global** model. We
# forecast fertility, in births per woman, of many countries five years ahead. With `per_series=True` each country has
# its own model instead.

# %%
fertility = datasets.load("fertility")
n_years = fertility.groupby("unique_id")["y"].transform("count")
fertility = fertility[n_years == 52]
print(fertility["unique_id"].nunique(), "countries and groups of countries with all 52 years")
board = compare(
    [
        LinearModel(alias="linear, global"),
        LinearModel(per_series=True, alias="linear, per series"),
        LightGBM(n_estimators=TREES, alias="trees, global"),
        AutoETS(),
        Naive(),
    ],
    fertility,
    horizon=5,
    n_windows=2,
    metrics=["mase", "smape"],
)
print(board.table[["model", "mase", "mase-low", "mase-high", "smape"]].round(3).to_string(index=False))

# %%
board.plot()

# %% [markdown]
# The error bars are bootstrap intervals over countries. One of them is very wide. Which countries cause this?

# %%
by_series = score(board.forecasts, metrics=["mase"], train=fertility, by="series")
per_series = by_series[by_series["model"] == "linear, per series"].sort_values("mase", ascending=False)
print(per_series.head(4).round(1).to_string(index=False))
print("median over countries:", by_series.groupby("model")["mase"].median().round(2).to_dict())
assert per_series["mase"].iloc[0] > 20 * per_series["mase"].iloc[1]
worst = board.forecasts[board.forecasts["unique_id"] == per_series["unique_id"].iloc[0]].tail(5)
print(worst[["unique_id", "ds", "y", "linear, per series"]].to_string(index=False, float_format="%.2f"))

# %% [markdown]
# A single series causes it, and it is not a country but a mean over many; the warning of `compare` names it, too. Its
# recursive forecast diverged: about fifty values are few for a regression with eight features, and a small error, fed
# back, grew from step to step. For the median country, a separate model is at least as accurate as the others. This
# also illustrates a property of metrics: the mean is sensitive to extreme errors, the median is not. Report both.
#
# The global models are trained on thousands of rows and do not diverge. AutoETS, with two or three parameters per
# country, is reliable and accurate: it is well suited to short, smooth, annual series. Global models are worthwhile for
# many similar series, and for series with covariates.
#
# ## Explaining a forecast: Shapley values
#
# A forecast depends on all of its features. How can it be attributed to them? The **Shapley value** of a feature is the
# change of the forecast when the feature is added, averaged over all orders in which the features can be added. Let
# $v(S)$ be the forecast when only the features in $S$ are known, and $p$ the number of features:
#
# $$\phi_j = \sum_{S \subseteq \{1..p\} \setminus j} \frac{|S|! \, (p - |S| - 1)!}{p!} \,
# \big( v(S \cup j) - v(S) \big).$$
#
# The Shapley values add up to the forecast minus its mean. For a linear model in which unknown features are replaced by
# their mean $\bar x$, the sum simplifies to
#
# $$\phi_j = \beta_j \, (x_j - \bar x_j).$$

# %%
explained = LinearModel(**plain).fit(frame).explain(1).set_index("component")["value"]
shapley_values = beta[1:] * (np.array([y[-1], y[-2], y[-12]]) - X[:, 1:].mean(axis=0))
np.testing.assert_allclose(explained[["lag_1", "lag_2", "lag_12"]], shapley_values)
np.testing.assert_allclose(explained["base"], target.mean())
np.testing.assert_allclose(explained.sum(), beta @ [1, y[-1], y[-2], y[-12]])
print(explained.round(3).to_string())

# %% [markdown]
# For trees there is an exact algorithm, which `explain` uses; the resulting values are known as **SHAP values**. Are
# they close to the true effects? We check this where the effects are known: in the generated data one unit of price
# lowers `y` by 6, and a holiday raises it by 20.

# %%
train = datasets.load("generated", split="train")
test = datasets.load("generated", split="test")
roles = {"future": ["price", "holiday", "promotion"], "past": ["visits", "stock"], "static": ["size", "region"]}
trees = LightGBM(horizon=14, differences=None, n_estimators=TREES).fit(train, columns=roles)
future = test[["unique_id", "ds", *roles["future"]]]
shap_values = trees.explain(14, future=future).pivot(index=["unique_id", "ds"], columns="component", values="value")
forecast = trees.predict(future=future)
np.testing.assert_allclose(shap_values.sum(axis=1).to_numpy(), forecast["LightGBM"], rtol=1e-5)

price = future["price"].to_numpy()
slope, _ = np.polyfit(price, shap_values["price"].to_numpy(), 1)
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(price, shap_values["price"], "o", markersize=4, label="SHAP value of the price")
axes.plot(np.sort(price), -6 * (np.sort(price) - train["price"].mean()), "--", label="true effect: -6 per unit")
axes.set(xlabel="price", ylabel="contribution to the forecast")
_ = axes.legend()
print(f"slope of the SHAP values: {slope:.1f}")
assert slope < -3

# %% [markdown]
# The trees have learned the sign of the effect and most of its size. They shrink it slightly: each tree contributes a
# small step, and a step function only approximates a line. `importance` aggregates over all data:

# %%
print(trees.importance().head(6).round(3).to_string(index=False))

# %% [markdown]
# ## Exercises
#
# 1. Which coefficients does the regression with the leaky window give to its lags? Why?
# 2. `Regression("ridge")` accepts scikit-learn regressors by name, or a regressor of your own. Try `"ridge"` and
#    `"random_forest"` on El Niño.
# 3. Compute the Shapley values of the linear model with three lags by the full sum over subsets, and show that they are
#    $\beta_j (x_j - \bar x_j)$.
# 4. What does `strategy="blocks"` do? Compare `block_size=3` with the other strategies.

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# The mean of three neighbouring values is close to the value itself. The regression gives it all of the weight, and the
# lags none: it does not forecast any more.

# %%
is_train = np.arange(len(target)) < 600
leaky = np.column_stack([X, centred_mean])
coefficients = np.linalg.lstsq(leaky[is_train], target[is_train], rcond=None)[0]
print(dict(zip(["constant", "lag 1", "lag 2", "lag 12", "window"], coefficients.round(2).tolist(), strict=True)))
assert abs(coefficients[-1] - 1) < 0.1
assert np.abs(coefficients[1:4]).max() < 0.1

# %% [markdown]
# ### Solution 2

# %%
models = [*(Regression(name, lags=24, alias=name) for name in ("ridge", "random_forest")), SeasonalNaive()]
regression_folds = cross_validate(models, frame, horizon=horizon, n_windows=2 if SHORT else 8, refit=False)
ranking = score(regression_folds, metrics=["mae"]).sort_values("mae")
print(ranking.round(3).to_string(index=False))
assert SHORT or ranking["model"].tolist() == ["random_forest", "ridge", "SeasonalNaive"]

# %% [markdown]
# Both are better than last year's values here, and the random forest is the best. Only a backtest can show this.
#
# ### Solution 3

# %%
from itertools import combinations
from math import factorial

x, mean = np.array([y[-1], y[-2], y[-12]]), X[:, 1:].mean(axis=0)


def v(known_features):
    """Forecast with some features known and the others at their mean."""
    return beta[0] + sum(beta[1 + j] * (x[j] if j in known_features else mean[j]) for j in range(3))


by_subsets = np.zeros(3)
for j in range(3):
    other_features = [k for k in range(3) if k != j]
    for size in range(3):
        for S in combinations(other_features, size):
            by_subsets[j] += factorial(size) * factorial(2 - size) / factorial(3) * (v({*S, j}) - v(S))
np.testing.assert_allclose(by_subsets, shapley_values)
print("Shapley values by the sum over subsets:", by_subsets.round(3))

# %% [markdown]
# ### Solution 4
#
# It is direct within a block and recursive from block to block: fewer regressions than direct, and fewer recursions of
# errors than recursive.

# %%
models = [
    LinearModel(lags=24, alias="recursive"),
    LinearModel(lags=24, strategy="blocks", block_size=3, alias="blocks of 3"),
    LinearModel(lags=24, strategy="direct", alias="direct"),
]
block_folds = cross_validate(models, frame, horizon=horizon, n_windows=4 if SHORT else 20, refit=False)
print(score(block_folds, metrics=["mae"]).sort_values("mae").round(4).to_string(index=False))

# %% [markdown]
# ## Reference
#
# - `LinearModel`, `LightGBM`, `XGBoost`, `CatBoost`, `GradientBoosting`, `Regression`
# - `cross_validate`, `score`, `compare`, `plot`, `datasets.generate`
#
# To read on: Ben Taieb & Hyndman (2014), *A review and comparison of strategies for multi-step ahead forecasting*;
# Lundberg & Lee (2017), *A unified approach to interpreting model predictions*; Lundberg et al. (2020), *From local
# explanations to global understanding* (trees).
