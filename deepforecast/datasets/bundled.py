"""Bundled datasets: AirPassengers, defined here, and the datasets of statsmodels.

The csv files of statsmodels are read from its installation without importing the package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from deepforecast.datasets.bundled_cards import CARDS
from deepforecast.datasets.entries import Entry, entry_from_frame
from deepforecast.errors import DependencyError

if TYPE_CHECKING:
    import pandas as pd

# Monthly totals of international airline passengers in thousands (Box, Jenkins and Reinsel, Time
# Series Analysis, series G).
AIR_PASSENGERS = (
    112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118,
    115, 126, 141, 135, 125, 149, 170, 170, 158, 133, 114, 140,
    145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166,
    171, 180, 193, 181, 183, 218, 230, 242, 209, 191, 172, 194,
    196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201,
    204, 188, 235, 227, 234, 264, 302, 293, 259, 229, 203, 229,
    242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278,
    284, 277, 317, 313, 318, 374, 413, 405, 355, 306, 271, 306,
    315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336,
    340, 318, 362, 348, 363, 435, 491, 505, 404, 359, 310, 337,
    360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405,
    417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432,
)  # fmt: skip


def entries() -> list[Entry]:
    """The entries of all bundled sets."""
    return [entry_from_frame(card, READERS[card.name]) for card in CARDS]


def air_passengers() -> pd.DataFrame:
    """Monthly totals of AirPassengers, 1949 to 1960."""
    import pandas as pd

    months = pd.date_range("1949-01-01", periods=len(AIR_PASSENGERS), freq="MS")
    return _long_frame("air_passengers", months, pd.Series(AIR_PASSENGERS))


def co2() -> pd.DataFrame:
    """Weekly means, dated on Saturdays; weeks without measurements are missing values."""
    import pandas as pd

    raw = _read_csv("co2/co2.csv")
    return _long_frame("co2", pd.to_datetime(raw["date"].astype(str), format="%Y%m%d"), raw["co2"])


def electrical_equipment() -> pd.DataFrame:
    """Monthly turnover index.

    Months are counted, since their English names in the file depend on the locale.
    """
    import pandas as pd

    raw = _read_csv("elec_equip/elec_equip.csv")
    months = pd.date_range("1995-01-01", periods=len(raw), freq="MS")
    return _long_frame("elec_equip", months, raw.drop(columns="DATE").iloc[:, 0])


def elnino() -> pd.DataFrame:
    """Monthly temperatures; the file has one row per year and one column per month."""
    import pandas as pd

    raw = _read_csv("elnino/elnino.csv").set_index("YEAR")
    months = pd.date_range(f"{raw.index[0]}-01-01", periods=raw.size, freq="MS")
    return _long_frame("elnino", months, pd.Series(raw.to_numpy().ravel()))


def danish_money() -> pd.DataFrame:
    """Quarterly Danish money demand; the file has a byte-order mark and quarters such as 1974Q1."""
    import pandas as pd

    raw = _read_csv("danish_data/data.csv", encoding="utf-8-sig")
    quarters = pd.PeriodIndex(raw["period"], freq="Q").to_timestamp()
    return _long_frame("danish_data", quarters, raw["lrm"], raw[["lry", "lpy", "ibo", "ide"]])


def yearly(name: str, year: str, target: str, past: Sequence[str] = (), *, file: str) -> pd.DataFrame:
    """A yearly series with its past covariates."""
    import pandas as pd

    raw = _read_csv(file)
    return _long_frame(name, pd.to_datetime(raw[year].astype(str), format="%Y"), raw[target], raw[list(past)])


def quarterly(name: str, target: str, past: Sequence[str] = (), *, file: str) -> pd.DataFrame:
    """A quarterly series from a file with the columns year and quarter."""
    raw = _read_csv(file)
    return _long_frame(name, _quarter_starts(raw), raw[target], raw[list(past)])


def macrodata_panel() -> pd.DataFrame:
    """The twelve variables of macrodata as series."""
    import pandas as pd

    raw = _read_csv("macrodata/macrodata.csv")
    variables = raw.drop(columns=["year", "quarter"])
    return pd.concat([_long_frame(name, _quarter_starts(raw), variables[name]) for name in variables], ignore_index=True)


def grunfeld() -> pd.DataFrame:
    """Investment of firms, sorted by firm and year."""
    import pandas as pd

    raw = _read_csv("grunfeld/grunfeld.csv")
    years = pd.to_datetime(raw["year"].astype(str), format="%Y")
    return _long_frame(raw["firm"], years, raw["invest"], raw[["value", "capital"]])


def fertility() -> pd.DataFrame:
    """Fertility of countries with at least ten observed years, from the first to the last of them."""
    import pandas as pd

    raw = _read_csv("fertility/fertility.csv").set_index("Country Name").iloc[:, 3:]
    years = pd.to_datetime(raw.columns, format="%Y")
    is_observed = raw.notna().to_numpy()
    has_ten_years = is_observed.sum(axis=1) >= 10
    raw, is_observed = raw[has_ten_years], is_observed[has_ten_years]
    has_started = is_observed.cumsum(axis=1) > 0
    has_not_ended = (is_observed[:, ::-1].cumsum(axis=1) > 0)[:, ::-1]
    row, column = (has_started & has_not_ended).nonzero()
    return _long_frame(raw.index.to_series().iloc[row], years[column], pd.Series(raw.to_numpy()[row, column]))


def _long_frame(name: Any, timestamps: Any, y: Any, covariates: pd.DataFrame | None = None) -> pd.DataFrame:
    """A long frame of these columns, with covariates in lower case."""
    import pandas as pd

    ids = name if isinstance(name, str) else name.to_numpy()
    frame = pd.DataFrame({"unique_id": ids, "ds": pd.DatetimeIndex(timestamps), "y": y.to_numpy(float)})
    if covariates is not None:
        for column in covariates:
            frame[str(column).lower()] = covariates[column].to_numpy(float)
    return frame


def _quarter_starts(raw: pd.DataFrame) -> Any:
    """The first day of each quarter."""
    import pandas as pd

    return pd.to_datetime({"year": raw["year"], "month": 3 * raw["quarter"] - 2, "day": 1})


def _read_csv(file: str, encoding: str = "utf-8") -> pd.DataFrame:
    """Read a csv file of statsmodels' datasets, such as "co2/co2.csv", without importing statsmodels."""
    import importlib.util
    from pathlib import Path

    import pandas as pd

    package = importlib.util.find_spec("statsmodels")
    if package is None or not package.submodule_search_locations:
        raise DependencyError(
            f"The dataset file {file} requires the package statsmodels, which is not installed.",
            hint="Run: pip install statsmodels",
        )
    path = Path(package.submodule_search_locations[0], "datasets", *file.split("/"))
    # the python engine rounds decimals correctly in every version of pandas
    return pd.read_csv(path, encoding=encoding, engine="python")


MACRO = ("realcons", "realinv", "realgovt", "realdpi", "cpi", "m1", "tbilrate", "unemp", "pop", "infl", "realint")
COPPER = ("COPPERPRICE", "INCOMEINDEX", "ALUMPRICE", "INVENTORYINDEX")
LONGLEY = ("GNPDEFL", "GNP", "UNEMP", "ARMED", "POP")
READERS: dict[str, Callable[[], pd.DataFrame]] = {
    "air_passengers": air_passengers,
    "co2": co2,
    "copper": partial(yearly, "copper", "YEAR", "WORLDCONSUMPTION", COPPER, file="copper/copper.csv"),
    "danish_data": danish_money,
    "elec_equip": electrical_equipment,
    "elnino": elnino,
    "fertility": fertility,
    "grunfeld": grunfeld,
    "interest_inflation": partial(quarterly, "interest_inflation", "Dp", ("R",), file="interest_inflation/E6.csv"),
    "longley": partial(yearly, "longley", "YEAR", "TOTEMP", LONGLEY, file="longley/longley.csv"),
    "macrodata": partial(quarterly, "macrodata", "realgdp", MACRO, file="macrodata/macrodata.csv"),
    "macrodata_panel": macrodata_panel,
    "nile": partial(yearly, "nile", "year", "volume", file="nile/nile.csv"),
    "sunspots": partial(yearly, "sunspots", "YEAR", "SUNACTIVITY", file="sunspots/sunspots.csv"),
}
