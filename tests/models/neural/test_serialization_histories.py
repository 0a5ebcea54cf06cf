"""Networks saved without histories: the same forecasts of other histories, and no value of the training data in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deepforecast
from deepforecast import LSTM, MLP, NBEATS, Conformal, DLinear, Forecaster, NeuralProphet, load
from deepforecast.core import encoding
from deepforecast.datasets import generate
from deepforecast.errors import CapabilityError, DataError, DataWarning, ModelFileError, ParameterTypeError
from tests.frames import FREQUENCIES, LIBRARIES, D, P, converted, same
from tests.models.neural.test_serialization import channel

pytestmark = pytest.mark.filterwarnings("ignore:.*after calibration")  # after 2 steps
HORIZON = 3
SMALL: dict[str, Any] = {"horizon": HORIZON, "input_size": 8, "max_steps": 2, "batch_size": 16}
ROLES = {"future": ("price", "promo"), "past": ("visits", "weather"), "static": ("size", "kind")}


def covariate_frame(n_series: int, length: int, prefix: str = "shop", seed: int = 0) -> pd.DataFrame:
    """Series with covariates of every role, numeric and categorical."""
    rng = np.random.default_rng(seed)
    n = n_series * length
    return pd.DataFrame(
        {
            "unique_id": np.repeat([f"{prefix}-{number:04d}" for number in range(n_series)], length),
            "ds": np.tile(pd.date_range("2021-03-04", periods=length), n_series),
            "y": 100 + rng.normal(size=n).cumsum(),
            "price": rng.gamma(2, size=n),
            "promo": pd.Categorical(rng.choice(["none", "half", "full"], n)),
            "visits": rng.gamma(3, size=n),
            "weather": pd.Categorical(rng.choice(["sun", "rain"], n)),
            "size": np.repeat(rng.gamma(2, size=n_series), length),
            "kind": pd.Categorical(np.repeat(rng.choice(["city", "village"], n_series), length)),
        }
    )


def saved(model: Forecaster, folder: Path) -> Any:
    """The model read from a file without histories."""
    model.save(folder / "model.dfc", histories=False)
    return load(folder / "model.dfc")


@pytest.fixture(scope="module")
def model() -> LSTM:
    return LSTM(**SMALL, hidden_size=4).fit(P(3, 40))


NETWORKS: list[tuple[str, dict[str, Any]]] = [
    ("LSTM", {"hidden_size": 4, "scaler": "robust"}),
    ("MLP", {"hidden_sizes": [4], "scaler_scope": "series"}),
    ("MLP", {"hidden_sizes": [4], "scaler_scope": "panel", "head": "normal"}),
    ("NBEATS", {"hidden_sizes": [4], "blocks": 1}),
    ("Transformer", {"output": "autoregressive", "d_model": 8, "n_heads": 2}),
    ("Seq2Seq", {"hidden_size": 4, "head": "student_t"}),
]


@pytest.mark.parametrize(("name", "parameters"), NETWORKS, ids=[f"{name}-{number}" for number, (name, _) in enumerate(NETWORKS)])
def test_forecasts_of_other_histories_equal_those_of_the_unsaved_model(
    name: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    """With covariates of every role, for series seen in fit and new ones, within and beyond the horizon."""
    frame = covariate_frame(4, 40)
    model = getattr(deepforecast, name)(**{**SMALL, **parameters}).fit(frame, columns=ROLES)
    loaded = saved(model, tmp_path)
    known, new = frame.groupby("unique_id").head(30), covariate_frame(2, 25, "new", seed=1)
    history = pd.concat([known.astype({"promo": str}), new.assign(promo="unseen")], ignore_index=True)
    history = history.astype(dict.fromkeys(("promo", "weather", "kind"), "category"))
    future = covariate_frame(6, HORIZON, seed=2).drop(columns=["y", "visits", "weather", "size", "kind"])
    ends = history.groupby("unique_id").ds.max()
    future["unique_id"] = np.repeat(ends.index, HORIZON)
    future["ds"] = ends[future.unique_id].to_numpy() + np.tile(pd.to_timedelta(np.arange(1, HORIZON + 1), "D"), 6)
    given: dict[str, Any] = {"frame": history, "future": future}
    with pytest.warns(DataWarning, match="unseen"):
        expected = model.predict(**given, level=[80, 95])
    with pytest.warns(DataWarning, match="unseen"):
        same(loaded.predict(**given, level=[80, 95]), expected)
    with pytest.warns(DataWarning, match="unseen"):
        same(loaded.simulate(2, **given), model.simulate(2, **given))


def test_forecasts_beyond_the_horizon_are_equal(model: LSTM, tmp_path: Path) -> None:
    frame = P(5, 30)
    same(saved(model, tmp_path).predict(8, frame=frame, level=80), model.predict(8, frame=frame, level=80))


def test_the_file_has_no_value_id_or_timestamp_of_the_training_data(tmp_path: Path) -> None:
    frame = covariate_frame(4, 40)
    MLP(**SMALL, hidden_sizes=[4]).fit(frame, columns=ROLES).save(tmp_path / "whole")
    MLP(**SMALL, hidden_sizes=[4]).fit(frame, columns=ROLES).save(tmp_path / "model", histories=False)
    times = np.unique(frame.ds.to_numpy())
    numbers = frame[["y", "price", "visits", "size"]].to_numpy().ravel()
    patterns = [text.encode() for text in frame.unique_id.unique()]
    patterns += [value.tobytes() for dtype in (np.float64, np.float32) for value in numbers.astype(dtype)]
    patterns += [value.tobytes() for unit in ("s", "ms", "us", "ns") for value in times.astype(f"datetime64[{unit}]").astype(np.int64)]
    patterns += [str(value).encode() for value in (*numbers, *times.astype("datetime64[D]"))]
    whole, content = (tmp_path / "whole").read_bytes(), (tmp_path / "model").read_bytes()
    assert sum(pattern in whole for pattern in patterns) > 100  # the search finds them where they are
    assert not [pattern for pattern in patterns if pattern in content]


def test_the_file_has_no_checksum_of_the_training_data(model: LSTM, tmp_path: Path) -> None:
    """Guesses of the data could be compared with it."""
    model.save(tmp_path / "model", histories=False)
    manifest, _ = encoding.read_archive(tmp_path / "model")
    assert (manifest["data"], manifest["fallback"], manifest["static"], manifest["series"]["ids"]) == ("", None, {}, None)


def test_the_size_of_the_file_does_not_depend_on_the_number_of_series(tmp_path: Path) -> None:
    sizes, n_bytes = [], 0
    for n_series in (2, 500):
        model = NBEATS(horizon=18, max_steps=1, batch_size=8).fit(P(n_series, 60, "MS"))
        model.save(tmp_path / "model", histories=False)
        sizes.append((tmp_path / "model").stat().st_size)
        n_bytes = sum(4 * weights.numel() for weights in model.network_.state_dict().values())
    assert abs(sizes[1] - sizes[0]) < 100  # digits of numbers in the manifest
    assert n_bytes < sizes[1] < n_bytes + 100_000


@pytest.mark.parametrize(
    "call",
    [
        lambda loaded: loaded.predict(),
        lambda loaded: loaded.predict(ids=["s001"]),
        lambda loaded: loaded.simulate(2),
        lambda loaded: loaded.explain(),
        lambda loaded: loaded.future_frame(),
        lambda loaded: loaded.update(P(3, 50)),
    ],
    ids=["predict", "predict-ids", "simulate", "explain", "future_frame", "update"],
)
def test_calls_that_need_the_histories_ask_for_a_frame(call: Any, tmp_path: Path) -> None:
    loaded = saved(NBEATS(**SMALL, hidden_sizes=[4], blocks=1).fit(P(3, 40)), tmp_path)
    with pytest.raises(CapabilityError, match=r"saved without histories.*frame"):
        call(loaded)


def test_fine_tuning_and_saving_again_work(model: LSTM, tmp_path: Path) -> None:
    loaded = saved(model, tmp_path)
    content = (tmp_path / "model.dfc").read_bytes()
    for options in ({}, {"histories": False}):
        loaded.save(tmp_path / "again", **options)
        assert (tmp_path / "again").read_bytes() == content
    unsaved, frame = DLinear(**SMALL).fit(P(3, 40)), P(4, 30)
    tuned = saved(unsaved, tmp_path).fine_tune(frame, max_steps=1)
    same(tuned.predict(level=80), unsaved.fine_tune(frame, max_steps=1).predict(level=80))
    tuned.save(tmp_path / "tuned")
    same(load(tmp_path / "tuned").predict(), tuned.predict())


def test_arrays_are_forecast_as_before(model: LSTM, tmp_path: Path) -> None:
    values, options = np.arange(20.0), {"last_time": "2024-03-01"}
    expected = model.predictor([0.1])(values, **options)
    output = saved(model, tmp_path).predictor([0.1])(values, **options)
    assert np.array_equal(output.points, expected.points)
    assert np.array_equal(output.quantiles, expected.quantiles)


@pytest.mark.parametrize("on_failure", ["fallback", "drop"])
def test_series_that_cannot_be_forecast_fall_back_as_before(on_failure: Any, tmp_path: Path) -> None:
    """The naive methods of fit are not saved: those of a frame are chosen for its own series."""
    counts = P(2, 40).assign(y=lambda frame: frame.y.round())
    model = MLP(**SMALL, hidden_sizes=[4], head="poisson", on_failure=on_failure)
    with pytest.warns(DataWarning, match="could not be fitted to 1 of 3"):
        model.fit(pd.concat([counts, P(1, 30).assign(unique_id="negative", y=lambda frame: -frame.y)]))
    loaded = saved(model, tmp_path)
    assert b"negative" not in (tmp_path / "model.dfc").read_bytes()
    assert not len(loaded.failures_)
    frame = pd.concat([counts, P(1, 20).assign(unique_id="below zero", y=lambda frame: -frame.y)])
    with pytest.warns(DataWarning, match="could not be fitted to 1 of 3"):
        expected = model.predict(frame=frame)
    with pytest.warns(DataWarning, match="could not be fitted to 1 of 3"):
        same(loaded.predict(frame=frame), expected)
    assert ("below zero" in set(expected.unique_id)) == (on_failure == "fallback")


def test_a_network_that_could_be_fitted_to_no_series_is_refused(tmp_path: Path) -> None:
    with pytest.warns(DataWarning):
        model = MLP(**SMALL, on_failure="fallback").fit(P(2, 4))
    with pytest.raises(CapabilityError, match="none of the series"):
        model.save(tmp_path / "model", histories=False)


def test_pooled_errors_calibrate_new_series_and_errors_of_each_series_are_refused(tmp_path: Path) -> None:
    frame, network = P(4, 40), DLinear(**SMALL)
    pooled = Conformal(network, horizon=HORIZON, pool=True, n_windows=3).fit(frame)
    loaded = saved(pooled, tmp_path)
    for history in (frame, P(2, 30).assign(unique_id=lambda history: "new-" + history.unique_id)):
        same(loaded.predict(frame=history, level=50), pooled.predict(frame=history, level=50))
    shorter = frame.groupby("unique_id").tail(20)  # in the unsaved model these series have the scale of fit
    unseen = shorter.assign(unique_id="new-" + shorter.unique_id)
    same(loaded.predict(frame=shorter, level=50).iloc[:, 1:], pooled.predict(frame=unseen, level=50).iloc[:, 1:])
    for model in (Conformal(network, horizon=HORIZON), network.clone(intervals="conformal")):
        with pytest.raises(CapabilityError, match=r"errors of each series.*pool=True"):
            model.fit(frame).save(tmp_path / "other", histories=False)
        assert not (tmp_path / "other").exists()


def test_neural_prophet_says_what_it_needs_the_training_data_for(tmp_path: Path) -> None:
    model = NeuralProphet(horizon=HORIZON, max_steps=1).fit(P(2, 40))
    with pytest.raises(CapabilityError, match="looked up by series id, and its trend starts at the first timestamp"):
        model.save(tmp_path / "model", histories=False)


def test_a_network_that_keeps_the_scale_of_each_series_is_refused(
    model: LSTM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LSTM, "keeps_series_scale", True)
    with pytest.raises(CapabilityError, match="keep the scale"):
        model.save(tmp_path / "model", histories=False)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("ids", ["text", "integer", "category"])
def test_every_library_and_type_of_id(library: str, ids: str, tmp_path: Path) -> None:
    frame = P(3, 30)
    if ids != "text":
        frame = frame.assign(unique_id=pd.Categorical(frame.unique_id) if ids == "category" else frame.unique_id.str[1:].astype(int))
    model = DLinear(**SMALL).fit(converted(frame, library))
    same(saved(model, tmp_path).predict(frame=converted(frame, library)), model.predict(frame=converted(frame, library)))
    assert b"s001" not in (tmp_path / "model.dfc").read_bytes()


@pytest.mark.parametrize(
    ("freq", "zone"), [*((freq, None) for freq in FREQUENCIES), *((freq, "Europe/Berlin") for freq in ("D", "h", "W-MON", "ME"))]
)
def test_every_frequency(freq: str, zone: str | None, tmp_path: Path) -> None:
    frame = D("A", 40, freq, tz=zone)
    model = DLinear(**SMALL).fit(frame, freq=freq)
    same(saved(model, tmp_path).predict(frame=frame), model.predict(frame=frame))


def test_a_single_series_and_integer_time(tmp_path: Path) -> None:
    frame = pd.DataFrame({"ds": np.arange(30, dtype="uint8"), "y": np.arange(30.0)})
    model = DLinear(**SMALL, season_length=4).fit(frame, freq=1)
    same(saved(model, tmp_path).predict(frame=frame), model.predict(frame=frame))


def test_ids_and_static_covariates_of_the_histories_are_required(model: LSTM, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must have the id column unique_id"):
        saved(model, tmp_path).predict(frame=P(1, 30).drop(columns="unique_id"))
    frame = covariate_frame(3, 40)[["unique_id", "ds", "y", "size"]]
    network = MLP(**SMALL, hidden_sizes=[4]).fit(frame, columns={"static": ("size",)})
    with pytest.raises(DataError, match="New series must have static covariates"):
        saved(network, tmp_path).predict(frame=frame.drop(columns="size"))


# -- files made to do harm -----------------------------------------------------------------------------------------


def local_model(manifest: Any, arrays: Any) -> None:
    manifest.update(model="Naive", parameters={"horizon": 3}, seed=None)


def calibrated_by_series(manifest: Any, arrays: Any) -> None:
    arrays["errors"] = np.empty((0, 3, 3))
    manifest["calibration"] = {"method": "split", "rate": 0.5, "errors": {"array": "errors"}}


def with_ids(manifest: Any, arrays: Any) -> None:
    arrays["values"] = np.arange(2)
    manifest["series"]["ids"] = {"kind": "integer", "dtype": "int64", "arrays": {"values": {"array": "values"}}}


def with_timestamps(manifest: Any, arrays: Any) -> None:
    arrays[manifest["series"]["last"]["array"]] = np.zeros(1, dtype=np.int64)


def without_shape(manifest: Any, arrays: Any) -> None:
    arrays[manifest["series"]["last"]["array"]] = np.empty((0, 5), dtype=np.int64)


@pytest.mark.parametrize(
    "change", [local_model, calibrated_by_series, with_ids, with_timestamps, without_shape, channel("horizon", 10**9)]
)
def test_inconsistent_files_without_histories_are_refused(change: Any, model: LSTM, tmp_path: Path) -> None:
    model.save(tmp_path / "model", histories=False)
    manifest, arrays = encoding.read_archive(tmp_path / "model")
    change(manifest, arrays)
    encoding.write_archive(tmp_path / "other", manifest, arrays)
    with pytest.raises(ModelFileError, match="other"):
        load(tmp_path / "other")


def test_a_window_of_which_the_file_has_no_values_cannot_be_huge(model: LSTM, tmp_path: Path) -> None:
    """Its size costs nothing in the file, but memory in each forecast."""
    model.save(tmp_path / "model", histories=False)
    manifest, arrays = encoding.read_archive(tmp_path / "model")
    n_steps = 20_000 + 2 * sum(values.size for values in arrays.values())
    channel("input_size", n_steps)(manifest, arrays)
    arrays[manifest["learned"]["by_series"]["tree"]["recent_values"]["array"]] = np.empty((0, n_steps))
    encoding.write_archive(tmp_path / "other", manifest, arrays)
    with pytest.raises(ModelFileError, match="'input_size' of the network must be an integer from 0 to"):
        load(tmp_path / "other")


def test_a_series_of_a_whole_file_cannot_be_left_out(tmp_path: Path) -> None:
    """A model with parameters per series has a file of its series, or none."""
    deepforecast.Naive(horizon=2).fit(generate(1, 20)).save(tmp_path / "model")
    manifest, arrays = encoding.read_archive(tmp_path / "model")
    for name, values in arrays.items():
        if values.ndim and values.dtype != np.uint8:
            arrays[name] = values[:0]
    manifest["series"]["ids"] = None
    manifest["value_range"] = None
    references = str(manifest)
    encoding.write_archive(tmp_path / "other", manifest, {name: values for name, values in arrays.items() if f"'{name}'" in references})
    with pytest.raises(ModelFileError, match="parameters are those of each series"):
        load(tmp_path / "other")


@pytest.mark.parametrize("histories", ["no", None, 0])
def test_histories_must_be_true_or_false(histories: Any, tmp_path: Path) -> None:
    model = DLinear(horizon=2, max_steps=1, trainer={"accelerator": "cpu"}).fit(generate(1, 20))
    with pytest.raises(ParameterTypeError, match="`histories` must be True or False"):
        model.save(tmp_path / "model", histories=histories)
    assert not (tmp_path / "model").exists()
