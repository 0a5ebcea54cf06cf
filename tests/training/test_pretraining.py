"""Each objective equals a re-derivation by plain loops over windows, patches, heads, queries and keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.nn.batch import Batch, InputSizes
from deepforecast.nn.encoder_decoder import EncoderLayer, LayerOptions
from deepforecast.nn.heads.point import PointHead
from deepforecast.nn.mlp import MLPBody
from deepforecast.nn.network import ForecastNetwork
from deepforecast.nn.transformer import PatchEncoder, Patching, TransformerDirect, TransformerOptions
from deepforecast.training import pretraining
from deepforecast.training.pretraining import (
    MaskedPatches,
    MaskedSpans,
    NextPatch,
    NextWindow,
    Objective,
    PermutationOrder,
    PretrainingNetwork,
    choose_patches,
    cut_patches,
)

L, P = 22, 4  # time steps and patch length: six patches, the first with 2 time steps


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def network(stride: int = P, n_layers: int = 2, norm_first: bool = True) -> ForecastNetwork:
    torch.manual_seed(0)
    sizes = InputSizes(L, 3, 1, past=2, future=2)
    layer = LayerOptions(d_model=8, n_heads=2, dim_feedforward=16, norm_first=norm_first)
    options = TransformerOptions(layer, n_layers, 1, patch_length=P, stride=stride)
    return ForecastNetwork(sizes, TransformerDirect(sizes, options), PointHead()).eval()


def batch(n: int = 5) -> Batch:
    """Windows with a missing value, the last of a series that begins in the window."""
    torch.manual_seed(1)
    y = torch.randn(n, L, dtype=torch.float64).cumsum(1)
    y[0, 9], y[-1, :13] = torch.nan, torch.nan
    codes = torch.zeros(n, L, 0, dtype=torch.int64)
    return Batch(
        y, torch.randn(n, L, 2), torch.randn(n, 3, 2), torch.zeros(n, 0), codes, codes[:, :3], codes[:, 0],
        torch.zeros(n, 1, dtype=torch.float64), torch.ones(n, 1, dtype=torch.float64),
    )  # fmt: skip


def ready(objective: Objective, net: ForecastNetwork) -> Any:
    torch.manual_seed(2)
    objective.setup(net)
    return objective


def encoder_of(net: ForecastNetwork) -> PatchEncoder:
    return pretraining.patch_encoder(net, "test")


def plain_attention(layer: EncoderLayer, queries: Tensor, tokens: Tensor, visible: Callable[[int, int], bool]) -> Tensor:
    """A layer on one window, by loops: queries and tokens (tokens, width)."""
    width, n_heads = tokens.shape[1], layer.attention.n_heads
    dim = width // n_heads
    first = layer.norms[0] if layer.norm_first else nn.Identity()
    q = layer.attention.in_proj(first(queries))[:, :width]
    k, v = layer.attention.in_proj(first(tokens))[:, width:].chunk(2, dim=1)
    attended = torch.zeros_like(queries)
    for i in range(len(queries)):
        keys = [j for j in range(len(tokens)) if visible(i, j)]
        for head in range(n_heads if keys else 0):
            columns = slice(head * dim, (head + 1) * dim)
            scores = [math.exp(float(q[i, columns] @ k[j, columns]) / math.sqrt(dim)) for j in keys]
            attended[i, columns] = sum(score / sum(scores) * v[j, columns] for score, j in zip(scores, keys, strict=True))
    out = queries + layer.attention.out_proj(attended)
    if not layer.norm_first:
        out = layer.norms[0](out)
        return layer.norms[1](out + layer.feedforward(out))
    return out + layer.feedforward(layer.norms[1](out))


def plain_encoder(encoder: PatchEncoder, tokens: Tensor, visible: Callable[[int, int], bool]) -> Tensor:
    """The encoder on one window, by loops."""
    for layer in encoder.encoder.layers:
        tokens = plain_attention(layer, tokens, tokens, visible)
    return encoder.encoder.norm(tokens)


def steps_of(patch: int) -> range:
    """Time steps of a patch without overlap."""
    return range(max(L - (6 - patch) * P, 0), L - (5 - patch) * P)


def has_start(observed: Tensor, patch: int) -> bool:
    """Whether the patch ends after the first observed value."""
    return bool(observed[: steps_of(patch)[-1] + 1].any())


def mean_error(pairs: list[tuple[Tensor, float]]) -> float:
    return float(np.mean([(float(prediction) - actual) ** 2 for prediction, actual in pairs]))


@pytest.mark.parametrize("stride", [P, 2])
def test_masked_patches_equal_a_loop(stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net, windows = network(stride), batch()
    objective, encoder, inputs = ready(MaskedPatches(), net), encoder_of(net), net.inputs(windows)[0]
    n = encoder.patches.n_patches
    chosen = torch.zeros(5, n, dtype=torch.bool)
    chosen[:, [1, 3, n - 1]] = True
    monkeypatch.setattr(pretraining, "choose_patches", lambda *_: chosen)
    draw = torch.full((5, n), 0.5)  # masked
    draw[:, 3], draw[:, n - 1] = 0.85, 0.95  # replaced, left
    monkeypatch.setattr(torch, "rand", lambda *_, **__: draw)
    loss = float(objective.loss(net, windows))

    y, observed = inputs.y.clone(), inputs.observed.clone()
    for row in range(5):
        for step in range(L):
            unit = n - 1 - (L - 1 - step) // stride
            if unit == 1:
                y[row, step], observed[row, step] = 0.0, 0.0
            elif unit == 3:
                y[row, step], observed[row, step] = inputs.y[row - 1, step], inputs.observed[row - 1, step]
    corrupted = pretraining.replace(inputs, y=y, observed=observed)
    tokens = encoder.embed(corrupted)
    tokens[:, 1] += objective.mask_token
    tokens = encoder.add_positions(tokens, inputs)
    pairs = []
    for row in range(5):
        ends = range(L - 1 - (n - 1) * stride, L, stride)
        valid = [bool(inputs.observed[row, : end + 1].any()) for end in ends]
        values = objective.reconstruction(plain_encoder(encoder, tokens[row], lambda _, j, valid=valid: valid[j]))
        for step in range(L):
            unit = n - 1 - (L - 1 - step) // stride
            if unit in (1, 3, n - 1) and inputs.observed[row, step]:
                pairs.append((values[unit, stride - 1 - (L - 1 - step) % stride], float(inputs.y[row, step])))
    assert loss == pytest.approx(mean_error(pairs), rel=1e-4)


@pytest.mark.parametrize("norm_first", [True, False])
def test_next_patch_equals_a_loop_over_the_beginnings_of_a_window(norm_first: bool) -> None:
    net, windows = network(norm_first=norm_first), batch()
    objective, encoder, inputs = ready(NextPatch(), net), encoder_of(net), net.inputs(windows)[0]
    tokens, pairs = encoder.add_positions(encoder.embed(inputs), inputs), []
    for row in range(5):
        valid = [has_start(inputs.observed[row], patch) for patch in range(6)]
        hidden = plain_encoder(encoder, tokens[row], lambda i, j, valid=valid: j <= i and valid[j])
        for patch in range(1, 6):
            values = objective.reconstruction(hidden[patch - 1])
            pairs += [
                (values[position], float(inputs.y[row, step]))
                for position, step in enumerate(steps_of(patch))
                if inputs.observed[row, step]
            ]
    assert float(objective.loss(net, windows)) == pytest.approx(mean_error(pairs), rel=1e-4)


def test_permutation_order_equals_a_loop_over_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    net, windows = network(), batch()
    objective, encoder, inputs = ready(PermutationOrder(fraction=1 / 3), net), encoder_of(net), net.inputs(windows)[0]
    draw = torch.tensor([[0.3, 0.9, 0.1, 0.5, 0.2, 0.7]]).repeat(5, 1)
    monkeypatch.setattr(torch, "rand", lambda *_, **__: draw)
    pairs = []
    content_tokens = encoder.add_positions(encoder.embed(inputs), inputs)
    query_tokens = encoder.add_positions(objective.query.expand_as(content_tokens), inputs)
    for row in range(5):
        seen = [bool(inputs.observed[row, list(steps_of(patch))].any()) for patch in range(6)]
        order = sorted(range(6), key=lambda patch, seen=seen: (seen[patch], float(draw[0, patch])))
        rank = {patch: position for position, patch in enumerate(order)}
        valid = [has_start(inputs.observed[row], patch) for patch in range(6)]
        content, query = content_tokens[row], query_tokens[row]
        for layer in encoder.encoder.layers:
            query = plain_attention(layer, query, content, lambda i, j, r=rank, v=valid: r[j] < r[i] and v[j])
            content = plain_attention(layer, content, content, lambda i, j, r=rank, v=valid: r[j] <= r[i] and v[j])
        values = objective.reconstruction(encoder.encoder.norm(query))
        for patch in order[-2:]:
            pairs += [
                (values[patch, position], float(inputs.y[row, step]))
                for position, step in enumerate(steps_of(patch), start=P - len(steps_of(patch)))
                if inputs.observed[row, step]
            ]
    assert float(objective.loss(net, windows)) == pytest.approx(mean_error(pairs), rel=1e-4)


def plain_summary(net: ForecastNetwork, objective: Any, inputs: Any, row: int, patches: range) -> Tensor:
    """The encoded summary of some patches of one window, by loops."""
    encoder = encoder_of(net)
    tokens = encoder.embed(inputs)
    for patch in range(6):
        tokens[:, patch] += objective.segments[int(patch >= 3)]
    tokens[:, 0] = objective.summary
    tokens = encoder.add_positions(tokens, inputs)[row]
    valid = [patch == 0 or (patch in patches and has_start(inputs.observed[row], patch)) for patch in range(6)]
    return plain_encoder(encoder, tokens, lambda _, j: valid[j])[0]


def test_next_window_equals_a_loop_over_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    net, windows = network(), batch()
    objective, inputs = ready(NextWindow(), net), net.inputs(windows)[0]
    draw = torch.tensor([0.1, 0.9, 0.2, 0.8, 0.3])
    monkeypatch.setattr(torch, "rand", lambda *_, **__: draw)
    losses = []
    for row in range(5):
        y, observed = inputs.y.clone(), inputs.observed.clone()
        if draw[row] < 0.5:
            y[row, 10:], observed[row, 10:] = inputs.y[row - 1, 10:], inputs.observed[row - 1, 10:]
        pair = pretraining.replace(inputs, y=y, observed=observed)
        probability = torch.sigmoid(objective.classifier(plain_summary(net, objective, pair, row, range(6))))
        losses.append(-math.log(float(probability if draw[row] >= 0.5 else 1 - probability)))
    assert float(objective.loss(net, windows)) == pytest.approx(np.mean(losses), rel=1e-4)


def test_contrastive_next_window_equals_a_loop_over_all_pairs() -> None:
    net, windows = network(), batch()
    objective, inputs = ready(NextWindow(contrastive=True), net), net.inputs(windows)[0]
    first = [plain_summary(net, objective, inputs, row, range(3)) for row in range(5)]
    second = [plain_summary(net, objective, inputs, row, range(3, 6)) for row in range(5)]
    losses = []
    for row in range(5):
        similarity = [math.exp(float(torch.cosine_similarity(first[row], other, dim=0)) / 0.1) for other in second]
        losses.append(-math.log(similarity[row] / sum(similarity)))
    assert float(objective.loss(net, windows)) == pytest.approx(np.mean(losses), rel=1e-4)


def test_hidden_values_do_not_reach_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other values in the hidden patches change the targets, not the predictions, even if patches overlap."""
    net, windows = network(stride=2), batch()
    net.scaler = "none"
    objective = ready(MaskedPatches(), net)
    chosen = torch.zeros(5, 11, dtype=torch.bool)
    chosen[:, 6] = True
    monkeypatch.setattr(pretraining, "choose_patches", lambda *_: chosen)
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.zeros(5, 11))
    predictions: list[Tensor] = []
    objective.reconstruction.register_forward_hook(lambda _, __, output: predictions.append(output))
    objective.loss(net, windows)
    y = windows.y.clone()
    y[:, 12:14] += 100.0
    objective.loss(net, pretraining.replace(windows, y=y))
    assert torch.equal(*predictions)


def test_objectives_draw_their_patches_from_the_seed_and_prefer_observed_ones() -> None:
    observed = torch.ones(200, 12)
    observed[:, :6] = 0.0
    torch.manual_seed(0)
    chosen = choose_patches(observed, 0.15)
    assert chosen.sum(1).tolist() == [2] * 200
    assert not chosen[:, :6].any()
    assert chosen[:, 6:].any(0).all()
    spans = choose_patches(torch.ones(200, 12), 0.25, span=3)
    runs = spans.int().diff(dim=1, prepend=torch.zeros(200, 1)).eq(1).sum(1)
    assert runs.tolist() == [1] * 200
    assert spans.sum(1).tolist() == [3] * 200
    torch.manual_seed(0)
    assert torch.equal(choose_patches(observed, 0.15), chosen)


def test_the_loss_of_several_objectives_is_their_weighted_sum() -> None:
    net, windows = network(), batch()
    both = PretrainingNetwork(net, [NextPatch(), NextWindow(contrastive=True)], [0.5, 2.0])
    first, second = (float(objective.loss(net, windows)) for objective in both.objectives)
    assert float(both.loss(windows)) == pytest.approx(0.5 * first + 2.0 * second, rel=1e-6)
    assert {name.split(".")[0] for name, _ in both.named_parameters()} == {"network", "objectives"}


def test_patches_without_overlap_cover_every_time_step_once() -> None:
    patches = cut_patches(torch.arange(1.0, L + 1).repeat(2, 1), Patching(L, 8, 4))
    assert patches.shape == (2, 6, 4)
    assert patches[0].flatten().tolist() == [0.0, 0.0, *range(1, L + 1)]


def test_windows_without_values_have_no_loss() -> None:
    net, windows = network(), batch(2)
    nothing = pretraining.replace(windows, y=torch.full_like(windows.y, torch.nan))
    for objective in (MaskedPatches(), MaskedSpans(), NextPatch(), PermutationOrder()):
        assert float(ready(objective, net).loss(net, nothing)) == 0.0


@pytest.mark.parametrize(
    ("make", "stride", "message"),
    [
        (lambda: MaskedPatches(fraction=0.0), P, "`fraction` must be between 0 and 1, got 0.0"),
        (lambda: MaskedSpans(span=0), P, "`span` must be at least 1, got 0"),
        (lambda: PermutationOrder(), 2, "requires patches without overlap, got patch_length=4 and stride=2. Set stride=4"),
    ],
)
def test_errors_name_the_parameter_and_the_fix(make: Callable[[], Objective], stride: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make().setup(network(stride))


def test_a_network_without_patches_cannot_use_the_objectives() -> None:
    sizes = InputSizes(L, 3, 1)
    net = ForecastNetwork(sizes, MLPBody(sizes, (8,)), PointHead())
    with pytest.raises(CapabilityError, match="'masked_patches' requires a network with an encoder over patches"):
        MaskedPatches().setup(net)
