"""TimeXer equals the equations of the paper with torch's attention, and has the parameters of its official code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from deepforecast.data.windows import WindowColumns
from deepforecast.nn.batch import Inputs, InputSizes, input_variables
from deepforecast.nn.encoder_decoder import LayerOptions
from deepforecast.nn.layers import embedding_width
from deepforecast.nn.timexer import CovariateTokens, TimeXerBody
from deepforecast.nn.transformer import TransformerOptions
from tests.nn.bodies import FULL, PLAIN, keeps_the_rules, seeded, shuffled, some_inputs

LAYERS = 2
MIXED = replace(FULL, past=3, future=2)  # the last past covariate has no future


def timexer(sizes: InputSizes, length: int = 4, positions: str | None = "sinusoidal", **layer: Any) -> TimeXerBody:
    paper = {"d_model": 16, "n_heads": 4, "dim_feedforward": 24, "activation": "gelu", "norm_first": False}
    options = LayerOptions(**{**paper, **layer})
    return seeded(lambda: TimeXerBody(sizes, TransformerOptions(options, LAYERS, 0, positions, length, length)))


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "normalization": "rms"}, {"length": 5, "positions": "learned"}])
def test_it_keeps_the_rules(options: dict[str, Any]) -> None:
    keeps_the_rules(lambda sizes: timexer(sizes, **options))


def layer_norm(norm: Any, hidden: Tensor) -> Tensor:
    centred = hidden - hidden.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias


def torch_attention(in_weight: Tensor, in_bias: Tensor, out: nn.Linear) -> nn.MultiheadAttention:
    attention = nn.MultiheadAttention(16, 4, batch_first=True, dtype=in_weight.dtype).eval()
    attention.load_state_dict({
        "in_proj_weight": in_weight, "in_proj_bias": in_bias, "out_proj.weight": out.weight, "out_proj.bias": out.bias
    })  # fmt: skip
    return attention


def plain_timexer(body: TimeXerBody, inputs: Inputs, length: int) -> Tensor:
    """One patch, one column and one token at a time; no window begins with missing values."""
    steps = inputs.y.shape[1]
    embedding, covariates = body.embedding, body.covariates
    static = inputs.static @ embedding.static_projection.weight.T
    patches = []
    for index in range(steps // length):
        rows = slice(index * length, (index + 1) * length)
        patch = torch.cat([inputs.y[:, rows], inputs.observed[:, rows]], 1)
        token = patch @ embedding.input_projection.weight.T + embedding.input_projection.bias
        patches.append(token + embedding.positions.past[index] + static)
    tokens = torch.stack([*patches, body.global_token[0].expand(len(inputs.y), -1)], 1)
    known = [torch.cat([inputs.past[:, :, column], inputs.future[:, :, column]], 1) for column in range(2)]
    columns = [covariates.known_projection(values) for values in known] + [covariates.unknown_projection(inputs.past[:, :, 2])]
    columns = torch.stack([token + identity for token, identity in zip(columns, covariates.identity, strict=True)], 1)
    projection = body.key_value_projection.in_proj
    for index, layer in enumerate(body.encoder.layers):
        attend = torch_attention(layer.attention.in_proj.weight, layer.attention.in_proj.bias, layer.attention.out_proj)
        tokens = layer_norm(layer.norms[0], tokens + attend(tokens, tokens, tokens)[0])
        rows = slice(32 * index, 32 * (index + 1))  # keys and values of this layer
        attend = torch_attention(
            torch.cat([layer.cross.in_proj.weight, projection.weight[rows]]),
            torch.cat([layer.cross.in_proj.bias, projection.bias[rows]]), layer.cross.out_proj,
        )  # fmt: skip
        global_token = tokens[:, -1:] + attend(tokens[:, -1:], columns, columns)[0]
        tokens = layer_norm(layer.norms[1], torch.cat([tokens[:, :-1], global_token], 1))
        hidden = nn.functional.gelu(layer.feedforward.linear1(tokens))
        tokens = layer_norm(layer.norms[2], tokens + layer.feedforward.linear2(hidden))
    flat = layer_norm(body.encoder.norm, tokens).flatten(1)
    raw = (flat @ body.head.linear.weight.T + body.head.linear.bias).view(len(inputs.y), 4, 3)
    return raw + inputs.future @ body.head.outputs.future_map.weight.T


def test_it_equals_the_equations_of_the_paper() -> None:
    body = shuffled(timexer(MIXED)).double().eval()
    body.embedding.positions.past = body.embedding.positions.past.double()
    inputs = some_inputs(MIXED, dtype=torch.float64)
    inputs = replace(inputs, observed=torch.ones_like(inputs.observed))
    torch.testing.assert_close(body.features(inputs), plain_timexer(body, inputs, 4), atol=1e-10, rtol=1e-10)


def test_it_has_the_parameters_of_the_paper() -> None:
    """Electricity prices in the official scripts: window 168, patches of 24, horizon 24, d_model 512, 8 heads, 512 hidden
    units, 3 layers for Nord Pool; past covariates 2, and 4 calendar columns of its embedding are tokens, too.

    Patches: 168 / 24 = 7, embedding without bias 24 * 512 = 12,288; global token 512; covariates 168 * 512 + 512 = 86,528.
    A layer: two attentions 2 * 4 * (512 * 512 + 512) = 2,101,248; feed-forward 2 * (512 * 512 + 512) = 525,312; three norms
    3 * 1,024 = 3,072; together 2,629,632, and 7,888,896 in three layers; the last norm 1,024. Output: 8 * 512 * 24 + 24 = 98,328.
    In all 8,087,576. Ours has the mask of observed values and a bias, 12,288 + 512, and a vector per covariate, 6 * 512.
    """
    sizes = InputSizes(input_size=168, horizon=24, out_features=1, past=6, location_slice=slice(0, 1))
    body = TimeXerBody(sizes, TransformerOptions(LayerOptions(512, 8, 512, "gelu", False), 3, 0, "sinusoidal", 24, 24))
    assert sum(weight.numel() for weight in body.parameters()) == 8_087_576 + 12_288 + 512 + 6 * 512


def test_covariates_reach_the_forecast_through_the_global_token_alone() -> None:
    body, inputs = shuffled(timexer(MIXED)).eval(), some_inputs(MIXED)
    seen: list[Tensor] = []
    body.encoder.layers[0].register_forward_hook(lambda _, __, output: seen.append(output))
    for past in (inputs.past, inputs.past + 1.0):
        body.features(replace(inputs, past=past))
    moved = (seen[0] - seen[1]).abs().amax((0, 2))
    assert (moved[:-1] == 0).all()
    assert moved[-1] > 1e-3


def test_padding_has_no_effect() -> None:
    body, inputs = shuffled(timexer(PLAIN)).eval(), some_inputs(PLAIN)
    observed = inputs.observed.clone()
    observed[2, :4] = 0.0
    y = inputs.y.clone()
    y[2, :4] = 5.0  # a patch of padding
    moved = body.features(replace(inputs, y=y, observed=observed)) - body.features(replace(inputs, observed=observed))
    assert (moved == 0).all()


def test_future_columns_continue_their_own_past() -> None:
    names = {"numeric": ("load", "visits"), "n_future": 1, "categorical": ("kind",), "n_future_codes": 0, "static": ()}
    columns = WindowColumns(
        12, 4, **names, static_codes=(), counts={"kind": 1}, loc={}, scale={}, calendar=("hour", "weekend")
    )
    sizes = replace(FULL, past=7, future=4, static=0, window_columns=columns)
    past, future, static = input_variables(sizes)
    width = embedding_width(1)
    assert past == [("load", 1), ("visits", 1), ("hour", 2), ("weekend", 1), ("kind", width)]
    assert future == [("load", 1), ("hour", 2), ("weekend", 1)]
    assert static == []
    tokens = CovariateTokens(sizes, 16, 0.0)
    assert tokens.known.tolist() == [0, 2, 3, 4]
    assert tokens.unknown.tolist() == [1, *range(5, 5 + width)]
    taken = input_variables(replace(sizes, window_columns=replace(columns, numeric=("hour", "visits"))))[0]
    assert [name for name, _ in taken] == ["hour", "visits", "hour_", "weekend", "kind"]
