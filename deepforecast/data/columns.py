"""Names and roles of the columns of a frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from deepforecast.errors import DataError, ParameterError, ParameterTypeError, format_list, format_value, warn

COVARIATE_ROLES = ("future", "past", "static")
WIDE_FRAME_COLUMNS = 5  # a frame with more columns and without a target is probably in wide format


@dataclass(frozen=True)
class Columns:
    """Names and roles of the columns of a long frame.

    Columns without a role are ignored with a warning.

    Parameters
    ----------
    id : str or None, default "unique_id"
        Column with the ids of the series. None: the frame is a single series.
    time : str, default "ds"
        Column with the timestamps: datetimes, dates or integers.
    target : str, default "y"
        Column to forecast.
    future : str or list of str, default ()
        Covariates known in advance, such as promotions or holidays.
    past : str or list of str, default ()
        Covariates known up to the present only, such as a measured temperature.
    static : str or list of str, default ()
        Covariates that are constant within a series, such as its region.

    Examples
    --------
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
        """Convert the covariate roles to tuples and check that names are unique strings."""
        for role in COVARIATE_ROLES:
            object.__setattr__(self, role, _names(getattr(self, role), role))
        invalid = [name for name in self.all if not isinstance(name, str)]
        if invalid:
            description = f"{format_value(invalid[0])} ({type(invalid[0]).__name__})"
            raise ParameterTypeError(
                f"`columns` must contain column names as strings, got {description}. Rename the column, "
                "e.g. frame.columns = [...]."
            )
        duplicates = [name for name, count in Counter(self.all).items() if count > 1]
        if duplicates:
            roles = [field.name for field in fields(self) if duplicates[0] in _names(getattr(self, field.name), field.name)]
            roles_text = f" ({format_list(roles)})" if len(duplicates) == 1 and len(roles) > 1 else ""
            raise ParameterError(
                f"`columns` must name each column once, but these are repeated: "
                f"{format_list(duplicates)}{roles_text}. Keep one role per column."
            )

    @cached_property
    def all(self) -> tuple[str, ...]:
        """All columns with a role: id, time, target, then covariates."""
        key = () if self.id is None else (self.id,)
        return (*key, self.time, self.target, *self.future, *self.past, *self.static)

    @property
    def covariates(self) -> tuple[str, ...]:
        """All covariates: future, past, then static."""
        return (*self.future, *self.past, *self.static)


def _names(names: Any, role: str) -> tuple[str, ...]:
    """The names of a role as a tuple, from one name, a list or a set (sorted); None: no names."""
    if names is None or isinstance(names, str):
        return () if names is None else (names,)
    if isinstance(names, Sequence):
        return tuple(names)
    if isinstance(names, set | frozenset):
        return tuple(sorted(names, key=str))  # an order that is the same in each run
    raise ParameterTypeError(
        f"columns: `{role}` must be a column name or a list of column names, got {format_value(names)} "
        f"({type(names).__name__})."
    )


DIALECTS = (Columns(), Columns("item_id", "timestamp", "target"))


def resolve(
    columns_argument: Columns | Mapping[str, Any] | None, names: Sequence[str], target: bool = True, what: str = "frame"
) -> Columns:
    """Complete `columns_argument` for a frame with the columns `names`; raise `DataError` if a column is missing.

    Names that are not passed default to `unique_id, ds, y` or `item_id, timestamp, target`,
    whichever the frame has. The id is None if the frame has no id column and none was passed: it is
    a single series. Static columns may be missing, and the target unless `target`. `what` names the
    frame in messages.
    """
    if columns_argument is None and target:
        for dialect in DIALECTS:
            if {dialect.id, dialect.time, dialect.target}.issubset(names):
                return dialect
    if target and isinstance(columns_argument, Columns) and set(columns_argument.all).issubset(names):
        return columns_argument
    explicit = _explicit_roles(columns_argument)
    columns = _complete_from_dialect(explicit, names)
    optional = columns.static if target else (*columns.static, columns.target)
    missing = [name for name in columns.all if name not in names and name not in optional]
    if missing:
        raise _missing_columns_error(missing, columns if explicit else DIALECTS[0], names, target, what)
    return columns


def warn_undeclared(undeclared: Sequence[str], already_reported: Sequence[str] = ()) -> None:
    """Warn of the columns without a role, except for those in `already_reported`."""
    new = [name for name in undeclared if name not in already_reported]
    if new:
        warn(f"Columns without a role are ignored: {format_list(new)}. Declare them in columns= or drop them.")


def _explicit_roles(columns_argument: Columns | Mapping[str, Any] | None) -> dict[str, Any]:
    """The roles passed by the caller; of a `Columns` object those that differ from the defaults."""
    if columns_argument is None:
        return {}
    if isinstance(columns_argument, Columns):
        roles = {field.name: (getattr(columns_argument, field.name), field.default) for field in fields(Columns)}
        return {role: value for role, (value, default) in roles.items() if value != default}
    if not isinstance(columns_argument, Mapping):
        raise ParameterTypeError(
            "`columns` must be a Columns object or a dict of roles, got "
            f"{format_value(columns_argument)} ({type(columns_argument).__name__})."
        )
    unknown = [key for key in columns_argument if key not in {field.name for field in fields(Columns)}]
    if unknown:
        raise ParameterError(
            f"columns: roles must be among id, time, target, future, past, static, got {format_list(unknown)}."
        )
    return dict(columns_argument)


def _complete_from_dialect(explicit: Mapping[str, Any], names: Sequence[str]) -> Columns:
    """Complete the roles by the first dialect whose time and target the frame has; the id is None if it has none."""
    required = [role for role in ("time", "target") if role not in explicit]
    matching = [dialect for dialect in DIALECTS if all(getattr(dialect, role) in names for role in required)]
    dialect = (matching or DIALECTS)[0]
    keys = {role: explicit.get(role, getattr(dialect, role)) for role in ("id", "time", "target")}
    covariates = [name for role in COVARIATE_ROLES for name in _names(explicit.get(role), role)]
    taken_names = (keys["time"], keys["target"], *covariates)
    if "id" not in explicit and (keys["id"] not in names or keys["id"] in taken_names):
        keys["id"] = None
    return Columns(**{**explicit, **keys})


def _missing_columns_error(
    missing: Sequence[str], expected: Columns, names: Sequence[str], target: bool, what: str
) -> DataError:
    """The error for missing columns, with hints for a pandas index and for frames in wide format."""
    columns = ", ".join(format_value(name) for name in expected.all if target or name != expected.target)
    suggestion = "Pass your names, e.g. columns={'id': 'shop', 'time': 'day', 'target': 'sales'}"
    suggestion = suggestion if what == "frame" else "Add or rename the missing columns"
    hint = "; a pandas index is ignored: use reset_index() to make it a column" if expected.time in missing else ""
    if what == "frame" and len(names) > WIDE_FRAME_COLUMNS and expected.target in missing:
        hint += "; a frame with one column per series must be in long format: use melt()"
    existing = format_list(names, max_shown=12) or "none"
    return DataError(
        f"The {what} must have the columns {columns}, but it lacks {format_list(missing)} and has "
        f"{existing}. {suggestion}{hint}."
    )
