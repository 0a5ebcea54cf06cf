"""Names and roles of the columns of a frame, and the columns of models in a forecast frame."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from deepforecast.data.frames import Frame, library_name, to_narwhals
from deepforecast.data.key_columns import TEXT_TIME
from deepforecast.errors import DataError, ParameterError, ParameterTypeError, format_list, format_value, warn

KEY_ROLES = ("id", "time", "target")
COVARIATE_ROLES = ("future", "past", "static")
ROLES = (*KEY_ROLES, *COVARIATE_ROLES, "weight")
ARROW_TO_PANDAS = "pyarrow.table(frame).to_pandas()"  # for any object with the Arrow C stream interface
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
    weight : str or None, default None
        Column with the observation weights, numbers of at least 0: how much each observation counts in
        training. It is no input of the model, and forecasts do not need it.

    Examples
    --------
    >>> Columns(target="sales", future=["promo"])
    Columns(id='unique_id', time='ds', target='sales', future=('promo',), past=(), static=(), weight=None)
    """

    id: str | None = "unique_id"
    time: str = "ds"
    target: str = "y"
    future: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    weight: str | None = None

    def __post_init__(self) -> None:
        """Convert the covariate roles to tuples and check that names are unique strings."""
        _refuse_several_ids(self.id)
        if not isinstance(self.weight, str | None):
            raise ParameterTypeError(
                f"columns: `weight` must be one column name or None, got {format_value(self.weight)} "
                f"({type(self.weight).__name__}).",
                hint="Pass e.g. columns={'weight': 'weight'}.",
                parameter="columns",
                value=self.weight,
            )
        for role in COVARIATE_ROLES:
            object.__setattr__(self, role, _names(getattr(self, role), role))
        invalid = [name for name in self.all if not isinstance(name, str)]
        if invalid:
            raise ParameterTypeError(
                f"`columns` must contain column names as strings, got {format_value(invalid[0])} ({type(invalid[0]).__name__}).",
                hint="Rename the column, e.g. frame.columns = [...].",
                parameter="columns",
                value=invalid[0],
            )
        duplicates = [name for name, count in Counter(self.all).items() if count > 1]
        if duplicates:
            roles = [role for role in ROLES if duplicates[0] in _names(getattr(self, role), role)]
            roles_text = f" ({format_list(roles)})" if len(duplicates) == 1 and len(roles) > 1 else ""
            raise ParameterError(
                f"`columns` must name each column once, but these are repeated: {format_list(duplicates)}{roles_text}.",
                hint="Keep one role per column.",
                parameter="columns",
            )

    @cached_property
    def all(self) -> tuple[str, ...]:
        """All columns with a role: id, time, target, then covariates and the weight."""
        key = () if self.id is None else (self.id,)
        return (*key, self.time, self.target, *self.covariates, *_names(self.weight, "weight"))

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


def _refuse_several_ids(id_names: Any, frame: Frame = None) -> None:
    """Raise if the id role has several columns, with code that joins them into one."""
    if not isinstance(id_names, list | tuple):
        return
    library = "pandas" if frame is None else library_name(to_narwhals(frame))
    raise ParameterTypeError(
        f"columns: `id` must be one column name, got {format_list(id_names)} ({type(id_names).__name__}).",
        hint=f"Pass {joined_ids_code(id_names, library)}, and 'unique_id' as the id.",
        parameter="columns",
        value=id_names,
    )


def joined_ids_code(id_names: Sequence[str], library: str) -> str:
    """Code that joins several id columns of a frame of `library` into one, unique_id."""
    if library == "polars":
        return f"frame.with_columns(unique_id=polars.concat_str({list(id_names)}, separator='/'))"
    texts = " + '/' + ".join(f"frame[{name!r}].astype(str)" for name in id_names)
    return f"{ARROW_TO_PANDAS if library == 'pyarrow' else 'frame'}.assign(unique_id=lambda frame: {texts})"


DIALECTS = (Columns(), Columns("item_id", "timestamp", "target"))


def resolve_columns(
    columns_argument: Columns | Mapping[str, Any] | None,
    names: Sequence[str],
    target: bool = True,
    what: str = "frame",
    frame: Frame = None,
) -> Columns:
    """Complete `columns_argument` for a frame with the columns `names`; raise `DataError` if a column is missing.

    Names that are not passed default to `unique_id, ds, y` or `item_id, timestamp, target`,
    whichever the frame has. The id is None if the frame has no id column and none was passed: it is
    a single series. Static columns may be missing, and the target unless `target`. `what` names the
    frame in messages; `frame`, if passed, is that frame, for advice that fits its library and columns.
    """
    known = DIALECTS if columns_argument is None else (columns_argument,) if isinstance(columns_argument, Columns) else ()
    for columns in known:
        if target and set(columns.all).issubset(names):
            return columns
    explicit = _explicit_roles(columns_argument)
    _refuse_several_ids(explicit.get("id"), frame)
    columns = _complete_from_dialect(explicit, names)
    optional = columns.static if target else (*columns.static, columns.target)
    missing = [name for name in columns.all if name not in names and name not in optional]
    if missing:
        raise _missing_columns_error(missing, columns if explicit else DIALECTS[0], names, target, what, frame)
    return columns


def warn_undeclared(undeclared: Sequence[str], already_reported: Sequence[str] = ()) -> None:
    """Warn of the columns without a role, except for those in `already_reported`."""
    new = [name for name in undeclared if name not in already_reported]
    if new:
        warn(f"Columns without a role are ignored: {format_list(new)}. Declare them in columns= or drop them.")


def key_roles(columns: Columns | Mapping[str, Any] | None) -> Any:
    """The id, time and target roles of `columns`; the others are optional in a forecast frame."""
    if columns is None:
        return None
    return {role: name for role, name in _explicit_roles(columns).items() if role in KEY_ROLES}


def declared_covariates(columns: Columns | Mapping[str, Any] | None) -> tuple[str, ...]:
    """The declared covariates, and the weight; in a forecast frame these columns are not models."""
    roles = Columns(**_explicit_roles(columns))
    return (*roles.covariates, *_names(roles.weight, "weight"))


def _explicit_roles(columns: Columns | Mapping[str, Any] | None) -> dict[str, Any]:
    """The roles passed by the caller; of a `Columns` object those that differ from the defaults."""
    if isinstance(columns, Columns):
        return {role: getattr(columns, role) for role in ROLES if getattr(columns, role) != getattr(DIALECTS[0], role)}
    if columns is not None and not isinstance(columns, Mapping):
        raise ParameterTypeError(
            f"`columns` must be a Columns object or a dict of roles, got {format_value(columns)} ({type(columns).__name__}).",
            parameter="columns",
            value=columns,
        )
    unknown = [role for role in columns or () if role not in ROLES]
    if unknown:
        raise ParameterError(f"columns: roles must be among {', '.join(ROLES)}, got {format_list(unknown)}.")
    return dict(columns or {})


def _complete_from_dialect(explicit: Mapping[str, Any], names: Sequence[str]) -> Columns:
    """Complete the roles by the first dialect whose time and target the frame has; the id is None if it has none."""
    required = [role for role in ("time", "target") if role not in explicit]
    matching = [dialect for dialect in DIALECTS if all(getattr(dialect, role) in names for role in required)]
    dialect = (matching or DIALECTS)[0]
    roles = {role: getattr(dialect, role) for role in KEY_ROLES} | dict(explicit)
    taken_names = [roles["time"], roles["target"]]
    taken_names += [name for role in (*COVARIATE_ROLES, "weight") if role in roles for name in _names(roles[role], role)]
    if "id" not in explicit and (roles["id"] not in names or roles["id"] in taken_names):
        roles["id"] = None
    return Columns(**roles)


def _missing_columns_error(
    missing: Sequence[str], expected: Columns, names: Sequence[str], target: bool, what: str, frame: Frame
) -> DataError:
    """The error for missing columns, with hints for a pandas index and for frames in wide format."""
    columns = ", ".join(format_value(name) for name in expected.all if target or name != expected.target)
    suggestion = "Add or rename the missing columns"
    if what == "frame":
        suggestion = "Pass your names, e.g. columns={'id': 'shop', 'time': 'day', 'target': 'sales'}"
    hint = "; a pandas index is ignored: use reset_index() to make it a column" if expected.time in missing else ""
    if what == "frame" and expected.target in missing:
        if melt := _melt_hint(frame, expected):
            hint = f"; if each column is a series, pass {melt}"
        elif len(names) > WIDE_FRAME_COLUMNS:
            hint += "; a frame with one column per series must be in long format: use melt() or unpivot()"
    return DataError(
        f"The {what} must have the columns {columns}, but it lacks {format_list(missing)} and has "
        f"{format_list(names, max_shown=12) or 'none'}.",
        hint=f"{suggestion}{hint}.",
    )


def _melt_hint(frame: Frame, expected: Columns) -> str:
    """Code that brings a frame with one column per series to long format; empty unless all columns but the time are numeric."""
    if frame is None or expected.covariates:
        return ""
    table = to_narwhals(frame)
    if tuple in map(type, table.columns):  # a MultiIndex of pandas
        return ""
    library, default = library_name(table), Columns()
    labels = [name for name, dtype in table.schema.items() if not dtype.is_numeric()]
    time = expected.time if expected.time in table.columns else None
    if time is None and len(labels) == 1 and re.match(TEXT_TIME, "".join(map(str, table[labels[0]].head(1).to_list()))):
        time = labels[0]
    code = ARROW_TO_PANDAS if library == "pyarrow" else "frame"
    if time is None and type(getattr(frame, "index", None)).__name__ == "DatetimeIndex":
        code, time = f"frame.reset_index(names={expected.time!r})", expected.time
    series = set(table.columns) - {time}
    if time is None or len(series) < 2 or expected.id in table.columns or not series.isdisjoint(labels):
        return ""
    roles = {"id": expected.id or default.id, "time": time, "target": expected.target}
    names = f"={roles['id']!r}, value_name={expected.target!r})"
    code += f".unpivot(index={time!r}, variable_name{names}" if library == "polars" else f".melt({time!r}, var_name{names}"
    columns = {role: name for role, name in roles.items() if name != getattr(default, role)}
    return code if time == expected.time else f"{code} and columns={columns}"


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
        intervals = {}
        for probability, low in by_probability.items():
            high = by_probability.get(round_level(1 - probability))
            if 0 < probability < 0.5 and high:
                intervals[round_level(100 * (1 - 2 * probability))] = (low, high)
        return intervals | {level: (name, self.hi[level]) for level, name in self.lo.items() if level in self.hi}


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
    suffixes = {name: _parse_suffix(name, existing) for name in names}
    models = {name: ModelColumns(name) for name, suffix in suffixes.items() if suffix is None}
    for name, suffix in suffixes.items():
        if suffix is None:
            continue
        model, column_kind, number = suffix
        column = getattr(models[model], column_kind).setdefault(number, name)
        if column != name:
            raise DataError(
                f"A model must have one column per level or quantile, but columns {column} and {name} have the same one.",
                hint="Drop one of them.",
            )
    return list(models.values())


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
