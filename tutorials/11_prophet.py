# %% [markdown]
# # 11 · Prophet and NeuralProphet
#
# Both forecast by adding up parts that can be looked at: a trend, seasons, holidays, effects. The first is fitted by an
# optimiser, the second is a network and also listens to the last values.
#
# **After this you can**
#
# - compute a Prophet forecast by hand, trend, seasons and all
# - say what a prior is, and why Prophet's trend bends only where it must
# - tell when a season has to multiply, and how an event is declared
# - say what the lags of NeuralProphet add, compute it by hand, and see how far ahead it lasts

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from deepforecast import NeuralProphet, Prophet, cross_validate, datasets, plot, score
from deepforecast.plotting import plot_components

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training
STEPS = 60 if SHORT else 500

# %% [markdown]
# ## A sum of parts
#
# Prophet (Taylor and Letham 2018) writes a series as
#
# $$y(t) = g(t) + s(t) + h(t) + \varepsilon(t),$$
#
# with a trend $g$, seasons $s$, holidays and other effects $h$, and noise. No component uses earlier values: each depends
# on time alone, or on future covariates. So missing rows do no harm, and each component can be plotted.

# %%
passengers = datasets.load("air_passengers")
model = Prophet(horizon=24, n_changepoints=5).fit(passengers)
plot_components(model.explain())

# %% [markdown]
# ## The trend
#
# Time runs from 0 at the first value to 1 at the last, and values are divided by the largest. The trend is a line with slope
# $k$ and offset $m$. At each **changepoint** $c_j$ the slope may change by $\delta_j$:
#
# $$g(t) = m + k \, t + \sum_j \delta_j \, (t - c_j)_+, \qquad (x)_+ = \max(x, 0).$$
#
# Changepoints lie evenly in the first 80 % of the history. Let us compute the trend of the steps ahead.

# %%
numbers = model.parameters().iloc[0]
stamps = passengers["ds"].to_numpy()
ahead = model.future_frame()["ds"].to_numpy()


def from_0_to_1(times):
    return (times - stamps[0]) / (stamps[-1] - stamps[0])


rows = int(0.8 * len(stamps))
places = np.linspace(0, rows - 1, 5 + 1).round().astype(int)[1:]
c = from_0_to_1(stamps[places])
delta = numbers[[f"change_{j}" for j in range(1, 6)]].to_numpy(dtype=float)
t = from_0_to_1(ahead)
g = numbers["offset"] + numbers["rate"] * t + np.maximum(t[:, None] - c, 0) @ delta

parts = model.explain().pivot(index="ds", columns="component", values="value")
np.testing.assert_allclose(numbers["scale"] * g, parts["trend"])
print("changes of slope:", delta.round(3))

# %% [markdown]
# ## Seasons are waves
#
# A season with period $P$ is a sum of sines and cosines (a **Fourier series**). Here $d$ is the day, and $N$ the **order**:
#
# $$s(d) = \sum_{n=1}^{N} a_n \sin \frac{2 \pi n d}{P} + b_n \cos \frac{2 \pi n d}{P}.$$
#
# A small order is smooth, a large one can have any shape. The year has $P = 365.25$ and order 10 unless you say otherwise.

# %%
d = (ahead - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
n = np.arange(1, 11)
angle = 2 * np.pi * n * d[:, None] / 365.25
a = numbers[[f"yearly_sin_{one}" for one in n]].to_numpy(dtype=float)
b = numbers[[f"yearly_cos_{one}" for one in n]].to_numpy(dtype=float)
s = np.sin(angle) @ a + np.cos(angle) @ b

np.testing.assert_allclose(numbers["scale"] * s, parts["yearly"])
np.testing.assert_allclose(numbers["scale"] * (g + s), model.predict()["Prophet"])
print("trend and season by hand: the library's forecast")

# %% [markdown]
# ## Priors: how much may it bend?
#
# With many changepoints a trend could follow every wiggle. A **prior** says what we believe before we see the data: most
# changes are 0, and few are large. That is a Laplace distribution of width $\tau$, the `changepoint_prior_scale`. Prophet takes
# the likeliest parameters, given data and prior: the largest posterior, which is the least of
#
# $$\frac{1}{2 \sigma^2} \sum_t \bigl( y(t) - g(t) - s(t) \bigr)^2 + n \log \sigma + 2 \sigma^2
# + \frac{1}{\tau} \sum_j |\delta_j| + \sum_i \frac{\beta_i^2}{2 \sigma_i^2}.$$
#
# The last sum is over slope, offset (both $\sigma_i = 5$) and the coefficients of seasons (`seasonality_prior_scale`, 10).
# Without changepoints and for a given $\sigma$ the minimum is a formula, that of **ridge regression**, with $X$ all columns
# and $\Lambda$ the diagonal of the $1 / \sigma_i^2$:
#
# $$\hat \beta = (X^\top X + \sigma^2 \Lambda)^{-1} X^\top y.$$

# %%
straight = Prophet(n_changepoints=0).fit(passengers)
numbers = straight.parameters().iloc[0]
y = passengers["y"].to_numpy() / numbers["scale"]
d = (stamps - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
angle = 2 * np.pi * n * d[:, None] / 365.25
X = np.column_stack([from_0_to_1(stamps), np.ones(len(y)), np.sin(angle), np.cos(angle)])
Lambda = np.diag([1 / 5**2] * 2 + [1 / 10**2] * 20)
beta = np.linalg.solve(X.T @ X + numbers["deviation"] ** 2 * Lambda, X.T @ y)
names = ["rate", "offset", *(f"yearly_sin_{one}" for one in n), *(f"yearly_cos_{one}" for one in n)]
np.testing.assert_allclose(beta, numbers[names].to_numpy(dtype=float), atol=1e-6)
print(f"slope by hand {beta[0]:.4f}, by the library {numbers['rate']:.4f}")

# %% [markdown]
# Now the width $\tau$. Small: a straight line. Large: every turn is followed, and the last one goes on for ever.

# %%
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.plot(stamps, passengers["y"], color="0.75", label="passengers")
for tau in (0.001, 0.05, 5.0):
    bent = Prophet(horizon=36, changepoint_prior_scale=tau).fit(passengers)
    line = pd.concat([bent.components(), bent.explain()]).query("component == 'trend'")
    axes.plot(line["ds"], line["value"], label=f"trend, tau = {tau}")
_ = axes.legend()

# %% [markdown]
# ## Seasons that multiply
#
# The passengers' summers grow with the trend. Then the season is a share of it: $y = g \, (1 + s) + \varepsilon$.

# %%
tried = [
    Prophet(alias="added"),
    Prophet(alias="multiplied", seasonality_mode="multiplicative"),
]
found = cross_validate(tried, passengers, horizon=12, n_windows=5, step_size=12)
errors = score(found, metrics=["mae"]).set_index("model")["mae"]
print(errors.round(1).to_string())
assert errors["multiplied"] < errors["added"]

# %%
best = Prophet(horizon=24, seasonality_mode="multiplicative").fit(passengers)
plot(passengers, best.predict(level=[80, 95]), max_history=60)

# %% [markdown]
# The intervals have two sources: noise, and a trend that may change as often and as much as in the past. Only the second
# grows.
#
# ## Events
#
# An event is data, not code: a name, its dates and, if it reaches further, a window. Here a shop has a sale twice a year; the
# day itself brings 40, the next one 20. We know it, as we make the series; does Prophet find it?

# %%
random = np.random.default_rng(0)
days = pd.date_range("2021-01-01", periods=900)
sales = 100 + 0.02 * np.arange(900) + 8 * np.sin(2 * np.pi * np.arange(900) / 7) + random.normal(0, 3, 900)
dates = ["2021-03-10", "2021-10-10", "2022-03-10", "2022-10-10", "2023-03-10", "2023-07-01"]
for one in pd.to_datetime(dates[:-1]):
    at = days.get_loc(one)
    sales[at : at + 2] += [40, 20]
shop = pd.DataFrame({"unique_id": "shop", "ds": days, "y": sales})
events = {"sale": {"dates": dates, "upper_window": 1}}
model = Prophet(horizon=30, events=events, yearly_seasonality=False).fit(shop)
parts = model.explain().pivot(index="ds", columns="component", values="value")
print(parts.loc["2023-06-30":"2023-07-03", "sale"].round(1).to_string())
np.testing.assert_allclose(parts.loc["2023-07-01":"2023-07-02", "sale"], [40, 20], atol=5)

# %% [markdown]
# `holidays="DE"` declares a country's holidays in the same way, and a future covariate becomes a regressor by
# `fit(frame, columns={"future": [...]})`.
#
# ## What Prophet leaves over
#
# Prophet never looks at the last value. That is a loss where deviations last. The surface of the eastern Pacific is such a
# series: an El Niño stays for months.

# %%
sea = datasets.load("elnino")
model = Prophet(horizon=12, growth="flat").fit(sea)
fitted = model.components().groupby("ds")["value"].sum()
left = sea["y"].to_numpy() - fitted.to_numpy()
together = np.corrcoef(left[1:], left[:-1])[0, 1]
print(f"correlation of what is left over with that of the month before: {together:.2f}")
assert together > 0.8

figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
axes.axhline(0, color="0.7")
_ = axes.plot(sea["ds"], left)
_ = axes.set(ylabel="left over by Prophet, degrees")

# %% [markdown]
# ## NeuralProphet: add the lags
#
# NeuralProphet (Triebe et al. 2021) keeps the parts and adds one. Let $b(t) = g(t) + s(t) + h(t)$ be all that depends on time.
# The last $p$ values say how far the series was from it, and a linear map (**AR-Net**) says what of this is left $k$ steps on:
#
# $$\hat y_{T+k} = b(T+k) + \sum_{j=1}^{p} w_{kj} \, \bigl( y_{T-p+j} - b(T-p+j) \bigr).$$
#
# The weights $w$ are learned by gradients, with all other coefficients, for all series together. A missing value counts as
# expected: its bracket is 0.

# %%
p, horizon = 12, 6
model = NeuralProphet(horizon=horizon, input_size=p, growth="flat", max_steps=STEPS).fit(sea)
plot_components(model.explain())

# %% [markdown]
# The formula by hand. `network_` is a torch module, and its `lags` hold the weights: of each step a row for each number that
# the network says of it (here 15 quantiles; the median is the forecast). What depends on time alone is the same from wherever we
# look, so the library tells us $b$ at the last 12 months if we ask it from a year before.

# %%
body = model.network_.body
w = body.lags.weight.detach().numpy().reshape(horizon, -1, p)[:, body.place]
base = []
for begin in (12, 6):
    parts = model.explain(frame=sea.iloc[:-begin]).query("component != 'ar'")
    base.append(parts.groupby("ds")["value"].sum().to_numpy())
away = sea["y"].to_numpy()[-p:] - np.concatenate(base)
by_hand = w @ away

added = model.explain().query("component == 'ar'")["value"]
np.testing.assert_allclose(by_hand, added, atol=1e-4)
print("what the lags add:", by_hand.round(3))

# %%
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
for k in (0, 2, 5):
    axes.plot(np.arange(-p + 1, 1), w[k], "o-", markersize=4, label=f"months ahead: {k + 1}")
axes.axhline(0, color="0.7")
axes.set(xlabel="lag (0: the last month)", ylabel="weight")
_ = axes.legend()

# %% [markdown]
# The last month counts most, and the more steps ahead, the less. How much does it help?

# %%
errors = {}
for horizon in (1, 3, 6):
    pair = [Prophet(growth="flat"), NeuralProphet(input_size=p, growth="flat", max_steps=STEPS)]
    found = cross_validate(pair, sea, horizon=horizon, n_windows=40, step_size=3)
    errors[f"{horizon} ahead"] = score(found, metrics=["mae"]).set_index("model")["mae"]
errors = pd.DataFrame(errors)
print(errors.round(2).to_string())
assert (errors.loc["NeuralProphet", ["1 ahead", "3 ahead"]] < errors.loc["Prophet", ["1 ahead", "3 ahead"]]).all()

# %% [markdown]
# One month ahead the lags halve the error. Half a year ahead there is little left of them, and the parts of time are all there
# is. So it is with every autoregression.
#
# ## Many series, and some parts of their own
#
# One network learns all series together, each on its own scale. `local=["trend"]` gives each its own trend in addition
# to the common one, and `local=["trend", "seasons"]` a season too. A series not seen in the fit gets the mean of the others.

# %%
slopes = {"up": 0.08, "down": -0.08}
two = pd.concat([
    pd.DataFrame({"unique_id": name, "ds": days[:300],
                  "y": 50 + slope * np.arange(300) + random.normal(0, 1, 300)}) for name, slope in slopes.items()
])  # fmt: skip
for local in ((), ("trend",)):
    model = NeuralProphet(horizon=30, input_size=0, n_changepoints=0, local=local, max_steps=200, learning_rate=0.03).fit(two)
    rise = model.predict().groupby("unique_id")["NeuralProphet"].agg(lambda one: one.iloc[-1] - one.iloc[0]) / 29
    print(f"local={local}: slopes a day {rise.round(3).to_dict()}")
assert rise["up"] > 0.04
assert rise["down"] < -0.04

# %% [markdown]
# ## Exercises
#
# 1. The default trend of `Prophet` on `sea` has changepoints. Is `growth="flat"` better at 6 months ahead? Why?
# 2. `lag_prior_scale` puts a Laplace prior on the weights of lags. Fit with 0.01. What happens to the weights of old lags?
# 3. Shift the whole history of `sea` up by 5 degrees in `predict(frame=...)`. Which components change, and which do not?
#
# ## Solutions
#
# ### Solution 1

# %%
pair = [Prophet(alias="linear"), Prophet(growth="flat", alias="flat")]
found = cross_validate(pair, sea, horizon=6, n_windows=40, step_size=3)
errors = score(found, metrics=["mae"]).set_index("model")["mae"]
print(errors.round(3).to_string())
assert errors["flat"] < errors["linear"]

# %% [markdown]
# Yes: an El Niño looks like a turn of the trend, and a line would carry it on.
#
# ### Solution 2

# %%
model = NeuralProphet(horizon=6, input_size=p, growth="flat", max_steps=STEPS)
old = []
for prior in (None, 0.01):
    body = model.clone(lag_prior_scale=prior).fit(sea).network_.body
    weights = body.lags.weight.detach().numpy().reshape(6, -1, p)[:, body.place]
    old.append(np.abs(weights[:, :-2]).sum())
    print(f"prior {prior}: size of the weights older than two months {old[-1]:.2f}")
assert old[1] < old[0]

# %% [markdown]
# ### Solution 3

# %%
fitted = model.fit(sea)
before, after = (
    fitted.explain(frame=frame).groupby("component")["value"].mean() for frame in (sea, sea.assign(y=sea["y"] + 5))
)
print((after - before).round(2).to_string())
np.testing.assert_allclose(before[["trend", "yearly"]], after[["trend", "yearly"]], rtol=1e-5)
assert abs(after["ar"] - before["ar"]) > 0.1

# %% [markdown]
# The lags alone: trend and season were learned in the fit and depend on time.
#
# ## Reference
#
# - `Prophet`, `Prophet.parameters`, `Prophet.components`, `Prophet.explain`
# - `NeuralProphet`, `NeuralProphet.explain`, `NeuralProphet.fine_tune`
# - `plotting.plot_components`, `cross_validate`, `score`, `plot`
#
# Taylor, Letham (2018), *Forecasting at Scale*. Triebe, Hewamalage, Pilyugina, Laptev, Bergmeir, Rajagopal (2021),
# *NeuralProphet: Explainable Forecasting at Scale*.
