"""The Temporal Fusion Transformer equals the equations of the paper, one variable and one time step at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.tft import TFTBody, TFTOptions
from tests.nn.bodies import FULL, PLAIN, keeps_the_rules, seeded, shuffled, some_inputs

WIDTH, HEADS = 8, 2


def tft(sizes: InputSizes, layers: int = 1, dropout: float = 0.0, seasonal_lag: bool = False) -> TFTBody:
    return seeded(lambda: TFTBody(sizes, TFTOptions(WIDTH, HEADS, layers, dropout, seasonal_lag)))


@pytest.mark.parametrize("layers", [1, 2])
def test_it_keeps_the_rules(layers: int) -> None:
    keeps_the_rules(lambda sizes: tft(sizes, layers, seasonal_lag=layers == 2), least=1e-4)  # random norms shrink effects


def of(parameters: dict[str, Tensor], name: str, variable: int | None) -> tuple[Tensor, Tensor]:
    """Weight (out, in) and bias of a linear map, of one variable if it has one per variable."""
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    return (weight, bias) if variable is None else (weight[variable].T, bias[variable, 0])


def gated(parameters: dict[str, Tensor], name: str, hidden: Tensor, skip: Tensor, variable: int | None = None) -> Tensor:
    """LayerNorm(skip + GLU(hidden))."""
    weight, bias = of(parameters, f"{name}.gate", variable)
    width = len(bias) // 2
    total = skip + (weight[:width] @ hidden + bias[:width]) * torch.sigmoid(weight[width:] @ hidden + bias[width:])
    scale, shift = parameters[f"{name}.norm.weight"], parameters[f"{name}.norm.bias"]
    if variable is not None:
        scale, shift = scale[variable, 0], shift[variable, 0]
    return (total - total.mean()) / (total.var(correction=0) + 1e-5).sqrt() * scale + shift


def grn(
    parameters: dict[str, Tensor], name: str, inputs: Tensor, context: Tensor | None = None, variable: int | None = None
) -> Tensor:
    weight, bias = of(parameters, f"{name}.linear2", variable)
    hidden = weight @ inputs + bias
    if context is not None:
        hidden = hidden + parameters[f"{name}.context.weight"] @ context
    hidden = torch.where(hidden > 0, hidden, hidden.exp() - 1)  # ELU
    weight, bias = of(parameters, f"{name}.linear1", variable)
    skip = inputs
    if f"{name}.skip.weight" in parameters:
        skip_weight, skip_bias = of(parameters, f"{name}.skip", variable)
        skip = skip_weight @ inputs + skip_bias
    return gated(parameters, f"{name}.residual", weight @ hidden + bias, skip, variable)


def select(
    parameters: dict[str, Tensor], name: str, variables: list[Tensor], context: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    embedded = []
    for index, columns in enumerate(variables):
        embedded.append(parameters[f"{name}.embeddings.{index}.weight"] @ columns + parameters[f"{name}.embeddings.{index}.bias"])
    weights = torch.ones(1, dtype=embedded[0].dtype)
    if len(variables) > 1:
        scores = grn(parameters, f"{name}.weights", torch.cat(embedded), context)
        weights = scores.exp() / scores.exp().sum()
    total = sum(
        weight * grn(parameters, f"{name}.variables", vector, variable=index)
        for index, (weight, vector) in enumerate(zip(weights, embedded, strict=True))
    )
    return total, weights


def lstm_step(parameters: dict[str, Tensor], name: str, inputs: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    hidden, cell = state
    gates = (
        parameters[f"{name}.cells.0.weight_ih_l0"] @ inputs + parameters[f"{name}.cells.0.bias_ih_l0"]
        + parameters[f"{name}.cells.0.weight_hh_l0"] @ hidden + parameters[f"{name}.cells.0.bias_hh_l0"]
    )  # fmt: skip
    into, forget, candidate, out = gates.chunk(4)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(candidate)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def plain_tft(body: TFTBody, inputs: Inputs, window: int, sizes: InputSizes) -> tuple[Tensor, Tensor]:
    """Raw output (horizon, features) of one window, and the mean attention weights (horizon, steps)."""
    parameters = {name: value.detach() for name, value in body.named_parameters()}
    length, horizon = sizes.input_size, sizes.horizon
    selection = enrichment = None
    state = (torch.zeros(WIDTH, dtype=inputs.y.dtype), torch.zeros(WIDTH, dtype=inputs.y.dtype))
    if sizes.static:
        selected, _ = select(parameters, "static_encoder.selection", list(inputs.static[window].view(-1, 1)))
        selection, enrichment, *first = (grn(parameters, f"static_encoder.contexts.{index}", selected) for index in range(4))
        state = (first[0], first[1])
    tokens, outputs = [], []
    for step in range(length + horizon):
        position = torch.tensor([(step + 1 - length) / length], dtype=inputs.y.dtype)
        if step < length:
            target = torch.stack([inputs.y[window, step], inputs.observed[window, step]])
            variables = [target, position, *inputs.past[window, step].view(-1, 1)]
            token, _ = select(parameters, "past_selection", variables, selection)
            state = lstm_step(parameters, "encoder", token, state)
        else:
            variables = [position, *inputs.future[window, step - length].view(-1, 1)]
            token, _ = select(parameters, "future_selection", variables, selection)
            state = lstm_step(parameters, "decoder", token, state)
        tokens.append(token)
        outputs.append(gated(parameters, "encoder_residual", state[0], token))
    enriched = [grn(parameters, "enrichment", output, enrichment) for output in outputs]
    first_observed = int((inputs.observed[window] > 0).nonzero()[0])
    raw, maps = [], []
    for step in range(length, length + horizon):
        heads = []
        for head in range(HEADS):
            rows = slice(head * WIDTH // HEADS, (head + 1) * WIDTH // HEADS)
            query = parameters["attention.query.weight"][rows] @ enriched[step]
            scores = torch.full((length + horizon,), -torch.inf, dtype=query.dtype)
            for key in range(first_observed, step + 1):
                scores[key] = query @ (parameters["attention.key.weight"][rows] @ enriched[key]) / math.sqrt(WIDTH // HEADS)
            heads.append(scores.softmax(0))
        weights = torch.stack(heads).mean(0)
        values = torch.stack([parameters["attention.value.weight"] @ token for token in enriched])
        attended = parameters["attention.out.weight"] @ (weights @ values)
        hidden = gated(parameters, "attention_residual", attended, enriched[step])
        hidden = gated(parameters, "output_residual", grn(parameters, "feedforward", hidden), outputs[step])
        raw.append(parameters["out.weight"] @ hidden + parameters["out.bias"])
        maps.append(weights)
    return torch.stack(raw), torch.stack(maps)


@pytest.mark.parametrize("sizes", [PLAIN, FULL])
def test_it_equals_the_equations_of_the_paper(sizes: InputSizes) -> None:
    body = shuffled(tft(sizes)).double().eval()
    inputs = some_inputs(sizes, windows=2, dtype=torch.float64)
    body.position = body.position.double()
    body.position.copy_(torch.arange(1 - sizes.input_size, sizes.horizon + 1).double().unsqueeze(1) / sizes.input_size)
    raw, maps = body.features(inputs), body.attention_maps(inputs, inputs.y[:, :4])
    for window in range(2):
        expected, weights = plain_tft(body, inputs, window, sizes)
        torch.testing.assert_close(raw[window], expected, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(maps[0].weights[window, 0], weights, atol=1e-9, rtol=1e-9)


def n_grn(width_in: int, width: int, width_out: int, context: bool = False) -> int:
    """Two hidden layers, the context, the gate, the norm, and the linear map of the skip connection if widths differ."""
    count = width_in * width + width + width * width + width + width * width * context
    count += width * 2 * width_out + 2 * width_out + 2 * width_out
    return count + (width_in * width_out + width_out if width_in != width_out else 0)


def test_it_has_the_parameters_of_the_paper() -> None:
    """The network for Electricity: window 168, horizon 24, d = 160, 4 heads, three quantiles; one static variable, past
    variables target, hour, day of week and time, future variables hour, day of week and time.

    With d = 160: a GRN without context has 2 (d^2 + d) + 2 d^2 + 2 d + 2 d = 103,360 parameters, with one d^2 = 25,600 more.
    Selection of V variables: embeddings 2 d each (3 d for the target with its mask), a GRN per variable, and, if V > 1, the GRN
    of the weights. An LSTM layer 4 (2 d^2 + 2 d). Gates with norms 2 d^2 + 2 d + 2 d. Attention 2 d^2 + 2 d (d / 4).
    """
    width = 160
    grn_d, gate = 4 * width**2 + 6 * width, 2 * width**2 + 4 * width
    assert n_grn(width, width, width) == grn_d == 103_360
    static = 2 * width + grn_d + 4 * grn_d
    past = 3 * width + 3 * 2 * width + 4 * grn_d + n_grn(4 * width, width, 4, context=True)
    future = 3 * 2 * width + 3 * grn_d + n_grn(3 * width, width, 3, context=True)
    lstms = 2 * 4 * (2 * width**2 + 2 * width)
    rest = gate + (grn_d + width**2) + (2 * width**2 + 2 * width * width // 4) + gate + grn_d + gate + 3 * width + 3
    sizes = InputSizes(input_size=168, horizon=24, out_features=3, past=2, future=2, static=1)
    body = TFTBody(sizes, TFTOptions(width, 4))
    assert sum(weight.numel() for weight in body.parameters()) == static + past + future + lstms + rest


def test_selection_weights_are_labelled_and_add_up_to_one() -> None:
    body, inputs = tft(FULL).eval(), some_inputs(FULL)
    attention, past, future, static = body.attention_maps(inputs, inputs.y[:, :4])
    assert [one.kind for one in (attention, past, future, static)] == [
        "self", "past variables", "future variables", "static variables"
    ]  # fmt: skip
    assert past.variables == ("target", "position", "x0", "x1")
    assert future.variables == ("position", "x0", "x1")
    assert static.variables == ("s0", "s1", "s2")
    assert past.queries.tolist() == list(range(-11, 1))
    assert future.queries.tolist() == attention.queries.tolist() == [1, 2, 3, 4]
    assert static.queries.tolist() == [0]
    for one in (attention, past, future, static):
        torch.testing.assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]), atol=1e-6, rtol=0)
    assert len(tft(PLAIN).eval().attention_maps(some_inputs(PLAIN), inputs.y[:, :4])) == 3


def test_the_seasonal_lag_is_a_future_variable() -> None:
    sizes = replace(FULL, season=3)
    body, inputs = tft(sizes, seasonal_lag=True).eval(), some_inputs(sizes)
    columns: list[Tensor] = []
    body.future_selection.register_forward_pre_hook(lambda _, given: columns.append(given[0]))
    body.features(inputs)
    expected = torch.stack([inputs.y[:, row] for row in (9, 10, 11, 9)], 1)  # one season before, the last one repeated
    assert torch.equal(columns[0][..., -2], expected)
    assert body.attention_maps(inputs, inputs.y[:, :4])[2].variables == ("position", "x0", "x1", "lag")


def test_no_step_sees_covariates_after_it() -> None:
    body, inputs = shuffled(tft(FULL)).eval(), some_inputs(FULL)
    for step in range(4):
        future = inputs.future.clone()
        future[:, step] += 1.0
        moved = (body.features(replace(inputs, future=future)) - body.features(inputs)).abs().amax((0, 2)) > 1e-6
        assert moved.tolist() == [later >= step for later in range(4)]


def test_dropout_leaves_forecasts_alone() -> None:
    body, inputs = tft(FULL, dropout=0.5), some_inputs(FULL)
    assert not torch.equal(body.features(inputs), body.features(inputs))
    body.eval()
    assert torch.equal(body.features(inputs), body.features(inputs))
