"""Reliability of frames: containers, columns, duplicates, order, ids."""

from __future__ import annotations

import copy
import datetime
import time
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest

from deepforecast import LinearModel, Naive, check, compare, cross_validate, fill_gaps, load, plot, score
from deepforecast.core import registry
from deepforecast.testing.assertions import collect_warnings
from deepforecast.testing.subject import Subject, make_subjects
from tests.bad_input import KINDS, forecast, kind, made, one_of_each_kind, refused, sn
from tests.frames import LIBRARIES, D, P, Stream, converted, joined, plain, same


@pytest.mark.parametrize("name", ["ds", "y"])
def test_missing_column(name: str) -> None:
    refused(sn(), D().drop(columns=name), name, "unique_id")


def test_missing_id_column_and_repeated_stamps() -> None:
    refused(sn(), P(2, 40).drop(columns="unique_id"), "unique_id", "2024-01-01")


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])  # polars cannot hold such a frame
def test_duplicate_column(library: str) -> None:
    frame: Any = pd.concat([D(), D()[["y"]]], axis=1)
    if library == "pyarrow":
        table = converted(D(), "pyarrow")
        frame = table.append_column("y", table["y"])
    refused(sn(), frame, "y", "unique")


@KINDS
@pytest.mark.parametrize("library", LIBRARIES)
def test_empty_frame(subject: Subject, library: str) -> None:
    refused(made(subject), converted(D().iloc[:0], library), "empty")


@pytest.mark.parametrize("thing", [[{"ds": 1}], {"ds": [1]}, np.zeros((3, 3)), None], ids=["list", "dict", "array", "None"])
def test_argument_that_is_not_a_frame(thing: Any) -> None:
    refused(sn(), thing, "DataFrame", type(thing).__name__)


def test_lazy_frames_and_arrow_streams() -> None:
    expected = forecast(sn(), P(3, 60))
    lazy, stream = converted(P(3, 60), "polars").lazy(), Stream(P(3, 60))
    for frame, library in ((lazy, "polars"), (stream, "pyarrow")):
        predictions = sn().fit(frame).predict()
        assert nw.from_native(predictions).implementation.value == library
        same(predictions, expected, types=False)


def test_every_call_reads_an_arrow_stream_once() -> None:
    history = P(2, 60).assign(promo=np.arange(120) % 3.0)
    static = pd.DataFrame({"unique_id": ["s001", "s002"], "area": [1.0, 2.0]})
    columns = {"future": "promo", "static": "area"}
    model = LinearModel(horizon=5, lags=7).fit(Stream(history), columns=columns, static=Stream(static))
    future = model.future_frame().to_pandas().assign(promo=1.0)
    model.predict(future=Stream(future))
    predictions = model.predict(frame=Stream(history), future=Stream(future), static=Stream(static))
    model.predict(frame=Stream(history), future=Stream(future))  # static covariates of the fit
    model.update(Stream(future.assign(y=1.0)))
    assert nw.from_native(predictions).implementation.is_pyarrow()
    assert check(Stream(history), columns={"future": "promo"}).ok
    assert fill_gaps(Stream(P(2, 60).drop(index=3))).num_rows == 120
    windows = cross_validate([sn()], Stream(P(2, 60)))
    score(Stream(plain(windows)), train=Stream(P(2, 60)))
    score(Stream(plain(windows).drop(columns="y")), actual=Stream(P(2, 60)))
    board = compare([sn(), Naive(horizon=5)], Stream(history), columns=columns, static=Stream(static), n_windows=2)
    assert board.history.num_rows == 120
    plot(Stream(P(2, 60)), Stream(plain(predictions)))


def test_series_with_a_datetime_index() -> None:
    frame = D()
    found = forecast(sn(), pd.Series(frame.y.to_numpy(), index=pd.DatetimeIndex(frame.ds)))
    assert list(found.columns) == ["ds", "SeasonalNaive"]
    same(found, forecast(sn(), frame)[["ds", "SeasonalNaive"]])
    refused(sn(), frame.y, "DatetimeIndex", "RangeIndex")


@KINDS
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(subject: Subject, library: str) -> None:
    frame = P(3, 60)
    found = made(subject).fit(converted(frame, library)).predict()
    assert nw.from_native(found).implementation.value == library
    same(found, forecast(made(subject), frame), types=False)


@KINDS
def test_arrow_dtypes_of_pandas(subject: Subject) -> None:
    frame = P(3, 60)
    arrow = frame.convert_dtypes(dtype_backend="pyarrow")
    found = forecast(made(subject), arrow)
    assert found.dtypes.iloc[:2].astype(str).tolist() == arrow.dtypes.iloc[:2].astype(str).tolist()
    wanted = forecast(made(subject), frame)
    assert found.unique_id.tolist() == wanted.unique_id.tolist()
    assert found.ds.tolist() == wanted.ds.tolist()
    np.testing.assert_array_equal(found.iloc[:, 2:].to_numpy(float), wanted.iloc[:, 2:].to_numpy(float))


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_column_names(library: str) -> None:
    frame = converted(D().rename(columns={"unique_id": "id", "ds": "date", "y": "value"}), library)
    refused(sn(), frame, "unique_id", "id", "date", "value", "columns=")
    found = forecast(sn(), frame, columns={"id": "id", "time": "date", "target": "value"})
    assert list(found.columns) == ["id", "date", "SeasonalNaive"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_column_names_of_gluonts(library: str) -> None:
    frame = converted(D().rename(columns={"unique_id": "item_id", "ds": "timestamp", "y": "target"}), library)
    assert list(forecast(sn(), frame).columns) == ["item_id", "timestamp", "SeasonalNaive"]


@KINDS
@pytest.mark.parametrize("y", [None, 999.0], ids=["same value", "other value"])
def test_duplicate_row(subject: Subject, y: float | None) -> None:
    row = D().iloc[[30]]
    refused(made(subject), joined(D(), row if y is None else row.assign(y=y)), "A", "2024-01-31")


@pytest.mark.parametrize("library", LIBRARIES)
def test_duplicate_in_one_series_of_many(library: str) -> None:
    frame = P(150, 30)
    row = frame[frame.unique_id == "s131"].iloc[[7]]
    refused(sn(), converted(joined(frame, row), library), "s131", "2024-01-08")


def test_duplicates_in_nine_series() -> None:
    frame = P(20, 30)
    rows = frame[frame.unique_id.isin([f"s{i:03d}" for i in range(3, 12)])].groupby("unique_id").head(1)
    text = refused(sn(), joined(frame, rows), "s003, s004, s005, s006, s007", "9")
    assert "s008" not in text


@KINDS
@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_row_order(subject: Subject, order: str) -> None:
    frame = D()
    moved = frame.iloc[::-1] if order == "reversed" else frame.sample(frac=1, random_state=0)
    same(forecast(made(subject), moved), forecast(made(subject), frame))


@KINDS
@pytest.mark.parametrize("library", LIBRARIES)
def test_interleaved_series(subject: Subject, library: str) -> None:
    frame = P(3, 60)
    wanted = forecast(made(subject), converted(frame, library))
    same(forecast(made(subject), converted(frame.sort_values("ds", kind="stable"), library)), wanted)


@KINDS
@pytest.mark.parametrize("index", ["zeros", "ds", "multi"])
def test_index_is_ignored(subject: Subject, index: str) -> None:
    frame = P(2, 60)
    wanted = forecast(made(subject), frame)
    if index == "zeros":
        frame.index = pd.Index(np.zeros(len(frame), dtype=int))
    elif index == "ds":
        frame.index = pd.Index(range(len(frame)), name="ds")
    else:
        frame.index = pd.MultiIndex.from_product([["a", "b"], range(60)], names=["unique_id", "ds"])
    same(forecast(made(subject), frame), wanted)


@KINDS
def test_column_order(subject: Subject) -> None:
    same(forecast(made(subject), P(2, 60)[["y", "ds", "unique_id"]]), forecast(made(subject), P(2, 60)))


@KINDS
@pytest.mark.parametrize(("name", "value"), [("note", "x"), ("price", 1.5)], ids=["text", "numeric"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_column_without_a_role(subject: Subject, name: str, value: Any, library: str) -> None:
    with collect_warnings() as said:
        found = made(subject).fit(converted(D().assign(**{name: value}), library)).predict()
    assert len(said) == 1
    assert name in said[0]
    same(found, made(subject).fit(converted(D(), library)).predict())


@KINDS
def test_read_only_arrays_and_slices(subject: Subject) -> None:
    whole = P(3, 60)
    part = whole[whole.unique_id != "s002"]
    wanted = forecast(made(subject), part.copy())
    same(forecast(made(subject), part), wanted)
    y, stamps = part.y.to_numpy().copy(), part.ds.to_numpy().copy()
    y.flags.writeable = stamps.flags.writeable = False
    frozen = pd.DataFrame({"unique_id": part.unique_id.to_numpy(), "ds": stamps, "y": y}, copy=False)
    same(forecast(made(subject), frozen), wanted)


@KINDS
def test_input_frame_is_not_modified(subject: Subject) -> None:
    from deepforecast import cross_validate

    frame = P(3, 80).sample(frac=1, random_state=1)
    frame.attrs = {"source": ["a"]}
    kept = copy.deepcopy(frame)
    made(subject).fit(frame).predict(frame=frame)
    cross_validate([made(subject)], frame, n_windows=2)
    pd.testing.assert_frame_equal(frame, kept)
    assert frame.attrs == kept.attrs
    assert frame.index.equals(kept.index)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("rows", [[17], list(range(60))], ids=["one", "all"])
def test_missing_id(rows: list[int], library: str) -> None:
    frame = D().astype({"unique_id": object})
    frame.loc[rows, "unique_id"] = None
    table = converted(frame, library)
    if len(rows) == 60 and library != "pandas":
        import pyarrow as pa

        ids = pa.array([None] * 60, type=pa.string())
        table = converted(frame.drop(columns="unique_id"), "pyarrow").append_column("unique_id", ids)
        table = table if library == "pyarrow" else __import__("polars").DataFrame(table)
    refused(sn(), table, "unique_id", f"row {rows[0]}")


def test_ids_of_two_types() -> None:
    frame = joined(D().assign(unique_id=1), D().assign(unique_id="1"))
    refused(sn(), frame, "unique_id", "int, str")
    refused(sn(), frame.astype({"unique_id": "category"}), "unique_id", "int, str")


@KINDS
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16", "Int64", "int32[pyarrow]"])
def test_integer_ids(subject: Subject, dtype: str) -> None:
    frame = joined(*(D().assign(unique_id=number, y=D().y + number) for number in (30, 4, 100))).astype({"unique_id": dtype})
    found = forecast(made(subject), frame)
    assert str(found.unique_id.dtype) == dtype
    assert found.unique_id.drop_duplicates().tolist() == [4, 30, 100]
    text = forecast(made(subject), frame.assign(unique_id=frame.unique_id.map({30: "b", 4: "a", 100: "c"}).astype(str)))
    np.testing.assert_array_equal(found.iloc[:, 2], text.iloc[:, 2])


@KINDS
def test_categorical_ids(subject: Subject) -> None:
    frame = P(3, 60)
    text = forecast(made(subject), frame)
    kind = pd.CategoricalDtype(["zz", "s003", "s002", "s001", "aa"])
    found = forecast(made(subject), frame.astype({"unique_id": kind}))
    assert found.unique_id.dtype == kind
    same(found.astype({"unique_id": text.unique_id.dtype}), text)


def test_categorical_ids_of_other_libraries() -> None:
    import polars as pl
    import pyarrow as pa

    frame = P(3, 60)
    wanted = forecast(sn(), frame)
    table = converted(frame, "pyarrow")
    encoded = table.set_column(0, "unique_id", table["unique_id"].combine_chunks().dictionary_encode())
    in_chunks = pa.concat_tables([encoded.slice(60), encoded.slice(0, 60)])
    enum = converted(frame, "polars").with_columns(pl.col("unique_id").cast(pl.Enum(["q", "s003", "s002", "s001"])))
    plain_kind = converted(frame, "polars").with_columns(pl.col("unique_id").cast(pl.Categorical))
    for given in (encoded, in_chunks, enum, plain_kind):
        found = sn().fit(given).predict()
        assert nw.from_native(found).schema["unique_id"] == nw.from_native(given).schema["unique_id"]
        assert plain(found).unique_id.astype(str).tolist() == wanted.unique_id.tolist()
        np.testing.assert_array_equal(plain(found).SeasonalNaive, wanted.SeasonalNaive)


def test_large_arrow_text_ids() -> None:
    import pyarrow as pa

    table = converted(P(2, 60), "pyarrow")
    views = table.set_column(0, "unique_id", table["unique_id"].cast(pa.string_view()))
    same(sn().fit(views).predict(), forecast(sn(), P(2, 60)))


@pytest.mark.parametrize("library", LIBRARIES)
def test_unusual_text_ids(library: str, tmp_path: Any) -> None:
    odd = ["", " a", "a", "A", "日本", "a/b", "..", "x" * 300, "a\x00b", "a\x00c"]
    frame = joined(*(D(one).assign(y=D().y + 10 * number) for number, one in enumerate(odd)))
    model = sn().fit(converted(frame, library))
    found = model.predict()
    assert plain(found).unique_id.tolist() == [one for one in sorted(odd) for _ in range(5)]
    for number, one in enumerate(odd):
        alone = forecast(sn(), D().assign(y=D().y + 10 * number))
        np.testing.assert_array_equal(plain(found).SeasonalNaive[plain(found).unique_id == one], alone.SeasonalNaive)
    model.save(tmp_path / "model")
    same(load(tmp_path / "model").predict(), found)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("one", [("a", 1), 1.5, True, datetime.date(2024, 1, 1), b"a"], ids=repr)
def test_ids_of_unsupported_types(one: Any) -> None:
    refused(sn(), D().assign(unique_id=pd.Series([one] * 60)), "unique_id")


@pytest.mark.parametrize("freq", [None, "D"])
def test_thousand_series_of_one_observation(freq: Any) -> None:
    frame = pd.DataFrame({"unique_id": [f"s{i}" for i in range(1000)], "ds": pd.Timestamp("2024-01-01"), "y": 1.0})
    before = time.process_time()
    refused(sn(), frame, "at least" if freq else "fewer than 2", "1000", "s0, s1", freq=freq)
    assert time.process_time() - before < 2


def test_every_registered_model_is_here_and_one_of_each_kind_among_them() -> None:
    assert {one.cls.__name__ for one in make_subjects()} == set(registry.names())
    kinds = [kind(one) for one in one_of_each_kind(make_subjects())]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == {kind(one) for one in make_subjects()}
    assert len(one_of_each_kind([*make_subjects("Naive"), *make_subjects("SeasonalNaive"), *make_subjects("Naive2")])) == 2
