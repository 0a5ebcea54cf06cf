# %% [markdown]
# # 05 · Machine-learning regressors: lags, leakage, recursive and direct, SHAP
#
# Any method that maps features to a number can forecast: linear regression, trees, boosting. You only have to turn the series
# into a table. This is easy to do, and easy to do wrong.
#
# **After this you can**
#
# - turn a series into a table of lags, and fit it by hand and with the library
# - spot three kinds of leakage in features
# - tell recursive from direct forecasts, and compute both
# - help trees with a trend they cannot follow
# - take a forecast apart into Shapley values, by hand for a linear model
#
# The trees here are LightGBM's: `pip install '.[lightgbm]'` from the checkout.

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
# Our series is the temperature of the Pacific off Peru, where El Niño shows itself. One row of the table is one month: the
# **target** $y_t$, and the **features** that were known before it. The simplest features are **lags**, earlier values:
#
# $$y_t \approx \beta_0 + \beta_1 y_{t-1} + \beta_2 y_{t-2} + \beta_3 y_{t-12}.$$

# %%
frame = datasets.load("elnino")
y = frame["y"].to_numpy()
plot(frame, max_history=240)

# %%
lags = [1, 2, 12]


def table(y, lags):
    """Features and target of every month whose lags are known."""
    first = max(lags)
    columns = [y[first - lag : len(y) - lag] for lag in lags]
    return np.column_stack([np.ones(len(y) - first), *columns]), y[first:]


X, target = table(y, lags)
print("features of the first rows:\n", X[:3].round(2), "\ntargets:", target[:3].round(2))
beta = np.linalg.lstsq(X, target, rcond=None)[0]
print("beta:", beta.round(3))

# %% [markdown]
# `LinearModel` does this for any number of series. It also adds features of its own: means of windows, the calendar. And it
# chooses the weight of a ridge penalty. All this can be switched off.

# %%
plain = {"lags": lags, "lag_transforms": None, "calendar": None, "differences": None, "scale": False, "ridge": 0.0}
model = LinearModel(**plain).fit(frame)
np.testing.assert_allclose(model.predict(1)["LinearModel"], beta @ [1, y[-1], y[-2], y[-12]])
print("one step ahead, by hand and by the library:", round(model.predict(1)["LinearModel"].item(), 4))

# %% [markdown]
# ## Three kinds of leakage
#
# The table looks like any other table. But its rows are in time, and a feature may only hold what is known at the cutoff. Three
# accidents, each measured. The honest error first: fit on the first 600 months, one step ahead on the rest.

# %%
def error_on_rest(X, target, known):
    beta = np.linalg.lstsq(X[known], target[known], rcond=None)[0]
    return np.abs(target - X @ beta)[~known].mean()


early = np.arange(len(target)) < 600
found = {"honest": error_on_rest(X, target, early)}

month = np.ones(3) / 3
centred = np.convolve(y, month, mode="same")[max(lags) :]  # the mean of last month, this month and the next one
found["a window that holds the target"] = error_on_rest(np.column_stack([X, centred]), target, early)

future_month = np.append(y[max(lags) + 1 :], y[-1])  # a column that is only known one month later
found["a column known too late"] = error_on_rest(np.column_stack([X, future_month]), target, early)

for name, value in found.items():
    print(f"{name:32s} mean absolute error {value:.3f}")
assert max(found.values()) == found["honest"]

# %% [markdown]
# The third accident is to draw the test rows at random. Then each of them has neighbours in time among the rows of the fit,
# later ones too. Any method that remembers rows profits, such as the mean of the nearest neighbours, or trees. Take the
# plainest feature, the number of the month:

# %%
number = np.arange(len(y))
generator = np.random.default_rng(0)
splits = {"rows drawn at random": generator.random(len(y)) < 0.85, "rows in time": number < 0.85 * len(y)}
for name, known in splits.items():
    nearest = np.abs(number[~known][:, None] - number[known][None, :]).argsort(axis=1)[:, :3]
    found[name] = np.abs(y[~known] - y[known][nearest].mean(axis=1)).mean()
    print(f"{name:22s} mean absolute error of three nearest neighbours {found[name]:.2f}")
assert found["rows drawn at random"] < 0.6 * found["rows in time"]

# %% [markdown]
# The library protects you where it can: windows end before the target, past covariates are declared as `past`
# and lagged, and `cross_validate` cuts in time. What a column means, only you know.
#
# ## Recursive or direct?
#
# One step ahead is clear. But $y_{T+2}$ needs $y_{T+1}$, which is not known. There are two ways.
#
# **Recursive**: forecast one step, take the forecast for the value, go on with the same regression:
#
# $$\hat y_{T+h} = \beta_0 + \beta_1 \hat y_{T+h-1} + \beta_2 \hat y_{T+h-2} + \beta_3 \hat y_{T+h-12}, \qquad
# \hat y_t = y_t \text{ for } t \le T.$$
#
# **Direct**: one regression for each step ahead, on known values alone:
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
    known = [lag + h - 1 for lag in lags]  # lag 1 of the last known row is h steps before the target
    beta_h = np.linalg.lstsq(*table(y, known), rcond=None)[0]
    by_hand.append(beta_h @ [1, y[-1], y[-2], y[-12]])
direct = LinearModel(**plain, strategy="direct", horizon=horizon, alias="direct").fit(frame).predict()
np.testing.assert_allclose(direct["direct"], by_hand)

# %%
plot(frame, recursive.merge(direct), max_history=60)

# %% [markdown]
# The recursive forecast is one regression that must live with its own errors. The direct one fits each step for itself, but
# each fit is noisier, and neighbouring steps do not know of each other. Which is better is a matter of the data. Let us see,
# with all lags of two years of the changes from one year to the next.

# %%
yearly = {"differences": [12]}
models = [
    LinearModel(lags=24, alias="linear, recursive", **yearly),
    LinearModel(lags=24, strategy="direct", alias="linear, direct", **yearly),
    LightGBM(lags=24, n_estimators=TREES, alias="trees, recursive", **yearly),
    LightGBM(lags=24, n_estimators=TREES, strategy="direct", alias="trees, direct", **yearly),
    LightGBM(n_estimators=TREES, alias="trees, the library's features", **yearly),
    SeasonalNaive(),
]
folds = cross_validate(models, frame, horizon=horizon, n_windows=4 if SHORT else 20, refit=False)
table_of_scores = score(folds, metrics=["mae", "mase"], train=frame).sort_values("mae")
print(table_of_scores.round(3).to_string(index=False))
assert SHORT or table_of_scores["model"].iloc[0] == "trees, the library's features"

# %%
steps = score(folds, metrics=["mae"], by="step").pivot(index="step", columns="model", values="mae")
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
for name in ["linear, recursive", "linear, direct", "SeasonalNaive"]:
    axes.plot(steps.index, steps[name], "o-", label=name)
axes.set(xlabel="months ahead", ylabel="mean absolute error", ylim=(0, None))
_ = axes.legend()
gain = (1 - steps[["linear, recursive", "linear, direct"]].mean(axis=1) / steps["SeasonalNaive"]).round(2)
print("share of the seasonal naive error that the linear models take away:", gain.tolist())
assert SHORT or gain[1] > 0.4 > 0.1 > gain.loc[2:7].max()

# %% [markdown]
# One month ahead the regressions take away more than half of the error. Two months ahead that is nearly used up; half a year
# ahead they are no better than last year's values. Recursive and direct differ less than the choice of features does. That is
# a good rule: think about the features first.
#
# ## Trees and trends
#
# A tree answers with means of targets it has seen. So it cannot say anything larger than its past. On a rising series this is
# fatal, and one parameter fixes it: learn the **differences**, and integrate the forecasts.

# %%
passengers = datasets.load("air_passengers")
train = passengers.iloc[:-24]
levels = LightGBM(differences=None, scale=False, alias="levels").fit(train).predict(24)
changes = LightGBM(differences=[1], alias="differences").fit(train).predict(24)
assert levels["levels"].max() <= train["y"].max() < changes["differences"].max()
plot(passengers, levels.merge(changes), max_history=72)

# %% [markdown]
# `differences="auto"`, the default, takes the differences that tests of unit roots and of the season suggest (tutorial 04),
# if forecasts of later parts of the series, at the horizon, have clearly less error with them than without: for one series 30
# % less in three of four windows, after two of three fits, and some less after each; for $n$ series $\sqrt{n}$ times less
# than that, from 20 series on after one fit. With a strategy other than recursive, a step is the difference from the last
# observed value, so that errors do not add up.
#
# ## One model for all series
#
# A table may hold the rows of many series. Then one model learns from all of them: a **global** model. We forecast fertility,
# births per woman, of many countries, five years ahead. `per_series=True` makes a model for each country instead.

# %%
fertility = datasets.load("fertility")
years = fertility.groupby("unique_id")["y"].transform("count")
fertility = fertility[years == 52]
print(fertility["unique_id"].nunique(), "countries and groups of countries with all 52 years")
board = compare(
    [
        LinearModel(alias="linear, one for all"),
        LinearModel(per_series=True, alias="linear, one for each"),
        LightGBM(n_estimators=TREES, alias="trees, one for all"),
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
# The whiskers are bootstrap intervals over countries. One of them is very wide. Which countries make it so?

# %%
each = score(board.forecasts, metrics=["mase"], train=fertility, by="series")
wide = each[each["model"] == "linear, one for each"].sort_values("mase", ascending=False)
print(wide.head(4).round(1).to_string(index=False))
print("median over countries:", each.groupby("model")["mase"].median().round(2).to_dict())
assert wide["mase"].iloc[0] > 20 * wide["mase"].iloc[1]
lost = board.forecasts[board.forecasts["unique_id"] == wide["unique_id"].iloc[0]].tail(5)
print(lost[["unique_id", "ds", "y", "linear, one for each"]].to_string(index=False, float_format="%.2f"))

# %% [markdown]
# A single one, and it is no country but a mean over many! There the recursive forecast exploded: some fifty values are few for
# a regression with eight features, and a small error, fed back, grew from step to step. For the typical country, the median, a
# model of its own is as good as any. This is a lesson in metrics too: a mean sees disasters, a median does not. Look at both.
#
# The global models have thousands of rows and do not explode. And AutoETS, with two or three numbers a country, is safe and
# good: short, smooth, yearly series are its home. Global models pay where series are many, alike and have columns of their
# own.
#
# ## Why this forecast? Shapley values
#
# A forecast is a team effort of the features. How to share it out fairly? Shapley: the share of a feature is what it adds, on
# average over all orders in which features may join. With $v(S)$ the forecast that knows only the features in $S$, and $p$
# features:
#
# $$\phi_j = \sum_{S \subseteq \{1..p\} \setminus j} \frac{|S|! \, (p - |S| - 1)!}{p!} \, \big( v(S \cup j) - v(S) \big).$$
#
# The shares add up to the forecast less its mean. For a linear model where features that are not known take their mean
# $\bar x$, the sum collapses:
#
# $$\phi_j = \beta_j \, (x_j - \bar x_j).$$

# %%
explained = LinearModel(**plain).fit(frame).explain(1).set_index("component")["value"]
shares = beta[1:] * (np.array([y[-1], y[-2], y[-12]]) - X[:, 1:].mean(axis=0))
np.testing.assert_allclose(explained[["lag_1", "lag_2", "lag_12"]], shares)
np.testing.assert_allclose(explained["base"], target.mean())
np.testing.assert_allclose(explained.sum(), beta @ [1, y[-1], y[-2], y[-12]])
print(explained.round(3).to_string())

# %% [markdown]
# For trees there is an exact algorithm, and `explain` uses it: the values are known in the literature as **SHAP**. Do they
# tell the truth? We ask where the truth is known: in the generator one unit of price takes 6 from `y`, and a holiday adds 20.

# %%
made = datasets.load("generated", split="train")
rest = datasets.load("generated", split="test")
roles = {"future": ["price", "holiday", "promotion"], "past": ["visits", "stock"], "static": ["size", "region"]}
trees = LightGBM(horizon=14, differences=None, n_estimators=TREES).fit(made, columns=roles)
future = rest[["unique_id", "ds", *roles["future"]]]
parts = trees.explain(14, future=future).pivot(index=["unique_id", "ds"], columns="component", values="value")
forecast = trees.predict(future=future)
np.testing.assert_allclose(parts.sum(axis=1).to_numpy(), forecast["LightGBM"], rtol=1e-5)

price = future["price"].to_numpy()
slope, level = np.polyfit(price, parts["price"].to_numpy(), 1)
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(price, parts["price"], "o", markersize=4, label="SHAP value of the price")
axes.plot(np.sort(price), -6 * (np.sort(price) - made["price"].mean()), "--", label="truth: -6 a unit")
axes.set(xlabel="price", ylabel="what it adds to the forecast")
_ = axes.legend()
print(f"slope of the SHAP values: {slope:.1f}")
assert slope < -3

# %% [markdown]
# The trees found the direction and most of the size. They shrink a little: every tree takes a small step, and steps of a
# stair are not a line. `importance` sums up over the whole data:

# %%
print(trees.importance().head(6).round(3).to_string(index=False))

# %% [markdown]
# ## Exercises
#
# 1. What does the regression with the leaky window do with its lags? Why?
# 2. `Regression("ridge")` takes regressors of scikit-learn by name, or any of your own. Try `"ridge"` and `"random_forest"`
#    on El Niño.
# 3. Compute Shapley values by the full sum over subsets for the linear model with three lags, and show that they are
#    $\beta_j (x_j - \bar x_j)$.
# 4. What does `strategy="blocks"` do? Compare `block_size=3` with the others.

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# The mean of three neighbours is nearly the value itself. The regression gives it all the weight and its lags none: it has
# stopped forecasting.

# %%
leaky = np.column_stack([X, centred])
weights = np.linalg.lstsq(leaky[early], target[early], rcond=None)[0]
print(dict(zip(["constant", "lag 1", "lag 2", "lag 12", "window"], weights.round(2).tolist(), strict=True)))
assert abs(weights[-1] - 1) < 0.1
assert np.abs(weights[1:4]).max() < 0.1

# %% [markdown]
# ### Solution 2

# %%
others = [Regression(name, lags=24, alias=name) for name in ("ridge", "random_forest")]
more = cross_validate([*others, SeasonalNaive()], frame, horizon=horizon, n_windows=2 if SHORT else 8, refit=False)
ranked = score(more, metrics=["mae"]).sort_values("mae")
print(ranked.round(3).to_string(index=False))
assert SHORT or ranked["model"].tolist() == ["random_forest", "ridge", "SeasonalNaive"]

# %% [markdown]
# Both are better than last year's value here, the forest most. Only a backtest could tell.
#
# ### Solution 3

# %%
from itertools import combinations
from math import factorial

x, mean = np.array([y[-1], y[-2], y[-12]]), X[:, 1:].mean(axis=0)


def v(known):
    """The forecast that knows some features; the others are at their mean."""
    return beta[0] + sum(beta[1 + j] * (x[j] if j in known else mean[j]) for j in range(3))


shapley = np.zeros(3)
for j in range(3):
    rest_of_them = [k for k in range(3) if k != j]
    for size in range(3):
        for S in combinations(rest_of_them, size):
            shapley[j] += factorial(size) * factorial(2 - size) / factorial(3) * (v({*S, j}) - v(S))
np.testing.assert_allclose(shapley, shares)
print("Shapley values by all subsets:", shapley.round(3))

# %% [markdown]
# ### Solution 4
#
# Direct for the first steps of a block, then recursive from block to block: fewer regressors than direct, fewer errors fed
# back than recursive.

# %%
blocks = [
    LinearModel(lags=24, alias="recursive"),
    LinearModel(lags=24, strategy="blocks", block_size=3, alias="blocks of 3"),
    LinearModel(lags=24, strategy="direct", alias="direct"),
]
result = cross_validate(blocks, frame, horizon=horizon, n_windows=4 if SHORT else 20, refit=False)
print(score(result, metrics=["mae"]).sort_values("mae").round(4).to_string(index=False))

# %% [markdown]
# ## Reference
#
# - `LinearModel`, `LightGBM`, `XGBoost`, `CatBoost`, `GradientBoosting`, `Regression`
# - `cross_validate`, `score`, `compare`, `plot`, `datasets.generate`
#
# To read on: Ben Taieb & Hyndman (2014), *A review and comparison of strategies for multi-step ahead forecasting*; Lundberg &
# Lee (2017), *A unified approach to interpreting model predictions*; Lundberg et al. (2020), *From local explanations to
# global understanding* (trees).
