"""Leakage: through every public call, nothing after a cutoff moves a forecast made at it, nor a step one before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from deepforecast import (
    LSTM,
    BacktestOptions,
    Conformal,
    Forecaster,
    Naive,
    SeasonalNaive,
    Seq2Seq,
    Transformer,
    WindowMean,
    compare,
    cross_validate,
)
from deepforecast.nn.batch import Inputs
from deepforecast.testing.subject import Subject
from tests.bad_input import ALL, made, within
from tests.frames import P, same
from tests.helpers_models import FutureRegression

H, WINDOWS = 3, 3
PERTURBATIONS: dict[str, Callable[[pd.Series], Any]] = {
    "flipped": lambda y: -37 * y + 1e5,
    "noise": lambda y: np.random.default_rng(1).normal(size=len(y)),
    "constant": lambda y: 7.0,
}
pytestmark = pytest.mark.filterwarnings("ignore:.*lie far outside the history:UserWarning")  # of such values
# Multiplicative forms warn if the changed values leave them without a plausible forecast.
replaced = pytest.mark.filterwarnings("ignore:.*multiplicative forms such as:deepforecast.errors.DataWarning")
changed = pytest.mark.parametrize("change", PERTURBATIONS.values(), ids=PERTURBATIONS)


def noisy(k: int = 3, n: int = 40) -> pd.DataFrame:
    frame = P(k, n)
    return frame.assign(y=frame["y"] + np.random.default_rng(0).normal(size=len(frame)))


def from_end(frame: pd.DataFrame) -> pd.Series:
    """How many rows of its series come after each row."""
    return frame.groupby("unique_id").cumcount(ascending=False)


def judged(found: pd.DataFrame, windows: int) -> pd.DataFrame:
    """The forecasts of the first windows, without the actual values."""
    first = found["cutoff"].isin(np.sort(found["cutoff"].unique())[:windows])
    return found.loc[first].drop(columns="y").reset_index(drop=True)


def levels(model: Forecaster) -> list[int] | None:
    return [50, 80] if model.capabilities.distribution is not None else None


def changes(model: Forecaster) -> list[Callable[[pd.Series], Any]]:
    """All of them, but one of a model that takes its time to learn: the contract's checks try it with the others."""
    return list(PERTURBATIONS.values())[: None if model.capabilities.local else 1]


@ALL
def test_cross_validate_equals_predict_on_the_rows_up_to_the_cutoff(subject: Subject) -> None:
    """A window is that of a frame whose rows after its cutoff are not there at all."""
    model, frame = made(subject, H), noisy()
    found = cross_validate(
        model, frame, n_windows=WINDOWS, level=levels(model), options=BacktestOptions(align="series"), refit=True
    )
    for window in range(WINDOWS):
        history = frame[from_end(frame) >= H * (WINDOWS - window)]
        wanted = model.clone().fit(history).predict(level=levels(model))
        own = found[found["cutoff"] == history["ds"].max()].drop(columns=["cutoff", "y"])
        same(own.reset_index(drop=True), wanted)


def follows(model: Forecaster, frame: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether forecasts depend on histories after the fit; those of time alone do not."""
    fitted = model.clone().fit(frame)
    return not fitted.predict(frame=other).equals(fitted.predict(frame=frame))


@replaced
@ALL
def test_values_after_a_cutoff(subject: Subject) -> None:
    model, frame = made(subject, H), noisy()
    options: dict[str, Any] = {"n_windows": WINDOWS, "level": levels(model)}
    wanted = cross_validate(model, frame, **options)
    board = compare([model, Naive(alias="skip_hidden_sizes")], frame, horizon=H, **options)
    for number, change in enumerate(changes(model)):
        window = number % WINDOWS
        later = from_end(frame) < H * (WINDOWS - window)
        other = frame.assign(y=frame["y"].mask(later, within(subject, change(frame["y"]))))
        found = cross_validate(model, other, **options)
        same(judged(found, window + 1), judged(wanted, window + 1))
        if window + 1 < WINDOWS and judged(found, WINDOWS).equals(judged(wanted, WINDOWS)):
            assert not follows(model, frame, other)  # or nothing would have been changed
        again = compare([model, Naive(alias="skip_hidden_sizes")], other, horizon=H, **options)
        same(judged(again.forecasts, window + 1), judged(board.forecasts, window + 1))


@replaced
@ALL
def test_future_of_another_series(subject: Subject) -> None:
    """Its values after the cutoff reach no model; of local ones, none of its values reach another series at all."""
    model, frame = made(subject, H), noisy()
    wanted = cross_validate(model, frame, n_windows=WINDOWS, level=levels(model))
    for change in changes(model):
        theirs = (frame["unique_id"] == "s002") & (from_end(frame) < 2 * H)
        other = frame.assign(y=frame["y"].mask(theirs, within(subject, change(frame["y"]))))
        found = cross_validate(model, other, n_windows=WINDOWS, level=levels(model))
        same(judged(found, WINDOWS - 1), judged(wanted, WINDOWS - 1))
        if model.capabilities.local:
            rest, before = (one[one["unique_id"] != "s002"].reset_index(drop=True) for one in (found, wanted))
            same(rest, before)


@changed
def test_covariates_past_the_horizon(change: Callable[[pd.Series], Any]) -> None:
    columns = {"future": ["x"]}
    frame = noisy().assign(x=np.random.default_rng(3).normal(size=120))
    frame["y"] += 3 * frame["x"]
    bands = Conformal(FutureRegression(), alias="Bands")
    wanted = cross_validate([FutureRegression(), bands], frame, horizon=H, n_windows=WINDOWS, columns=columns)
    for window in range(WINDOWS):
        past_the_horizon = from_end(frame) < H * (WINDOWS - window - 1)
        later = from_end(frame) < H * (WINDOWS - window)
        other = frame.assign(x=frame["x"].mask(past_the_horizon, change(frame["x"])), y=frame["y"].mask(later, -1e5))
        found = cross_validate([FutureRegression(), bands], other, horizon=H, n_windows=WINDOWS, columns=columns)
        same(judged(found, window + 1), judged(wanted, window + 1))
        whole = bands.clone(horizon=H).fit(frame[~later], columns=columns)
        ahead = other[~past_the_horizon & later]
        exact = whole.predict(future=ahead[["unique_id", "ds", "x"]])
        same(whole.predict(future=other[later][["unique_id", "ds", "x"]]), exact)


@pytest.mark.parametrize("filling", ["interpolate", "ffill", "zero"])
@changed
def test_values_after_a_cutoff_fill_none_before_it(filling: str, change: Callable[[pd.Series], Any]) -> None:
    """Holes up to the very cutoff, in the history that a calibration rolls over too."""
    models = [Naive(missing=filling), SeasonalNaive(season_length=7, missing=filling), WindowMean(window=5, missing=filling)]
    models.append(Conformal(Naive(missing=filling), alias="Bands"))
    frame = noisy()
    frame["y"] = frame["y"].mask(from_end(frame).isin([3, 4, 6, 9, 10, 12, 15]))
    wanted = cross_validate(models, frame, horizon=H, n_windows=WINDOWS, level=60)
    for window in range(WINDOWS):
        later = from_end(frame) < H * (WINDOWS - window)
        other = frame.assign(y=frame["y"].mask(later, change(frame["y"].fillna(1.0))))
        found = cross_validate(models, other, horizon=H, n_windows=WINDOWS, level=60)
        same(judged(found, window + 1), judged(wanted, window + 1))


STEPWISE = pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Seq2Seq, {"hidden_size": 8, "decoder": "bahdanau", "attention": "additive"}),
        (Seq2Seq, {"hidden_size": 8, "input_feeding": True}),
        (Transformer, {"d_model": 8, "n_heads": 2, "n_layers": 2, "output": "autoregressive", "positional_encoding": "alibi"}),
        (LSTM, {"hidden_size": 8, "output": "autoregressive"}),
    ],
    ids=["bahdanau", "luong-fed", "transformer", "lstm"],
)


@STEPWISE
def test_decoder_steps_do_not_see_later_targets(kind: type[Forecaster], told: dict[str, Any]) -> None:
    common = {"input_size": 14, "max_steps": 3, "batch_size": 16, "head": "point", "scaler": "none", "calendar": None}
    model: Any = kind(horizon=H, **common, **told).fit(noisy())
    rows = torch.randn(4, 14, generator=torch.Generator().manual_seed(0))
    inputs = Inputs(rows, torch.ones_like(rows), *(rows.new_zeros(4, *shape) for shape in ((14, 0), (H, 0), (0,))))
    for step in range(H):
        before = torch.zeros(4, H).requires_grad_()
        model.network_.body.forward_teacher_forced(inputs, before)[:, step].sum().backward()
        assert (before.grad[:, step + 1 :] == 0).all()
        assert (before.grad[:, : step + 1] != 0).any()
    if kind is Transformer:
        own = model.explain().query("kind == 'self' and step > 0")
        later = own["lag"] > own["ds"]
        assert (own.loc[later, "weight"] == 0).all()
        assert own.loc[later].groupby(["layer", "head"]).size().size == 4


@pytest.mark.filterwarnings("ignore:.*far outside the history")  # of networks after four steps
@STEPWISE
def test_validation_error_is_that_of_free_running_forecasts(kind: type[Forecaster], told: dict[str, Any]) -> None:
    """What training reports of rows held out is the error of a forecast of them: no step is taught the true one before."""
    common = {"input_size": 14, "max_steps": 4, "batch_size": 16, "head": "point", "scaler": "none", "decoding": "greedy"}
    frame = noisy()
    held = from_end(frame) < H
    model: Any = kind(horizon=H, validation_size=H, validate_every=4, calendar=None, **common, **told).fit(frame)
    found = model.predict(frame=frame[~held])[kind.__name__].to_numpy()
    reported = model.training_report_["validation_loss"].dropna()
    assert len(reported) == 1
    np.testing.assert_allclose(reported.iloc[0], np.abs(found - frame.loc[held, "y"].to_numpy()).mean(), rtol=1e-5)
