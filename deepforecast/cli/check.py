"""Report gaps, duplicates, frequency, missing and infinite values, constants, short series, and declared covariates.

Exit code 1 if something was found that every fit would refuse."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deepforecast.cli.arguments import Reading, add_data, add_output, columns_of, frequency_of
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser
from deepforecast.cli.streams import one_line, paint

USAGE = "DATA [options]"
EPILOG = """\
examples:
  deepforecast check sales.csv --id store --time date --target sold"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """The options of the command."""
    add_data(parser)
    add_output(parser, "a row for each series")


def run(values: argparse.Namespace) -> Outcome:
    """Read, check, report."""
    from deepforecast import check
    from deepforecast.cli.reading import read
    from deepforecast.cli.writing import check_frame_target, csv_bytes, write_frame

    check_frame_target(values.output)
    data = read(values.data, columns_of(values), Reading.of(values))
    report = check(data.frame, freq=frequency_of(values.freq), columns=data.roles)
    findings = (replace(one, where=values.worded(one.where), way_out=values.worded(one.way_out)) for one in report.findings)
    report = replace(report, findings=tuple(findings))
    if values.output not in (None, "-") and report.series is not None:
        write_frame(report.series, values)
    table = csv_bytes(report.series, values.spreadsheet_safe) if values.output == "-" and report.series is not None else b""
    return Outcome(report.to_dict(), _text(report), table, status=0 if report.ok else 1)


def _text(report: Any) -> str:
    """The report for a terminal."""
    said = report.summary
    lines = [f"{said['series']:,} series, {said['rows']:,} rows"]
    if "freq" in said:
        lines[0] += f", freq {one_line(str(said['freq']))}, {said['from']} to {said['to']}"
    styles = {"error": "red", "warning": "yellow"}
    for finding in report.findings:
        head = paint(f"{finding.severity:8s}", styles.get(finding.severity, "dim"))
        lines.append(f"{head} {one_line(finding.what)} ({finding.count:,}): {one_line(finding.where)}")
        if finding.way_out:
            lines.append(f"{'':8s} {paint('way out:', 'dim')} {one_line(finding.way_out)}")
    errors = sum(finding.severity == "error" for finding in report.findings)
    verdict = (
        f"{errors} kind{'s' * (errors > 1)} of error: every fit would refuse these data."
        if errors
        else "No errors: a model can be fitted."
    )
    return "\n".join([*lines, paint(verdict, "red" if errors else "green")])
