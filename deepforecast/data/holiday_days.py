"""Names and dates of the holidays of a country."""

from __future__ import annotations

import warnings
from functools import lru_cache

FIRST_YEAR, LAST_YEAR = 1995, 2045
"""Names are collected over these years, independent of the data, so that all series have the
same holiday columns.
"""


@lru_cache(maxsize=16)
def country_holiday_names(country: str) -> tuple[str, ...]:
    """The sorted English names of all holidays of a country ("DE") or subdivision ("DE-BY")."""
    names_by_day = _names_by_day(country, tuple(range(FIRST_YEAR, LAST_YEAR)))
    return tuple(sorted({name for names in names_by_day.values() for name in names}))


def holiday_dates(country: str, first: int, last: int) -> dict[str, list[int]]:
    """The days (since 1970) of each holiday by name, in the years of the days `first` to `last` (since 1970)."""
    import numpy as np

    years = np.array([first, last + 1]).astype("M8[D]").astype("M8[Y]").astype(int) + 1970
    dates_by_name: dict[str, list[int]] = {}
    for day, names in _names_by_day(country, tuple(range(int(years[0]), int(years[1]) + 1))).items():
        for name in names:
            dates_by_name.setdefault(name, []).append(day)
    return dates_by_name


@lru_cache(maxsize=64)
def _names_by_day(country: str, years: tuple[int, ...]) -> dict[int, list[str]]:
    """The names of the holidays of each day (since 1970) that is one."""
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the holidays package itself
        import holidays

        code, _, subdivision = country.partition("-")
        country_holidays = holidays.country_holidays(
            code, subdiv=subdivision or None, years=years, expand=False, language="en_US"
        )
        days = {day: int(np.datetime64(day, "D").astype(np.int64)) for day in country_holidays}
        return {number: country_holidays.get_list(day) for day, number in days.items()}
