"""Conversion of the published files of each dataset to the tables of the catalogue.

Each function takes the paths of the files and returns the tables by name. The results are verified
by a pinned hash.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepforecast.datasets.events import EVENTS, TYPES

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

Files = Mapping[str, Path]
ETT_COLUMNS = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")  # the order of the columns
M4_PERIODS = ("Yearly", "Quarterly", "Monthly", "Weekly", "Daily", "Hourly")
M5_FIRST, M5_TEST, M5_LAST = 1495, 1914, 1941  # days of the competition, counted from 1: first, first of the test, last


def long(path: Path, name: str, n_test: int) -> dict[str, pd.DataFrame]:
    """Convert a csv file with the columns ds and y to a single series; its last `n_test` rows are the test set."""
    raw = _read_csv(path)
    return _split_at(_series_frame(name, _parse_timestamps(raw["ds"]), raw["y"]), len(raw) - n_test)


def prices(path: Path, name: str, columns: tuple[str, str], border: int) -> dict[str, pd.DataFrame]:
    """Convert a csv file of date, two future covariates, and the price; the test set begins at row `border`."""
    raw = _read_csv(path)
    frame = _series_frame(name, _parse_timestamps(raw.iloc[:, 0]), raw.iloc[:, 3])
    for position, column in enumerate(columns, 1):
        frame[column] = raw.iloc[:, position].to_numpy("float32")
    return _split_at(frame, border)


def channels(path: Path, borders: tuple[int, int]) -> dict[str, pd.DataFrame]:
    """Convert a csv file of date and seven series to train, test and rest, which begin at row 0 and the two `borders`."""
    raw = _read_csv(path)
    timestamps = _parse_timestamps(raw["date"])
    bounds_by_split = {"train": (0, borders[0]), "test": borders, "rest": (borders[1], len(raw))}
    tables = {}
    for split, bounds in bounds_by_split.items():
        rows = slice(*bounds)
        tables[split] = _stack_series({name: raw[name][rows] for name in ETT_COLUMNS}, timestamps[rows])
    return tables


def rates(path: Path, border: int) -> dict[str, pd.DataFrame]:
    """Convert a compressed text file of eight series without dates.

    Days are counted from 1990-01-01.
    """
    import pandas as pd

    with gzip.open(path, "rt", encoding="ascii") as file:
        raw = pd.read_csv(file, header=None)
    timestamps = pd.date_range("1990-01-01", periods=len(raw), freq="D").to_numpy().astype("datetime64[ms]")
    rows_by_split = {"train": slice(0, border), "test": slice(border, None)}
    names = [*(str(number) for number in range(7)), "OT"]  # as in the usual csv file of this set
    columns = dict(zip(names, (raw[name] for name in raw), strict=True))
    return {
        split: _stack_series({name: values[rows] for name, values in columns.items()}, timestamps[rows])
        for split, rows in rows_by_split.items()
    }


def m4(files: Files) -> dict[str, pd.DataFrame]:
    """Convert the twelve wide files of M4 (one series per line) and its metadata."""
    import pandas as pd

    train: list[tuple[str, np.ndarray]] = []
    test: list[tuple[str, np.ndarray]] = []
    for period in M4_PERIODS:
        train += _read_lines(files[f"{period}-train.csv"])
        test += _read_lines(files[f"{period}-test.csv"])
    starts = [len(values) for _, values in train]
    raw_info = _read_csv(files["M4-info.csv"])
    info = pd.DataFrame({"unique_id": raw_info["M4id"], "category": raw_info["category"], "freq": raw_info["SP"]})
    info["frequency"] = raw_info["Frequency"].astype("int16")
    info["horizon"] = raw_info["Horizon"].astype("int16")
    info["start"] = raw_info["StartingDate"]
    return {"train": _join_series(train, [0] * len(train)), "test": _join_series(test, starts), "info": _encode_texts(info)}


def m1(competition: Mapping[str, Mapping[str, Any]]) -> dict[str, pd.DataFrame]:
    """Convert the list M1 of the R package Mcomp.

    The elements x and xx of each series are its train and test values.
    """
    import pandas as pd

    train = [(name, _to_vector(series["x"])) for name, series in competition.items()]
    test = [(name, _to_vector(series["xx"])) for name, series in competition.items()]
    lengths = [len(values) for _, values in train]
    rows = [
        {
            "unique_id": name, "freq": series["period"][0].capitalize(), "category": series["type"][0], "n_train": length,
            "horizon": len(test_values), "start": float(series["x"]["tsp"][0]), "frequency": int(series["x"]["tsp"][2]),
        }
        for (name, series), length, (_, test_values) in zip(competition.items(), lengths, test, strict=True)
    ]  # fmt: skip
    return {
        "train": _join_series(train, [0] * len(train)),
        "test": _join_series(test, lengths),
        "info": _encode_texts(pd.DataFrame(rows)),
    }


def cash_machines(series: Mapping[str, Any] | Sequence[Any], n_test: int) -> dict[str, pd.DataFrame]:
    """Convert NN5, daily from 1996-03-18; the last `n_test` days are the test set.

    Missing values are replaced by the median of the weekday; the column `observed` is False for them.
    """
    import numpy as np
    import pandas as pd

    frames: dict[str, list[pd.DataFrame]] = {"train": [], "test": []}
    for number, vector in enumerate(series.values() if isinstance(series, Mapping) else series, 1):
        raw = _to_vector(vector)
        days = pd.date_range("1996-03-18", periods=len(raw), freq="D")
        medians = pd.Series(raw).groupby(days.day_of_week).transform("median").to_numpy()
        values = np.where(np.isnan(raw), medians, raw)
        frame = _series_frame(f"NN5-{number:03d}", days.to_numpy().astype("datetime64[ms]"), values)
        for split, subset in _split_at(frame.assign(observed=~np.isnan(raw)), len(raw) - n_test).items():
            frames[split].append(subset)
    return {split: _encode_texts(pd.concat(subsets, ignore_index=True)) for split, subsets in frames.items()}


def demand(raw: Mapping[str, Any], n_test: int) -> dict[str, pd.DataFrame]:
    """Convert vic_elec: half-hourly in UTC, with temperature and public holidays; the last `n_test` rows are the test set."""
    timestamps = _to_vector(raw["Time"]).astype("datetime64[s]").astype("datetime64[ms]")
    frame = _series_frame("vic", timestamps, raw["Demand"])
    frame["temperature"] = _to_vector(raw["Temperature"]).astype("float32")
    frame["holiday"] = _to_vector(raw["Holiday"]).astype("int8")
    return _split_at(frame, len(frame) - n_test)


def stores(files: Files, n_test_days: int) -> dict[str, pd.DataFrame]:
    """Convert Rossmann: the training days of the competition and the table of stores."""
    import pandas as pd

    raw = _read_csv(files["train.csv"], dtype={"StateHoliday": str})
    frame = pd.DataFrame({"unique_id": "S" + raw["Store"].astype(str), "ds": _parse_timestamps(raw["Date"])})
    frame["y"] = raw["Sales"].astype("float32")
    for name, column, dtype in (("open", "Open", "int8"), ("promo", "Promo", "int8"), ("state_holiday", "StateHoliday", str),
                               ("school_holiday", "SchoolHoliday", "int8"), ("customers", "Customers", "int32")):  # fmt: skip
        frame[name] = raw[column].astype(dtype)
    frame = frame.assign(store=raw["Store"]).sort_values(["store", "ds"], ignore_index=True).drop(columns="store")
    is_test = frame["ds"] > frame["ds"].max() - pd.Timedelta(days=n_test_days)
    table = _read_csv(files["store.csv"])
    table.columns = pd.Index([_snake_case(name) for name in table])
    table = table.rename(columns={"store": "unique_id"})
    table["unique_id"] = "S" + table["unique_id"].astype(str)
    tables = {"train": frame[~is_test], "test": frame[is_test], "stores": table}
    return {table_name: _encode_texts(subset.reset_index(drop=True)) for table_name, subset in tables.items()}


def walmart(path: Path) -> dict[str, pd.DataFrame]:
    """Convert M5: items of store CA_1 from day 1495 and their first sale, with events."""
    import numpy as np
    import pandas as pd

    with zipfile.ZipFile(path) as archive:
        sales = pd.read_csv(_open_member(archive, "sales_train_evaluation.csv"))
        calendar = pd.read_csv(_open_member(archive, "calendar.csv"))
    days = calendar.iloc[M5_FIRST - 1 : M5_LAST]
    sales = sales[sales["store_id"] == "CA_1"]
    ids = sales["item_id"] + "_CA_1"
    values = sales[[f"d_{day}" for day in range(M5_FIRST, M5_LAST + 1)]].to_numpy("float32")
    border = M5_TEST - M5_FIRST
    order = np.argsort(ids.to_numpy(str), kind="stable")
    order = order[(values[order, :border] > 0).any(axis=1)]  # items with a sale in train
    first_sale = (values[order] > 0).argmax(axis=1)
    row, day = np.nonzero(np.arange(values.shape[1]) >= first_sale[:, None])
    event = days["event_name_1"].map(EVENTS).fillna(0).astype(int).astype(str).to_numpy(object)
    event_type = days["event_type_1"].map(TYPES).fillna(0).astype(int).astype(str).to_numpy(object)
    frame = pd.DataFrame(
        {
            "unique_id": ids.to_numpy(object)[order][row],
            "ds": _parse_timestamps(days["date"])[day],
            "y": values[order][row, day],
            "event": event[day],
            "event_type": event_type[day],
            "snap": days["snap_CA"].to_numpy("int8")[day],
        }
    )
    splits = {"train": frame[day < border], "test": frame[day >= border]}
    return {split: _encode_texts(subset.reset_index(drop=True)) for split, subset in splits.items()}


def _read_csv(path: Path, **options: Any) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(path, **options)  # rounding errors of float64 vanish in float32


def _parse_timestamps(texts: Any) -> Any:
    import pandas as pd

    return pd.to_datetime(texts).to_numpy().astype("datetime64[ms]")


def _series_frame(name: str, timestamps: Any, values: Any) -> pd.DataFrame:
    """A long frame of one series, with a categorical id and float32 values."""
    import numpy as np
    import pandas as pd

    ids = pd.Categorical.from_codes(np.zeros(len(timestamps), dtype="int8"), [name])
    return pd.DataFrame({"unique_id": ids, "ds": timestamps, "y": np.asarray(values, dtype="float32")})


def _stack_series(columns: Mapping[str, Any], timestamps: Any) -> pd.DataFrame:
    """Concatenate series in the given order."""
    import pandas as pd

    frames = [_series_frame(name, timestamps, values) for name, values in columns.items()]
    return _encode_texts(pd.concat(frames, ignore_index=True))


def _split_at(frame: pd.DataFrame, border: int) -> dict[str, pd.DataFrame]:
    return {"train": frame[:border].reset_index(drop=True), "test": frame[border:].reset_index(drop=True)}


def _encode_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert text columns to categories in order of appearance."""
    import pandas as pd
    from pandas.api import types

    for name in frame.columns:
        if not types.is_numeric_dtype(frame[name].dtype) and not types.is_datetime64_any_dtype(frame[name].dtype):
            codes, names = pd.factorize(frame[name])
            frame[name] = pd.Categorical.from_codes(codes, names)
    return frame


def _read_lines(path: Path) -> list[tuple[str, np.ndarray]]:
    """Read id and values of each line of a wide M4 file; shorter series end with empty cells."""
    import numpy as np

    series = []
    with path.open(encoding="ascii") as file:
        next(file)
        for line in file:
            name, _, values = line.replace('"', "").rstrip(",\r\n").partition(",")
            series.append((name, np.array(values.split(","), dtype="float64")))
    return series


def _join_series(series: list[tuple[str, np.ndarray]], starts: list[int]) -> pd.DataFrame:
    """Concatenate series (id, values) on integer time; series i has the steps `starts[i] + 1`, `starts[i] + 2`, ..."""
    import numpy as np
    import pandas as pd

    lengths = np.array([len(values) for _, values in series])
    codes = np.repeat(np.arange(len(series), dtype="int32"), lengths)
    first_rows = np.repeat(np.cumsum(lengths) - lengths, lengths)
    steps = np.arange(len(codes)) - first_rows + 1 + np.repeat(starts, lengths)
    ids = pd.Categorical.from_codes(codes, [name for name, _ in series])
    values = np.concatenate([values for _, values in series]).astype("float32")
    return pd.DataFrame({"unique_id": ids, "ds": steps.astype("int32"), "y": values})


def _to_vector(vector: Any) -> np.ndarray:
    """The values of an R vector or time series, as read by `r_files`."""
    import numpy as np

    return np.asarray(vector["x"] if isinstance(vector, Mapping) else vector, dtype="float64")


def _snake_case(name: str) -> str:
    """`StoreType` as `store_type`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _open_member(archive: zipfile.ZipFile, name: str) -> Any:
    """Open the member of an archive with this file name, in any folder."""
    return archive.open(next(member for member in archive.namelist() if member.rpartition("/")[2] == name))
