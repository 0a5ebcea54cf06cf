"""From the files that a public home has to the rows of the catalogue: what each set's note says was done to it, done here.

Each function takes the paths of the files by name and gives the frames of the set by part. Nothing here has to be trusted:
the rows that come out are compared with a pinned hash before they are kept.
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
ETT = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")  # the order of the columns
M4_PERIODS = ("Yearly", "Quarterly", "Monthly", "Weekly", "Daily", "Hourly")
M5_FIRST, M5_TEST, M5_LAST = 1495, 1914, 1941  # days of the competition


def long(path: Path, name: str, test: int) -> dict[str, pd.DataFrame]:
    """A csv file of the columns ds and y as one series whose last `test` rows are the test set."""
    raw = _csv(path)
    return _cut(_series(name, _stamps(raw["ds"]), raw["y"]), len(raw) - test)


def prices(path: Path, name: str, columns: tuple[str, str], border: int) -> dict[str, pd.DataFrame]:
    """A csv file of date, two columns known ahead, and the price."""
    raw = _csv(path)
    frame = _series(name, _stamps(raw.iloc[:, 0]), raw.iloc[:, 3])
    for place, column in enumerate(columns, 1):
        frame[column] = raw.iloc[:, place].to_numpy("float32")
    return _cut(frame, border)


def channels(path: Path, borders: tuple[int, int]) -> dict[str, pd.DataFrame]:
    """A csv file of date and a column for each of the seven channels: train, test and the rest behind it."""
    raw = _csv(path)
    stamps = _stamps(raw["date"])
    ends = {"train": (0, borders[0]), "test": borders, "rest": (borders[1], len(raw))}
    return {part: _stacked({name: raw[name][slice(*end)] for name in ETT}, stamps[slice(*end)]) for part, end in ends.items()}


def rates(path: Path, border: int) -> dict[str, pd.DataFrame]:
    """A compressed text of eight columns without dates: days are counted from 1990-01-01."""
    import pandas as pd

    with gzip.open(path, "rt", encoding="ascii") as file:
        raw = pd.read_csv(file, header=None)
    stamps = pd.date_range("1990-01-01", periods=len(raw), freq="D").to_numpy().astype("datetime64[ms]")
    halves = {"train": slice(0, border), "test": slice(border, None)}
    names = [*(str(number) for number in range(7)), "OT"]  # as the common csv of this set calls them
    columns = dict(zip(names, (raw[name] for name in raw), strict=True))
    return {
        part: _stacked({name: values[rows] for name, values in columns.items()}, stamps[rows]) for part, rows in halves.items()
    }


def m4(files: Files) -> dict[str, pd.DataFrame]:
    """The twelve wide files of M4, a series a line, and its table of facts."""
    import pandas as pd

    train: list[tuple[str, np.ndarray]] = []
    test: list[tuple[str, np.ndarray]] = []
    for period in M4_PERIODS:
        train += _lines(files[f"{period}-train.csv"])
        test += _lines(files[f"{period}-test.csv"])
    starts = [len(values) for _, values in train]
    facts = _csv(files["M4-info.csv"])
    info = pd.DataFrame({"unique_id": facts["M4id"], "category": facts["category"], "freq": facts["SP"]})
    info["frequency"], info["horizon"] = facts["Frequency"].astype("int16"), facts["Horizon"].astype("int16")
    info["start"] = facts["StartingDate"]
    return {"train": _joined(train, [0] * len(train)), "test": _joined(test, starts), "info": _coded(info)}


def m1(competition: Mapping[str, Mapping[str, Any]]) -> dict[str, pd.DataFrame]:
    """The list of M1 of the package Mcomp: x and xx of each series are its train and test values."""
    import pandas as pd

    train = [(name, _vector(one["x"])) for name, one in competition.items()]
    test = [(name, _vector(one["xx"])) for name, one in competition.items()]
    lengths = [len(values) for _, values in train]
    rows = [
        {
            "unique_id": name, "freq": one["period"][0].capitalize(), "category": one["type"][0], "n_train": length,
            "horizon": len(ahead), "start": float(one["x"]["tsp"][0]), "frequency": int(one["x"]["tsp"][2]),
        }
        for (name, one), length, (_, ahead) in zip(competition.items(), lengths, test, strict=True)
    ]  # fmt: skip
    return {
        "train": _joined(train, [0] * len(train)), "test": _joined(test, lengths), "info": _coded(pd.DataFrame(rows)),
    }  # fmt: skip


def cash_machines(series: Mapping[str, Any] | Sequence[Any], test: int) -> dict[str, pd.DataFrame]:
    """NN5: each machine's days from 1996-03-18; holes take the median of the same weekday, and are flagged."""
    import numpy as np
    import pandas as pd

    frames: dict[str, list[pd.DataFrame]] = {"train": [], "test": []}
    for number, given in enumerate(series.values() if isinstance(series, Mapping) else series, 1):
        raw = _vector(given)
        days = pd.date_range("1996-03-18", periods=len(raw), freq="D")
        medians = pd.Series(raw).groupby(days.day_of_week).transform("median").to_numpy()
        values = np.where(np.isnan(raw), medians, raw)
        frame = _series(f"NN5-{number:03d}", days.to_numpy().astype("datetime64[ms]"), values)
        for part, one in _cut(frame.assign(observed=~np.isnan(raw)), len(raw) - test).items():
            frames[part].append(one)
    return {part: _coded(pd.concat(many, ignore_index=True)) for part, many in frames.items()}


def demand(raw: Mapping[str, Any], test: int) -> dict[str, pd.DataFrame]:
    """vic_elec: half-hours in UTC with temperature and public holidays."""
    stamps = _vector(raw["Time"]).astype("datetime64[s]").astype("datetime64[ms]")
    frame = _series("vic", stamps, raw["Demand"])
    frame["temperature"] = _vector(raw["Temperature"]).astype("float32")
    frame["holiday"] = _vector(raw["Holiday"]).astype("int8")
    return _cut(frame, len(frame) - test)


def stores(files: Files, test: int) -> dict[str, pd.DataFrame]:
    """Rossmann: the competition's training days and its table of stores."""
    import pandas as pd

    raw = _csv(files["train.csv"], dtype={"StateHoliday": str})
    frame = pd.DataFrame({"unique_id": "S" + raw["Store"].astype(str), "ds": _stamps(raw["Date"])})
    frame["y"] = raw["Sales"].astype("float32")
    for name, column, kind in (("open", "Open", "int8"), ("promo", "Promo", "int8"), ("state_holiday", "StateHoliday", str),
                               ("school_holiday", "SchoolHoliday", "int8"), ("customers", "Customers", "int32")):  # fmt: skip
        frame[name] = raw[column].astype(kind)
    frame = frame.assign(store=raw["Store"]).sort_values(["store", "ds"], ignore_index=True).drop(columns="store")
    late = frame["ds"] > frame["ds"].max() - pd.Timedelta(days=test)
    table = _csv(files["store.csv"])
    table.columns = pd.Index([_snake(name) for name in table])
    table = table.rename(columns={"store": "unique_id"})
    table["unique_id"] = "S" + table["unique_id"].astype(str)
    parts = {"train": frame[~late], "test": frame[late], "stores": table}
    return {part: _coded(one.reset_index(drop=True)) for part, one in parts.items()}


def walmart(path: Path) -> dict[str, pd.DataFrame]:
    """M5: the items of store CA_1 from day 1495 on, without zeros before the first sale, with the calendar's events."""
    import numpy as np
    import pandas as pd

    with zipfile.ZipFile(path) as archive:
        sales = pd.read_csv(_member(archive, "sales_train_evaluation.csv"))
        calendar = pd.read_csv(_member(archive, "calendar.csv"))
    days = calendar.iloc[M5_FIRST - 1 : M5_LAST]
    sales = sales[sales["store_id"] == "CA_1"]
    ids = sales["item_id"] + "_CA_1"
    values = sales[[f"d_{day}" for day in range(M5_FIRST, M5_LAST + 1)]].to_numpy("float32")
    border, order = M5_TEST - M5_FIRST, np.argsort(ids.to_numpy(str), kind="stable")
    order = order[(values[order, :border] > 0).any(axis=1)]
    first = (values[order] > 0).argmax(axis=1)
    row, day = np.nonzero(np.arange(values.shape[1]) >= first[:, None])
    event = days["event_name_1"].map(EVENTS).fillna(0).astype(int).astype(str).to_numpy(object)
    kind = days["event_type_1"].map(TYPES).fillna(0).astype(int).astype(str).to_numpy(object)
    frame = pd.DataFrame(
        {
            "unique_id": ids.to_numpy(object)[order][row], "ds": _stamps(days["date"])[day], "y": values[order][row, day],
            "event": event[day], "event_type": kind[day], "snap": days["snap_CA"].to_numpy("int8")[day],
        }
    )  # fmt: skip
    parts = {"train": frame[day < border], "test": frame[day >= border]}
    return {part: _coded(one.reset_index(drop=True)) for part, one in parts.items()}


def _csv(path: Path, **options: Any) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(path, **options)  # a last bit that is wrong in float64 is gone in float32


def _stamps(texts: Any) -> Any:
    import pandas as pd

    return pd.to_datetime(texts).to_numpy().astype("datetime64[ms]")


def _series(name: str, stamps: Any, values: Any) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    ids = pd.Categorical.from_codes(np.zeros(len(stamps), dtype="int8"), [name])
    return pd.DataFrame({"unique_id": ids, "ds": stamps, "y": np.asarray(values, dtype="float32")})


def _stacked(columns: Mapping[str, Any], stamps: Any) -> pd.DataFrame:
    """Series below each other, in the order given."""
    import pandas as pd

    return _coded(pd.concat([_series(name, stamps, values) for name, values in columns.items()], ignore_index=True))


def _cut(frame: pd.DataFrame, border: int) -> dict[str, pd.DataFrame]:
    return {"train": frame[:border].reset_index(drop=True), "test": frame[border:].reset_index(drop=True)}


def _coded(frame: pd.DataFrame) -> pd.DataFrame:
    """Texts as categories in order of appearance, as the files hold them."""
    import pandas as pd
    from pandas.api import types

    for name in frame.columns:
        if not types.is_numeric_dtype(frame[name].dtype) and not types.is_datetime64_any_dtype(frame[name].dtype):
            codes, names = pd.factorize(frame[name])
            frame[name] = pd.Categorical.from_codes(codes, names)
    return frame


def _lines(path: Path) -> list[tuple[str, np.ndarray]]:
    """Id and values of each line of a wide file of M4; shorter series end in empty cells."""
    import numpy as np

    found = []
    with path.open(encoding="ascii") as file:
        next(file)
        for line in file:
            name, _, values = line.replace('"', "").rstrip(",\r\n").partition(",")
            found.append((name, np.array(values.split(","), dtype="float64")))
    return found


def _joined(series: list[tuple[str, np.ndarray]], starts: list[int]) -> pd.DataFrame:
    """Series on integer time, each from the step after its start."""
    import numpy as np
    import pandas as pd

    lengths = np.array([len(values) for _, values in series])
    codes = np.repeat(np.arange(len(series), dtype="int32"), lengths)
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    steps = np.arange(len(codes)) - begins + 1 + np.repeat(starts, lengths)
    ids = pd.Categorical.from_codes(codes, [name for name, _ in series])
    values = np.concatenate([values for _, values in series]).astype("float32")
    return pd.DataFrame({"unique_id": ids, "ds": steps.astype("int32"), "y": values})


def _vector(given: Any) -> np.ndarray:
    """The values of a vector of R, or of a time series, as read by `r_files`."""
    import numpy as np

    return np.asarray(given["x"] if isinstance(given, Mapping) else given, dtype="float64")


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    """The member of an archive with this file name, in whichever folder."""
    return archive.open(next(one for one in archive.namelist() if one.rpartition("/")[2] == name))
