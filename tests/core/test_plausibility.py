"""Forecasts far outside the history of a series are warned of by name, whatever the level, before and after saving."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import AutoETS, Drift, LinearModel, Naive, Prophet, load
from deepforecast.core.forecast import NormalForecast, SampledForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.plausibility import value_range
from deepforecast.core.state import Learned
from deepforecast.data.panel import Panel

FAR = "lie far outside the history"


class Stated(Forecaster):
    """A normal distribution with the deviation and the mean it is given."""

    deviation: Any = 1.0
    mean: Any = 0.0

    def _fit(self, panel: Panel, monitor: Any) -> Learned:
        return Learned({"level": panel.padded(1)[:, 0]})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        return learned

    def _forecast(self, learned: Learned, steps: int, future: Any) -> NormalForecast:
        shape = (len(learned["level"]), steps)
        mean, deviation = np.repeat(learned["level"][:, None], steps, axis=1), np.ones(shape)
        mean[1], deviation[1] = self.mean, self.deviation
        return NormalForecast(mean, deviation)


class Skewed(Stated):
    """Three sample paths, one of them at the mean it is given."""

    def _forecast(self, learned: Learned, steps: int, future: Any) -> SampledForecast:
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
    assert warned(stated(1.001 * widest), level=level) == warned(stated(1e9), level=level)
    (message,) = warned(stated(1.001 * widest), level=level)
    assert message.startswith("Stated: forecasts of series s1 lie far outside the history: ")
    assert warned(stated(0.999 * widest), level=level) == []


@pytest.mark.parametrize("quantiles", [[0.025], [0.1, 0.9], [0.99]])
def test_quantiles_are_judged_as_ends_of_intervals(quantiles: list[float]) -> None:
    assert len(warned(stated(10.3), quantiles=quantiles)) == 1
    assert warned(stated(10.1), quantiles=quantiles) == []


@pytest.mark.parametrize("mean", [7.1, -7.1])
def test_a_point_more_than_three_ranges_outside_is_warned_of(mean: float) -> None:
    assert len(warned(stated(mean=mean))) == 1
    assert warned(stated(mean=0.98 * mean)) == []


def test_the_median_of_a_skewed_distribution_may_be_as_far_from_the_mean_as_points_from_the_history() -> None:
    model = Skewed(horizon=2).fit(history())
    model.mean = 3 * 5.9  # a mean of 5.9, less than 3 times the range of the history, 2, from the median of 0
    assert warned(model, quantiles=[0.5]) == []
    model.mean = 3 * 6.1
    assert len(warned(model, quantiles=[0.5])) == 1


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
    from deepforecast.core.manifest import Unfit, rebuilt, written

    model = Naive(horizon=2).fit(history())
    manifest, arrays = written(model, model.state_)
    arrays[manifest["value_range"]["array"]] = np.array([[1.0, -1.0]] * 3)
    with pytest.raises(Unfit, match="smallest and largest values"):
        rebuilt(manifest, arrays)


def test_values_filled_in_belong_to_the_history() -> None:
    y = np.r_[np.full(30, 1000.0) + np.arange(30) % 3, np.nan, np.full(9, 1001.0), np.nan]
    frame = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=len(y)), "y": y})
    model = Naive(horizon=2, missing="zero").fit(frame)
    assert model.predict()["Naive"].tolist() == [0.0, 0.0]  # without a warning: 0 is in the history
    assert model.predict(frame=frame)["Naive"].tolist() == [0.0, 0.0]
