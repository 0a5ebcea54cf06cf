"""Forecasts far outside the history of a series are warned of by name, whatever the level, before and after saving."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import (
    AutoETS,
    Capabilities,
    Drift,
    LinearModel,
    Naive,
    Prophet,
    compare,
    cross_validate,
    load,
)
from deepforecast.core.forecast import NormalForecast, SampledForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.state import LearnedState, value_range
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import DataWarning

FAR = "lie far outside the history"


class Stated(Forecaster):
    """A normal distribution with the deviation and the mean it is given."""

    deviation: Any = 1.0
    mean: Any = 0.0

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        return LearnedState({"level": panel.padded(1)[:, 0]})

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return learned

    def _forecast(self, learned: LearnedState, steps: int, future: Any) -> NormalForecast:
        shape = (len(learned["level"]), steps)
        mean, deviation = np.repeat(learned["level"][:, None], steps, axis=1), np.ones(shape)
        mean[1], deviation[1] = self.mean, self.deviation
        return NormalForecast(mean, deviation)


class Skewed(Stated):
    """Three sample paths, one of them at the mean it is given."""

    def _forecast(self, learned: LearnedState, steps: int, future: Any) -> SampledForecast:
        return SampledForecast(np.stack([super()._forecast(learned, steps, future).mean, *np.zeros((2, 3, steps))], axis=1))


def history(values: Any = (-1.0, 1.0, 0.0), count: int = 3) -> pd.DataFrame:
    """Series s0, s1, ... with the same values."""
    days = pd.date_range("2024-01-01", periods=len(values), freq="D")
    parts = [pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": values}) for i in range(count)]
    return pd.concat(parts, ignore_index=True)


def stated(deviation: float = 1.0, mean: float = 0.0) -> Stated:
    model = Stated(horizon=2).fit(history())
    model.deviation, model.mean = deviation, mean
    return model


def warned(model: Forecaster, **arguments: Any) -> list[str]:
    """The messages of a prediction about implausible forecasts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(**arguments)
    return [str(one.message) for one in caught if FAR in str(one.message)]


@pytest.mark.parametrize("level", [50, 80, 95, 99, [80, 95]])
def test_an_interval_wider_than_twenty_ranges_is_warned_of_at_any_level(level: Any) -> None:
    widest = 20 * 2 / (2 * 1.959964)  # a normal deviation whose 95 % interval has 20 times the range of the history, 2
    for deviation, times in ((1.001 * widest, "up to 20"), (1.5 * widest, "up to 30"), (1e9, "over 1,000")):
        (message,) = warned(stated(deviation), level=level)
        assert message == (
            "Stated: forecasts of series s1 lie far outside the history: 95 % intervals are "
            f"{times} times as wide as the range of the history. Use a shorter horizon or another model for these series."
        )
    assert warned(stated(0.999 * widest), level=level) == []


@pytest.mark.parametrize("quantiles", [[0.025], [0.1, 0.9], [0.99]])
def test_quantiles_are_judged_as_ends_of_intervals(quantiles: list[float]) -> None:
    assert len(warned(stated(10.3), quantiles=quantiles)) == 1
    assert warned(stated(10.1), quantiles=quantiles) == []


@pytest.mark.parametrize("mean", [7.2, -7.2])
def test_a_point_more_than_three_ranges_outside_is_warned_of(mean: float) -> None:
    (message,) = warned(stated(mean=mean))
    assert "outside the history: point forecasts are outside of the history by up to 3.1 times its range. Use" in message
    assert warned(stated(mean=0.97 * mean)) == []
    (message,) = warned(stated(50.0, mean), level=95)
    assert (
        "intervals are up to 98 times as wide as the range of the history and point forecasts are outside of the history by "
        "up to 3.1 times" in message
    )


def test_the_median_of_a_skewed_distribution_may_be_as_far_from_the_mean_as_points_from_the_history() -> None:
    model = Skewed(horizon=2).fit(history())
    model.mean = 3 * 5.9  # a mean of 5.9, less than 3 times the range of the history, 2, from the median of 0
    assert warned(model, quantiles=[0.5]) == []
    model.mean = 3 * 6.1
    assert len(warned(model, quantiles=[0.5])) == 1


class Paths(Stated):
    """Sample paths of the distribution."""

    capabilities = Capabilities(distribution="analytic", simulates=True)

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Any) -> Floats:
        forecast = self._forecast(learned, steps, future)
        draws = np.random.default_rng(seed).normal(size=(len(forecast.mean), samples, steps))
        return np.asarray(forecast.mean[:, None] + forecast.deviation[:, None] * draws)


def test_sample_paths_are_judged_as_the_forecasts_they_are_of() -> None:
    model = Paths(horizon=2).fit(history())
    for deviation, mean, words in (
        (20.0, 0.0, "95 % intervals are up to"),
        (1.0, 8.0, "point forecasts are outside of the history by up to 3."),
    ):
        model.deviation, model.mean = deviation, mean
        with pytest.warns(DataWarning, match=f"^Paths: forecasts of series s1 lie far outside the history: {words}") as caught:
            model.simulate(400)
        assert len(caught) == 1
        model.simulate(10)  # too few to tell
    model.deviation, model.mean = 8.0, 0.0  # some paths lie outside by more than 3 times the range
    assert np.abs(model.simulate(400)["Paths"]).max() > 4 * 2
    values = model.simulate(30)
    assert values["Paths"].tolist() == model._simulate(model.state_.learned_with_series, 2, 30, 0, {}).reshape(-1).tolist()


class Growing(Stated):
    """Five times the last value, at every step."""

    capabilities = Capabilities(distribution="analytic")

    def _forecast(self, learned: LearnedState, steps: int, future: Any) -> NormalForecast:
        mean = 5.0 * np.repeat(learned["level"][:, None], steps, axis=1)
        return NormalForecast(mean, np.full_like(mean, 0.1))


@pytest.mark.filterwarnings("ignore:.*prediction intervals cover less than:UserWarning")
@pytest.mark.parametrize("run", [cross_validate, compare])
@pytest.mark.parametrize("level", [None, 80])
def test_backtests_warn_once_per_model_of_all_series_and_windows(run: Any, level: Any) -> None:
    frame, row = history(np.zeros(30), 3), np.tile(np.arange(30), 3)
    for name, rows in (("s0", [9]), ("s1", [5, 19]), ("s2", [5])):  # the histories end with rows 9 and 19
        frame.loc[(frame["unique_id"] == name) & np.isin(row, rows), "y"] = 1.0
    models = [Growing(), Growing(alias="Other"), Naive()]
    with pytest.warns(DataWarning, match=FAR) as caught:
        run(models, frame, horizon=10, n_windows=2, level=level)
    (message,) = (str(one.message) for one in caught if FAR in str(one.message))
    words = (
        "forecasts of series s0, s1 lie far outside the history: point forecasts are outside of the history by up to 4 times "
        "its range."
    )
    assert message.startswith(f"Growing: {words}")
    assert message.endswith("The same holds for Other.")


def test_five_series_are_named_and_all_are_counted() -> None:
    frame = history(np.arange(4.0), 7)
    (message,) = warned(Drift(horizon=20).fit(frame))
    assert re.search(r"series s0, s1, s2, s3, s4 … \(7 in all\) lie far outside", message)


def test_a_constant_history_has_no_range_but_rounding() -> None:
    frame = history((5.0, 5.0, 5.0, 5.0, 5.0, 5.0))
    for model in (Naive(horizon=3), Drift(horizon=3), AutoETS(horizon=3, season_length=1)):
        assert warned(model.fit(frame), level=95) == []
    model = Stated(horizon=2).fit(history((5.0, 5.0)))
    model.mean = 5.0 + 2.9 * 5e-6
    assert warned(model) == []
    model.mean = 5.0 + 3.1 * 5e-6
    assert len(warned(model)) == 1
    model = Stated(horizon=2).fit(history((0.0, 0.0)))
    assert len(warned(model, level=95)) == 1


def test_missing_values_do_not_count() -> None:
    panel = Panel.from_frame(history((np.nan, 3.0, 1.0, np.nan)))
    assert value_range(panel).tolist() == [[1.0, 3.0]] * 3


def test_later_values_widen_the_range() -> None:
    model = stated(mean=7.1)
    new = pd.DataFrame({"unique_id": ["s1", "s2"], "ds": pd.Timestamp("2024-01-04"), "y": [2.0, np.nan]})
    assert model.state_.value_range is not None
    assert warned(model, frame=pd.concat([history(), new[:1]])) == []
    assert len(warned(model)) == 1
    model.update(new[:1])
    assert model.state_.value_range.tolist() == [[-1.0, 1.0], [-1.0, 2.0], [-1.0, 1.0]]
    assert warned(model) == []


def test_a_short_frame_is_judged_with_the_history_of_the_fit() -> None:
    assert warned(stated(mean=6.0), frame=history((0.0,))) == []


@pytest.mark.parametrize("model", [Drift(horizon=50), LinearModel(horizon=50), Prophet(horizon=50)], ids=repr)
def test_a_loaded_model_warns_as_the_fitted_one(model: Forecaster, tmp_path: Any) -> None:
    model.fit(history(np.arange(12.0) ** 1.5, 2))
    model.save(tmp_path / "model.dfc")
    assert warned(load(tmp_path / "model.dfc")) == warned(model) != []


def test_a_file_with_a_range_that_does_not_fit_is_refused(tmp_path: Any) -> None:
    from deepforecast.core.encoding import InvalidManifest
    from deepforecast.core.manifest import from_manifest, to_manifest

    model = Naive(horizon=2).fit(history())
    manifest, arrays = to_manifest(model, model.state_)
    arrays[manifest["value_range"]["array"]] = np.array([[1.0, -1.0]] * 3)
    with pytest.raises(InvalidManifest, match="value ranges must be"):
        from_manifest(manifest, arrays)


def test_values_filled_in_belong_to_the_history() -> None:
    y = np.r_[np.full(30, 1000.0) + np.arange(30) % 3, np.nan, np.full(9, 1001.0), np.nan]
    frame = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=len(y)), "y": y})
    model = Naive(horizon=2, missing="zero").fit(frame)
    assert model.predict()["Naive"].tolist() == [0.0, 0.0]  # without a warning: 0 is in the history
    assert model.predict(frame=frame)["Naive"].tolist() == [0.0, 0.0]
