"""A country's holidays by name: which there are, and on which days each falls."""

from __future__ import annotations

import warnings
from functools import lru_cache

FROM, TO = 1995, 2045
"""Names are looked for in these years, whatever years a history covers: what is learned has the same shape for every series."""


@lru_cache(maxsize=16)
def names_of(country: str) -> tuple[str, ...]:
    """The names of all holidays of a country ("DE") or a part of it ("DE-BY"), sorted."""
    return tuple(sorted({name for names in _named(country, tuple(range(FROM, TO))).values() for name in names}))


def days_of(country: str, first: int, last: int) -> dict[str, list[int]]:
    """On which days (since 1970) from `first` to `last` each holiday falls."""
    import numpy as np

    years = np.array([first, last + 1]).astype("M8[D]").astype("M8[Y]").astype(int) + 1970
    found: dict[str, list[int]] = {}
    for day, names in _named(country, tuple(range(int(years[0]), int(years[1]) + 1))).items():
        for name in names:
            found.setdefault(name, []).append(day)
    return found


@lru_cache(maxsize=64)
def _named(country: str, years: tuple[int, ...]) -> dict[int, list[str]]:
    """The names of the holidays of each day."""
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the package, on its own versions
        import holidays

        code, _, part = country.partition("-")
        found = holidays.country_holidays(code, subdiv=part or None, years=years, expand=False, language="en_US")
        return {int(np.datetime64(day, "D").astype(np.int64)): found.get_list(day) for day in found}
