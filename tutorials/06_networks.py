# %% [markdown]
# # 06 · Deep networks: MLP, N-BEATS, scaling, losses
#
# A neural network is a composition of simple functions with many weights, and training improves the weights step by
# step. Here we compute a network by hand, train one by hand, and see what makes networks good at forecasting: scaled
# windows, the right loss, and early stopping.
#
# **After this you can**
#
# - compute a network's forecast and its gradient by hand
# - explain why windows are scaled, and what happens otherwise
# - choose a loss by what it rewards
# - recognize overfitting and stop early
# - interpret an N-BEATS forecast as trend and seasonality

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from deepforecast import MLP, NBEATS, AutoETS, SeasonalNaive, compare, datasets, plot
from deepforecast.plotting import plot_components, plot_training

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training
STEPS = 25 if SHORT else 400

# %% [markdown]
# ## Windows
#
# A network learns from examples. One example is a **window**: $L$ observed values as input, the next $H$ values as
# target. A series of $T$ values has $T - L - H + 1$ windows. We forecast one year of sea temperature from the two years
# before it.

# %%
frame = datasets.load("elnino")
y = frame["y"].to_numpy()
L, H = 24, 12
windows = np.lib.stride_tricks.sliding_window_view(y, L + H)
past, ahead = windows[:, :L], windows[:, L:]
print(f"{len(y)} months give {len(windows)} windows of {L} + {H}")

# %% [markdown]
# ## The multilayer perceptron
#
# The **MLP** has an input $x$, hidden layers, and an output. Each layer is a linear map followed by a nonlinear
# **activation function**; without it, a stack of layers would collapse to a single linear map. With one hidden layer:
#
# $$h = \max(0, \; W_1 x + b_1), \qquad \hat y = W_2 h + b_2.$$
#
# The activation function $\max(0, \cdot)$ is called ReLU. Before the first layer, each window is **scaled** to mean 0
# and standard deviation 1, and the forecast is scaled back:
#
# $$x = \frac{y_{\text{past}} - \mu}{\sigma}, \qquad \hat y_{\text{ahead}} = \mu + \sigma \hat y.$$
#
# This is the complete model. We train the library's MLP, extract its weights, and compute the forecast with numpy.

# %%
model = MLP(horizon=H, input_size=L, hidden_sizes=[32], head="point", loss="mse", calendar=None, max_steps=STEPS)
model.fit(frame)
W1, b1, W2, b2 = (value.numpy().astype(float) for value in model.network_.state_dict().values())
print("shapes:", W1.shape, b1.shape, W2.shape, b2.shape)


def forward(x):
    h = np.maximum(0, x @ W1.T + b1)
    return h @ W2.T + b2


last = y[-L:]
mu, sigma = last.mean(), last.std()
by_hand = mu + sigma * forward((last - mu) / sigma)
np.testing.assert_allclose(model.predict()["MLP"], by_hand, rtol=1e-5)
print("the forecast by hand equals that of the library")

# %%
plot(frame, model.predict(), max_history=72)

# %% [markdown]
# ## Learning: gradients by the chain rule
#
# The weights are initialized at random. A **loss** measures the forecast error, here the mean squared error. The
# **gradient** is the derivative of the loss with respect to each weight. **Backpropagation** computes it from the last
# layer to the first, with $n$ the number of forecasts:
#
# $$\begin{aligned}
# \mathcal L &= \tfrac1n \lVert \hat y - t \rVert^2 & \delta_2 &= \tfrac2n (\hat y - t) \\
# \partial \mathcal L / \partial W_2 &= \delta_2^\top h &
# \partial \mathcal L / \partial b_2 &= \textstyle\sum \delta_2 \\
# & & \delta_1 &= (\delta_2 W_2) \odot [h > 0] \\
# \partial \mathcal L / \partial W_1 &= \delta_1^\top x &
# \partial \mathcal L / \partial b_1 &= \textstyle\sum \delta_1
# \end{aligned}$$
#
# torch does this automatically for any composition of functions. We compare both, with scaled windows $x$ and scaled
# targets $t$.

# %%
location, scale = past.mean(axis=1, keepdims=True), past.std(axis=1, keepdims=True)
x, t = (past - location) / scale, (ahead - location) / scale

network = nn.Sequential(nn.Linear(L, 32), nn.ReLU(), nn.Linear(32, H)).double()
generator = torch.Generator().manual_seed(0)
for weight in network.parameters():
    nn.init.uniform_(weight, -0.2, 0.2, generator=generator)
loss = torch.mean((network(torch.from_numpy(x)) - torch.from_numpy(t)) ** 2)
loss.backward()
by_torch = [weight.grad.numpy() for weight in network.parameters()]

W1, b1, W2, b2 = (weight.detach().numpy() for weight in network.parameters())
h = np.maximum(0, x @ W1.T + b1)
delta2 = 2 / t.size * (forward(x) - t)
delta1 = (delta2 @ W2) * (h > 0)
by_hand = [delta1.T @ x, delta1.sum(0), delta2.T @ h, delta2.sum(0)]
for gradient, expected in zip(by_hand, by_torch, strict=True):
    np.testing.assert_allclose(gradient, expected, atol=1e-12)
print("gradients by hand and by torch are equal")

# %% [markdown]
# **Gradient descent** takes a small step against the gradient,
# $W \leftarrow W - \eta \, \partial \mathcal L / \partial W$, with the learning rate $\eta$. Each step uses a **batch**
# of windows. We hold out the last tenth of the windows for validation and monitor both errors. Windows that overlap the
# validation windows are left out of training.

# %%
n_train = int(0.9 * len(x))
train, validation = slice(0, n_train - L - H), slice(n_train, None)
inputs, targets = torch.from_numpy(x), torch.from_numpy(t)
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
curves = []
for step in range(STEPS):
    rows = torch.randint(0, train.stop, (64,), generator=generator)
    loss = torch.mean((network(inputs[rows]) - targets[rows]) ** 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        with torch.no_grad():
            errors = [torch.mean((network(inputs[part]) - targets[part]) ** 2).item() for part in (train, validation)]
        curves.append((step + 1, *errors))
curves = np.array(curves)

figure, axes = plt.subplots(figsize=(8, 3.3), layout="constrained")
axes.plot(curves[:, 0], curves[:, 1], label="training windows")
axes.plot(curves[:, 0], curves[:, 2], "--", label="validation windows")
axes.set(xlabel="training step", ylabel="mean squared error (scaled)", ylim=(0, None))
_ = axes.legend()
best = int(curves[:, 2].argmin())
print(f"validation error: lowest {curves[best, 2]:.2f} at step {curves[best, 0]:.0f}, at the end {curves[-1, 2]:.2f}")
print(f"training error at the end: {curves[-1, 1]:.2f}")
assert SHORT or curves[-1, 2] > 1.05 * curves[best, 2]

# %% [markdown]
# The training error keeps falling. The validation error falls first and then rises: this is
# **overfitting**. The remedy is **early stopping** near the minimum. In the library, `validation_size` observations
# of each series are held out and forecast every `validate_every` steps; training ends after `patience` validation
# checks without improvement, and the best weights are used.

# %%
early_stopped = MLP(
    horizon=H,
    input_size=L,
    hidden_sizes=[64],
    validation_size=72,
    validate_every=20,
    patience=4,
    max_steps=STEPS,
    lr_schedule="constant",
).fit(frame)
print("stopped:", early_stopped.stop_reason_ or "at the last step")
plot_training(early_stopped.training_report_)

# %% [markdown]
# ## Why scale?
#
# `macrodata_panel` contains twelve quarterly series of the US economy: GDP in thousands, interest rates in percent. One
# network learns from all of them.

# %%
economy = datasets.load("macrodata_panel")
print(economy.groupby("unique_id")["y"].mean().sort_values().round(1).to_dict())
models = [
    MLP(scaler="none", hidden_sizes=[64], input_size=16, max_steps=STEPS, alias="not scaled"),
    MLP(scaler="standard", hidden_sizes=[64], input_size=16, max_steps=STEPS, alias="scaled"),
    SeasonalNaive(),
]
scaling_board = compare(models, economy, horizon=8, n_windows=2)
print(scaling_board.table[["model", "mase"]].round(2).to_string(index=False))
mase = scaling_board.table.set_index("model")["mase"]
assert mase["scaled"] < mase["not scaled"]

# %% [markdown]
# Without scaling, the large series dominate the loss, and weights that fit values of thousands cannot distinguish 3
# percent from 4. With all windows on one scale, the network learns patterns that the series share. The forecast is also
# scale-equivariant: multiply a series by 1,000 and its forecast is multiplied by 1,000.

# %%
multiplied = frame.assign(y=1000 * frame["y"])
np.testing.assert_allclose(model.predict(frame=multiplied)["MLP"], 1000 * model.predict()["MLP"], rtol=1e-5)

# %% [markdown]
# ## Losses
#
# The loss determines what the network optimizes. With the error $e = y - \hat y$:
#
# $$\begin{aligned}
# \text{MSE: } & e^2 & \text{Huber: } & \begin{cases} e^2/2 & |e| \le 1 \\ |e| - 1/2 & |e| > 1 \end{cases} \\
# \text{MAE: } & |e| & \text{pinball: } & \begin{cases} q \, e & e \ge 0 \\ (q - 1) \, e & e < 0 \end{cases}
# \end{aligned}$$

# %%
e = np.linspace(-3, 3, 301)
losses = {
    "squared": e**2,
    "absolute": np.abs(e),
    "Huber": np.where(np.abs(e) <= 1, e**2 / 2, np.abs(e) - 0.5),
    "pinball, q = 0.9": np.where(e >= 0, 0.9 * e, (0.9 - 1) * e),
}
figure, axes = plt.subplots(figsize=(7, 3.3), layout="constrained")
for name, values in losses.items():
    axes.plot(e, values, label=name)
axes.set(xlabel="error: value minus forecast", ylabel="loss", ylim=(0, 4))
_ = axes.legend()

# %% [markdown]
# Each loss has a different minimizer: MSE the mean, MAE the median, pinball the $q$-quantile. We check this on skewed
# data.

# %%
values = np.random.default_rng(0).lognormal(0, 1, 2000)
grid = np.linspace(0.01, 8, 800)
error = values[:, None] - grid[None, :]
minimizers = {
    "mean": grid[(error**2).mean(0).argmin()],
    "median": grid[np.abs(error).mean(0).argmin()],
    "90 % quantile": grid[np.where(error >= 0, 0.9 * error, -0.1 * error).mean(0).argmin()],
}
print({name: round(float(value), 2) for name, value in minimizers.items()})
expected = [values.mean(), np.median(values), np.quantile(values, 0.9)]
np.testing.assert_allclose(list(minimizers.values()), expected, atol=0.02)

# %% [markdown]
# A network trained with pinball losses for many $q$ at once therefore forecasts a distribution. That is the library's
# default, `head="quantiles"`, and the reason why `level=` works without further settings.

# %%
quantile_model = MLP(horizon=H, input_size=48, hidden_sizes=[64]).fit(frame)
plot(frame, quantile_model.predict(level=[50, 80, 95]), max_history=72)

# %% [markdown]
# ## N-BEATS
#
# **N-BEATS** is a stack of MLP blocks. Each block $b$ receives the residual of the window, explains part of it (the
# backcast $\hat x_b$), and adds its contribution to the forecast:
#
# $$x_{b+1} = x_b - \hat x_b, \qquad \hat y = \sum_b \hat y_b.$$
#
# A block restricted to polynomials models a **trend**: $\hat y_b = \sum_{i=0}^{d} \theta_i \, \tau^i$ with $\tau$ from
# 0 to 1 over the horizon. A block restricted to sines and cosines models **seasonality**. The forecast is then the sum
# of interpretable components.

# %%
nbeats = NBEATS(
    horizon=24, stacks=["trend", "season"], hidden_sizes=[64, 64], input_size=72, max_steps=STEPS, batch_size=128
).fit(datasets.load("air_passengers"))
components = nbeats.explain()
total = components.groupby("ds")["value"].sum().to_numpy()
np.testing.assert_allclose(total, nbeats.predict()["NBEATS"], rtol=1e-6)

trend = components[components["component"] == "trend"]["value"].to_numpy()
tau = np.arange(24) / 24
parabola = np.polyval(np.polyfit(tau, trend, 2), tau)
assert np.abs(parabola - trend).max() < 1e-3 * np.abs(trend).max()  # the trend is a polynomial of degree 2
plot_components(components[components["component"] != "rest"])

# %% [markdown]
# `level` is the last value, which the scaling subtracts and adds back; trend and seasonality are the two stacks.
#
# An MLP has no components. `explain` then returns **integrated gradients**
# ([Sundararajan et al., 2017](https://arxiv.org/abs/1703.01365)): the gradient of the forecast with respect to each
# input, integrated from a baseline, here a window that is constant at its mean, to the actual input. These contributions
# of the input columns add up to the forecast, too.

# %%
contributions = quantile_model.explain()
total = contributions.groupby("ds")["value"].sum().to_numpy()
np.testing.assert_allclose(total, quantile_model.predict()["MLP"], rtol=1e-6)
plot_components(contributions[contributions["component"] != "rest"])

# %% [markdown]
# ## Are networks better?
#
# Here is a comparison on one series of 144 values.

# %%
passengers = datasets.load("air_passengers")
board = compare(
    [
        SeasonalNaive(),
        AutoETS(),
        MLP(hidden_sizes=[64], input_size=36),
        MLP(hidden_sizes=[64], input_size=36, max_steps=STEPS, alias="MLP, long"),
        NBEATS(hidden_sizes=[64, 64], input_size=36),
    ],
    passengers,
    horizon=12,
    n_windows=2 if SHORT else 4,
    level=80,
)
print(board.table[["model", "mase", "coverage-80", "fit_seconds"]].round(2).to_string(index=False))
mase, coverage = (board.table.set_index("model")[name] for name in ("mase", "coverage-80"))
assert SHORT or mase["NBEATS"] < 1.05 * mase["AutoETS"] < mase["MLP"] < mase["MLP, long"] < mase["SeasonalNaive"]
assert SHORT or coverage["MLP, long"] < 0.4 < 0.6 < min(coverage["MLP"], coverage["NBEATS"]) < coverage["AutoETS"]

# %% [markdown]
# Compare all columns. The point forecasts of N-BEATS are as accurate as those of AutoETS, those of the MLP slightly
# worse. The MLP that is trained longer is worse in every metric: after so many steps on so few values it is overfitted
# and overconfident, and its 80 % intervals cover a third of the values at best. (Its `predict(level=80)` warns of
# that.) By default networks make only a few passes over so few values: `max_steps="auto"`. Their intervals are still
# too narrow; tutorial 13 shows the remedy. Networks are at their best with many series, with covariates, and with
# patterns that classical models cannot describe.
#
# ## Exercises
#
# 1. Show that an MLP without activation functions is one linear map, however many layers it has.
# 2. Train the same MLP with five seeds. How much do the forecasts differ? How accurate is their mean?
# 3. Increase the learning rate by a factor of 10, then 100. What happens?
# 4. With `head="point"`, train on skewed data with `loss="mse"` and `loss="mae"`. Which forecast is higher?

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# $W_2 (W_1 x + b_1) + b_2 = (W_2 W_1) x + (W_2 b_1 + b_2)$.

# %%
linear_network = nn.Sequential(nn.Linear(L, 32), nn.Linear(32, 32), nn.Linear(32, H)).double()
with torch.no_grad():
    constant = linear_network(torch.zeros(L, dtype=torch.float64))
    matrix = linear_network(torch.eye(L, dtype=torch.float64)) - constant
    np.testing.assert_allclose(linear_network(inputs), inputs @ matrix + constant, atol=1e-10)

# %% [markdown]
# ### Solution 2

# %%
train_frame, truth = frame.iloc[:-H], y[-H:]
forecasts = []
for seed in range(2 if SHORT else 5):
    network = MLP(horizon=H, input_size=48, hidden_sizes=[64], max_steps=STEPS, seed=seed).fit(train_frame)
    forecasts.append(network.predict()["MLP"].to_numpy())
seed_errors = [np.abs(forecast - truth).mean() for forecast in forecasts]
mean_forecast_error = np.abs(np.mean(forecasts, axis=0) - truth).mean()
print("MAE of each seed:", np.round(seed_errors, 2), "of the mean forecast:", round(mean_forecast_error, 2))
print("standard deviation of the forecasts between seeds:", np.std(forecasts, axis=0).mean().round(2))
assert mean_forecast_error <= np.mean(seed_errors)

# %% [markdown]
# The error of the mean forecast is at most the average error of the seeds: the absolute value of a mean is at most the
# mean of the absolute values. Report the results of networks over several seeds; a single seed may be lucky.
#
# ### Solution 3

# %%
import warnings

from deepforecast.errors import TrainingError

for rate in (0.003, 0.03, 0.3):
    settings = {"hidden_sizes": [64], "head": "point", "loss": "mse", "learning_rate": rate, "max_steps": STEPS}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            report = MLP(horizon=H, input_size=L, **settings).fit(frame).training_report_
            print(f"learning rate {rate}: loss of the last ten steps {report['loss'].tail(10).mean():.2f}")
        except TrainingError as error:
            print(f"learning rate {rate}: {error}")
    for warning in caught:
        print(f"  warning: {warning.message}")

# %% [markdown]
# A factor of 10 still works here; with a factor of 100 the steps overshoot the minimum. The library clips gradients
# and warms up the learning rate, so it tolerates large values. If the loss diverges, it restores earlier weights,
# reduces the learning rate and warns; if this does not help, it raises an error.
#
# ### Solution 4

# %%
sales = datasets.generate(10, 300, freq="D", recipe=datasets.Recipe(intermittent=0.6, trend=0.0, seasons=()), seed=3)
mean_forecasts = {}
for name in ("mse", "mae"):
    network = MLP(horizon=7, input_size=28, hidden_sizes=[32], head="point", loss=name, max_steps=STEPS).fit(sales)
    mean_forecasts[name] = network.predict()["MLP"].mean()
print("mean forecast by loss:", {name: round(float(value), 1) for name, value in mean_forecasts.items()})
print("mean demand:", round(sales["y"].mean(), 1))
assert sales["y"].median() == 0
assert SHORT or mean_forecasts["mae"] < 0.5 * sales["y"].mean()
assert SHORT or mean_forecasts["mse"] > 0.75 * sales["y"].mean()

# %% [markdown]
# On more than half of the days nothing is sold, so the median is 0. MAE pulls the forecast towards the median, to less
# than half of the mean demand; MSE brings it close to the mean. As in tutorial 01: choose the loss by the cost of
# errors.
#
# ## Reference
#
# - `MLP`, `NBEATS`, `DLinear`, `NLinear`
# - `compare`, `plot`, `plotting.plot_training`, `plotting.plot_components`
#
# To read on: Goodfellow, Bengio & Courville (2016), *Deep Learning*, chapters 6 to 8; Oreshkin et al. (2020),
# *N-BEATS*; Zeng et al. (2023), *Are Transformers effective for time series forecasting?* (linear networks).
