"""From parameters to a plan: what "auto" chooses, what is refused and with which fix, and that a plan survives saving."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import GradientBoosting, LinearModel
from deepforecast.core.forecaster import Forecaster
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, DeepForecastError, ParameterError
from deepforecast.models.regression._differences import choose_differences
from deepforecast.models.regression._parameter_resolution import make_plan as planned_with
from deepforecast.models.regression._plan import Plan, default_lags, default_windows
from tests.frames import P
from tests.models.regression.promoted import sales, walks

PLANS: list[dict[str, Any]] = [
    {},
    {"lags": [1, 28], "lag_transforms": ["ewm_0.1234567", "quantile_9_0.123456789", "expanding_std@3", "max_3x4@9"]},
    {"lags": None, "lag_transforms": None, "calendar": None, "differences": None},
    {"strategy": "direct", "horizon": 5, "past_lags": [1, 3]},
    {"strategy": "blocks", "block_size": 3, "differences": [7, 1], "transform": "log", "detrend": True, "scale": False},
    {"strategy": "direct_multioutput", "horizon": 4, "season_length": [7, 30], "fourier": 2, "time_index": True},
    {"future_lags": [-1, 0, 2], "calendar": ["week", "month_end"], "holidays": "DE", "per_series": True},
]


def planned(model: Any, panel: Panel) -> Plan:
    return planned_with(model, panel, choose_differences(model, panel))


@pytest.mark.parametrize("given", PLANS, ids=str)
def test_a_plan_comes_back_from_plain_values(given: dict[str, Any]) -> None:
    history, _ = sales()
    panel = Panel.from_frame(history, columns={"future": ["promotion"], "past": ["weather"]})
    plan = planned(LinearModel(**{"horizon": 3, **given}), panel)
    assert Plan.from_dict(plan.to_dict()) == plan
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert (planned(GradientBoosting(horizon=3, series_id=True), panel)).design.series_id


def plan_of(frame: pd.DataFrame, model: Any = LinearModel, **given: Any) -> Plan:
    return planned(model(**{"horizon": 3, **given}), Panel.from_frame(frame))


def test_auto_takes_a_season_step_by_step_and_what_the_frequency_tells() -> None:
    plan = plan_of(walks(3, 120))
    names = [str(one) for one in plan.design.target_features]
    assert {"lag_1", "lag_7", "lag_14", "mean_7", "std_7", "mean_4x7"} <= set(names)
    assert plan.design.calendar == ("day_of_week", "day_of_month", "month")
    assert (plan.block_size, plan.multioutput, plan.design.future_lags) == (1, False, (0,))


@pytest.mark.parametrize("length", [1, 3, 10, 30, 400])
@pytest.mark.parametrize("seasons", [(1,), (7,), (12,), (24, 168), (7, 365)])
def test_usual_features_are_names_that_a_series_can_fill(seasons: tuple[int, ...], length: int) -> None:
    from deepforecast.data.features import lag_features, parse_lag_feature

    lags = lag_features(default_lags(seasons, length))
    assert max(one.lag for one in lags) <= max(length // 3, 1, *(one for one in seasons if one <= length // 3))
    assert all(
        parse_lag_feature(one).n_rows_needed <= max(4 * max(length // 3, 1), 2) for one in default_windows(seasons, length)
    )


def test_a_step_far_from_its_origin_reads_past_columns_as_they_were_then() -> None:
    history, _ = sales()
    panel = Panel.from_frame(history, columns={"past": ["promotion"]})
    recursive = planned(LinearModel(horizon=5, past_lags=2), panel).design.covariate_lags["promotion"]
    direct = planned(LinearModel(horizon=5, past_lags=2, strategy="direct"), panel).design.covariate_lags["promotion"]
    assert ([one.lag for one in recursive], [one.lag for one in direct]) == ([5, 6], [1, 2])


PAST = {"past": ["promotion"]}
REFUSED: list[tuple[Forecaster, dict[str, Any], str]] = [
    (
        LinearModel(strategy="direct"),
        {},
        r"`horizon` must be set with strategy='direct', .*Set LinearModel\(horizon=\.\.\.\)",
    ),
    (LinearModel(), PAST, r"`horizon` must be set with past covariates \(promotion\), .*Set LinearModel\(hor"),
    (
        GradientBoosting(horizon=2, strategy="direct_multioutput"),
        {},
        r"'direct_multioutput' requires a regressor with several outputs, but that of GradientBoosting has.*Use strategy='direct'",
    ),
    (
        LinearModel(horizon=2, quantiles=[0.1]),
        {},
        r"`quantiles` requires a regressor that can be trained for quantiles, but that of LinearModel .*'conformal'",
    ),
    (
        GradientBoosting(horizon=2, quantiles=[0.1]),
        {},
        r"requires strategy='direct', got 'recursive': .*Use strategy='direct', or",
    ),
    (
        LinearModel(horizon=2, series_id=True),
        {},
        r"series_id=True requires a tree-based regressor, .*LinearModel. Use per_series=True, or pass a categ",
    ),
    (
        LinearModel(horizon=2, bounds=(3.0, 3.0)),
        {},
        r"`bounds` must be a lower and a larger upper bound, got \(3\.0, 3\.0\)",
    ),
    (
        LinearModel(horizon=2, lags=[1, 7], lag_transforms=["lag_7"]),
        {},
        r"must not repeat a feature, but contain at least twice: lag_7\. Remove",
    ),
    (
        LinearModel(horizon=2, lag_transforms=["mean_1000000@2"]),
        {},
        r"look back more than 1,000,000 rows, got mean_1000000@2\. Use shorter",
    ),
    (LinearModel(horizon=2, lag_transforms=["mean"]), {}, r"A lag feature must have a name such as 'lag_7'.*got 'mean'"),
    (LinearModel(horizon=2, calendar=["easter"]), {}, r"`calendar` must be .* a list of .*, got easter"),
    (LinearModel(horizon=2, lag_transforms=["std_1"]), {}, r"A lag feature must have a name such as .*got 'std_1'"),
    (LinearModel(horizon=2, calendar=["month", "month"]), {}, r"`calendar` cannot contain a feature more than once"),
    (
        LinearModel(horizon=2, future_lags=[]),
        {},
        r"`future_lags` must be one or more distinct .*got \[\]\. Pass a list such as \[-1, 0, 1\]",
    ),
    (LinearModel(horizon=2, future_lags=[0, 0]), {}, r"`future_lags` must be one or more distinct integers .*got \[0, 0\]"),
    (LinearModel(horizon=2, future_lags=[60]), {}, r"from -59 to 59 \(the longest series has 60 rows\), got \[60\]"),
]


@pytest.mark.parametrize(("model", "columns", "words"), REFUSED, ids=[repr(one[0]) for one in REFUSED])
def test_what_does_not_go_together_is_refused_with_a_way_out(model: Forecaster, columns: dict[str, Any], words: str) -> None:
    history, _ = sales(2, 60)
    with pytest.raises(DeepForecastError, match=words):
        model.fit(history[["unique_id", "ds", "y", *columns.get("past", [])]], columns=columns)


def test_integer_time_tells_no_season() -> None:
    frame = pd.DataFrame({"ds": np.arange(40), "y": np.arange(40) % 5 + 0.5})
    with pytest.raises(ParameterError, match=r"cannot be inferred from integer time\. Set LinearModel\(season_length="):
        LinearModel(horizon=2).fit(frame)
    found = LinearModel(horizon=5, season_length=5, lags=[5], lag_transforms=None, differences=None).fit(frame).predict()
    np.testing.assert_allclose(found["LinearModel"], [0.5, 1.5, 2.5, 3.5, 4.5], atol=0.05)


@pytest.mark.parametrize("given", [{"lags": [1, 500]}, {"lag_transforms": ["mean_500"]}, {"lags": [38], "strategy": "direct"}])
def test_a_feature_asked_for_that_no_series_reaches_is_refused(given: dict[str, Any]) -> None:
    model = LinearModel(horizon=3, **given)
    with pytest.raises(DataError, match=r"longest series, which has 40 rows, got (lag|mean)_\d+ \(requires \d+ rows\)"):
        model.fit(P(2, 40))
    model.clone(lags="auto", lag_transforms="auto").fit(P(2, 40))
