"""Writing of frames, figures and models, and checks of their paths before a command starts."""

from __future__ import annotations

import argparse
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepforecast.core.atomic import replace_file
from deepforecast.errors import ParameterError, SaveError, format_list, format_value, warn

if TYPE_CHECKING:
    from deepforecast.cli.parser import Parser

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
"""Prefixes of text that spreadsheets run as a formula. They are only escaped on request, since a changed id would no longer
match the other tables of the user."""


def to_pandas(frame: Any) -> Any:
    """Convert a frame to pandas."""
    from deepforecast.data.frames import to_narwhals

    return to_narwhals(frame).to_pandas()


def refuse_overwritten_inputs(parser: Parser, values: argparse.Namespace) -> None:
    """Raise if an output file is also read or written by another option, even through another path."""
    files: list[tuple[argparse.Action, str]] = []
    for action in parser.inputs:
        value = getattr(values, action.dest)
        files += [(action, path) for path in (value if isinstance(value, list) else [value]) if path is not None]
    for action in parser.targets:
        value = getattr(values, action.dest)
        if value is None or value == "-":
            continue
        target = _sqlite_path(value)
        for other_action, path in files:
            if _same_file(target, path):
                role = "reads" if other_action in parser.inputs else "writes"
                raise ParameterError(
                    f"{_option_name(action)} must not be a file that {parser.prog} {role} as {_option_name(other_action)}, got "
                    f"{format_value(value, 200)}{_same_file_note(value, path)}.",
                    hint=f"Pass another file name to {_option_name(action)}.",
                )
        files.append((action, target))


def _sqlite_path(value: str) -> str:
    """Return the file of a SQLite URL (study.db for `sqlite:///study.db?timeout=9`), or `value` itself."""
    scheme, separator, path = value.partition(":///")
    if not separator or scheme.partition("+")[0] != "sqlite":
        return value
    return path.partition("?")[0].removeprefix("file:")


def _same_file_note(value: str, path: str) -> str:
    if path == "-":
        return ", which is standard input"
    return "" if value == path else f", which is the same file as {format_value(path, 200)}"


def _option_name(action: argparse.Action) -> str:
    return action.option_strings[0] if action.option_strings else str(action.metavar)


def _same_file(target: str, path: str) -> bool:
    """Whether two paths are the same file; links are followed, `-` is the source of standard input."""
    with suppress(OSError, ValueError, AttributeError):  # missing file, invalid path, or a stream without a file
        status = os.fstat(sys.stdin.fileno()) if path == "-" else os.stat(path)
        return os.path.samestat(os.stat(target), status)
    if path == "-" or "\0" in target + path:
        return False
    return os.path.normcase(os.path.realpath(target)) == os.path.normcase(os.path.realpath(path))


def check_target(path: str | None, *suffixes: str, new_folder: bool = False) -> None:
    """Raise before the command starts if the path cannot be written."""
    if path is None or path == "-":
        return
    if not path:
        raise ParameterError("The name of an output file cannot be empty, got ''.", hint="Pass a file name.")
    if suffixes and Path(path).suffix.lower() not in suffixes:
        expected = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise ParameterError(f"The output file must end in {expected}, got {format_value(path, 200)}.")
    if "\0" in path:
        raise SaveError(
            f"{format_value(path, 200)} cannot be written: a path cannot contain a null byte.", hint="Pass another path."
        )
    if os.path.isdir(path):
        raise SaveError(f"{format_value(path, 200)} must be a file, but is a folder.", hint="Pass the name of a file in it.")
    folder = next(parent for parent in Path(path).absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SaveError(
            f"{format_value(path, 200)} cannot be written: {format_value(str(folder), 200)} is not a writable folder."
        )
    parent = Path(path).absolute().parent
    if not new_folder and parent != folder:
        name = format_value(str(parent), 200)
        raise SaveError(
            f"{format_value(path, 200)} cannot be written: the folder {name} does not exist.",
            hint="Create it first, e.g. with mkdir -p.",
        )


def check_frame_target(path: str | None) -> None:
    """Check the path of `--output`."""
    check_target(path, ".csv", ".parquet", ".pq")


def check_model_target(path: str) -> None:
    """Check the path of `--save`: of existing files, only model files and empty files may be replaced."""
    if path == "-":
        raise ParameterError("--save must be a file name, got '-': a model cannot be written to standard output.")
    check_target(path)
    if os.path.isfile(path) and not os.access(path, os.R_OK):
        raise SaveError(
            f"--save must be a new file or a model file, got {format_value(path, 200)}, which cannot be read. "
            "It was not replaced.",
            hint="Pass another file name to --save.",
        )
    if os.path.exists(path) and not _is_model_file(path):
        raise SaveError(
            f"--save must be a new file or a model file, got {format_value(path, 200)}, which is another "
            "file. It was not replaced.",
            hint="Pass another file name to --save.",
        )


def _is_model_file(path: str) -> bool:
    """Whether a file starts like a model file or is empty, so that it may be replaced."""
    from deepforecast.core.encoding import MAGIC  # loads safetensors

    if not os.path.isfile(path):  # opening a pipe would block
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) in (b"", MAGIC)


def save_model(model: Any, path: str) -> None:
    """Save a model; the path is checked again, since it may have changed during the fit."""
    check_model_target(path)
    model.save(path)


def write_bytes(path: str, content: bytes) -> None:
    """Write a file atomically."""
    try:
        replace_file(path, [content])
    except OSError as error:
        raise SaveError(
            f"{format_value(path, 200)} cannot be written: {error.strerror or error}. An existing file was not changed."
        ) from error


def write_frame(frame: Any, values: argparse.Namespace) -> None:
    """Write a frame to `--output`, as CSV or parquet."""
    pandas = to_pandas(frame)
    csv = values.output.lower().endswith(".csv")
    write_bytes(values.output, csv_bytes(pandas, values.spreadsheet_safe) if csv else _parquet_bytes(pandas))


def csv_bytes(frame: Any, spreadsheet_safe: bool = False) -> bytes:
    """Return a frame as CSV in UTF-8; numbers are written with full precision."""
    import csv

    pandas = to_pandas(frame)
    formulas = _formula_cells(pandas)
    if formulas and spreadsheet_safe:
        pandas = _escape_formulas(pandas)
    elif formulas:
        warn(
            f"Text that spreadsheets run as a formula is written unchanged: {format_list(formulas)}. "
            "Pass --spreadsheet-safe to prefix it with '."
        )
    # Many readers take a lone carriage return for a line end, but pandas does not quote it: quote all text then.
    has_returns = any(pandas[name].astype(str).str.contains("\r").any() for name in _text_columns(pandas))
    quoting = csv.QUOTE_NONNUMERIC if has_returns else csv.QUOTE_MINIMAL
    return str(pandas.to_csv(index=False, lineterminator="\n", quoting=quoting)).encode("utf-8")


def figure_bytes(figure: Any, path: str) -> bytes:
    """Return a matplotlib figure in the format given by the suffix of `path`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=Path(path).suffix[1:].lower(), dpi=150)
    return buffer.getvalue()


def _parquet_bytes(pandas: Any) -> bytes:
    """A pandas frame as the contents of a parquet file, without its index."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pandas(pandas, preserve_index=False), buffer)
    return bytes(buffer.getvalue())


def _text_columns(pandas: Any) -> list[Any]:
    return [name for name in pandas.columns if pandas[name].dtype.kind not in "biufcMm"]


def _formula_cells(pandas: Any) -> list[str]:
    cells = [str(name) for name in pandas.columns if _is_formula(str(name))]
    for name in _text_columns(pandas):
        cells += [text for text in map(str, pandas[name].dropna().unique()) if _is_formula(text)]
    return cells


def _is_formula(text: str) -> bool:
    """Whether spreadsheets would run the text as a formula: a formula prefix, and not a number such as -1."""
    if not text.startswith(FORMULA_PREFIXES):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _escape_formulas(pandas: Any) -> Any:
    """The frame with an apostrophe before texts and column names that spreadsheets would run as formulas."""

    def safe(value: Any) -> Any:
        return f"'{value}" if _is_formula(str(value)) else value

    changed = {name: pandas[name].astype(object).map(safe, na_action="ignore") for name in _text_columns(pandas)}
    return pandas.assign(**changed).rename(columns=safe)
