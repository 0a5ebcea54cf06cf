# %% [markdown]
# # 06 · Deep networks: MLP, N-BEATS, scaling, losses
#
# A neural network is a chain of simple steps with many numbers in it, and a rule that makes the numbers a little better,
# again and again. Here we open one, train one by hand, and see what makes networks good at forecasting: scaled windows, the
# right loss, and knowing when to stop.
#
# **After this you can**
#
# - compute a network's forecast and its gradient by hand
# - say why windows are scaled, and what happens if not
# - choose a loss by what it rewards
# - see overfitting, and stop in time
# - read an N-BEATS forecast as trend and season

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
# A network learns from examples. One example is a **window**: $L$ known values in, the next $H$ values out. A series of $T$
# values has $T - L - H + 1$ windows. We take two years of sea temperature in, one year out.

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
# The **MLP** has an input $x$, hidden layers, and an output. Each layer is a weighted sum, and something that bends it;
# without the bend many layers would be no more than one. With one hidden layer:
#
# $$h = \max(0, \; W_1 x + b_1), \qquad \hat y = W_2 h + b_2.$$
#
# The bend $\max(0, \cdot)$ is called ReLU. Before that, each window is **scaled** to mean 0 and deviation 1, and after it the
# forecast is scaled back:
#
# $$x = \frac{y_{\text{past}} - \mu}{\sigma}, \qquad \hat y_{\text{ahead}} = \mu + \sigma \hat y.$$
#
# Is this really all? We train the library's MLP, take its numbers out, and compute the forecast with numpy.

# %%
model = MLP(horizon=H, input_size=L, hidden_sizes=[32], head="point", loss="mse", calendar=None, max_steps=STEPS).fit(frame)
W1, b1, W2, b2 = (value.numpy().astype(float) for value in model.network_.state_dict().values())
print("shapes:", W1.shape, b1.shape, W2.shape, b2.shape)


def forward(x):
    h = np.maximum(0, x @ W1.T + b1)
    return h @ W2.T + b2


last = y[-L:]
mu, sigma = last.mean(), last.std()
by_hand = mu + sigma * forward((last - mu) / sigma)
np.testing.assert_allclose(model.predict()["MLP"], by_hand, rtol=1e-5)
print("the network's forecast is these two lines")

# %%
plot(frame, model.predict(), max_history=72)

# %% [markdown]
# ## Learning: gradients by the chain rule
#
# At first all weights are random. A **loss** says how bad the forecasts are, here the mean squared error. The **gradient**
# says how the loss changes with each weight. Go backwards through the network, with $n$ the number of forecasts:
#
# $$\begin{aligned}
# \mathcal L &= \tfrac1n \lVert \hat y - t \rVert^2 & \delta_2 &= \tfrac2n (\hat y - t) \\
# \partial \mathcal L / \partial W_2 &= \delta_2^\top h & \partial \mathcal L / \partial b_2 &= \textstyle\sum \delta_2 \\
# & & \delta_1 &= (\delta_2 W_2) \odot [h > 0] \\
# \partial \mathcal L / \partial W_1 &= \delta_1^\top x & \partial \mathcal L / \partial b_1 &= \textstyle\sum \delta_1
# \end{aligned}$$
#
# torch does this by itself, for any chain of steps. Here are both.

# %%
center, spread = past.mean(axis=1, keepdims=True), past.std(axis=1, keepdims=True)
x, t = (past - center) / spread, (ahead - center) / spread

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
for ours, theirs in zip([delta1.T @ x, delta1.sum(0), delta2.T @ h, delta2.sum(0)], by_torch, strict=True):
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
print("gradients by hand and by torch are equal")

# %% [markdown]
# **Gradient descent** takes a small step against the gradient, $W \leftarrow W - \eta \, \partial \mathcal L / \partial W$,
# with the learning rate $\eta$. It looks at some windows at a time, a **batch**. We hold out the last tenth of the windows
# and watch both errors. So that windows of the two parts share no value, we leave out those in between.

# %%
edge = int(0.9 * len(x))
train, held_out = slice(0, edge - L - H), slice(edge, None)
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
            errors = [torch.mean((network(inputs[part]) - targets[part]) ** 2).item() for part in (train, held_out)]
        curves.append((step + 1, *errors))
curves = np.array(curves)

figure, axes = plt.subplots(figsize=(8, 3.3), layout="constrained")
axes.plot(curves[:, 0], curves[:, 1], label="windows of the training")
axes.plot(curves[:, 0], curves[:, 2], "--", label="windows held out")
axes.set(xlabel="step", ylabel="mean squared error (scaled)", ylim=(0, None))
_ = axes.legend()
best = int(curves[:, 2].argmin())
print(f"held out: best {curves[best, 2]:.2f} at step {curves[best, 0]:.0f}, at the end {curves[-1, 2]:.2f}")
print(f"training: at the end {curves[-1, 1]:.2f}")
assert SHORT or curves[-1, 2] > 1.05 * curves[best, 2]

# %% [markdown]
# The training error falls and falls. The error on held-out windows falls, then rises: **overfitting**. The remedy is to stop
# near its lowest point. In the library: `validation` rows are held out of each series, every `validate_every` steps they are
# forecast, the best weights are kept, and after `patience` looks without a better one training ends.

# %%
careful = MLP(
    horizon=H,
    input_size=L,
    hidden_sizes=[64],
    validation_size=72,
    validate_every=20,
    patience=4,
    max_steps=STEPS,
    lr_schedule="constant",
).fit(frame)
print("stopped:", careful.stopped_ or "at the last step")
plot_training(careful.training_report_)

# %% [markdown]
# ## Why scale?
#
# `macrodata_panel` holds twelve quarterly series of the US economy. Product counts in thousands, interest in percents.
# One network is to learn from all of them.

# %%
economy = datasets.load("macrodata_panel")
print(economy.groupby("unique_id")["y"].mean().sort_values().round(1).to_dict())
both = [
    MLP(scaler="none", hidden_sizes=[64], input_size=16, max_steps=STEPS, alias="as they are"),
    MLP(scaler="standard", hidden_sizes=[64], input_size=16, max_steps=STEPS, alias="scaled"),
]
scales = compare([*both, SeasonalNaive()], economy, horizon=8, n_windows=2)
print(scales.table[["model", "mase"]].round(2).to_string(index=False))
mase = scales.table.set_index("model")["mase"]
assert mase["scaled"] < mase["as they are"]

# %% [markdown]
# Without scaling the large series make all of the loss, and weights that suit thousands cannot tell 3 percent from 4.
# With every window brought to one scale, the network learns shapes, and shapes are shared. Another gift: multiply a series by
# 1,000 and the forecast is multiplied by 1,000.

# %%
thousand = frame.assign(y=1000 * frame["y"])
np.testing.assert_allclose(model.predict(frame=thousand)["MLP"], 1000 * model.predict()["MLP"], rtol=1e-5)

# %% [markdown]
# ## Losses
#
# The loss is what the network is told to care about. With the error $e = y - \hat y$:
#
# $$\begin{aligned}
# \text{MSE: } & e^2 & \text{Huber: } & \begin{cases} e^2/2 & |e| \le 1 \\ |e| - 1/2 & |e| > 1 \end{cases} \\
# \text{MAE: } & |e| & \text{pinball: } & \begin{cases} q \, e & e \ge 0 \\ (q - 1) \, e & e < 0 \end{cases}
# \end{aligned}$$

# %%
e = np.linspace(-3, 3, 301)
curves_of = {
    "squared": e**2,
    "absolute": np.abs(e),
    "Huber": np.where(np.abs(e) <= 1, e**2 / 2, np.abs(e) - 0.5),
    "pinball, q = 0.9": np.where(e >= 0, 0.9 * e, (0.9 - 1) * e),
}
figure, axes = plt.subplots(figsize=(7, 3.3), layout="constrained")
for name, values in curves_of.items():
    axes.plot(e, values, label=name)
axes.set(xlabel="error: value minus forecast", ylabel="loss", ylim=(0, 4))
_ = axes.legend()

# %% [markdown]
# Each is smallest at another number: MSE at the mean, MAE at the median, pinball at the $q$-quantile. We check on skewed data.

# %%
values = np.random.default_rng(0).lognormal(0, 1, 2000)
grid = np.linspace(0.01, 8, 800)
error = values[:, None] - grid[None, :]
lowest = {
    "mean": grid[(error**2).mean(0).argmin()],
    "median": grid[np.abs(error).mean(0).argmin()],
    "90 % quantile": grid[np.where(error >= 0, 0.9 * error, -0.1 * error).mean(0).argmin()],
}
print({name: round(float(value), 2) for name, value in lowest.items()})
np.testing.assert_allclose(list(lowest.values()), [values.mean(), np.median(values), np.quantile(values, 0.9)], atol=0.02)

# %% [markdown]
# So a network that is trained with pinball losses of many $q$ at once forecasts a whole distribution. That is the library's
# default, `head="quantiles"`. Therefore `level=` just works.

# %%
probable = MLP(horizon=H, input_size=48, hidden_sizes=[64]).fit(frame)
plot(frame, probable.predict(level=[50, 80, 95]), max_history=72)

# %% [markdown]
# ## N-BEATS
#
# **N-BEATS** is a chain of MLP blocks. Each block $b$ sees what is left of the window, explains a part of it (the backcast
# $\hat x_b$), and adds its part of the forecast:
#
# $$x_{b+1} = x_b - \hat x_b, \qquad \hat y = \sum_b \hat y_b.$$
#
# If a block may only draw polynomials, it can only speak of a **trend**: $\hat y_b = \sum_{i=0}^{d} \theta_i \, \tau^i$ with
# $\tau$ from 0 to 1 over the horizon. If it may only draw sines and cosines, of a **season**. Then the forecast comes apart
# by itself.

# %%
nbeats = NBEATS(
    horizon=24, stacks=["trend", "season"], hidden_sizes=[64, 64], input_size=72, max_steps=STEPS, batch_size=128
).fit(datasets.load("air_passengers"))
parts = nbeats.explain()
total = parts.groupby("ds")["value"].sum().to_numpy()
np.testing.assert_allclose(total, nbeats.predict()["NBEATS"], rtol=1e-6)

trend = parts[parts["component"] == "trend"]["value"].to_numpy()
tau = np.arange(24) / 24
assert np.abs(np.polyval(np.polyfit(tau, trend, 2), tau) - trend).max() < 1e-3 * np.abs(trend).max()  # a parabola, exactly
plot_components(parts[parts["component"] != "rest"])

# %% [markdown]
# `level` is the last value, which the scaling takes off and adds again; trend and season are the two stacks.
#
# ## Are networks better?
#
# On one series of 144 values? Let us look.

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
# Read all columns. By its point forecasts N-BEATS is as good as AutoETS, the MLP a little behind. The MLP that learns longer is
# worse in everything: after so many steps on so few values it knows the past by heart and takes the future to be as sure, so
# that its 80 % intervals hold a third of the values at best. (Its `predict(level=80)` warns of that.) By default the networks
# of the library pass only some times over so few values: `max_steps="auto"`. Still their intervals are narrower than said;
# tutorial 13 says what mends that. Networks come into their own with many series, with columns of their own, and with patterns
# that no formula has.
#
# ## Exercises
#
# 1. Show that an MLP without the bend is one linear map, however many layers it has.
# 2. Train the same MLP with five seeds. How far apart are the forecasts? What does their mean do?
# 3. Take the learning rate ten times larger, then a hundred times. What happens?
# 4. With `head="point"`, train on skewed data with `loss="mse"` and `loss="mae"`. Which forecast is higher?

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# $W_2 (W_1 x + b_1) + b_2 = (W_2 W_1) x + (W_2 b_1 + b_2)$.

# %%
straight = nn.Sequential(nn.Linear(L, 32), nn.Linear(32, 32), nn.Linear(32, H)).double()
with torch.no_grad():
    constant = straight(torch.zeros(L, dtype=torch.float64))
    matrix = straight(torch.eye(L, dtype=torch.float64)) - constant
    np.testing.assert_allclose(straight(inputs), inputs @ matrix + constant, atol=1e-10)

# %% [markdown]
# ### Solution 2

# %%
train_frame, truth = frame.iloc[:-H], y[-H:]
runs = [
    MLP(horizon=H, input_size=48, hidden_sizes=[64], max_steps=STEPS, seed=seed).fit(train_frame).predict()["MLP"].to_numpy()
    for seed in range(2 if SHORT else 5)
]
each = [np.abs(run - truth).mean() for run in runs]
together = np.abs(np.mean(runs, axis=0) - truth).mean()
print("errors of the seeds:", np.round(each, 2), "of their mean forecast:", round(together, 2))
print("spread of the forecasts:", np.std(runs, axis=0).mean().round(2))
assert together <= np.mean(each)

# %% [markdown]
# The mean forecast is never worse than the seeds are on average: the absolute value of a mean is at most the mean of the
# absolute values. Report a network by several seeds; a single lucky one is no result.
#
# ### Solution 3

# %%
from deepforecast.errors import TrainingError

for rate in (0.003, 0.03, 0.3):
    hasty = MLP(horizon=H, input_size=L, hidden_sizes=[64], head="point", loss="mse", learning_rate=rate, max_steps=STEPS)
    try:
        report = hasty.fit(frame).training_report_
        print(f"learning rate {rate}: loss of the last ten steps {report['loss'].tail(10).mean():.2f}")
    except TrainingError as error:
        print(f"learning rate {rate}: {error}")

# %% [markdown]
# Ten times as large is still well here, a hundred times leaps over the valley. The library clips gradients and raises the
# rate slowly, so it forgives much. Where the loss explodes all the same, it says so and gives no forecast.
#
# ### Solution 4

# %%
sales = datasets.generate(10, 300, freq="D", recipe=datasets.Recipe(intermittent=0.6, trend=0.0, seasons=()), seed=3)
means = {}
for name in ("mse", "mae"):
    fitted = MLP(horizon=7, input_size=28, hidden_sizes=[32], head="point", loss=name, max_steps=STEPS).fit(sales)
    means[name] = fitted.predict()["MLP"].mean()
print({name: round(float(value), 1) for name, value in means.items()}, "mean demand:", round(sales["y"].mean(), 1))
assert sales["y"].median() == 0
assert SHORT or means["mae"] < 0.5 * sales["y"].mean()
assert SHORT or means["mse"] > 0.75 * sales["y"].mean()

# %% [markdown]
# On more than half of the days nothing is sold, so the median of all days is 0. MAE pulls the forecast towards the median,
# to less than half of the mean demand; MSE brings it close to the mean. See tutorial 01: choose by what an error costs.
#
# ## Reference
#
# - `MLP`, `NBEATS`, `DLinear`, `NLinear`
# - `compare`, `plot`, `plotting.plot_training`, `plotting.plot_components`
#
# To read on: Goodfellow, Bengio & Courville (2016), *Deep Learning*, chapters 6 to 8; Oreshkin et al. (2020), *N-BEATS*; Zeng
# et al. (2023), *Are Transformers effective for time series forecasting?* (linear networks).
