# %% [markdown]
# # 08 · Attention
#
# A forecast is made of the past. Attention is the part of a network that decides **which rows of the past count**, and it
# can be looked at. We begin without any network, by counting, and arrive at the seven ways in which networks compare.
#
# **After this you can**
#
# - say what queries, keys, values, scores and weights are, and compute them by hand
# - tell static weights (counted once) from attention (weights that depend on who asks)
# - write down seven scores and see each of them find an answer of known place
# - show the bottleneck of an encoder without attention
# - read alignment pictures and pictures of several heads, and test whether a forecast depends on what they show

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
# A shop is *closed*, *quiet*, *busy* or in a *sale*. On a dry day it is as seven days ago, most of the time; on a rainy day
# it is as two days ago. We do not know this. We have a diary, with the weather of each day.

# %%
STATES = ["closed", "quiet", "busy", "sale"]
DRY, WET, KEEPS = 7, 2, 0.9
base = np.array([0.15, 0.5, 0.2, 0.15])


def diary(days: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States, and whether it rains."""
    rng = np.random.default_rng(seed)
    rain = (rng.random(days) < 0.4).astype(int)
    found = list(rng.choice(4, size=DRY, p=base))
    for day in range(DRY, days):
        back = WET if rain[day] else DRY
        found.append(found[-back] if rng.random() < KEEPS else rng.choice(4, p=base))
    return np.array(found), rain


(learned, learned_rain), (asked, asked_rain) = diary(4000, seed=0), diary(2000, seed=1)
print(" ".join(STATES[state] + ("(rain)" if wet else "") for state, wet in zip(asked[:10], asked_rain, strict=False)), "...")

# %% [markdown]
# A **Markov chain** of first order counts which state follows which:
# $P_1(c \mid s) = \text{share of days } c \text{ among those after } s$. Nothing stops us from counting over a gap too. The
# table $P_l(c \mid s)$ says what comes $l$ days after $s$. This is a Markov chain **with skips**. Every day back is then a
# voter, and the votes are added up with a weight $\lambda_l$ for each lag:
#
# $$\text{vote}(c) = \sum_{l=1}^{L} \lambda_l \, P_l(c \mid y_{t-l}).$$

# %%
LAGS = np.arange(1, 11)


def behind(states: np.ndarray) -> np.ndarray:
    """Row t: the states 1, 2, ... days before day t."""
    return np.stack([states[LAGS[-1] - lag : len(states) - lag] for lag in LAGS], axis=1)


def after(states: np.ndarray) -> np.ndarray:
    return states[LAGS[-1] :]


seen, came = behind(learned), after(learned)
tables = np.zeros((len(LAGS), 4, 4))  # lag, state then, state that came
for place in range(len(LAGS)):
    np.add.at(tables[place], (seen[:, place], came), 1)
tables /= tables.sum(axis=2, keepdims=True)


def share_right(weights: np.ndarray) -> float:
    """How often the state with the most votes comes; a weight for each lag and state."""
    back = behind(asked)
    votes = sum(weights[place, back[:, place], None] * tables[place, back[:, place]] for place in range(len(LAGS)))
    return float((votes.argmax(axis=1) == after(asked)).mean())


first_order = np.zeros((len(LAGS), 4))
first_order[0] = 1.0
equal = np.ones((len(LAGS), 4))
print(f"always 'quiet'        {(after(asked) == 1).mean():.2f}")
print(f"Markov chain, lag 1   {share_right(first_order):.2f}")
print(f"all lags, equal votes {share_right(equal):.2f}")

# %% [markdown]
# All voters together are only a little better than one. Most of them say what is frequent anyway, and shout down those who
# know.
#
# ## Static weights: TF-IDF
#
# Search engines had the same trouble. A word that stands in every document says nothing about any of them, so it is weighed
# down: by $\log(N / \text{df})$, where $N$ is the number of documents and $\text{df}$ (document frequency) of those that
# hold the word. What is left over, times how often the word occurs (term frequency), is **TF-IDF**.
#
# Here the documents are the states that may come, and the words are "state $s$, $l$ days ago". How many states does a word
# go with? As they are not equally frequent, count the *effective* number, $\exp(H)$ with the entropy
# $H = -\sum_c p_c \log p_c$:
#
# $$\lambda_{l,s} = \log \frac{N}{\text{df}_{l,s}} = H(\text{what comes}) - H(\text{what comes } l \text{ days after } s).$$

# %%


def effective_number(shares: np.ndarray) -> np.ndarray:
    return np.exp(-(shares * np.log(shares + 1e-12)).sum(axis=-1))


overall = np.bincount(came, minlength=4) / len(came)
idf = np.log(effective_number(overall) / effective_number(tables)).clip(min=0)
print(pd.DataFrame(idf, index=pd.Index(LAGS, name="lag"), columns=STATES).round(2).to_string())
print(f"all lags, TF-IDF      {share_right(idf):.2f}")
assert share_right(idf) > share_right(equal) + 0.1

# %% [markdown]
# The weights have found both days that tell something. They are **static**: counted once, the same whoever asks. But only
# one of the two is right at a time, and no fixed weight for a lag can say "look at day 2 when it rains, at day 7
# otherwise".
#
# ## Weights that depend on where one stands
#
# Let the weights be a function of the situation. Here the situation is the weather of the day. Each situation has its own
# score for each lag, and a **softmax** turns scores into weights that add up to one:
#
# $$a_l = \frac{\exp(e_l)}{\sum_k \exp(e_k)}, \qquad e = W q, \qquad \hat p = \sum_l a_l \, v_l .$$
#
# $q$ is the **query**: who asks (a dry or a wet day, one-hot). $v_l$ are the **values**: what stands in the rows looked at
# (the state $l$ days ago, one-hot). $W$ is learned by the slope of the loss. That is attention already: its simplest score,
# called *location*, as it says where to look whatever stands there.

# %%
one_hot, weather = torch.eye(4), torch.eye(2)
query = torch.from_numpy(learned_rain[LAGS[-1] :])
values, target = torch.from_numpy(seen), torch.from_numpy(came)
W = torch.zeros(len(LAGS), 2, requires_grad=True)
optimizer = torch.optim.Adam([W], lr=0.2)
for _ in range(40 if SHORT else 100):
    weights = torch.softmax(weather[query] @ W.t(), dim=-1)  # (days, lags)
    said = torch.einsum("dl,dlc->dc", weights, one_hot[values])
    loss = -torch.log(said.gather(1, target[:, None]) + 0.02).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

by_weather = torch.softmax(W.detach().t(), dim=-1).numpy()  # (weather, lags)
votes = np.einsum("dl,dlc->dc", by_weather[asked_rain[LAGS[-1] :]], np.eye(4)[behind(asked)])
attended = float((votes.argmax(axis=1) == after(asked)).mean())
print(f"attention             {attended:.2f}")
assert attended > share_right(idf) + 0.1
assert LAGS[by_weather.argmax(axis=1)].tolist() == [DRY, WET]

# %%
figure, axes = plt.subplots(figsize=(7, 2), layout="constrained")
shown = axes.imshow(by_weather, cmap="Blues", vmin=0, vmax=1, aspect="auto")
axes.set(xticks=range(len(LAGS)), xticklabels=LAGS, yticks=range(2), yticklabels=["dry", "rain"])
axes.set(xlabel="days back that are looked at", ylabel="the day is")
_ = figure.colorbar(shown, label="weight")

# %% [markdown]
# Read a row: "on a day of this weather, how much do I take of each day back?" On a wet day the weight lies on lag 2, on a
# dry one on lag 7. The rule of the shop can be read off the picture. Nobody told it.

# %% [markdown]
# ## Seven scores
#
# In general the rows have **keys** too: what a row shows to whoever looks for something. A score compares a query $q$ with
# a key $k$. There are seven in use. $D$ is their length; the matrices $W$ and the vectors $v$ and $w_l$ are learned.
#
# | name | score | by |
# |---|---|---|
# | additive | $v^\top \tanh(W_q q + W_k k)$ | Bahdanau, Cho, Bengio 2015 |
# | dot | $q^\top k$ | Luong, Pham, Manning 2015 |
# | scaled dot | $q^\top k / \sqrt{D}$ | Vaswani et al. 2017 |
# | general | $q^\top W k$ | Luong, Pham, Manning 2015 |
# | location | $w_l^\top q$, for row $l$ whatever stands there | Luong, Pham, Manning 2015 |
# | cosine | $q^\top k \,/\, (\lVert q \rVert \lVert k \rVert)$ | Graves, Wayne, Danihelka 2014 |
# | Gaussian | $-\tfrac12 \lVert q - k \rVert^2$ | Nadaraya 1964, Watson 1964 |
#
# Each is a line of numpy, and a function of the library on batches: queries (B, N, D), keys (B, L, D), scores (B, N, L).

# %%
rng = np.random.default_rng(0)
q, k = rng.normal(size=4), rng.normal(size=(5, 4))  # one query, five rows
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
tW, tw, tv = torch.from_numpy(W), torch.from_numpy(w), torch.from_numpy(v)
by_library = {
    "additive": additive(Q @ tW.t(), K @ tw[:4].t(), tv),
    "dot": dot(Q, K),
    "scaled_dot": scaled_dot(Q, K),
    "general": general(Q, K, tW),
    "location": location(Q, tw),
    "cosine": cosine(Q, K),
    "gaussian": gaussian(Q, K),
}
for name, expected in by_hand.items():
    np.testing.assert_allclose(by_library[name].flatten().numpy(), expected)
    print(f"{name:10s}", expected.round(2))

# %% [markdown]
# Scores become weights by a softmax over the rows that are there, and the **context** is the weighted sum of the values. A
# row that is not there (padding before a short series) has weight zero, exactly.

# %%
there = torch.tensor([[[False, True, True, True, True]]])
context, weights = attend(by_library["dot"], K, there)
expected = np.exp(by_hand["dot"]) * [0, 1, 1, 1, 1]
np.testing.assert_allclose(weights.flatten().numpy(), expected / expected.sum())
np.testing.assert_allclose(context.flatten().numpy(), expected / expected.sum() @ k)
print("weights", weights.flatten().numpy().round(3), "sum", float(weights.sum()))

# %% [markdown]
# ## One task for all of them
#
# Noise that repeats after 20 rows. The window has 32 rows, and 6 steps are forecast. The value of each step stands in one
# single row, 20 rows before it. No other row tells anything. So we know where a model *has to* look.
#
# `Seq2Seq` reads the window row by row (here each row by itself: convolutions of one row), and a recurrent decoder takes
# the steps in turn, looking back at each with a score. `positional_encoding=True` adds the position of rows and steps.
# `cosine` lies between $-1$ and $1$ and scaled dot products start small: both get a **learned temperature** that multiplies the score.

# %%
LAG, INPUT, HORIZON = 20, 32, 6


def copies(series: int, length: int, lag: int, seed: int) -> pd.DataFrame:
    noise = np.random.default_rng(seed).normal(size=(series, lag))
    y = np.tile(noise, (1, -(-length // lag)))[:, :length]
    ids, stamps = np.repeat(np.arange(series), length), np.tile(np.arange(length), series)
    return pd.DataFrame({"unique_id": ids, "ds": stamps, "y": y.reshape(-1)})


def split(frame: pd.DataFrame, rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    known = frame.groupby("unique_id").cumcount() < rows
    return frame[known], frame[~known]


training = copies(200, 2 * INPUT, LAG, seed=0)
history, truth = split(copies(16, INPUT + HORIZON, LAG, seed=1), INPUT)

common = {
    **{"horizon": HORIZON, "input_size": INPUT, "head": "point", "scaler": "none", "positional_encoding": True},
    **{"encoder": "convolutional", "kernel_size": 1, "hidden_size": 32},
    **{"batch_size": 64, "learning_rate": 1e-2, "max_steps": 30 if SHORT else 300},
}
explained, rows = {}, []
for name in SCORES:
    model = Seq2Seq(**common, attention=name, learned_scale=name in ("cosine", "scaled_dot")).fit(training)
    error = np.abs(model.predict(frame=history)["Seq2Seq"].to_numpy() - truth["y"].to_numpy()).mean()
    explained[name] = looked = model.explain(frame=history)
    mass = looked.loc[looked["ds"] - looked["lag"] == LAG, "weight"].mean()
    rows.append({"score": name, "weight on the answer": mass, "mean absolute error": error})
    assert SHORT or mass > 0.8, (name, mass)
print(pd.DataFrame(rows).round(3).to_string(index=False))

# %% [markdown]
# Noise of deviation 1 has a mean absolute value of about 0.8: this is the error of an uninformed forecast. All seven find the
# answer.
#
# `explain()` gives the weights as data: a row for each step (`ds`), row looked at (`lag`), layer and head. Each step's
# weights add up to one. A picture of steps against rows is called an **alignment**. The right one is a diagonal, 20 rows
# back.

# %%
print(explained["dot"].head(3).to_string(index=False))
ahead = np.arange(1, HORIZON + 1)
answer, edges = INPUT - 1 + ahead - LAG, (-0.5, INPUT - 0.5, 0.5, HORIZON + 0.5)
figure, grid = plt.subplots(2, 4, figsize=(11, 4.2), sharex=True, sharey=True, layout="constrained")
for axes, (name, looked) in zip(grid.flat, explained.items(), strict=False):
    one = looked[looked["unique_id"] == 0].pivot(index="step", columns="lag", values="weight")
    axes.imshow(one, cmap="Blues", vmin=0, vmax=1, aspect="auto", origin="lower", extent=edges)
    axes.plot(answer, ahead, "o", markersize=9, fillstyle="none", color="C1")
    axes.set_title(name)
grid[1, 3].axis("off")
grid[1, 3].text(0, 0.5, "circle: where\nthe answer stands")
figure.supxlabel("row looked at")
_ = figure.supylabel("step ahead")

# %% [markdown]
# The library draws the same from what `explain()` gives:

# %%
plot_attention(explained["additive"])

# %% [markdown]
# A warning about such pictures. Let us bring every window to mean zero before it is read (`scaler="standard"`), and fit
# *location* again.

# %%
told = {**common, "scaler": "standard"}
model = Seq2Seq(**told, attention="location").fit(training)
looked = model.explain(frame=history)
mass = looked.loc[looked["ds"] - looked["lag"] == LAG, "weight"].mean()
error = np.abs(model.predict(frame=history)["Seq2Seq"].to_numpy() - truth["y"].to_numpy()).mean()
print(f"weight on the answer {mass:.3f}, mean absolute error {error:.3f}")
assert SHORT or (mass < 0.1 and error < 0.2)

# %% [markdown]
# It forecasts well, and looks at every row *but* the answer. All rows together add up to zero, so the sum of all but one
# tells that one, with its sign turned. A weight says what enters the sum. It does not say what matters, or why.

# %% [markdown]
# ## The bottleneck
#
# Before attention, an encoder handed the decoder its last state alone: a vector of fixed size for a window of any length.
# Bahdanau, Cho and Bengio showed how translations of long sentences break down that way. The same for series: the answer is
# the first rows of the window, and the window grows. Both models have the same recurrent encoder; one may look back.

# %%
lengths = (8, 32) if SHORT else (8, 16, 32, 64)
errors = {"last state alone": [], "attention": []}
for length in lengths:
    training = copies(300, 3 * length, length, seed=0)
    history, truth = split(copies(64, length + 4, length, seed=1), length)
    for label, attention in (("last state alone", None), ("attention", "general")):
        told = {**common, "horizon": 4, "input_size": length, "encoder": "recurrent", "kernel_size": 3}  # the default size
        model = Seq2Seq(**told, attention=attention).fit(training)
        said = model.predict(frame=history)["Seq2Seq"].to_numpy()
        errors[label].append(np.abs(said - truth["y"].to_numpy()).mean())

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for label, found in errors.items():
    axes.plot(lengths, found, "o-", label=label)
axes.axhline(0.8, color="grey", linestyle=":", label="uninformed forecast")
axes.set(xlabel="rows of the window", ylabel="mean absolute error", ylim=(0, None), xticks=lengths)
_ = axes.legend()
print(pd.DataFrame(errors, index=pd.Index(lengths, name="rows")).round(3).to_string())
assert SHORT or max(errors["attention"]) < 0.1 < min(errors["last state alone"])

# %% [markdown]
# After so much training a vector of 32 numbers holds 8 values more or less, and 16 or more not at all. With attention the
# length does not matter.

# %% [markdown]
# ## Two heads: the day and the week
#
# A softmax cannot subtract: its weights are positive. Let the answer be the **difference** of two rows, the value a day ago
# less the value a week ago (four rows a day: 4 and 28 rows back). One head can take a mean of rows, then stretch it or turn
# its sign, but not give one row a plus and another a minus. Two heads can: each looks with its own weights, and a last
# linear map adds up what they bring. `CrossAttention` is one such layer of the library's `Transformer`. Steps of a window
# ask, rows of the window answer.

# %%
DAY, WEEK, ROWS, STEPS, WIDTH = 4, 28, 32, 4, 32


def differences(series: int, seed: int) -> np.ndarray:
    """Noise, then steps that are the value a day ago less that a week ago."""
    y = np.random.default_rng(seed).normal(size=(series, ROWS + STEPS))
    y[:, ROWS:] = (y[:, ROWS - DAY : ROWS - DAY + STEPS] - y[:, ROWS - WEEK : ROWS - WEEK + STEPS]) / np.sqrt(2)
    return y


angle = torch.arange(ROWS + STEPS)[:, None] / 10 ** torch.linspace(0, 2, WIDTH // 2)
waves = torch.cat([angle.sin(), angle.cos()], dim=1)  # where a row stands, and a step


class Looking(torch.nn.Module):
    """Steps, which know where they are, look at rows, which know where they are and their value."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads, self.rows, self.out = n_heads, torch.nn.Linear(1, WIDTH), torch.nn.Linear(WIDTH, 1)
        self.keys, self.cross = torch.nn.Linear(WIDTH, WIDTH), CrossAttention(WIDTH, n_heads)

    def forward(self, y: torch.Tensor, kept: list[torch.Tensor] | None = None) -> torch.Tensor:
        value, place = self.rows(y[..., None]), waves[:ROWS].expand(len(y), -1, -1)
        heads = [one.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for one in (self.keys(place), value)]
        found: torch.Tensor = self.out(self.cross(waves[ROWS:].expand(len(y), -1, -1), *heads, attention_maps=kept))[..., 0]
        return found


def trained(n_heads: int) -> tuple[float, np.ndarray]:
    """Mean squared error on new series, and the weights (heads, steps, rows)."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Looking(n_heads)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    y = torch.from_numpy(differences(4096, seed=0)).float()
    for step in range(60 if SHORT else 600):
        batch = y[64 * step % len(y) :][:64]
        loss = (network(batch[:, :ROWS]) - batch[:, ROWS:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    y, kept = torch.from_numpy(differences(200, seed=1)).float(), []
    with torch.no_grad():
        error = (network(y[:, :ROWS], kept) - y[:, ROWS:]).square().mean()
    return float(error), kept[0].mean(dim=0).numpy()


(alone, _), (together, looks) = trained(1), trained(2)
print(f"one head: error {alone:.3f}, two heads: {together:.3f} (uninformed forecast: 1)")
at = np.arange(STEPS)
for name, lag in (("day", DAY), ("week", WEEK)):
    each = looks[:, at, ROWS - lag + at].mean(axis=1)
    print(f"weight on the {name} before: head 0 {each[0]:.2f}, head 1 {each[1]:.2f}")
assert SHORT or (together < 0.05 and alone > 0.4)

# %%
figure, pair = plt.subplots(1, 2, figsize=(10, 2.4), sharey=True, layout="constrained")
for head, axes in enumerate(pair):
    axes.imshow(looks[head], cmap="Blues", vmin=0, vmax=1, aspect="auto", origin="lower", extent=(-ROWS, 0, 0.5, STEPS + 0.5))
    axes.set(title=f"head {head}", xlabel="row looked at, from the cutoff", yticks=range(1, STEPS + 1))
_ = pair[0].set_ylabel("step ahead")

# %% [markdown]
# One head looks a day back, the other a week back. A whole Transformer on the same series has more ways: its encoder's rows
# look at each other first. `view="lags"` shows how far back it looks, the mean over all steps, heads and series.

# %%
stamps = pd.date_range("2024-01-01", periods=ROWS + STEPS, freq="6h")


def framed(y: np.ndarray) -> pd.DataFrame:
    ids = np.repeat(np.arange(len(y)), y.shape[1])
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(stamps, len(y)), "y": y.reshape(-1)})


history, truth = split(framed(differences(64, seed=1)), ROWS)
settings = {
    **{"input_size": ROWS, "d_model": 32, "n_heads": 2, "n_layers": 1, "patch_length": 1, "output": "autoregressive"},
    **{"head": "point", "loss": "mse", "scaler": "none", "calendar": None, "seed": 1},
    **{"batch_size": 64, "learning_rate": 5e-3, "max_steps": 20 if SHORT else 500},
}
model = Transformer(horizon=STEPS, **settings).fit(framed(differences(3000, seed=0)))
error = ((model.predict(frame=history)["Transformer"].to_numpy() - truth["y"].to_numpy()) ** 2).mean()
print(f"mean squared error {error:.3f}")
assert SHORT or error < 0.05
looked = model.explain(frame=history)

# %%
plot_attention(looked, view="lags")

# %%
plot_attention(looked, view="heads")

# %% [markdown]
# The day and the week, and hardly anything else. But here each head looks at both: nothing asks heads to share out the work
# in the way that we would find tidy.

# %% [markdown]
# ## Does the forecast depend on what is shown?
#
# A picture may please and mean nothing. `faithfulness` hides rows from the model: those it attends to most, those it
# attends to least, random ones. Where the weights tell something, hiding the first moves the forecast most.

# %%
report = faithfulness(model, history, share=0.1)
print(report[["most", "random", "least"]].mean().round(2).to_string())
assert SHORT or report["most"].mean() > report["least"].mean()

# %% [markdown]
# ## On real data
#
# So far we knew where the answer stands. Now take a series for which nobody knows: the temperature of the sea off Peru, by the
# month (tutorial 05). Does it help to look back? The same network with attention and without, a year ahead, from 8 cutoffs:

# %%
sea = datasets.load("elnino")
settings = {"input_size": 48, "hidden_size": 32, "max_steps": 20 if SHORT else 300}
blind = Seq2Seq(attention=None, alias="last state alone", **settings)
looking = Seq2Seq(attention="additive", alias="attention", **settings)
board = compare([SeasonalNaive(), blind, looking], sea, horizon=12, n_windows=2 if SHORT else 8, refit=False)
print(board.table[["model", "mase"]].round(2).to_string(index=False))
mase = board.table.set_index("model")["mase"]
assert SHORT or abs(mase["attention"] - mase["last state alone"]) < 0.02
assert SHORT or mase.idxmax() == "SeasonalNaive"

# %%
model = looking.clone(horizon=12).fit(sea)
looked = model.explain()
plot_attention(looked)

# %%
summer = looked.loc[looked["lag"].dt.month.isin([6, 7, 8]), "weight"].sum() / looked["weight"].sum()
print(f"share of the weight on June, July and August: {summer:.2f}")
usual = sea.groupby(sea["ds"].dt.month)["y"].mean()
print("usual degrees from May to August:", usual[[5, 6, 7, 8]].round(1).tolist())
assert usual[[5, 6, 7, 8]].is_monotonic_decreasing
tried = faithfulness(model, sea, share=0.1)
print(tried[["most", "random", "least"]].round(2).to_string(index=False))
assert SHORT or summer > 0.6
assert SHORT or tried["most"].item() > tried["random"].item()

# %% [markdown]
# With attention the error is that without it, to two digits, and both are smaller than that of last year's values: on this
# series looking back does not pay. The picture is no diagonal now. Whatever step is asked for, the network looks at the same
# months of each year, June to August, when the sea cools. Why these? The weights do not say: a row that was encoded tells of
# the rows before it, too. What we may say is what was tried: if the rows looked at most are hidden, the forecast moves more
# than if others are.
#
# ## Exercises
#
# 1. Mean pooling and max pooling are attention with scores that nobody learned. Which scores? Check with `masked_softmax`
#    and `harden_weights`.
# 2. TF-IDF is attention with a static score. Write the weights of a word in a text as a softmax. What is the query?
# 3. Add a score of your own: $-\lVert q - k \rVert_1$. Does it find the answer of the task above?
# 4. Divide the scores of the task by a **temperature** of 0.1, 1 and 10. What happens to the weights, and what in the
#    limits?
#
# ## Solutions
#
# ### Solution 1
#
# Mean pooling: equal scores, of whatever height. Max pooling: the score is the value itself, and all weight goes to the
# largest score ("hard" attention). Between them lies softmax pooling, whose weights are soft.

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
# A word that occurs $\text{tf}$ times is $\text{tf}$ rows with the score $\log \text{idf}$ each. The softmax of logarithms
# is the share: $\text{tf} \cdot \text{idf} / \sum \text{tf} \cdot \text{idf}$. There is no query: every reader of the text
# gets the same weights.

# %%
documents = ["sale sale quiet busy", "quiet busy quiet", "busy quiet closed"]
words = sorted(set(" ".join(documents).split()))
tf = np.array([[text.split().count(word) for word in words] for text in documents])
idf_of = np.log(1 + len(documents) / (tf > 0).sum(axis=0))
text = documents[0].split()
scores = torch.tensor([[[np.log(idf_of[words.index(word)]) for word in text]]])
each = masked_softmax(scores).flatten().numpy()
by_word = {word: sum(weight for weight, other in zip(each, text, strict=True) if other == word) for word in words}
np.testing.assert_allclose(list(by_word.values()), tf[0] * idf_of / (tf[0] * idf_of).sum())
print({word: round(float(weight), 2) for word, weight in by_word.items()})

# %% [markdown]
# ### Solution 3
#
# A class with one method, and a name. From then on it is a choice of `Seq2Seq(attention=...)` as any other.

# %%


@score("manhattan")
class Manhattan(Score):
    def forward(self, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        return -torch.cdist(queries, keys, p=1)


training = copies(200, 2 * INPUT, LAG, seed=0)
history, _ = split(copies(16, INPUT + HORIZON, LAG, seed=1), INPUT)
looked = Seq2Seq(**common, attention="manhattan").fit(training).explain(frame=history)
mass = looked.loc[looked["ds"] - looked["lag"] == LAG, "weight"].mean()
print(f"weight on the answer {mass:.2f}")
assert SHORT or mass > 0.8
del SCORES["manhattan"]

# %% [markdown]
# ### Solution 4

# %%
dots = torch.from_numpy(by_hand["dot"])
for temperature in (0.1, 1.0, 10.0):
    print(f"temperature {temperature:4.1f}", masked_softmax(dots / temperature).numpy().round(2))
np.testing.assert_allclose(masked_softmax(dots / 1e-3), harden_weights(masked_softmax(dots)), atol=1e-6)
np.testing.assert_allclose(masked_softmax(dots / 1e6), np.full(5, 1 / 5), atol=1e-5)

# %% [markdown]
# A low temperature looks at one row alone, a high one at all alike. In the limits attention becomes hard, or mean pooling.
#
# ## Reference
#
# - `Seq2Seq`, `Transformer`, `Seq2Seq.explain`, `compare`, `datasets`
# - `nn.scores.SCORES`, `nn.scores.Score`, `nn.scores.score`, `nn.scores.additive`, `nn.scores.dot`, `nn.scores.scaled_dot`,
#   `nn.scores.general`, `nn.scores.location`, `nn.scores.cosine`, `nn.scores.gaussian`
# - `nn.attention.attend`, `nn.attention.masked_softmax`, `nn.attention.harden_weights`, `nn.multihead.CrossAttention`
# - `plotting.plot_attention`, `evaluation.faithfulness.faithfulness`
#
# To read on: Bahdanau, Cho, Bengio (2015), *Neural machine translation by jointly learning to align and translate*; Luong,
# Pham, Manning (2015), *Effective approaches to attention-based neural machine translation*; Vaswani et al. (2017),
# *Attention is all you need*; Jain, Wallace (2019), *Attention is not explanation*; Wiegreffe, Pinter (2019), *Attention is
# not not explanation*.
