"""DeepAR: the same layers read window and horizon; a forecast step by step equals the pass of the training."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from deepforecast.data.windows import WindowColumns
from deepforecast.nn.batch import Batch, Inputs, InputSizes
from deepforecast.nn.deepar import DeepARBody
from deepforecast.nn.heads.registry import make_head
from deepforecast.nn.network import AutoregressiveBody, ForecastNetwork
from deepforecast.nn.recurrent import RecurrentOptions
from tests.nn.bodies import FULL, PLAIN, rows, seeded, some_inputs

WIDE = replace(FULL, past=4)  # two future and two past covariates
ONE_STEP = replace(PLAIN, input_size=1)
OPTIONS = RecurrentOptions("lstm", 6, 2, dropout=0.1)


def made(sizes: InputSizes, lags: tuple[int, ...] = (3,), options: RecurrentOptions = OPTIONS) -> DeepARBody:
    return seeded(lambda: DeepARBody(sizes, options, lags)).eval()


def previous_values(n_steps: int = 4) -> Tensor:
    return torch.randn(5, n_steps, generator=torch.Generator().manual_seed(2))


def by_the_paper(body: DeepARBody, inputs: Inputs, previous: Tensor) -> Tensor:
    """Outputs of all steps from the first one that is read, one window and one step after the other.

    The window has the steps 1 to T; `past` begins with the future covariates.
    """
    cells = [cast(nn.LSTM, body.layers.cells[0]).all_weights[layer] for layer in range(2)]
    n_window, n_known = inputs.y.shape[1], inputs.future.shape[2]
    windows = []
    for window in range(len(inputs.y)):
        values = torch.cat([inputs.y[window, :-1], previous[window]]).tolist()
        masks = [*inputs.observed[window, :-1].tolist(), *[1.0] * previous.shape[1]]
        hidden, memory, outputs = [torch.zeros(6)] * 2, [torch.zeros(6)] * 2, []
        for step in range(body.begin + 1, n_window + previous.shape[1] + 1):
            numbers = []
            for lag in body.lags:
                known_lag = step - lag >= 1
                numbers += [values[step - lag - 1], masks[step - lag - 1]] if known_lag else [0.0, 0.0]
            if step <= n_window:
                numbers += inputs.past[window, step - 1, :n_known].tolist()
            else:
                numbers += inputs.future[window, step - n_window - 1].tolist()
            numbers += inputs.static[window].tolist()
            n_past = inputs.past.shape[2] - n_known
            if n_past and 2 <= step <= n_window + 1:
                numbers += [*inputs.past[window, step - 2, n_known:].tolist(), 1.0]
            elif n_past:
                numbers += [0.0] * (n_past + 1)
            x = torch.tensor(numbers)
            for layer, (weight_ih, weight_hh, bias_ih, bias_hh) in enumerate(cells):
                i, f, g, o = (weight_ih @ x + bias_ih + weight_hh @ hidden[layer] + bias_hh).chunk(4)
                memory[layer] = torch.sigmoid(f) * memory[layer] + torch.sigmoid(i) * torch.tanh(g)
                x = hidden[layer] = torch.sigmoid(o) * torch.tanh(memory[layer])
            outputs.append(body.out(x))
        windows.append(torch.stack(outputs))
    return torch.stack(windows)


@pytest.mark.parametrize("lags", [(), (3,), (2, 6, 7), (11, 12, 13)], ids=str)
@pytest.mark.parametrize("sizes", [PLAIN, FULL, WIDE], ids=["plain", "known", "past"])
def test_body_is_the_network_of_the_paper(sizes: InputSizes, lags: tuple[int, ...]) -> None:
    body, inputs = made(sizes, lags), some_inputs(sizes)
    with torch.no_grad():
        outputs = body.forward_all_positions(inputs, previous_values())
        expected = by_the_paper(body, inputs, previous_values())
        torch.testing.assert_close(outputs, expected, atol=1e-6, rtol=1e-5)
        assert torch.equal(body.forward_teacher_forced(inputs, previous_values()), outputs[:, -4:])


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("sizes", [PLAIN, WIDE, ONE_STEP], ids=["plain", "past", "one step"])
def test_step_by_step_equals_one_pass(sizes: InputSizes, cell: str) -> None:
    for lags in ((), (3,), (11, 12, 13), (30,)):
        body, inputs = made(sizes, lags, replace(OPTIONS, cell=cell)), some_inputs(sizes)
        expected = AutoregressiveBody.forward_teacher_forced(body, inputs, previous_values())
        torch.testing.assert_close(
            body.forward_teacher_forced(inputs, previous_values()), expected, atol=1e-6, rtol=1e-5
        )


def test_reading_begins_where_all_lags_are_known_or_in_the_middle() -> None:
    assert [made(PLAIN, lags).begin for lags in ((), (3,), (6,), (7,), (30,))] == [1, 3, 6, 6, 6]
    assert made(ONE_STEP).begin == 0


def test_every_input_and_weight_has_an_effect_and_windows_do_not_mix() -> None:
    body, inputs = made(WIDE), some_inputs(WIDE)
    outputs = body.forward_teacher_forced(inputs, previous_values())
    outputs.square().sum().backward()
    for name, weight in body.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name
    for field in ("y", "observed", "past", "future", "static"):
        changed = replace(inputs, **{field: getattr(inputs, field) + 1.0})
        assert not torch.allclose(body.forward_teacher_forced(changed, previous_values()), outputs, atol=1e-4), field
    for window in range(5):
        alone = body.forward_teacher_forced(rows(inputs, window, window + 1), previous_values()[window : window + 1])
        torch.testing.assert_close(alone, outputs[window : window + 1], atol=1e-5, rtol=1e-4)


def test_no_step_depends_on_what_comes_after_it() -> None:
    body, inputs = made(WIDE), some_inputs(WIDE)
    outputs = body.forward_all_positions(inputs, previous_values())
    for row in range(12):  # time step `row` of the window is an input of the next one at the earliest
        y, past = inputs.y.clone(), inputs.past.clone()
        y[:, row] += 1.0
        past[:, row, 2:] += 1.0
        moved = (body.forward_all_positions(replace(inputs, y=y, past=past), previous_values()) - outputs).abs().amax((0, 2)) > 0
        first = max(row + 1 - body.begin, 0)
        assert not moved[:first].any()
        assert moved[-4:].all()
        assert moved[first] or row + 1 < body.begin  # before it only some lags are read
    for step in range(4):
        future = inputs.future.clone()
        future[:, step] += 1.0
        moved = (body.forward_all_positions(replace(inputs, future=future), previous_values()) - outputs).abs().amax((0, 2)) > 0
        assert moved.nonzero().flatten().tolist() == list(range(12 - body.begin + step, len(moved)))


def test_number_of_parameters() -> None:
    """The configuration of GluonTS for hourly data, arXiv:1704.04110 section 4 with its lags and features.

    Two layers of 40 cells. Inputs: 4 * 10 - 3 = 37 lags here (the previous value and 36 more) with their masks, 2 * 37 = 74;
    5 future features (age and 4 of the calendar), 1 static one: 80 in all.
    Layer 1: 4 * 40 * (80 + 40) + 2 * 4 * 40 = 19,520; layer 2: 4 * 40 * (40 + 40) + 320 = 13,120.
    Student's t has 3 parameters: 3 * 40 + 3 = 123. Together 32,763.
    """
    sizes = InputSizes(input_size=200, horizon=24, out_features=3, past=5, future=5, static=1)
    body = DeepARBody(sizes, RecurrentOptions("lstm", 40, 2), lags=range(2, 38))
    assert sum(weight.numel() for weight in body.parameters()) == 19_520 + 13_120 + 123


def network(head: str = "point") -> ForecastNetwork:
    made_head = make_head(head, loss="mae" if head == "point" else None, quantiles=None)
    sizes = replace(PLAIN, out_features=made_head.out_features)
    return ForecastNetwork(sizes, made(sizes), made_head, scaler="mean_abs").train()


def batch(weight: Tensor | None = None) -> Batch:
    generator = torch.Generator().manual_seed(3)
    y, target = (5 + torch.randn(4, n, generator=generator, dtype=torch.float64) for n in (12, 4))
    y[0, :2], y[1, 7], target[2, 1] = torch.nan, torch.nan, torch.nan
    codes = torch.zeros(4, 12, 0, dtype=torch.int64)
    empty = torch.zeros(4, 12, 0)
    ones = torch.ones(4, 1, dtype=torch.float64)
    return Batch(
        y, empty, empty[:, :4], empty[:, 0], codes, codes[:, :4], codes[:, 0], 0 * ones, ones, target=target, weight=weight
    )


def test_loss_is_the_mean_over_window_and_horizon() -> None:
    net, windows = network(), batch()
    net.body.drop.p = 0.0  # type: ignore[union-attr,assignment]
    for layer in net.body.layers.cells:  # type: ignore[union-attr]
        layer.dropout = 0.0  # type: ignore[assignment]
    errors = []
    y, target = windows.y, cast(Tensor, windows.target)
    for window in range(4):
        values = torch.cat([y[window], target[window]])
        scale = y[window].nanmean()  # all values are positive
        inputs, _ = net.inputs(windows.select_windows(window, window + 1))
        last, previous = y[window][~y[window].isnan()][-1], []
        for value in [last, *target[window, :-1]]:
            last = last if value.isnan() else value
            previous.append(last / scale)
        outputs = net.body.forward_all_positions(inputs, torch.stack(previous).float().unsqueeze(0))  # type: ignore[operator]
        assert outputs.shape == (1, 9 + 4, 1)  # read from the largest lag on, 3
        found = (outputs.flatten() - values[3:] / scale).abs()
        errors += found[~values[3:].isnan()].tolist()
    assert len(errors) == 4 * 13 - 2
    torch.testing.assert_close(net.loss(windows).item(), sum(errors) / len(errors), atol=1e-5, rtol=1e-5)


def test_observation_weights_count_in_window_and_horizon_and_validation_is_by_the_horizon() -> None:
    net, ones = network("student_t").eval(), torch.ones(4, 4)
    weights = replace(batch(ones), past_weight=torch.zeros(4, 12))
    changed = cast(Tensor, batch().target) + torch.tensor([0.0, 0.0, 0.0, 9.0])
    with torch.no_grad():
        assert net.loss(batch(), 1.0) == net.loss(replace(weights, past_weight=torch.ones(4, 12)), 1.0)
        assert net.loss(batch(), 1.0) != net.loss(weights, 1.0)
        horizon = replace(weights, weight=torch.tensor([1.0, 1.0, 1.0, 0.0]).repeat(4, 1))
        assert net.loss(horizon, 1.0) == net.loss(replace(horizon, target=changed), 1.0)
        assert net.loss(batch()) == net.loss(weights)


def test_future_covariates_are_found_in_the_past() -> None:
    """`past`: future and past numbers, the calendar, embeddings of future and of past categories."""
    columns = WindowColumns.__new__(WindowColumns)
    object.__setattr__(columns, "numeric", ("price", "visits", "clicks"))
    object.__setattr__(columns, "n_future", 1)
    # A calendar of 2 columns, an embedding of 2 columns known in the future, and one of 3 that is not.
    sizes = InputSizes(input_size=4, horizon=2, out_features=1, past=3 + 2 + 2 + 3, future=1 + 2 + 2, window_columns=columns)
    assert sizes.future_positions == (0, 3, 4, 5, 6)
    assert DeepARBody(sizes, OPTIONS).past_columns.tolist() == [1, 2, 7, 8, 9]
