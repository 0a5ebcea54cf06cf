# %% [markdown]
# # 07 · RNN, LSTM, GRU: from the equations to the library
#
# A recurrent network reads a series value by value and carries a state along: a memory. In principle it can remember for
# ever. In practice its gradient vanishes or explodes. We see both happen, and what was invented against it.
#
# **After this you can**
#
# - write RNN, LSTM and GRU as loops that equal torch's layers
# - show why gradients vanish and explode, and measure it
# - clip a gradient, and say what that helps against
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
# At each step $t$ the network sees a value $x_t$ and its own state before, $h_{t-1}$, and makes the next state:
#
# $$h_t = \tanh(W x_t + U h_{t-1} + b).$$
#
# $W$, $U$ and $b$ are the same at every step. So it can read series of any length. We write the loop and compare it with
# torch's layer.

# %%
def numbers(layer):
    """The weights of a recurrent layer of torch: W, U and the two biases it adds."""
    return [weight.detach().numpy() for weight in layer.parameters()]


def rnn(x, layer):
    W, U, b, c = numbers(layer)
    h, states = np.zeros(U.shape[0]), []
    for value in x:
        h = np.tanh(W @ value + U @ h + b + c)
        states.append(h)
    return np.array(states)


def seeded(kind, inputs, size, seed=0):
    """A layer of torch with small random weights that are the same in every run; the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(inputs, size, batch_first=True).double()


x = np.random.default_rng(0).standard_normal((50, 1))
layer = seeded(nn.RNN, 1, 8)
np.testing.assert_allclose(rnn(x, layer), layer(torch.from_numpy(x)[None])[0][0].detach(), atol=1e-12)
print("the loop equals torch.nn.RNN")

# %% [markdown]
# ## Through time: the gradient is a product
#
# Training needs the derivative of the current state with respect to a state far in the past. By the chain rule this is a
# product with one factor per step:
#
# $$\frac{\partial h_T}{\partial h_k} = \prod_{t=k+1}^{T} \operatorname{diag}(1 - h_t^2) \; U.$$
#
# A product of many numbers below 1 goes to 0, one of many above 1 to infinity. With matrices it is the same; what counts is
# the size of $U$, its largest singular value $\rho$. We take $U = \rho Q$ with $Q$ a rotation, and measure how large the
# gradient still is, step by step back.

# %%
def gradient_norms(rho, steps=60, size=16, bend=np.tanh):
    """How large the gradient of the last state is with respect to the state so many steps before."""
    generator = np.random.default_rng(1)
    Q, _ = np.linalg.qr(generator.standard_normal((size, size)))
    U, h, factors = rho * Q, np.zeros(size), []
    for _ in range(steps):
        h = bend(U @ h + 0.05 * generator.standard_normal(size))
        slope = 1 - h**2 if bend is np.tanh else np.ones(size)
        factors.append(slope[:, None] * U)
    product, norms = np.eye(size), []
    for factor in reversed(factors):
        product = product @ factor
        norms.append(np.linalg.norm(product, 2))
    return np.array(norms)


figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
sizes = {rho: gradient_norms(rho, bend=lambda value: value) for rho in (0.8, 1.0, 1.2)}
for rho, norms in sizes.items():
    axes.semilogy(np.arange(1, 61), norms, label=f"rho = {rho}, linear")
bent = gradient_norms(1.2)
axes.semilogy(np.arange(1, 61), bent, "--", label="rho = 1.2, with tanh")
axes.set(xlabel="steps back", ylabel="norm of the gradient")
axes.legend()
for rho, norms in sizes.items():
    print(f"rho {rho}: after 60 steps {norms[-1]:.1e}")
np.testing.assert_allclose([norms[-1] for norms in sizes.values()], [0.8**60, 1.0, 1.2**60])
print(f"rho 1.2 with tanh: {bent[-1]:.1e}")

# %% [markdown]
# Below 1 it **vanishes**: what happened 60 steps ago cannot be learned. Above 1 it **explodes**: one step of training throws
# the weights far away. The bend only ever makes factors smaller. There is no good $\rho$ that stays good.
#
# ## Against explosion: clipping
#
# If the gradient $g$ is longer than $c$, shorten it to $c$. The direction stays:
#
# $$g \leftarrow g \cdot \min\left(1, \frac{c}{\lVert g \rVert}\right).$$

# %%
def clip(gradients, limit):
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    return [g * min(1.0, limit / norm) for g in gradients]


layer = seeded(nn.RNN, 1, 8)
with torch.no_grad():
    layer.weight_hh_l0 *= 4
output, _ = layer(torch.from_numpy(x)[None])
(100 * output[0, -1].sum()).backward()
gradients = [weight.grad.numpy().copy() for weight in layer.parameters()]
before = torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0).item()
for ours, theirs in zip(clip(gradients, 1.0), layer.parameters(), strict=True):
    np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-5)
after = np.sqrt(sum((weight.grad.numpy() ** 2).sum() for weight in layer.parameters()))
print(f"norm before {before:.2f}, after {after:.2f}")

# %% [markdown]
# In the library that is `gradient_clip_val`, 1 by default, and `training_report_` contains the gradient norm of each step
# before clipping. Clipping protects the weights from one bad step. It does not prevent vanishing gradients.
#
# ## Against vanishing: the LSTM
#
# The **long short-term memory** has a second state, the cell $c_t$, that is not squeezed through a matrix and a tanh at each
# step. It is kept, up to a factor, and added to. Three **gates**, numbers between 0 and 1, decide what is forgotten, what
# comes in and what is shown:
#
# $$\begin{aligned}
# i_t &= \sigma(W_i x_t + U_i h_{t-1} + b_i) && \text{in} \\
# f_t &= \sigma(W_f x_t + U_f h_{t-1} + b_f) && \text{forget} \\
# g_t &= \tanh(W_g x_t + U_g h_{t-1} + b_g) && \text{candidate} \\
# o_t &= \sigma(W_o x_t + U_o h_{t-1} + b_o) && \text{out} \\
# c_t &= f_t \odot c_{t-1} + i_t \odot g_t \\
# h_t &= o_t \odot \tanh(c_t)
# \end{aligned}$$

# %%
def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def lstm(x, layer):
    W, U, b, c0 = numbers(layer)
    size = U.shape[1]
    h, c, states, cells, forget = np.zeros(size), np.zeros(size), [], [], []
    for value in x:
        i, f, g, o = np.split(W @ value + U @ h + b + c0, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
        cells.append(c)
        forget.append(sigmoid(f))
    return np.array(states), np.array(cells), np.array(forget)


layer = seeded(nn.LSTM, 1, 8)
output, (_, cell) = layer(torch.from_numpy(x)[None])
states, cells, _ = lstm(x, layer)
np.testing.assert_allclose(states, output[0].detach(), atol=1e-12)
np.testing.assert_allclose(cells[-1], cell[0, 0].detach(), atol=1e-12)
print("the loop equals torch.nn.LSTM")

# %% [markdown]
# Why does this help? Along the cell the gradient is a product of forget gates, and of nothing else:
#
# $$\frac{\partial c_T}{\partial c_k} \approx \prod_{t=k+1}^{T} f_t.$$
#
# A gate can be learned to be near 1. Then the product stays near 1. With a forget bias of 4, $\sigma(4) = 0.982$, a third is
# left after 60 steps.
#
# ## The GRU
#
# The **gated recurrent unit** does with two gates and one state:
#
# $$\begin{aligned}
# r_t &= \sigma(W_r x_t + U_r h_{t-1} + b_r) && \text{reset} \\
# z_t &= \sigma(W_z x_t + U_z h_{t-1} + b_z) && \text{keep} \\
# n_t &= \tanh(W_n x_t + b_n + r_t \odot (U_n h_{t-1} + b'_n)) && \text{new} \\
# h_t &= z_t \odot h_{t-1} + (1 - z_t) \odot n_t
# \end{aligned}$$

# %%
def gru(x, layer):
    W, U, b, c = numbers(layer)
    h, states = np.zeros(U.shape[1]), []
    for value in x:
        (r, z, n), (r_h, z_h, n_h) = np.split(W @ value + b, 3), np.split(U @ h + c, 3)
        r, z = sigmoid(r + r_h), sigmoid(z + z_h)
        h = z * h + (1 - z) * np.tanh(n + r * n_h)
        states.append(h)
    return np.array(states)


layer = seeded(nn.GRU, 1, 8)
np.testing.assert_allclose(gru(x, layer), layer(torch.from_numpy(x)[None])[0][0].detach(), atol=1e-12)
print("the loop equals torch.nn.GRU")

# %% [markdown]
# ## A test of memory
#
# The first value of a sequence is $+1$ or $-1$. Then comes noise, 40 values of it. At the end the network is asked for the
# first value. Whoever forgets must guess; guessing has an error of 1.

# %%
LENGTH, ROUNDS = 40, 30 if SHORT else 400


def remember(kind, seed=0):
    """The error of each round of training."""
    generator = torch.Generator().manual_seed(seed)
    reader, answer = seeded(kind, 1, 24, seed).float(), nn.Linear(24, 1)
    nn.init.zeros_(answer.bias)
    nn.init.uniform_(answer.weight, -0.2, 0.2, generator=generator)
    if kind is not nn.RNN:
        with torch.no_grad():
            reader.bias_ih_l0[24:48] += 4.0  # the gates that keep (f of the LSTM, z of the GRU) begin open
    weights = [*reader.parameters(), *answer.parameters()]
    optimizer = torch.optim.Adam(weights, lr=0.005)
    errors = []
    for _ in range(ROUNDS):
        sequence = 0.3 * torch.randn(64, LENGTH, 1, generator=generator)
        sequence[:, 0, 0] = torch.randint(0, 2, (64,), generator=generator) * 2.0 - 1.0
        loss = torch.mean((answer(reader(sequence)[0][:, -1])[:, 0] - sequence[:, 0, 0]) ** 2)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        errors.append(loss.item())
    return np.array(errors)


learned = {kind.__name__: remember(kind) for kind in (nn.RNN, nn.GRU, nn.LSTM)}
figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
for name, errors in learned.items():
    axes.plot(np.convolve(errors, np.ones(10) / 10, mode="valid"), label=name)
axes.set(xlabel="round of training", ylabel="mean squared error", ylim=(0, None))
axes.legend()
print({name: round(float(errors[-20:].mean()), 3) for name, errors in learned.items()})
assert SHORT or max(learned["GRU"][-20:].mean(), learned["LSTM"][-20:].mean()) < 0.1 < learned["RNN"][-20:].mean()

# %% [markdown]
# The gated networks learn to carry one number over 40 steps. The plain one stays at guessing: its gradient from step 40 to
# step 1 is too small to tell it anything.
#
# ## The library's LSTM, by hand
#
# We train a small one and compute its forecast from its weights: scale the window, run the gates over it, read the states.
# For each step ahead the network reads the state one season earlier and the last state. (By default there is also a
# perceptron in parallel that sees the window; `skip_hidden_sizes=None` leaves it out.)

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
    skip_hidden_sizes=None,
    decoder_layers=0,
    max_steps=STEPS,
).fit(passengers)
weight = {name: value.double() for name, value in small.network_.state_dict().items()}

reader = nn.LSTM(2, 8, batch_first=True).double()
parts = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
reader.load_state_dict({part: weight[f"body.encoder.cells.0.{part}"] for part in parts})

window = y[-L:]
mu, sigma = window.mean(), window.std()
seen = np.ones(L)  # beside each value it is told whether the value was there
states, cells, forget = lstm(np.column_stack([(window - mu) / sigma, seen]), reader)
own, last = states[-season:], states[-1]
names = ("step_projection.weight", "step_projection.bias", "state_projection.weight", "step_bias")
w, b, v, steps = (weight[f"body.{name}"].numpy().squeeze() for name in names)
by_hand = mu + sigma * (own @ w + b + last @ v + steps)
np.testing.assert_allclose(small.predict()["LSTM"], by_hand, rtol=1e-5)
print("the library's LSTM is these lines")

# %%
figure, axes = plt.subplots(2, 1, figsize=(9, 4.5), sharex=True, layout="constrained")
axes[0].plot(window, "k")
axes[0].set(ylabel="passengers")
picture = axes[1].imshow(forget.T, aspect="auto", cmap="viridis", vmin=0, vmax=1)
axes[1].set(xlabel="month of the window", ylabel="cell", title="forget gates: 1 keeps, 0 forgets")
_ = figure.colorbar(picture, ax=axes[1])

# %% [markdown]
# ## In use
#
# `RNN`, `GRU` and `LSTM` take the same options. Here is the training of one, with the norm of its gradients.

# %%
frame = datasets.load("elnino")
settings = {"input_size": 48, "hidden_size": 32}
gated = GRU(horizon=12, **settings).fit(frame)
plot_training(gated.training_report_)

# %%
plot(frame, gated.predict(level=[50, 80, 95]), max_history=72)

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
found = board.table.set_index("model")
gates = found.loc[["RNN", "GRU", "LSTM"]]
assert SHORT or gates["mase"].max() < found.loc[["SeasonalNaive", "AutoETS"], "mase"].min()
assert SHORT or gates["mase"].max() - gates["mase"].min() < 0.05
assert SHORT or gates["coverage-80"].max() < 0.8

# %% [markdown]
# All three are a tenth better than last year's value, and the plain RNN is as good as those with gates: a year is no long
# memory, and the state one season earlier is at hand anyway. `coverage-80` says that the networks are too sure of
# themselves: one series is little to learn from. Do more steps of training help?

# %%
steps = 20 if SHORT else 300
longer = compare(
    [GRU(max_steps=steps, **settings), LSTM(max_steps=steps, **settings)],
    frame,
    horizon=12,
    n_windows=2 if SHORT else 8,
    refit=False,
    level=80,
).table.set_index("model")
print(longer[["mase", "coverage-80"]].round(2).to_string())
for name in ("GRU", "LSTM"):
    assert SHORT or longer.loc[name, "mase"] > found.loc[name, "mase"]
    assert SHORT or longer.loc[name, "coverage-80"] < found.loc[name, "coverage-80"]

# %% [markdown]
# No: after 300 steps both have a larger error and narrower intervals, as in tutorial 06. They are overfitted to one series.
# Test on your data before you pay for gates.
#
# ## Exercises
#
# 1. How many numbers has an RNN, a GRU, an LSTM of size $n$ on one input? Check with torch.
# 2. The forget gate of a cell is 0.9 at every step. After how many steps is half of the cell's content left? What forget bias
#    keeps half for 100 steps?
# 3. Repeat the test of memory with `LENGTH` 10 for the RNN. Why does it work?
# 4. `output="autoregressive"` goes on step by step and is fed its own draws. Compare it with the direct LSTM.

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# One set of $W$ (size $n$), $U$ ($n \times n$) and two biases is $n^2 + 3n$. The GRU has three such sets, the LSTM four.

# %%
n = 24
for kind, sets in ((nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)):
    count = sum(weight.numel() for weight in kind(1, n).parameters())
    assert count == sets * (n**2 + 3 * n)
    print(f"{kind.__name__:4s} {count}")

# %% [markdown]
# ### Solution 2
#
# $0.9^j = \tfrac12$; and $\sigma(b)^{100} = \tfrac12$ gives $\sigma(b) = 2^{-1/100}$.

# %%
gate = 2 ** (-1 / 100)
print(f"half is left after {np.log(0.5) / np.log(0.9):.1f} steps; the bias is {np.log(gate / (1 - gate)):.2f}")

# %% [markdown]
# ### Solution 3

# %%
LENGTH = 10
easy = remember(nn.RNN)
print(f"over 10 steps the RNN's error goes down to {easy[-20:].mean():.3f}")
assert SHORT or easy[-20:].mean() < 0.1

# %% [markdown]
# A product of ten factors is not yet 0. Vanishing is a matter of length.
#
# ### Solution 4

# %%
duel = compare(
    [LSTM(**settings, alias="direct"), LSTM(**settings, output="autoregressive", alias="step by step")],
    frame,
    horizon=12,
    n_windows=2 if SHORT else 8,
    refit=False,
    level=80,
)
print(duel.table[["model", "mase", "coverage-80", "predict_seconds"]].round(2).to_string(index=False))
held = duel.table.set_index("model")["coverage-80"]
assert SHORT or held["step by step"] > held["direct"]

# %% [markdown]
# Step by step costs time, for a forecast is drawn many times. Its intervals are wider: each draw goes on from the one before,
# so doubt adds up. It also gives whole paths: `simulate` shows them.
#
# ## Reference
#
# - `RNN`, `GRU`, `LSTM`, `Seq2Seq`
# - `compare`, `plot`, `plotting.plot_training`
#
# To read on: Hochreiter & Schmidhuber (1997), *Long short-term memory*; Cho et al. (2014) on the GRU; Pascanu, Mikolov &
# Bengio (2013), *On the difficulty of training recurrent neural networks*. Next: attention (tutorial 08), a memory that is
# looked up instead of carried.
