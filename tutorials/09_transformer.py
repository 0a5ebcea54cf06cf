# %% [markdown]
# # 09 · The Transformer, piece by piece
#
# "Attention Is All You Need" (Vaswani et al. 2017) built a whole network out of the attention of the last tutorial. Here we
# build it from nothing but matrix products, and compare every piece with the library's own. In the end we let it forecast,
# one step after the other, in four ways.
#
# **After this you can**
#
# - build positions, heads, masks, residuals and normalisation in a few lines each
# - say what layer normalisation, batch normalisation, "pre" and "post" mean, and what they do to gradients
# - explain why training needs one pass and forecasting needs one pass a step, and what a cache of keys and values saves
# - decode: greedy, by sampling, sharpened, by beam search, and say what each of them gives

# %%
import itertools
import os

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from deepforecast import SeasonalNaive, Transformer, compare, datasets, plot
from deepforecast.nn.multihead import AttentionMask, KeyValueProjection, SelfAttention
from deepforecast.nn.normalization import normalization
from deepforecast.nn.positions import sinusoidal_encoding
from deepforecast.nn.transformer import Decoder, DecodingPosition, Encoder, LayerOptions

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

WIDTH, HEADS, ROWS, STEPS, LAYERS = 16, 4, 10, 6, 2
drawn = torch.Generator().manual_seed(0)


def equal(mine: torch.Tensor, library: torch.Tensor) -> None:
    np.testing.assert_allclose(mine.detach().numpy(), library.detach().numpy(), atol=1e-5)


# %% [markdown]
# ## Rows without order
#
# Self-attention compares each row with each other, $\text{softmax}(Q K^\top / \sqrt{D}) \, V$. Nothing in it says which row
# came first: shuffle the rows and the result is shuffled in the same way. So every row is told its **position**: to its
# numbers waves are added, fast ones and slow ones,
#
# $$p_{t, 2i} = \sin(t \, \omega_i), \qquad p_{t, 2i+1} = \cos(t \, \omega_i), \qquad \omega_i = 10000^{-2i / D}.$$

# %%
t = np.arange(60)
speed = 10000.0 ** (-2 * np.arange(WIDTH // 2) / WIDTH)
p = np.zeros((60, WIDTH))
p[:, 0::2], p[:, 1::2] = np.sin(t[:, None] * speed), np.cos(t[:, None] * speed)
np.testing.assert_allclose(p, sinusoidal_encoding(torch.from_numpy(t).double(), WIDTH).numpy(), atol=1e-12)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
left.imshow(p.T, cmap="RdBu", aspect="auto", interpolation="nearest")
left.set(xlabel="row", ylabel="number", title="what is added to each row")
right.plot(t - 30, p @ p[30])
_ = right.set(xlabel="distance", title="product of two positions: of their distance alone")

# %% [markdown]
# The product of two positions depends on their distance alone, as $\cos a \cos b + \sin a \sin b = \cos(a - b)$. So a score
# can attend to "one week back", whatever the date. (`Transformer(positional_encoding=...)` offers other encodings, too:
# learned vectors, rotary, ALiBi, the calendar.)

# %% [markdown]
# ## Heads
#
# One attention makes one mean of the rows. Several **heads** make several: each compares and averages its own share of the
# numbers, $D / h$ of them, and a last linear map mixes what they found.
#
# $$\text{head}_j = \text{softmax}\!\Big(\frac{(X W^Q_j)(X W^K_j)^\top}{\sqrt{D / h}}\Big) X W^V_j, \qquad
# \text{out} = [\text{head}_1 ; \dots ; \text{head}_h] \, W^O.$$

# %%


def by_heads(queries, keys, values, hidden=None):
    """Each (B, rows, D), a head after the other; `hidden` (rows, rows): what may not be seen."""
    found, size = [], queries.shape[-1] // HEADS
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = queries[..., part] @ keys[..., part].transpose(1, 2) / np.sqrt(size)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        found.append(scores.softmax(-1) @ values[..., part])
    return torch.cat(found, dim=-1)


def among_themselves(part, rows, hidden=None):
    """Self-attention with the weights of the library's `part`: one product makes queries, keys and values."""
    return part.out_proj(by_heads(*part.in_proj(rows).chunk(3, dim=-1), hidden))


with torch.random.fork_rng():
    torch.manual_seed(0)
    part = SelfAttention(WIDTH, HEADS)
rows = torch.randn(3, ROWS, WIDTH, generator=drawn)
equal(among_themselves(part, rows), part(rows))
shuffled = torch.randperm(ROWS, generator=drawn)
equal(part(rows[:, shuffled]), part(rows)[:, shuffled])
print("heads by hand are the library's; shuffled rows give shuffled results")

# %% [markdown]
# ## The mask
#
# The decoder forecasts step $i$ from the steps before it. In training all true values are known, so all steps can be
# computed in one parallel pass, **if** no step sees a later one. A **causal mask** sets those scores to $-\infty$ before
# the softmax. The weight is then exactly zero, and so is the gradient: not even learning can peep.

# %%
later = torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1)
steps = torch.randn(3, STEPS, WIDTH, generator=drawn)
kept = []
equal(among_themselves(part, steps, later), part(steps, AttentionMask(causal=True), kept))

told = steps.clone().requires_grad_()
part(told, AttentionMask(causal=True))[:, 2].sum().backward()
moved = told.grad.abs().sum((0, 2))
print("what moves the third step:", (moved > 0).int().tolist())
assert (moved[3:] == 0).all()
assert (moved[:3] > 0).all()

figure, axes = plt.subplots(figsize=(3.6, 3.2), layout="constrained")
shown = axes.imshow(kept[0][0, 0].detach().numpy(), cmap="Blues", vmin=0, vmax=1)
axes.set(xlabel="step looked at", ylabel="step that looks", title="weights of a head")
_ = figure.colorbar(shown)

# %% [markdown]
# ## Residuals and normalisation
#
# A layer adds what it finds to what went in: $x + f(x)$. The sum is a **residual** connection; through it gradients reach
# the first layer undamped. To keep numbers of one size, they are normalised. **Batch normalisation**, made for pictures,
# brings each of the $D$ numbers to mean 0 and deviation 1 *over the batch*. **Layer normalisation** does so over the $D$
# numbers *of one row*:
#
# $$\text{layer norm}(x) = \gamma \, \frac{x - \text{mean}(x)}{\sqrt{\text{var}(x) + \varepsilon}} + \beta .$$

# %%
layer_norm, batch_norm = (normalization(name, WIDTH).requires_grad_(False) for name in ("layer", "batch"))
mean, variance = rows.mean(-1, keepdim=True), rows.var(-1, keepdim=True, unbiased=False)
equal((rows - mean) / torch.sqrt(variance + 1e-5), layer_norm(rows))
flat = rows.reshape(-1, WIDTH)
equal(((flat - flat.mean(0)) / torch.sqrt(flat.var(0, unbiased=False) + 1e-5)).view(rows.shape), batch_norm(rows))

beside = torch.cat([rows[:1], 10 + 5 * torch.randn(2, ROWS, WIDTH, generator=drawn)])  # the first window in other company
for name, norm in (("layer", layer_norm), ("batch", batch_norm)):
    print(f"{name} norm: in other company the first window moves by {float((norm(beside)[0] - norm(rows)[0]).abs().max()):.2f}")
equal(layer_norm(beside)[0], layer_norm(rows)[0])
assert (batch_norm(beside)[0] - batch_norm(rows)[0]).abs().max() > 1

# %% [markdown]
# With batch normalisation a window's numbers depend on who else is in the batch, in training; and afterwards on running
# means of series long gone. With series of different levels and with few windows a batch this hurts. Layer normalisation
# looks at one row alone: it is what Transformers use. (`Transformer(normalization="batch")` lets you compare; "rms" leaves
# out the mean.)
#
# Where to put it? The paper normalises the sum, $\text{norm}(x + f(x))$: **post**. Later networks normalise what goes into
# $f$: $x + f(\text{norm}(x))$: **pre**. Both can be written in one line. What differs is how hard each layer is pushed
# before anything is learned. Here is the size of the gradient of each layer's weights, in a stack of 12 untrained layers.

# %%


def pushes(norm_first, depth=12):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        stack = Encoder(LayerOptions(WIDTH, HEADS, 4 * WIDTH, norm_first=norm_first), depth)
    many = torch.randn(16, 20, WIDTH, generator=torch.Generator().manual_seed(1))
    (stack(many) * torch.randn(many.shape, generator=torch.Generator().manual_seed(2))).sum().backward()
    return [float(layer.feedforward.linear2.weight.grad.norm()) for layer in stack.layers]


figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
pushed = {"pre": pushes(norm_first=True), "post": pushes(norm_first=False)}
for order, sizes in pushed.items():
    axes.plot(range(1, 13), sizes, "o-", label=f'"{order}"')
axes.set(xlabel="layer, from the input to the output", ylabel="size of the gradient", ylim=(0, None))
_ = axes.legend(title="normalisation")
harder = np.array(pushed["post"]) / pushed["pre"]
print("times as hard with post:", harder.round(1))
assert harder[-3:].mean() > harder[:3].mean() > 1

# %% [markdown]
# With "post" every layer is pushed harder, and those next to the output the more so: large first steps, on top of layers
# that know nothing yet. So the paper had to begin with tiny learning rates (warm-up). With "pre" the sum grows from layer
# to layer, later layers weigh less in it, and there is a straight road of additions from the output to the first layer. It
# is the library's default.

# %% [markdown]
# ## A layer, an encoder, a decoder
#
# A layer has two parts: attention, then a small network for each row by itself, $W_2 \, \text{relu}(W_1 x + b_1) + b_2$. A
# **decoder** layer has one part more between them: **cross-attention**, in which steps ask and the encoded window answers.
# That is the whole Transformer.

# %%


def feed_forward(layer, x):
    return layer.feedforward.linear2(torch.relu(layer.feedforward.linear1(x)))


def my_encoder(encoder, x):
    for layer in encoder.layers:
        x = x + among_themselves(layer.attention, layer.norms[0](x))
        x = x + feed_forward(layer, layer.norms[1](x))
    return encoder.norm(x)


def my_decoder(decoder, x, keys_and_values, hidden):
    for place, layer in enumerate(decoder.layers):
        keys, values = keys_and_values[2 * place : 2 * place + 2]
        x = x + among_themselves(layer.attention, layer.norms[0](x), hidden)
        x = x + layer.cross.out_proj(by_heads(layer.cross.in_proj(layer.norms[1](x)), keys, values))
        x = x + feed_forward(layer, layer.norms[2](x))
    return decoder.norm(x)


with torch.random.fork_rng():
    torch.manual_seed(0)
    options = LayerOptions(WIDTH, HEADS, 4 * WIDTH, activation="relu", norm_first=True)
    encoder, decoder, memory = Encoder(options, LAYERS), Decoder(options, LAYERS), KeyValueProjection(WIDTH, HEADS, LAYERS)

encoded = my_encoder(encoder, rows)
equal(encoded, encoder(rows))
keys_and_values = memory.in_proj(encoded).chunk(2 * LAYERS, dim=-1)  # of all layers in one product
mine = my_decoder(decoder, steps, keys_and_values, later)
equal(mine, decoder(steps, memory(encoder(rows)), (AttentionMask(causal=True), AttentionMask())))
print("20 lines by hand are the library's encoder and decoder (which a test holds to torch.nn.Transformer)")

# %% [markdown]
# ## One pass to train, a step at a time to forecast
#
# In a forecast the true values are not known. Step 2 needs the value of step 1, so steps come in turn. The naive way
# decodes the whole sequence so far again for each step. But earlier steps never see later ones: their keys and values stay
# what they were. So they are **kept**. This is the key-value cache: each step computes one row alone. Same numbers, other
# cost. Here are both, with the number of operations counted.

# %%
STEPS_LONG = 24
steps = torch.randn(3, STEPS_LONG, WIDTH, generator=drawn)
without_cache, with_cache = [], []
with torch.no_grad():
    read = memory(encoder(rows))
    caches = [rows.new_empty(3, 2, HEADS, 0, WIDTH // HEADS)] * LAYERS
    for number in range(STEPS_LONG):
        with FlopCounterMode(display=False) as counted:
            whole = decoder(steps[:, : number + 1], read, (AttentionMask(causal=True), AttentionMask()))[:, -1]
        without_cache.append(counted.get_total_flops())
        with FlopCounterMode(display=False) as counted:
            position, masks = DecodingPosition(number, STEPS_LONG), (AttentionMask(), AttentionMask())
            one, caches = decoder.step(steps[:, number], caches, read, position, masks)
        with_cache.append(counted.get_total_flops())
        equal(one, whole)

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(range(1, STEPS_LONG + 1), np.array(without_cache) / with_cache[0], label="all steps again")
axes.plot(range(1, STEPS_LONG + 1), np.array(with_cache) / with_cache[0], label="with cached keys and values")
axes.set(xlabel="step", ylabel="cost, of the first step", ylim=(0, None))
_ = axes.legend()
assert with_cache[-1] < 1.1 * with_cache[0]
assert without_cache[-1] > 20 * without_cache[0]

# %% [markdown]
# ## Let it forecast
#
# Now the library's `Transformer` as a whole. `output="autoregressive"` takes steps in turn, as above. `head="bins"` makes
# it speak as a language model does: values are put into bins, and at each step it says how probable each bin is.

# %%
frame = datasets.generate(20, 300, seed=3)
history = frame[frame.groupby("unique_id").cumcount() < 286]
model = Transformer(horizon=14, input_size=56, output="autoregressive", head="bins", d_model=32, n_heads=4, n_layers=1,
                    patch_length=7, max_steps=20 if SHORT else 300, batch_size=64).fit(history)  # fmt: skip

# %% [markdown]
# **Greedy**: each step is told the median of the one before. One path, cheap, the same each time. **Sampling** (ancestral):
# each step draws a value, and the next one is told the draw. Many such paths are the forecast's distribution; the library's
# usual point is their median, and its intervals are their quantiles. Paths share the encoded window.

# %%
forecasts = {}
for decoding in ("sample", "greedy"):
    forecasts[decoding] = model.set_params(decoding=decoding).predict()
paths = model.simulate(200, seed=0)
one = history["unique_id"].iloc[0]
mine = paths[paths["unique_id"] == one]

figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
past = history[history["unique_id"] == one].tail(28)
axes.plot(past["ds"], past["y"], color="black")
for _, path in itertools.islice(mine.groupby("sample"), 60):
    axes.plot(path["ds"], path["Transformer"], color="C0", alpha=0.12)
for decoding, label, color in (("sample", "median of paths", "C0"), ("greedy", "greedy path", "C1")):
    point = forecasts[decoding][forecasts[decoding]["unique_id"] == one]
    axes.plot(point["ds"], point["Transformer"], color=color, label=label)
axes.tick_params(axis="x", rotation=20)
axes.set_ylim(mine["Transformer"].quantile(0.01), mine["Transformer"].quantile(0.99))  # now and then a path strays far
_ = axes.legend()

# %% [markdown]
# The spread of the paths at each day is what the interval says:

# %%
banded = model.set_params(decoding="sample").predict(level=80)
width = (banded["Transformer-hi-80"] - banded["Transformer-lo-80"]).to_numpy()
spread = paths.groupby(["unique_id", "ds"], sort=False)["Transformer"].quantile([0.1, 0.9]).unstack()
print(f"80 % interval, mean width: predict {width.mean():.2f}, 200 paths {(spread[0.9] - spread[0.1]).mean():.2f}")
plot(history[history["unique_id"] == one], banded[banded["unique_id"] == one], max_history=56)

# %% [markdown]
# **Temperature** divides the logarithms of the probabilities: below 1 what is likely becomes likelier, paths stay close
# together. **Top-p** draws from the fewest bins that make up a share $p$ of the probability, and never from the rest. Both
# trade variety for safety. Both make intervals too narrow, so use them for scenarios, not for prediction intervals.

# %%
deviations = []
for temperature, top_p in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.5)):
    sharper = model.set_params(temperature=temperature, top_p=top_p).simulate(100, seed=0)
    deviations.append(sharper.groupby(["unique_id", "ds"], sort=False)["Transformer"].std().mean())
    print(f"temperature {temperature}, top-p {top_p}: deviation of paths {deviations[-1]:.2f}")
assert max(deviations) == deviations[0]
model = model.set_params(temperature=1.0, top_p=1.0)

# %% [markdown]
# ## Beam search
#
# Which path is the most probable *as a whole*? Not the one that takes the likeliest value at each step: a good first step
# may lead into a poor place. With few values and steps all paths can be listed:

# %%
first = np.array([0.55, 0.45])  # state A or B
then = np.array([[0.6, 0.4], [0.95, 0.05]])  # from A, from B
every = {path: first[path[0]] * then[path[0], path[1]] * then[path[1], path[2]] for path in itertools.product((0, 1), repeat=3)}


def beam(width: int) -> list[tuple[tuple[int, ...], float]]:
    """Of all ways to go on from the paths held, keep the best `width`."""
    held = [((), 1.0)]
    for _ in range(3):
        ways = []
        for path, chance in held:
            likely = then[path[-1]] if path else first
            ways += [((*path, state), chance * likely[state]) for state in (0, 1)]
        held = sorted(ways, key=lambda way: -way[1])[:width]
    return held


best = max(every, key=every.get)
for width in (1, 2, 8):
    path, chance = beam(width)[0]
    print(f"width {width}: {''.join('AB'[state] for state in path)} with probability {chance:.3f}")
print(f"the best of all: {''.join('AB'[state] for state in best)} with {every[best]:.3f}")
assert beam(1)[0][0] != best
assert [path for path, _ in beam(8)] == sorted(every, key=lambda path: -every[path])

# %% [markdown]
# Width 1 is greedy and misses it. A width that holds all paths lists them all, in order. Between them, a wider beam finds
# better paths for more work. The library does the same for all series at once, and says the probability of each path.

# %%
beams = model.beam_search(10, horizon=7)
print(beams[beams["unique_id"] == one].groupby("path")["log_probability"].first().head(5).round(2).to_string())
narrow = model.beam_search(1, horizon=7).groupby("unique_id")["log_probability"].first()
best_of_ten = beams[beams["path"] == 0].groupby("unique_id")["log_probability"].first()
print(f"of {len(narrow)} series a beam of ten finds a better path for {int((best_of_ten > narrow + 1e-9).sum())}")
assert (best_of_ten >= narrow - 1e-6).mean() > 0.5
assert beams.groupby("unique_id")["log_probability"].agg(lambda chances: (np.diff(chances) <= 1e-9).all()).all()

# %% [markdown]
# A caution: the most probable path is not the best forecast. It is one of very many, so even the best is most unlikely. For a
# number a day take the median; for decisions take many paths; a beam is for when one whole story is asked for, as a
# translation.

# %%
print(f"the best path of all series has a probability of {np.exp(best_of_ten.max()):.0e}")
assert best_of_ten.max() < np.log(1e-6)

# %% [markdown]
# ## On real data
#
# Back to the sea off Peru (tutorials 05, 07, 08): 8 cutoffs, a year ahead. A **patch** is a piece of the window that becomes
# one token. Here a token is a month, or a whole year:

# %%
sea = datasets.load("elnino")
settings = {"input_size": 48, "d_model": 32, "n_heads": 4, "n_layers": 1, "max_steps": 20 if SHORT else 300}
tokens = [Transformer(patch_length=length, alias=f"{length} row{'s' * (length > 1)} a token", **settings) for length in (1, 12)]
board = compare([SeasonalNaive(), *tokens], sea, horizon=12, n_windows=2 if SHORT else 8, refit=False, level=80)
print(board.table[["model", "mase", "coverage-80", "fit_seconds"]].round(2).to_string(index=False))
found = board.table.set_index("model")
assert SHORT or found["mase"].idxmin() == "1 row a token"
assert SHORT or 0.75 < found.loc["1 row a token", "mase"] / found.loc["SeasonalNaive", "mase"] < 0.85
assert SHORT or found.loc["12 rows a token", "mase"] > found.loc["SeasonalNaive", "mase"]
assert SHORT or found.loc["1 row a token", "coverage-80"] < 0.6

# %% [markdown]
# The last of the cutoffs, and what came:

# %%
tested = board.forecasts[board.forecasts["cutoff"] == board.forecasts["cutoff"].max()].drop(columns=["cutoff", "y"])
plot(sea, tested, models=["1 row a token", "SeasonalNaive"], level=80, max_history=72)

# %% [markdown]
# With a token a month the error is about a fifth below that of last year's values. A token a year is quick and much worse:
# four tokens are little to look at. And as with the networks of tutorials 06 and 07, the 80 % intervals are far too narrow;
# tutorial 13 says what to do. One series decides nothing about an architecture.
#
# ## Exercises
#
# 1. Show that without positions a decoder's cross-attention cannot tell the order of the window's rows.
# 2. Multi-head attention of one head, with all linear maps the identity: which formula of the last tutorial is it?
# 3. How many numbers does the cache hold after $T$ steps? Compare with decoding all steps again.
# 4. In the toy above, which width is the least that finds the best path?
#
# ## Solutions
#
# ### Solution 1
#
# The encoder gives shuffled results for shuffled rows, and a weighted sum does not care for the order of its terms.

# %%
with torch.no_grad():
    straight = decoder(steps, memory(encoder(rows)), (AttentionMask(causal=True), AttentionMask()))
    turned = decoder(steps, memory(encoder(rows[:, shuffled])), (AttentionMask(causal=True), AttentionMask()))
equal(turned, straight)

# %% [markdown]
# ### Solution 2
#
# $\text{softmax}(x x^\top / \sqrt{D}) \, x$: the self-attention without parameters, its scores divided by $\sqrt{D}$.

# %%
single = SelfAttention(WIDTH, 1)
with torch.no_grad():
    single.in_proj.weight.copy_(torch.eye(WIDTH).repeat(3, 1))
    single.out_proj.weight.copy_(torch.eye(WIDTH))
    single.out_proj.bias.zero_()
    equal((rows @ rows.transpose(1, 2) / np.sqrt(WIDTH)).softmax(-1) @ rows, single(rows))

# %% [markdown]
# ### Solution 3
#
# A key and a value of $D$ numbers for each layer and step, of each path: $2 \, T \, D$ times layers. Without it nothing is
# kept, but all $T$ rows go through all layers again.

# %%
print("numbers of a window in the cache:", caches[0][0].numel() * LAYERS)
assert caches[0][0].numel() * LAYERS == 2 * STEPS_LONG * WIDTH * LAYERS

# %% [markdown]
# ### Solution 4

# %%
least = next(width for width in range(1, 9) if beam(width)[0][0] == best)
print("width", least)

# %% [markdown]
# ## Reference
#
# - `Transformer`, `Transformer.beam_search`, `Transformer.simulate`, `Transformer.explain`, `plot`, `datasets`
# - `nn.multihead.SelfAttention`, `nn.multihead.CrossAttention`, `nn.positions.sinusoidal_encoding`,
#   `nn.normalization.normalization`
# - `nn.transformer.Encoder`, `nn.transformer.Decoder`, `nn.transformer.LayerOptions`
#
# To read on: Vaswani et al. (2017), *Attention is all you need*; Xiong et al. (2020), *On layer normalization in the
# Transformer architecture*; Holtzman et al. (2020), *The curious case of neural text degeneration* (top-p); Nie et al.
# (2023), *A time series is worth 64 words* (patches).
