from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deepforecast.benchmark.job_results import Row
from deepforecast.benchmark.summary import cost_slopes, default_metric, mean_over_seeds, owa, read_series_metrics, summarize
from deepforecast.errors import DataError, ParameterError

ROW = Row(suite="s", task="a", dataset="d", model="SeasonalNaive", seed=0, job="", settings="", fit_seconds=1.0, peak_mb=2.0)


def rows(values: dict[str, list[float | None]], metric: str = "mase") -> list[Row]:
    """A row each model and task; None: failed."""
    found = []
    for model, own in values.items():
        for task, value in zip("abcdef", own, strict=False):
            row = replace(ROW, model=model, task=task, job=f"{task}-{model}")
            good = {metric: value} if value is not None else {}
            found.append(replace(row, metrics=good, status="ok" if value is not None else "failed"))
    return found


def test_the_board_is_in_the_order_of_skill_and_fills_in_no_failure() -> None:
    found = summarize(rows({"SeasonalNaive": [1, 2, 4], "Good": [0.5, 1, 2], "Bad": [2, 4, 8], "Half": [0.1, None, 0.1]}))
    assert found.table["model"].tolist() == ["Good", "SeasonalNaive", "Bad", "Half"]  # which has not all tasks
    half = found.table.iloc[3]
    assert half["skill"] == pytest.approx(1 - np.sqrt(0.1 * 0.025))
    assert (half["tasks"], half["failed"]) == (2, 1)
    assert np.isnan(half["rank"])  # ranks are of the tasks that a model has all of
    assert found.complete_models == ("SeasonalNaive", "Good", "Bad")
    assert found.table["rank"].tolist()[:3] == [1.0, 2.0, 3.0]
    assert found.friedman_test is not None
    assert found.friedman_test.n_datasets == 3


def test_metrics_that_are_best_elsewhere_are_judged_by_their_distance() -> None:
    found = summarize(rows({"SeasonalNaive": [0.7, 0.7], "Near": [0.81, 0.79], "Wide": [1.0, 1.0]}, "coverage-80"))
    assert found.metric == "coverage-80"
    assert found.table["model"].tolist() == ["Near", "SeasonalNaive", "Wide"]


def test_without_the_reference_there_is_no_skill() -> None:
    found = summarize(rows({"A": [1, 2], "B": [2, 1]}), reference="C")
    assert found.skill is None
    assert found.table["skill"].isna().all()


def test_one_task_is_no_matter_for_friedman() -> None:
    assert summarize(rows({"SeasonalNaive": [1], "B": [2]})).friedman_test is None


def test_seeds_give_means_and_intervals() -> None:
    held = [replace(ROW, seed=n, metrics={"mae": value}) for n, value in enumerate([1.0, 2.0, 3.0])]
    one = mean_over_seeds(held, "mae").iloc[0]
    assert (one["mean"], one["seeds"]) == (2.0, 3)
    assert one["high"] - one["mean"] == pytest.approx(4.302653 / np.sqrt(3))
    assert np.isnan(mean_over_seeds(held[:1], "mae").iloc[0]["low"])


def test_the_first_metric_asked_for_decides() -> None:
    first = replace(ROW, metrics={"mse": 1.0, "mae": 1.0})
    assert default_metric([*rows({"A": [None]}), first]) == "mse"
    assert default_metric([Row.from_mapping(json.loads(first.to_json()))]) == "mse"  # lines keep their order
    with pytest.raises(DataError, match="No job"):
        default_metric(rows({"A": [None]}))
    with pytest.raises(DataError, match="none yet"):
        summarize([])


def test_owa_is_the_mean_of_two_ratios() -> None:
    naive = replace(ROW, model="Naive2", metrics={"smape": 10.0, "mase": 2.0})
    other = replace(ROW, model="B", metrics={"smape": 5.0, "mase": 3.0})
    assert owa([naive, other]) == {("a", "Naive2"): 1.0, ("a", "B"): 1.0}
    assert owa([other]) == {}


def test_slopes_are_those_of_the_sizes_that_vary_alone() -> None:
    def row(series: int, length: int, seconds: float) -> Row:
        return replace(ROW, series=series, length=length, horizon=7, fit_seconds=seconds, predict_seconds=None, peak_mb=None)

    held = [row(10, 100, 1.0), row(100, 100, 10.0), row(1000, 100, 100.0), row(10, 200, 4.0), row(10, 400, 16.0)]
    found = cost_slopes(held).set_index("size")["slope"]
    assert found["series"] == pytest.approx(1.0)
    assert found["length"] == pytest.approx(2.0)
    assert "horizon" not in found


def test_series_of_one_task_are_a_table_of_models(tmp_path: Path) -> None:
    held = []
    for number, model in enumerate(["A", "B"]):
        for seed in (0, 1):
            file = f"{model}{seed}.parquet"
            pd.DataFrame({"unique_id": ["x", "y"], "mae": [number + seed, 5.0]}).to_parquet(tmp_path / file)
            held.append(replace(ROW, model=model, seed=seed, files={"series": file}))
    models, series, values = read_series_metrics(tmp_path, held, "a", "mae")
    assert (models, series) == (["A", "B"], ["x", "y"])
    assert values.tolist() == [[0.5, 5.0], [1.5, 5.0]]
    with pytest.raises(ParameterError, match="\\(mae\\)"):
        read_series_metrics(tmp_path, held, "a", "mase")
    with pytest.raises(DataError, match="b has none"):
        read_series_metrics(tmp_path, held, "b", "mae")
