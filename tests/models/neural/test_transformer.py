"""The Transformer through the public API: what is kept is used, what is hidden is not seen, what cannot be is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from deepforecast import Transformer
from deepforecast.errors import ParameterError
from tests.models.neural.test_predict import panel

ROWS, HORIZON = 24, 6
SMALL: dict[str, Any] = {"input_size": ROWS, "d_model": 16, "n_heads": 2, "n_layers": 2, "max_steps": 5, "calendar": None}


def made(**given: Any) -> Transformer:
    return Transformer(horizon=HORIZON, **{**SMALL, **given})


def in_turn(**given: Any) -> Transformer:
    return made(output="autoregressive", **given)


class Watched:
    """How often the encoder of a fitted model runs, on how many windows; and how many rows a call of the decoder computes."""

    def __init__(self, model: Transformer) -> None:
        self.encoder, self.decoder, body = list[int](), list[int](), model.network_.body
        body.window_encoder.encoder.register_forward_hook(lambda _, given, __: self.encoder.append(given[0].shape[0]))
        body.decoder.layers[0].attention.in_proj.register_forward_hook(
            lambda _, given, __: self.decoder.append(given[0].numel() // SMALL["d_model"])
        )
        self.keys = list[int]()
        body.decoder.layers[0].cross.register_forward_hook(lambda _, given, __: self.keys.append(given[1].shape[0]))


def test_a_forecast_reads_the_window_once_and_computes_a_row_a_step() -> None:
    model = in_turn(head="point").fit(panel(3, 100))
    seen = Watched(model)
    model.predict()
    (rows,) = seen.encoder  # three series, filled up
    assert seen.decoder == [rows] * HORIZON


def test_so_do_paths_however_many_and_they_share_the_keys() -> None:
    model = in_turn(intervals="uncalibrated").fit(panel(3, 100))
    seen = Watched(model)
    model.simulate(50)
    (rows,) = seen.encoder
    assert seen.decoder == [rows * 50] * HORIZON
    assert seen.keys == [rows] * HORIZON


@pytest.mark.parametrize("drawn", [0, 10])
def test_a_step_costs_the_same_whichever_it_is(drawn: int) -> None:
    """Counted from outside: without what is kept, twelve steps would cost what 78 do; a step of attention itself is small."""
    frame, cost = panel(3, 60), []
    for horizon in (4, 8, 12):
        told = {"n_layers": 1, "max_steps": 1, "head": "quantiles" if drawn else "point", "output": "autoregressive"}
        model = Transformer(horizon=horizon, **{**SMALL, **told}).fit(frame)
        with FlopCounterMode(display=False) as counted:
            _ = model.simulate(drawn) if drawn else model.predict()
        cost.append(counted.get_total_flops())
    assert cost[2] - cost[1] <= 1.1 * (cost[1] - cost[0])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", None])
def test_forecasts_are_those_computed_anew_at_every_step(positions: str | None) -> None:
    frame = panel(3, 100)
    model = in_turn(head="point", positional_encoding=positions, patch_length=4, max_steps=40, learning_rate=1e-2).fit(frame)
    found = model.predict()["Transformer"].to_numpy().reshape(3, -1)
    network, y = model.network_, frame["y"].to_numpy().reshape(3, -1)[:, -ROWS:]
    place, spread = y.mean(axis=1, keepdims=True), y.std(axis=1, keepdims=True)
    from deepforecast.nn.batch import Inputs

    rows = torch.from_numpy((y - place) / spread).float()
    inputs = Inputs(rows, torch.ones_like(rows), *(rows.new_zeros(3, *shape) for shape in ((ROWS, 0), (HORIZON, 0), (0,))))
    told, values = rows[:, -1:], []
    with torch.inference_mode():
        for _ in range(HORIZON):
            values.append(network.body.forward_teacher_forced(inputs, told)[:, -1, 0])
            told = torch.cat([told, values[-1][:, None]], dim=1)
    expected = place + spread * torch.stack(values, 1).double().numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * spread.max())
    assert abs(np.diff(found)).min() > 0


def test_no_step_is_taught_by_what_comes_at_it() -> None:
    noise = np.random.default_rng(0).normal(size=2000)
    frame = pd.DataFrame({"unique_id": "a", "ds": np.arange(2000), "y": noise})
    model = in_turn(head="point", max_steps=150, learning_rate=1e-2, n_layers=1, season_length=1).fit(frame)
    assert model.training_report_["loss"].tail(20).mean() > 0.7  # the mean distance of noise is 0.8; of who peeps, none


@pytest.mark.filterwarnings("ignore:Transformer forecasts through missing values")
@pytest.mark.parametrize("output", ["direct", "autoregressive"])
@pytest.mark.parametrize("positions", ["sinusoidal", "alibi"])
def test_what_stands_before_a_series_begins_is_not_seen(output: str, positions: str) -> None:
    frame = panel(2, 60).assign(heat=lambda one: np.sin(np.arange(len(one))))
    told = {"head": "point", "output": output, "positional_encoding": positions, "patch_length": 1, "max_steps": 30}
    model = made(**told).fit(frame, columns={"past": ["heat"]})
    late = frame.groupby("unique_id").tail(ROWS).reset_index(drop=True)
    late.loc[late.groupby("unique_id").cumcount() < 10, "y"] = np.nan
    first = model.predict(frame=late)
    other = late.assign(heat=np.where(late.groupby("unique_id").cumcount() < 9, 7.0, late.heat))
    pd.testing.assert_frame_equal(model.predict(frame=other), first, check_exact=True)
    moved = late.assign(heat=np.where(late.groupby("unique_id").cumcount() == 12, 7.0, late.heat))
    assert (model.predict(frame=moved)["Transformer"] != first["Transformer"]).all()


@pytest.mark.parametrize("output", ["direct", "autoregressive"])
def test_where_it_looked_adds_up_and_is_never_ahead(output: str) -> None:
    frame = panel(2, 100)
    model = made(output=output, patch_length=4).fit(frame)
    seen = Watched(model)
    found = model.explain()
    assert len(seen.encoder) <= 2  # one to forecast, one to look: all steps and layers in one pass
    keys = ["unique_id", "kind", "layer", "head", "step"]
    np.testing.assert_allclose(found.groupby(keys)["weight"].sum(), 1.0, atol=1e-5)
    assert set(found["kind"]) == {"self", "cross"}
    assert found[keys[1:]].drop_duplicates().groupby(["kind", "layer"]).size().min() == 2 * HORIZON
    cross = found[found["kind"] == "cross"]
    assert (cross["lag"] <= cross["cutoff"]).all()
    if output == "autoregressive":
        ahead = found[(found["kind"] == "self") & (found["step"] > 0)]
        assert (ahead["weight"][ahead["lag"] > ahead["ds"]] == 0).all()
        assert (ahead["weight"][ahead["lag"] <= ahead["ds"]] > 0).all()


def test_the_calendar_is_a_place_too() -> None:
    frame = panel(2, 100)
    model = made(positional_encoding="calendar", calendar=["day_of_week"], head="point").fit(frame)
    moved = frame.assign(ds=frame["ds"] + pd.Timedelta(days=3))
    assert (model.predict(frame=moved)["Transformer"] != model.predict(frame=frame)["Transformer"]).all()
    with pytest.raises(ParameterError, match=r"Set e.g. calendar="):
        made(positional_encoding="calendar").fit(frame)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_heads": 3}, r"d_model=16 and n_heads=3\. Use n_heads=2 or d_model=15"),
        ({"d_model": 6, "positional_encoding": "rotary"}, r"d_model=6 and n_heads=2\. Use d_model=4"),
        ({"patch_length": 25}, r"patch_length=25 and input_size=24\. Set patch_length=6"),
        ({"patch_length": 4, "stride": 5}, r"stride=5 and patch_length=4\. Use stride=4"),
        ({"patch_length": 1, "stride": 2}, "stride=2 has no effect with patch_length=1. Set patch_length='auto', or"),
        ({"teacher_forcing": "free"}, "teacher_forcing='free' has no effect .* Set output='autoregressive', or omit"),
        ({"encoder_layers": 1, "decoder_layers": 1, "n_layers": 3}, "n_layers=3 has no effect without encoder_layers=None or"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        made(**given).fit(panel(1, 60))


def test_layers_are_as_many_as_are_asked_for() -> None:
    frame = panel(1, 60)
    body = made(encoder_layers=3, n_layers=1, dim_feedforward=5, stride=2, patch_length=4).fit(frame).network_.body
    assert (len(body.window_encoder.encoder.layers), len(body.decoder.layers)) == (3, 1)
    assert body.window_encoder.encoder.layers[0].feedforward.linear1.out_features == 5
    assert body.window_encoder.patches.n_patches == 12


def test_a_fit_of_every_sort_goes_on_and_back() -> None:
    """Scheduled sampling, dropout, each normalisation: two fits are the same, and dropout makes another one."""
    frame = panel(2, 60)
    for given in ({"teacher_forcing": "linear"}, {"normalization": "batch", "norm_first": False}, {"normalization": "rms"}):
        one, two = (in_turn(dropout=0.2, head="point", **given).fit(frame).predict() for _ in range(2))
        pd.testing.assert_frame_equal(one, two, check_exact=True)
        assert (in_turn(head="point", **given).fit(frame).predict()["Transformer"] != one["Transformer"]).all()
