# %% [markdown]
# # 11 · Prophet and NeuralProphet
#
# Both models forecast a sum of interpretable components: trend, seasonality, holidays and the effects of covariates.
# Prophet is fitted by an optimizer. NeuralProphet is a neural network that also uses the most recent values
# (autoregression).
#
# **After this you can**
#
# - compute a Prophet forecast by hand from its trend and seasonality
# - explain what a prior is, and why most slope changes of Prophet's trend are close to zero
# - decide when seasonality should be multiplicative, and declare an event
# - explain what the lags of NeuralProphet contribute, compute it by hand, and measure up to which horizon they help

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
# ## A sum of components
#
# Prophet (Taylor and Letham 2018) models a series as
#
# $$y(t) = g(t) + s(t) + h(t) + \varepsilon(t),$$
#
# with trend $g$, seasonality $s$, the effects $h$ of holidays, events and covariates, and noise $\varepsilon$. No
# component uses earlier values: each depends only on time or on future covariates. So missing observations are no
# problem, and each component can be plotted by itself.

# %%
passengers = datasets.load("air_passengers")
model = Prophet(horizon=24, n_changepoints=5).fit(passengers)
plot_components(model.explain())

# %% [markdown]
# ## The trend
#
# Time is scaled to run from 0 at the first observation to 1 at the last, and the values are divided by the largest
# absolute value. The trend is a line with slope $k$ and offset $m$. At each **changepoint** $c_j$ the slope changes by
# $\delta_j$:
#
# $$g(t) = m + k \, t + \sum_j \delta_j \, (t - c_j)_+, \qquad (x)_+ = \max(x, 0).$$
#
# The changepoints are evenly spaced over the first 80 % of the history. Let us compute the trend over the forecast
# horizon.

# %%
parameters = model.parameters().iloc[0]
dates = passengers["ds"].to_numpy()
future_dates = model.future_frame()["ds"].to_numpy()


def scaled_time(times):
    """Time, 0 at the first observation and 1 at the last."""
    return (times - dates[0]) / (dates[-1] - dates[0])


n_rows = int(0.8 * len(dates))
changepoint_rows = np.linspace(0, n_rows - 1, 5 + 1).round().astype(int)[1:]
c = scaled_time(dates[changepoint_rows])
delta = parameters[[f"change_{j}" for j in range(1, 6)]].to_numpy(dtype=float)
t = scaled_time(future_dates)
g = parameters["offset"] + parameters["rate"] * t + np.maximum(t[:, None] - c, 0) @ delta

components = model.explain().pivot(index="ds", columns="component", values="value")
np.testing.assert_allclose(parameters["scale"] * g, components["trend"])
print("slope changes:", delta.round(3))

# %% [markdown]
# ## Seasonality as a Fourier series
#
# A seasonal component with period $P$ is a sum of sines and cosines, a **Fourier series**. Here $d$ is the time in
# days, and $N$ is the **order**:
#
# $$s(d) = \sum_{n=1}^{N} a_n \sin \frac{2 \pi n d}{P} + b_n \cos \frac{2 \pi n d}{P}.$$
#
# A small order gives a smooth curve, a large order can fit any shape. By default yearly seasonality has $P = 365.25$
# and order 10.

# %%
d = (future_dates - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
n = np.arange(1, 11)
angle = 2 * np.pi * n * d[:, None] / 365.25
a = parameters[[f"yearly_sin_{order}" for order in n]].to_numpy(dtype=float)
b = parameters[[f"yearly_cos_{order}" for order in n]].to_numpy(dtype=float)
s = np.sin(angle) @ a + np.cos(angle) @ b

np.testing.assert_allclose(parameters["scale"] * s, components["yearly"])
np.testing.assert_allclose(parameters["scale"] * (g + s), model.predict()["Prophet"])
print("trend and seasonality computed by hand: equal to the library's forecast")

# %% [markdown]
# ## Priors: how flexible is the trend?
#
# With many changepoints the trend could fit the noise. A **prior** states what we assume before seeing the data: most
# slope changes are close to 0, and few are large. This is a Laplace distribution with scale $\tau$, the
# `changepoint_prior_scale`. Prophet uses the most probable parameters given data and prior (the **maximum a posteriori
# estimate**), which minimize
#
# $$\frac{1}{2 \sigma^2} \sum_t \bigl( y(t) - g(t) - s(t) \bigr)^2 + n \log \sigma + 2 \sigma^2
# + \frac{1}{\tau} \sum_j |\delta_j| + \sum_i \frac{\beta_i^2}{2 \sigma_i^2}.$$
#
# where $n$ is the number of observations. The last sum is over slope and offset (both with $\sigma_i = 5$) and the
# seasonal coefficients (`seasonality_prior_scale`, 10). Without changepoints and for a given $\sigma$ the minimum has a
# closed form, that of **ridge regression**, where $X$ is the design matrix and $\Lambda$ the diagonal matrix of the
# $1 / \sigma_i^2$:
#
# $$\hat \beta = (X^\top X + \sigma^2 \Lambda)^{-1} X^\top y.$$

# %%
linear = Prophet(n_changepoints=0).fit(passengers)
parameters = linear.parameters().iloc[0]
y = passengers["y"].to_numpy() / parameters["scale"]
d = (dates - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
angle = 2 * np.pi * n * d[:, None] / 365.25
X = np.column_stack([scaled_time(dates), np.ones(len(y)), np.sin(angle), np.cos(angle)])
Lambda = np.diag([1 / 5**2] * 2 + [1 / 10**2] * 20)
beta = np.linalg.solve(X.T @ X + parameters["deviation"] ** 2 * Lambda, X.T @ y)
names = ["rate", "offset", *(f"yearly_sin_{order}" for order in n), *(f"yearly_cos_{order}" for order in n)]
np.testing.assert_allclose(beta, parameters[names].to_numpy(dtype=float), atol=1e-6)
print(f"slope by hand {beta[0]:.4f}, by the library {parameters['rate']:.4f}")

# %% [markdown]
# Now we vary the scale $\tau$. If it is small, the trend is a straight line. If it is large, the trend follows every
# change of the data, and its last slope is extrapolated.

# %%
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.plot(dates, passengers["y"], color="0.75", label="passengers")
for tau in (0.001, 0.05, 5.0):
    model = Prophet(horizon=36, changepoint_prior_scale=tau).fit(passengers)
    trend = pd.concat([model.components(), model.explain()]).query("component == 'trend'")
    axes.plot(trend["ds"], trend["value"], label=f"trend, tau = {tau}")
axes.set(ylabel="passengers (thousands)")
_ = axes.legend()

# %% [markdown]
# ## Multiplicative seasonality
#
# The seasonal peaks of the passenger series grow with the trend. Seasonality is then proportional to the trend:
# $y = g \, (1 + s) + \varepsilon$.

# %%
candidates = [
    Prophet(alias="additive"),
    Prophet(alias="multiplicative", seasonality_mode="multiplicative"),
]
folds = cross_validate(candidates, passengers, horizon=12, n_windows=5, step_size=12)
errors = score(folds, metrics=["mae"]).set_index("model")["mae"]
print(errors.round(1).to_string())
assert errors["multiplicative"] < errors["additive"]

# %%
best = Prophet(horizon=24, seasonality_mode="multiplicative").fit(passengers)
plot(passengers, best.predict(level=[80, 95]), max_history=60)

# %% [markdown]
# The prediction intervals account for two sources of uncertainty: the noise, and future trend changes, which are
# assumed to be as frequent and as large as those of the past. Only the second grows with the horizon.
#
# ## Events
#
# An event is declared as data: a name, its dates and, if the effect lasts longer than a day, a window. In this
# simulated series a shop has a sale twice a year, which raises sales by 40 on the day itself and by 20 on the next day.
# Does Prophet estimate these effects?

# %%
random = np.random.default_rng(0)
days = pd.date_range("2021-01-01", periods=900)
sales = 100 + 0.02 * np.arange(900) + 8 * np.sin(2 * np.pi * np.arange(900) / 7) + random.normal(0, 3, 900)
sale_dates = ["2021-03-10", "2021-10-10", "2022-03-10", "2022-10-10", "2023-03-10", "2023-07-01"]
for date in pd.to_datetime(sale_dates[:-1]):
    row = days.get_loc(date)
    sales[row : row + 2] += [40, 20]
shop = pd.DataFrame({"unique_id": "shop", "ds": days, "y": sales})
events = {"sale": {"dates": sale_dates, "upper_window": 1}}
model = Prophet(horizon=30, events=events, yearly_seasonality=False).fit(shop)
components = model.explain().pivot(index="ds", columns="component", values="value")
print(components.loc["2023-06-30":"2023-07-03", "sale"].round(1).to_string())
np.testing.assert_allclose(components.loc["2023-07-01":"2023-07-02", "sale"], [40, 20], atol=5)

# %% [markdown]
# `holidays="DE"` adds the public holidays of a country in the same way. A future covariate becomes a regressor with
# `fit(frame, columns={"future": [...]})`.
#
# ## Autocorrelated residuals
#
# Prophet does not use the most recent value. This loses accuracy where deviations from the mean persist. The sea
# surface temperature of the eastern Pacific is such a series: an El Niño lasts for months.

# %%
sea = datasets.load("elnino")
model = Prophet(horizon=12, growth="flat").fit(sea)
fitted_values = model.components().groupby("ds")["value"].sum()
residuals = sea["y"].to_numpy() - fitted_values.to_numpy()
autocorrelation = np.corrcoef(residuals[1:], residuals[:-1])[0, 1]
print(f"autocorrelation of the residuals at lag 1: {autocorrelation:.2f}")
assert autocorrelation > 0.8

figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
axes.axhline(0, color="0.7")
_ = axes.plot(sea["ds"], residuals)
_ = axes.set(ylabel="residual of Prophet (°C)")

# %% [markdown]
# ## NeuralProphet adds autoregression
#
# NeuralProphet (Triebe et al. 2021) has the same components and one more. Let $b(t) = g(t) + s(t) + h(t)$ be the sum of
# all components that depend on time alone. A linear map of the last $p$ deviations from it (**AR-Net**) predicts the
# deviation $k$ steps ahead:
#
# $$\hat y_{T+k} = b(T+k) + \sum_{j=1}^{p} w_{kj} \, \bigl( y_{T-p+j} - b(T-p+j) \bigr).$$
#
# The weights $w$ are learned by gradient descent together with all other coefficients, on all series at once. The
# deviation of a missing value is set to 0.

# %%
p, horizon = 12, 6
model = NeuralProphet(horizon=horizon, input_size=p, growth="flat", max_steps=STEPS).fit(sea)
plot_components(model.explain())

# %% [markdown]
# Now the same by hand. `network_` is a torch module, and the weights of its `lag_layers` have one row per step and
# output (here 15 quantiles; the median is the forecast). The components that depend on time alone are the same for
# every forecast origin. So forecasts from 12 and from 6 months before the end give $b$ for the last 12 months.

# %%
body = model.network_.body
w = body.lag_layers.weight.detach().numpy().reshape(horizon, -1, p)[:, body.location_index]
time_components = []
for months_back in (12, 6):
    components = model.explain(frame=sea.iloc[:-months_back]).query("component != 'ar'")
    time_components.append(components.groupby("ds")["value"].sum().to_numpy())
deviations = sea["y"].to_numpy()[-p:] - np.concatenate(time_components)
by_hand = w @ deviations

lag_effects = model.explain().query("component == 'ar'")["value"]
np.testing.assert_allclose(by_hand, lag_effects, atol=1e-4)
print("lag effects:", by_hand.round(3))

# %%
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
for k in (0, 2, 5):
    axes.plot(np.arange(-p + 1, 1), w[k], "o-", markersize=4, label=f"months ahead: {k + 1}")
axes.axhline(0, color="0.7")
axes.set(xlabel="month of the input window (0: the last month)", ylabel="weight")
_ = axes.legend()

# %% [markdown]
# The last month has the largest weight, and this weight decreases with the horizon. How much do the lags improve the
# forecasts?

# %%
errors = {}
for horizon in (1, 3, 6):
    pair = [Prophet(growth="flat"), NeuralProphet(input_size=p, growth="flat", max_steps=STEPS)]
    folds = cross_validate(pair, sea, horizon=horizon, n_windows=40, step_size=3)
    errors[f"{horizon} ahead"] = score(folds, metrics=["mae"]).set_index("model")["mae"]
errors = pd.DataFrame(errors)
print(errors.round(2).to_string())
assert (errors.loc["NeuralProphet", ["1 ahead", "3 ahead"]] < errors.loc["Prophet", ["1 ahead", "3 ahead"]]).all()

# %% [markdown]
# One month ahead the lags halve the error. Half a year ahead their effect has almost vanished, and the forecast is the
# sum of the components that depend on time. This holds for every stationary autoregression.
#
# ## Many series, and components per series
#
# One network is trained on all series together, each scaled separately. `local=["trend"]` gives each series its own
# trend in addition to the common one, and `local=["trend", "seasons"]` also its own seasonality. A series that was not
# in the training data gets the mean of the others.

# %%
slopes = {"up": 0.08, "down": -0.08}
two = pd.concat([
    pd.DataFrame({"unique_id": name, "ds": days[:300],
                  "y": 50 + slope * np.arange(300) + random.normal(0, 1, 300)}) for name, slope in slopes.items()
])  # fmt: skip
for local in ((), ("trend",)):
    model = NeuralProphet(
        horizon=30, input_size=0, n_changepoints=0, local=local, max_steps=200, learning_rate=0.03,
    ).fit(two)  # fmt: skip
    forecasts = model.predict().groupby("unique_id")["NeuralProphet"]
    daily_slope = forecasts.agg(lambda values: values.iloc[-1] - values.iloc[0]) / 29
    print(f"local={local}: daily slopes {daily_slope.round(3).to_dict()}")
assert daily_slope["up"] > 0.04
assert daily_slope["down"] < -0.04

# %% [markdown]
# ## Exercises
#
# 1. By default, the trend of `Prophet` on `sea` has changepoints. Is `growth="flat"` more accurate 6 months ahead? Why?
# 2. `lag_prior_scale` puts a Laplace prior on the weights of the lags. Fit with 0.01. What happens to the weights of
#    older lags?
# 3. Add 5 degrees to the whole history of `sea` in `predict(frame=...)`. Which components change, and which do not?
#
# ## Solutions
#
# ### Solution 1

# %%
pair = [Prophet(alias="linear"), Prophet(growth="flat", alias="flat")]
folds = cross_validate(pair, sea, horizon=6, n_windows=40, step_size=3)
errors = score(folds, metrics=["mae"]).set_index("model")["mae"]
print(errors.round(3).to_string())
assert errors["flat"] < errors["linear"]

# %% [markdown]
# Yes. At the end of the history an El Niño looks like a change of the trend, which the linear trend extrapolates.
#
# ### Solution 2

# %%
model = NeuralProphet(horizon=6, input_size=p, growth="flat", max_steps=STEPS)
older_weights = []
for scale in (None, 0.01):
    body = model.clone(lag_prior_scale=scale).fit(sea).network_.body
    weights = body.lag_layers.weight.detach().numpy().reshape(6, -1, p)[:, body.location_index]
    older_weights.append(np.abs(weights[:, :-2]).sum())
    print(f"prior scale {scale}: absolute sum of the weights of lags above 2: {older_weights[-1]:.2f}")
assert older_weights[1] < older_weights[0]

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
# Only the lag effects change: trend and seasonality were estimated in the fit and depend on time alone.
#
# ## Reference
#
# - `Prophet`, `Prophet.parameters`, `Prophet.components`, `Prophet.explain`
# - `NeuralProphet`, `NeuralProphet.explain`, `NeuralProphet.fine_tune`
# - `plotting.plot_components`, `cross_validate`, `score`, `plot`
#
# Taylor, Letham (2018), *Forecasting at Scale*. Triebe, Hewamalage, Pilyugina, Laptev, Bergmeir, Rajagopal (2021),
# *NeuralProphet: Explainable Forecasting at Scale*.
