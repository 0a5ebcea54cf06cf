"""What watches over a run: the best weights are kept, what blows up is caught, and the run ends when it is to end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import GRU, LSTM, MLP, NBEATS, RNN, DLinear, NLinear
from deepforecast.core.monitor import Monitor
from deepforecast.datasets import generate
from deepforecast.errors import ParameterError, TrainingError, TrainingWarning
from deepforecast.training import callbacks as room
from tests.clock import stopped
from tests.training.runs import FRAME, lstm, same, stopping, watched, weights

SMALL = {"horizon": 4, "input_size": 12, "batch_size": 8}


def noise(count: int = 60) -> pd.DataFrame:
    """A series of noise: a network that overfits it gets worse."""
    stamps = pd.date_range("2024-01-01", periods=count, freq="D")
    return pd.DataFrame({"unique_id": "a", "ds": stamps, "y": np.random.default_rng(3).normal(size=count)})


def held_out(model: Any, frame: pd.DataFrame) -> float:
    """The loss of a fitted model on its validation rows."""
    import torch

    with torch.no_grad():
        losses = [float(model.network_.loss(batch)) for batch in model.datamodule(frame).validation]
    return float(np.mean(losses))


# -- the best weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"ema_decay": 0.9}], ids=["plain", "ema_decay"])
def test_the_best_weights_on_validation_are_kept_where_the_last_are_worse(given: dict[str, Any]) -> None:
    model = MLP(**SMALL, hidden_sizes=[32], max_steps=60, learning_rate=0.02, lr_schedule="constant", validation_size=12,
                validate_every=5, recent_windows=20, **given)  # fmt: skip
    report = model.fit(noise()).training_report_
    kept, values = report[report.selected], report.validation_loss.dropna()
    assert values.iloc[-1] > 1.05 * values.min()
    assert kept.validation.tolist() == [values.min()]
    assert values.index.tolist() == list(range(4, 60, 5))
    assert held_out(model, noise()) == pytest.approx(values.min(), rel=1e-6)
    assert model.stop_reason_ == "all steps done"


def test_validation_rows_are_the_last_and_not_learned_from() -> None:
    """Other values there: the same batches, the same weights after each step, another loss on validation."""
    changed = FRAME.copy()
    ends = changed.groupby("unique_id").cumcount(ascending=False) < 10
    changed.loc[ends, "y"] *= 3
    one, other = (lstm(validation_size=10, validate_every=100).fit(frame) for frame in (FRAME, changed))
    assert one.training_report_.loss.equals(other.training_report_.loss)
    assert same(one, other)
    assert one.training_report_.validation_loss.iloc[-1] != other.training_report_.validation_loss.iloc[-1]


def test_patience_ends_after_so_many_looks_without_a_better_one() -> None:
    model = MLP(
        **SMALL,
        hidden_sizes=[32],
        max_steps=400,
        learning_rate=0.02,
        lr_schedule="constant",
        validation_size=12,
        validate_every=5,
        patience=3,
        recent_windows=20,
    )
    report = model.fit(noise()).training_report_
    assert model.stop_reason_ == "no improvement on validation"
    assert len(report) < 400
    assert int(report.step[report.selected].iloc[0]) == len(report) - 15
    assert report.validation_loss.dropna().iloc[-4:].idxmin() == len(report) - 16


def test_a_loss_that_is_no_number_on_validation_is_not_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    values: Iterator[float] = iter([math.nan, 2.0, 1.0, 3.0])
    monkeypatch.setattr(room, "validation_loss", lambda *_: next(values))
    report = lstm(max_steps=20, validation_size=10, validate_every=5).fit(FRAME).training_report_
    assert report.step[report.selected].tolist() == [15]


@pytest.mark.parametrize(
    ("given", "said"), [({"patience": 3}, "Set `validation_size` to"), ({"validation_size": 89}, "validation_size=89 and at most 90")]
)
def test_validation_that_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        lstm(**given).fit(FRAME)


# -- the average ------------------------------------------------------------------------------------------------------------


def test_the_average_is_that_of_the_weights_after_each_step() -> None:
    """By hand: from fits that end after 1, 2, ... steps of the same schedule."""
    given: dict[str, Any] = {**SMALL, "head": "point", "lr_schedule": "constant", "warmup": 0.0}
    path = [weights(DLinear(**given, max_steps=steps).fit(FRAME)) for steps in range(1, 5)]
    begin = weights(DLinear(**given, max_steps=1, learning_rate=1e-30).fit(FRAME))
    mean = begin
    for done, now in enumerate(path, start=1):
        decay = min(0.25, (done + 1) / (done + 10))
        mean = {name: decay * mean[name] + (1 - decay) * now[name] for name in mean}
    found = weights(DLinear(**given, max_steps=4, ema_decay=0.25).fit(FRAME))
    for name, value in found.items():
        np.testing.assert_allclose(value, mean[name], rtol=1e-4, atol=1e-6)
    assert max(np.abs(found[name] - path[-1][name]).max() for name in found) > 1e-4


# -- what goes wrong --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e4, 1e18])
@pytest.mark.parametrize("kind", [DLinear, NLinear, MLP, NBEATS, RNN, GRU, LSTM], ids=lambda kind: kind.__name__)
def test_learning_rate_much_too_large(kind: Any, rate: float) -> None:
    """Either a warning names the step and the fix, or the forecast is close to the data."""
    frame = generate(2, 60)
    wide = float(frame.y.max() - frame.y.min())
    model = kind(**SMALL, max_steps=30, learning_rate=rate)
    try:
        model.fit(frame)
    except TrainingError as error:
        said = str(error)
    else:
        said = ""
        assert (model.predict()[kind.__name__] - frame.y.mean()).abs().max() < 20 * wide
    assert not said or ("step 30" in said and "learning_rate" in said)


def test_a_loss_that_blows_up_goes_back_to_the_last_good_weights_at_half_the_rate() -> None:
    given: dict[str, Any] = {
        "lr_schedule": "constant",
        "warmup": 0.0,
        "trainer": {"gradient_clip_val": None},
        "head": "point",
        "loss": "mse",
    }
    with pytest.warns(TrainingWarning, match=r"40 of 100 training steps were undone.* with 0.0625 times") as warned:
        report = lstm(**given, learning_rate=0.5, max_steps=100).fit(FRAME).training_report_
    assert len(warned) == 1
    rates = report.learning_rate.unique()
    assert len(rates) > 1
    np.testing.assert_allclose(rates, 0.5 / 2.0 ** np.arange(len(rates)))
    assert (report.learning_rate.groupby(report.index // room.CHECK_EVERY).nunique() == 1).all(), "from the step after the look on"
    assert report.loss.iloc[-20:].mean() < 10 * max(report.loss.iloc[0], 1.0)


# -- when it ends -----------------------------------------------------------------------------------------------------------


def test_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(monkeypatch, step=0.01)
    model = lstm(max_steps=100_000, time_limit=0.3).fit(FRAME)
    report = model.training_report_
    assert model.stop_reason_ == "time limit reached"
    assert 0.3 <= report.seconds.iloc[-1] < 3.0
    assert (report.seconds.iloc[:-1] < 0.3).all()
    assert np.isfinite(model.predict().LSTM).all()


def test_told_to_stop_with_the_best_so_far() -> None:
    seen: list[tuple[float, int]] = []
    monitor = Monitor(lambda value, step: seen.append((value, step)), stop_when=stopping(13))
    model = watched(lstm(validation_size=10, validate_every=5), monitor)
    assert model.stop_reason_ == "stopped by the caller"
    assert len(model.training_report_) == 13
    assert [step for _, step in seen] == [5, 10]
    best = min(seen)
    assert model.training_report_.step[model.training_report_.selected].tolist() == [best[1]]
    assert held_out(model, FRAME) == pytest.approx(best[0], rel=1e-6)


def test_epochs_are_passes_over_all_windows() -> None:
    model = DLinear(**SMALL, max_epochs=2).fit(FRAME)
    windows = 3 * (90 - 12 - 4 + 1)
    assert len(model.training_report_) == 2 * math.ceil(windows / 8)


def test_report_of_a_run() -> None:
    model = lstm(validation_size=10, validate_every=10, trainer={"accumulate_grad_batches": 2}, max_steps=25).fit(FRAME)
    report = model.training_report_
    assert report.columns.tolist() == ["step", "loss", "learning_rate", "gradient_norm", "seconds", "validation_loss", "selected"]
    assert report.step.tolist() == list(range(1, 26))
    assert report.step[report.validation_loss.notna()].tolist() == [10, 20, 25]
    assert report.selected.sum() == 1
    assert np.isfinite(report[["loss", "learning_rate", "gradient_norm", "seconds"]]).all(axis=None)
    assert (report.gradient_norm > 0).all()
    assert report.learning_rate.idxmax() in (1, 2)


def test_rows_held_out_of_short_series_are_no_targets() -> None:
    """Where a series is hardly longer than the horizon, its windows reach into the rows held out: as nothing known."""
    frame = generate(3, 20, seed=1)
    moved = frame.assign(y=frame.y + 500.0 * (frame.groupby("unique_id").cumcount() >= 14))
    given = {"horizon": 14, "hidden_sizes": [8], "max_steps": 5, "validation_size": 6, "batch_size": 32}
    one, other = (MLP(**given).fit(each).training_report_.loss for each in (frame, moved))
    np.testing.assert_array_equal(one, other)


def test_other_series_are_no_targets_of_a_short_one() -> None:
    """Whatever level the series beside them has, the windows of short series are the same, in validation too."""
    short, long = generate(2, 9, seed=1), generate(2, 40, seed=2)
    found = []
    for level in (0.0, 1e6):
        frame = pd.concat([short, long.assign(unique_id="zz" + long.unique_id, y=long.y + level)], ignore_index=True)
        model = MLP(horizon=14, input_size=3, validation_size=2, hidden_sizes=[8], max_steps=5, batch_size=32)
        found.append(model.fit(frame).training_report_)
    np.testing.assert_allclose(found[0].loss, found[1].loss, rtol=1e-4)
    np.testing.assert_allclose(found[0].validation, found[1].validation, rtol=1e-4)
