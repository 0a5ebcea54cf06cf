"""The decoder-only body: equal to plain loops, one pass equal to cached steps, losses on all positions, segment memory."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from deepforecast.data.windows import WindowColumns
from deepforecast.errors import ParameterError
from deepforecast.nn.batch import Batch, Inputs, InputSizes
from deepforecast.nn.decoder_only import DecoderOnlyBody, DecoderOnlyOptions
from deepforecast.nn.encoder_decoder import LayerOptions
from deepforecast.nn.heads.point import PointHead
from deepforecast.nn.layers import embedding_width
from deepforecast.nn.network import AutoregressiveBody, ForecastNetwork, repeat_paths
from tests.nn.bodies import FULL, PLAIN, NothingOnTheCPU, seeded, some_inputs

SIZES = replace(FULL, horizon=7, input_size=13, past=3, cyclic_columns=((0, 0),))
ENCODINGS = ("sinusoidal", "learned", "rotary", "alibi", "calendar", None)


def make_body(sizes: InputSizes = SIZES, **options: Any) -> DecoderOnlyBody:
    """A body with 16 features, 4 heads and 2 layers; options of the layer and of the body."""
    names = ("d_model", "n_heads", "dim_feedforward", "activation", "norm_first", "normalization", "dropout")
    layer = {"d_model": 16, "n_heads": 4, "dim_feedforward": 24, **{name: options.pop(name) for name in names if name in options}}
    return seeded(lambda: DecoderOnlyBody(sizes, DecoderOnlyOptions(LayerOptions(**layer), **{"patch_length": 3, **options})))


def previous_values(inputs: Inputs, horizon: int = 7) -> Tensor:
    return torch.randn(len(inputs.y), horizon, generator=torch.Generator().manual_seed(2), dtype=inputs.y.dtype)


def stepwise(body: DecoderOnlyBody, inputs: Inputs, previous: Tensor) -> Tensor:
    return AutoregressiveBody.forward_teacher_forced(body, inputs, previous)


# -- the arithmetic ----------------------------------------------------------------------------------------------------


def tokens_by_hand(body: DecoderOnlyBody, inputs: Inputs, previous: Tensor, window: int) -> list[Tensor]:
    """The token of each patch of one window, from a list of its time steps."""
    length, n_past, n_future = body.patch_length, inputs.past.shape[2], inputs.future.shape[2]
    n_steps, horizon = inputs.y.shape[1], previous.shape[1]

    def step(t: int) -> tuple[list[Tensor], Tensor]:
        """Value, mask and past covariates of time step t (0: the last of the window), and its future covariates."""
        zero = torch.zeros(())
        if t <= -n_steps:  # before the window
            return [zero, zero, *torch.zeros(n_past)], torch.zeros(n_future)
        if t <= 0:
            row = n_steps - 1 + t
            past = inputs.past[window, row]
            return [inputs.y[window, row], inputs.observed[window, row], *past], past[:n_future]
        known = inputs.future[window, t - 1] if t <= horizon else torch.zeros(n_future)
        value = previous[window, t] if t < horizon else zero  # the value of step t is the one before step t + 1
        return [value, zero + 1, *known, *torch.zeros(n_past - n_future)], known

    tokens = []
    for position in body.token_positions:
        steps = [step(t) for t in range(position - length + 1, position + 1)]
        values = torch.stack([rows[0] for rows, _ in steps] + [rows[1] for rows, _ in steps])
        following = [step(t + length)[1] for t in range(position - length + 1, position + 1)]
        covariates = torch.cat([torch.stack([*rows[2:], *known]) for (rows, _), known in zip(steps, following, strict=True)])
        token = body.value_projection(values) + body.covariate_projection.weight @ covariates
        tokens.append(token + body.static_projection.weight @ inputs.static[window])
    return tokens


def attend_by_hand(
    layer: Any, hidden: list[Tensor], visible: list[list[int]], positions: tuple[int, ...], encoding: str
) -> list[Tensor]:
    """Multi-head attention of each token to the tokens it may see, one query, head and key at a time."""
    width, n_heads = len(hidden[0]), layer.attention.n_heads
    dim = width // n_heads

    def rotate(vector: Tensor, position: int) -> Tensor:
        """Rotate the pairs (i, i + dim / 2) by position / 10000^(2i / dim), as complex numbers."""
        angles = position / 10_000 ** (2 * torch.arange(dim // 2) / dim)
        turned = torch.complex(vector[: dim // 2], vector[dim // 2 :]) * torch.polar(torch.ones(dim // 2), angles)
        return torch.cat([turned.real, turned.imag])

    parts = [layer.attention.in_proj(token).split(width) for token in hidden]
    outputs = []
    for i, keys in enumerate(visible):
        heads = []
        for head in range(n_heads):
            columns = slice(head * dim, (head + 1) * dim)
            scores = []
            for j in keys:
                query, key = parts[i][0][columns], parts[j][1][columns]
                if encoding == "rotary":
                    query, key = rotate(query, positions[i]), rotate(key, positions[j])
                slope = 2 ** (-8 * (head + 1) / n_heads) if encoding == "alibi" else 0.0
                scores.append(query @ key / math.sqrt(dim) - slope * (positions[i] - positions[j]))
            weights = torch.stack(scores).softmax(0) if keys else []
            heads.append(sum((w * parts[j][2][columns] for w, j in zip(weights, keys, strict=True)), torch.zeros(dim)))
        outputs.append(layer.attention.out_proj(torch.cat(heads)))
    return outputs


def raw_by_hand(
    body: DecoderOnlyBody, inputs: Inputs, previous: Tensor, window: int, encoding: str, segment: int, memory: int
) -> Tensor:
    """The raw output of every patch after the first of one window, (steps, out_features)."""
    hidden = tokens_by_hand(body, inputs, previous, window)
    n_steps = inputs.y.shape[1]
    first = n_steps - 1 - int(inputs.observed[window].argmax())  # steps from the first observed value to the cutoff
    visible = [
        [
            j for j in range(i + 1)
            if i // segment - j // segment <= memory and body.token_positions[j] >= -first
        ]
        for i in range(len(hidden))
    ]  # fmt: skip
    for layer in body.layers.layers:  # pre-norm, as GPT-2
        attended = attend_by_hand(layer, [layer.norms[0](h) for h in hidden], visible, body.token_positions, encoding)
        hidden = [h + a for h, a in zip(hidden, attended, strict=True)]
        linear1, linear2 = layer.feedforward.linear1, layer.feedforward.linear2
        hidden = [h + linear2(F.gelu(linear1(layer.norms[1](h)))) for h in hidden]
    raw = torch.cat([body.out(body.layers.norm(h)).view(body.patch_length, -1) for h in hidden])
    return raw[: (body.n_window - 1) * body.patch_length + previous.shape[1]]


@pytest.mark.parametrize(("encoding", "segment", "memory"), [("rotary", 99, 1), ("alibi", 99, 1), ("rotary", 2, 1), ("alibi", 1, 2)])
def test_body_equals_plain_loops(encoding: str, segment: int, memory: int) -> None:
    options = {} if segment == 99 else {"segment_length": segment, "memory_segments": memory}
    body = make_body(positional_encoding=encoding, activation="gelu", **options).eval()
    inputs = some_inputs(SIZES, windows=2)
    observed = inputs.observed.clone()
    observed[0, :7] = 0.0  # the first two of five patches are padding
    inputs = replace(inputs, y=inputs.y * observed, observed=observed)
    previous = previous_values(inputs)
    with torch.no_grad():
        raw = body.forward_all_positions(inputs, previous)
        for window in range(2):
            expected = raw_by_hand(body, inputs, previous, window, encoding, segment, memory)
            torch.testing.assert_close(raw[window], expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(body.forward_teacher_forced(inputs, previous), raw[:, -7:], atol=1e-6, rtol=1e-5)


def test_parameters_of_gpt2() -> None:
    """Per layer of width d: d -> 3d queries, keys, values (3d^2 + 3d) and d -> d (d^2 + d); d -> 4d -> d (8d^2 + 5d);
    two normalisations (4d): 12 d^2 + 13 d. GPT-2 small (d 768, 12 layers, 12 heads; Radford et al. 2019, table 2) has
    12 * (12 * 768^2 + 13 * 768) + 2 * 768 = 85,056,000 in its layers and last normalisation; with the embeddings of
    50,257 tokens and 1,024 positions, (50,257 + 1,024) * 768, these are the 124,439,808 of the released model."""
    body = make_body(PLAIN, d_model=768, n_heads=12, dim_feedforward=4 * 768, n_layers=1, activation="gelu")
    layer, last_norm = (sum(weight.numel() for weight in part.parameters()) for part in (body.layers.layers[0], body.layers.norm))
    assert 12 * layer + last_norm == 12 * (12 * 768**2 + 13 * 768) + 2 * 768 == 85_056_000
    assert 12 * layer + last_norm + (50_257 + 1_024) * 768 == 124_439_808
    projections = sum(weight.numel() for weight in body.parameters()) - layer - last_norm
    assert projections == (2 * 3 * 768 + 768) + (768 * 3 + 3)  # two inputs and one output per step of a patch


# -- one pass and cached steps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_cached_steps_equal_one_pass(encoding: str | None) -> None:
    inputs = some_inputs(SIZES)
    previous = previous_values(inputs)
    segments: list[dict[str, int]] = [{}]
    if encoding in ("rotary", "alibi"):
        segments += [{"segment_length": 2}, {"segment_length": 1, "memory_segments": 3}]
    for patch, norm_first, segment in product((1, 3, 8), (True, False), segments):
        body = make_body(positional_encoding=encoding, patch_length=patch, norm_first=norm_first, dropout=0.1, **segment).eval()
        expected = body.forward_teacher_forced(inputs, previous)
        assert expected.shape == (5, 7, 3)
        torch.testing.assert_close(stepwise(body, inputs, previous), expected, atol=1e-5, rtol=1e-5)
        with torch.inference_mode():  # caches written in place
            torch.testing.assert_close(stepwise(body, inputs, previous), expected, atol=1e-5, rtol=1e-5)
        two = body.forward_teacher_forced(inputs, previous[:, :2])
        torch.testing.assert_close(two, expected[:, :2], atol=1e-5, rtol=1e-5)


def test_gradients_of_cached_steps_equal_those_of_one_pass() -> None:
    body, inputs = make_body().double(), some_inputs(SIZES, dtype=torch.float64)
    weights, previous = list(body.parameters()), previous_values(inputs)
    at_once = torch.autograd.grad(body.forward_teacher_forced(inputs, previous).square().sum(), weights)
    looped = torch.autograd.grad(stepwise(body, inputs, previous).square().sum(), weights)
    for gradient, expected in zip(looped, at_once, strict=True):
        torch.testing.assert_close(gradient, expected, atol=1e-9, rtol=1e-9)
        assert expected.abs().sum() > 0


def test_a_step_computes_one_token_at_the_start_of_a_patch() -> None:
    body, inputs, n_tokens = make_body().eval(), some_inputs(SIZES), list[int]()
    body.layers.layers[0].attention.in_proj.register_forward_hook(lambda _, given, __: n_tokens.append(given[0].numel() // 16))
    with torch.inference_mode():
        stepwise(body, inputs, previous_values(inputs))
    assert n_tokens == [5 * 5, 5, 5]  # five patches of the window, then those completed at steps 3 and 6


def test_paths_continue_a_window_side_by_side() -> None:
    body, inputs, n_paths = make_body(positional_encoding="alibi").eval(), some_inputs(SIZES), 4
    values = torch.randn(5, n_paths, 7, generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        state = repeat_paths(body.initial_state(inputs), body.shared_state, n_paths)
        assert [len(tensor) for tensor in state] == [5, 20, 20, 20, 20, 20]
        steps = []
        for step in range(7):
            future = inputs.future_features[:, step].repeat_interleave(n_paths, 0)
            raw, state = body.step(state, values[:, :, step].flatten(), future, step)
            steps.append(raw)
        paths = torch.stack(steps, 1).view(5, n_paths, 7, -1)
        for path in range(n_paths):
            expected = body.forward_teacher_forced(inputs, values[:, path])
            torch.testing.assert_close(paths[:, path], expected, atol=1e-5, rtol=1e-5)


def test_a_value_affects_later_patches_only() -> None:
    body, inputs = make_body().eval(), some_inputs(SIZES)
    previous = previous_values(inputs)
    before = body.forward_all_positions(inputs, previous)
    for step in range(1, 7):  # previous[:, step] is the value of step - 1, in patch (step - 1) // 3
        other = previous.clone()
        other[:, step] += 1.0
        changed = (body.forward_all_positions(inputs, other) - before).abs().amax((0, 2)) > 1e-5
        first = ((step - 1) // 3 + 1) * 3
        assert changed.tolist() == [False] * 12 + [index >= first for index in range(7)]
    y = inputs.y.clone()
    y[2, 9] += 1.0  # of the window's patches [0], [1..3], [4..6], [7..9], [10..12]
    changed = (body.forward_all_positions(replace(inputs, y=y), previous) - before).abs().amax((0, 2)) > 1e-5
    assert changed.tolist() == [False] * 9 + [True] * 10


def test_future_covariates_affect_their_own_patch_and_later_ones() -> None:
    body, inputs = make_body().eval(), some_inputs(SIZES)
    previous = previous_values(inputs)
    before = body.forward_all_positions(inputs, previous)
    future = inputs.future.clone()
    future[:, 4] += 1.0  # in the second patch of the horizon
    changed = (body.forward_all_positions(replace(inputs, future=future), previous) - before).abs().amax((0, 2)) > 1e-5
    assert changed.tolist() == [False] * 15 + [True] * 4
    past = inputs.past.clone()
    past[:, 9, 0] += 1.0  # a future covariate: known when its patch is predicted
    changed = (body.forward_all_positions(replace(inputs, past=past), previous) - before).abs().amax((0, 2)) > 1e-5
    assert changed.tolist() == [False] * 6 + [True] * 13
    past = inputs.past.clone()
    past[:, 9, 2] += 1.0  # one known afterwards only
    changed = (body.forward_all_positions(replace(inputs, past=past), previous) - before).abs().amax((0, 2)) > 1e-5
    assert changed.tolist() == [False] * 9 + [True] * 10


def test_known_columns_are_those_of_the_future() -> None:
    """With numbers, calendar and categories: columns of equal values are equal after scaling and embedding."""
    columns = WindowColumns(
        input_size=13, horizon=7, numeric=("f", "g", "p"), n_future=2, categorical=("c", "d"), n_future_codes=1,
        static=(), static_codes=(), counts={"c": 3, "d": 9}, loc={}, scale={}, calendar=("month", "week_of_year"),
    )  # fmt: skip
    n_calendar, n_codes, n_past_codes = columns.calendar_width, embedding_width(3), embedding_width(9)
    sizes = InputSizes(
        13, 7, 1, past=3 + n_calendar + n_codes + n_past_codes, future=2 + n_calendar + n_codes, window_columns=columns
    )
    network = ForecastNetwork(sizes, make_body(sizes), PointHead("mae"), temporal=(3, 9), n_future_codes=1)
    generator = torch.Generator().manual_seed(5)
    past = torch.randn(2, 13, 3 + n_calendar, generator=generator)
    codes = torch.randint(1, 4, (2, 13, 2), generator=generator)
    future = past[:, -7:][:, :, [0, 1, *range(3, 3 + n_calendar)]]
    inputs, _ = network.inputs(Batch(
        torch.randn(2, 13).double(), past, future, torch.zeros(2, 0), codes, codes[:, -7:, :1], torch.zeros(2, 0).long(),
        torch.zeros(2, 1).double(), torch.ones(2, 1).double(),
    ))  # fmt: skip
    assert torch.equal(inputs.past[:, -7:, list(sizes.known_columns)], inputs.future)
    assert torch.equal(inputs.past[:, -7:].index_select(2, network.body.known_columns), inputs.future)


def test_every_field_is_used_and_every_weight_is_trained() -> None:
    for sizes in (PLAIN, SIZES):
        body, inputs = make_body(sizes, dropout=0.1, positional_encoding="learned"), some_inputs(sizes)
        body.forward_all_positions(inputs, previous_values(inputs, sizes.horizon)).square().sum().backward()
        for name, weight in body.named_parameters():
            assert weight.grad.abs().sum() > 0, name
    body.eval()
    previous = previous_values(inputs)
    for name in ("y", "past", "future", "static"):
        other = replace(inputs, **{name: getattr(inputs, name) + 1.0})
        difference = body.forward_teacher_forced(other, previous) - body.forward_teacher_forced(inputs, previous)
        assert difference.abs().amax((1, 2)).min() > 1e-4, name


def test_a_window_without_values_is_finite() -> None:
    inputs = some_inputs(SIZES)
    empty = replace(inputs, y=inputs.y * 0, observed=inputs.observed * 0)
    for encoding, segment in product(("rotary", "alibi"), (None, 2)):
        body = make_body(positional_encoding=encoding, segment_length=segment)
        raw = body.forward_all_positions(empty, previous_values(empty))
        assert raw.isfinite().all()
        raw.square().sum().backward()
        assert all(weight.grad.isfinite().all() for weight in body.parameters())


# -- loss on all positions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaler", ["standard", "revin", "difference"])
def test_training_loss_covers_all_patches_after_the_first(scaler: str) -> None:
    sizes = InputSizes(input_size=13, horizon=7, out_features=1)
    head = PointHead("mae")
    network = seeded(lambda: ForecastNetwork(sizes, make_body(sizes), head, scaler=scaler)).train()
    if network.affine is not None:
        with torch.no_grad():
            network.affine.copy_(torch.tensor([1.3, 0.4]))
    y = torch.randn(4, 20, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3 + 5
    y[0, :4] = torch.nan
    y[1, 7] = y[2, 15] = torch.nan
    y[3, :13] = 2.0  # a constant window does not count
    empty = torch.zeros(4, 13, 0), torch.zeros(4, 7, 0), torch.zeros(4, 0)
    codes = [tensor.long() for tensor in empty]
    weight = torch.rand(4, 20, generator=torch.Generator().manual_seed(2))
    scales = torch.zeros(4, 1).double(), torch.ones(4, 1).double()
    batch = Batch(y[:, :13], *empty, *codes, *scales, y[:, 13:], weight[:, 13:], weight[:, :13])
    loss = network.loss(batch).item()

    inputs, scaling = network.inputs(batch)
    z = (y - scaling.loc) / scaling.scale
    previous = torch.zeros(4, 7)
    for window in range(4):
        last = inputs.y[window][inputs.observed[window] > 0][-1]
        for step in range(7):
            previous[window, step] = last
            last = last if y[window, 13 + step].isnan() else z[window, 13 + step].float()
    raw = network.body.forward_all_positions(inputs, previous)[..., 0].detach()
    if network.affine is not None:
        raw = (raw - 0.4) / 1.3
    total, total_weight = 0.0, 0.0
    for window in range(3):
        for step in range(1, 20):  # 13 steps are five patches of three, the first of which has one
            if not y[window, step].isnan():
                w = float(weight[window, step])
                total += w * abs(float(raw[window, step - 1]) - float(z[window, step]))
                total_weight += w
    assert loss == pytest.approx(total / total_weight, rel=1e-5)
    network.eval()
    horizon_only = network.loss(batch).item()  # a forecast decides, as for other networks
    assert horizon_only != pytest.approx(loss, rel=1e-3)
    raw, _ = network.forward_teacher_forced(batch)
    assert raw.shape == (4, 7, 1)


# -- segment memory ----------------------------------------------------------------------------------------------------


def transformer_xl_by_hand(body: DecoderOnlyBody, tokens: Tensor, segment_length: int, memory_segments: int) -> Tensor:
    """Transformer-XL as in the paper: segment by segment, with the hidden states of earlier segments in a list.

    `tokens` (batch, tokens, d_model) are embedded; ALiBi slopes in place of the paper's relative positions.
    """
    memories: list[list[Tensor]] = [[] for _ in body.layers.layers]  # per layer: inputs of earlier segments
    outputs = []
    for begin in range(0, tokens.shape[1], segment_length):
        hidden = tokens[:, begin : begin + segment_length]
        for layer, memory in zip(body.layers.layers, memories, strict=True):
            # h~ = [SG(h of the segments before), h]; queries from h, keys and values from h~ (section 3.2)
            recent = [state.detach() for state in memory[-memory_segments:]]
            memory.append(hidden)
            context = torch.cat([*recent, hidden], dim=1)
            n_queries, n_keys = hidden.shape[1], context.shape[1]
            attention = layer.attention
            split = (len(hidden), -1, attention.n_heads, hidden.shape[2] // attention.n_heads)
            query = attention.in_proj(hidden).chunk(3, -1)[0].view(split).transpose(1, 2)
            keys, values = (part.view(split).transpose(1, 2) for part in attention.in_proj(context).chunk(3, -1)[1:])
            distance = torch.arange(n_keys - n_queries, n_keys).unsqueeze(1) - torch.arange(n_keys)
            slopes = 2.0 ** (-8 * torch.arange(1, attention.n_heads + 1) / attention.n_heads)
            scores = query @ keys.transpose(2, 3) / math.sqrt(split[3]) - slopes[:, None, None] * body.patch_length * distance
            weights = scores.masked_fill(distance < 0, -math.inf).softmax(-1)
            hidden = hidden + attention.out_proj((weights @ values).transpose(1, 2).flatten(2))
            hidden = layer.norms[0](hidden)  # post-norm
            hidden = layer.norms[1](hidden + layer.feedforward(hidden))
        outputs.append(hidden)
    return body.layers.norm(torch.cat(outputs, dim=1))


def masked_tokens(body: DecoderOnlyBody, tokens: Tensor) -> Tensor:
    """The layers of the body on embedded tokens, as in `_forward`."""
    n = tokens.shape[1]
    mask = body.positions.past_mask(body.causal_bias[:, :, :n, :n], 0, n)
    memory = body.positions.past_mask(body.memory_bias[:, :, :n, :n], 0, n)
    return body.layers(tokens, replace(mask, memory_bias=memory.bias))


@pytest.mark.parametrize(("segment_length", "memory_segments"), [(3, 1), (2, 2), (4, 5)])
def test_memory_is_that_of_transformer_xl(segment_length: int, memory_segments: int) -> None:
    """Outputs and gradients."""
    body = make_body(
        replace(PLAIN, input_size=30), positional_encoding="alibi", norm_first=False, n_layers=3,
        segment_length=segment_length, memory_segments=memory_segments,
    ).double()  # fmt: skip
    tokens = torch.randn(2, body.n_tokens, 16, generator=torch.Generator().manual_seed(4), dtype=torch.float64, requires_grad=True)
    outputs = masked_tokens(body, tokens)
    expected = transformer_xl_by_hand(body, tokens, segment_length, memory_segments)
    torch.testing.assert_close(outputs, expected, atol=1e-9, rtol=1e-9)
    inputs = [tokens, *body.layers.parameters()]
    gradients = torch.autograd.grad(outputs[:, -1].square().sum(), inputs)
    for gradient, by_hand in zip(gradients, torch.autograd.grad(expected[:, -1].square().sum(), inputs), strict=True):
        torch.testing.assert_close(gradient, by_hand, atol=1e-9, rtol=1e-9)
    segment = torch.arange(body.n_tokens) // segment_length
    assert ((gradients[0].abs().amax((0, 2)) > 0) == (segment == segment[-1])).all()  # none from the memory


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_receptive_field_grows_with_the_layers(n_layers: int) -> None:
    """With segments of 2 patches and a memory of one segment, l layers see the l segments before."""
    sizes = replace(PLAIN, input_size=30, horizon=3)
    body = make_body(sizes, n_layers=n_layers, segment_length=2).eval()  # ten patches, five segments
    inputs = some_inputs(sizes, windows=1)
    inputs = replace(inputs, observed=torch.ones(1, 30))
    previous = torch.zeros(1, 3)
    seen = []
    for patch in range(10):
        y = inputs.y.clone()
        y[:, 3 * patch + 1] += 1.0
        difference = body.forward_teacher_forced(replace(inputs, y=y), previous) - body.forward_teacher_forced(inputs, previous)
        seen.append(bool(difference.abs().max() > 0))
    assert seen == [patch >= 8 - 2 * n_layers for patch in range(10)]


def test_memory_without_relative_positions_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"got positional_encoding='learned'\. Set positional_encoding='rotary'"):
        make_body(positional_encoding="learned", segment_length=2)


# -- attention weights and devices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("segment", [None, 2])
def test_attention_weights_of_patches_and_steps(segment: int | None) -> None:
    body, inputs = make_body(segment_length=segment).eval(), some_inputs(SIZES)
    maps = body.attention_maps(inputs, previous_values(inputs))
    assert [(attention.kind, attention.layer) for attention in maps] == [("self", 0), ("self", 1)]
    for attention in maps:
        assert attention.keys.tolist() == [-12, -9, -6, -3, 0, 3, 6]
        assert attention.queries.tolist() == [-12, -9, -6, -3, 0, 1, 2, 3, 4, 5, 6, 7]
        weights = attention.weights
        torch.testing.assert_close(weights.sum(-1)[:, :, 1:], torch.ones(5, 4, 11), atol=1e-6, rtol=0)
        assert weights[0, :, 0].abs().max() == 0  # the first patch of the first window is padding
        ahead = attention.keys > attention.queries.unsqueeze(1)
        assert (weights[:, :, ahead] == 0).all()
        segments = torch.tensor([0, 0, 1, 1, 2, 2, 3])
        forgotten = segments < 1  # of the steps 1 to 3, predicted from the fifth patch
        assert bool((weights[1, :, 5:8][..., forgotten] == 0).all()) == (segment is not None)
        assert torch.equal(weights[:, :, 5], weights[:, :, 7])
        assert torch.equal(weights[:, :, 4], weights[:, :, 5])


def test_all_tensors_are_on_the_device_of_the_inputs() -> None:
    for encoding, segment in (("learned", None), ("calendar", None), ("rotary", 2), ("alibi", 2)):
        body = make_body(positional_encoding=encoding, segment_length=segment).to("meta")
        given = some_inputs(SIZES)
        inputs = Inputs(*(getattr(given, name).to("meta") for name in ("y", "observed", "past", "future", "static")))
        previous = previous_values(given).to("meta")
        with NothingOnTheCPU():
            assert body.forward_all_positions(inputs, previous).device.type == "meta"
            assert stepwise(body, inputs, previous).device.type == "meta"
            with torch.no_grad():
                assert stepwise(body, inputs, previous).device.type == "meta"
