"""Observation weights: read in the order of the panel, validated at observed targets, 0 elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deepforecast import Columns, check, datasets, fill_gaps, score
from deepforecast.core.state import fingerprint
from deepforecast.data import windows
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, ParameterTypeError

COLUMNS = {"weight": "w"}


def frame() -> pd.DataFrame:
    """Two series of ten days with the weights 1 to 20."""
    return datasets.generate(2, 10, seed=1).assign(w=np.arange(1.0, 21.0))


def weights(panel: Panel) -> Any:
    assert panel.weight is not None
    return panel.weight.tolist()


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_weights_follow_the_rows(library: Any) -> None:
    shuffled = library(frame().sample(frac=1, random_state=0).reset_index(drop=True))
    panel = Panel.from_frame(shuffled, columns=Columns(weight="w"))
    assert weights(panel) == list(range(1, 21))
    assert not panel.covariates
    assert panel.undeclared == ()
    assert panel.series.columns.all == ("unique_id", "ds", "y", "w")
    assert weights(panel.take(np.array([1]))) == list(range(11, 21))
    assert weights(panel.tail(2)) == [9, 10, 19, 20]
    assert panel.to_frame()["w"].to_list() == weights(panel)


def test_missing_time_steps_and_targets_have_weight_0() -> None:
    gaps = frame().drop(index=[2, 3])
    gaps.loc[gaps.index[6], "y"] = np.nan
    gaps.loc[gaps.index[6], "w"] = np.nan  # does not matter
    panel = Panel.from_frame(gaps, columns=COLUMNS)
    assert weights(panel) == [1, 2, 0, 0, 5, 6, 7, 8, 0, 10, *range(11, 21)]
    filled = fill_gaps(gaps, columns=COLUMNS, fill="interpolate")
    assert filled["w"].tolist() == weights(panel)
    assert weights(Panel.from_frame(filled, columns=COLUMNS)) == weights(panel)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_weights_of_observed_targets_must_be_finite_and_not_negative(value: float) -> None:
    wrong = frame()
    wrong.loc[[14, 16], "w"] = value
    message = rf"finite number of at least 0, but column w is {value:g} at 2020-01-05 in series s1 \(2 such rows\)\. Correct"
    with pytest.raises(DataError, match=message) as error:
        Panel.from_frame(wrong, columns=COLUMNS)
    assert error.value.series == ("s1",)
    (finding,) = (finding for finding in check(wrong, columns=COLUMNS).findings if finding.severity == "error")
    assert (finding.problem, finding.count, finding.where) == ("w invalid", 2, "s1, first at 2020-01-05")


def test_one_weight_must_be_positive() -> None:
    with pytest.raises(DataError, match=r"Column w must have a positive weight .* series s0, s1\. Set a positive weight"):
        Panel.from_frame(frame().assign(w=0.0), columns=COLUMNS)
    report = check(frame().assign(w=0.0), columns=COLUMNS)
    assert ("w all zero", 20) in [(finding.problem, finding.count) for finding in report.findings]


def test_the_weight_must_be_a_numeric_column_of_the_frame() -> None:
    with pytest.raises(DataError, match="lacks v"):
        Panel.from_frame(frame(), columns={"weight": "v"})
    with pytest.raises(DataError, match="w"):
        Panel.from_frame(frame().assign(w="heavy"), columns=COLUMNS)
    with pytest.raises(ParameterTypeError, match=r"`weight` must be one column name or None, got \['w'\] \(list\)"):
        Columns(weight=["w"])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"these are repeated: w \(past, weight\)"):
        Columns(past=("w",), weight="w")


def test_an_id_that_is_the_weight_is_no_id() -> None:
    single = frame().iloc[:10].drop(columns="unique_id").rename(columns={"w": "unique_id"})
    assert weights(Panel.from_frame(single, columns={"weight": "unique_id"})) == list(range(1, 11))


def test_weights_of_windows_are_relative_to_the_largest() -> None:
    panel = Panel.from_frame(frame().assign(w=1e30 * np.arange(1.0, 21.0)), columns=COLUMNS)
    arrays = windows.window_arrays(panel, windows.fit_window_columns(panel, 3, 2, ()))
    assert arrays.weight.dtype == np.float32
    np.testing.assert_allclose(arrays.weight[np.isfinite(arrays.y)], np.arange(1, 21) / 20, rtol=1e-6)
    assert not arrays.weight[np.isnan(arrays.y)].any()


def test_windows_do_not_depend_on_ids_if_only_weights_differ() -> None:
    same = frame()
    same["y"] = np.tile(same["y"].iloc[:10], 2)
    renamed = same.assign(unique_id=same["unique_id"].map({"s0": "b", "s1": "a"}))
    sums = []
    for data in (same, renamed):
        panel = Panel.from_frame(data, columns=COLUMNS)
        order = windows.training_windows(panel, 3, 2).order
        sums.append([sum(weights(panel.take(np.array([number])))) for number in order])
    assert sums[0] == sums[1]


def test_the_fingerprint_has_the_weights() -> None:
    prints = [fingerprint(Panel.from_frame(data, columns=COLUMNS)) for data in (frame(), frame().assign(w=1.0))]
    prints.append(fingerprint(Panel.from_frame(frame().drop(columns="w"))))
    assert len(set(prints)) == 3


def test_a_score_does_not_take_weights_for_a_model() -> None:
    forecasts = frame().assign(Naive=1.0)
    scores = score(forecasts, columns=COLUMNS, metrics=["mae"])
    assert [name for name in scores.columns if name == "w"] == []
    assert "w" not in scores.to_string()
    pd.testing.assert_frame_equal(scores, score(forecasts.drop(columns="w"), metrics=["mae"]))
