"""A country's holidays by name: which there are, and on which days each falls."""

from __future__ import annotations

import warnings
from functools import lru_cache

FIRST_YEAR, LAST_YEAR = 1995, 2045
"""Names are looked for in these years, whatever years a history covers: what is learned has the same shape for every series."""


@lru_cache(maxsize=16)
def country_holiday_names(country: str) -> tuple[str, ...]:
    """The names of all holidays of a country ("DE") or a part of it ("DE-BY"), sorted."""
    return tuple(sorted({name for names in _names_by_day(country, tuple(range(FIRST_YEAR, LAST_YEAR))).values() for name in names}))


def holiday_dates(country: str, first: int, last: int) -> dict[str, list[int]]:
    """On which days (since 1970) from `first` to `last` each holiday falls."""
    import numpy as np

    years = np.array([first, last + 1]).astype("M8[D]").astype("M8[Y]").astype(int) + 1970
    dates_by_name: dict[str, list[int]] = {}
    for day, names in _names_by_day(country, tuple(range(int(years[0]), int(years[1]) + 1))).items():
        for name in names:
            dates_by_name.setdefault(name, []).append(day)
    return dates_by_name


@lru_cache(maxsize=64)
def _names_by_day(country: str, years: tuple[int, ...]) -> dict[int, list[str]]:
    """The names of the holidays of each day."""
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the package, on its own versions
        import holidays

        code, _, subdivision = country.partition("-")
        country_holidays = holidays.country_holidays(code, subdiv=subdivision or None, years=years, expand=False, language="en_US")
        return {int(np.datetime64(day, "D").astype(np.int64)): country_holidays.get_list(day) for day in country_holidays}
