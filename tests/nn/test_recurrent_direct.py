"""All steps at once: each from the state of its own row, whatever the layers are."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.network import DirectBody
from deepforecast.nn.recurrent import Recurrent, RecurrentDirect, RecurrentOptions, lagged_states, readout_lag
from tests.nn.bodies import FULL, keeps_the_rules, seeded, shuffled, some_inputs

SMALL = RecurrentOptions(hidden_size=6)
SHORT = InputSizes(input_size=4, horizon=3, out_features=3, past=2, future=2, static=3)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_it_keeps_the_rules(cell: str) -> None:
    for bidirectional, normalization in ((False, None), (True, "batch")):
        options = RecurrentOptions(cell, 6, 2, bidirectional, 0.1, True, normalization)
        keeps_the_rules(lambda sizes, options=options: RecurrentDirect(sizes, options, decoder_size=8))


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_every_sum_of_options_trains(cell: str) -> None:
    inputs = some_inputs(SHORT)
    for n_layers, bidirectional, residual, dropout in product((1, 2, 3), (False, True), (False, True), (0.0, 0.3)):
        for number, normalization in enumerate((None, "layer", "batch")):
            options = RecurrentOptions(cell, 4, n_layers, bidirectional, dropout, residual, normalization)
            body = seeded(lambda options=options, number=number: RecurrentDirect(SHORT, options, None, number, 16))
            found = seeded(lambda body=body: body.features(inputs))
            assert found.shape == (5, 3, 3)
            assert found.isfinite().all()
            found.square().sum().backward()
            assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in body.parameters())
            body.eval()
            with torch.no_grad():
                assert torch.equal(body.features(inputs), body.features(inputs))


def test_a_perceptron_beside_sees_the_window_and_moves_the_places_alone() -> None:
    keeps_the_rules(lambda sizes: RecurrentDirect(sizes, SMALL, decoder_size=8, skip_hidden_sizes=(7,)))
    sizes, inputs = replace(SHORT, location_slice=slice(1, 2)), some_inputs(SHORT)
    body = seeded(lambda: RecurrentDirect(sizes, SMALL, decoder_size=8, skip_hidden_sizes=()))
    assert body.skip is not None
    with torch.no_grad():
        before = body.features(inputs)
        for weight in body.skip.parameters():
            weight.zero_()
        assert (before != body.features(inputs)).flatten(0, 1).any(0).tolist() == [False, True, False]
        body.skip.get_parameter("mlp.layers.0.weight")[1, 2] = 2.0  # of the window's third row for the second step
        told = body.skip(inputs, torch.zeros(5, 6))
    assert torch.equal(told[:, 1, 1], 2 * inputs.y[:, 2])
    assert told.count_nonzero() == inputs.y[:, 2].count_nonzero()


def test_which_row_a_step_reads() -> None:
    def read(input_size: int, horizon: int, season: int | None) -> list[float]:
        sizes = InputSizes(input_size, horizon, 1)
        rows = torch.arange(float(input_size)).view(1, -1, 1)
        return lagged_states(rows, readout_lag(sizes, season), horizon).flatten().tolist()

    assert read(6, 3, None) == read(6, 3, 1) == read(6, 3, 7) == [3, 4, 5]  # no season, or none that fits: the last rows
    assert read(6, 3, 4) == [2, 3, 4]  # one season before, in phase
    assert read(6, 5, 2) == [4, 5, 4, 5, 4]  # the last season over and over
    assert read(3, 7, None) == [0, 1, 2, 0, 1, 2, 0]  # longer than what is read


@pytest.mark.parametrize("season", [None, 5])
def test_a_covariate_of_a_step_ahead_moves_that_step_alone(season: int | None) -> None:
    body = shuffled(seeded(lambda: RecurrentDirect(FULL, SMALL, season))).eval()
    inputs = some_inputs(FULL)
    for step in range(4):
        future = inputs.future.clone()
        future[:, step] += 1.0
        moved = (body.features(replace(inputs, future=future)) - body.features(inputs)).abs().amax((0, 2)) > 1e-4
        assert moved.tolist() == [other == step for other in range(4)]


@pytest.mark.parametrize("silent", ["step_projection", "state_projection"])
def test_dropout_acts_on_all_states_that_are_read(silent: str) -> None:
    body, inputs = seeded(lambda: RecurrentDirect(FULL, replace(SMALL, dropout=0.5), decoder_layers=0)), some_inputs(FULL)
    with torch.no_grad():
        body.get_submodule(silent).weight.zero_()
    one, other = (seeded(lambda: body.features(inputs), seed) for seed in (0, 1))
    assert not torch.equal(one, other)


def test_both_ways_the_state_at_the_end_of_reading_is_that_of_both_ways() -> None:
    options = RecurrentOptions("gru", 6, 2, bidirectional=True)
    body, inputs = seeded(lambda: RecurrentDirect(FULL, options)), some_inputs(FULL)
    out, state = body.encoder(inputs.past_features)
    states, final_state = body.encode(inputs.past_features)
    assert torch.equal(states, out)
    torch.testing.assert_close(final_state, torch.cat(state[-2:], dim=-1))


def test_a_history_of_nothing_but_padding_is_finite() -> None:
    for cell, normalization in product(("lstm", "gru", "rnn"), (None, "layer", "batch")):
        options = RecurrentOptions(cell, 6, 2, normalization=normalization)
        body = seeded(lambda options=options: RecurrentDirect(FULL, options))
        inputs = some_inputs(FULL)
        for rows in (0, 1):
            seen = torch.zeros_like(inputs.observed)
            seen[:, 12 - rows :] = 1.0
            short = replace(inputs, observed=seen, y=inputs.y * seen, past=inputs.past * seen.unsqueeze(-1))
            for body_now in (body.train(), body.eval()):
                assert body_now.features(short).isfinite().all()


def test_on_another_device_nothing_is_left_behind() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        for options in (RecurrentOptions("lstm", 2, 2, True, 0.1, True, "batch"), RecurrentOptions("gru", 2)):
            with torch.device("meta"):  # only while building: what `features` builds has to follow its inputs by itself
                body = RecurrentDirect(InputSizes(3, 4, 3, 2, 2, 3), options, season=2)
                inputs = Inputs(*(torch.empty(shape) for shape in ((5, 3), (5, 3), (5, 3, 2), (5, 4, 2), (5, 3))))
            found = body.features(inputs)
            found.sum().backward()
            assert {one.device.type for one in (found, *(weight.grad for weight in body.parameters()))} == {"meta"}
        with pytest.raises(RuntimeError, match="device"):  # a mixture would be found
            found + torch.ones(5, 4, 3)


# --- learning -------------------------------------------------------------------------------------------------------------


class LastStateOnly(DirectBody):
    """The usual head: all steps from the last state."""

    def __init__(self, sizes: InputSizes) -> None:
        super().__init__()
        self.encoder = Recurrent(sizes.past_features, RecurrentOptions(hidden_size=24))
        self.decoder = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, sizes.horizon))

    def features(self, inputs: Inputs) -> Tensor:
        found: Tensor = self.decoder(self.encoder(inputs.past_features)[0][:, -1])
        return found.unsqueeze(-1)


def seasonal(sizes: InputSizes, windows: int, season: int, seed: int) -> tuple[Inputs, Tensor]:
    """Seasons of any shape on a random walk, and what follows."""
    drawn = torch.Generator().manual_seed(seed)
    length = sizes.input_size + sizes.horizon
    shape = torch.randn(windows, season, generator=drawn).repeat(1, -(-length // season))[:, :length]
    walk = torch.randn(windows, length, generator=drawn).cumsum(1) / 10
    y = shape + walk
    past, ahead = y[:, : sizes.input_size], y[:, sizes.input_size :]
    nothing = torch.zeros(windows, 0)
    known = (past, torch.ones_like(past), torch.zeros(*past.shape, 0), torch.zeros(*ahead.shape, 0), nothing)
    return Inputs(*known), ahead


def error_after(body: DirectBody, sizes: InputSizes, season: int, steps: int) -> float:
    optimizer = torch.optim.AdamW(body.parameters(), lr=5e-3)
    for step in range(steps):
        inputs, ahead = seasonal(sizes, 64, season, seed=1 + step)
        optimizer.zero_grad()
        (body.features(inputs).squeeze(-1) - ahead).abs().mean().backward()
        optimizer.step()
    with torch.no_grad():
        inputs, ahead = seasonal(sizes, 256, season, seed=0)
        return float((body.features(inputs).squeeze(-1) - ahead).abs().mean())


def test_seasons_are_learned_in_a_few_steps() -> None:
    sizes, options = InputSizes(input_size=24, horizon=10, out_features=1), RecurrentOptions(hidden_size=24)
    inputs, ahead = seasonal(sizes, 256, 8, seed=0)
    naive = float((lagged_states(inputs.y.unsqueeze(-1), 8, 10).squeeze(-1) - ahead).abs().mean())
    told = error_after(seeded(lambda: RecurrentDirect(sizes, options, season=8)), sizes, 8, steps=40)
    alone = error_after(seeded(lambda: LastStateOnly(sizes)), sizes, 8, steps=40)
    assert told < 1.2 * naive
    assert alone > 2 * told
