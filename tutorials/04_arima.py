# %% [markdown]
# # 04 · ARIMA, unit roots, ACF and PACF, AutoARIMA, exogenous columns
#
# Smoothing describes a series by its level, trend and season. ARIMA describes how each value depends on those before it. The
# two views overlap, and each can do what the other cannot.
#
# **After this you can**
#
# - say what a stationary series is, and test for a unit root in two ways
# - compute ACF and PACF, and read an order from them
# - forecast an AR and a seasonal ARIMA by hand, and get the library's numbers
# - let AutoARIMA choose, and know what it did
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
# ## Stationary or not?
#
# A series is **stationary** if its mean, its variance and the way its values hang together are the same at all times. Take
# noise $\varepsilon_t$, independent with mean 0, and two series made of it:
#
# $$\text{AR(1):}\;\; y_t = 0.8 \, y_{t-1} + \varepsilon_t \qquad\qquad \text{random walk:}\;\; y_t = y_{t-1} + \varepsilon_t$$
#
# One coefficient is 0.8, the other 1. It makes all the difference.

# %%
def autoregress(noise, phi):
    y = np.zeros(len(noise))
    for t in range(1, len(noise)):
        y[t] = phi * y[t - 1] + noise[t]
    return y


generator = np.random.default_rng(3)
figure, axes = plt.subplots(1, 2, figsize=(10, 3), sharey=True, layout="constrained")
ends = {}
for axis, phi in zip(axes, (0.8, 1.0), strict=True):
    runs = [autoregress(generator.standard_normal(300), phi) for _ in range(8)]
    ends[phi] = np.std([run[-1] for run in runs])
    axis.plot(np.transpose(runs), linewidth=0.8)
    axis.set(title="AR(1), 0.8" if phi < 1 else "random walk", xlabel="t")
assert ends[1.0] > 3 * ends[0.8]

# %% [markdown]
# The AR(1) comes back to its mean: it forgets a shock by the factor 0.8 a step. The random walk never forgets. Its variance
# grows with $t$, so it is not stationary. It has a **unit root**: in $y_t - \phi y_{t-1} = \varepsilon_t$, written with the
# lag operator $B y_t = y_{t-1}$ as $(1 - \phi B) y_t = \varepsilon_t$, the root $1/\phi$ of the polynomial $1 - \phi z$ is 1.
#
# The cure is the **difference** $\nabla y_t = y_t - y_{t-1} = (1 - B) y_t$. Of the random walk it leaves pure noise.
#
# ### Two tests, opposite questions
#
# - **Dickey and Fuller** (ADF) regress $\nabla y_t = a + \rho \, y_{t-1} + \dots$ and suppose a unit root, $\rho = 0$. A
#   small p-value: there is none.
# - **KPSS** suppose a stationary series. With $S_t$ the running sum of $y - \bar y$ and $\hat\sigma^2$ the long-run variance,
#   a large $\frac{1}{T^2} \sum_t S_t^2 / \hat\sigma^2$ speaks against it; the 5 % point is 0.463.

# %%
def kpss(y):
    T, away = len(y), y - y.mean()
    lags = int(3 * np.sqrt(T) / 13)
    long_run = away @ away / T
    for lag in range(1, lags + 1):
        long_run += 2 / T * (1 - lag / (lags + 1)) * (away[lag:] @ away[:-lag])
    return (np.cumsum(away) ** 2).sum() / T**2 / long_run


def adf(y):
    change, lags = np.diff(y), int((len(y) - 1) ** (1 / 3))
    columns = [y[lags:-1], np.ones(len(change) - lags), *(change[lags - k : len(change) - k] for k in range(1, lags + 1))]
    X, target = np.column_stack(columns), change[lags:]
    coefficients = np.linalg.solve(X.T @ X, X.T @ target)
    variance = np.sum((target - X @ coefficients) ** 2) / (len(target) - X.shape[1])
    return coefficients[0] / np.sqrt(variance * np.linalg.inv(X.T @ X)[0, 0])


passengers = datasets.load("air_passengers")
logs = passengers.assign(y=np.log(passengers["y"]))  # seasons that multiply become seasons that add
y = logs["y"].to_numpy()
stages = {"log passengers": y, "seasonal difference": y[12:] - y[:-12]}
stages["and a first difference"] = np.diff(stages["seasonal difference"])
for name, values in stages.items():
    print(f"{name:24s} KPSS {kpss(values):5.2f}   ADF {adf(values):5.2f}")
    np.testing.assert_allclose([kpss(values), adf(values)], [unit_roots.kpss(values), unit_roots.adf(values)[0]])
assert kpss(stages["log passengers"]) > 0.463 > kpss(stages["and a first difference"])
assert adf(stages["and a first difference"]) < -2.9 < adf(stages["log passengers"])

# %% [markdown]
# KPSS above 0.46 speaks against a stationary series, ADF below $-2.9$ against a unit root. After both differences both tests
# agree: stationary. They need not always agree; two tests that answer opposite questions often leave a grey zone.
#
# ## ACF and PACF
#
# The **autocorrelation** at lag $k$ is the correlation of the series with itself $k$ steps before:
#
# $$r_k = \frac{\sum_{t=k+1}^{T} (y_t - \bar y)(y_{t-k} - \bar y)}{\sum_{t=1}^{T} (y_t - \bar y)^2}.$$
#
# The **partial** autocorrelation is what lag $k$ adds beyond the lags before it: the last coefficient $b_k$ of the regression
# of $y_t$ on $y_{t-1}, \dots, y_{t-k}$.

# %%
def autocorrelation(y, k):
    away = y - y.mean()
    return (away[k:] @ away[: len(y) - k]) / (away @ away)


def partial_autocorrelation(y, k):
    columns = [np.ones(len(y) - k), *(y[k - lag : len(y) - lag] for lag in range(1, k + 1))]
    return np.linalg.lstsq(np.column_stack(columns), y[k:], rcond=None)[0][-1]


sunspots = datasets.load("sunspots")
spots = sunspots["y"].to_numpy()
np.testing.assert_allclose([autocorrelation(spots, k) for k in range(1, 6)], acf(spots, nlags=5)[1:])
by_regression = [partial_autocorrelation(spots, k) for k in range(1, 6)]
np.testing.assert_allclose(by_regression, pacf(spots, nlags=5, method="ols-inefficient")[1:], atol=0.05)

# %% [markdown]
# What they look like is the fingerprint of a process:
#
# | process | ACF | PACF |
# |---|---|---|
# | AR(p): $y_t = \phi_1 y_{t-1} + \dots + \phi_p y_{t-p} + \varepsilon_t$ | fades, perhaps in waves | stops after lag $p$ |
# | MA(q): $y_t = \varepsilon_t + \theta_1 \varepsilon_{t-1} + \dots + \theta_q \varepsilon_{t-q}$ | stops after $q$ | fades |

# %%
def bars(axis, values, count, title):
    axis.bar(np.arange(1, len(values) + 1), values, width=0.3)
    for bound in (-1.96, 1.96):
        axis.axhline(bound / np.sqrt(count), color="grey", linestyle="--", linewidth=0.8)
    axis.set(title=title, ylim=(-1, 1), xlabel="lag")


noise = generator.standard_normal(400)
series = {"AR(1), 0.8": autoregress(noise, 0.8), "MA(1), 0.8": noise[1:] + 0.8 * noise[:-1], "sunspots": spots}
figure, axes = plt.subplots(2, 3, figsize=(10, 5), layout="constrained")
for column, (name, values) in zip(axes.T, series.items(), strict=True):
    bars(column[0], acf(values, nlags=20)[1:], len(values), f"ACF of {name}")
    bars(column[1], pacf(values, nlags=20)[1:], len(values), f"PACF of {name}")

# %% [markdown]
# Beyond the dashed lines a value would fall in one case of twenty by chance. The ACF of the sunspots is a wave that fades,
# and the PACF has two large values: an AR(2), as Yule found in 1927. It is an approximation: lags 6 to 9 stand out a little.
#
# ## An AR model by hand
#
# With $\mu$ the mean, an AR(2) forecasts step by step; each forecast feeds the next:
#
# $$\hat y_{T+h} - \mu = \phi_1 (\hat y_{T+h-1} - \mu) + \phi_2 (\hat y_{T+h-2} - \mu).$$

# %%
model = ARIMA(order=(2, 0, 0)).fit(sunspots)
fit = model.parameters().iloc[0]
mu, phi1, phi2, sigma = fit["constant"], fit["ar1"], fit["ar2"], fit["sigma"]
print(fit[["order", "ar1", "ar2", "constant", "sigma"]].to_string())

horizon = 22
path = [*spots]
for _ in range(horizon):
    path.append(mu + phi1 * (path[-1] - mu) + phi2 * (path[-2] - mu))
forecast = model.predict(horizon, level=80)
np.testing.assert_allclose(forecast["ARIMA"], path[-horizon:])

cycle = 2 * np.pi / np.arccos(phi1 / (2 * np.sqrt(-phi2)))
print(f"the wave in the forecast has a length of {cycle:.1f} years")
assert 10 < cycle < 12

# %%
plot(sunspots, forecast, max_history=100)

# %% [markdown]
# The eleven years of the sun, from two coefficients. The lower bound falls below 0, where no count of spots can be: the model
# knows nothing of that. (A power of $y$, or `Conformal`, tutorial 13, are ways out.)
#
# ### The interval
#
# Write the series as a sum of all shocks, $y_t = \mu + \sum_j \psi_j \varepsilon_{t-j}$. The $\psi_j$ tell what is left of a
# shock after $j$ steps. In the error of a forecast $h$ steps ahead are the shocks that came since:
#
# $$\operatorname{Var}(y_{T+h} - \hat y_{T+h}) = \sigma^2 \sum_{j=0}^{h-1} \psi_j^2, \qquad
# \psi_j = \phi_1 \psi_{j-1} + \phi_2 \psi_{j-2}, \; \psi_0 = 1.$$

# %%
psi = [0.0, 1.0]
for _ in range(horizon - 1):
    psi.append(phi1 * psi[-1] + phi2 * psi[-2])
deviation = sigma * np.sqrt(np.cumsum(np.square(psi[1:])))
half = stats.norm.ppf(0.9) * deviation
library = (forecast["ARIMA-hi-80"] - forecast["ARIMA"]).to_numpy()
print("half width by the formula:", half[[0, 4, 21]].round(1))
print("half width of the library:", library[[0, 4, 21]].round(1))
assert ((library > half) & (library < 1.04 * half)).all()

# %% [markdown]
# The library's is a few percent wider. It also counts that $\mu$, $\phi$ and $\sigma$ are estimates.
#
# ## Seasonal ARIMA: the airline model
#
# Box and Jenkins described the passengers with two numbers. After a difference and a seasonal difference there remain a moving
# average over the last month and one over the last year, ARIMA(0,1,1)(0,1,1)$_{12}$:
#
# $$(1 - B)(1 - B^{12}) \, y_t = (1 + \theta B)(1 + \Theta B^{12}) \, \varepsilon_t.$$
#
# Multiply out and solve for $y_t$; for a forecast, future errors are 0:
#
# $$\begin{aligned}
# y_t = {} & y_{t-1} + y_{t-12} - y_{t-13} \\
# & {} + \varepsilon_t + \theta \varepsilon_{t-1} + \Theta \varepsilon_{t-12} + \theta \Theta \varepsilon_{t-13}.
# \end{aligned}$$

# %%
airline = ARIMA(order=(0, 1, 1), seasonal_order=(0, 1, 1)).fit(logs)
fit = airline.parameters().iloc[0]
theta, Theta = fit["ma1"], fit["seasonal_ma1"]
print(f"theta {theta:.3f}, Theta {Theta:.3f}; the book of Box and Jenkins has -0.40 and -0.56")

errors_so_far, values = [0.0] * 13, list(y[:13])
for t in range(13, len(y) + 12):
    e = errors_so_far
    expected = values[t - 1] + values[t - 12] - values[t - 13]
    expected += theta * e[t - 1] + Theta * e[t - 12] + theta * Theta * e[t - 13]
    values.append(y[t] if t < len(y) else expected)
    errors_so_far.append(y[t] - expected if t < len(y) else 0.0)
np.testing.assert_allclose(airline.predict(12)["ARIMA"], values[-12:], atol=2e-3)

# %% [markdown]
# They agree to within 0.002, not exactly: we supposed errors of 0 before the first value. The library's likelihood is
# exact: its Kalman filter asks which errors there could have been.
#
# ## AutoARIMA
#
# Nobody reads hundreds of ACFs. `AutoARIMA` goes this way:
#
# 1. a seasonal difference, if the season is strong; then differences as long as KPSS asks for them
# 2. four simple orders; from the best one step by step to better neighbours, by AICc with the exact likelihood
# 3. orders with a root next to the unit circle are passed over

# %%
auto = AutoARIMA().fit(logs)
print(auto.parameters()[["order", "aicc"]].to_string(index=False))
print(airline.parameters()[["order", "aicc"]].to_string(index=False))
for years in (6, 4, 2):
    print(f"without the last {years} years:", AutoARIMA().fit(logs.iloc[: -12 * years]).parameters()["order"].item())

# %% [markdown]
# On all data it takes the airline model. On a shorter past it may take another one: the best orders are close to each other.
#
# AICc may compare only models of the same differences: another $d$ is another data set. Whether the order is good for
# forecasting, only forecasts can show. We forecast logarithms, go back with $\exp$, and judge passengers.

# %%
models = [ARIMA(order=(0, 1, 1), seasonal_order=(0, 1, 1), alias="airline"), AutoARIMA(), AutoETS(), SeasonalNaive()]
folds = cross_validate(models, logs, horizon=12, n_windows=4 if SHORT else 8, level=80)
numbers = folds.columns.drop(["unique_id", "ds", "cutoff"])
folds[numbers] = np.exp(folds[numbers])
result = score(folds, metrics=["mae", "mase", "coverage"], train=passengers).sort_values("mae")
print(result.round(3).to_string(index=False))
result = result.set_index("model")
assert max(result["mae"].drop("SeasonalNaive")) < result.loc["SeasonalNaive", "mae"]
assert result.loc["airline", "mae"] < result.loc["AutoARIMA", "mae"]

# %% [markdown]
# The order of Box and Jenkins is better than the automatic one, which is selected again at each cutoff. But they had seen the
# whole series: theirs is an order chosen in hindsight.

# %%
left = airline.fitted_values().iloc[13:]
plot_residuals(left)

# %% [markdown]
# The residuals after the first 13 months, which the differences use up, hold no large autocorrelation any more.
#
# ## Future covariates
#
# In 1899 they began to dam the Nile at Aswan. That year its flow seems to drop, for good. Give this to the model as a column
# that is 0 before and 1 after. Columns whose future is known are declared as `future`. The model is a **regression with ARIMA
# errors**:
#
# $$y_t = c + \beta x_t + \eta_t, \qquad \eta_t \text{ an ARIMA}.$$

# %%
nile = datasets.load("nile")
nile["dam"] = (nile["ds"] >= "1899").astype(float)
dam = {"future": ["dam"]}
for order in [(0, 0, 0), (1, 0, 0)]:
    fit = ARIMA(order=order).fit(nile, columns=dam).parameters().iloc[0]
    print(f"{fit['order']:18s} effect of the dam {fit['effect_dam']:7.1f}   AICc {fit['aicc']:.1f}")

without = AutoARIMA().fit(nile[["unique_id", "ds", "y"]]).parameters().iloc[0]
with_dam = AutoARIMA().fit(nile, columns=dam).parameters().iloc[0]
print("AutoARIMA without the column:", without["order"])
print("AutoARIMA with it:           ", with_dam["order"])
assert [one["order"].split(",")[1] for one in (without, with_dam)] == ["1", "0"]

# %% [markdown]
# Without the column it needs a difference, the middle number, to follow the drop. With the column it needs none.
#
# With errors that are noise, the effect is simply the difference of two means:

# %%
means = nile.groupby("dam")["y"].mean()
np.testing.assert_allclose(
    ARIMA(order=(0, 0, 0)).fit(nile, columns=dam).parameters()["effect_dam"].item(), means[1.0] - means[0.0], rtol=1e-6
)

# %% [markdown]
# To forecast, the column is needed ahead. If it is not given, the library refuses; it never guesses it. `future_frame` gives
# the rows to fill.

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
# ### Are the effects right?
#
# With real data nobody knows. So the library has a generator whose effects are known: a unit of price takes 6 from `y`, a
# holiday adds 20. Three series, each with its own estimate:

# %%
made = datasets.load("generated")[["unique_id", "ds", "y", "price", "holiday"]]
roles = {"future": ["price", "holiday"]}
regression = ARIMA(order=(1, 0, 0), seasonal_order=(1, 0, 0)).fit(made, columns=roles)
effects = regression.parameters()[["unique_id", "effect_price", "effect_holiday"]]
print(effects.round(2).to_string(index=False))
print(f"mean: price {effects['effect_price'].mean():.2f} (truth -6), holiday {effects['effect_holiday'].mean():.2f} (truth 20)")
np.testing.assert_allclose(effects[["effect_price", "effect_holiday"]].mean(), [-6, 20], rtol=0.1)

# %% [markdown]
# What such an effect means is another matter: it is what goes along with the column, the others and the past being the same.
# It is a cause only if nothing else moves with it.
#
# ## Exercises
#
# 1. Difference pure noise once too often. What is the ACF at lag 1? What does an ARIMA(0,0,1) find?
# 2. Regress one random walk on another that has nothing to do with it. How large is the t-value? What does a difference do?
# 3. Compute the $\psi_j$ of an MA(1) and its interval from two steps on.
# 4. `elec_equip` ships with the library. Does AutoARIMA or AutoETS forecast it better, a year ahead?

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# $\nabla \varepsilon_t = \varepsilon_t - \varepsilon_{t-1}$ is an MA(1) with $\theta = -1$, so
# $r_1 = \theta / (1 + \theta^2) = -\tfrac12$. A moving average coefficient near $-1$ is the mark of one difference too many.

# %%
twice = np.diff(generator.standard_normal(500))
frame = pd.DataFrame({"ds": pd.date_range("2000-01-01", periods=len(twice)), "y": twice})
found = ARIMA(order=(0, 0, 1)).fit(frame).parameters()["ma1"].item()
print(f"r_1 = {autocorrelation(twice, 1):.2f}, theta = {found:.3f}")
assert found < -0.95

# %% [markdown]
# ### Solution 2

# %%
walks = np.cumsum(generator.standard_normal((1000, 2, 200)), axis=2)
changes = np.diff(walks, axis=2)
for name, pairs in [("random walks", walks), ("their differences", changes)]:
    surprising = np.mean([stats.linregress(a, b).pvalue < 0.05 for a, b in pairs])
    print(f"{name:18s} 'significant' at 5 %: {surprising:.0%} of 1,000 pairs")
    assert surprising > 0.5 if name == "random walks" else surprising < 0.1

# %% [markdown]
# Two random walks look related in most cases. This is the **spurious regression**: always model the errors (as an ARIMA does)
# or difference first.
#
# ### Solution 3
#
# $\psi_0 = 1$, $\psi_1 = \theta$, and all others are 0. So the variance is $\sigma^2$ one step ahead and
# $\sigma^2 (1 + \theta^2)$ from two steps on: it grows no more.

# %%
ahead = ARIMA(order=(0, 0, 1)).fit(frame).predict(5, level=80)
print((ahead["ARIMA-hi-80"] - ahead["ARIMA-lo-80"]).round(3).tolist())

# %% [markdown]
# ### Solution 4

# %%
equipment = datasets.load("elec_equip")
duel = cross_validate([AutoARIMA(), AutoETS(), SeasonalNaive()], equipment, horizon=12, n_windows=3 if SHORT else 8)
ranked = score(duel, metrics=["mae", "mase"], train=equipment).sort_values("mae")
print(ranked.round(3).to_string(index=False))
assert SHORT or ranked["model"].tolist() == ["AutoETS", "AutoARIMA", "SeasonalNaive"]

# %% [markdown]
# Smoothing is ahead here, where the airline model was ahead on the passengers. One series decides nothing about a method: try
# both on yours.
#
# ## Reference
#
# - `ARIMA`, `AutoARIMA`, `AutoETS`, `SeasonalNaive`, `Columns`
# - `cross_validate`, `score`, `plot`, `plotting.plot_residuals`
#
# To read on: Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, chapters 9 and 10; Box & Jenkins (1970), *Time
# Series Analysis*; Hyndman & Khandakar (2008), *Automatic time series forecasting*.
