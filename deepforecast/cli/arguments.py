"""Options that several commands share, and what is made of them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from deepforecast.cli.parser import Parser, parse_number

ROLES = ("id", "time", "target", "future", "past", "static")


@dataclass(frozen=True)
class TextFormat:
    """How the text of a file is to be understood."""

    date_format: str | None = None
    time_zone: str | None = None
    separator: str | None = None
    decimal: str = "."
    categorical: tuple[str, ...] = ()

    @classmethod
    def from_arguments(cls, values: argparse.Namespace) -> TextFormat:
        """As the command line says."""
        separator = {"tab": "\t", "\\t": "\t"}.get(values.separator, values.separator)
        return cls(values.date_format, values.time_zone, separator, values.decimal, tuple(values.categorical))


def add_data(parser: Parser) -> None:
    """The data file, its columns and its frequency."""
    data_help = "CSV or parquet file with a row for each series and time; - for CSV on standard input"
    parser.add_inputs(parser.add_argument("data", metavar="DATA", help=data_help))
    columns = parser.add_argument_group(
        "columns of the data", "unique_id, ds, y and item_id, timestamp, target are recognised; no id: one series"
    )
    columns.add_argument("--id", metavar="NAME", help="which series a row belongs to; kept as text, exactly as written")
    columns.add_argument("--time", metavar="NAME", help="ISO-8601 date or time, or a whole number")
    columns.add_argument("--target", metavar="NAME", help="the number to forecast")
    columns.add_argument("--future", metavar="NAME", nargs="+", action="extend", help="columns known ahead of time")
    columns.add_argument("--past", metavar="NAME", nargs="+", action="extend", help="columns known up to now")
    columns.add_argument("--static", metavar="NAME", nargs="+", action="extend", help="columns that are constant for a series")
    columns.add_argument("--freq", help="D, h, 15min, W-SUN, MS, ME, ... or a whole number; inferred if not given")
    add_text_format(parser)


def add_static(parser: Parser) -> None:
    """A file with the static columns."""
    static_help = "file with a row for each series that holds the static columns"
    parser.add_inputs(parser.add_argument("--static-data", metavar="FILE", help=static_help))


def add_text_format(parser: Parser) -> None:
    """How text is read."""
    group = parser.add_argument_group(
        "reading text", "empty cells, NA, N/A, NaN, null and None are missing values (but are ids as they are)"
    )
    group.add_argument(
        "--date-format", metavar="FORMAT", help="of times that are not ISO-8601, e.g. %%d/%%m/%%Y; 'integer' for whole numbers"
    )
    group.add_argument("--time-zone", metavar="ZONE", help="of the times, e.g. Europe/Berlin")
    group.add_argument("--separator", metavar="SIGN", help="between cells: a comma, if not given; 'tab' for tabs")
    group.add_argument(
        "--decimal", metavar="SIGN", choices=(".", ","), default=".", help="decimal point of numbers: '.' or ','"
    )
    group.add_argument(
        "--categorical",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="covariates to read as categories even where they look like numbers",
    )


def add_output(parser: Parser, what: str) -> None:
    """Where a frame goes."""
    group = parser.add_argument_group("output")
    target = group.add_argument(
        "--output",
        metavar="FILE",
        help=f"write {what} to a .csv or .parquet file, whole or not at all; - for CSV on standard output",
    )
    parser.add_targets(target)
    group.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="put ' before text in CSV that a spreadsheet would run as a formula (=, +, -, @ first)",
    )


def add_levels(parser: Parser) -> None:
    """Prediction intervals."""
    parser.add_argument(
        "--level", type=parse_number, nargs="+", action="extend", metavar="PERCENT", help="prediction intervals, e.g. 80 95"
    )


def declared_columns(values: argparse.Namespace) -> dict[str, Any]:
    """The roles that were said."""
    return {role: getattr(values, role) for role in ROLES if getattr(values, role) is not None}


def parse_frequency(text: str | None) -> Any:
    """`--freq`: a whole number where it is one."""
    return int(text) if text is not None and text.lstrip("-").isdecimal() else text
