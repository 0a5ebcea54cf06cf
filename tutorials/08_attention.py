# %% [markdown]
# # 08 · Attention
#
# A forecast is computed from past observations. Attention is the part of a network that determines **the weight of each
# past observation**, and these weights can be inspected. We begin without a network, with counts, and end with the
# seven score functions in common use.
#
# **After this you can**
#
# - define queries, keys, values, scores and weights, and compute them by hand
# - distinguish static weights, which are counted once, from attention, whose weights depend on the query
# - write down seven score functions, and verify that each of them finds an answer whose position is known
# - demonstrate the bottleneck of an encoder without attention
# - read plots of alignments and of several heads, and test whether a forecast depends on the weights they show

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from deepforecast import SeasonalNaive, Seq2Seq, Transformer, compare, datasets
from deepforecast.evaluation.faithfulness import faithfulness
from deepforecast.nn.attention import attend, harden_weights, masked_softmax
from deepforecast.nn.multihead import CrossAttention
from deepforecast.nn.scores import SCORES, Score, additive, cosine, dot, gaussian, general, location, scaled_dot, score
from deepforecast.plotting import plot_attention

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

# %% [markdown]
# ## Votes: a Markov chain with skips
#
# Each day a shop is in one of four states: *closed*, *quiet*, *busy* or *sale*. On a dry day the state is usually that
# of seven days ago; on a rainy day it is usually that of two days ago. These rules are unknown to us. The data are a
# diary of the states and the weather.

# %%
STATES = ["closed", "quiet", "busy", "sale"]
DRY_LAG, RAIN_LAG, COPY_PROBABILITY = 7, 2, 0.9
STATE_PROBABILITIES = np.array([0.15, 0.5, 0.2, 0.15])


def generate_diary(n_days: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States, and whether it rains (0 or 1)."""
    rng = np.random.default_rng(seed)
    rain = (rng.random(n_days) < 0.4).astype(int)
    states = list(rng.choice(4, size=DRY_LAG, p=STATE_PROBABILITIES))
    for day in range(DRY_LAG, n_days):
        lag = RAIN_LAG if rain[day] else DRY_LAG
        is_copy = rng.random() < COPY_PROBABILITY
        states.append(states[-lag] if is_copy else rng.choice(4, p=STATE_PROBABILITIES))
    return np.array(states), rain


train_states, train_rain = generate_diary(4000, seed=0)
test_states, test_rain = generate_diary(2000, seed=1)
first_days = zip(test_states[:10], test_rain, strict=False)
print(" ".join(STATES[state] + ("(rain)" if is_rainy else "") for state, is_rainy in first_days), "...")

# %% [markdown]
# A first-order **Markov chain** counts which state follows which: $P_1(c \mid s)$ is the share of state $c$ among the
# days after state $s$. The same can be counted over a longer lag: $P_l(c \mid s)$ is the share of $c$ among the days
# $l$ days after state $s$. This is a Markov chain **with skips**. Each past day then casts a vote, and the votes are
# added with a weight $\lambda_l$ for each lag:
#
# $$\text{vote}(c) = \sum_{l=1}^{L} \lambda_l \, P_l(c \mid y_{t-l}).$$

# %%
LAGS = np.arange(1, 11)


def lagged(states: np.ndarray) -> np.ndarray:
    """Row t: the states 1, 2, ... days before day t."""
    return np.stack([states[LAGS[-1] - lag : len(states) - lag] for lag in LAGS], axis=1)


def current(states: np.ndarray) -> np.ndarray:
    """The states of the days that `lagged` has a row for."""
    return states[LAGS[-1] :]


train_lags, train_current = lagged(train_states), current(train_states)
tables = np.zeros((len(LAGS), 4, 4))  # (lags, lagged state, current state)
for i in range(len(LAGS)):
    np.add.at(tables[i], (train_lags[:, i], train_current), 1)
tables /= tables.sum(axis=2, keepdims=True)


def accuracy(weights: np.ndarray) -> float:
    """Share of days on which the state with the most votes is correct; weights of shape (lags, states)."""
    test_lags = lagged(test_states)
    votes = sum(weights[i, test_lags[:, i], None] * tables[i, test_lags[:, i]] for i in range(len(LAGS)))
    return float((votes.argmax(axis=1) == current(test_states)).mean())


first_order = np.zeros((len(LAGS), 4))
first_order[0] = 1.0
equal = np.ones((len(LAGS), 4))
print("accuracy")
print(f"always 'quiet'          {(current(test_states) == 1).mean():.2f}")
print(f"Markov chain, lag 1     {accuracy(first_order):.2f}")
print(f"all lags, equal weights {accuracy(equal):.2f}")

# %% [markdown]
# All lags together are only slightly more accurate than one. Most lags vote for the frequent states regardless of the
# day, and outvote the informative lags.
#
# ## Static weights: TF-IDF
#
# Search engines have a similar problem. A word that occurs in every document is not informative about any of them, so
# it gets a small weight: $\log(N / \text{df})$, where $N$ is the number of documents and $\text{df}$ (document
# frequency) the number of documents that contain the word. This weight, multiplied by the number of occurrences of the
# word (term frequency), is called **TF-IDF**.
#
# Here the possible states are the documents, and the words are "state $s$, $l$ days ago". With how many states does a
# word occur? Since the states are not equally frequent, we use the *effective* number $\exp(H)$ with the entropy
# $H = -\sum_c p_c \log p_c$:
#
# $$\lambda_{l,s} = \log \frac{N}{\text{df}_{l,s}} = H(y_t) - H(y_t \mid y_{t-l} = s).$$

# %%


def effective_number(shares: np.ndarray) -> np.ndarray:
    return np.exp(-(shares * np.log(shares + 1e-12)).sum(axis=-1))


state_shares = np.bincount(train_current, minlength=4) / len(train_current)
idf = np.log(effective_number(state_shares) / effective_number(tables)).clip(min=0)
print(pd.DataFrame(idf, index=pd.Index(LAGS, name="lag"), columns=STATES).round(2).to_string())
print(f"accuracy with all lags and TF-IDF weights: {accuracy(idf):.2f}")
assert accuracy(idf) > accuracy(equal) + 0.1

# %% [markdown]
# The weights are large at both informative lags, 2 and 7, and at their sum, 9. They are **static**: counted once, and
# the same for all days. But on each day only one of the two lags is informative, and a fixed weight per lag cannot
# express "lag 2 when it rains, lag 7 otherwise".
#
# ## Weights that depend on the query
#
# We now let the weights depend on the situation, in this case on the weather of the day. Each situation has its own
# score for each lag, and a **softmax** turns scores into weights that sum to one:
#
# $$a_l = \frac{\exp(e_l)}{\sum_k \exp(e_k)}, \qquad e = W q, \qquad \hat p = \sum_l a_l \, v_l .$$
#
# The **query** $q$ describes the situation (a dry or a rainy day, one-hot). The **values** $v_l$ are the content of the
# past rows (the state $l$ days ago, one-hot). $W$ is learned by gradient descent. This already is attention, with its
# simplest score, called *location*, since the score depends on the position of a row and not on its content.

# %%
one_hot_states, one_hot_weather = torch.eye(4), torch.eye(2)
query = torch.from_numpy(train_rain[LAGS[-1] :])
values, target = torch.from_numpy(train_lags), torch.from_numpy(train_current)
W = torch.zeros(len(LAGS), 2, requires_grad=True)
optimizer = torch.optim.Adam([W], lr=0.2)
for _ in range(40 if SHORT else 100):
    weights = torch.softmax(one_hot_weather[query] @ W.t(), dim=-1)  # (days, lags)
    probabilities = torch.einsum("dl,dlc->dc", weights, one_hot_states[values])  # (days, states)
    loss = -torch.log(probabilities.gather(1, target[:, None]) + 0.02).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

by_weather = torch.softmax(W.detach().t(), dim=-1).numpy()  # (weather, lags)
votes = np.einsum("dl,dlc->dc", by_weather[test_rain[LAGS[-1] :]], np.eye(4)[lagged(test_states)])
attention_accuracy = float((votes.argmax(axis=1) == current(test_states)).mean())
print(f"accuracy with attention: {attention_accuracy:.2f}")
assert attention_accuracy > accuracy(idf) + 0.1
assert LAGS[by_weather.argmax(axis=1)].tolist() == [DRY_LAG, RAIN_LAG]

# %%
figure, axes = plt.subplots(figsize=(7, 2), layout="constrained")
image = axes.imshow(by_weather, cmap="Blues", vmin=0, vmax=1, aspect="auto")
axes.set(xticks=range(len(LAGS)), xticklabels=LAGS, yticks=range(2), yticklabels=["dry", "rainy"])
axes.set(xlabel="lag (key) in days", ylabel="weather (query)")
_ = figure.colorbar(image, label="attention weight")

# %% [markdown]
# A row shows the weights of the lags on a day with the given weather. On rainy days the weight is on lag 2, on dry days
# on lag 7. These are the rules of the shop, learned from the data.

# %% [markdown]
# ## Seven score functions
#
# In general, the rows also have **keys**: vectors that are compared with the query. A score function compares a query
# $q$ with a key $k$. Seven are in common use. $D$ is the dimension of both; the matrices $W$ and the vectors $v$ and
# $w_l$ are learned.
#
# | name | score | reference |
# |---|---|---|
# | additive | $v^\top \tanh(W_q q + W_k k)$ | Bahdanau, Cho, Bengio 2015 |
# | dot | $q^\top k$ | Luong, Pham, Manning 2015 |
# | scaled dot | $q^\top k / \sqrt{D}$ | Vaswani et al. 2017 |
# | general | $q^\top W k$ | Luong, Pham, Manning 2015 |
# | location | $w_l^\top q$, for row $l$ regardless of its key | Luong, Pham, Manning 2015 |
# | cosine | $q^\top k \,/\, (\lVert q \rVert \lVert k \rVert)$ | Graves, Wayne, Danihelka 2014 |
# | Gaussian | $-\tfrac12 \lVert q - k \rVert^2$ | Nadaraya 1964, Watson 1964 |
#
# Each is one line of numpy, and a function of the library for batches: queries (B, N, D), keys (B, L, D), scores
# (B, N, L).

# %%
rng = np.random.default_rng(0)
q, k = rng.normal(size=4), rng.normal(size=(5, 4))  # one query, five keys
W, w, v = rng.normal(size=(4, 4)), rng.normal(size=(5, 4)), rng.normal(size=4)

by_hand = {
    "additive": np.tanh(W @ q + k @ w[:4].T) @ v,
    "dot": k @ q,
    "scaled_dot": k @ q / np.sqrt(4),
    "general": k @ W.T @ q,
    "location": w @ q,
    "cosine": k @ q / np.linalg.norm(q) / np.linalg.norm(k, axis=1),
    "gaussian": -0.5 * ((q - k) ** 2).sum(axis=1),
}

Q, K = torch.from_numpy(q)[None, None], torch.from_numpy(k)[None]  # (1, 1, 4), (1, 5, 4)
tensor_W, tensor_w, tensor_v = torch.from_numpy(W), torch.from_numpy(w), torch.from_numpy(v)
by_library = {
    "additive": additive(Q @ tensor_W.t(), K @ tensor_w[:4].t(), tensor_v),
    "dot": dot(Q, K),
    "scaled_dot": scaled_dot(Q, K),
    "general": general(Q, K, tensor_W),
    "location": location(Q, tensor_w),
    "cosine": cosine(Q, K),
    "gaussian": gaussian(Q, K),
}
for name, expected in by_hand.items():
    np.testing.assert_allclose(by_library[name].flatten().numpy(), expected)
    print(f"{name:10s}", expected.round(2))

# %% [markdown]
# A softmax over the valid rows turns scores into weights, and the **context** is the weighted sum of the values. Rows
# that are not valid (padding before a short series) are masked: their weight is exactly zero.

# %%
valid = torch.tensor([[[False, True, True, True, True]]])
context, weights = attend(by_library["dot"], K, valid)
expected = np.exp(by_hand["dot"]) * [0, 1, 1, 1, 1]
np.testing.assert_allclose(weights.flatten().numpy(), expected / expected.sum())
np.testing.assert_allclose(context.flatten().numpy(), expected / expected.sum() @ k)
print("weights", weights.flatten().numpy().round(3), "sum", float(weights.sum()))

# %% [markdown]
# ## A task with a known answer
#
# The series are noise that repeats after 20 rows. The window has 32 rows, and 6 steps are forecast. The value of each
# step is contained in exactly one row, 20 rows before it. No other row is informative. We therefore know where the
# attention weight *must* be.
#
# `Seq2Seq` encodes the window (here each row separately, with convolutions of kernel size 1), and a recurrent decoder
# computes one step after another; at each step it attends to the encoded rows with a score function.
# `positional_encoding=True` adds the positions of rows and steps. `cosine` lies between $-1$ and $1$, and scaled dot
# products are small at the start of training: the scores of both are multiplied by a **learned scale** (an inverse
# temperature).

# %%
LAG, INPUT, HORIZON = 20, 32, 6


def repeated_noise(n_series: int, length: int, lag: int, seed: int) -> pd.DataFrame:
    noise = np.random.default_rng(seed).normal(size=(n_series, lag))
    y = np.tile(noise, (1, -(-length // lag)))[:, :length]
    ids, times = np.repeat(np.arange(n_series), length), np.tile(np.arange(length), n_series)
    return pd.DataFrame({"unique_id": ids, "ds": times, "y": y.reshape(-1)})


def split(frame: pd.DataFrame, n_rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The first rows of each series, and the others."""
    is_first = frame.groupby("unique_id").cumcount() < n_rows
    return frame[is_first], frame[~is_first]


def mean_absolute_error(model: Seq2Seq, history: pd.DataFrame, truth: pd.DataFrame) -> float:
    forecast = model.predict(frame=history)["Seq2Seq"].to_numpy()
    return float(np.abs(forecast - truth["y"].to_numpy()).mean())


def weight_on_answer(attention: pd.DataFrame) -> float:
    """Mean attention weight of the row that contains the value of the step."""
    return attention.loc[attention["ds"] - attention["lag"] == LAG, "weight"].mean()


training = repeated_noise(200, 2 * INPUT, LAG, seed=0)
history, truth = split(repeated_noise(16, INPUT + HORIZON, LAG, seed=1), INPUT)

common = {
    **{"horizon": HORIZON, "input_size": INPUT, "head": "point", "scaler": "none", "positional_encoding": True},
    **{"encoder": "convolutional", "kernel_size": 1, "hidden_size": 32},
    **{"batch_size": 64, "learning_rate": 1e-2, "max_steps": 30 if SHORT else 300},
}
attention_by_score, results = {}, []
for name in SCORES:
    model = Seq2Seq(**common, attention=name, learned_scale=name in ("cosine", "scaled_dot")).fit(training)
    attention_by_score[name] = model.explain(frame=history)
    weight = weight_on_answer(attention_by_score[name])
    mae = mean_absolute_error(model, history, truth)
    results.append({"score": name, "weight on the answer": weight, "mean absolute error": mae})
    assert SHORT or weight > 0.8, (name, weight)
print(pd.DataFrame(results).round(3).to_string(index=False))

# %% [markdown]
# The mean absolute value of standard normal noise is about 0.8: this is the error of an uninformed forecast. All seven
# score functions find the answer.
#
# `explain()` returns the weights as a data frame with one row for each step (`ds`), key (`lag`), layer and head. The
# weights of each step sum to one. A plot of the weights by step and row is called an **alignment**. The correct
# alignment is a diagonal, 20 rows back.

# %%
print(attention_by_score["dot"].head(3).to_string(index=False))
steps = np.arange(1, HORIZON + 1)
answer_rows, extent = INPUT - 1 + steps - LAG, (-0.5, INPUT - 0.5, 0.5, HORIZON + 0.5)
figure, grid = plt.subplots(2, 4, figsize=(11, 4.2), sharex=True, sharey=True, layout="constrained")
for axes, (name, attention) in zip(grid.flat, attention_by_score.items(), strict=False):
    weights = attention[attention["unique_id"] == 0].pivot(index="step", columns="lag", values="weight")
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto", origin="lower", extent=extent)
    axes.plot(answer_rows, steps, "o", markersize=9, fillstyle="none", color="C1")
    axes.set_title(name)
grid[1, 3].axis("off")
grid[1, 3].text(0, 0.5, "circles: rows that\ncontain the answer")
figure.supxlabel("row of the window (key)")
_ = figure.supylabel("step ahead (query)")

# %% [markdown]
# `plot_attention` draws the same from the result of `explain()`:

# %%
plot_attention(attention_by_score["additive"])

# %% [markdown]
# Such plots must be interpreted with care. We scale each window to mean zero (`scaler="standard"`), and fit *location*
# again.

# %%
scaled = {**common, "scaler": "standard"}
model = Seq2Seq(**scaled, attention="location").fit(training)
weight = weight_on_answer(model.explain(frame=history))
mae = mean_absolute_error(model, history, truth)
print(f"weight on the answer {weight:.3f}, mean absolute error {mae:.3f}")
assert SHORT or (weight < 0.1 and mae < 0.2)

# %% [markdown]
# The forecast is accurate, but the weight is on all rows *except* the answer. Since all rows sum to zero, the sum of
# all rows but one is the negative of that one. An attention weight determines what enters the sum. It does not state
# what matters, or why.

# %% [markdown]
# ## The bottleneck
#
# Before attention, the encoder passed only its last state to the decoder: a vector of fixed size for a window of any
# length. Bahdanau, Cho and Bengio showed that the translation of long sentences fails for this reason. We show the same
# for series: the answer is in the first rows of the window, and the length of the window increases. Both models have
# the same recurrent encoder; only one of them has attention.

# %%
lengths = (8, 32) if SHORT else (8, 16, 32, 64)
errors = {"last state only": [], "attention": []}
for length in lengths:
    training = repeated_noise(300, 3 * length, length, seed=0)
    history, truth = split(repeated_noise(64, length + 4, length, seed=1), length)
    for label, attention in (("last state only", None), ("attention", "general")):
        options = {"horizon": 4, "input_size": length, "encoder": "recurrent", "kernel_size": 3}  # 3 is the default
        model = Seq2Seq(**{**common, **options}, attention=attention).fit(training)
        errors[label].append(mean_absolute_error(model, history, truth))

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for label, label_errors in errors.items():
    axes.plot(lengths, label_errors, "o-", label=label)
axes.axhline(0.8, color="grey", linestyle=":", label="uninformed forecast")
axes.set(xlabel="length of the window", ylabel="mean absolute error", ylim=(0, None), xticks=lengths)
_ = axes.legend()
print(pd.DataFrame(errors, index=pd.Index(lengths, name="length")).round(3).to_string())
assert SHORT or max(errors["attention"]) < 0.1 < min(errors["last state only"])

# %% [markdown]
# With this amount of training, a vector of 32 numbers stores 8 values approximately, and 16 or more not at all. With
# attention, the length of the window does not matter.

# %% [markdown]
# ## Two heads: the day and the week
#
# The weights of a softmax are positive, so attention cannot subtract. Let the answer be the **difference** between two
# rows: the value a day ago minus the value a week ago (with four rows per day, 4 and 28 rows back). A single head
# computes a weighted mean of rows; it can scale this mean or change its sign, but cannot add one row and subtract
# another. Two heads can: each has its own weights, and a final linear map combines their outputs. `CrossAttention` is
# such a layer of the library's `Transformer`. The steps of the horizon are the queries, the rows of the window the
# keys.

# %%
DAY, WEEK, ROWS, STEPS, WIDTH = 4, 28, 32, 4, 32


def generate_differences(n_series: int, seed: int) -> np.ndarray:
    """Noise, followed by steps that are the value a day ago minus the value a week ago."""
    y = np.random.default_rng(seed).normal(size=(n_series, ROWS + STEPS))
    y[:, ROWS:] = (y[:, ROWS - DAY : ROWS - DAY + STEPS] - y[:, ROWS - WEEK : ROWS - WEEK + STEPS]) / np.sqrt(2)
    return y


angles = torch.arange(ROWS + STEPS)[:, None] / 10 ** torch.linspace(0, 2, WIDTH // 2)
positions = torch.cat([angles.sin(), angles.cos()], dim=1)  # positional encodings of rows and steps


class CrossAttentionNetwork(torch.nn.Module):
    """Queries: positions of the steps. Keys: positions of the rows. Values: linear map of the observations."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.value_projection, self.output = torch.nn.Linear(1, WIDTH), torch.nn.Linear(WIDTH, 1)
        self.key_projection, self.cross = torch.nn.Linear(WIDTH, WIDTH), CrossAttention(WIDTH, n_heads)

    def split_heads(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, rows, WIDTH) -> (batch, heads, rows, WIDTH / heads)"""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, y: torch.Tensor, attention_maps: list[torch.Tensor] | None = None) -> torch.Tensor:
        queries, rows = positions[ROWS:].expand(len(y), -1, -1), positions[:ROWS].expand(len(y), -1, -1)
        keys = self.split_heads(self.key_projection(rows))
        values = self.split_heads(self.value_projection(y[..., None]))
        context = self.cross(queries, keys, values, attention_maps=attention_maps)
        forecast: torch.Tensor = self.output(context)[..., 0]
        return forecast


def train_network(n_heads: int) -> tuple[float, np.ndarray]:
    """Mean squared error on new series, and the attention weights (heads, steps, rows)."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = CrossAttentionNetwork(n_heads)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    y = torch.from_numpy(generate_differences(4096, seed=0)).float()
    for step in range(60 if SHORT else 600):
        batch = y[64 * step % len(y) :][:64]
        loss = (network(batch[:, :ROWS]) - batch[:, ROWS:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    y, attention_maps = torch.from_numpy(generate_differences(200, seed=1)).float(), []
    with torch.no_grad():
        error = (network(y[:, :ROWS], attention_maps) - y[:, ROWS:]).square().mean()
    return float(error), attention_maps[0].mean(dim=0).numpy()


error_one_head, _ = train_network(1)
error_two_heads, head_weights = train_network(2)
print("mean squared error (uninformed forecast: 1)")
print(f"one head {error_one_head:.3f}, two heads {error_two_heads:.3f}")
step_index = np.arange(STEPS)
for name, lag in (("day", DAY), ("week", WEEK)):
    weights = head_weights[:, step_index, ROWS - lag + step_index].mean(axis=1)
    print(f"weight on the row one {name} ago: head 0 {weights[0]:.2f}, head 1 {weights[1]:.2f}")
assert SHORT or (error_two_heads < 0.05 and error_one_head > 0.4)

# %%
figure, panels = plt.subplots(1, 2, figsize=(10, 2.4), sharey=True, layout="constrained")
extent = (-ROWS, 0, 0.5, STEPS + 0.5)
for head, axes in enumerate(panels):
    axes.imshow(head_weights[head], cmap="Blues", vmin=0, vmax=1, aspect="auto", origin="lower", extent=extent)
    axes.set(title=f"head {head}", xlabel="row (key), relative to the cutoff", yticks=range(1, STEPS + 1))
_ = panels[0].set_ylabel("step ahead (query)")

# %% [markdown]
# One head attends to the row one day ago, the other to the row one week ago. A complete Transformer on the same series
# is more flexible, as self-attention of the encoder first combines the rows. `view="lags"` shows the weight by lag, as
# a mean over all steps, heads and series.

# %%
timestamps = pd.date_range("2024-01-01", periods=ROWS + STEPS, freq="6h")


def to_frame(y: np.ndarray) -> pd.DataFrame:
    ids = np.repeat(np.arange(len(y)), y.shape[1])
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(timestamps, len(y)), "y": y.reshape(-1)})


history, truth = split(to_frame(generate_differences(64, seed=1)), ROWS)
settings = {
    **{"input_size": ROWS, "d_model": 32, "n_heads": 2, "n_layers": 1, "patch_length": 1, "output": "autoregressive"},
    **{"head": "point", "loss": "mse", "scaler": "none", "calendar": None, "seed": 1},
    **{"batch_size": 64, "learning_rate": 5e-3, "max_steps": 20 if SHORT else 500},
}
model = Transformer(horizon=STEPS, **settings).fit(to_frame(generate_differences(3000, seed=0)))
error = ((model.predict(frame=history)["Transformer"].to_numpy() - truth["y"].to_numpy()) ** 2).mean()
print(f"mean squared error {error:.3f}")
assert SHORT or error < 0.05
attention = model.explain(frame=history)

# %%
plot_attention(attention, view="lags")

# %%
plot_attention(attention, view="heads")

# %% [markdown]
# The weight is on the lags of a day and of a week, and almost nowhere else. But here each head attends to both lags:
# nothing in training requires that each head has a separate function.

# %% [markdown]
# ## Does the forecast depend on the weights shown?
#
# A plot may look plausible and still be meaningless. `faithfulness` masks rows of the input: those with the largest
# weights, those with the smallest, and random ones. If the weights are informative, masking the first changes the
# forecast most.

# %%
report = faithfulness(model, history, share=0.1)
print(report[["most", "random", "least"]].mean().round(2).to_string())
assert SHORT or report["most"].mean() > report["least"].mean()

# %% [markdown]
# ## On real data
#
# So far the position of the answer was known. We now take a series for which it is not: the monthly sea surface
# temperature off Peru (tutorial 05). Does attention reduce the error? We compare the same network with and without
# attention, a year ahead, at 8 cutoffs:

# %%
sea = datasets.load("elnino")
settings = {"input_size": 48, "hidden_size": 32, "max_steps": 20 if SHORT else 300}
last_state_only = Seq2Seq(attention=None, alias="last state only", **settings)
with_attention = Seq2Seq(attention="additive", alias="attention", **settings)
models = [SeasonalNaive(), last_state_only, with_attention]
board = compare(models, sea, horizon=12, n_windows=2 if SHORT else 8, refit=False)
print(board.table[["model", "mase"]].round(2).to_string(index=False))
mase = board.table.set_index("model")["mase"]
assert SHORT or abs(mase["attention"] - mase["last state only"]) < 0.02
assert SHORT or mase.idxmax() == "SeasonalNaive"

# %%
model = with_attention.clone(horizon=12).fit(sea)
attention = model.explain()
plot_attention(attention)

# %%
is_june_to_august = attention["lag"].dt.month.isin([6, 7, 8])
june_to_august_share = attention.loc[is_june_to_august, "weight"].sum() / attention["weight"].sum()
print(f"share of the weight on June, July and August: {june_to_august_share:.2f}")
monthly_means = sea.groupby(sea["ds"].dt.month)["y"].mean()
print("mean temperature from May to August:", monthly_means[[5, 6, 7, 8]].round(1).tolist())
assert monthly_means[[5, 6, 7, 8]].is_monotonic_decreasing
report = faithfulness(model, sea, share=0.1)
print(report[["most", "random", "least"]].round(2).to_string(index=False))
assert SHORT or june_to_august_share > 0.6
assert SHORT or report["most"].item() > report["random"].item()

# %% [markdown]
# With and without attention the error is the same to two digits, and both are below the error of the seasonal naive
# forecast: on this series attention does not help. The plot is no longer a diagonal. For all steps the network attends
# to the same months of each year, June to August, when the sea cools. The weights do not explain why: an encoded row
# also contains information about the rows before it. What we can state is the result of the experiment: masking the
# rows with the largest weights changes the forecast more than masking others.
#
# ## Exercises
#
# 1. Mean pooling and max pooling are attention with scores that are not learned. Which scores? Verify the answer with
#    `masked_softmax` and `harden_weights`.
# 2. TF-IDF is attention with a static score. Write the weights of the words in a text as a softmax. What is the query?
# 3. Add a score function of your own: $-\lVert q - k \rVert_1$. Does it find the answer of the task above?
# 4. Divide the scores of the dot product above by a **temperature** of 0.1, 1 and 10. How do the weights change, and
#    what are the limits?
#
# ## Solutions
#
# ### Solution 1
#
# Mean pooling: equal scores, of any value. Max pooling: the score is the value itself, and the largest score gets all
# of the weight ("hard" attention). Softmax pooling, with soft weights, lies in between.

# %%
rows = torch.tensor([[[1.0, 3.0, 2.0, 7.0, 0.0]]])  # scores and values (1, 1, 5)
mean_pool = masked_softmax(torch.zeros_like(rows)) @ rows.transpose(1, 2)
max_pool = harden_weights(masked_softmax(rows)) @ rows.transpose(1, 2)
soft_pool = masked_softmax(rows) @ rows.transpose(1, 2)
print(f"mean {float(mean_pool):.2f}, max {float(max_pool):.2f}, soft {float(soft_pool):.2f}")
np.testing.assert_allclose(float(mean_pool), rows.mean())
np.testing.assert_allclose(float(max_pool), rows.max())

# %% [markdown]
# ### Solution 2
#
# A word that occurs $\text{tf}$ times corresponds to $\text{tf}$ rows with the score $\log \text{idf}$ each. The
# softmax of logarithms is the share $\text{tf} \cdot \text{idf} / \sum \text{tf} \cdot \text{idf}$. There is no query:
# the weights are the same for every reader of the text.

# %%
documents = ["sale sale quiet busy", "quiet busy quiet", "busy quiet closed"]
words = sorted(set(" ".join(documents).split()))
tf = np.array([[text.split().count(word) for word in words] for text in documents])
word_idf = np.log(1 + len(documents) / (tf > 0).sum(axis=0))
text = documents[0].split()
scores = torch.tensor([[[np.log(word_idf[words.index(word)]) for word in text]]])
weights = masked_softmax(scores).flatten().numpy()
by_word = {word: sum(weight for weight, other in zip(weights, text, strict=True) if other == word) for word in words}
np.testing.assert_allclose(list(by_word.values()), tf[0] * word_idf / (tf[0] * word_idf).sum())
print({word: round(float(weight), 2) for word, weight in by_word.items()})

# %% [markdown]
# ### Solution 3
#
# A score function is a class with one method and a name. After its definition it can be used as
# `Seq2Seq(attention=...)`, like the others.

# %%


@score("manhattan")
class Manhattan(Score):
    def forward(self, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        return -torch.cdist(queries, keys, p=1)


training = repeated_noise(200, 2 * INPUT, LAG, seed=0)
history, _ = split(repeated_noise(16, INPUT + HORIZON, LAG, seed=1), INPUT)
model = Seq2Seq(**common, attention="manhattan").fit(training)
weight = weight_on_answer(model.explain(frame=history))
print(f"weight on the answer {weight:.2f}")
assert SHORT or weight > 0.8
del SCORES["manhattan"]

# %% [markdown]
# ### Solution 4

# %%
dot_scores = torch.from_numpy(by_hand["dot"])
for temperature in (0.1, 1.0, 10.0):
    print(f"temperature {temperature:4.1f}", masked_softmax(dot_scores / temperature).numpy().round(2))
np.testing.assert_allclose(masked_softmax(dot_scores / 1e-3), harden_weights(masked_softmax(dot_scores)), atol=1e-6)
np.testing.assert_allclose(masked_softmax(dot_scores / 1e6), np.full(5, 1 / 5), atol=1e-5)

# %% [markdown]
# With a low temperature the weight concentrates on a single row, with a high temperature it is spread evenly. The
# limits are hard attention and mean pooling.
#
# ## Reference
#
# - `Seq2Seq`, `Transformer`, `Seq2Seq.explain`, `compare`, `datasets`
# - `nn.scores.SCORES`, `nn.scores.Score`, `nn.scores.score`, `nn.scores.additive`, `nn.scores.dot`,
#   `nn.scores.scaled_dot`, `nn.scores.general`, `nn.scores.location`, `nn.scores.cosine`, `nn.scores.gaussian`
# - `nn.attention.attend`, `nn.attention.masked_softmax`, `nn.attention.harden_weights`, `nn.multihead.CrossAttention`
# - `plotting.plot_attention`, `evaluation.faithfulness.faithfulness`
#
# To read on: Bahdanau, Cho, Bengio (2015), *Neural machine translation by jointly learning to align and translate*;
# Luong, Pham, Manning (2015), *Effective approaches to attention-based neural machine translation*; Vaswani et al.
# (2017), *Attention is all you need*; Jain, Wallace (2019), *Attention is not explanation*; Wiegreffe, Pinter (2019),
# *Attention is not not explanation*.
