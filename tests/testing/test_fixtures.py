from __future__ import annotations

import numpy as np
import pytest

from deepforecast import testing
from deepforecast.datasets import COVARIATES
from deepforecast.testing import fixtures


def test_the_daily_world() -> None:
    frame = fixtures.daily_panel()
    ends = frame.groupby("unique_id")["ds"].agg(["min", "max"])
    assert list(ends.index) == fixtures.series_ids()
    assert ends["min"].nunique() == ends["max"].nunique() == 2
    assert (frame["y"] > 0).all()
    np.testing.assert_array_equal(frame["y"].astype("float32").astype("float64"), frame["y"])
    assert fixtures.daily_panel() is frame


def test_split_is_by_series() -> None:
    before, recent = fixtures.split(5)
    assert (recent.groupby("unique_id").size() == 5).all()
    assert len(before) + len(recent) == len(fixtures.daily_panel())
    assert (before.groupby("unique_id")["ds"].max() < recent.groupby("unique_id")["ds"].min()).all()


@pytest.mark.parametrize("name", COVARIATES)
def test_a_world_of_each_covariate(name: str) -> None:
    history, future, columns = fixtures.covariate_panel(name)
    assert columns[COVARIATES[name][0]] == (name,)
    assert list(future.columns) == ["unique_id", "ds", name]
    assert len(future) == fixtures.HORIZON * history["unique_id"].nunique()
    assert (history.groupby("unique_id")["ds"].max() < future.groupby("unique_id")["ds"].min()).all()
    low, high, size = fixtures.covariate_effect(name)
    assert low != high
    assert abs(size) >= 4


def test_checks_leave_the_worlds_as_they_are() -> None:
    before, other = fixtures.daily_panel().copy(deep=True), fixtures.covariate_panel("price")[0].copy(deep=True)
    testing.run("Naive2")
    assert fixtures.daily_panel().equals(before)
    assert fixtures.covariate_panel("price")[0].equals(other)
