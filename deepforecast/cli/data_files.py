"""Reading of data files: ids as text, unambiguous timestamps, valid numbers."""

from __future__ import annotations

import argparse
import io
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

from deepforecast.cli import column_types
from deepforecast.cli.arguments import TextFormat, declared_columns
from deepforecast.data.columns import Columns, resolve_columns
from deepforecast.errors import DataError, format_list, format_value, warn

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
MAX_HEADER = 2**20  # in bytes, including the line end


@dataclass(frozen=True)
class InputData:
    """A pandas frame of the columns with a role, and the roles."""

    frame: Any
    columns: Columns

    @property
    def roles(self) -> dict[str, Any]:
        """All roles as `columns=` takes them."""
        return all_roles(self.columns)


def all_roles(columns: Columns) -> dict[str, Any]:
    """Return every role with its column names."""
    return {field.name: getattr(columns, field.name) for field in fields(Columns)}


def read_data(
    path: str,
    declared: Mapping[str, Any],
    text_format: TextFormat,
    *,
    target: bool = True,
    fitted: bool = False,
    ignored: Sequence[str] = (),
) -> InputData:
    """Read a data file; columns without a role are left out with a warning.

    Parameters
    ----------
    path : str
        CSV or parquet file; "-" reads CSV from standard input.
    declared : mapping
        Column names by role, as given on the command line.
    text_format : TextFormat
        Settings for parsing text.
    target : bool, default True
        Whether the file must have the target column.
    fitted : bool, default False
        Whether the roles are those of a fitted model; the hint of the warning depends on it.
    ignored : sequence of str
        Columns that are left out without a warning.
    """
    table = read_table(path, text_format)
    try:
        columns = resolve_columns(declared, table.column_names, target=target, what=f"file {_format_path(path)}")
    except DataError as error:
        error.hint = (
            "Add or rename the missing columns."
            if fitted
            else "Pass the names of your columns with --time, --target, --id, --future, --past, --static and --weight. A file with one "
            "column per series must be melted first."
        )
        raise
    present = [name for name in columns.all if name in table.column_names]
    unused = [name for name in table.column_names if name not in (*columns.all, *ignored)]
    if unused and (target or columns.future):
        hint = "The model was fitted without them" if fitted else "Declare them with --future, --past, --static or --weight"
        warn(f"Columns without a role are left out: {format_list(unused)}. {hint}.")
    return InputData(column_types.convert_columns(table.select(present), columns, text_format), columns)


def read_inputs(values: argparse.Namespace) -> tuple[InputData, Any]:
    """Read the data file of a command and, if given, its static covariates."""
    text_format = TextFormat.from_arguments(values)
    inputs = read_data(values.data, declared_columns(values), text_format)
    return inputs, None if values.static_data is None else read_static(values.static_data, inputs.columns, text_format)


def read_static(path: str, columns: Columns, text_format: TextFormat, *, fitted: bool = False) -> Any:
    """Read static covariates, one row per series."""
    table = read_table(path, text_format)
    selected = [name for name in (columns.id, *columns.static) if name is not None and name in table.column_names]
    unused = [name for name in table.column_names if name not in columns.all]
    if unused:
        hint = "The model was fitted without them" if fitted else "Declare them with --static"
        warn(f"Columns of {_format_path(path)} without a role are left out: {format_list(unused)}. {hint}.")
    return column_types.convert_columns(table.select(selected), columns, text_format)


def match_id_type(frame: Any, series: Any) -> Any:
    """Convert text ids to integers if the model was fitted with integer ids and all of them are integers."""
    name = series.columns.id
    if series.ids is None or name not in frame or not series.ids.dtype.is_integer() or frame[name].dtype.kind in "iu":
        return frame
    text = frame[name].astype(str)
    return frame.assign(**{name: text.astype("int64")}) if text.str.fullmatch(r"0|-?[1-9]\d{0,17}").all() else frame


def read_table(path: str, text_format: TextFormat) -> Any:
    """Read a file as an arrow table; all cells of a CSV are text."""
    import pyarrow as pa

    suffix = Path(path).suffix.lower()
    try:
        if "\0" in path:
            raise DataError(
                f"{_format_path(path)} cannot be read: a path cannot contain a null byte.", hint="Pass another path."
            )
        if path == "-":
            return _read_csv(_read_standard_input(), path, text_format)
        pipe = stat.S_ISFIFO(os.stat(path).st_mode)
        if not pipe and not os.path.isfile(path):
            raise DataError(
                f"{_format_path(path)} must be a file, got a folder or a special file.", hint="Pass a .csv or .parquet file."
            )
        if suffix in PARQUET:
            return _read_parquet(path)
        if suffix in CSV or pipe:
            with open(path, "rb") as file:
                return _read_csv(io.BytesIO(file.read()) if pipe else file, path, text_format)
    except OSError as error:
        raise DataError(f"{_format_path(path)} cannot be read: {error.strerror or format_value(str(error), 200)}.") from error
    except (pa.ArrowException, UnicodeError) as error:
        raise DataError(f"{_format_path(path)} must be a complete, valid file: {format_value(str(error), 200)}") from error
    raise DataError(
        f"A data file must end in .csv, .tsv or .parquet, got {_format_path(path)}.",
        hint="Convert it, or pass - to read CSV from standard input.",
    )


def _read_standard_input() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("Standard input cannot be read because it is closed.", hint="Pass a file instead of -.")
    return io.BytesIO(sys.stdin.buffer.read())


def _read_parquet(path: str) -> Any:
    """A parquet file as an Arrow table, without the index columns and metadata of pandas."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    indices = [name for name in table.column_names if name.startswith("__index_level_")]  # added by pandas
    table = table.drop_columns(indices)
    _check_unique(table.column_names, path)
    return table.replace_schema_metadata(None)


def _read_csv(file: BinaryIO, path: str, text_format: TextFormat) -> Any:
    """A CSV file as an Arrow table of texts; only empty cells without quotes are missing."""
    import pyarrow as pa
    from pyarrow import csv

    separator = text_format.separator or ("\t" if path.lower().endswith(".tsv") else ",")
    if len(separator) != 1 or not separator.isascii():
        raise DataError(f"--separator must be one ASCII character or 'tab', got {format_value(separator)!r}.")
    names = _read_header(file, path, separator)
    conversion = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    layout = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    try:
        return csv.read_csv(file, convert_options=conversion, parse_options=layout)
    except pa.ArrowInvalid:
        file.seek(0)  # the error message of a single thread has the row number
        return csv.read_csv(file, csv.ReadOptions(use_threads=False), parse_options=layout, convert_options=conversion)


def _read_header(file: BinaryIO, path: str, separator: str) -> list[str]:
    """Read the column names, which `read_csv` needs beforehand to read all columns as text."""
    import codecs
    import csv

    head = file.read(MAX_HEADER)
    file.seek(0)
    if b"\0" in head:
        raise DataError(
            f"{_format_path(path)} must be text in UTF-8, but contains null bytes.", hint="Save it as CSV in UTF-8."
        )
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        raise DataError(
            f"{_format_path(path)} must be text in UTF-8, but has another encoding.", hint="Save it as CSV in UTF-8."
        ) from None
    try:
        names = next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row), [])
    except csv.Error as error:
        raise DataError(f"{_format_path(path)} must begin with a header row of column names: {error}.") from None
    if not names:
        raise DataError(f"{_format_path(path)} is empty, but must begin with a header row such as unique_id,ds,y.")
    separators = [sign for sign in (";", "\t", "|", ",") if len(names) == 1 and sign in names[0] and sign != separator]
    if separators:
        sign = "tab" if separators[0] == "\t" else repr(separators[0])
        raise DataError(
            f"{_format_path(path)} has only one column, {format_value(names[0])!r}.", hint=f"Pass --separator {sign}."
        )
    _check_unique(names, path)
    return names


def _check_unique(names: list[str], path: str) -> None:
    """Raise `DataError` if a column name occurs more than once."""
    duplicates = [name for position, name in enumerate(names) if name in names[:position]]
    if duplicates:
        raise DataError(
            f"Column names of {_format_path(path)} must be unique; repeated names: {format_list(duplicates)}.",
            hint="Drop or rename these columns.",
        )


def _format_path(path: str) -> str:
    return "standard input" if path == "-" else format_value(path, 200)
