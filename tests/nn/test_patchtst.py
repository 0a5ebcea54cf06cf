"""PatchTST equals torch's encoder layers on patches cut by a loop, and has the parameters of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.encoder_decoder import LayerOptions
from deepforecast.nn.linear import RANK
from deepforecast.nn.patchtst import PatchTSTBody
from deepforecast.nn.transformer import TransformerOptions
from tests.nn.bodies import FULL, PLAIN, keeps_the_rules, seeded, shuffled, some_inputs


def patchtst(sizes: InputSizes, length: int = 4, stride: int = 2, **layer: Any) -> PatchTSTBody:
    paper = {"d_model": 16, "n_heads": 4, "dim_feedforward": 24, "activation": "gelu", "norm_first": False, "normalization": "batch"}
    options = LayerOptions(**{**paper, **layer})
    return seeded(lambda: PatchTSTBody(sizes, TransformerOptions(options, 2, 0, "learned", length, stride, options.norm_first)))


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "normalization": "layer"}, {"length": 1, "stride": 1}])
def test_it_keeps_the_rules(options: dict[str, Any]) -> None:
    keeps_the_rules(lambda sizes: patchtst(sizes, **options))
    keeps_the_rules(lambda sizes: patchtst(replace(sizes, location_slice=slice(0, 1)), **options))


def plain_patchtst(body: PatchTSTBody, inputs: Inputs, length: int, stride: int) -> Tensor:
    """The paper in loops and torch's attention; in evaluation, with batch normalization after each sublayer."""
    encoder = body.window_encoder
    batch, steps = inputs.y.shape
    channels = torch.cat([inputs.y[..., None], inputs.observed[..., None], inputs.past], -1)
    ends = list(range(steps - 1, -1, -stride))[::-1]
    tokens = []
    for end, position in zip(ends, encoder.positions.past, strict=True):
        rows = [channels[:, end - back] if end >= back else torch.zeros_like(channels[:, 0]) for back in range(length)][::-1]
        patch = torch.stack(rows, -1).flatten(1)  # channel by channel
        static = inputs.static @ encoder.static_projection.weight.T
        tokens.append(patch @ encoder.input_projection.weight.T + encoder.input_projection.bias + position + static)
    hidden = torch.stack(tokens, 1)
    padding = torch.tensor([[not bool(window[: end + 1].any()) for end in ends] for window in inputs.observed])
    for layer in encoder.encoder.layers:
        attention = nn.MultiheadAttention(16, 4, batch_first=True, dtype=hidden.dtype).eval()
        attention.load_state_dict({
            "in_proj_weight": layer.attention.in_proj.weight, "in_proj_bias": layer.attention.in_proj.bias,
            "out_proj.weight": layer.attention.out_proj.weight, "out_proj.bias": layer.attention.out_proj.bias,
        })  # fmt: skip
        added = attention(hidden, hidden, hidden, key_padding_mask=padding)[0]
        hidden = plain_batch_norm(layer.norms[0], hidden + added)
        added = layer.feedforward.linear2(nn.functional.gelu(layer.feedforward.linear1(hidden)))
        hidden = plain_batch_norm(layer.norms[1], hidden + added)
    flat = torch.cat([hidden[:, n] * ~padding[:, n : n + 1] for n in range(len(ends))], -1)
    numbers = flat @ body.head.linear.weight.T + body.head.linear.bias  # a location per step, then RANK others
    raw = hidden.new_zeros(batch, 4, 3)
    for step in range(4):
        raw[:, step, 0] = numbers[:, step]
        for other in range(2):
            row = 2 * step + other
            raw[:, step, 1 + other] = numbers[:, -RANK:] @ body.head.outputs.others.weight[row] + body.head.outputs.others.bias[row]
        raw[:, step] += inputs.future[:, step] @ body.head.outputs.future_map.weight.T
    return raw


def plain_batch_norm(norm: Any, hidden: Tensor) -> Tensor:
    return (hidden - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


@pytest.mark.parametrize(("length", "stride"), [(4, 2), (5, 3), (3, 3)])
def test_it_equals_the_paper_in_loops(length: int, stride: int) -> None:
    sizes = replace(FULL, location_slice=slice(0, 1))
    body = shuffled(patchtst(sizes, length, stride)).double()
    inputs = some_inputs(sizes, dtype=torch.float64)
    short = inputs.observed.clone()
    short[0, :7] = 0.0
    inputs = replace(inputs, y=inputs.y * short, observed=short)
    body.train()
    body.features(inputs)  # moves the running statistics away from 0 and 1
    body.eval()
    torch.testing.assert_close(body.features(inputs), plain_patchtst(body, inputs, length, stride), atol=1e-10, rtol=1e-10)


def test_it_has_the_parameters_of_the_paper() -> None:
    """PatchTST/42: window 336, patches of 16 with stride 8, horizon 96, d_model 128, 16 heads, 256 hidden units, 3 layers.

    Patches: 336 / 8 = 42. Embedding: 16 * 128 + 128 = 2,176; positions: 42 * 128 = 5,376. A layer: attention
    4 * (128 * 128 + 128) = 66,048; feed-forward 128 * 256 + 256 + 256 * 128 + 128 = 65,920; two batch normalizations
    2 * 2 * 128 = 512; together 132,480, and 397,440 in three layers. Output: 42 * 128 * 96 + 96 = 516,192. In all 921,184.
    Ours has the mask of observed values as a second channel: 16 * 128 = 2,048 more.
    """
    sizes = InputSizes(input_size=336, horizon=96, out_features=1, location_slice=slice(0, 1))
    body = PatchTSTBody(
        sizes,
        TransformerOptions(LayerOptions(128, 16, 256, "gelu", False, "batch"), 3, 0, "learned", 16, 8, final_norm=False),
    )
    assert sum(weight.numel() for weight in body.parameters()) == 921_184 + 2_048


def test_covariates_before_a_series_begins_have_no_effect() -> None:
    body, inputs = shuffled(patchtst(FULL, 1, 1)).eval(), some_inputs(FULL)
    past = inputs.past.clone()
    past[0, :2] += 5.0  # the first window begins with two missing time steps
    torch.testing.assert_close(body.features(replace(inputs, past=past))[0], body.features(inputs)[0], atol=0, rtol=0)
    past[0, 2] += 5.0
    assert (body.features(replace(inputs, past=past))[0] - body.features(inputs)[0]).abs().max() > 1e-3


def test_attention_among_the_patches_adds_up_to_one() -> None:
    body, inputs = patchtst(PLAIN).eval(), some_inputs(PLAIN)
    maps = body.attention_maps(inputs, inputs.y[:, :4])
    assert [(one.kind, one.layer) for one in maps] == [("self", 0), ("self", 1)]
    assert maps[0].queries.tolist() == maps[0].keys.tolist() == [-10, -8, -6, -4, -2, 0]
    torch.testing.assert_close(maps[0].weights.sum(-1), torch.ones(5, 4, 6), atol=1e-6, rtol=0)
    assert (maps[0].weights[0, :, :, 0] == 0).all()  # padding
