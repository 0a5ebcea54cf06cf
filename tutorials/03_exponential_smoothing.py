# %% [markdown]
# # 03 · Exponential smoothing, ETS and intervals
#
# Exponential smoothing is one of the oldest methods of forecasting: recent values have larger weights than older ones.
# It begins with a recursion of one line and extends to a whole family of models. These models still win competitions,
# are fast to fit, and quantify the uncertainty of their forecasts.
#
# **After this you can**
#
# - write simple exponential smoothing, Holt's method and Holt-Winters as a loop, and reproduce the library's forecasts
# - explain the parameters alpha, beta, gamma and phi
# - turn a method into a model with an error term, and derive its prediction intervals
# - select a model by AICc, and check its residuals

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import optimize, stats

from deepforecast import ETS, SES, AutoETS, Holt, HoltWinters, Naive, SeasonalNaive, compare, datasets, plot
from deepforecast.plotting import plot_components, plot_residuals

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

# %% [markdown]
# ## Simple exponential smoothing
#
# The annual flow of the Nile has neither trend nor seasonality. It has a level that changes over time, and noise around
# that level.

# %%
nile = datasets.load("nile")
y = nile["y"].to_numpy()
plot(nile)

# %% [markdown]
# The naive forecast uses the last value only, and thus contains all of its noise. The mean gives equal weight to all
# values, including those from a distant past that may no longer be relevant. In between lies a **level** $\ell_t$ that
# moves by a fraction $\alpha$ of the way towards each new value:
#
# $$\ell_t = \ell_{t-1} + \alpha \, (y_t - \ell_{t-1}), \qquad 0 \le \alpha \le 1.$$
#
# The term in parentheses is the error of the one-step forecast. The forecast is the level at any horizon:
# $\hat y_{T+h \mid T} = \ell_T$. In code:


# %%
def smooth(y, alpha, level):
    """One-step forecasts of all values, and the level after the last value."""
    forecasts = np.empty(len(y))
    for t in range(len(y)):
        forecasts[t] = level
        level = level + alpha * (y[t] - level)
    return forecasts, level


one_step, last_level = smooth(y, alpha=0.3, level=y[0])
model = SES(alpha=0.3, initial="simple").fit(nile)
np.testing.assert_allclose(model.fitted_values()["SES"], one_step)
np.testing.assert_allclose(model.predict(3)["SES"], last_level)
print(f"level after 1970: by hand {last_level:.2f}, by the library {model.predict(1)['SES'].item():.2f}")

# %% [markdown]
# Why "exponential"? Substitute the recursion into itself repeatedly. The weight of a value decreases by the factor
# $1 - \alpha$ with each step back in time:
#
# $$\ell_T = \sum_{j=0}^{T-1} \alpha (1 - \alpha)^j \, y_{T-j} + (1 - \alpha)^T \ell_0.$$

# %%
age = np.arange(len(y))
weights = 0.3 * (1 - 0.3) ** age
np.testing.assert_allclose(weights @ y[::-1] + (1 - 0.3) ** len(y) * y[0], last_level)

figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
for alpha in (0.1, 0.3, 0.8):
    axes.plot(age[:25], alpha * (1 - alpha) ** age[:25], "o-", markersize=4, label=f"alpha = {alpha}")
axes.set(xlabel="age of the observation in years", ylabel="weight")
_ = axes.legend()

# %% [markdown]
# With a large $\alpha$, old values lose their weight quickly; $\alpha = 1$ gives the naive forecast. With a small
# $\alpha$, they keep it for a long time.
#
# ### Estimation of alpha
#
# We choose the value whose one-step forecasts have the smallest sum of squared errors. Least squares estimates $\alpha$
# and the initial level $\ell_0$ jointly:
#
# $$\min_{\alpha,\, \ell_0} \sum_{t=1}^{T} (y_t - \ell_{t-1})^2.$$

# %%
solution = optimize.minimize(
    lambda x: np.sum((y - smooth(y, alpha=x[0], level=x[1])[0]) ** 2),
    x0=[0.5, y[:5].mean()],
    method="Nelder-Mead",
    options={"xatol": 1e-7},
)
ses = SES().fit(nile)
ses_parameters = ses.parameters().iloc[0]
print(f"by scipy:       alpha {solution.x[0]:.4f}, initial level {solution.x[1]:.1f}")
print(f"by the library: alpha {ses_parameters['alpha']:.4f}, initial level {ses_parameters['level']:.1f}")
np.testing.assert_allclose(solution.x, [ses_parameters["alpha"], ses_parameters["level"]], rtol=1e-3)

# %%
plot(nile, ses.predict(15, level=[80, 95]), max_history=None)

# %% [markdown]
# ## A trend: Holt's method
#
# We add a **slope** $b_t$, which is smoothed in the same way. In error correction form, with the one-step error
# $e_t = y_t - (\ell_{t-1} + b_{t-1})$:
#
# $$\begin{aligned}
# \ell_t &= \ell_{t-1} + b_{t-1} + \alpha e_t \\
# b_t &= b_{t-1} + \beta e_t \\
# \hat y_{T+h \mid T} &= \ell_T + h \, b_T
# \end{aligned}$$
#
# A linear trend that continues forever is a strong assumption. The slope of a **damped** trend decreases with each
# step: $\phi b_{t-1}$ replaces $b_{t-1}$, and $\hat y_{T+h \mid T} = \ell_T + (\phi + \phi^2 + \dots + \phi^h) \, b_T$.


# %%
def holt(y, alpha, beta, phi, level, slope):
    for value in y:
        error = value - (level + phi * slope)
        level = level + phi * slope + alpha * error
        slope = phi * slope + beta * error
    return level, slope


passengers = datasets.load("air_passengers")
air = passengers["y"].to_numpy()
steps = np.arange(1, 25)
smoothing = {"alpha": 0.5, "beta": 0.05}
for phi in (1.0, 0.9):
    level, slope = holt(air, **smoothing, phi=phi, level=air[0], slope=air[1] - air[0])
    by_hand = level + np.cumsum(phi**steps) * slope
    damping = {} if phi == 1 else {"damped": True, "phi": phi}
    model = Holt(**smoothing, **damping, initial="simple").fit(passengers)
    np.testing.assert_allclose(model.predict(24)["Holt"], by_hand)
print("Holt's method by hand equals the library, with and without damping")

# %% [markdown]
# ## Seasonality: Holt-Winters
#
# We add a **seasonal component** $s_t$ for each month, and store its last $m$ values. Let $q_t = \ell_{t-1} + b_{t-1}$
# denote the forecast without seasonality. The seasonal component is added to it or multiplied by it:
#
# $$\begin{aligned}
# & \text{additive} && \text{multiplicative} \\
# \hat y_{t \mid t-1} &= q_t + s_{t-m} & \hat y_{t \mid t-1} &= q_t \, s_{t-m} \\
# \ell_t &= q_t + \alpha e_t & \ell_t &= q_t + \alpha e_t / s_{t-m} \\
# b_t &= b_{t-1} + \beta e_t & b_t &= b_{t-1} + \beta e_t / s_{t-m} \\
# s_t &= s_{t-m} + \gamma e_t & s_t &= s_{t-m} + \gamma e_t / q_t
# \end{aligned}$$


# %%
def holt_winters(y, alpha, beta, gamma, level, slope, seasonal, multiplicative):
    seasonal, forecasts = list(seasonal), []
    for t, value in enumerate(y):
        q, s = level + slope, seasonal[t]
        forecasts.append(q * s if multiplicative else q + s)
        error = value - forecasts[-1]
        level = q + alpha * (error / s if multiplicative else error)
        slope = slope + beta * (error / s if multiplicative else error)
        seasonal.append(s + gamma * (error / q if multiplicative else error))
    return np.array(forecasts)


m, smoothing, rmse = 12, {"alpha": 0.3, "beta": 0.02, "gamma": 0.4}, {}
first_year, second_year = air[:m].mean(), air[m : 2 * m].mean()
for kind in ("additive", "multiplicative"):
    by_hand = holt_winters(
        air,
        **smoothing,
        level=first_year,
        slope=(second_year - first_year) / m,
        seasonal=air[:m] - first_year if kind == "additive" else air[:m] / first_year,
        multiplicative=kind == "multiplicative",
    )
    fitted = HoltWinters(seasonal=kind, initial="simple", **smoothing).fit(passengers).fitted_values()
    np.testing.assert_allclose(fitted["HoltWinters"], by_hand)
    rmse[kind] = np.sqrt(np.mean((air - by_hand)[m:] ** 2))
    print(f"{kind:14s} seasonality: RMSE of the one-step forecasts {rmse[kind]:5.2f}")
assert rmse["multiplicative"] < rmse["additive"]

# %% [markdown]
# The seasonal amplitude of the passengers grows with the level, so multiplicative seasonality has smaller errors. If
# the smoothing parameters are not given, the library estimates them.

# %%
additive = HoltWinters(horizon=24, alias="additive").fit(passengers).predict()
multiplicative = HoltWinters(horizon=24, seasonal="multiplicative", alias="multiplicative").fit(passengers).predict()
plot(passengers, additive.merge(multiplicative), max_history=60)

# %% [markdown]
# ## From a method to a model: ETS
#
# A method, as defined so far, produces a point forecast. A **model** describes how the data are generated, and
# therefore also how uncertain the forecast is. Take simple exponential smoothing, denote the error by $\varepsilon_t$,
# and assume that it is independent normal noise with variance $\sigma^2$:
#
# $$y_t = \ell_{t-1} + \varepsilon_t, \quad \ell_t = \ell_{t-1} + \alpha \varepsilon_t, \quad
# \varepsilon_t \sim N(0, \sigma^2).$$
#
# This model is **ETS(A,N,N)**: additive Error, no Trend, no Seasonality. Each letter has several values: A or M
# (multiplicative) for the error; N, A or Ad (additive damped) for the trend; N, A or M for the seasonality. Simple
# exponential smoothing, Holt's method and Holt-Winters belong to this family.
#
# ### Derivation of the prediction interval
#
# Iterate the model over $h$ steps. Each error on the way changes the level by $\alpha$ times the error, and the last
# error is added in full:
#
# $$y_{T+h} = \ell_T + \alpha \sum_{j=1}^{h-1} \varepsilon_{T+j} + \varepsilon_{T+h}
# \quad\Rightarrow\quad \operatorname{Var}(y_{T+h}) = \sigma^2 \left( 1 + (h - 1) \alpha^2 \right).$$
#
# We verify this with 20,000 simulated future paths.

# %%
h = np.arange(1, 16)
alpha, sigma = ses_parameters["alpha"], ses_parameters["sigma"]
standard_deviation = sigma * np.sqrt(1 + (h - 1) * alpha**2)

generator = np.random.default_rng(1)
noise = sigma * generator.standard_normal((20_000, len(h)))
level_changes = alpha * np.cumsum(np.pad(noise, ((0, 0), (1, 0)))[:, :-1], axis=1)
paths = level_changes + noise
print("steps ahead:   ", h[::5])
print("by the formula:", standard_deviation[::5].round(1))
print("simulated:     ", paths.std(axis=0)[::5].round(1))
np.testing.assert_allclose(paths.std(axis=0), standard_deviation, rtol=0.03)

# %% [markdown]
# An 80 % prediction interval extends from the 10 % quantile to the 90 % quantile. If $\sigma$ and the parameters were
# known, its limits would be $\pm 1.28$ standard deviations from the forecast. However, $k$ parameters are estimated
# from $n$ values. The library therefore uses Student's $t$ distribution with $n - k$ degrees of freedom, and a variance
# that is $1 + k/n$ times as large:
#
# $$\hat y_{T+h \mid T} \;\pm\; t_{n-k,\,0.9} \; \sqrt{1 + k/n} \;\; \sigma \sqrt{1 + (h-1) \alpha^2}.$$

# %%
n, k = len(y), ses_parameters["parameters"]
half_width = stats.t.ppf(0.9, n - k) * np.sqrt(1 + k / n) * standard_deviation
forecast = ses.predict(15, level=80)
np.testing.assert_allclose(forecast["SES-hi-80"] - forecast["SES"], half_width)
print("half-width of the 80 % interval, 1 and 15 years ahead:", half_width[[0, -1]].round(1))

# %% [markdown]
# The interval widens slowly, because the level changes by only a quarter of each error.
#
# ## Model selection by AICc
#
# More parameters always improve the fit. The **AICc** penalizes their number. With the likelihood $L$ and $k$
# parameters (including $\sigma$):
#
# $$\text{AIC} = -2 \log L + 2k, \qquad \text{AICc} = \text{AIC} + \frac{2k(k+1)}{n-k-1}.$$
#
# The model with the smallest AICc is selected.

# %%
candidates = [
    ETS(trend=None, alias="A,N,N"),
    ETS(alias="A,A,N"),
    ETS(seasonal="additive", alias="A,A,A"),
    ETS(error="multiplicative", seasonal="multiplicative", alias="M,A,M"),
    ETS(error="multiplicative", damped=True, seasonal="multiplicative", alias="M,Ad,M"),
]
table = pd.concat([candidate.fit(passengers).parameters() for candidate in candidates], ignore_index=True)
k, n = table["parameters"] + 1, len(passengers)
by_hand = -2 * table["log_likelihood"] + 2 * k + 2 * k * (k + 1) / (n - k - 1)
np.testing.assert_allclose(table["aicc"], by_hand)
print(table[["form", "parameters", "log_likelihood", "aicc"]].round(1).to_string(index=False))

# %% [markdown]
# `AutoETS` fits all stable models, 15 in this case, and selects the best. Its choice and the estimates:

# %%
auto = AutoETS(horizon=24).fit(passengers)
selected = auto.parameters().iloc[0]
print(selected[["form", "alpha", "beta", "gamma", "aicc"]].to_string())
assert selected["aicc"] <= table["aicc"].min() + 1e-3

# %%
plot(passengers, auto.predict(level=[80, 95]), max_history=60)

# %% [markdown]
# `explain` decomposes a forecast into components, which add up to the forecast.

# %%
components = auto.explain()
total = components.groupby("ds")["value"].sum().to_numpy()
np.testing.assert_allclose(total, auto.predict()["AutoETS"])
plot_components(components)

# %% [markdown]
# ## Are the residuals white noise?
#
# If the model describes the series completely, its one-step errors show no pattern. `plot_residuals` shows them over
# time, their distribution and their autocorrelation; `residual_diagnostics` runs three tests. A small p-value is
# evidence against the model.

# %%
plot_residuals(auto.fitted_values())

# %%
tests = auto.residual_diagnostics()
print(tests[["test", "statistic", "p_value"]].round(4).to_string(index=False))
p_value = tests.set_index("test")["p_value"]
assert p_value["ljung_box"] < 0.05 < min(p_value["heteroscedasticity"], p_value["jarque_bera"])

# %% [markdown]
# The errors of this model are multiplicative. In the plot their spread therefore grows with the level, as it should.
# The tests use relative errors, as fractions of the forecast: these have constant variance and are compatible with a
# normal distribution. But the Ljung-Box test finds that they are autocorrelated: the model does not capture all of the
# structure in the series. This is common with real data; what matters is the forecast error.
#
# ## Forecast error and coverage

# %%
board = compare(
    [SeasonalNaive(), HoltWinters(), HoltWinters(seasonal="multiplicative", alias="HW multiplicative"), AutoETS()],
    passengers,
    horizon=12,
    n_windows=4 if SHORT else 8,
    level=[80, 95],
)
columns = ["model", "mase", "coverage-80", "coverage-95"]
print(board.table[columns].round(3).to_string(index=False))
mase = board.table.set_index("model")["mase"]
coverage = board.table.set_index("model")["coverage-80"]
assert mase["AutoETS"] < 0.7 * mase["SeasonalNaive"]
assert SHORT or mase["HW multiplicative"] < mase["AutoETS"]
assert abs(coverage["AutoETS"] - 0.8) < abs(coverage["HW multiplicative"] - 0.8)

# %% [markdown]
# AutoETS reduces the error of the seasonal naive forecast by almost half. 80 % and 95 % intervals should contain 80 %
# and 95 % of the values: compare the coverage columns. AutoETS is the closest to that. But Holt-Winters with
# multiplicative seasonality has the smaller error: the model with the smallest AICc is not always the one with the best
# forecasts. With 8 windows of one series this is only a rough check, since the errors of the 12 months of a window are
# correlated.
#
# ## Exercises
#
# 1. Show that `SES(alpha=1)` is the naive forecast. Which forecast results as $\alpha$ tends to 0?
# 2. After how many steps has the weight of a value fallen to half, for $\alpha = 0.25$? Derive the formula.
# 3. Forecast the passengers 10 years ahead with `ETS(error="multiplicative", seasonal="multiplicative")`, with and
#    without damping. What is the ratio of the two forecasts of the last year?
# 4. Logarithms turn products into sums. Compare `ETS(seasonal="additive", box_cox=0)` with ETS(M,A,M).

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# With $\alpha = 1$ the level equals the last value: $\ell_T = y_T$. With $\alpha = 0$ it never changes:
# $\ell_T = \ell_0$, and the constant with the smallest squared error is the mean.

# %%
np.testing.assert_allclose(SES(alpha=1.0).fit(nile).predict(3)["SES"], Naive().fit(nile).predict(3)["Naive"])
np.testing.assert_allclose(SES(alpha=0.0).fit(nile).predict(3)["SES"], y.mean(), rtol=1e-4)

# %% [markdown]
# ### Solution 2
#
# $(1 - \alpha)^j = \tfrac12$ gives $j = \log \tfrac12 / \log (1 - \alpha)$.

# %%
print(f"half-life at alpha = 0.25: {np.log(0.5) / np.log(1 - 0.25):.2f} steps")

# %% [markdown]
# ### Solution 3

# %%
settings = {"error": "multiplicative", "seasonal": "multiplicative", "horizon": 120}
models = {name: ETS(**settings, damped=name == "damped", alias=name) for name in ("linear", "damped")}
linear, damped = (model.fit(passengers).predict() for model in models.values())
ratio = linear["linear"].iloc[-12:].sum() / damped["damped"].iloc[-12:].sum()
print(f"in the tenth year the forecast with the linear trend is {ratio:.2f} times that with the damped trend")
for name, model in models.items():
    error = (air / model.fitted_values()[name] - 1).abs().mean()
    print(f"{name}: mean absolute percentage error of the one-step forecasts {100 * error:.2f} %")
plot(passengers, linear.merge(damped), max_history=None)

# %% [markdown]
# Both models fit the past about equally well. Ten years ahead their forecasts differ. The data cannot decide between
# them; knowledge of the subject has to.
#
# ### Solution 4

# %%
models = [
    ETS(seasonal="additive", box_cox=0.0, alias="ETS of logarithms"),
    ETS(error="multiplicative", seasonal="multiplicative", alias="ETS(M,A,M)"),
]
log_board = compare(models, passengers, horizon=12, n_windows=4 if SHORT else 8, level=80)
print(log_board.table[["model", "mase", "coverage-80"]].round(3).to_string(index=False))
assert log_board.table["model"].iloc[0] == "ETS of logarithms"

# %% [markdown]
# In both models the seasonal amplitude and the errors grow in proportion to the level. With logarithms, however, the
# trend is multiplicative as well: growth by a constant percentage each year, whereas M,A,M adds a constant number each
# year. On this series the forecasts with logarithms are better.
#
# ## Reference
#
# - `SES`, `Holt`, `HoltWinters`, `ETS`, `AutoETS`
# - `compare`, `plot`, `plotting.plot_residuals`, `plotting.plot_components`
#
# To read on: Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, chapter 8; Hyndman, Koehler, Ord &
# Snyder (2008), *Forecasting with Exponential Smoothing: The State Space Approach*.
