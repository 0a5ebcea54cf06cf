from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.data.covariates import UNKNOWN, Covariate, read_future_covariates, recode_covariate
from deepforecast.data.frames import build
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import DataError, DataWarning
from tests.frames import LIBRARIES, D, P, converted, joined, plain


def series_of(frame: Any, freq: Any = None) -> Series:
    return Panel.from_frame(frame, freq=freq).series


def rows_ahead(series: Series, steps: int) -> pd.DataFrame:
    frame = plain(build(series.library, series.key_columns(series.calendar.next_positions(series.last, steps))))
    return frame.assign(x=np.arange(len(frame), dtype=float))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("freq", ["D", "MS", "W-WED", "B", "h", "QE-NOV"])
def test_each_step_of_each_series(library: str, freq: str) -> None:
    series = series_of(converted(joined(D("b", 20, freq), D("a", 12, freq)), library), freq)
    future = rows_ahead(series, 3)
    found = read_future_covariates(converted(future.sample(frac=1, random_state=0), library), series, 3, {"x": None})
    assert found["x"].values.tolist() == [[0, 1, 2], [3, 4, 5]]
    fewer = read_future_covariates(converted(future, library), series, 2, {"x": None})
    assert fewer["x"].values.tolist() == [[0, 1], [3, 4]]


def test_of_another_library_and_time_unit() -> None:
    series = series_of(P(2, 20))
    future = rows_ahead(series, 2)
    assert read_future_covariates(converted(future, "polars"), series, 2, {"x": None})["x"].values.tolist() == [[0, 1], [2, 3]]
    assert read_future_covariates(future.astype({"ds": "datetime64[s]"}), series, 2, {"x": None})["x"].values.tolist() == [
        [0, 1],
        [2, 3],
    ]
    assert read_future_covariates(future.assign(ds=future.ds.astype(str)), series, 2, {"x": None})["x"].values.tolist() == [
        [0, 1],
        [2, 3],
    ]


def test_a_single_series_needs_no_ids() -> None:
    series = series_of(D().drop(columns="unique_id"))
    future = rows_ahead(series, 2)
    assert list(future.columns) == ["ds", "x"]
    assert read_future_covariates(future, series, 2, {"x": None})["x"].values.tolist() == [[0, 1]]
    with pytest.warns(DataWarning, match="without a role are ignored: unique_id"):
        assert read_future_covariates(future.assign(unique_id="A"), series, 2, {"x": None})["x"].values.tolist() == [[0, 1]]


def test_integer_time() -> None:
    series = series_of(D().assign(ds=np.arange(60) * 5), 5)
    assert read_future_covariates(rows_ahead(series, 2), series, 2, {"x": None})["x"].values.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.iloc[:0], "cannot be empty.*Pass x for the next 3 steps"),
        (lambda f: f.drop(columns="x"), "The future frame must have the columns unique_id, ds, x, but it lacks x"),
        (lambda f: f.drop(columns="unique_id"), "it lacks unique_id"),
        (
            lambda f: f.drop(index=4),
            r"a row with x for every .* rows are missing for series s002, first at 2024-01-22, 1 step in all.*future_frame",
        ),
        (lambda f: f[f.unique_id == "s001"], r"rows are missing for series s002, first at 2024-01-21, 3 steps in all"),
        (lambda f: f[f.unique_id == "zz"].reset_index(drop=True), "cannot be empty"),
        (
            lambda f: f.assign(unique_id="zz" + f.unique_id),
            r"rows are missing for series s001, s002, first at 2024-01-21 \(series s001\), 6 steps in all",
        ),
        (
            lambda f: f.assign(x=[0, 1, 2, 3, np.nan, 5]),
            r"x of the future frame is missing or infinite for series s002, first at 2024-01-22",
        ),
        (lambda f: f.assign(x=[0, -np.inf, 2, 3, np.inf, 5]), r"s001, s002, first at 2024-01-22 \(series s001\), 2 steps in all"),
        (lambda f: f.assign(x="a"), r"future frame cannot be read, first for series s001: Column x must be numeric"),
        (lambda f: f.assign(x=pd.Categorical(["a"] * 6)), r"x must contain numbers, as in fit, got categories"),
        (lambda f: joined(f, f.iloc[[2]]), r"unique in the future frame.*s001, first at 2024-01-23"),
        (lambda f: f.assign(ds=f.ds.dt.tz_localize("UTC")), r"ds of the future frame.*time zone"),
        (lambda f: f.assign(ds=f.ds + pd.Timedelta("3h")), r"rows are missing for .* 6 steps in all"),
        (lambda f: f.assign(ds=np.arange(6)), r"got int64"),
    ],
)
def test_refused(change: Any, words: str) -> None:
    series = series_of(P(2, 20))
    with pytest.raises(DataError, match=words):
        read_future_covariates(change(rows_ahead(series, 3)), series, 3, {"x": None})


def test_nothing_given() -> None:
    series = series_of(P(2, 20))
    assert read_future_covariates(None, series, 3, {}) == {}
    with pytest.raises(DataError, match=r"must contain the future covariates seen in fit \(x, z\) for the next 3 steps"):
        read_future_covariates(None, series, 3, {"x": None, "z": None})


def test_given_to_a_model_without() -> None:
    series = series_of(P(2, 20))
    with pytest.warns(DataWarning, match="future= is ignored"):
        assert read_future_covariates(rows_ahead(series, 3), series, 3, {}) == {}


def test_what_other_rows_hold_does_not_matter() -> None:
    series = series_of(P(2, 20))
    future = rows_ahead(series, 2)
    late = future.assign(ds=future.ds + pd.Timedelta(days=30), x=np.inf)
    odd = future.assign(unique_id="other " + future.unique_id, ds=future.ds + pd.Timedelta("1s") * np.arange(4) ** 2, x=np.nan)
    found = read_future_covariates(joined(odd, late, future), series, 2, {"x": None})
    assert found["x"].values.tolist() == [[0, 1], [2, 3]]


def test_categories_as_fit_knew_them() -> None:
    series = series_of(P(1, 20))
    future = rows_ahead(series, 3).assign(x=pd.Categorical(["new", "b", "a"], categories=["a", "b", "new", "unused"]))
    with pytest.warns(DataWarning, match="Column x has categories not seen in fit, which are treated as unknown: new"):
        found = read_future_covariates(future, series, 3, {"x": ("a", "b", "c")})
    assert found["x"].values.tolist() == [[UNKNOWN, 1, 0]]
    assert found["x"].categories == ("a", "b", "c")
    with pytest.raises(DataError, match=r"x of the future frame is missing.*2024-01-22"):
        read_future_covariates(future.assign(x=pd.Categorical(["a", None, "a"])), series, 3, {"x": ("a", "b", "c")})


def test_text_of_a_categorical_column_is_told_to_be_one() -> None:
    series = series_of(P(2, 20))
    future = rows_ahead(series, 2).assign(x="a")
    with pytest.raises(DataError, match=r"Column x must be categorical, as in fit, got dtype .*to a categorical"):
        read_future_covariates(future, series, 2, {"x": ("a", "b")})


def test_numbers_stay_numbers() -> None:
    kind = Covariate(np.array([0.0]), ("a",))
    assert recode_covariate(kind, "x", ("a",)) is kind
    with pytest.raises(DataError, match="x must contain categories, as in fit, got numbers"):
        recode_covariate(Covariate(np.array([0.0])), "x", ("a",))
