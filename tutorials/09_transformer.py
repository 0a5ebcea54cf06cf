# %% [markdown]
# # 09 · The Transformer, piece by piece
#
# The Transformer ("Attention Is All You Need", Vaswani et al. 2017) is a network that consists mainly of the attention
# of the previous tutorial. Here we build it from matrix products, and compare each component with that of the library.
# Finally we use it to forecast one step after another, with four decoding methods.
#
# **After this you can**
#
# - implement positional encodings, heads, masks, residual connections and normalization in a few lines each
# - explain layer and batch normalization, "pre" and "post", and their effect on gradients
# - explain why training requires one pass and forecasting one pass per step, and what a key-value cache saves
# - decode greedily, by sampling, with a temperature or top-p, and by beam search, and state what each method returns

# %%
import itertools
import os

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from deepforecast import SeasonalNaive, Transformer, compare, datasets, plot
from deepforecast.nn.encoder_decoder import Decoder, DecodingPosition, Encoder, LayerOptions
from deepforecast.nn.layers import normalization
from deepforecast.nn.multihead import AttentionMask, KeyValueProjection, SelfAttention
from deepforecast.nn.positions import sinusoidal_encoding

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

WIDTH, HEADS, ROWS, STEPS, LAYERS = 16, 4, 10, 6, 2
generator = torch.Generator().manual_seed(0)


def assert_equal(by_hand: torch.Tensor, by_library: torch.Tensor) -> None:
    np.testing.assert_allclose(by_hand.detach().numpy(), by_library.detach().numpy(), atol=1e-5)


# %% [markdown]
# ## Positional encoding
#
# Self-attention compares each row with each other row, $\text{softmax}(Q K^\top / \sqrt{D}) \, V$. Nothing in it
# represents the order of the rows: if the rows are permuted, the result is permuted in the same way. Therefore a vector
# that encodes the **position** is added to each row. It consists of sines and cosines of different frequencies:
#
# $$p_{t, 2i} = \sin(t \, \omega_i), \qquad p_{t, 2i+1} = \cos(t \, \omega_i), \qquad \omega_i = 10000^{-2i / D}.$$

# %%
t = np.arange(60)
frequencies = 10000.0 ** (-2 * np.arange(WIDTH // 2) / WIDTH)
p = np.zeros((60, WIDTH))
p[:, 0::2], p[:, 1::2] = np.sin(t[:, None] * frequencies), np.cos(t[:, None] * frequencies)
np.testing.assert_allclose(p, sinusoidal_encoding(torch.from_numpy(t).double(), WIDTH).numpy(), atol=1e-12)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
left.imshow(p.T, cmap="RdBu", aspect="auto", interpolation="nearest")
left.set(xlabel="position", ylabel="dimension", title="positional encoding")
right.plot(t - 30, p @ p[30])
_ = right.set(xlabel="distance between two positions", title="dot product of their encodings")

# %% [markdown]
# The dot product of two encodings depends on their distance only, since
# $\cos a \cos b + \sin a \sin b = \cos(a - b)$. A score can therefore attend to "one week back" at any date.
# (`Transformer(positional_encoding=...)` offers other encodings, too: learned vectors, rotary, ALiBi, the calendar.)

# %% [markdown]
# ## Multi-head attention
#
# One attention computes one weighted mean of the rows. Several **heads** compute several: each compares and averages a
# separate part of the dimensions, $D / h$ of them, and a final linear map combines their outputs.
#
# $$\text{head}_j = \text{softmax}\!\Big(\frac{(X W^Q_j)(X W^K_j)^\top}{\sqrt{D / h}}\Big) X W^V_j, \qquad
# \text{out} = [\text{head}_1 ; \dots ; \text{head}_h] \, W^O.$$

# %%


def multi_head_attention(queries, keys, values, is_masked=None):
    """Concatenated heads; inputs of shape (batch, rows, WIDTH), mask of shape (queries, keys)."""
    outputs, size = [], queries.shape[-1] // HEADS
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = queries[..., part] @ keys[..., part].transpose(1, 2) / np.sqrt(size)
        if is_masked is not None:
            scores = scores.masked_fill(is_masked, -torch.inf)
        outputs.append(scores.softmax(-1) @ values[..., part])
    return torch.cat(outputs, dim=-1)


def self_attention(layer, rows, is_masked=None):
    """Self-attention with the weights of a layer; one matrix product computes queries, keys and values."""
    queries, keys, values = layer.in_proj(rows).chunk(3, dim=-1)
    return layer.out_proj(multi_head_attention(queries, keys, values, is_masked))


with torch.random.fork_rng():
    torch.manual_seed(0)
    attention = SelfAttention(WIDTH, HEADS)
rows = torch.randn(3, ROWS, WIDTH, generator=generator)
assert_equal(self_attention(attention, rows), attention(rows))
permutation = torch.randperm(ROWS, generator=generator)
assert_equal(attention(rows[:, permutation]), attention(rows)[:, permutation])
print("multi-head attention by hand equals the library; permuted rows give permuted results")

# %% [markdown]
# ## The causal mask
#
# The decoder forecasts step $i$ from the steps before it. In training all true values are known, so all steps can be
# computed in one parallel pass, **provided** that no step attends to a later one. A **causal mask** sets the scores of
# later steps to $-\infty$ before the softmax. Their weights are then exactly zero, and so are the gradients.

# %%
causal_mask = torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1)
steps = torch.randn(3, STEPS, WIDTH, generator=generator)
attention_maps = []
by_library = attention(steps, AttentionMask(causal=True), attention_maps)
assert_equal(self_attention(attention, steps, causal_mask), by_library)

inputs = steps.clone().requires_grad_()
attention(inputs, AttentionMask(causal=True))[:, 2].sum().backward()
gradient = inputs.grad.abs().sum((0, 2))
print("steps that affect the output of the third step:", (gradient > 0).int().tolist())
assert (gradient[3:] == 0).all()
assert (gradient[:3] > 0).all()

figure, axes = plt.subplots(figsize=(3.6, 3.2), layout="constrained")
image = axes.imshow(attention_maps[0][0, 0].detach().numpy(), cmap="Blues", vmin=0, vmax=1)
axes.set(xlabel="step (key)", ylabel="step (query)", title="attention weights of one head")
_ = figure.colorbar(image)

# %% [markdown]
# ## Residual connections and normalization
#
# A layer adds its output to its input: $x + f(x)$. This is a **residual connection**; gradients pass through the sum
# unchanged to the first layer. To keep activations on one scale, they are normalized. **Batch normalization**, which
# was developed for images, scales each of the $D$ dimensions to mean 0 and standard deviation 1 *over the batch*.
# **Layer normalization** does this over the $D$ dimensions *of each row*:
#
# $$\text{layer norm}(x) = \gamma \, \frac{x - \text{mean}(x)}{\sqrt{\text{var}(x) + \varepsilon}} + \beta .$$

# %%
layer_norm, batch_norm = (normalization(name, WIDTH).requires_grad_(False) for name in ("layer", "batch"))
mean, variance = rows.mean(-1, keepdim=True), rows.var(-1, keepdim=True, unbiased=False)
assert_equal((rows - mean) / torch.sqrt(variance + 1e-5), layer_norm(rows))
flat = rows.reshape(-1, WIDTH)
by_hand = ((flat - flat.mean(0)) / torch.sqrt(flat.var(0, unbiased=False) + 1e-5)).view(rows.shape)
assert_equal(by_hand, batch_norm(rows))

# a batch with the same first window and two other windows
other_batch = torch.cat([rows[:1], 10 + 5 * torch.randn(2, ROWS, WIDTH, generator=generator)])
for name, norm in (("layer", layer_norm), ("batch", batch_norm)):
    change = float((norm(other_batch)[0] - norm(rows)[0]).abs().max())
    print(f"{name} norm: the first window changes by up to {change:.2f} if the rest of the batch changes")
assert_equal(layer_norm(other_batch)[0], layer_norm(rows)[0])
assert (batch_norm(other_batch)[0] - batch_norm(rows)[0]).abs().max() > 1

# %% [markdown]
# With batch normalization, the activations of a window depend on the other windows of the batch in training, and on
# running means of earlier batches afterwards. This is harmful if series have different levels, or if batches contain
# few windows. Layer normalization depends on a single row: it is what Transformers use.
# (`Transformer(normalization="batch")` allows a comparison; "rms" leaves out the mean.)
#
# Where should the normalization be placed? The paper normalizes the sum, $\text{norm}(x + f(x))$: **post**. Later
# networks normalize the input of $f$, $x + f(\text{norm}(x))$: **pre**. Both can be written in one line. They differ in
# the size of the gradients at the start of training. Here are the gradient norms of the weights of each layer in a
# stack of 12 untrained layers.

# %%


def gradient_norms(norm_first, depth=12):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        stack = Encoder(LayerOptions(WIDTH, HEADS, 4 * WIDTH, norm_first=norm_first), depth)
    batch = torch.randn(16, 20, WIDTH, generator=torch.Generator().manual_seed(1))
    (stack(batch) * torch.randn(batch.shape, generator=torch.Generator().manual_seed(2))).sum().backward()
    return [float(layer.feedforward.linear2.weight.grad.norm()) for layer in stack.layers]


figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
norms = {"pre": gradient_norms(norm_first=True), "post": gradient_norms(norm_first=False)}
for name, layer_norms in norms.items():
    axes.plot(range(1, 13), layer_norms, "o-", label=f'"{name}"')
axes.set(xlabel="layer, from input to output", ylabel="norm of the gradient", ylim=(0, None))
_ = axes.legend(title="normalization")
ratio = np.array(norms["post"]) / norms["pre"]
print('gradient norm of "post" divided by that of "pre":', ratio.round(1))
assert ratio[-3:].mean() > ratio[:3].mean() > 1

# %% [markdown]
# With "post" the gradients of all layers are larger than with "pre", and the ratio increases towards the output. The
# first training steps are therefore large, although the inputs of these layers still come from untrained layers. For
# this reason the paper starts with very small learning rates (warm-up). With "pre" the sum grows from layer to layer,
# so that later layers have a smaller relative effect, and the residual connections form a direct path from the output
# to the first layer. "pre" is the default of the library (`norm_first=True`).

# %% [markdown]
# ## Layers, encoder and decoder
#
# An encoder layer has two sublayers: attention, then a small feed-forward network that is applied to each row
# separately, $W_2 \, \text{relu}(W_1 x + b_1) + b_2$. A **decoder** layer has an additional sublayer in between,
# **cross-attention**: the queries are the steps, the keys and values are the encoded window. This completes the
# Transformer.

# %%


def feed_forward(layer, x):
    return layer.feedforward.linear2(torch.relu(layer.feedforward.linear1(x)))


def encode(encoder, x):
    for layer in encoder.layers:
        x = x + self_attention(layer.attention, layer.norms[0](x))
        x = x + feed_forward(layer, layer.norms[1](x))
    return encoder.norm(x)


def decode(decoder, x, keys_and_values, is_masked):
    for i, layer in enumerate(decoder.layers):
        keys, values = keys_and_values[2 * i : 2 * i + 2]
        x = x + self_attention(layer.attention, layer.norms[0](x), is_masked)
        queries = layer.cross.in_proj(layer.norms[1](x))
        x = x + layer.cross.out_proj(multi_head_attention(queries, keys, values))
        x = x + feed_forward(layer, layer.norms[2](x))
    return decoder.norm(x)


with torch.random.fork_rng():
    torch.manual_seed(0)
    options = LayerOptions(WIDTH, HEADS, 4 * WIDTH, activation="relu", norm_first=True)
    encoder, decoder = Encoder(options, LAYERS), Decoder(options, LAYERS)
    projection = KeyValueProjection(WIDTH, HEADS, LAYERS)

encoded = encode(encoder, rows)
assert_equal(encoded, encoder(rows))
keys_and_values = projection.in_proj(encoded).chunk(2 * LAYERS, dim=-1)  # those of all layers in one product
causal = (AttentionMask(causal=True), AttentionMask())  # masks of self-attention and of cross-attention
decoded = decode(decoder, steps, keys_and_values, causal_mask)
assert_equal(decoded, decoder(steps, projection(encoder(rows)), causal))
print("20 lines by hand equal the library's encoder and decoder (whose tests compare them with torch.nn.Transformer)")

# %% [markdown]
# ## One pass in training, one pass per step in forecasting
#
# When forecasting, the true values are not known. Step 2 requires the value of step 1, so the steps are computed one
# after another. The naive method decodes the complete sequence so far at each step. But earlier steps never attend to
# later ones, so their keys and values do not change and can be stored. This is the **key-value cache**: each step
# computes a single row. The results are the same, the cost is not. Here are both methods, with the number of
# floating-point operations.

# %%
STEPS_LONG = 24
steps = torch.randn(3, STEPS_LONG, WIDTH, generator=generator)
flops_without_cache, flops_with_cache = [], []
with torch.no_grad():
    memory = projection(encoder(rows))
    caches = [rows.new_empty(3, 2, HEADS, 0, WIDTH // HEADS)] * LAYERS
    for step in range(STEPS_LONG):
        with FlopCounterMode(display=False) as counter:
            without_cache = decoder(steps[:, : step + 1], memory, causal)[:, -1]
        flops_without_cache.append(counter.get_total_flops())
        with FlopCounterMode(display=False) as counter:
            position, masks = DecodingPosition(step, STEPS_LONG), (AttentionMask(), AttentionMask())
            with_cache, caches = decoder.step(steps[:, step], caches, memory, position, masks)
        flops_with_cache.append(counter.get_total_flops())
        assert_equal(with_cache, without_cache)

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
first_step = flops_with_cache[0]
axes.plot(range(1, STEPS_LONG + 1), np.array(flops_without_cache) / first_step, label="without cache")
axes.plot(range(1, STEPS_LONG + 1), np.array(flops_with_cache) / first_step, label="with key-value cache")
axes.set(xlabel="step", ylabel="operations relative to the first step", ylim=(0, None))
_ = axes.legend()
assert flops_with_cache[-1] < 1.1 * flops_with_cache[0]
assert flops_without_cache[-1] > 20 * flops_without_cache[0]

# %% [markdown]
# ## Forecasting
#
# Now we use the library's complete `Transformer`. With `output="autoregressive"` the steps are computed one after
# another, as above. With `head="bins"` the output is that of a language model: values are assigned to bins, and the
# network computes the probability of each bin at each step.

# %%
frame = datasets.generate(20, 300, seed=3)
history = frame[frame.groupby("unique_id").cumcount() < 286]
model = Transformer(horizon=14, input_size=56, output="autoregressive", head="bins", d_model=32, n_heads=4, n_layers=1,
                    patch_length=7, max_steps=20 if SHORT else 300, batch_size=64).fit(history)  # fmt: skip

# %% [markdown]
# **Greedy decoding**: the input of each step is the median of the step before. This yields a single path; it is fast
# and deterministic. **Ancestral sampling**: each step draws a value, which is the input of the next step. Many such
# paths represent the forecast distribution; by default the library's point forecast is their median, and its intervals
# are their quantiles. All paths share the encoded window.

# %%
forecasts = {}
for decoding in ("sample", "greedy"):
    forecasts[decoding] = model.set_params(decoding=decoding).predict()
paths = model.simulate(200, seed=0)
series_id = history["unique_id"].iloc[0]
series_paths = paths[paths["unique_id"] == series_id]

figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
recent = history[history["unique_id"] == series_id].tail(28)
axes.plot(recent["ds"], recent["y"], color="black")
for _, path in itertools.islice(series_paths.groupby("sample"), 60):
    axes.plot(path["ds"], path["Transformer"], color="C0", alpha=0.12)
for decoding, label, color in (("sample", "median of paths", "C0"), ("greedy", "greedy path", "C1")):
    point = forecasts[decoding][forecasts[decoding]["unique_id"] == series_id]
    axes.plot(point["ds"], point["Transformer"], color=color, label=label)
axes.tick_params(axis="x", rotation=20)
axes.set_ylim(*series_paths["Transformer"].quantile([0.01, 0.99]))  # leave out a few extreme values
_ = axes.legend()

# %% [markdown]
# The prediction interval is determined by the spread of the paths at each step:

# %%
intervals = model.set_params(decoding="sample").predict(level=80)
interval_widths = (intervals["Transformer-hi-80"] - intervals["Transformer-lo-80"]).to_numpy()
quantiles = paths.groupby(["unique_id", "ds"], sort=False)["Transformer"].quantile([0.1, 0.9]).unstack()
path_widths = quantiles[0.9] - quantiles[0.1]
print(f"mean width of the 80 % interval: predict {interval_widths.mean():.2f}, 200 paths {path_widths.mean():.2f}")
plot(history[history["unique_id"] == series_id], intervals[intervals["unique_id"] == series_id], max_history=56)

# %% [markdown]
# A **temperature** divides the logarithms of the probabilities: below 1 the most probable values become more probable,
# and the paths are closer together. **Top-p** sampling draws only from the fewest bins with a total probability of at
# least $p$. Both reduce the diversity of the paths in favour of typical ones. Both make intervals too narrow, so use
# them for scenarios, not for prediction intervals.

# %%
standard_deviations = []
for temperature, top_p in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.5)):
    samples = model.set_params(temperature=temperature, top_p=top_p).simulate(100, seed=0)
    by_step = samples.groupby(["unique_id", "ds"], sort=False)["Transformer"]
    standard_deviations.append(by_step.std().mean())
    print(f"temperature {temperature}, top-p {top_p}: standard deviation of the paths {standard_deviations[-1]:.2f}")
assert max(standard_deviations) == standard_deviations[0]
model = model.set_params(temperature=1.0, top_p=1.0)

# %% [markdown]
# ## Beam search
#
# Which path is the most probable *as a whole*? Not necessarily the one with the most probable value at each step: a
# probable first step may lead to a state in which all further steps are improbable. With few values and steps, all
# paths can be enumerated:

# %%
initial = np.array([0.55, 0.45])  # probabilities of the states A and B
transition = np.array([[0.6, 0.4], [0.95, 0.05]])  # from A, from B
path_probabilities = {
    path: initial[path[0]] * transition[path[0], path[1]] * transition[path[1], path[2]]
    for path in itertools.product((0, 1), repeat=3)
}


def beam_search(width: int) -> list[tuple[tuple[int, ...], float]]:
    """Extend all paths by one step and keep the `width` most probable ones, three times."""
    beam = [((), 1.0)]
    for _ in range(3):
        extended = []
        for path, probability in beam:
            probabilities = transition[path[-1]] if path else initial
            extended += [((*path, state), probability * probabilities[state]) for state in (0, 1)]
        beam = sorted(extended, key=lambda item: -item[1])[:width]
    return beam


best = max(path_probabilities, key=path_probabilities.get)
for width in (1, 2, 8):
    path, probability = beam_search(width)[0]
    print(f"width {width}: {''.join('AB'[state] for state in path)} with probability {probability:.3f}")
print(f"best of all paths: {''.join('AB'[state] for state in best)} with {path_probabilities[best]:.3f}")
assert beam_search(1)[0][0] != best
assert [path for path, _ in beam_search(8)] == sorted(path_probabilities, key=lambda path: -path_probabilities[path])

# %% [markdown]
# A beam of width 1 is greedy and misses the best path. A beam that holds all paths lists them in order of probability.
# In between, wider beams find better paths at a higher cost. The library does this for all series at once, and returns
# the probability of each path.

# %%
beams = model.beam_search(10, horizon=7)
series_beams = beams[beams["unique_id"] == series_id]
print(series_beams.groupby("path")["log_probability"].first().head(5).round(2).to_string())
best_of_one = model.beam_search(1, horizon=7).groupby("unique_id")["log_probability"].first()
best_of_ten = beams[beams["path"] == 0].groupby("unique_id")["log_probability"].first()
n_better = int((best_of_ten > best_of_one + 1e-9).sum())
print(f"a beam of width 10 finds a more probable path than width 1 for {n_better} of {len(best_of_one)} series")
assert (best_of_ten >= best_of_one - 1e-6).mean() > 0.5
by_series = beams.groupby("unique_id")["log_probability"]
assert by_series.agg(lambda values: (np.diff(values) <= 1e-9).all()).all()

# %% [markdown]
# However, the most probable path is not the best forecast. The number of paths is very large, so even the most probable
# one is very improbable. For a point forecast of each step use the median, for decisions use many paths. Beam search is
# useful if one coherent sequence is required, as in translation.

# %%
print(f"highest probability of a path among all series: {np.exp(best_of_ten.max()):.0e}")
assert best_of_ten.max() < np.log(1e-6)

# %% [markdown]
# ## On real data
#
# We return to the sea surface temperature off Peru (tutorials 05, 07, 08): 8 cutoffs, a year ahead. A **patch** is a
# segment of the window that becomes one token. Here a token is either a month or a whole year:

# %%
sea = datasets.load("elnino")
settings = {"input_size": 48, "d_model": 32, "n_heads": 4, "n_layers": 1, "max_steps": 20 if SHORT else 300}
models = [
    SeasonalNaive(),
    Transformer(patch_length=1, alias="1 row per token", **settings),
    Transformer(patch_length=12, alias="12 rows per token", **settings),
]
board = compare(models, sea, horizon=12, n_windows=2 if SHORT else 8, refit=False, level=80)
print(board.table[["model", "mase", "coverage-80", "fit_seconds"]].round(2).to_string(index=False))
results = board.table.set_index("model")
assert SHORT or results["mase"].idxmin() == "1 row per token"
assert SHORT or 0.75 < results.loc["1 row per token", "mase"] / results.loc["SeasonalNaive", "mase"] < 0.85
assert SHORT or results.loc["12 rows per token", "mase"] > results.loc["SeasonalNaive", "mase"]
assert SHORT or results.loc["1 row per token", "coverage-80"] < 0.6

# %% [markdown]
# Forecasts and actual values at the last cutoff:

# %%
is_last = board.forecasts["cutoff"] == board.forecasts["cutoff"].max()
last_forecasts = board.forecasts[is_last].drop(columns=["cutoff", "y"])
plot(sea, last_forecasts, models=["1 row per token", "SeasonalNaive"], level=80, max_history=72)

# %% [markdown]
# With one token per month, the error is about a fifth below that of the seasonal naive forecast. With one token per
# year, training is fast but the error is much larger: four tokens contain too little information about the window. As
# for the networks of tutorials 06 and 07, the 80 % intervals are far too narrow; tutorial 13 shows the remedy. A single
# series does not decide which architecture is better.
#
# ## Exercises
#
# 1. Show that without positional encodings the cross-attention of a decoder does not depend on the order of the rows of
#    the window.
# 2. Take multi-head attention with one head and identity matrices as linear maps. To which formula of the previous
#    tutorial does it correspond?
# 3. How many numbers does the cache contain after $T$ steps? Compare this with decoding all steps again.
# 4. What is the smallest beam width that finds the best path in the example above?
#
# ## Solutions
#
# ### Solution 1
#
# For permuted rows the encoder returns permuted results, and a weighted sum does not depend on the order of its terms.

# %%
with torch.no_grad():
    original = decoder(steps, projection(encoder(rows)), causal)
    permuted = decoder(steps, projection(encoder(rows[:, permutation])), causal)
assert_equal(permuted, original)

# %% [markdown]
# ### Solution 2
#
# $\text{softmax}(x x^\top / \sqrt{D}) \, x$: self-attention without parameters, with the scaled dot product as score.

# %%
single_head = SelfAttention(WIDTH, 1)
with torch.no_grad():
    single_head.in_proj.weight.copy_(torch.eye(WIDTH).repeat(3, 1))
    single_head.out_proj.weight.copy_(torch.eye(WIDTH))
    single_head.out_proj.bias.zero_()
    assert_equal((rows @ rows.transpose(1, 2) / np.sqrt(WIDTH)).softmax(-1) @ rows, single_head(rows))

# %% [markdown]
# ### Solution 3
#
# A key and a value of $D$ numbers each, for each layer, step and path: $2 \, T \, D$ times the number of layers.
# Without a cache nothing is stored, but all $T$ rows pass through all layers again.

# %%
numbers_per_window = caches[0][0].numel() * LAYERS
print("numbers per window in the cache:", numbers_per_window)
assert numbers_per_window == 2 * STEPS_LONG * WIDTH * LAYERS

# %% [markdown]
# ### Solution 4

# %%
smallest = next(width for width in range(1, 9) if beam_search(width)[0][0] == best)
print("smallest width:", smallest)

# %% [markdown]
# ## Reference
#
# - `Transformer`, `Transformer.beam_search`, `Transformer.simulate`, `Transformer.explain`, `plot`, `datasets`
# - `nn.multihead.SelfAttention`, `nn.multihead.CrossAttention`, `nn.positions.sinusoidal_encoding`,
#   `nn.layers.normalization`
# - `nn.encoder_decoder.Encoder`, `nn.encoder_decoder.Decoder`, `nn.encoder_decoder.LayerOptions`
#
# To read on: Vaswani et al. (2017), *Attention is all you need*; Xiong et al. (2020), *On layer normalization in the
# Transformer architecture*; Holtzman et al. (2020), *The curious case of neural text degeneration* (top-p); Nie et al.
# (2023), *A time series is worth 64 words* (patches).
