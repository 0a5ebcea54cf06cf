"""Grouping of points by series, cutoff and step for a table of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from deepforecast.data import frames
from deepforecast.data.columns import CUTOFF, STEP
from deepforecast.data.frames import Ints
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value
from deepforecast.evaluation.aggregation import Groups
from deepforecast.evaluation.forecast_rows import ForecastRows

MODEL = "model"
SERIES = "series"


@dataclass(frozen=True, eq=False)
class Grouping:
    """The sorted groups; `keys` maps each key to its unique values and the index of the value of
    each group."""

    groups: Groups
    keys: Mapping[str, tuple[Any, Ints]]

    def columns(self, n_repeats: int) -> dict[str, Any]:
        """The key columns, with each group repeated `n_repeats` times."""
        key_columns = {}
        for name, (values, codes) in self.keys.items():
            value_index = np.repeat(codes, n_repeats)
            key_columns[name] = values[value_index] if isinstance(values, np.ndarray) else frames.take_rows(values, value_index)
        return key_columns


def validate_by(by: str | Sequence[str], forecast_rows: ForecastRows) -> list[str]:
    """The keys "series", "cutoff" and "step" in the requested order; "model" is implied."""
    if not isinstance(by, str | list | tuple | set | frozenset):
        raise ParameterTypeError(
            f"`by` must be a name or a list of names such as ['series', 'step'], got {format_value(by)}.",
            parameter="by",
            value=by,
        )
    valid_keys = [MODEL, SERIES, *([forecast_rows.names.id] if forecast_rows.names.id else []), CUTOFF, STEP]
    requested = [by] if isinstance(by, str) else list(by)
    for name in requested:
        if name not in valid_keys:
            close_matches = get_close_matches(str(name), valid_keys, n=2)
            hint = f"Did you mean {' or '.join(close_matches)}?" if close_matches else f"Use one of {format_list(valid_keys)}."
            raise ParameterError(
                f"`by` must contain keys of the forecasts, got {format_value(name)}.",
                hint=hint,
                parameter="by",
                value=name,
            )
    if CUTOFF in requested and forecast_rows.cutoffs is None:
        raise ParameterError(
            f"by={CUTOFF!r} requires a column {CUTOFF} in the forecasts.", hint="Use cross_validate to create them.",
            parameter="by",
        )
    names = [SERIES if name == forecast_rows.names.id else name for name in requested if name != MODEL]
    return list(dict.fromkeys(names))


def make_grouping(forecast_rows: ForecastRows, by: Sequence[str], steps: Ints | None) -> Grouping:
    """Group points by these keys; groups are sorted by the keys in the order of `by`.

    `steps`: the step of each point if it is one of the keys, otherwise None.
    """
    import pandas as pd

    forecast = forecast_rows.forecast_of_point
    unit = forecast if steps is not None else np.arange(len(forecast_rows))  # all points of a forecast share the other keys
    key_values = {name: _key_codes(forecast_rows, name, unit, steps) for name in by}
    combined_code = np.zeros(len(unit), np.int64)
    n_values = {}
    for name, (_, value_codes) in key_values.items():
        n_values[name] = int(value_codes.max()) + 1
        combined_code = combined_code * n_values[name] + value_codes
    group_codes, unique_keys = pd.factorize(combined_code, sort=True)
    group_codes = group_codes.astype(np.int64)
    remainder = np.asarray(unique_keys)
    keys = {}
    for name in reversed(by):
        remainder, key_codes = np.divmod(remainder, n_values[name])
        keys[name] = (key_values[name][0], key_codes)
    key_columns = {
        _key_column(name, forecast_rows): keys[name] for name in by if name != SERIES or forecast_rows.ids is not None
    }
    return Grouping(
        Groups(group_codes if steps is not None else group_codes[forecast], len(unique_keys), forecast), key_columns
    )


def _key_codes(forecast_rows: ForecastRows, name: str, forecast_of_unit: Ints, steps: Ints | None) -> tuple[Any, Ints]:
    """The sorted unique values of a key, and for each unit the index of its value.

    A unit is a point if one of the keys is the step, otherwise a forecast; `forecast_of_unit` has the
    forecast of each unit.
    """
    import pandas as pd

    if name == STEP and steps is not None:
        codes, values = pd.factorize(steps, sort=True)
        return np.asarray(values), codes.astype(np.int64)
    if name == CUTOFF and forecast_rows.cutoffs is not None:
        return forecast_rows.cutoffs.column, forecast_rows.cutoffs.codes[forecast_of_unit]
    return forecast_rows.ids, forecast_rows.series[forecast_of_unit]


def _key_column(name: str, forecast_rows: ForecastRows) -> str:
    return str(forecast_rows.names.id) if name == SERIES else name
