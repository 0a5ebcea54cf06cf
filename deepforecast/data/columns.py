"""Which column of the caller's frame means what: said once, with the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from deepforecast.errors import DataError, ParameterError, ParameterTypeError, shown, some

DIALECTS = (("unique_id", "ds", "y"), ("item_id", "timestamp", "target"))


@dataclass(frozen=True)
class Columns:
    """Names and roles of the columns of a long frame.

    `future` columns are known ahead of time (promotions, holidays), `past` columns are known up to now (a measured
    temperature), `static` columns are constant for a series (its region). Everything not named is left out, aloud.

    >>> Columns(target="sales", future=["promo"])
    Columns(id='unique_id', time='ds', target='sales', future=('promo',), past=(), static=())
    """

    id: str | None = "unique_id"
    time: str = "ds"
    target: str = "y"
    future: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    static: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for role in ("future", "past", "static"):
            given = getattr(self, role)
            names = (given,) if isinstance(given, str) else tuple(given)
            object.__setattr__(self, role, names)
        for name in self.all:
            if not isinstance(name, str):
                raise ParameterTypeError(f"columns: a column name is text; got {shown(name)} ({type(name).__name__}).")
        twice = [name for i, name in enumerate(self.all) if name in self.all[:i]]
        if twice:
            raise ParameterError(f"columns: a column has one role; {some(twice)} has two. Keep one of them.")

    @property
    def all(self) -> tuple[str, ...]:
        """Every column with a role, the keys first."""
        key = () if self.id is None else (self.id,)
        return (*key, self.time, self.target, *self.future, *self.past, *self.static)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Every declared covariate."""
        return (*self.future, *self.past, *self.static)


def resolve(given: Columns | Mapping[str, Any] | None, names: Sequence[str], target: bool = True) -> Columns:
    """The columns meant by `given` in a frame that has `names`; a frame without an id column is one series.

    Names that were not given follow the dialect of the frame: `unique_id, ds, y` or `item_id, timestamp, target`.
    """
    said = _said(given)
    columns = replace(_dialect(said, names), **said)
    if columns.id is not None and "id" not in said and columns.id not in names:
        columns = replace(columns, id=None)
    needed = [name for name in columns.all if name not in columns.static and (target or name != columns.target)]
    lacking = [name for name in needed if name not in names]
    if lacking:
        expected = "unique_id, ds, y" if not said else ", ".join(columns.all)
        raise DataError(
            f"A frame has the columns {expected}; {some(lacking)} is missing and the columns found are {some(names, most=12)}. "
            f"Name yours, e.g. columns={{'id': 'unique_id', 'time': 'ds', 'target': 'y'}}."
        )
    return columns


def _said(given: Columns | Mapping[str, Any] | None) -> dict[str, Any]:
    """What the caller said: of a `Columns` object, all that differs from its defaults."""
    if given is None:
        return {}
    if isinstance(given, Columns):
        return {f.name: getattr(given, f.name) for f in fields(Columns) if getattr(given, f.name) != f.default}
    if not isinstance(given, Mapping):
        raise ParameterTypeError(f"columns is a Columns object or a dict of roles; got {type(given).__name__}.")
    unknown = [key for key in given if key not in {f.name for f in fields(Columns)}]
    if unknown:
        raise ParameterError(f"columns: roles are id, time, target, future, past, static; got {some(unknown)}.")
    Columns(**given)  # the same checks as for the object
    return dict(given)


def _dialect(said: Mapping[str, Any], names: Sequence[str]) -> Columns:
    """The dialect that has every key not said, else the house's own."""
    for id_name, time, target in DIALECTS:
        wanted = {"time": time, "target": target}
        if all(name in names for role, name in wanted.items() if role not in said):
            return Columns(id_name, time, target) if said.get("time") != id_name else Columns(None, time, target)
    return Columns()
