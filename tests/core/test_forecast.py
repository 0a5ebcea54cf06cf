from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast import Naive
from deepforecast.core.forecast import (
    NormalForecast,
    PointForecast,
    QuantileForecast,
    SampledForecast,
    column_names,
    level_probabilities,
    output_columns,
    refuse_duplicate_columns,
    validate_horizon,
    validate_levels,
    validate_quantiles,
)
from deepforecast.data.columns import format_number
from deepforecast.errors import CapabilityError, DataWarning, ParameterError, ParameterTypeError

FRAME = pd.DataFrame({"unique_id": "A", "ds": pd.date_range("2024-01-01", periods=9), "y": np.arange(9.0) ** 1.5})
NORMAL = NormalForecast(np.array([[1.0, 2.0, 3.0]]), np.array([[0.5, 1.0, 2.0]]))


@pytest.mark.parametrize("level", [[0], [100], [-1], [101], ["80"], [math.nan], "80", True, [80, None], math.inf], ids=str)
def test_invalid_levels_are_refused(level: Any) -> None:
    with pytest.raises(ParameterError, match=r"level` must be .*between 0 and 100"):
        validate_levels(level)
    with pytest.raises(ParameterError, match="level"):
        Naive(horizon=2).fit(FRAME).predict(level=level)


def test_level_too_close_to_100_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"`level` must be below 100 .*got 99\.99999999999999"):
        validate_levels(math.nextafter(100, 0))
    assert np.isfinite(NORMAL.quantiles(level_probabilities(validate_levels(99.9999999)[0]))).all()


@pytest.mark.parametrize("level", [80, 80.0, np.int64(80), np.float32(80), [80], (80, 80.0), {80}, np.array([80])], ids=repr)
def test_single_level_of_any_numeric_type(level: Any) -> None:
    found = Naive(horizon=2).fit(FRAME).predict(level=level)
    assert list(found.columns) == ["unique_id", "ds", "Naive", "Naive-lo-80", "Naive-hi-80"]


def test_a_level_below_one_percent_is_taken_as_said_aloud() -> None:
    model = Naive(horizon=3).fit(FRAME)
    with pytest.warns(DataWarning, match=r"`level` is in percent: an interval of level 0\.95 covers 0\.95 %.*Pass 95"):
        found = model.predict(level=0.95)
    assert list(found.columns)[3:] == ["Naive-lo-0.95", "Naive-hi-0.95"]
    assert model.predict(level=pd.Series([80, 95])).equals(model.predict(level=[80, 95]))


def test_levels_in_any_order_give_nested_intervals_without_duplicates() -> None:
    model = Naive(horizon=3).fit(FRAME)
    found = model.predict(level=[95, 50, 99.5, 80, 50])
    wanted = [f"Naive-{side}-{level}" for level in ("50", "80", "95", "99.5") for side in ("lo", "hi")]
    assert list(found.columns)[2:] == ["Naive", *wanted]
    lower, upper = (["Naive-" + side + level for level in ("-50", "-80", "-95", "-99.5")] for side in ("lo", "hi"))
    order = [*reversed(lower), "Naive", *upper]
    assert (np.diff(found[order].to_numpy(), axis=1) > 0).all()
    assert list(model.predict(level=[]).columns) == list(model.predict().columns) == ["unique_id", "ds", "Naive"]


@given(st.lists(st.floats(1, 100, exclude_max=True).filter(lambda one: (100 + one) / 200 < 1), max_size=4))
def test_every_level_has_columns_of_its_own_and_bands_are_nested(levels: list[float]) -> None:
    found = validate_levels(levels)
    assert found == sorted(set(levels))
    columns = output_columns(NORMAL, "N", "mean", found, [])
    assert len(columns) == 1 + 2 * len(set(levels))
    for inner, outer in pairwise(found):
        assert (columns[f"N-lo-{format_number(outer)}"] <= columns[f"N-lo-{format_number(inner)}"]).all()
        assert (columns[f"N-hi-{format_number(outer)}"] >= columns[f"N-hi-{format_number(inner)}"]).all()
    assert all((columns[f"N-lo-{format_number(one)}"] <= columns["N"]).all() for one in found)


def test_names_of_columns_are_exact() -> None:
    assert column_names("A", [80, 99.99999], [0.1, 0.5]) == [
        "A", "A-lo-80", "A-hi-80", "A-lo-99.99999", "A-hi-99.99999", "A-q-0.1", "A-q-0.5",
    ]  # fmt: skip
    assert [format_number(n) for n in (80, 80.0, 99.9999999, np.float64(2.5), 1e-7)] == [
        "80",
        "80",
        "99.9999999",
        "2.5",
        "1e-07",
    ]


@pytest.mark.parametrize("quantiles", [0, 1, [0.5, 1.5], math.nan, "0.5", True], ids=str)
def test_quantiles_are_checked_too(quantiles: Any) -> None:
    with pytest.raises(ParameterError, match=r"quantiles` must be .*between 0 and 1"):
        validate_quantiles(quantiles)
    assert validate_quantiles([0.9, 0.1, 0.9]) == [0.1, 0.9]


@pytest.mark.parametrize("horizon", [0, -1, 2.5, "5", True, 2.0, math.nan, [3], np.True_], ids=repr)
def test_invalid_horizon_at_predict_is_refused(horizon: Any) -> None:
    with pytest.raises(ParameterError, match="horizon"):
        Naive().fit(FRAME).predict(horizon)
    with pytest.raises(ParameterTypeError if not isinstance(horizon, int) or horizon is True else ParameterError):
        validate_horizon(horizon)


@pytest.mark.parametrize("samples", [0, -1, 2.5, True, "3"], ids=repr)
def test_the_number_of_samples_is_called_by_its_name(samples: Any) -> None:
    with pytest.raises(ParameterError, match=r"`n_samples` must be (an integer of )?at least 1 and at most 1,000,000"):
        Naive(horizon=2).fit(FRAME).simulate(samples)


def test_predict_without_any_horizon_is_refused() -> None:
    with pytest.raises(
        ParameterError, match=r"`horizon` must be set, as Naive was constructed without a horizon\. Pass horizon="
    ):
        Naive().fit(FRAME).predict()
    assert len(Naive().fit(FRAME).predict(np.int8(3))) == 3


def test_points_alone_have_no_bands() -> None:
    points = PointForecast(np.ones((2, 3)), "Mine")
    with pytest.raises(CapabilityError, match=r"Mine cannot forecast levels .*intervals='conformal'.*Conformal\(model\)"):
        points.quantiles([0.1])
    assert points.point("median").shape == (2, 3)
    assert points.skip_steps(1).mean.shape == (2, 2)


def test_the_median_of_a_normal_needs_no_deviation() -> None:
    unknown = NormalForecast(np.array([[7.0]]), np.array([[np.nan]]))
    assert unknown.point("median") == 7
    assert np.isnan(unknown.quantiles([0.1])).all()
    one_value = pd.DataFrame({"ds": pd.to_datetime(["2024-01-01"]), "y": [7.0]})
    assert Naive(horizon=1, point="median").fit(one_value, freq="D").predict()["Naive"].tolist() == [7.0]


def test_quantiles_of_normals_and_of_paths() -> None:
    paths = SampledForecast(np.random.default_rng(0).normal(NORMAL.mean, NORMAL.deviation, (20_000, 1, 3)).swapaxes(0, 1))
    for probabilities in ([0.05, 0.5, 0.9], [0.3]):
        np.testing.assert_allclose(paths.quantiles(probabilities), NORMAL.quantiles(probabilities), atol=0.06)
    np.testing.assert_allclose(NORMAL.quantiles([0.975])[0, 0], 1 + 0.5 * 1.959964, rtol=1e-6)
    np.testing.assert_allclose(paths.point("mean"), NORMAL.mean, atol=0.06)
    assert (paths.point("median") == np.median(paths.paths, axis=1)).all()
    for forecast in (NORMAL, paths):
        assert (forecast.skip_steps(1).quantiles([0.2]) == forecast.quantiles([0.2])[:, 1:]).all()
        np.testing.assert_allclose(forecast.skip_steps(2).mean, forecast.mean[:, 2:], rtol=1e-12)


LEARNED = QuantileForecast(np.array([[5.0, 6.0]]), (0.1, 0.5, 0.9), np.array([[[1.0, 4.0, 9.0], [2.0, 8.0, 7.0]]]), "Mine")


def test_between_learned_quantiles_lie_straight_lines() -> None:
    found = LEARNED.quantiles([0.9, 0.1, 0.3, 0.5, 0.6])
    np.testing.assert_allclose(found[0, 0], [9, 1, 2.5, 4, 5.25], rtol=1e-12)
    assert LEARNED.point("median").tolist() == [[4, 8]]
    assert LEARNED.point("mean").tolist() == [[5, 6]]


def test_learned_quantiles_that_cross_are_made_to_rise() -> None:
    found = LEARNED.quantiles([0.1, 0.5, 0.7, 0.9])[0, 1]
    np.testing.assert_allclose(found, [2, 8, 8, 8])


def test_later_steps_of_learned_quantiles_stay_what_they_were() -> None:
    np.testing.assert_array_equal(LEARNED.skip_steps(1).quantiles([0.2]), LEARNED.quantiles([0.2])[:, 1:])
    assert LEARNED.skip_steps(1).mean.tolist() == [[6]]


@pytest.mark.parametrize(("asked", "level"), [([0.05, 0.95], "90"), ([0.5, 0.91], "82")])
def test_outside_of_those_learned_none_is_invented(asked: list[float], level: str) -> None:
    said = rf"Mine cannot forecast quantiles outside of 0\.1 to 0\.9, .*\(level {level}\)\. Fit it"
    with pytest.raises(CapabilityError, match=said):
        LEARNED.quantiles(asked)


def test_a_single_quantile_gives_itself_alone() -> None:
    median = QuantileForecast(np.array([[5.0]]), (0.5,), np.array([[[4.0]]]), "Mine")
    assert median.quantiles([0.5, 0.5]).tolist() == [[[4, 4]]]
    with pytest.raises(CapabilityError, match="level 80"):
        median.quantiles([0.1])


@pytest.mark.parametrize("alias", ["ds", "unique_id"])
def test_a_model_named_as_a_key_is_refused(alias: str) -> None:
    model = Naive(horizon=2, alias=alias).fit(FRAME)
    with pytest.raises(ParameterError, match=rf"different names, but these are repeated: {alias}\. Pass another alias="):
        model.predict()
    with pytest.raises(ParameterError, match=alias):
        model.simulate(3)


@pytest.mark.parametrize("key", ["sample", "component", "value"])
def test_an_id_named_as_an_output_column_is_refused(key: str) -> None:
    model = Naive(horizon=2).fit(FRAME.rename(columns={"unique_id": key}), columns={"id": key})
    assert list(model.predict().columns) == [key, "ds", "Naive"]
    with pytest.raises(ParameterError, match=key):
        model.simulate(3) if key == "sample" else model.explain()


def test_all_doubles_are_named() -> None:
    refuse_duplicate_columns(["a", "b"], ["c"])
    with pytest.raises(ParameterError, match="these are repeated: a, b"):
        refuse_duplicate_columns(["a", "b", "b"], ["c", "a"])
