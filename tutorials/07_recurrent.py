# %% [markdown]
# # 07 · RNN, LSTM, GRU: from the equations to the library
#
# A recurrent network processes a series value by value and passes on a hidden state, which serves as its memory. In
# principle it can store information indefinitely. In practice its gradients vanish or explode. We observe both, and
# implement the methods that were developed against them.
#
# **After this you can**
#
# - write an RNN, an LSTM and a GRU as loops whose outputs equal those of torch's layers
# - explain why gradients vanish and explode, and measure it
# - clip a gradient, and state which problem this solves
# - compute the forecast of the library's LSTM from its weights by hand

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from deepforecast import GRU, LSTM, RNN, AutoETS, SeasonalNaive, compare, datasets, plot
from deepforecast.plotting import plot_training

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training
STEPS = 15 if SHORT else 300

# %% [markdown]
# ## The recurrent network
#
# At each step $t$ the network receives a value $x_t$ and the previous hidden state $h_{t-1}$, and computes the next
# hidden state:
#
# $$h_t = \tanh(W x_t + U h_{t-1} + b).$$
#
# The weights $W$, $U$ and $b$ are the same at every step, so series of any length can be processed. We write the loop
# and compare it with torch's layer.


# %%
def weights_of(layer):
    """The weights of a recurrent layer of torch: W, U and two biases, which are added."""
    return [weight.detach().numpy() for weight in layer.parameters()]


def rnn(x, layer):
    W, U, b_input, b_hidden = weights_of(layer)
    h, states = np.zeros(U.shape[0]), []
    for value in x:
        h = np.tanh(W @ value + U @ h + b_input + b_hidden)
        states.append(h)
    return np.array(states)


def make_layer(layer_class, n_inputs, hidden_size, seed=0):
    """A layer of torch with reproducible random weights; the global random state does not change."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return layer_class(n_inputs, hidden_size, batch_first=True).double()


x = np.random.default_rng(0).standard_normal((50, 1))
layer = make_layer(nn.RNN, 1, 8)
np.testing.assert_allclose(rnn(x, layer), layer(torch.from_numpy(x)[None])[0][0].detach(), atol=1e-12)
print("the loop equals torch.nn.RNN")

# %% [markdown]
# ## Backpropagation through time: the gradient is a product
#
# Training requires the derivative of the current state with respect to states far in the past. By the chain rule, this
# derivative is a product with one factor per step:
#
# $$\frac{\partial h_T}{\partial h_k} = \prod_{t=k+1}^{T} \operatorname{diag}(1 - h_t^2) \; U.$$
#
# A product of many numbers below 1 tends to 0, a product of many numbers above 1 to infinity. For matrices, the largest
# singular value $\rho$ of $U$ takes the role of these numbers. We set $U = \rho Q$ with an orthogonal matrix $Q$, and
# measure the norm of the gradient as a function of the number of steps back in time.


# %%
def gradient_norms(rho, steps=60, size=16, activation=np.tanh):
    """Norm of the derivative of the last state with respect to the state 1, 2, ... steps before."""
    generator = np.random.default_rng(1)
    Q, _ = np.linalg.qr(generator.standard_normal((size, size)))
    U, h, jacobians = rho * Q, np.zeros(size), []
    for _ in range(steps):
        h = activation(U @ h + 0.05 * generator.standard_normal(size))
        derivative = 1 - h**2 if activation is np.tanh else np.ones(size)
        jacobians.append(derivative[:, None] * U)
    product, norms = np.eye(size), []
    for jacobian in reversed(jacobians):
        product = product @ jacobian
        norms.append(np.linalg.norm(product, 2))
    return np.array(norms)


figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
linear_norms = {rho: gradient_norms(rho, activation=lambda value: value) for rho in (0.8, 1.0, 1.2)}
for rho, norms in linear_norms.items():
    axes.semilogy(np.arange(1, 61), norms, label=f"rho = {rho}, linear")
tanh_norms = gradient_norms(1.2)
axes.semilogy(np.arange(1, 61), tanh_norms, "--", label="rho = 1.2, tanh")
axes.set(xlabel="steps back in time", ylabel="norm of the gradient")
axes.legend()
for rho, norms in linear_norms.items():
    print(f"rho {rho}, linear: norm after 60 steps {norms[-1]:.1e}")
np.testing.assert_allclose([norms[-1] for norms in linear_norms.values()], [0.8**60, 1.0, 1.2**60])
print(f"rho 1.2, tanh:   norm after 60 steps {tanh_norms[-1]:.1e}")

# %% [markdown]
# For $\rho < 1$ the gradient **vanishes**: the effect of values 60 steps ago cannot be learned. For $\rho > 1$ it
# **explodes**: a single training step can move the weights very far. The activation function can only make the factors
# smaller. There is no value of $\rho$ that works throughout training.
#
# ## Gradient clipping against exploding gradients
#
# If the norm of the gradient $g$ exceeds a limit $c$, the gradient is scaled to the norm $c$. Its direction does not
# change:
#
# $$g \leftarrow g \cdot \min\left(1, \frac{c}{\lVert g \rVert}\right).$$


# %%
def clip(gradients, limit):
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    return [g * min(1.0, limit / norm) for g in gradients]


layer = make_layer(nn.RNN, 1, 8)
with torch.no_grad():
    layer.weight_hh_l0 *= 4
output, _ = layer(torch.from_numpy(x)[None])
(100 * output[0, -1].sum()).backward()
gradients = [weight.grad.numpy().copy() for weight in layer.parameters()]
norm_before = torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0).item()
for clipped, weight in zip(clip(gradients, 1.0), layer.parameters(), strict=True):
    np.testing.assert_allclose(clipped, weight.grad.numpy(), rtol=1e-5)
norm_after = np.sqrt(sum((weight.grad.numpy() ** 2).sum() for weight in layer.parameters()))
print(f"norm before clipping {norm_before:.2f}, after {norm_after:.2f}")

# %% [markdown]
# In the library, the limit is `gradient_clip_val`, 1 by default, and `training_report_` contains the gradient norm of
# each step before clipping. Clipping limits the effect of a single step on the weights. It does not prevent vanishing
# gradients.
#
# ## The LSTM against vanishing gradients
#
# The **long short-term memory** has a second state, the cell state $c_t$, which is not multiplied by a matrix and
# passed through a tanh at each step. It is only multiplied by a factor, and something is added to it. Three **gates**,
# with values between 0 and 1, control what is forgotten, what is added and what is output:
#
# $$\begin{aligned}
# i_t &= \sigma(W_i x_t + U_i h_{t-1} + b_i) && \text{input gate} \\
# f_t &= \sigma(W_f x_t + U_f h_{t-1} + b_f) && \text{forget gate} \\
# g_t &= \tanh(W_g x_t + U_g h_{t-1} + b_g) && \text{candidate} \\
# o_t &= \sigma(W_o x_t + U_o h_{t-1} + b_o) && \text{output gate} \\
# c_t &= f_t \odot c_{t-1} + i_t \odot g_t \\
# h_t &= o_t \odot \tanh(c_t)
# \end{aligned}$$


# %%
def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def lstm(x, layer):
    W, U, b_input, b_hidden = weights_of(layer)
    hidden_size = U.shape[1]
    h, c = np.zeros(hidden_size), np.zeros(hidden_size)
    states, cells, forget_gates = [], [], []
    for value in x:
        i, f, g, o = np.split(W @ value + U @ h + b_input + b_hidden, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
        cells.append(c)
        forget_gates.append(sigmoid(f))
    return np.array(states), np.array(cells), np.array(forget_gates)


layer = make_layer(nn.LSTM, 1, 8)
output, (_, last_cell) = layer(torch.from_numpy(x)[None])
states, cells, _ = lstm(x, layer)
np.testing.assert_allclose(states, output[0].detach(), atol=1e-12)
np.testing.assert_allclose(cells[-1], last_cell[0, 0].detach(), atol=1e-12)
print("the loop equals torch.nn.LSTM")

# %% [markdown]
# Why does this help? The gradient of the cell state is a product of forget gates only:
#
# $$\frac{\partial c_T}{\partial c_k} \approx \prod_{t=k+1}^{T} f_t.$$
#
# The network can learn gates close to 1; the product then stays close to 1. With a forget bias of 4, that is
# $\sigma(4) = 0.982$, a third of the gradient is left after 60 steps.
#
# ## The GRU
#
# The **gated recurrent unit** has only two gates and one state:
#
# $$\begin{aligned}
# r_t &= \sigma(W_r x_t + U_r h_{t-1} + b_r) && \text{reset gate} \\
# z_t &= \sigma(W_z x_t + U_z h_{t-1} + b_z) && \text{update gate} \\
# n_t &= \tanh(W_n x_t + b_n + r_t \odot (U_n h_{t-1} + b'_n)) && \text{candidate} \\
# h_t &= z_t \odot h_{t-1} + (1 - z_t) \odot n_t
# \end{aligned}$$
#
# A large $z_t$ keeps the previous state.


# %%
def gru(x, layer):
    W, U, b_input, b_hidden = weights_of(layer)
    h, states = np.zeros(U.shape[1]), []
    for value in x:
        r_input, z_input, n_input = np.split(W @ value + b_input, 3)
        r_hidden, z_hidden, n_hidden = np.split(U @ h + b_hidden, 3)
        r, z = sigmoid(r_input + r_hidden), sigmoid(z_input + z_hidden)
        h = z * h + (1 - z) * np.tanh(n_input + r * n_hidden)
        states.append(h)
    return np.array(states)


layer = make_layer(nn.GRU, 1, 8)
np.testing.assert_allclose(gru(x, layer), layer(torch.from_numpy(x)[None])[0][0].detach(), atol=1e-12)
print("the loop equals torch.nn.GRU")

# %% [markdown]
# ## A memory task
#
# The first value of each sequence is $+1$ or $-1$. It is followed by noise; the sequence has 40 values. At the end the
# network has to output the first value. A network that has not stored it can only guess, with a mean squared error of
# 1.

# %%
LENGTH, TRAINING_STEPS = 40, 30 if SHORT else 400


def train_on_memory_task(layer_class, seed=0):
    """Mean squared error of each training step."""
    generator = torch.Generator().manual_seed(seed)
    recurrent, output_layer = make_layer(layer_class, 1, 24, seed).float(), nn.Linear(24, 1)
    nn.init.zeros_(output_layer.bias)
    nn.init.uniform_(output_layer.weight, -0.2, 0.2, generator=generator)
    if layer_class is not nn.RNN:
        with torch.no_grad():
            recurrent.bias_ih_l0[24:48] += 4.0  # f of the LSTM, z of the GRU: the initial state is kept
    weights = [*recurrent.parameters(), *output_layer.parameters()]
    optimizer = torch.optim.Adam(weights, lr=0.005)
    errors = []
    for _ in range(TRAINING_STEPS):
        sequences = 0.3 * torch.randn(64, LENGTH, 1, generator=generator)
        sequences[:, 0, 0] = torch.randint(0, 2, (64,), generator=generator) * 2.0 - 1.0
        last_states = recurrent(sequences)[0][:, -1]
        loss = torch.mean((output_layer(last_states)[:, 0] - sequences[:, 0, 0]) ** 2)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        errors.append(loss.item())
    return np.array(errors)


memory_errors = {layer_class.__name__: train_on_memory_task(layer_class) for layer_class in (nn.RNN, nn.GRU, nn.LSTM)}
figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
for name, errors in memory_errors.items():
    axes.plot(np.convolve(errors, np.ones(10) / 10, mode="valid"), label=name)
axes.set(xlabel="training step", ylabel="mean squared error", ylim=(0, None))
axes.legend()
final_errors = {name: float(errors[-20:].mean()) for name, errors in memory_errors.items()}
print({name: round(error, 3) for name, error in final_errors.items()})
assert SHORT or max(final_errors["GRU"], final_errors["LSTM"]) < 0.1 < final_errors["RNN"]

# %% [markdown]
# The gated networks learn to store one number over 40 steps. The plain RNN does not improve on guessing: its gradient
# from step 40 to step 1 is too small.
#
# ## The library's LSTM by hand
#
# We train a small LSTM and compute its forecast from its weights: scale the window, run the LSTM over it, and use its
# states. For each step of the horizon, linear maps of the state one season earlier and of the last state are added.
# (`skip_hidden_sizes=(256, 256)` adds the output of an MLP that has the window as input.)

# %%
passengers = datasets.load("air_passengers")
y = passengers["y"].to_numpy()
L, H, season = 36, 12, 12
small = LSTM(
    horizon=H,
    input_size=L,
    hidden_size=8,
    head="point",
    calendar=None,
    decoder_layers=0,
    max_steps=STEPS,
).fit(passengers)
weights = {name: value.double() for name, value in small.network_.state_dict().items()}

layer = nn.LSTM(2, 8, batch_first=True).double()
names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
layer.load_state_dict({name: weights[f"body.encoder.cells.0.{name}"] for name in names})

window = y[-L:]
mu, sigma = window.mean(), window.std()
observed = np.ones(L)  # second input: 1 for an observed value, 0 for a missing one
states, cells, forget_gates = lstm(np.column_stack([(window - mu) / sigma, observed]), layer)
seasonal_states, last_state = states[-season:], states[-1]
names = ("step_projection.weight", "step_projection.bias", "state_projection.weight", "step_bias")
w, b, v, step_bias = (weights[f"body.{name}"].numpy().squeeze() for name in names)
by_hand = mu + sigma * (seasonal_states @ w + b + last_state @ v + step_bias)
np.testing.assert_allclose(small.predict()["LSTM"], by_hand, rtol=1e-5)
print("the forecast by hand equals that of the library")

# %%
figure, axes = plt.subplots(2, 1, figsize=(9, 4.5), sharex=True, layout="constrained")
axes[0].plot(window, "k")
axes[0].set(ylabel="passengers")
image = axes[1].imshow(forget_gates.T, aspect="auto", cmap="viridis", vmin=0, vmax=1)
axes[1].set(xlabel="month of the window", ylabel="cell", title="forget gates (1: keep, 0: forget)")
_ = figure.colorbar(image, ax=axes[1])

# %% [markdown]
# ## Forecasting with recurrent networks
#
# `RNN`, `GRU` and `LSTM` have the same options. Here is the training of a GRU, with its gradient norms.

# %%
frame = datasets.load("elnino")
settings = {"input_size": 48, "hidden_size": 32}
gru_model = GRU(horizon=12, **settings).fit(frame)
plot_training(gru_model.training_report_)

# %%
plot(frame, gru_model.predict(level=[50, 80, 95]), max_history=72)

# %%
board = compare(
    [SeasonalNaive(), AutoETS(), RNN(**settings), GRU(**settings), LSTM(**settings)],
    frame,
    horizon=12,
    n_windows=2 if SHORT else 8,
    refit=False,
    level=80,
)
print(board.table[["model", "mase", "coverage-80", "fit_seconds"]].round(2).to_string(index=False))
results = board.table.set_index("model")
recurrent = results.loc[["RNN", "GRU", "LSTM"]]
assert SHORT or recurrent["mase"].max() < results.loc[["SeasonalNaive", "AutoETS"], "mase"].min()
assert SHORT or recurrent["mase"].max() - recurrent["mase"].min() < 0.05
assert SHORT or recurrent["coverage-80"].max() < 0.8

# %% [markdown]
# The error of all three networks is about a tenth below that of the seasonal naive forecast, and the plain RNN is as
# accurate as the gated networks: remembering one year does not require a long memory, and the state one season earlier
# is an input of the forecast anyway. `coverage-80` shows that the intervals of the networks are too narrow: a single
# series is a small training set. Does longer training help?

# %%
max_steps = 20 if SHORT else 300
longer = compare(
    [GRU(max_steps=max_steps, **settings), LSTM(max_steps=max_steps, **settings)],
    frame,
    horizon=12,
    n_windows=2 if SHORT else 8,
    refit=False,
    level=80,
).table.set_index("model")
print(longer[["mase", "coverage-80"]].round(2).to_string())
for name in ("GRU", "LSTM"):
    assert SHORT or longer.loc[name, "mase"] > results.loc[name, "mase"]
    assert SHORT or longer.loc[name, "coverage-80"] < results.loc[name, "coverage-80"]

# %% [markdown]
# No: after 300 steps both networks have a larger error and narrower intervals, as in tutorial 06. They overfit a single
# series. Check on your own data whether the additional cost of gates is worthwhile.
#
# ## Exercises
#
# 1. How many weights do an RNN, a GRU and an LSTM with hidden size $n$ and one input have? Check with torch.
# 2. The forget gate of a cell is 0.9 at every step. After how many steps is half of the cell state left? Which forget
#    bias keeps half of it for 100 steps?
# 3. Repeat the memory task with `LENGTH` 10 for the RNN. Why does it succeed?
# 4. `output="autoregressive"` forecasts step by step, with its own samples as inputs. Compare it with the direct LSTM.

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# One set of $W$ (size $n$), $U$ ($n \times n$) and two biases has $n^2 + 3n$ weights. The GRU has three such sets, the
# LSTM four.

# %%
n = 24
for layer_class, n_sets in ((nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)):
    n_weights = sum(weight.numel() for weight in layer_class(1, n).parameters())
    assert n_weights == n_sets * (n**2 + 3 * n)
    print(f"{layer_class.__name__:4s} {n_weights}")

# %% [markdown]
# ### Solution 2
#
# $0.9^j = \tfrac12$ gives $j$; $\sigma(b)^{100} = \tfrac12$ gives $\sigma(b) = 2^{-1/100}$.

# %%
gate = 2 ** (-1 / 100)
print(f"half is left after {np.log(0.5) / np.log(0.9):.1f} steps; the forget bias is {np.log(gate / (1 - gate)):.2f}")

# %% [markdown]
# ### Solution 3

# %%
LENGTH = 10
errors = train_on_memory_task(nn.RNN)
print(f"mean squared error of the RNN with sequences of 10 values: {errors[-20:].mean():.3f}")
assert SHORT or errors[-20:].mean() < 0.1

# %% [markdown]
# A product of ten factors is not yet close to 0. Vanishing gradients are a problem of long sequences.
#
# ### Solution 4

# %%
strategies = compare(
    [LSTM(**settings, alias="direct"), LSTM(**settings, output="autoregressive", alias="autoregressive")],
    frame,
    horizon=12,
    n_windows=2 if SHORT else 8,
    refit=False,
    level=80,
)
print(strategies.table[["model", "mase", "coverage-80", "predict_seconds"]].round(2).to_string(index=False))
coverage = strategies.table.set_index("model")["coverage-80"]
assert SHORT or coverage["autoregressive"] > coverage["direct"]

# %% [markdown]
# The autoregressive forecast takes longer, since many sample paths are drawn. Its intervals are wider: each sample
# depends on the samples before it, so the uncertainty accumulates. It also yields complete sample paths, which
# `simulate` returns.
#
# ## Reference
#
# - `RNN`, `GRU`, `LSTM`, `Seq2Seq`
# - `compare`, `plot`, `plotting.plot_training`
#
# To read on: Hochreiter & Schmidhuber (1997), *Long short-term memory*; Cho et al. (2014) on the GRU; Pascanu, Mikolov
# & Bengio (2013), *On the difficulty of training recurrent neural networks*. Next: attention (tutorial 08), which
# accesses past states directly instead of storing them in a single state.
