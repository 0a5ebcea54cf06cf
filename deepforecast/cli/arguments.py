"""Options shared by several commands, and their parsed values."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from deepforecast.cli.parser import Parser, parse_number

ROLES = ("id", "time", "target", "future", "past", "static", "weight")
DATA_HINTS = {  # by problem of the data; the hints of the library are for Python
    "duplicates": "Drop or aggregate the duplicates; one id column (option --id of a fit) must tell all series apart.",
    "all missing": "Drop these series, or pass --on-failure fallback (the default) or drop.",
}


@dataclass(frozen=True)
class TextFormat:
    """Settings for parsing the text of a CSV file."""

    date_format: str | None = None
    time_zone: str | None = None
    separator: str | None = None
    decimal: str = "."
    categorical: tuple[str, ...] = ()

    @classmethod
    def from_arguments(cls, values: argparse.Namespace) -> TextFormat:
        """Return the settings of a parsed command line."""
        separator = {"tab": "\t", "\\t": "\t"}.get(values.separator, values.separator)
        return cls(values.date_format, values.time_zone, separator, values.decimal, tuple(values.categorical))


def add_data(parser: Parser) -> None:
    """Add the data file, its columns and its frequency."""
    data_help = "CSV or parquet file with one row per series and time; - reads CSV from standard input"
    parser.add_inputs(parser.add_argument("data", metavar="DATA", help=data_help))
    columns = parser.add_argument_group(
        "columns of the data", "unique_id, ds, y and item_id, timestamp, target are detected; without an id column: one series"
    )
    columns.add_argument("--id", metavar="NAME", help="column of series ids, read as text without changes")
    columns.add_argument("--time", metavar="NAME", help="column of timestamps: ISO-8601 dates or times, or integers")
    columns.add_argument("--target", metavar="NAME", help="column to forecast, numeric")
    columns.add_argument(
        "--future", metavar="NAME", nargs="+", action="extend", help="future covariates: columns known in advance"
    )
    columns.add_argument(
        "--past", metavar="NAME", nargs="+", action="extend", help="past covariates: columns known up to the present"
    )
    columns.add_argument("--static", metavar="NAME", nargs="+", action="extend", help="static covariates: constant per series")
    columns.add_argument("--weight", metavar="NAME", help="observation weights for training: numbers of at least 0")
    columns.add_argument("--freq", help="frequency: D, h, 15min, W-SUN, MS, ME, ... or an integer (default: inferred)")
    add_text_format(parser)


def add_static(parser: Parser) -> None:
    """Add the file of static covariates."""
    static_help = "file of static covariates, one row per series"
    parser.add_inputs(parser.add_argument("--static-data", metavar="FILE", help=static_help))


def add_text_format(parser: Parser) -> None:
    """Add the settings for parsing text."""
    group = parser.add_argument_group(
        "reading text", "empty cells, NA, N/A, NaN, null and None are missing values (except in the id column)"
    )
    group.add_argument(
        "--date-format", metavar="FORMAT",
        help="format of timestamps that are not ISO-8601, e.g. %%d/%%m/%%Y; 'integer' for integers",
    )
    group.add_argument("--time-zone", metavar="ZONE", help="time zone of the timestamps, e.g. Europe/Berlin")
    group.add_argument("--separator", metavar="CHAR", help="column separator; 'tab' for tabs (default: comma)")
    group.add_argument(
        "--decimal", metavar="CHAR", choices=(".", ","), default=".", help="decimal separator: '.' or ','"
    )
    group.add_argument(
        "--categorical",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="covariates to read as categories even if they look like numbers",
    )


def add_output(parser: Parser, what: str) -> None:
    """Add the output file; `what` names its contents."""
    group = parser.add_argument_group("output")
    target = group.add_argument(
        "--output",
        metavar="FILE",
        help=f"write {what} to a .csv or .parquet file; - writes CSV to standard output",
    )
    parser.add_targets(target)
    group.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="prefix CSV text that spreadsheets run as a formula (starting with =, +, -, @) with '",
    )


def add_levels(parser: Parser) -> None:
    """Add the levels of the prediction intervals."""
    parser.add_argument(
        "--level", type=parse_number, nargs="+", action="extend", metavar="PERCENT",
        help="coverage of the prediction intervals in percent, e.g. 80 95",
    )


def declared_columns(values: argparse.Namespace) -> dict[str, Any]:
    """Return the column roles given on the command line."""
    return {role: getattr(values, role) for role in ROLES if getattr(values, role) is not None}


def parse_frequency(text: str | None) -> Any:
    """Return the value of `--freq` as an integer if it is one."""
    return int(text) if text is not None and text.lstrip("-").isdecimal() else text
