"""Report gaps, duplicates, frequency, missing and infinite values, constant and short series, and covariates.

The exit code is 1 if no model could be fitted to the data."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deepforecast.cli.arguments import DATA_HINTS, TextFormat, add_data, add_output, declared_columns, parse_frequency
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser
from deepforecast.cli.streams import one_line, paint

USAGE = "DATA [options]"
EPILOG = """\
examples:
  deepforecast check sales.csv --id store --time date --target sold"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command."""
    add_data(parser)
    add_output(parser, "the summary of each series")


def run(values: argparse.Namespace) -> Outcome:
    """Check a data file."""
    from deepforecast import check
    from deepforecast.cli.data_files import read_data
    from deepforecast.cli.output_files import check_frame_target, csv_bytes, write_frame

    check_frame_target(values.output)
    inputs = read_data(values.data, declared_columns(values), TextFormat.from_arguments(values))
    report = check(inputs.frame, freq=parse_frequency(values.freq), columns=inputs.roles)
    findings = tuple(_with_options(finding, report.summary["series"]) for finding in report.findings)
    report = replace(report, findings=findings)
    if values.output not in (None, "-") and report.series is not None:
        write_frame(report.series, values)
    table = csv_bytes(report.series, values.spreadsheet_safe) if values.output == "-" and report.series is not None else b""
    return Outcome(report.to_dict(), _format_report(report), table, status=0 if report.ok else 1)


def _with_options(finding: Any, n_series: int) -> Any:
    """The finding with options in its hint; a warning if `fit` leaves the series out by default."""
    is_left_out = finding.problem == "all missing" and finding.count < n_series
    hint = re.sub(r"\b(\w+)='?(\w+)'?", lambda match: f"--{match[1].replace('_', '-')} {match[2]}", finding.hint)
    return replace(finding, severity="warning" if is_left_out else finding.severity, hint=DATA_HINTS.get(finding.problem, hint))


def _format_report(report: Any) -> str:
    """Size of the data, a line per finding with its hint, and the verdict, coloured by severity."""
    summary = report.summary
    lines = [f"{summary['series']:,} series, {summary['rows']:,} rows"]
    if "freq" in summary:
        lines[0] += f", freq {one_line(str(summary['freq']))}, {summary['from']} to {summary['to']}"
    styles = {"error": "red", "warning": "yellow"}
    for finding in report.findings:
        severity = paint(f"{finding.severity:8s}", styles.get(finding.severity, "dim"))
        lines.append(f"{severity} {one_line(finding.problem)} ({finding.count:,}): {one_line(finding.where)}")
        if finding.hint:
            lines.append(f"{'':8s} {paint('hint:', 'dim')} {one_line(finding.hint)}")
    verdict = "No errors: models can be fitted to these data." if report.ok else "Errors: models refuse these data."
    return "\n".join([*lines, paint(verdict, "green" if report.ok else "red")])
