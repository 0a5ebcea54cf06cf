"""Data files to frames: ids as they are written, times only where they cannot be misread, numbers that are numbers."""

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
from deepforecast.data.columns import Columns, resolve
from deepforecast.errors import DataError, format_list, format_value, warn

CSV, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
MAX_HEADER = 2**20  # bytes in which the line of column names has to end


@dataclass(frozen=True)
class InputData:
    """A pandas frame with the columns that have a role, and the roles."""

    frame: Any
    columns: Columns

    @property
    def roles(self) -> dict[str, Any]:
        """The roles as the library takes them, said in full."""
        return all_roles(self.columns)


def all_roles(columns: Columns) -> dict[str, Any]:
    """Every role and its names."""
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
    """The rows of a file; `declared` are the names of columns that were given. Columns without a role are left out, aloud.

    fitted: the names are those of a fitted model, which are not to be changed here. known: columns that may be left out unsaid.
    """
    table = read_table(path, text_format)
    try:
        columns = resolve(declared, table.column_names, target=target)
    except DataError as error:
        raise DataError(_missing_columns_message(path, declared if target else {**declared, "target": None}, table.column_names)) from error
    present = [name for name in columns.all if name in table.column_names]
    unused = [name for name in table.column_names if name not in (*columns.all, *ignored)]
    if unused and (target or columns.future):
        hint = "The model was fitted without them" if fitted else "Declare them with --future, --past or --static"
        warn(f"Columns without a role are left out: {format_list(unused)}. {hint}.")
    return InputData(column_types.convert_columns(table.select(present), columns, text_format), columns)


def read_inputs(values: argparse.Namespace) -> tuple[InputData, Any]:
    """The data file of a command, and the frame of its static columns or None."""
    text_format = TextFormat.from_arguments(values)
    inputs = read_data(values.data, declared_columns(values), text_format)
    return inputs, None if values.static_data is None else read_static(values.static_data, inputs.columns, text_format)


def read_static(path: str, columns: Columns, text_format: TextFormat, *, fitted: bool = False) -> Any:
    """A frame with the static columns, one row a series."""
    table = read_table(path, text_format)
    selected = [name for name in (columns.id, *columns.static) if name is not None and name in table.column_names]
    unused = [name for name in table.column_names if name not in columns.all]
    if unused:
        hint = "The model was fitted without them" if fitted else "Declare them with --static"
        warn(f"Columns of {_format_path(path)} without a role are left out: {format_list(unused)}. {hint}.")
    return column_types.convert_columns(table.select(selected), columns, text_format)


def match_id_type(frame: Any, series: Any) -> Any:
    """The frame with the ids of a text file as whole numbers, where the model was fitted on those and all of them are."""
    name = series.columns.id
    if series.ids is None or name not in frame or not series.ids.dtype.is_integer() or frame[name].dtype.kind in "iu":
        return frame
    text = frame[name].astype(str)
    return frame.assign(**{name: text.astype("int64")}) if text.str.fullmatch(r"0|-?[1-9]\d{0,17}").all() else frame


def read_table(path: str, text_format: TextFormat) -> Any:
    """The file as an arrow table: every cell of a CSV as the text it is."""
    import pyarrow as pa

    suffix = Path(path).suffix.lower()
    try:
        if "\0" in path:
            raise DataError(f"{_format_path(path)} cannot be read: no path holds a zero byte.")
        if path == "-":
            return _read_csv(_read_standard_input(), path, text_format)
        pipe = stat.S_ISFIFO(os.stat(path).st_mode)
        if not pipe and not os.path.isfile(path):
            raise DataError(f"{_format_path(path)} is not a file. Give a .csv or .parquet file.")
        if suffix in PARQUET:
            return _read_parquet(path)
        if suffix in CSV or pipe:
            with open(path, "rb") as file:
                return _read_csv(io.BytesIO(file.read()) if pipe else file, path, text_format)
    except OSError as error:
        raise DataError(f"{_format_path(path)} cannot be read: {error.strerror or format_value(str(error), 200)}.") from error
    except (pa.ArrowException, UnicodeError) as error:
        raise DataError(f"{_format_path(path)} is not a whole file of its kind: {format_value(str(error), 200)}") from error
    raise DataError(f"A data file ends in .csv, .tsv or .parquet; got {_format_path(path)}. Convert it, or pipe it in as CSV with -.")


def _missing_columns_message(path: str, declared: Mapping[str, Any], names: list[str]) -> str:
    roles = {"time": "ds", "target": "y", **declared}
    listed = [name for role_columns in roles.values() for name in (role_columns if isinstance(role_columns, list | tuple) else [role_columns]) if name]
    missing = [name for name in dict.fromkeys(listed) if name not in names]
    all_declared = {"id", "time", "target"} <= set(declared)
    hint = "Rename them." if all_declared else "Name yours with --id, --time, --target (and --future, --past, --static)."
    return f"{_format_path(path)} lacks {format_list(missing or listed, max_shown=12)}; its columns are {format_list(names, max_shown=12)}. {hint}"


def _read_standard_input() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("Standard input is closed, so there is nothing to read. Give a file in place of -.")
    return io.BytesIO(sys.stdin.buffer.read())


def _read_parquet(path: str) -> Any:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    indices = [name for name in table.column_names if name.startswith("__index_level_")]  # what pandas adds
    table = table.drop_columns(indices)
    _check_unique(table.column_names, path)
    return table.replace_schema_metadata(None)


def _read_csv(file: BinaryIO, path: str, text_format: TextFormat) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    separator = text_format.separator or ("\t" if path.lower().endswith(".tsv") else ",")
    if len(separator) != 1 or not separator.isascii():
        raise DataError(f"--separator is one sign (or 'tab'); got {format_value(separator)!r}.")
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
        file.seek(0)  # once more in one thread, which knows the number of the row
        return csv.read_csv(file, csv.ReadOptions(use_threads=False), parse_options=layout, convert_options=conversion)


def _read_header(file: BinaryIO, path: str, separator: str) -> list[str]:
    """The names of the columns, read apart: before the rows are, it has to be said that they are text."""
    import codecs
    import csv

    head = file.read(MAX_HEADER)
    file.seek(0)
    if b"\0" in head:
        raise DataError(f"{_format_path(path)} is not text in UTF-8 (it holds zero bytes). Save it as CSV in UTF-8.")
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        raise DataError(f"{_format_path(path)} is not text in UTF-8. Save it as CSV in UTF-8.") from None
    try:
        names = next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row), [])
    except csv.Error as error:
        raise DataError(f"{_format_path(path)} does not begin with a line of column names: {error}.") from None
    if not names:
        raise DataError(f"{_format_path(path)} is empty. The first line names the columns, e.g. unique_id,ds,y.")
    separators = [sign for sign in (";", "\t", "|", ",") if len(names) == 1 and sign in names[0] and sign != separator]
    if separators:
        sign = "tab" if separators[0] == "\t" else repr(separators[0])
        raise DataError(f"{_format_path(path)} has the one column {format_value(names[0])!r}. Say --separator {sign}.")
    _check_unique(names, path)
    return names


def _check_unique(names: list[str], path: str) -> None:
    duplicates = [name for position, name in enumerate(names) if name in names[:position]]
    if duplicates:
        raise DataError(f"Column names of {_format_path(path)} are unique; {format_list(duplicates)} is there twice. Drop or rename one.")


def _format_path(path: str) -> str:
    return "standard input" if path == "-" else format_value(path, 200)
