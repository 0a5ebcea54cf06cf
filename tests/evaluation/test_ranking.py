"""The board of models whose prediction intervals cannot all be calibrated."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import BacktestOptions, Conformal, LinearModel, Naive, SeasonalNaive, compare
from deepforecast.errors import DataError, DataWarning
from deepforecast.evaluation.leaderboard import Leaderboard


def monthly(n: int = 72, series: int = 3) -> pd.DataFrame:
    """A season and noise."""
    random = np.random.default_rng(0)
    stamps, season = pd.date_range("2018-01-01", periods=n, freq="MS"), 10 * np.sin(np.arange(n) * np.pi / 6)
    parts = [
        pd.DataFrame({"unique_id": f"s{one}", "ds": stamps, "y": 100 + 10 * one + season + random.normal(0, 3, n)})
        for one in range(series)
    ]
    return pd.concat(parts, ignore_index=True)


def board(models: list[Any], frame: pd.DataFrame, **options: Any) -> tuple[Leaderboard, list[str]]:
    """The board and what `compare` warned of, but for intervals that cover too little."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = compare(models, frame, **{"horizon": 12, "level": [80, 95], **options})
    messages = [str(one.message) for one in caught if issubclass(one.category, DataWarning)]
    return found, [message for message in messages if "cover less than" not in message]


def rows(found: Leaderboard) -> dict[str, Any]:
    return dict(zip(found.table["model"], found.table.to_dict("records"), strict=True))


def test_a_level_without_enough_calibration_windows_leaves_its_scores_empty() -> None:
    found, messages = board([SeasonalNaive(), LinearModel()], monthly())
    row = rows(found)["LinearModel"]
    assert row["error"] == ""
    assert {row["rank"], rows(found)["SeasonalNaive"]["rank"]} <= {1.0, 4 / 3, 5 / 3, 2.0}
    assert np.isfinite([row["mase"], row["coverage-80"], row["fit_seconds"]]).all()
    assert np.isnan([row["coverage-95"], row["width-95"], row["winkler-95"]]).all()
    assert "LinearModel-lo-80" in found.forecasts
    assert "LinearModel-lo-95" not in found.forecasts
    (message,) = messages
    assert message.startswith("LinearModel is ranked without 95 % prediction intervals, which cannot be calibrated: ")
    assert "at least 19 calibration errors" in message
    assert str(found)


def test_points_are_those_of_a_board_without_levels() -> None:
    found, _ = board([SeasonalNaive(), LinearModel()], monthly())
    plain, messages = board([SeasonalNaive(), LinearModel()], monthly(), level=None)
    assert messages == []
    assert rows(found)["LinearModel"]["mase"] == rows(plain)["LinearModel"]["mase"]


def test_a_board_needs_no_model_with_intervals() -> None:
    found, messages = board([LinearModel(), LinearModel(alias="B", ridge=1.0)], monthly(), level=99)
    assert set(found.table["error"]) == {""}
    assert found.table["coverage-99"].isna().all()
    assert found.table["mase"].notna().all()
    assert len(messages) == 1
    assert messages[0].endswith("The same holds for B.")
    assert str(found)


@pytest.mark.parametrize("model", [LinearModel(intervals="conformal"), Conformal(SeasonalNaive(), alias="LinearModel")])
def test_intervals_asked_for_by_the_model_are_left_out_alike(model: Any) -> None:
    found, messages = board([Naive(), model], monthly(), level=99)
    assert rows(found)["LinearModel"]["error"] == ""
    assert np.isnan(rows(found)["LinearModel"]["coverage-99"])
    assert len(messages) == 1


def test_series_too_short_for_the_model_are_not_tried_again(backtests: list[str]) -> None:
    short = LinearModel(differences=[30])
    found, _ = board([Naive(), short], monthly(40), n_windows=1, horizon=8)
    assert "requires at least" in rows(found)["LinearModel"]["error"]
    assert backtests == ["Naive", "LinearModel"]


def test_series_too_short_for_any_calibration_are_ranked() -> None:
    options = {"horizon": 10, "n_windows": 1, "level": 80, "metrics": "mae", "options": BacktestOptions(align="series")}
    found, messages = board([Naive(), LinearModel()], monthly(22), **options)
    assert rows(found)["LinearModel"]["error"] == ""
    assert len(messages) == 1
    assert "LinearModel requires at least 13 values per series" in messages[0]


@pytest.fixture
def backtests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models whose backtests were run, once for each."""
    module: Any = sys.modules["deepforecast.evaluation.compare"]
    run, names = module.run_model, list[str]()

    def counted(model: Any, *given: Any, **options: Any) -> Any:
        names.append(model.name)
        return run(model, *given, **options)

    monkeypatch.setattr(module, "run_model", counted)
    return names


def test_a_failure_of_another_kind_stays_one(backtests: list[str]) -> None:
    found, _ = board([Naive(), LinearModel(lag_transforms=["mean_500"])], monthly())
    assert backtests == ["Naive", "LinearModel"]
    assert "mean_500 (requires 501 rows)" in rows(found)["LinearModel"]["error"]
    assert np.isnan(rows(found)["LinearModel"]["mase"])


def test_a_metric_of_intervals_alone_cannot_rank_models_without_any() -> None:
    with pytest.raises(DataError, match="At least one of the metrics coverage-99 must be defined"):
        board([LinearModel()], monthly(), level=99, metrics=["coverage"])
