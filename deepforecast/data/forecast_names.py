"""Column names of forecast frames: keys, and the columns of each model."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deepforecast.data.columns import Columns
from deepforecast.errors import DataError

CUTOFF, STEP, SAMPLE = "cutoff", "step", "sample"
SUFFIX = re.compile(r"(?P<model>.+)-(?P<kind>lo|hi|q)-(?P<number>(\d+(\.\d+)?|\.\d+)(e-\d+)?)")
DIGITS = 9  # decimals to which probabilities and levels are compared


@dataclass(frozen=True)
class ModelColumns:
    """The columns of a model: point forecast, intervals by level, quantiles by probability."""

    name: str
    lo: dict[float, str] = field(default_factory=dict)
    hi: dict[float, str] = field(default_factory=dict)
    q: dict[float, str] = field(default_factory=dict)

    @property
    def all(self) -> tuple[str, ...]:
        """All columns of the model, the point forecast first."""
        return (self.name, *self.lo.values(), *self.hi.values(), *self.q.values())

    def quantiles(self) -> dict[float, str]:
        """The column of each probability: a quantile, an interval bound, or the point forecast."""
        ends = {round_level((100 - level) / 200): name for level, name in self.lo.items()}
        ends |= {round_level((100 + level) / 200): name for level, name in self.hi.items()}
        return {0.5: self.name, **ends, **{round_level(probability): name for probability, name in self.q.items()}}

    @property
    def intervals(self) -> dict[float, tuple[str, str]]:
        """Lower and upper column of each level: of an interval, or two symmetric quantiles.

        Examples
        --------
        >>> ModelColumns("A", q={0.1: "A-q-0.1", 0.9: "A-q-0.9"}).intervals
        {80.0: ('A-q-0.1', 'A-q-0.9')}
        """
        by_probability = {round_level(probability): name for probability, name in self.q.items()}
        from_quantiles = {}
        for probability, low in by_probability.items():
            level, high = round_level(100 * (1 - 2 * probability)), by_probability.get(round_level(1 - probability))
            if 0 < level < 100 and high:
                from_quantiles[level] = (low, high)
        return from_quantiles | {level: (name, self.hi[level]) for level, name in self.lo.items() if level in self.hi}


def models_in_columns(names: Sequence[str]) -> list[ModelColumns]:
    """The models of a forecast frame in the order of their columns.

    `names` are its columns without the keys. Two columns of a model for the same level or quantile
    raise `DataError`.

    `LSTM-lo-80` belongs to the model `LSTM` only if there is a column `LSTM`, so that a model may
    be named `A-lo-5`.

    Examples
    --------
    >>> [model.name for model in models_in_columns(["A", "A-lo-80", "A-hi-80", "A-q-1e-05", "B-lo-80"])]
    ['A', 'B-lo-80']
    """
    existing = set(names)
    models = {name: ModelColumns(name) for name in names if _parse_suffix(name, existing) is None}
    for name in names:
        suffix = _parse_suffix(name, existing)
        if suffix is None:
            continue
        model, column_kind, number = suffix
        columns = getattr(models[model], column_kind)
        if number in columns:
            raise DataError(
                f"A model must have one column per level or quantile, but columns {columns[number]} and {name} "
                "have the same one. Drop one of them."
            )
        columns[number] = name
    return list(models.values())


def key_roles(columns: Columns | Mapping[str, Any] | None) -> Any:
    """The id, time and target roles of `columns`; covariates are optional in a forecast frame."""
    if isinstance(columns, Columns):
        keys = ((role, getattr(columns, role), getattr(Columns(), role)) for role in ("id", "time", "target"))
        return {role: column for role, column, default in keys if column != default}
    return {**columns, "future": (), "past": (), "static": ()} if isinstance(columns, Mapping) else columns


def declared_covariates(columns: Columns | Mapping[str, Any] | None) -> tuple[str, ...]:
    """The declared covariates; in a forecast frame these columns are not models."""
    return (Columns(**columns) if isinstance(columns, Mapping) else columns or Columns()).covariates


def format_number(value: float) -> str:
    """A level or probability as in column names: exact, without a trailing `.0`.

    Examples
    --------
    >>> format_number(80.0), format_number(97.5), format_number(99.99999), format_number(1e-5)
    ('80', '97.5', '99.99999', '1e-05')
    """
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


def round_level(number: float) -> float:
    """Round a probability or level for comparison, so that (100 + 80) / 200 equals 0.9."""
    return round(number, DIGITS)


def _parse_suffix(name: str, existing: Collection[str]) -> tuple[str, str, float] | None:
    """Model, kind and number of an interval or quantile column; None for a point forecast."""
    match = SUFFIX.fullmatch(name)
    if match is None or match["model"] not in existing or _parse_suffix(match["model"], existing) is not None:
        return None
    number, limit = float(match["number"]), 1 if match["kind"] == "q" else 100
    return (match["model"], match["kind"], number) if 0 < number < limit else None
