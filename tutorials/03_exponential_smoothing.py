# %% [markdown]
# # 03 · Exponential smoothing, ETS and intervals
#
# The oldest good idea in forecasting: recent values count more than old ones. From one line of arithmetic grows a whole
# family of models. It still wins competitions, it is fast, and it says how sure it is.
#
# **After this you can**
#
# - write simple, Holt's and Holt-Winters' smoothing as a loop, and get the library's numbers
# - say what alpha, beta, gamma and phi do
# - turn a method into a model with an error, and derive its prediction intervals
# - let AICc choose a form, and check what it left over

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
# The yearly flow of the Nile has no trend and no season. It has a level that wanders, and noise around it.

# %%
nile = datasets.load("nile")
y = nile["y"].to_numpy()
plot(nile)

# %% [markdown]
# The naive forecast believes the last value alone, and so all of its noise. The mean believes all values alike, and so a past
# that is over. Between them lies a **level** $\ell_t$ that moves a share $\alpha$ of the way towards each new value:
#
# $$\ell_t = \ell_{t-1} + \alpha \, (y_t - \ell_{t-1}), \qquad 0 \le \alpha \le 1.$$
#
# The bracket is the error of the last forecast. The forecast is the level, however far ahead: $\hat y_{T+h \mid T} = \ell_T$.
# As code:

# %%
def smooth(y, alpha, level):
    """One forecast for each value, made before it is seen; and the level after the last."""
    forecasts = np.empty(len(y))
    for t in range(len(y)):
        forecasts[t] = level
        level = level + alpha * (y[t] - level)
    return forecasts, level


one_step, last = smooth(y, alpha=0.3, level=y[0])
model = SES(alpha=0.3, initial="simple").fit(nile)
np.testing.assert_allclose(model.fitted_values()["SES"], one_step)
np.testing.assert_allclose(model.predict(3)["SES"], last)
print(f"level after 1970: {last:.2f}, the library says {model.predict(1)['SES'].item():.2f}")

# %% [markdown]
# Why "exponential"? Put the formula into itself again and again. Each value gets a weight that shrinks by the factor
# $1 - \alpha$ with each step back:
#
# $$\ell_T = \sum_{j=0}^{T-1} \alpha (1 - \alpha)^j \, y_{T-j} + (1 - \alpha)^T \ell_0.$$

# %%
age = np.arange(len(y))
weights = 0.3 * (1 - 0.3) ** age
np.testing.assert_allclose(weights @ y[::-1] + (1 - 0.3) ** len(y) * y[0], last)

figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
for alpha in (0.1, 0.3, 0.8):
    axes.plot(age[:25], alpha * (1 - alpha) ** age[:25], "o-", markersize=4, label=f"alpha = {alpha}")
axes.set(xlabel="years back", ylabel="weight")
_ = axes.legend()

# %% [markdown]
# A large $\alpha$ forgets fast: at 1 the forecast is the naive one. A small one remembers long.
#
# ### Which alpha?
#
# The one whose one-step forecasts would have been best: least squares, over $\alpha$ and the first level $\ell_0$ together,
#
# $$\min_{\alpha,\, \ell_0} \sum_{t=1}^{T} (y_t - \ell_{t-1})^2.$$

# %%
found = optimize.minimize(
    lambda v: np.sum((y - smooth(y, v[0], v[1])[0]) ** 2), x0=[0.5, y[:5].mean()], method="Nelder-Mead", options={"xatol": 1e-7}
)
estimated = SES().fit(nile)
numbers = estimated.parameters().iloc[0]
print(f"by scipy:       alpha {found.x[0]:.4f}, first level {found.x[1]:.1f}")
print(f"by the library: alpha {numbers['alpha']:.4f}, first level {numbers['level']:.1f}")
np.testing.assert_allclose(found.x, [numbers["alpha"], numbers["level"]], rtol=1e-3)

# %%
plot(nile, estimated.predict(15, level=[80, 95]), max_history=None)

# %% [markdown]
# ## A trend: Holt
#
# Add a **slope** $b_t$, smoothed in the same way. In the form of corrections, with the one-step error
# $e_t = y_t - (\ell_{t-1} + b_{t-1})$:
#
# $$\begin{aligned}
# \ell_t &= \ell_{t-1} + b_{t-1} + \alpha e_t \\
# b_t &= b_{t-1} + \beta e_t \\
# \hat y_{T+h \mid T} &= \ell_T + h \, b_T
# \end{aligned}$$
#
# A straight line for ever is bold. A **damped** trend loses a share with each step: $\phi b_{t-1}$ in place of $b_{t-1}$, and
# $\hat y_{T+h \mid T} = \ell_T + (\phi + \phi^2 + \dots + \phi^h) \, b_T$.

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
rates = {"alpha": 0.5, "beta": 0.05}
for phi in (1.0, 0.9):
    level, slope = holt(air, **rates, phi=phi, level=air[0], slope=air[1] - air[0])
    by_hand = level + np.cumsum(phi**steps) * slope
    damped = {} if phi == 1 else {"damped": True, "phi": phi}
    model = Holt(**rates, **damped, initial="simple").fit(passengers)
    np.testing.assert_allclose(model.predict(24)["Holt"], by_hand)
print("Holt's method by hand, damped and not: the library's numbers")

# %% [markdown]
# ## A season: Holt-Winters
#
# Add one **seasonal** number $s_t$ for each month, and keep the last $m$ of them. Write $q_t = \ell_{t-1} + b_{t-1}$ for the
# line. The season is added to it, or multiplies it:
#
# $$\begin{aligned}
# & \text{added} && \text{multiplied} \\
# \hat y_{t \mid t-1} &= q_t + s_{t-m} & \hat y_{t \mid t-1} &= q_t \, s_{t-m} \\
# \ell_t &= q_t + \alpha e_t & \ell_t &= q_t + \alpha e_t / s_{t-m} \\
# b_t &= b_{t-1} + \beta e_t & b_t &= b_{t-1} + \beta e_t / s_{t-m} \\
# s_t &= s_{t-m} + \gamma e_t & s_t &= s_{t-m} + \gamma e_t / q_t
# \end{aligned}$$

# %%
def holt_winters(y, alpha, beta, gamma, level, slope, seasonal, multiply):
    seasonal, forecasts = list(seasonal), []
    for t, value in enumerate(y):
        q, s = level + slope, seasonal[t]
        forecasts.append(q * s if multiply else q + s)
        error = value - forecasts[-1]
        level = q + alpha * (error / s if multiply else error)
        slope = slope + beta * (error / s if multiply else error)
        seasonal.append(s + gamma * (error / q if multiply else error))
    return np.array(forecasts)


m, rates, rms = 12, {"alpha": 0.3, "beta": 0.02, "gamma": 0.4}, {}
first, second = air[:m].mean(), air[m : 2 * m].mean()
for multiply in (False, True):
    seasonal = air[:m] / first if multiply else air[:m] - first
    by_hand = holt_winters(air, **rates, level=first, slope=(second - first) / m, seasonal=seasonal, multiply=multiply)
    kind = "multiplicative" if multiply else "additive"
    fitted = HoltWinters(seasonal=kind, initial="simple", **rates).fit(passengers).fitted_values()
    np.testing.assert_allclose(fitted["HoltWinters"], by_hand)
    rms[kind] = np.sqrt(np.mean((air - by_hand)[m:] ** 2))
    print(f"{kind:14s} season: root mean square of the one-step errors {rms[kind]:5.2f}")
assert rms["multiplicative"] < rms["additive"]

# %% [markdown]
# The passengers' summers grow with the level. So the season that multiplies has smaller errors. Leave out the rates and the
# library estimates them.

# %%
additive = HoltWinters(horizon=24, alias="additive").fit(passengers).predict()
multiplicative = HoltWinters(horizon=24, seasonal="multiplicative", alias="multiplicative").fit(passengers).predict()
plot(passengers, additive.merge(multiplicative), max_history=60)

# %% [markdown]
# ## From a method to a model: ETS
#
# So far we have a recipe for one number. A **model** says where the data come from, and so how far they may stray. Take simple
# smoothing, call the error $\varepsilon_t$, and suppose that it is independent noise with variance $\sigma^2$:
#
# $$y_t = \ell_{t-1} + \varepsilon_t, \;\; \ell_t = \ell_{t-1} + \alpha \varepsilon_t, \;\; \varepsilon_t \sim N(0, \sigma^2).$$
#
# This is **ETS(A,N,N)**: Error additive, no Trend, no Season. Each letter has its choices: the error A or M (multiplied), the
# trend N, A or Ad (damped), the season N, A or M. Simple smoothing, Holt and Holt-Winters are members of the family.
#
# ### The interval, derived
#
# Follow the model $h$ steps on. Every error on the way moves the level by $\alpha$ times itself, and the last one comes in
# full:
#
# $$y_{T+h} = \ell_T + \alpha \sum_{j=1}^{h-1} \varepsilon_{T+j} + \varepsilon_{T+h}
# \quad\Rightarrow\quad \operatorname{Var}(y_{T+h}) = \sigma^2 \left( 1 + (h - 1) \alpha^2 \right).$$
#
# We check it with 20,000 simulated futures.

# %%
h = np.arange(1, 16)
alpha, sigma = numbers["alpha"], numbers["sigma"]
deviation = sigma * np.sqrt(1 + (h - 1) * alpha**2)

generator = np.random.default_rng(1)
noise = sigma * generator.standard_normal((20_000, len(h)))
moved = alpha * np.cumsum(np.pad(noise, ((0, 0), (1, 0)))[:, :-1], axis=1)
paths = moved + noise
print("steps ahead:   ", h[::5])
print("by the formula:", deviation[::5].round(1))
print("simulated:     ", paths.std(axis=0)[::5].round(1))
np.testing.assert_allclose(paths.std(axis=0), deviation, rtol=0.03)

# %% [markdown]
# An 80 % interval goes from the 10 % to the 90 % quantile. If $\sigma$ and the parameters were known, that were $\pm 1.28$
# deviations. They are estimated, from $n$ values, $k$ numbers. So the library takes Student's $t$ with $n - k$ degrees of
# freedom, and a variance $1 + k/n$ times as large:
#
# $$\hat y_{T+h \mid T} \;\pm\; t_{n-k,\,0.9} \; \sqrt{1 + k/n} \;\; \sigma \sqrt{1 + (h-1) \alpha^2}.$$

# %%
n, k = len(y), numbers["parameters"]
half = stats.t.ppf(0.9, n - k) * np.sqrt(1 + k / n) * deviation
forecast = estimated.predict(15, level=80)
np.testing.assert_allclose(forecast["SES-hi-80"] - forecast["SES"], half)
print("half width of the 80 % interval, 1 and 15 years ahead:", half[[0, -1]].round(1))

# %% [markdown]
# It widens, slowly: the level may wander, but by a quarter of each error only.
#
# ## Which form? AICc
#
# More parameters always fit better. The **AICc** charges for them. With the likelihood $L$ and $k$ parameters ($\sigma$
# counts as one):
#
# $$\text{AIC} = -2 \log L + 2k, \qquad \text{AICc} = \text{AIC} + \frac{2k(k+1)}{n-k-1}.$$
#
# The form with the least AICc is taken.

# %%
forms = [
    ETS(trend=None, alias="A,N,N"),
    ETS(alias="A,A,N"),
    ETS(seasonal="additive", alias="A,A,A"),
    ETS(error="multiplicative", seasonal="multiplicative", alias="M,A,M"),
    ETS(error="multiplicative", damped=True, seasonal="multiplicative", alias="M,Ad,M"),
]
table = pd.concat([form.fit(passengers).parameters() for form in forms], ignore_index=True)
k, n = table["parameters"] + 1, len(passengers)
by_hand = -2 * table["log_likelihood"] + 2 * k + 2 * k * (k + 1) / (n - k - 1)
np.testing.assert_allclose(table["aicc"], by_hand)
print(table[["form", "parameters", "log_likelihood", "aicc"]].round(1).to_string(index=False))

# %% [markdown]
# `AutoETS` tries all stable forms, 15 here, and takes the best. Its choice in the open:

# %%
auto = AutoETS(horizon=24).fit(passengers)
chosen = auto.parameters().iloc[0]
print(chosen[["form", "alpha", "beta", "gamma", "aicc"]].to_string())
assert chosen["aicc"] <= table["aicc"].min() + 1e-3

# %%
plot(passengers, auto.predict(level=[80, 95]), max_history=60)

# %% [markdown]
# `explain` takes a forecast apart. The parts add up to it.

# %%
parts = auto.explain()
total = parts.groupby("ds")["value"].sum().to_numpy()
np.testing.assert_allclose(total, auto.predict()["AutoETS"])
plot_components(parts)

# %% [markdown]
# ## Is what is left only noise?
#
# If the model has understood the series, its one-step errors hold no pattern. `plot_residuals` shows them over time, their
# distribution and their autocorrelation; `residual_diagnostics` tests three things. A small p-value speaks against.

# %%
plot_residuals(auto.fitted_values())

# %%
tests = auto.residual_diagnostics()
print(tests[["test", "statistic", "p_value"]].round(4).to_string(index=False))
p_value = tests.set_index("test")["p_value"]
assert p_value["ljung_box"] < 0.05 < min(p_value["heteroscedasticity"], p_value["jarque_bera"])

# %% [markdown]
# The errors of this form multiply. So in the picture their spread grows with the level, as it should; the tests take them as
# shares of the forecast, and these have a steady spread and look normal. But the Ljung-Box test finds that they follow each
# other: there is something left to learn. The series is more than this model. That happens with real data all the time; what
# counts is the error ahead.
#
# ## Is it better? Does the interval hold?

# %%
board = compare(
    [SeasonalNaive(), HoltWinters(), HoltWinters(seasonal="multiplicative", alias="HW multiplied"), AutoETS()],
    passengers,
    horizon=12,
    n_windows=4 if SHORT else 8,
    level=[80, 95],
)
columns = ["model", "mase", "coverage-80", "coverage-95"]
print(board.table[columns].round(3).to_string(index=False))
mase = board.table.set_index("model")["mase"]
held = board.table.set_index("model")["coverage-80"]
assert mase["AutoETS"] < 0.7 * mase["SeasonalNaive"]
assert SHORT or mase["HW multiplied"] < mase["AutoETS"]
assert abs(held["AutoETS"] - 0.8) < abs(held["HW multiplied"] - 0.8)

# %% [markdown]
# AutoETS takes away almost half of the error of the seasonal naive forecast. 80 % and 95 % intervals should hold 80 % and
# 95 % of the values: compare the columns. AutoETS is the nearest to that. But Holt-Winters with a season that multiplies has
# the smaller error: the form with the least AICc need not be the one that forecasts best. With 8 windows of one series all this
# is a rough check, for the 12 months of a window hit or miss together.
#
# ## Exercises
#
# 1. Show that `SES(alpha=1)` is the naive forecast. Which forecast do you get as $\alpha$ goes to 0?
# 2. After how many steps has the weight of a value fallen to half, for $\alpha = 0.25$? Find the formula.
# 3. Forecast the passengers 10 years ahead with `ETS(error="multiplicative", seasonal="multiplicative")`, damped and not.
#    What is the ratio of the last years?
# 4. Logarithms turn products into sums. Compare `ETS(seasonal="additive", box_cox=0)` with `ETS` of the form M,A,M.

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# With $\alpha = 1$ the level jumps to each value: $\ell_T = y_T$. With $\alpha = 0$ it never moves: $\ell_T = \ell_0$, and
# the best such constant is the mean.

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
both = {"error": "multiplicative", "seasonal": "multiplicative", "horizon": 120}
models = {name: ETS(**both, damped=name == "damped", alias=name).fit(passengers) for name in ("straight", "damped")}
straight, damped = (model.predict() for model in models.values())
ratio = straight["straight"].iloc[-12:].sum() / damped["damped"].iloc[-12:].sum()
print(f"in the tenth year the straight trend forecasts {ratio:.2f} times as many passengers")
for name, model in models.items():
    error = (air / model.fitted_values()[name] - 1).abs().mean()
    print(f"{name}: usual error one month ahead, in the past, {100 * error:.2f} %")
plot(passengers, straight.merge(damped), max_history=None)

# %% [markdown]
# Both fit the past about equally well. Ten years ahead they disagree. The data cannot tell; your knowledge of the matter must.
#
# ### Solution 4

# %%
logs = [
    ETS(seasonal="additive", box_cox=0.0, alias="ETS of logarithms"),
    ETS(error="multiplicative", seasonal="multiplicative", alias="ETS(M,A,M)"),
]
duel = compare(logs, passengers, horizon=12, n_windows=4 if SHORT else 8, level=80)
print(duel.table[["model", "mase", "coverage-80"]].round(3).to_string(index=False))
assert duel.table["model"].iloc[0] == "ETS of logarithms"

# %% [markdown]
# Both say that the season and the errors grow in proportion to the level. But with logarithms the trend is multiplied too: so
# many percent more each year, where M,A,M adds the same number each year. On this series the forecasts of the logarithms are
# better.
#
# ## Reference
#
# - `SES`, `Holt`, `HoltWinters`, `ETS`, `AutoETS`
# - `compare`, `plot`, `plotting.plot_residuals`, `plotting.plot_components`
#
# To read on: Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, chapter 8; Hyndman, Koehler, Ord & Snyder
# (2008), *Forecasting with Exponential Smoothing: The State Space Approach*.
