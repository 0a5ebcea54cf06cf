# %% [markdown]
# # 10 · Pretraining: BERT, GPT and XLNet for time series
#
# A language model learns from texts without labels: a part of the text is hidden, and the network infers it from the
# rest. Afterwards it is trained a little more on the task of interest. Here we do the same with time series. We compute
# each method by hand on a small example, compare it with the library, and measure what it gains.
#
# **After this you can**
#
# - turn a series into tokens: patches, projection, positions
# - compute by hand what BERT, GPT and XLNet are trained on: masked patches, next window, next patch, permutation order
# - compute a cross-entropy and a perplexity, and compare them with those of a uniform guess
# - explain the steps from GPT to `DecoderOnly`: causal mask, loss on all positions, key-value cache
# - pretrain on many series, fine-tune on few with frozen layers, forecast series never seen, and test what this gains

# %%
import copy
import math
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from deepforecast import (
    DecoderOnly,
    MaskedPatches,
    Naive,
    NextPatch,
    NextWindow,
    PermutationOrder,
    SeasonalNaive,
    Transformer,
    datasets,
    load,
    plot,
)
from deepforecast.nn.heads.bins import BinnedHead
from deepforecast.nn.multihead import AttentionMask
from deepforecast.nn.network import decode_teacher_forced
from deepforecast.nn.positions import sinusoidal_encoding
from deepforecast.training.pretraining import choose_patches

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training


def assert_equal(by_hand: torch.Tensor, by_library: torch.Tensor) -> None:
    np.testing.assert_allclose(by_hand.detach().numpy(), by_library.detach().numpy(), atol=1e-5)


# %% [markdown]
# ## Tokens and embeddings of a series
#
# A language model cuts a text into **tokens**: words or parts of words. Each token is replaced by a vector, its
# **embedding**, which is looked up in a table. A series has no words, and infinitely many values. We therefore cut it
# into **patches** of $P$ consecutive values, here $P = 4$, and compute the embedding by a linear map. Since values can
# be missing, the input has a second part: 1 for an observed value and 0 for a missing one. We add the encoding $p_i$ of
# the position of the patch (tutorial 09):
#
# $$h_i = W \, [\, x_i ; \text{observed}_i \,] + b + p_i .$$
#
# The series are generated, with a season of 8 steps. Each has its own seasonal pattern. The times are integers, so
# nothing tells a network the length of the season.

# %%
SEASON, WINDOW, HORIZON, P, WIDTH = 8, 32, 6, 4, 16


def generate(n_series: int, length: int, seed: int) -> pd.DataFrame:
    recipe = datasets.Recipe(seasons=(SEASON,), noise=3.0, trend=0.0)
    return datasets.generate(n_series, length, freq=1, seed=seed, recipe=recipe)


small = {"horizon": HORIZON, "input_size": WINDOW, "patch_length": P, "d_model": WIDTH, "n_heads": 1, "n_layers": 2,
         "calendar": None, "batch_size": 16}  # fmt: skip
transformer, series = Transformer(**small, stride=P), generate(20, 100, seed=2)
transformer.lightning_module(series)  # creates the network, without training
network = transformer.network_
batch = next(iter(transformer.datamodule(series).train_dataloader()))  # 16 windows
inputs, _ = network.inputs(batch)  # windows with mean 0 and standard deviation 1
encoder = network.body.window_encoder

patches = inputs.y.view(len(inputs.y), -1, P)  # (windows, patches, P)
N_WINDOWS, N_PATCHES = patches.shape[:2]


def embed(patches, observed):
    """W [x; observed] + b, of shape (windows, patches, WIDTH)."""
    projection = encoder.input_projection
    return torch.cat([patches, observed], dim=2) @ projection.weight.T + projection.bias


all_observed = torch.ones_like(patches)
embeddings = embed(patches, all_observed)
assert_equal(embeddings, encoder.embed(inputs))

last_steps = torch.arange(N_PATCHES) * P + P - WINDOW  # of each patch, counted from the end of the window
positions = sinusoidal_encoding(last_steps.double(), WIDTH).float()
assert_equal(embeddings + positions, encoder.add_positions(encoder.embed(inputs), inputs))
print(f"a window of {WINDOW} values is a sequence of {N_PATCHES} tokens of {WIDTH} numbers")

# %% [markdown]
# ## Masked patches: BERT
#
# BERT (Devlin et al. 2019) is an **encoder**: each token attends to all others, before and after it. It is trained to
# infer hidden words ("masked language modelling"). 15 % of the tokens are chosen. If all of them were masked, the
# network would learn nothing about tokens without a mask, and forecasts have no masks. Therefore, of the chosen
#
# - 80 % are **masked**: their values are set to 0 and a learned vector is added to their embedding,
# - 10 % are **replaced** by the values of another window,
# - 10 % stay as they are.
#
# So the network cannot tell which patches it may trust, and must compare each with the others. A linear map
# $R$ of each encoded token returns $P$ values. The loss is the mean squared error of the set $C$ of chosen patches, in
# units of the scaled window ($\tilde h$ are the tokens after masking and replacement):
#
# $$\text{loss} = \frac{1}{|C| \, P} \sum_{i \in C} \lVert R \, \text{encoder}(\tilde h)_i - x_i \rVert^2 .$$
#
# Here it is by hand and by the class `MaskedPatches`. Both draw the same random numbers.

# %%


def prepare(objective):
    """The layers that the objective needs besides the network, with random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        objective.setup(network)
    return objective


def library_loss(objective) -> torch.Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return objective.loss(network, batch)


masked_patches = prepare(MaskedPatches(fraction=0.15))
with torch.random.fork_rng():
    torch.manual_seed(0)
    chosen = choose_patches(torch.ones(N_WINDOWS, N_PATCHES), 0.15)  # at least one per window, at random
    draw = torch.rand(N_WINDOWS, N_PATCHES)

masked, replaced = chosen & (draw < 0.8), chosen & (draw >= 0.8) & (draw < 0.9)
corrupted = torch.where(replaced[..., None], patches.roll(1, 0), patches)  # the values of the window before
corrupted = torch.where(masked[..., None], 0.0, corrupted)
observed = all_observed * ~masked[..., None]
tokens = embed(corrupted, observed) + masked[..., None] * masked_patches.mask_token + positions
reconstructed = masked_patches.reconstruction(encoder.encoder(tokens))  # (windows, patches, P)
by_hand = ((reconstructed - patches)[chosen] ** 2).mean()
assert_equal(by_hand, library_loss(masked_patches))
print(f"loss of the untrained network: {by_hand:.3f}; a forecast of 0 has {(patches[chosen] ** 2).mean():.3f}")

# %% [markdown]
# The figure shows a window with a masked patch and one with a replaced patch, as the network reads them. With
# `"masked_spans"` several consecutive patches are hidden together, so that they cannot be interpolated from their
# neighbours (SpanBERT, Joshi et al. 2020).

# %%
figure, both = plt.subplots(1, 2, figsize=(10, 2.8), sharey=True, layout="constrained")
for axes, kind, title in zip(both, (masked, replaced), ("a masked patch", "a replaced patch"), strict=True):
    window = int(kind.any(1).nonzero()[0])
    is_read = observed[window].flatten().bool().numpy()
    read = np.where(is_read, corrupted[window].flatten().numpy(), np.nan)
    axes.plot(range(WINDOW), patches[window].flatten().numpy(), ":", color="grey", label="true values")
    axes.plot(range(WINDOW), read, color="C0", label="values that the network reads")
    first = int(chosen[window].int().argmax()) * P
    axes.axvspan(first - 0.5, first + P - 0.5, color="C1", alpha=0.2, label="chosen patch")
    axes.set(xlabel="step of the window", title=title)
both[0].set_ylabel("scaled value")
_ = figure.legend(*both[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

# %% [markdown]
# ## Next window: BERT's second task
#
# BERT is also trained to tell whether one sentence follows another ("next-sentence prediction"). For a series: does the
# second half of a window follow its first half? For half of the windows, drawn at random, the second half is that of
# another window. Two things are added to the tokens:
#
# - a **summary token** in place of the first patch, a learned vector (in BERT it is called [CLS]);
# - a **segment embedding**: one of two learned vectors, which marks the half.
#
# A linear map of the encoded summary returns a number, and its sigmoid the probability $\pi$ that the halves belong
# together. The loss is the binary **cross-entropy**: $-\log \pi$ for true pairs, and $-\log(1 - \pi)$ for others.

# %%
next_window = prepare(NextWindow())
with torch.random.fork_rng():
    torch.manual_seed(0)
    is_swapped = torch.rand(N_WINDOWS) < 0.5

in_second_half = torch.arange(N_PATCHES) >= N_PATCHES // 2
is_other = is_swapped[:, None, None] & in_second_half[:, None]
pairs = torch.where(is_other, patches.roll(1, 0), patches)
tokens = embed(pairs, all_observed) + next_window.segments[in_second_half.long()]
tokens[:, 0] = next_window.summary
summary = encoder.encoder(tokens + positions)[:, 0]
probability = torch.sigmoid(next_window.classifier(summary)[:, 0])  # that the halves belong together
by_hand = torch.where(is_swapped, -(1 - probability).log(), -probability.log()).mean()
assert_equal(by_hand, library_loss(next_window))
print(f"loss of the untrained network: {by_hand:.3f}; a guess of one half has {math.log(2):.3f}")

# %% [markdown]
# ## Next patch: GPT
#
# GPT (Radford et al. 2018) predicts each word from those **before** it. A causal mask (tutorial 09) ensures that no
# token attends to a later one. The encoded token $i$ predicts patch $i + 1$. One pass through the network gives a
# prediction for *every* position: of $N$ patches, GPT predicts $N - 1$, and BERT about $0.15 \, N$. (A window is scaled
# as a whole, so its scale tells a little about later patches. At the end of the window, where forecasts begin, nothing
# is known of what follows.)

# %%
next_patch = prepare(NextPatch())
encoded = encoder.encoder(embeddings + positions, AttentionMask(causal=True))
by_hand = ((next_patch.reconstruction(encoded[:, :-1]) - patches[:, 1:]) ** 2).mean()
assert_equal(by_hand, library_loss(next_patch))
print(f"predicted patches per window: BERT {int(chosen.sum()) // N_WINDOWS}, GPT {N_PATCHES - 1}")

# %% [markdown]
# ## Permutation order: XLNet
#
# GPT sees only the past. BERT sees both sides, but also masks, which forecasts do not have. XLNet (Yang et al. 2019)
# has a third idea: predict the tokens one after another, but in a **random order**. A token is predicted from those
# before it *in this order*, which lie on both sides of it, and no token is replaced by a mask.
#
# There is one difficulty. To predict patch $i$, the network must know its position, but not its values. To predict
# later patches, it must know the values of $i$ as well. So each patch has two vectors, which share all weights:
#
# - the **content** $h_i$ begins with the embedding, and attends to the patches up to and including $i$;
# - the **query** $g_i$ begins with a learned vector and the position, and attends to the content of those before $i$.
#
# This is **two-stream attention**. Only the last patches of the order are predicted, here a third of them: those at the
# beginning have seen too little. The network has one head, which makes a layer short.

# %%


def attend(layer, queries, contents, is_visible):
    """A layer whose `queries` attend to `contents` (windows, patches, WIDTH); mask (windows, patches, patches)."""
    q = layer.attention.in_proj(layer.norms[0](queries))[..., :WIDTH]
    k, v = layer.attention.in_proj(layer.norms[0](contents))[..., WIDTH:].chunk(2, dim=-1)
    scores = (q @ k.transpose(1, 2) / math.sqrt(WIDTH)).masked_fill(~is_visible, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)  # the first patch of the order sees nothing
    hidden = queries + layer.attention.out_proj(weights @ v)
    return hidden + layer.feedforward(layer.norms[1](hidden))


permutation_order = prepare(PermutationOrder(fraction=1 / 3))
N_PREDICTED = round(N_PATCHES / 3)
with torch.random.fork_rng():
    torch.manual_seed(0)
    order = (torch.rand(N_WINDOWS, N_PATCHES) + 1).argsort(1)  # e.g. [3, 0, 2, 1]: first patch 3, then patch 0, ...
rank = order.argsort(1)  # of each patch in the order
is_before = rank[:, None, :] < rank[:, :, None]  # (windows, queries, keys)
is_before_or_equal = is_before | torch.eye(N_PATCHES, dtype=torch.bool)


def predict_in_order(embeddings):
    content = embeddings + positions
    query = permutation_order.query + positions.expand_as(content)
    for layer in encoder.encoder.layers:
        query = attend(layer, query, content, is_before)
        content = attend(layer, content, content, is_before_or_equal)
    return permutation_order.reconstruction(encoder.encoder.norm(query))


predicted = predict_in_order(embeddings)
by_hand = ((predicted - patches)[rank >= N_PATCHES - N_PREDICTED] ** 2).mean()
assert_equal(by_hand, library_loss(permutation_order))
print(f"order of the first window: {order[0].tolist()}, predicted: {order[0, -N_PREDICTED:].tolist()}")

is_third_last = (rank == N_PATCHES - 3)[..., None]
changed = predict_in_order(embeddings * (1 - 2 * is_third_last.float()))  # another embedding of one patch
is_affected = (changed - predicted).abs().sum(2) > 1e-4
print("affected by a change of the third-last patch, in this order:", is_affected[0, order[0]].int().tolist())
assert torch.equal(is_affected, rank > N_PATCHES - 3)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
left.imshow(torch.ones(N_PATCHES, N_PATCHES).tril(-1).numpy(), cmap="Blues", vmax=2)
left.set(xlabel="patch (key)", ylabel="patch (query)", title="GPT: patches before it")
right.imshow(is_before[0].numpy(), cmap="Blues", vmax=2)
_ = right.set(xlabel="patch (key)", title=f"XLNet, order {order[0].tolist()}")

# %% [markdown]
# The shaded patches are those from which a patch is predicted. Changing a patch affects the predictions of later
# patches of the order, and not its own.

# %% [markdown]
# ## Cross-entropy and perplexity
#
# The losses above are squared errors. A language model predicts **probabilities**: its words are finitely many, and the
# network returns a probability for each. We can do the same if we cut the range of the scaled values into bins, here 16
# bins between $-3$ and $3$. The value then is a number from 0 to 15, like a word in a small dictionary. The loss is the
# **cross-entropy**: the mean of $-\log$ of the probability that the network gave to the bin that came next.
#
# $$\text{cross-entropy} = -\frac{1}{n} \sum_{t=1}^{n} \log p(\text{bin}_t \mid \text{before}), \qquad
# \text{perplexity} = \exp(\text{cross-entropy}).$$
#
# The **perplexity** is easier to read. A network that gives probability $1/16$ to each of 16 bins has perplexity 16. A
# perplexity of 5 means: as uncertain as a choice among 5 equally probable bins. A network that is always certain and
# right has perplexity 1.
#
# We train a small `DecoderOnly`, the library's GPT, which the next section explains. `pretrain(..., "next_patch")`
# trains it on all positions of each window. The perplexity is that of our 16 windows, whose series it has not seen.

# %%
BINS, LIMIT = 16, 3.0
many = generate(200, 100, seed=1)
bins = BinnedHead(n=BINS, low=-LIMIT, high=LIMIT, spacing="uniform")
gpt = DecoderOnly(**small, positional_encoding="sinusoidal", head=bins, intervals="uncalibrated")


def next_bin_probabilities(network) -> torch.Tensor:
    """Probabilities of the true bins: of all patches of the window but the first, and of the horizon."""
    inputs, scale = network.inputs(batch)
    targets = scale.standardize(batch.target).float()
    logits = decode_teacher_forced(network, inputs, targets, torch.ones_like(targets), 1.0)  # (windows, steps, 16)
    values = torch.cat([inputs.y[:, P:], targets], dim=1)
    codes = ((values + LIMIT) / (2 * LIMIT) * BINS).floor().clamp(0, BINS - 1).long()
    return logits.softmax(-1).gather(2, codes[..., None])[..., 0]


perplexities = {}
for name, n_steps in (("untrained", 1), ("pretrained", 20 if SHORT else 300)):
    gpt.pretrain(many, "next_patch", max_steps=n_steps)
    with torch.no_grad():
        probabilities = next_bin_probabilities(gpt.network_)
        cross_entropy = -probabilities.log().mean()
        assert_equal(cross_entropy, gpt.network_.loss(batch, teacher_forcing_ratio=1.0))
    perplexities[name] = float(cross_entropy.exp())
    print(f"{name:10s} cross-entropy {cross_entropy:.2f}, perplexity {perplexities[name]:5.2f}")
print(f"uniform    cross-entropy {math.log(BINS):.2f}, perplexity {BINS:5.2f}")
assert perplexities["pretrained"] < perplexities["untrained"]
assert SHORT or perplexities["pretrained"] < BINS / 2

# %% [markdown]
# Two perplexities can be compared only if the bins are the same (exercise 2).

# %% [markdown]
# ## From GPT to DecoderOnly
#
# A **decoder-only** network has no encoder. The window and the horizon are one sequence of tokens, which passes through
# one stack of causal layers. The differences from the encoder above are few:
#
# 1. The tokens: embedding and position, as above. Those of the horizon follow those of the window.
# 2. The causal mask, in all layers.
# 3. The output: token $i$ returns the distribution of all $P$ values of patch $i + 1$; here $P$ times 16 numbers.
# 4. The loss: all positions of the window and the horizon count, in a single pass.
#
# In training the true values of the horizon are known, so its tokens are computed from them.

# %%
network, n_ahead = gpt.network_.eval(), math.ceil(HORIZON / P)
body = network.body
with torch.no_grad():
    inputs, scale = network.inputs(batch)
    targets = scale.standardize(batch.target).float()
    sequence = torch.cat([inputs.y, targets], dim=1)[:, : WINDOW + (n_ahead - 1) * P].reshape(N_WINDOWS, -1, P)
    tokens = body.value_projection(torch.cat([sequence, torch.ones_like(sequence)], dim=2))  # 1
    ends = torch.arange(sequence.shape[1]) * P + P - WINDOW
    tokens = tokens + sinusoidal_encoding(ends.double(), WIDTH).float()
    hidden = body.layers(tokens, AttentionMask(causal=True))  # 2
    logits = body.out(hidden).view(N_WINDOWS, -1, BINS)[:, : WINDOW - P + HORIZON]  # 3
    by_library = decode_teacher_forced(network, inputs, targets, torch.ones_like(targets), 1.0)
assert_equal(logits, by_library)

# one pass over all tokens equals one pass for each beginning of the sequence
with torch.no_grad():
    for i in range(tokens.shape[1]):
        assert_equal(body.layers(tokens[:, : i + 1], AttentionMask(causal=True))[:, -1], hidden[:, i])
print(f"{tokens.shape[1]} tokens, {logits.shape[1]} predicted values per window in one pass")

# %% [markdown]
# In a forecast each patch must be computed before the next one. Since earlier tokens never attend to later ones, their
# keys and values are kept in the **key-value cache** (tutorial 09), and each patch costs one new token. Here we give
# the network the true value before each step; the results are those of the single pass.

# %%
with torch.no_grad():
    state, step_logits = network.initial_state(inputs), []  # the window, once
    for step in range(HORIZON):
        previous = targets[:, step - 1] if step else inputs.y[:, -1]
        raw, state = network.step(state, previous, inputs.future_features[:, step], step)
        step_logits.append(raw)
assert_equal(torch.stack(step_logits, dim=1), logits[:, -HORIZON:])
print("with cache: the same outputs")

# %% [markdown]
# `DecoderOnly.predict` draws sample paths in this way: it draws each patch from its distribution and continues from it.
# Long sequences can be cut into segments. In Transformer-XL (Dai et al. 2019), a token attends to its own segment and
# to the stored keys and values of the segments before, which get no gradient (`segment_length`, `memory_segments`).

# %% [markdown]
# ## Pretraining on many series
#
# Now a larger experiment. The series have a season, a linear trend and noise. A network is pretrained on series with
# seasons of 4, 6, 8 or 12 steps. It is not told which series has which season. Here a token is a single value.

# %%
LENGTH, AHEAD = 36, 12  # length of the window, steps to forecast


def mixture(seasons: tuple[int, ...], seed: int) -> pd.DataFrame:
    """20 series for each season and each of three trends."""
    frames = []
    for number, (season, trend) in enumerate((season, trend) for season in seasons for trend in (-0.3, 0.0, 0.3)):
        recipe = datasets.Recipe(seasons=(season,), noise=2.0, trend=trend)
        part = datasets.generate(20, 100, freq=1, seed=seed + number, recipe=recipe)
        frames.append(part.assign(unique_id=f"season {season}, trend {trend}, " + part["unique_id"].astype(str)))
    return pd.concat(frames, ignore_index=True)


def test_series(season: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Histories of 40 other series, and the steps that follow."""
    recipe = datasets.Recipe(seasons=(season,), noise=2.0, trend=0.0)
    frame = datasets.generate(40, LENGTH + 2 * AHEAD, freq=1, seed=99, recipe=recipe)
    is_history = frame.groupby("unique_id").cumcount() < LENGTH + AHEAD
    return frame[is_history], frame[~is_history]


def error(forecast: pd.DataFrame, actual: pd.DataFrame) -> float:
    """Mean absolute error; the last column is the forecast."""
    return float(np.abs(forecast.iloc[:, -1].to_numpy() - actual["y"].to_numpy()).mean())


options = {"horizon": AHEAD, "input_size": LENGTH, "patch_length": 1, "d_model": 32, "n_heads": 4, "n_layers": 2,
           "calendar": None, "batch_size": 32, "learning_rate": 5e-3, "head": "quantiles",
           "intervals": "uncalibrated"}  # fmt: skip
four_seasons = DecoderOnly(**options).pretrain(mixture((4, 6, 8, 12), seed=10), max_steps=15 if SHORT else 500)
loss = four_seasons.training_report_["loss"]
print(f"loss of the first steps {loss.head(10).mean():.2f}, of the last {loss.tail(10).mean():.2f}")

# %% [markdown]
# `pretrain` without an objective takes `"next_patch"` for a `DecoderOnly`. This objective is a forecast, so the network
# can forecast at once: series that it has never seen, without training on them. This is a **zero-shot** forecast. The
# file needs only the weights, not the series:

# %%
histories, actual = test_series(season=8)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "pretrained.dfc"
    four_seasons.save(path, histories=False)
    kilobytes = path.stat().st_size / 1024
    forecast = load(path).predict(frame=histories)

told = SeasonalNaive(horizon=AHEAD, season_length=8).fit(histories).predict()
zero_shot_error, naive_error = error(forecast, actual), error(told, actual)
print(f"file of {kilobytes:.0f} KB")
print(f"mean absolute error: zero-shot {zero_shot_error:.2f}, seasonal naive {naive_error:.2f}")
assert SHORT or zero_shot_error < 1.3 * naive_error
one = histories["unique_id"].iloc[0]
complete = pd.concat([histories, actual])
plot(complete[complete["unique_id"] == one], forecast[forecast["unique_id"] == one])

# %% [markdown]
# The error is close to that of the seasonal naive forecast, which is told the season. The network is not told: it seems
# to find the season in the window. Does it?
#
# ## Attention before and after pretraining
#
# `explain()` returns the attention weights. The figure shows the mean weight by the distance between a value (key) and
# the value to be predicted, for each head, before and after pretraining. All series here have a season of 8 steps.

# %%


def attention_by_lag(model: DecoderOnly, frame: pd.DataFrame) -> pd.DataFrame:
    """Mean weight by head (row) and lag (column), of the last 5 positions of the window."""
    weights = model.explain(frame=frame)
    weights = weights[weights["step"].between(-4, 0)]
    lag = weights["cutoff"] + weights["step"] + 1 - weights["lag"]  # token i predicts the value i + 1
    keys = [weights["layer"], weights["head"], lag.rename("distance")]
    return weights.groupby(keys)["weight"].mean().unstack(fill_value=0)


untrained = DecoderOnly(**options).pretrain(mixture((8,), seed=10), max_steps=1)  # a single step
before, after = attention_by_lag(untrained, histories), attention_by_lag(four_seasons, histories)
figure, both = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True, layout="constrained")
for axes, heads, title in zip(both, (before, after), ("before pretraining", "after pretraining"), strict=True):
    extent = (0.5, LENGTH + 0.5, 7.5, -0.5)
    image = axes.imshow(heads.loc[:, 1:LENGTH], cmap="Blues", vmin=0, vmax=0.5, aspect="auto", extent=extent)
    axes.set(xlabel="lag", xticks=range(4, LENGTH + 1, 4), title=title)
both[0].set(yticks=range(8), yticklabels=[f"layer {layer}, head {head}" for layer, head in before.index])
_ = figure.colorbar(image, label="attention weight")

# %% [markdown]
# Before pretraining, no weight is large. Afterwards the heads have specialised: some attend to the most recent values,
# and one to lag **24**. It does so for series of any season:

# %%
print(f"before pretraining: largest mean weight {before.max(axis=None):.2f}")
for season in (6, 7, 8, 12):
    heads = attention_by_lag(four_seasons, test_series(season)[0])
    lag = heads.max().idxmax()
    print(f"season {season:2d}: largest mean weight {heads.max(axis=None):.2f}, at lag {lag}")
    assert SHORT or (lag == 24 and heads.max(axis=None) > 0.6)
assert before.max(axis=None) < 0.25
assert math.lcm(4, 6, 8, 12) == 24

# %% [markdown]
# 24 is the least common multiple of 4, 6, 8 and 12. The network has not learned to find the season. It has learned a
# rule that is right for all series it was trained on.

# %% [markdown]
# ## Zero-shot forecasts depend on what the series have in common
#
# The rule fails for other seasons. We pretrain a second network on all seasons from 4 to 12 steps. Their least common
# multiple is far longer than the window, so no single lag is right for all of them. Seasons of 7 steps are new to the
# first network, seasons of 13 steps to both.

# %%
assert math.lcm(*range(4, 13)) > LENGTH
nine_seasons = DecoderOnly(**options).pretrain(mixture(tuple(range(4, 13)), seed=10), max_steps=15 if SHORT else 1000)
rows = []
for season in (7, 8, 13):
    histories, actual = test_series(season)
    told = SeasonalNaive(horizon=AHEAD, season_length=season).fit(histories).predict()
    rows.append({
        "season": season,
        "seasonal naive, told the season": error(told, actual),
        "last value": error(Naive(horizon=AHEAD).fit(histories).predict(), actual),
        "zero-shot, pretrained on 4 seasons": error(four_seasons.predict(frame=histories), actual),
        "zero-shot, pretrained on 9 seasons": error(nine_seasons.predict(frame=histories), actual),
    })  # fmt: skip
errors = pd.DataFrame(rows).set_index("season")
print(errors.round(2).T.to_string())
by_four, by_nine = errors["zero-shot, pretrained on 4 seasons"], errors["zero-shot, pretrained on 9 seasons"]
assert SHORT or (by_nine[[7, 13]] < 0.8 * by_four[[7, 13]]).all()
assert SHORT or by_four[8] < by_nine[8]
assert SHORT or (np.minimum(by_four, by_nine) > errors["seasonal naive, told the season"]).all()

# %%
figure, axes = plt.subplots(figsize=(10, 3.2), layout="constrained")
errors.plot.bar(ax=axes, rot=0)
axes.set(xlabel="season of the series to be forecast", ylabel="mean absolute error")
_ = axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))

# %% [markdown]
# More varied series make the network more general, and less accurate for the seasons that both have seen. Where the
# season is known, a model that is told the season is better than either. A pretrained network helps where it is not
# known, and where nothing must be trained.
#
# The same network forecasts series of another frequency, with `freq=`. The window has as many time steps as before.
# Here it forecasts two real monthly series at 8 cutoffs, a year ahead.

# %%
rows = []
for name in ("air_passengers", "elnino"):
    monthly = datasets.load(name)
    results = {"zero-shot": [], "seasonal naive": []}
    for cutoff in range(len(monthly) - 8 * AHEAD, len(monthly), AHEAD):
        past, next_year = monthly.iloc[:cutoff], monthly.iloc[cutoff : cutoff + AHEAD]
        results["zero-shot"].append(error(four_seasons.predict(frame=past, freq="MS"), next_year))
        results["seasonal naive"].append(error(SeasonalNaive(horizon=AHEAD).fit(past).predict(), next_year))
    rows.append({"series": name} | {method: np.mean(values) for method, values in results.items()})
real = pd.DataFrame(rows).set_index("series")
print(real.round(2).to_string())
ratio = real["zero-shot"] / real["seasonal naive"]
assert SHORT or ratio["air_passengers"] < 0.9
assert SHORT or ratio["elnino"] > 1

# %% [markdown]
# A network that has seen only generated series is better for one real series, which has a trend, and worse for the
# other. Networks pretrained on large collections of real series are the subject of current research (Das et al. 2024).
# `NBEATS` or any other network can be used in the same way: `fit` it to many series, then `predict(frame=...)`.

# %% [markdown]
# ## Fine-tuning on few series
#
# **Fine-tuning** continues the training on the series of interest. Is it better than training from scratch, and better
# than zero-shot? We compare them for seasons of 8 steps, as in pretraining, and of 7 steps, with 2 and with 40 series.

# %%
rows = []
for season in (8, 7):
    histories, actual = test_series(season)
    for n_series in (2, 40):
        few = histories[histories["unique_id"].isin(histories["unique_id"].unique()[:n_series])]
        from_scratch = DecoderOnly(**options, max_steps=10 if SHORT else 100).fit(few)
        fine_tuned = copy.deepcopy(four_seasons).fine_tune(few, max_steps=5 if SHORT else 50)
        rows.append({
            "season": season,
            "series": n_series,
            "from scratch": error(from_scratch.predict(frame=histories), actual),
            "zero-shot": error(four_seasons.predict(frame=histories), actual),
            "fine-tuned": error(fine_tuned.predict(frame=histories), actual),
        })  # fmt: skip
gains = pd.DataFrame(rows).set_index(["season", "series"])
print(gains.round(2).to_string())
few_alike, many_alike, few_unlike, many_unlike = (gains.loc[key] for key in ((8, 2), (8, 40), (7, 2), (7, 40)))
assert SHORT or few_alike["zero-shot"] < few_alike["fine-tuned"] < few_alike["from scratch"]
assert SHORT or many_alike["fine-tuned"] < many_alike[["from scratch", "zero-shot"]].min()
assert SHORT or few_unlike["zero-shot"] > 2 * few_unlike["from scratch"]

# %% [markdown]
# The gain depends on the task and on the amount of data:
#
# - Two series that are as in pretraining: zero-shot is best. Fine-tuning makes it *worse*, since the network adapts to
#   the patterns of these two. It still is better than training from scratch.
# - 40 series that are as in pretraining: fine-tuning is best.
# - Series unlike those in pretraining: zero-shot fails. With 40 series, pretraining gains nothing.

# %%
assert SHORT or many_unlike["fine-tuned"] > 0.9 * many_unlike["from scratch"]

# %% [markdown]
# ## Frozen layers and gradual unfreezing
#
# If few data could spoil the pretrained weights, they can be **frozen**: `freeze=["window_encoder"]` trains only the
# other parts of the network. With **gradual unfreezing** (Howard and Ruder 2018) they are trained, too, after a number
# of steps, when the other parts have adapted: `freeze={"window_encoder": 50}`.
#
# We return to the `Transformer`. Its encoder learns by masked patches, as in BERT. Since this trains no output for
# forecasts, `predict` is possible only after `fine_tune`. For comparison, a second `Transformer` is pretrained by
# forecasting: `fit` on the many series. Both are fine-tuned on 4 series, and forecast 40.

# %%
transformer_options = {**options, "learning_rate": 3e-3, "positional_encoding": "rotary", "seed": 1}
source = datasets.generate(200, 100, freq=1, seed=1, recipe=datasets.Recipe(seasons=(8,), noise=2.0, trend=0.0))
histories, actual = test_series(season=8)
few = histories[histories["unique_id"].isin(histories["unique_id"].unique()[:4])]
n_steps, n_few_steps, n_frozen_steps = (10, 6, 3) if SHORT else (300, 100, 50)

by_masks = Transformer(**transformer_options).pretrain(source, "masked_patches", max_steps=n_steps)
by_forecasts = Transformer(**transformer_options, max_steps=n_steps).fit(source)
models = {
    "from scratch": Transformer(**transformer_options, max_steps=n_few_steps).fit(few),
    "masked patches, all layers trained": copy.deepcopy(by_masks).fine_tune(few, max_steps=n_few_steps),
}
for name, freeze in (
    ("forecasts, all layers trained", None),
    ("forecasts, encoder frozen", ["window_encoder"]),
    ("forecasts, gradual unfreezing", {"window_encoder": n_frozen_steps}),
):
    models[name] = copy.deepcopy(by_forecasts).fine_tune(few, max_steps=n_few_steps, freeze=freeze)
models["forecasts, zero-shot"] = by_forecasts
transfer = pd.Series({name: error(model.predict(frame=histories), actual) for name, model in models.items()})
print(transfer.round(2).to_string())

frozen = models["forecasts, encoder frozen"].network_.body.window_encoder
pretrained = by_forecasts.network_.body.window_encoder
assert all(torch.equal(a, b) for a, b in zip(frozen.parameters(), pretrained.parameters(), strict=True))
assert SHORT or 0.8 < transfer["masked patches, all layers trained"] / transfer["from scratch"] < 1.05
assert SHORT or transfer["forecasts, all layers trained"] < 0.7 * transfer["from scratch"]
assert SHORT or transfer["forecasts, encoder frozen"] < transfer["forecasts, all layers trained"]
assert SHORT or transfer.idxmin() == "forecasts, zero-shot"

# %%
figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
axes.barh(transfer.index[::-1], transfer[::-1])
_ = axes.set(xlabel="mean absolute error")

# %% [markdown]
# Masked patches gain little here. They train the encoder, but the decoder begins with random weights and has only 4
# series to learn from. (In the tasks of BERT, only a linear map of the encoded tokens begins with random weights.)
# Pretraining by forecasts trains all parts, and about halves the error. A frozen encoder is then slightly better than
# training all layers, and no fine-tuning at all is best: the 4 series contain nothing that the many do not.
#
# What follows from these experiments:
#
# - Always compare with training from scratch, with zero-shot, and with a simple model.
# - What is pretrained should be what the task uses. Forecasting is itself self-supervised: the future is the label.
# - A network learns whatever rule suffices for its training series. Test it on series that are different.
#
# These are small networks and generated series. `benchmarks/bench_pretraining.py` does the comparison on real ones.
#
# ## Exercises
#
# 1. In permutation order, let the order be 0, 1, 2, ... for all windows. From which patches is each predicted?
# 2. Merge each two neighbouring bins of the network above, so that there are 8. What happens to its perplexity, although
#    the forecasts are the same?
# 3. How many parameters of the `Transformer` are trained with a frozen encoder, and how many without?
#
# ## Solutions
#
# ### Solution 1
#
# From those on its left. The query stream then has a causal mask without the diagonal, as in GPT, where token $i - 1$
# predicts patch $i$.

# %%
left_to_right = torch.arange(N_PATCHES).expand(N_WINDOWS, -1)
is_before = left_to_right[:, None, :] < left_to_right[:, :, None]
assert torch.equal(is_before, torch.ones_like(is_before).tril(-1))

# %% [markdown]
# ### Solution 2
#
# The probability of a wide bin is the sum of the probabilities of two narrow ones. So each probability of a true bin is
# larger, and the perplexity smaller: here about half, since neighbouring bins have similar probabilities. Yet the
# forecast is the same. Perplexities of different bins, or of different dictionaries, cannot be compared.

# %%
values = torch.cat([inputs.y[:, P:], targets], dim=1)
wide_codes = ((values + LIMIT) / (2 * LIMIT) * BINS / 2).floor().clamp(0, BINS / 2 - 1).long()
wide_probabilities = logits.softmax(-1).unflatten(2, (BINS // 2, 2)).sum(3).gather(2, wide_codes[..., None])
wide_perplexity = float((-wide_probabilities.log().mean()).exp())
print(f"perplexity with 16 bins {perplexities['pretrained']:.2f}, with 8 bins {wide_perplexity:.2f}")
assert 0.4 < wide_perplexity / perplexities["pretrained"] < 0.6

# %% [markdown]
# ### Solution 3

# %%
network = by_forecasts.network_
n_all = sum(parameter.numel() for parameter in network.parameters())
n_frozen = sum(parameter.numel() for parameter in network.body.window_encoder.parameters())
print(f"{n_all:,} parameters, {n_all - n_frozen:,} of them with a frozen encoder")
assert n_frozen < n_all

# %% [markdown]
# ## Reference
#
# - `Transformer.pretrain`, `Transformer.fine_tune`, `DecoderOnly`, `DecoderOnly.explain`, `load`, `datasets`
# - `MaskedPatches`, `MaskedSpans`, `NextPatch`, `NextWindow`, `PermutationOrder`, `Objective`
# - `training.pretraining.choose_patches`, `nn.heads.bins.BinnedHead`, `nn.network.decode_teacher_forced`
#
# To read on: Vaswani et al. (2017), *Attention is all you need*; Radford et al. (2018), *Improving language
# understanding by generative pre-training* (GPT), and (2019), *Language models are unsupervised multitask learners*
# (GPT-2); Howard and Ruder (2018), *Universal language model fine-tuning for text classification*; Devlin et al.
# (2019), *BERT: Pre-training of deep bidirectional Transformers for language understanding*; Dai et al. (2019),
# *Transformer-XL: Attentive language models beyond a fixed-length context*; Yang et al. (2019), *XLNet: Generalized
# autoregressive pretraining for language understanding*; Joshi et al. (2020), *SpanBERT: Improving pre-training by
# representing and predicting spans*; Nie et al. (2023), *A time series is worth 64 words* (PatchTST); Das et al.
# (2024), *A decoder-only foundation model for time-series forecasting*.
