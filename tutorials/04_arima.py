# %% [markdown]
# # 04 · ARIMA, unit roots, ACF and PACF, AutoARIMA, future covariates
#
# Exponential smoothing describes a series by its level, trend and seasonality. ARIMA describes how each value depends
# on the values before it. The two classes of models overlap, and neither contains the other.
#
# **After this you can**
#
# - define stationarity, and test for a unit root with two tests
# - compute the ACF and the PACF, and use them to choose the order of a model
# - compute the forecasts of an AR model and of a seasonal ARIMA by hand, and reproduce those of the library
# - select an order with AutoARIMA, and explain how it searches
# - add future covariates, and interpret their effects

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.tsa.stattools import acf, pacf

from deepforecast import ARIMA, AutoARIMA, AutoETS, SeasonalNaive, cross_validate, datasets, errors, plot, score
from deepforecast.kernels import unit_roots
from deepforecast.plotting import plot_residuals

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

# %% [markdown]
# ## Stationarity
#
# A series is **stationary** if its mean, its variance and its autocovariances do not change over time. Take independent
# noise $\varepsilon_t$ with mean 0, and two series generated from it:
#
# $$\text{AR(1):}\;\; y_t = 0.8 \, y_{t-1} + \varepsilon_t \qquad\qquad
# \text{random walk:}\;\; y_t = y_{t-1} + \varepsilon_t$$
#
# They differ only in the coefficient, 0.8 or 1. But this difference is fundamental.


# %%
def autoregress(noise, phi):
    y = np.zeros(len(noise))
    for t in range(1, len(noise)):
        y[t] = phi * y[t - 1] + noise[t]
    return y


generator = np.random.default_rng(3)
figure, axes = plt.subplots(1, 2, figsize=(10, 3), sharey=True, layout="constrained")
final_spread = {}
for axis, phi in zip(axes, (0.8, 1.0), strict=True):
    paths = [autoregress(generator.standard_normal(300), phi) for _ in range(8)]
    final_spread[phi] = np.std([path[-1] for path in paths])
    axis.plot(np.transpose(paths), linewidth=0.8)
    axis.set(title="AR(1) with coefficient 0.8" if phi < 1 else "random walk", xlabel="t", ylabel="$y_t$")
assert final_spread[1.0] > 3 * final_spread[0.8]

# %% [markdown]
# The AR(1) returns to its mean: the effect of a shock decreases by the factor 0.8 with each step. In the random walk,
# the effect of a shock never decreases. Its variance grows with $t$, so it is not stationary. It has a **unit root**:
# with the lag operator $B y_t = y_{t-1}$, the AR(1) $y_t - \phi y_{t-1} = \varepsilon_t$ is
# $(1 - \phi B) y_t = \varepsilon_t$, and the root $1/\phi$ of the polynomial $1 - \phi z$ is 1 for the random walk.
#
# The remedy is **differencing**: $\nabla y_t = y_t - y_{t-1} = (1 - B) y_t$. The differences of the random walk are
# white noise.
#
# ### Two tests with opposite null hypotheses
#
# - The **augmented Dickey-Fuller test** (ADF) estimates the regression $\nabla y_t = a + \rho \, y_{t-1} + \dots$. Its
#   null hypothesis is a unit root, $\rho = 0$. A small p-value is evidence against a unit root.
# - The null hypothesis of the **KPSS test** is a stationary series. Let $S_t$ be the cumulative sum of $y - \bar y$ and
#   $\hat\sigma^2$ the long-run variance. A large value of $\frac{1}{T^2} \sum_t S_t^2 / \hat\sigma^2$ is evidence
#   against stationarity; the 5 % critical value is 0.463.


# %%
def kpss(y):
    T, deviations = len(y), y - y.mean()
    lags = int(3 * np.sqrt(T) / 13)
    long_run_variance = deviations @ deviations / T
    for lag in range(1, lags + 1):
        long_run_variance += 2 / T * (1 - lag / (lags + 1)) * (deviations[lag:] @ deviations[:-lag])
    return (np.cumsum(deviations) ** 2).sum() / T**2 / long_run_variance


def adf(y):
    changes, lags = np.diff(y), int((len(y) - 1) ** (1 / 3))
    lagged_changes = [changes[lags - k : len(changes) - k] for k in range(1, lags + 1)]
    X = np.column_stack([y[lags:-1], np.ones(len(changes) - lags), *lagged_changes])
    target = changes[lags:]
    coefficients = np.linalg.solve(X.T @ X, X.T @ target)
    variance = np.sum((target - X @ coefficients) ** 2) / (len(target) - X.shape[1])
    return coefficients[0] / np.sqrt(variance * np.linalg.inv(X.T @ X)[0, 0])


passengers = datasets.load("air_passengers")
logs = passengers.assign(y=np.log(passengers["y"]))  # turns multiplicative into additive seasonality
y = logs["y"].to_numpy()
stages = {"log passengers": y, "seasonal difference": y[12:] - y[:-12]}
stages["and first difference"] = np.diff(stages["seasonal difference"])
for name, values in stages.items():
    print(f"{name:24s} KPSS {kpss(values):5.2f}   ADF {adf(values):5.2f}")
    np.testing.assert_allclose([kpss(values), adf(values)], [unit_roots.kpss(values), unit_roots.adf(values)[0]])
assert kpss(stages["log passengers"]) > 0.463 > kpss(stages["and first difference"])
assert adf(stages["and first difference"]) < -2.9 < adf(stages["log passengers"])

# %% [markdown]
# A KPSS statistic above 0.46 is evidence against stationarity, an ADF statistic below $-2.9$ is evidence against a unit
# root. After both differences the two tests agree that the series is stationary. They need not agree: since their null
# hypotheses are opposite, there are often series for which neither test or both tests reject.
#
# ## ACF and PACF
#
# The **autocorrelation** at lag $k$ is the correlation of the series with its own values $k$ steps before:
#
# $$r_k = \frac{\sum_{t=k+1}^{T} (y_t - \bar y)(y_{t-k} - \bar y)}{\sum_{t=1}^{T} (y_t - \bar y)^2}.$$
#
# The **partial autocorrelation** at lag $k$ is the correlation that remains after removing the effect of the shorter
# lags: the last coefficient $b_k$ of the regression of $y_t$ on $y_{t-1}, \dots, y_{t-k}$.


# %%
def autocorrelation(y, k):
    deviations = y - y.mean()
    return (deviations[k:] @ deviations[: len(y) - k]) / (deviations @ deviations)


def partial_autocorrelation(y, k):
    columns = [np.ones(len(y) - k), *(y[k - lag : len(y) - lag] for lag in range(1, k + 1))]
    return np.linalg.lstsq(np.column_stack(columns), y[k:], rcond=None)[0][-1]


sunspots = datasets.load("sunspots")
spots = sunspots["y"].to_numpy()
np.testing.assert_allclose([autocorrelation(spots, k) for k in range(1, 6)], acf(spots, nlags=5)[1:])
by_regression = [partial_autocorrelation(spots, k) for k in range(1, 6)]
np.testing.assert_allclose(by_regression, pacf(spots, nlags=5, method="ols-inefficient")[1:], atol=0.05)

# %% [markdown]
# Their patterns identify the process:
#
# | process | $y_t$ | ACF at lag $k$ | PACF at lag $k$ |
# |---|---|---|---|
# | AR(p) | $\phi_1 y_{t-1} + \dots + \phi_p y_{t-p} + \varepsilon_t$ | decays, possibly in waves | 0 for $k > p$ |
# | MA(q) | $\varepsilon_t + \theta_1 \varepsilon_{t-1} + \dots + \theta_q \varepsilon_{t-q}$ | 0 for $k > q$ | decays |


# %%
def plot_correlations(axis, correlations, n_observations, title):
    axis.bar(np.arange(1, len(correlations) + 1), correlations, width=0.3)
    for bound in (-1.96, 1.96):
        axis.axhline(bound / np.sqrt(n_observations), color="grey", linestyle="--", linewidth=0.8)
    axis.set(title=title, ylim=(-1, 1), xlabel="lag")


noise = generator.standard_normal(400)
examples = {
    "AR(1), $\\phi_1 = 0.8$": autoregress(noise, 0.8),
    "MA(1), $\\theta_1 = 0.8$": noise[1:] + 0.8 * noise[:-1],
    "sunspots": spots,
}
figure, axes = plt.subplots(2, 3, figsize=(10, 5), layout="constrained")
for column, (name, values) in zip(axes.T, examples.items(), strict=True):
    plot_correlations(column[0], acf(values, nlags=20)[1:], len(values), f"ACF of {name}")
    plot_correlations(column[1], pacf(values, nlags=20)[1:], len(values), f"PACF of {name}")

# %% [markdown]
# For white noise, one value in twenty falls outside the dashed lines. The ACF of the sunspots is a decaying wave, and
# the PACF has two large values: this suggests an AR(2), as Yule found in 1927. It is an approximation: lags 6 to 9 are
# slightly outside the lines.
#
# ## An AR model by hand
#
# With the mean $\mu$, an AR(2) is forecast recursively; each forecast is an input of the next:
#
# $$\hat y_{T+h} - \mu = \phi_1 (\hat y_{T+h-1} - \mu) + \phi_2 (\hat y_{T+h-2} - \mu).$$

# %%
model = ARIMA(order=(2, 0, 0)).fit(sunspots)
estimates = model.parameters().iloc[0]
mu, phi1, phi2, sigma = estimates["constant"], estimates["ar1"], estimates["ar2"], estimates["sigma"]
print(estimates[["order", "ar1", "ar2", "constant", "sigma"]].to_string())

horizon = 22
path = [*spots]
for _ in range(horizon):
    path.append(mu + phi1 * (path[-1] - mu) + phi2 * (path[-2] - mu))
forecast = model.predict(horizon, level=80)
np.testing.assert_allclose(forecast["ARIMA"], path[-horizon:])

cycle = 2 * np.pi / np.arccos(phi1 / (2 * np.sqrt(-phi2)))
print(f"period of the cycle in the forecast: {cycle:.1f} years")
assert 10 < cycle < 12

# %%
plot(sunspots, forecast, max_history=100)

# %% [markdown]
# Two coefficients reproduce the eleven-year cycle of the sun. The lower limit of the interval falls below 0, which is
# impossible for a count: the model does not include this constraint. (A power transformation of $y$, or `Conformal`,
# tutorial 13, are remedies.)
#
# ### The prediction interval
#
# Write the series as a weighted sum of all shocks, $y_t = \mu + \sum_j \psi_j \varepsilon_{t-j}$. The weight $\psi_j$
# is the effect of a shock after $j$ steps. The forecast error $h$ steps ahead consists of the shocks after the cutoff:
#
# $$\operatorname{Var}(y_{T+h} - \hat y_{T+h}) = \sigma^2 \sum_{j=0}^{h-1} \psi_j^2, \qquad
# \psi_j = \phi_1 \psi_{j-1} + \phi_2 \psi_{j-2}, \; \psi_0 = 1.$$

# %%
psi = [0.0, 1.0]  # psi_{-1} and psi_0
for _ in range(horizon - 1):
    psi.append(phi1 * psi[-1] + phi2 * psi[-2])
standard_deviation = sigma * np.sqrt(np.cumsum(np.square(psi[1:])))
by_hand = stats.norm.ppf(0.9) * standard_deviation
by_library = (forecast["ARIMA-hi-80"] - forecast["ARIMA"]).to_numpy()
print("half-width by the formula:", by_hand[[0, 4, 21]].round(1))
print("half-width by the library:", by_library[[0, 4, 21]].round(1))
assert ((by_library > by_hand) & (by_library < 1.04 * by_hand)).all()

# %% [markdown]
# The library's interval is a few percent wider, because it includes the uncertainty of the estimates of $\mu$, $\phi$
# and $\sigma$.
#
# ## Seasonal ARIMA: the airline model
#
# Box and Jenkins described the passengers with two coefficients. After a difference and a seasonal difference, a moving
# average term at lag 1 and one at lag 12 remain. This is the ARIMA(0,1,1)(0,1,1)$_{12}$:
#
# $$(1 - B)(1 - B^{12}) \, y_t = (1 + \theta B)(1 + \Theta B^{12}) \, \varepsilon_t.$$
#
# Expand the products and solve for $y_t$; in a forecast, future errors are replaced by 0:
#
# $$\begin{aligned}
# y_t = {} & y_{t-1} + y_{t-12} - y_{t-13} \\
# & {} + \varepsilon_t + \theta \varepsilon_{t-1} + \Theta \varepsilon_{t-12} + \theta \Theta \varepsilon_{t-13}.
# \end{aligned}$$

# %%
airline = ARIMA(order=(0, 1, 1), seasonal_order=(0, 1, 1)).fit(logs)
estimates = airline.parameters().iloc[0]
theta, Theta = estimates["ma1"], estimates["seasonal_ma1"]
print(f"theta {theta:.3f}, Theta {Theta:.3f}; Box and Jenkins report -0.40 and -0.56")

residuals, values = [0.0] * 13, list(y[:13])
for t in range(13, len(y) + 12):
    expected = values[t - 1] + values[t - 12] - values[t - 13]
    expected += theta * residuals[t - 1] + Theta * residuals[t - 12] + theta * Theta * residuals[t - 13]
    values.append(y[t] if t < len(y) else expected)
    residuals.append(y[t] - expected if t < len(y) else 0.0)
np.testing.assert_allclose(airline.predict(12)["ARIMA"], values[-12:], atol=2e-3)

# %% [markdown]
# The forecasts agree to within 0.002, not exactly: we set the initial errors to 0. The library uses the exact
# likelihood: its Kalman filter accounts for the distribution of the initial errors.
#
# ## AutoARIMA
#
# Reading the ACF is not feasible for hundreds of series. `AutoARIMA` selects the order as follows:
#
# 1. It takes a seasonal difference if the seasonality is strong, then first differences as long as the KPSS test
#    rejects stationarity.
# 2. It fits four simple orders. From the best of them it moves stepwise to better neighbouring orders, by AICc with the
#    exact likelihood.
# 3. It skips orders with a root close to the unit circle.

# %%
auto = AutoARIMA().fit(logs)
print(auto.parameters()[["order", "aicc"]].to_string(index=False))
print(airline.parameters()[["order", "aicc"]].to_string(index=False))
for years in (6, 4, 2):
    print(f"without the last {years} years:", AutoARIMA().fit(logs.iloc[: -12 * years]).parameters()["order"].item())

# %% [markdown]
# On all data it selects the airline model. On a shorter history it may select another one, as the AICc of the best
# orders are close to each other.
#
# AICc can only compare models with the same differences: a different $d$ means different data. Whether an order is good
# for forecasting can only be judged by forecasts. We forecast logarithms, transform back with $\exp$, and evaluate the
# numbers of passengers.

# %%
models = [ARIMA(order=(0, 1, 1), seasonal_order=(0, 1, 1), alias="airline"), AutoARIMA(), AutoETS(), SeasonalNaive()]
folds = cross_validate(models, logs, horizon=12, n_windows=4 if SHORT else 8, level=80)
value_columns = folds.columns.drop(["unique_id", "ds", "cutoff"])
folds[value_columns] = np.exp(folds[value_columns])
result = score(folds, metrics=["mae", "mase", "coverage"], train=passengers).sort_values("mae")
print(result.round(3).to_string(index=False))
result = result.set_index("model")
assert max(result["mae"].drop("SeasonalNaive")) < result.loc["SeasonalNaive", "mae"]
assert result.loc["airline", "mae"] < result.loc["AutoARIMA", "mae"]

# %% [markdown]
# The order of Box and Jenkins is better than the automatic one, which is selected again at each cutoff. But they used
# the whole series to find it: their order was chosen in hindsight.

# %%
residuals_frame = airline.fitted_values().iloc[13:]
plot_residuals(residuals_frame)

# %% [markdown]
# The first 13 months, which the differences require, are left out. The remaining residuals have no large
# autocorrelation.
#
# ## Future covariates
#
# The construction of a dam on the Nile at Aswan began in 1899. In that year the flow appears to drop permanently. We
# pass this to the model as a column that is 0 before 1899 and 1 from then on. Columns with known future values are
# declared as `future`. The model is a **regression with ARIMA errors**:
#
# $$y_t = c + \beta x_t + \eta_t, \qquad \eta_t \text{ an ARIMA process}.$$

# %%
nile = datasets.load("nile")
nile["dam"] = (nile["ds"] >= "1899").astype(float)
dam = {"future": ["dam"]}
for order in [(0, 0, 0), (1, 0, 0)]:
    estimates = ARIMA(order=order).fit(nile, columns=dam).parameters().iloc[0]
    print(f"{estimates['order']:18s} effect of the dam {estimates['effect_dam']:7.1f}   AICc {estimates['aicc']:.1f}")

without_dam = AutoARIMA().fit(nile[["unique_id", "ds", "y"]]).parameters().iloc[0]
with_dam = AutoARIMA().fit(nile, columns=dam).parameters().iloc[0]
print("AutoARIMA without the covariate:", without_dam["order"])
print("AutoARIMA with the covariate:   ", with_dam["order"])
assert [estimates["order"].split(",")[1] for estimates in (without_dam, with_dam)] == ["1", "0"]

# %% [markdown]
# Without the covariate, AutoARIMA takes a difference (the middle number of the order) to follow the drop. With the
# covariate, no difference is necessary.
#
# If the errors are white noise, the effect is simply the difference between two means:

# %%
means = nile.groupby("dam")["y"].mean()
regression = ARIMA(order=(0, 0, 0)).fit(nile, columns=dam)
np.testing.assert_allclose(regression.parameters()["effect_dam"].item(), means[1.0] - means[0.0], rtol=1e-6)

# %% [markdown]
# To forecast, the future values of the covariate are required. If they are missing, the library raises an error; it
# never fills them in. `future_frame` returns the rows to fill in.

# %%
model = ARIMA(order=(1, 0, 0)).fit(nile, columns=dam)
try:
    model.predict(20)
except errors.DataError as error:
    print(error)

# %%
future = model.future_frame(20)
future["dam"] = 1.0
plot(nile, model.predict(20, future=future, level=[80, 95]), max_history=None, columns=dam)

# %% [markdown]
# ### Are the estimated effects correct?
#
# With real data the true effects are unknown. The library therefore has a data generator with known effects: one unit
# of price lowers `y` by 6, a holiday raises it by 20. There are three series, each with its own estimates:

# %%
generated = datasets.load("generated")[["unique_id", "ds", "y", "price", "holiday"]]
roles = {"future": ["price", "holiday"]}
regression = ARIMA(order=(1, 0, 0), seasonal_order=(1, 0, 0)).fit(generated, columns=roles)
effects = regression.parameters()[["unique_id", "effect_price", "effect_holiday"]]
print(effects.round(2).to_string(index=False))
mean_effects = effects[["effect_price", "effect_holiday"]].mean()
print(f"mean effect of the price {mean_effects['effect_price']:.2f} (true value -6)")
print(f"mean effect of a holiday {mean_effects['effect_holiday']:.2f} (true value 20)")
np.testing.assert_allclose(mean_effects, [-6, 20], rtol=0.1)

# %% [markdown]
# The interpretation of such an effect is a separate question: it is the change associated with a change of the
# covariate, with the other covariates and the past held fixed. It is causal only if there are no confounders.
#
# ## Exercises
#
# 1. Difference white noise, which is one difference too many. What is the ACF at lag 1? What does an ARIMA(0,0,1)
#    estimate?
# 2. Regress one random walk on another, independent one. How often is the t-value significant at the 5 % level? What
#    does differencing change?
# 3. Compute the $\psi_j$ of an MA(1). How wide is its prediction interval from two steps ahead on?
# 4. `elec_equip` ships with the library. Does AutoARIMA or AutoETS forecast it better, up to a year ahead?

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# $\nabla \varepsilon_t = \varepsilon_t - \varepsilon_{t-1}$ is an MA(1) with $\theta = -1$, so
# $r_1 = \theta / (1 + \theta^2) = -\tfrac12$. A moving average coefficient close to $-1$ indicates overdifferencing.

# %%
overdifferenced = np.diff(generator.standard_normal(500))
dates = pd.date_range("2000-01-01", periods=len(overdifferenced))
frame = pd.DataFrame({"ds": dates, "y": overdifferenced})
estimate = ARIMA(order=(0, 0, 1)).fit(frame).parameters()["ma1"].item()
print(f"r_1 = {autocorrelation(overdifferenced, 1):.2f}, theta = {estimate:.3f}")
assert estimate < -0.95

# %% [markdown]
# ### Solution 2

# %%
walks = np.cumsum(generator.standard_normal((1000, 2, 200)), axis=2)
changes = np.diff(walks, axis=2)
for name, pairs in [("random walks", walks), ("their differences", changes)]:
    significant = np.mean([stats.linregress(a, b).pvalue < 0.05 for a, b in pairs])
    print(f"{name:18s} significant at the 5 % level: {significant:.0%} of 1,000 pairs")
    assert significant > 0.5 if name == "random walks" else significant < 0.1

# %% [markdown]
# In most cases two independent random walks appear to be related. This is called **spurious regression**. Always model
# the errors (as ARIMA does), or difference first.
#
# ### Solution 3
#
# $\psi_0 = 1$, $\psi_1 = \theta$, and all others are 0. So the variance is $\sigma^2$ one step ahead and
# $\sigma^2 (1 + \theta^2)$ from two steps on: the interval does not widen further.

# %%
forecast = ARIMA(order=(0, 0, 1)).fit(frame).predict(5, level=80)
print("width of the 80 % interval:", (forecast["ARIMA-hi-80"] - forecast["ARIMA-lo-80"]).round(3).tolist())

# %% [markdown]
# ### Solution 4

# %%
equipment = datasets.load("elec_equip")
models = [AutoARIMA(), AutoETS(), SeasonalNaive()]
equipment_folds = cross_validate(models, equipment, horizon=12, n_windows=3 if SHORT else 8)
ranked = score(equipment_folds, metrics=["mae", "mase"], train=equipment).sort_values("mae")
print(ranked.round(3).to_string(index=False))
assert SHORT or ranked["model"].tolist() == ["AutoETS", "AutoARIMA", "SeasonalNaive"]

# %% [markdown]
# On this series AutoETS is better than AutoARIMA; on the passengers the airline model was better. A single series does
# not decide which method is better: compare both on your own data.
#
# ## Reference
#
# - `ARIMA`, `AutoARIMA`, `AutoETS`, `SeasonalNaive`, `Columns`
# - `cross_validate`, `score`, `plot`, `plotting.plot_residuals`
#
# To read on: Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, chapters 9 and 10; Box & Jenkins (1970),
# *Time Series Analysis*; Hyndman & Khandakar (2008), *Automatic time series forecasting*.
