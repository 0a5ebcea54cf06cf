"""Groups of points: what a row of the table of scores stands for besides the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from deepforecast.data import frames
from deepforecast.data.forecast_names import CUTOFF, STEP
from deepforecast.data.frames import Ints
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value
from deepforecast.evaluation.forecast_rows import ForecastRows
from deepforecast.evaluation.groups import Groups

MODEL, SERIES = "model", "series"


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups in the order of the table; `keys` has, by name, the values a key takes and the number of each group's."""

    groups: Groups
    keys: Mapping[str, tuple[Any, Ints]]

    def columns(self, times: int) -> dict[str, Any]:
        """The key columns of a table that has each group `times` times."""
        found = {}
        for name, (values, number) in self.keys.items():
            rows = np.repeat(number, times)
            found[name] = values[rows] if isinstance(values, np.ndarray) else frames.take_rows(values, rows)
        return found


def checked_by(by: str | Sequence[str], rows: ForecastRows) -> list[str]:
    """What to group by, as "series", "cutoff" and "step", in the order given; "model" goes without saying."""
    if not isinstance(by, str | list | tuple | set | frozenset):
        raise ParameterTypeError(f"by is a name or a list of names, such as ['series', 'step']; got {format_value(by)}.")
    known = [MODEL, SERIES, *([rows.names.id] if rows.names.id else []), CUTOFF, STEP]
    wanted = [by] if isinstance(by, str) else list(by)
    for name in wanted:
        if name not in known:
            near = get_close_matches(str(name), known, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known are {format_list(known)}."
            raise ParameterError(f"by: there is no {format_value(name)}; {hint}")
    if CUTOFF in wanted and rows.cutoffs is None:
        raise ParameterError(f"by={CUTOFF!r} needs the column {CUTOFF} that cross_validate gives; the forecasts have none.")
    names = [SERIES if name == rows.names.id else name for name in wanted if name != MODEL]
    return list(dict.fromkeys(names))


def grouping(rows: ForecastRows, by: Sequence[str], steps: Ints | None) -> Grouping:
    """Group points by these keys and sort the groups by them; `steps`: the step of each point, if that is a key."""
    import pandas as pd

    forecast = rows.forecast_of_point
    unit = forecast if steps is not None else np.arange(len(rows))  # all points of a forecast share the other keys
    taken = {name: _numbered(rows, name, unit, steps) for name in by}
    key, sizes = np.zeros(len(unit), np.int64), {}
    for name, (_, number) in taken.items():
        sizes[name] = int(number.max()) + 1
        key = key * sizes[name] + number
    code, found = pd.factorize(key, sort=True)
    code, rest = code.astype(np.int64), np.asarray(found)
    keys = {}
    for name in reversed(by):
        rest, own = np.divmod(rest, sizes[name])
        keys[name] = (taken[name][0], own)
    ordered = {_column(name, rows): keys[name] for name in by if name != SERIES or rows.ids is not None}
    return Grouping(Groups(code if steps is not None else code[forecast], len(found), forecast), ordered)


def _numbered(rows: ForecastRows, name: str, unit: Ints, steps: Ints | None) -> tuple[Any, Ints]:
    """The values a key takes, sorted, and the number of that of each unit."""
    import pandas as pd

    if name == STEP and steps is not None:
        number, values = pd.factorize(steps, sort=True)
        return np.asarray(values), number.astype(np.int64)
    if name == CUTOFF and rows.cutoffs is not None:
        return rows.cutoffs.column, rows.cutoffs.number[unit]
    return rows.ids, rows.series[unit]


def _column(name: str, rows: ForecastRows) -> str:
    return str(rows.names.id) if name == SERIES else name
