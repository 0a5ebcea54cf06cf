"""Fitted values of networks: forecasts from earlier cutoffs, equal to those of `predict` from there, in one pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import GRU, LSTM, MLP, NBEATS, DLinear, NeuralProphet, Transformer, load
from deepforecast.errors import DataError, DataWarning
from deepforecast.models.neural import _predict

HORIZON, INPUT_SIZE = 4, 6
LENGTHS = {"a": 30, "b": 23, "c": 8, "d": 3, "e": 1}  # c, d, e: shorter than a window; d and e: than the horizon
COLUMNS = {"future": ["price", "promo"], "past": ["visits"], "static": ["size", "kind"]}


def panel(missing: bool = False, lengths: dict[str, int] = LENGTHS) -> pd.DataFrame:
    """Series of unequal lengths with a covariate of every kind."""
    random, frames = np.random.default_rng(0), []
    for number, (name, length) in enumerate(lengths.items()):
        step = np.arange(length)
        y = 50 + 10 * np.sin(step) + random.normal(size=length) + 20 * number
        if missing:
            y[random.random(length) < 0.2] = np.nan
            y[-1] = 50.0
        frames.append(pd.DataFrame({
            "unique_id": name, "ds": pd.Timestamp("2024-01-01") + pd.to_timedelta(step + number, "D"), "y": y,
            "price": random.normal(size=length), "promo": pd.Categorical.from_codes(step % 3, ["x", "y", "z"]),
            "visits": random.normal(size=length), "size": float(number),
            "kind": pd.Categorical.from_codes(np.full(length, number % 2), ["p", "q"]),
        }))  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def forecasts_from_cutoffs(model: Any, frame: pd.DataFrame, columns: dict[str, list[str]]) -> np.ndarray:
    """The fitted values by `predict` from the rows up to each cutoff."""
    values = []
    for _, series in frame.groupby("unique_id"):
        length = len(series)
        fitted = np.full(length, np.nan)
        for cutoff in range(INPUT_SIZE if length >= INPUT_SIZE + HORIZON else 1, length, HORIZON):
            future = series.iloc[cutoff : cutoff + HORIZON]
            if series["y"].iloc[max(cutoff - INPUT_SIZE, 0) : cutoff].isna().all():
                continue
            forecast = model.predict(
                len(future), frame=series.iloc[:cutoff],
                future=future[["unique_id", "ds", *columns["future"]]] if columns.get("future") else None,
            )  # fmt: skip
            fitted[cutoff : cutoff + HORIZON] = forecast[model.name]
        values.append(fitted)
    return np.concatenate(values)


@pytest.mark.parametrize(
    ("cls", "params", "columns", "missing"),
    [
        (MLP, {"hidden_sizes": [8]}, COLUMNS, False),
        (LSTM, {"hidden_size": 8, "scaler": "revin"}, COLUMNS, True),
        (GRU, {"hidden_size": 8, "scaler_scope": "series", "scaler": "robust"}, {}, True),
        (DLinear, {"scaler_scope": "series", "point": "mean"}, {"future": ["price"]}, False),
        (NBEATS, {"scaler": "standard", "scaler_scope": "panel", "head": "normal", "bounds": (49, 120)}, {}, False),
        (DLinear, {"scaler": "difference", "head": "point"}, {}, True),
        (Transformer, {"d_model": 8, "n_heads": 2, "scaler": "level"}, {}, False),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_fitted_values_are_forecasts_from_the_time_steps_up_to_the_cutoff(
    cls: Any, params: dict[str, Any], columns: dict[str, list[str]], missing: bool
) -> None:
    frame = panel(missing)
    frame = frame[["unique_id", "ds", "y", *(name for names in columns.values() for name in names)]]
    model = cls(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=3, **params).fit(frame, columns=columns)
    fitted = model.fitted_values()
    assert list(fitted) == ["unique_id", "ds", "y", model.name]
    pd.testing.assert_frame_equal(fitted[["unique_id", "ds", "y"]], frame[["unique_id", "ds", "y"]])
    expected = forecasts_from_cutoffs(model, frame, columns)
    np.testing.assert_allclose(fitted[model.name], expected, rtol=1e-6)
    n_short = sum(length - 1 for length in LENGTHS.values() if length < INPUT_SIZE + HORIZON)
    n_long = sum(length - INPUT_SIZE for length in LENGTHS.values() if length >= INPUT_SIZE + HORIZON)
    if not missing:
        assert fitted[model.name].notna().sum() == n_short + n_long
    pd.testing.assert_frame_equal(model.fitted_values(frame), fitted)


@pytest.mark.parametrize(
    "model",
    [
        MLP(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=2, hidden_sizes=[8], scaler_scope="series"),
        NBEATS(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=2, scaler="standard", scaler_scope="panel"),
        Transformer(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=2, d_model=8, n_heads=2, output="autoregressive"),
        NeuralProphet(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=2),
    ],
    ids=lambda model: model.name,
)
@pytest.mark.parametrize("is_new", [False, True], ids=["known", "new"])
@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_no_fitted_value_depends_on_its_own_value_or_a_later_one(model: Any, is_new: bool) -> None:
    history = panel(lengths={"a": 22, "b": 18})[["unique_id", "ds", "y"]]
    fitted_model = model.clone().fit(history)
    if is_new:
        history = history.assign(unique_id="new " + history["unique_id"])
    step = history.groupby("unique_id").cumcount().to_numpy()
    fitted = fitted_model.fitted_values(history)[model.name].to_numpy()
    for first in range(INPUT_SIZE + 1, 18):
        changed = history.assign(y=history["y"] + 1000.0 * (step >= first))
        changed_fitted = fitted_model.fitted_values(changed)[model.name].to_numpy()
        np.testing.assert_array_equal(changed_fitted[step <= first], fitted[step <= first])
    changed = history.assign(y=history["y"] + 1000.0 * (step >= INPUT_SIZE))
    assert (fitted_model.fitted_values(changed)[model.name].to_numpy() != fitted)[step >= INPUT_SIZE + HORIZON].all()


@pytest.mark.parametrize("output", ["direct", "autoregressive"])
def test_every_time_step_is_forecast_once(output: str) -> None:
    frame = panel(lengths={"a": 42, "b": 30})[["unique_id", "ds", "y"]]
    model = Transformer(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=1, d_model=8, n_heads=2, output=output).fit(frame)
    n_windows = []
    inputs = model.network_.inputs
    model.network_.__dict__["inputs"] = lambda batch: (n_windows.append(len(batch)), inputs(batch))[1]
    try:
        model.fitted_values()
    finally:
        del model.network_.__dict__["inputs"]
    steps = 42 - INPUT_SIZE + 30 - INPUT_SIZE
    assert steps / HORIZON <= sum(n_windows) <= steps / HORIZON + 4  # windows, and the padding of a batch


def test_groups_that_bound_memory_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = panel()[["unique_id", "ds", "y"]]
    model = GRU(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=1, hidden_size=4, scaler_scope="series").fit(frame)
    fitted = model.fitted_values()
    sizes = []
    forecast_windows = _predict._point_forecasts
    monkeypatch.setattr(_predict, "MAX_VALUES", 60)
    monkeypatch.setattr(
        _predict, "_point_forecasts", lambda *args: (sizes.append(len(args[-1])), forecast_windows(*args))[1]
    )
    pd.testing.assert_frame_equal(model.fitted_values(), fitted, rtol=1e-12)
    assert max(sizes) == 4
    assert len(sizes) > 3


def test_greedy_decoding_gives_the_fitted_values_of_an_autoregressive_network() -> None:
    frame = panel(lengths={"a": 30})[["unique_id", "ds", "y"]]
    model = Transformer(
        horizon=HORIZON, input_size=INPUT_SIZE, max_steps=2, d_model=8, n_heads=2, output="autoregressive", decoding="greedy"
    ).fit(frame)
    np.testing.assert_allclose(model.fitted_values()["Transformer"], forecasts_from_cutoffs(model, frame, {}), rtol=1e-6)


def test_lags_and_components_of_neural_prophet_are_those_at_the_cutoff() -> None:
    frame = panel(lengths={"a": 30, "b": 23})[["unique_id", "ds", "y"]]
    model = NeuralProphet(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=2, local=["trend"]).fit(frame)
    np.testing.assert_allclose(model.fitted_values()["NeuralProphet"], forecasts_from_cutoffs(model, frame, {}), rtol=1e-6)
    with pytest.warns(DataWarning, match="the mean over all series is used") as warned:
        model.fitted_values(frame.assign(unique_id="new " + frame["unique_id"]))
    assert len(warned) == 1


def test_without_lags_time_steps_after_missing_values_have_fitted_values() -> None:
    frame = panel(lengths={"a": 30})[["unique_id", "ds", "y"]]
    frame.loc[5:25, "y"] = np.nan
    with pytest.warns(DataWarning, match="missing"):
        model = NeuralProphet(horizon=HORIZON, input_size=0, max_steps=2).fit(frame)
    assert model.fitted_values()["NeuralProphet"].notna().sum() == 29


def test_windows_without_an_observation_have_no_fitted_values() -> None:
    frame = panel(lengths={"a": 40})[["unique_id", "ds", "y"]]
    frame.loc[10:25, "y"] = np.nan
    with pytest.warns(DataWarning, match="missing"):
        model = DLinear(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=1).fit(frame)
    missing = model.fitted_values()["DLinear"].isna().to_numpy()
    # The windows of the cutoffs 18, 22 and 26 have the time steps 12 to 25.
    np.testing.assert_array_equal(np.flatnonzero(missing), [*range(INPUT_SIZE), *range(18, 30)])


def test_update_keeps_the_training_data_and_fine_tune_replaces_them() -> None:
    frame = panel(lengths={"a": 30})[["unique_id", "ds", "y"]]
    model = DLinear(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=1).fit(frame[:26])
    fitted = model.fitted_values()
    assert len(fitted) == 26
    pd.testing.assert_frame_equal(model.update(frame[26:]).fitted_values(), fitted)
    assert len(model.fine_tune(frame, max_steps=1).fitted_values()) == 30


def test_a_loaded_model_needs_the_histories(tmp_path: Path) -> None:
    frame = panel(lengths={"a": 30})[["unique_id", "ds", "y"]]
    model = DLinear(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=1).fit(frame)
    for histories in (True, False):
        model.save(tmp_path / "model", histories=histories)
        loaded = load(tmp_path / "model")
        with pytest.raises((DataError, ValueError), match=r"Pass .*frame"):
            loaded.fitted_values()
        pd.testing.assert_frame_equal(loaded.fitted_values(frame), model.fitted_values())


def test_series_that_could_not_be_fitted_have_no_fitted_values() -> None:
    frame = panel(lengths={"a": 30, "e": 5})[["unique_id", "ds", "y"]]
    frame.loc[frame["unique_id"] == "e", "y"] = np.nan
    with pytest.warns(DataWarning):
        model = DLinear(horizon=HORIZON, input_size=INPUT_SIZE, max_steps=1, on_failure="fallback").fit(frame)
    assert set(model.fitted_values()["unique_id"]) == {"a"}
