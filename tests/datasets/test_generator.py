from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.datasets import COVARIATES, Effects, Recipe, generate, truth
from deepforecast.errors import ParameterError, ParameterTypeError

GOLDEN = [95.835817, 90.760953, 89.793539, 89.047435, 69.983613, 76.461936]
RICH = Recipe(covariates="all", shifts=2, missing=0.1, intermittent=0.2, ragged=0.3, lag=2)


def test_default_frame() -> None:
    frame = generate()
    assert list(frame) == ["unique_id", "ds", "y"]
    assert frame.groupby("unique_id").size().to_dict() == {"s0": 200, "s1": 200, "s2": 200}
    assert frame["y"].notna().all()
    assert frame["ds"].iloc[[0, 199]].tolist() == [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-07-18")]


def test_same_arguments_same_frame_other_seed_other_frame() -> None:
    first = generate(4, 50, seed=7, recipe=RICH)
    pd.testing.assert_frame_equal(first, generate(4, 50, seed=7, recipe=RICH))
    assert not np.allclose(generate(4, 50, seed=8)["y"], generate(4, 50, seed=7)["y"])


def test_golden_values() -> None:
    """The frame of a seed stays what it is: benchmarks and checks compare against it."""
    assert generate(2, 3, seed=1)["y"].round(6).tolist() == pytest.approx(GOLDEN, abs=1e-6)


def test_global_random_state_is_untouched() -> None:
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    generate(recipe=RICH)
    truth(recipe=RICH)
    after = np.random.random(), random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    assert after == (np.random.random(), random.random())  # noqa: NPY002


ALIASES = ["h", "H", "D", "B", "W", "W-WED", "MS", "ME", "M", "QS", "QE", "Q", "YS", "YE", "15min", "2h", "3MS", "1mo", "s"]


@pytest.mark.parametrize("freq", ALIASES)
def test_any_alias(freq: str) -> None:
    frame = generate(2, 40, freq=freq)
    stamps = pd.DatetimeIndex(frame["ds"][:40])
    spelling = {"H": "h", "M": "ME", "Q": "QE", "1mo": "MS"}.get(freq, freq)
    expected = pd.date_range(stamps[0], periods=40, freq=spelling)
    assert (stamps == expected).all()
    assert (pd.DatetimeIndex(frame["ds"][40:]) == expected).all()
    assert np.isfinite(frame["y"]).all()


def test_integer_time() -> None:
    assert generate(1, 4, freq=1)["ds"].tolist() == [1, 2, 3, 4]
    assert generate(1, 3, freq=5, start=10)["ds"].tolist() == [10, 15, 20]


def test_time_zone_over_the_change_of_the_clock() -> None:
    stamps = generate(1, 4, start=pd.Timestamp("2024-03-30", tz="Europe/Berlin"))["ds"]
    assert [stamp.hour for stamp in stamps] == [0, 0, 0, 0]
    assert str(stamps.dt.tz) == "Europe/Berlin"


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(covariates="all", seasons=(7, 30)), RICH], ids=["plain", "full", "rich"])
@pytest.mark.parametrize("freq", ["D", "h", 1])
def test_components_add_up(recipe: Recipe, freq: Any) -> None:
    frame, parts = generate(5, 80, freq=freq, recipe=recipe), truth(5, 80, freq=freq, recipe=recipe)
    assert list(parts) == ["unique_id", "ds", "component", "value"]
    assert np.isfinite(parts["value"]).all()
    total = parts.groupby(["unique_id", "ds"])["value"].sum().reset_index()
    assert len(total) == len(frame)
    both = frame.merge(total, on=["unique_id", "ds"]).dropna()
    np.testing.assert_allclose(both["y"], both["value"], atol=1e-9)
    assert set(recipe.covariates) <= set(parts["component"])


def test_names_of_components() -> None:
    names = truth(1, 30, freq="h", recipe=replace(RICH, covariates=("price",)))["component"].unique()
    assert " ".join(names) == "level trend season_24 season_168 shift price noise no_demand"
    assert truth(1, 5, freq="YS")["component"].unique().tolist() == ["level", "trend", "noise"]


def test_seasons_repeat_with_their_period() -> None:
    parts = truth(3, 60, recipe=Recipe(seasons=(7, 12))).pivot(index=["unique_id", "ds"], columns="component", values="value")
    for period in (7, 12):
        season = parts[f"season_{period}"].unstack("unique_id").to_numpy()
        np.testing.assert_allclose(season[period:], season[:-period], atol=1e-9)
        assert np.ptp(season) > 10
        assert abs(season[:period].mean()) < 1e-9


def test_effects_are_what_least_squares_finds() -> None:
    """With noise switched off y is an exact linear function of the covariates with the stated effects."""
    effects = Effects(price=-3.0, holiday=11.0, visits=2.5)
    moving = ("price", "holiday", "promotion", "visits", "stock")
    recipe = Recipe(covariates=moving, noise=0.0, trend=0.0, seasons=(), effects=effects, lag=2)
    frame = generate(1, 300, recipe=recipe)
    past = frame[["visits", "stock"]].shift(2)
    design = pd.DataFrame({
        "level": 1.0, "price": frame["price"], "holiday": frame["holiday"], "visits": past["visits"],
        "flyer": frame["promotion"] == "flyer", "display": frame["promotion"] == "display", "low": past["stock"] == "low",
    }).astype(float)[2:]  # fmt: skip
    found, *_ = np.linalg.lstsq(design.to_numpy(), frame["y"].to_numpy()[2:], rcond=None)
    expected = {"price": -3.0, "holiday": 11.0, "visits": 2.5, "flyer": 8.0, "display": 16.0, "low": -10.0}
    assert dict(zip(design.columns[1:], found[1:], strict=True)) == pytest.approx(expected)


def test_static_effects_shift_whole_series() -> None:
    recipe = Recipe(covariates=("size", "region"), noise=0.0, trend=0.0, seasons=(), level_spread=0.0)
    series = generate(50, 3, recipe=recipe).groupby("unique_id")
    assert (series[["y", "size", "region"]].nunique() == 1).all().all()
    each = series.first()
    region = each["region"].map(dict(recipe.effects.region)).astype(float)
    np.testing.assert_allclose(each["y"], recipe.level + recipe.effects.size * each["size"] + region)
    assert set(each["region"]) == {"north", "east", "south", "west"}


def test_raising_a_past_covariate_by_one_moves_y_one_lag_later() -> None:
    recipe = Recipe(covariates=("visits",), lag=1)
    frame = generate(1, 50, recipe=recipe)
    part = truth(1, 50, recipe=recipe).query("component == 'visits'")["value"].to_numpy()
    np.testing.assert_allclose(part[1:], recipe.effects.visits * frame["visits"].to_numpy()[:-1])


def test_a_part_switched_on_leaves_the_others_alone() -> None:
    plain, rich = truth(4, 60), truth(4, 60, recipe=replace(RICH, ragged=0.0))
    shared = rich[rich["component"].isin(plain["component"].unique())].reset_index(drop=True)
    pd.testing.assert_frame_equal(shared, plain)


def test_first_series_do_not_depend_on_how_many_there_are() -> None:
    few, many = generate(3, 50, recipe=RICH), generate(9, 50, recipe=RICH)
    pd.testing.assert_frame_equal(few, many[many["unique_id"].isin(["s0", "s1", "s2"])].reset_index(drop=True))


def test_kinds_of_columns() -> None:
    frame = generate(20, 100, recipe=Recipe(covariates="all"))
    assert list(frame)[3:] == list(COVARIATES)
    for name, (role, kind) in COVARIATES.items():
        assert isinstance(frame[name].dtype, pd.CategoricalDtype) == (kind == "category")
        varies = frame.groupby("unique_id")[name].nunique() > 1
        assert varies.all() == (role != "static")
    assert frame["promotion"].cat.categories.tolist() == ["none", "flyer", "display"]


def test_missing_values() -> None:
    frame = generate(20, 200, recipe=Recipe(missing=0.3))
    assert 0.25 < frame["y"].isna().mean() < 0.35
    ends = frame.groupby("unique_id")["y"].agg([lambda y: y.iloc[0], lambda y: y.iloc[-1]])
    assert ends.notna().all().all()
    kept = frame["y"].notna()
    np.testing.assert_array_equal(frame["y"][kept], generate(20, 200)["y"][kept])


def test_intermittent_demand_is_zero_and_otherwise_as_before() -> None:
    frame, plain = generate(20, 200, recipe=Recipe(intermittent=0.6)), generate(20, 200)
    zero = frame["y"] == 0
    assert 0.55 < zero.mean() < 0.65
    np.testing.assert_allclose(frame["y"][~zero], plain["y"][~zero])


def test_ragged_series_start_late_and_end_together() -> None:
    frame = generate(30, 100, recipe=Recipe(ragged=0.5, missing=0.2))
    sizes = frame.groupby("unique_id").size()
    assert sizes.between(50, 100).all()
    assert sizes.nunique() > 5
    assert frame.groupby("unique_id")["ds"].max().nunique() == 1
    assert frame.groupby("unique_id")["y"].agg(lambda y: y.iloc[0]).notna().all()


def test_level_shifts() -> None:
    shift = truth(10, 100, recipe=Recipe(shifts=1, shift=25.0)).query("component == 'shift'").groupby("unique_id")["value"]
    assert (shift.first() == 0).all()
    assert (shift.last().abs() == 25.0).all()
    assert set(np.sign(shift.last())) == {-1.0, 1.0}


def test_holidays_are_days_of_the_year_or_drawn() -> None:
    recipe = Recipe(covariates=("holiday",))
    daily = generate(1, 366, recipe=recipe)
    assert daily.query("holiday == 1")["ds"].dt.strftime("%m-%d").tolist()[:3] == ["01-01", "02-14", "05-01"]
    hourly = generate(1, 48, freq="h", recipe=recipe)
    assert hourly["holiday"].tolist() == [1] * 24 + [0] * 24
    weekly = generate(2, 400, freq="W", recipe=recipe)
    assert 0.01 < weekly["holiday"].mean() < 0.1
    assert weekly["holiday"][:400].tolist() == weekly["holiday"][400:].tolist()


def test_one_series_of_one_step() -> None:
    assert len(generate(1, 1, recipe=RICH)) == 1


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"n_series": 0}, ParameterError, "`n_series` must be at least 1, got 0"),
        ({"length": 2.5}, ParameterTypeError, "`length` must be an integer"),
        ({"seed": -1}, ParameterError, "`seed` must be at least 0"),
        ({"seed": None}, ParameterTypeError, "`seed` must be an integer"),
        ({"freq": "fortnight"}, ParameterError, "fortnight"),
        ({"freq": 0}, ParameterError, "at least 1"),
        ({"start": "yesterday-ish"}, ParameterError, "`start` must be a timestamp"),
        ({"freq": "YS", "length": 10**6}, ParameterError, "1000000 steps of YS"),
        ({"freq": 1, "start": "2020"}, ParameterError, "`start` must be an integer for integer time"),
        ({"recipe": {"noise": 1}}, ParameterTypeError, "`recipe` must be a Recipe"),
    ],
)
def test_arguments_out_of_range(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        generate(**options)


def test_large_panels_are_quick() -> None:
    """A ceiling ten times what it takes: it catches a loop over series."""
    began = time.process_time()
    frame = generate(10_000, 200, recipe=RICH)
    assert time.process_time() - began < 6
    assert frame["unique_id"].nunique() == 10_000
