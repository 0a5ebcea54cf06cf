"""Which column of the caller's frame means what: said once, with the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from deepforecast.errors import DataError, ParameterError, ParameterTypeError, say, shown, some

COVARIATES = ("future", "past", "static")
MANY = 5  # columns: more are, where the target is not found, most likely a series each


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
        for role in COVARIATES:
            object.__setattr__(self, role, _names(getattr(self, role), role))
        wrong = [name for name in self.all if not isinstance(name, str)]
        if wrong:
            found = f"{shown(wrong[0])} ({type(wrong[0]).__name__})"
            raise ParameterTypeError(
                f"columns: a column name is text; got {found}. Rename the column, e.g. frame.columns = [...]."
            )
        twice = [name for name, count in Counter(self.all).items() if count > 1]
        if twice:
            roles = [field.name for field in fields(self) if twice[0] in _names(getattr(self, field.name), field.name)]
            found = f"{some(twice)} has more than one" + (f" ({some(roles)})" if len(twice) == 1 and len(roles) > 1 else "")
            raise ParameterError(f"columns: a column has one role; {found}. Keep one of them.")

    @cached_property
    def all(self) -> tuple[str, ...]:
        """Every column with a role, the keys first."""
        key = () if self.id is None else (self.id,)
        return (*key, self.time, self.target, *self.future, *self.past, *self.static)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Every declared covariate."""
        return (*self.future, *self.past, *self.static)


def _names(given: Any, role: str) -> tuple[str, ...]:
    if given is None or isinstance(given, str):
        return () if given is None else (given,)
    if isinstance(given, Sequence):
        return tuple(given)
    if isinstance(given, set | frozenset):
        return tuple(sorted(given, key=str))  # in an order that does not change from run to run
    raise ParameterTypeError(
        f"columns: {role} is a column name or a list of them; got {shown(given)} ({type(given).__name__})."
    )


DIALECTS = (Columns(), Columns("item_id", "timestamp", "target"))


def resolve(
    given: Columns | Mapping[str, Any] | None, names: Sequence[str], target: bool = True, what: str = "frame"
) -> Columns:
    """The columns meant by `given` in a frame that has `names`; a frame without an id column is one series.

    Names that were not given follow the dialect of the frame: `unique_id, ds, y` or `item_id, timestamp, target`.
    """
    if given is None and target:
        for dialect in DIALECTS:
            if {dialect.id, dialect.time, dialect.target}.issubset(names):
                return dialect
    if target and isinstance(given, Columns) and set(given.all).issubset(names):
        return given
    said = _said(given)
    columns = _in_dialect(said, names)
    elsewhere = columns.static if target else (*columns.static, columns.target)
    lacking = [name for name in columns.all if name not in names and name not in elsewhere]
    if lacking:
        raise _lacks(lacking, columns if said else DIALECTS[0], names, target, what)
    return columns


def say_undeclared(found: Sequence[str], said: Sequence[str] = ()) -> None:
    """Name the columns of a frame that have no role and are left out, but for those named before."""
    new = [name for name in found if name not in said]
    if new:
        say(f"Columns without a role are left out: {some(new)}. Declare them in columns= or drop them.")


def _said(given: Columns | Mapping[str, Any] | None) -> dict[str, Any]:
    """What the caller said: of a `Columns` object, all that differs from its defaults."""
    if given is None:
        return {}
    if isinstance(given, Columns):
        return {f.name: getattr(given, f.name) for f in fields(Columns) if getattr(given, f.name) != f.default}
    if not isinstance(given, Mapping):
        raise ParameterTypeError(
            f"columns is a Columns object or a dict of roles; got {shown(given)} ({type(given).__name__})."
        )
    unknown = [key for key in given if key not in {f.name for f in fields(Columns)}]
    if unknown:
        raise ParameterError(f"columns: roles are id, time, target, future, past, static; got {some(unknown)}.")
    return dict(given)


def _in_dialect(said: Mapping[str, Any], names: Sequence[str]) -> Columns:
    """What was said, completed by the dialect that has every key not said, or else by the house's own."""
    fitting = [d for d in DIALECTS if all(getattr(d, role) in names for role in ("time", "target") if role not in said)]
    dialect = (fitting or DIALECTS)[0]
    keys = {role: said.get(role, getattr(dialect, role)) for role in ("id", "time", "target")}
    elsewhere = (keys["time"], keys["target"], *(name for role in COVARIATES for name in _names(said.get(role), role)))
    if "id" not in said and (keys["id"] not in names or keys["id"] in elsewhere):
        keys["id"] = None
    return Columns(**{**said, **keys})


def _lacks(lacking: Sequence[str], wanted: Columns, names: Sequence[str], target: bool, what: str) -> DataError:
    columns = ", ".join(shown(name) for name in wanted.all if target or name != wanted.target)
    way_out = "Name yours, e.g. columns={'id': 'shop', 'time': 'day', 'target': 'sales'}"
    way_out = way_out if what == "frame" else "Add or rename it"
    index = "; a pandas index is not looked at: reset_index() makes it a column" if wanted.time in lacking else ""
    if what == "frame" and len(names) > MANY and wanted.target in lacking:
        index += "; a column for each series is no long frame: melt() makes it one"
    has = some(names, most=12) or "none"
    return DataError(
        f"The {what} needs the columns {columns}; it lacks {some(lacking)} and has {has}. {way_out}{index}."
    )
