"""Run a benchmark suite: every model on every task, each job in a separate process.

SUITE is quick, which is included, or the path of a YAML file (the repository has more). Results are written to the folder
--output only; repeating the command resumes an interrupted run. `audit SUITE` checks the models for leakage."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser, parse_number

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

USAGE = "SUITE [options] | audit SUITE [options]"
EPILOG = """\
examples:
  deepforecast benchmark quick
  deepforecast benchmark quick --models SeasonalNaive AutoETS LSTM:max_steps=200 --output run
  deepforecast benchmark quick --tasks 'air*' --models Naive DLinear --seeds 0 --output run
  deepforecast benchmark mine.yaml --n-jobs 2 --output run --report run.html
  deepforecast benchmark audit quick --models Naive2 LightGBM"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command."""
    suite = parser.add_argument(
        "words", metavar="SUITE", nargs="+", help="name or path of a suite; audit SUITE runs the leakage audit"
    )
    parser.add_inputs(suite)
    parser.add_argument(
        "--models",
        metavar="MODEL",
        nargs="+",
        help="models to run instead of those of the suite, as Name or Name:parameter=value,...",
    )
    parser.add_argument("--n-jobs", metavar="N", type=int, default=1, help="number of parallel jobs, one thread each (1)")
    parser.add_argument(
        "--output", metavar="FOLDER", help="folder for results, forecasts and scores; a later run resumes there"
    )
    report = parser.add_argument("--report", metavar="FILE", help="write a self-contained HTML report")
    parser.add_targets(report)
    parser.add_argument("--peers", metavar="NAME", nargs="+", help="other libraries of the suite to run as well")
    parser.add_argument(
        "--tasks", metavar="NAME", nargs="+", help="tasks to run; patterns such as air* are allowed (default: all)"
    )
    parser.add_argument("--seeds", metavar="N", nargs="+", type=int, help="random seeds (default: those of the suite)")
    parser.add_argument("--series", metavar="N", type=int, help="maximum number of series per task, drawn at random")
    parser.add_argument("--n-windows", metavar="N", type=int, help="maximum number of windows per task, counted from the last")
    parser.add_argument(
        "--time-limit", metavar="SECONDS", type=parse_number, help="time limit per job (default: that of the suite)"
    )
    parser.add_argument("--retry", action="store_true", help="rerun jobs that failed or timed out")
    parser.add_argument("--metric", metavar="NAME", help="metric of the leaderboard (default: the first of the suite)")


def run(values: argparse.Namespace) -> Outcome:
    """Run or audit a suite."""
    from deepforecast.benchmark.suite import load_suite
    from deepforecast.benchmark.suite_subset import SuiteSubset, select_subset
    from deepforecast.cli.output_files import check_target
    from deepforecast.errors import ParameterError, format_value

    check_target(values.report, ".html")
    audits = values.words[0] == "audit"
    names = values.words[audits:]
    if len(names) != 1:
        raise ParameterError(
            f"Exactly one suite must be given, got {format_value(' '.join(names) or 'none')}.",
            hint="Pass the name or path of one suite.",
        )
    cut = SuiteSubset(
        models=None if values.models is None else [parse_entry(text) for text in values.models],
        peers=values.peers,
        tasks=values.tasks,
        seeds=values.seeds,
        series=None if audits else values.series,
        windows=None if audits else values.n_windows,
        time_limit=values.time_limit,
    )
    suite = select_subset(load_suite(names[0]), cut)
    _refuse_own_suite(names[0], values.output)
    return _audit(suite, values) if audits else _run(suite, values)


def _refuse_own_suite(name: str, folder: str | None) -> None:
    """Raise if the suite file that the run writes would replace the user's suite file."""
    from deepforecast.benchmark.job_results import RESULTS, SUITE
    from deepforecast.benchmark.suite import find_suite
    from deepforecast.errors import ParameterError, format_value

    if folder is None or os.path.exists(os.path.join(folder, RESULTS)):  # an earlier run wrote the suite file
        return
    record = os.path.join(folder, SUITE)
    if os.path.exists(record) and os.path.samefile(record, find_suite(name)):
        raise ParameterError(
            f"--output must be a folder without the suite that is run: {format_value(record)} would be replaced.",
            hint="Pass another folder.",
        )


def parse_entry(text: str) -> dict[str, Any]:
    """Return a model as the entry of a suite.

    Examples
    --------
    >>> parse_entry("seasonal-naive:season_length=7,alias=Weekly")
    {'model': 'SeasonalNaive', 'parameters': {'season_length': 7}, 'alias': 'Weekly'}
    """
    from deepforecast.cli.model_names import build_model

    return _model_entry(build_model(text))


def _model_entry(model: Forecaster) -> dict[str, Any]:
    """The name of a model, the parameters that differ from their defaults, and its alias, as in a suite file."""
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.params import declared_params

    parameters: dict[str, Any] = {}
    for name, parameter in declared_params(type(model)).items():
        value = getattr(model, name)
        if name not in ("alias", "horizon") and (parameter.required or value is not parameter.default):
            parameters[name] = _model_entry(value) if isinstance(value, Forecaster) else value
    return {"model": type(model).__name__, "parameters": parameters, **({"alias": model.name} if model.alias else {})}


def _run(suite: Any, values: argparse.Namespace) -> Outcome:
    """Run the suite, write the report and return the summary; status 1 if a job failed."""
    import tempfile
    from datetime import UTC, datetime

    from deepforecast.benchmark.suite_run import RunOptions, run_suite
    from deepforecast.benchmark.summary import check_metric, summarize
    from deepforecast.cli.streams import one_line, print_note

    if values.metric is not None:
        check_metric(suite, values.metric)
    options = RunOptions(jobs=values.n_jobs, retry=values.retry, progress=False if values.json else None)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    if values.output is None:
        print_note("results are not saved; pass --output FOLDER to save them")
        with tempfile.TemporaryDirectory(prefix="deepforecast-") as folder:
            rows = run_suite(suite, folder, options=options)
            _report(folder, rows, values)
    else:
        try:
            rows = run_suite(suite, values.output, options=options)
        except KeyboardInterrupt:
            print_note(f"interrupted; finished jobs are saved in {values.output}; repeat the command to resume")
            raise
        _report(values.output, rows, values)
    failed_rows = [row for row in rows if row.status != "ok"]
    has_metrics = any(row.metrics for row in rows)
    summary = summarize(rows, metric=values.metric, reference=suite.reference) if has_metrics else None
    facts = {
        "suite": suite.suite, "cut": list(suite.cut), "output": values.output,
        "metric": None if summary is None else summary.metric,
        "leaderboard": [] if summary is None else _records(summary.table),
        "failed": [{"job": row.job, "status": row.status, "error": row.error} for row in failed_rows],
    }  # fmt: skip
    rehearsals = {row.machine["rehearsal"] for row in rows if row.started >= started_at and "rehearsal" in row.machine}
    rehearsal_lines = [f"Warm-up (compilation and imports before the jobs): {rehearsal}." for rehearsal in rehearsals]
    text = "\n".join(
        [
            *_summary_lines(summary, suite),
            *_failure_lines(rows),
            *rehearsal_lines,
            *map(one_line, _closing_lines(values, suite)),
        ]
    )
    return Outcome(facts, text, status=int(any(row.status != "not run" for row in failed_rows)))


def _report(folder: str, rows: Sequence[Any], values: argparse.Namespace) -> None:
    """Write the HTML report if one is requested and any job has a result."""
    from deepforecast.benchmark.report import write_report
    from deepforecast.cli.streams import print_note

    if values.report is None:
        return
    if any(row.metrics for row in rows):
        write_report(folder, values.report, metric=values.metric)
    else:
        print_note("no report was written because no job has a result")
        values.report = None


def _summary_lines(summary: Any, suite: Any) -> list[str]:
    """The table of models with rank, skill, wins and, for up to six tasks, the metric of each task."""
    from deepforecast.cli.table import format_number, format_table
    from deepforecast.errors import pluralize

    if summary is None:
        return []
    table = summary.table
    columns = {"model": list(table["model"])}
    for name in ("rank", "skill", "wins"):
        if table[name].notna().any():
            columns[name] = [format_number(float(value), 3) for value in table[name]]
    if len(summary.tasks) <= 6:
        model_positions = {name: position for position, name in enumerate(summary.models)}
        for position, task in enumerate(summary.tasks):
            columns[task] = [format_number(float(summary.values[model_positions[name], position])) for name in table["model"]]
    columns["seconds"] = [format_number(float(value), 3) for value in table["fit_seconds"] + table["predict_seconds"]]
    columns["MB"] = [format_number(float(value), 3) for value in table["peak_mb"]]
    columns["failed"] = [str(value) for value in table["failed"]]
    tasks = pluralize(len(summary.tasks), "task")
    caption = f"{summary.metric} of suite {suite.suite}; skill and wins over {tasks}, relative to {suite.reference}"
    return [*format_table(columns), caption]


def _failure_lines(rows: Sequence[Any]) -> list[str]:
    """A line for each of the first ten failures, after an empty line; nothing if no job failed."""
    from deepforecast.benchmark.summary import group_failures
    from deepforecast.cli.streams import one_line
    from deepforecast.errors import format_value

    failures = group_failures(rows)
    lines = [one_line(f"{row.status}: {job} ({format_value(row.error, 160)})") for job, row in failures[:10]]
    omitted_line = [f"... and {len(failures) - 10} more"] if len(failures) > 10 else []
    return ["", *lines, *omitted_line] if failures else []


def _closing_lines(values: argparse.Namespace, suite: Any) -> list[str]:
    cut = [f"Subset: {'; '.join(suite.cut)}."] if suite.cut else []
    paths = [path for path in (values.output, values.report) if path is not None]
    return [*cut, f"Written: {', '.join(paths)}."] if paths else cut


def _records(table: Any) -> list[Mapping[str, Any]]:
    from deepforecast.cli.json_output import to_records

    return list(to_records(table))


def _audit(suite: Any, values: argparse.Namespace) -> Outcome:
    """Audit the models of the suite for leakage; status 1 if a leak was found."""
    from dataclasses import asdict

    from deepforecast.benchmark.leak_audit import N_SERIES, audit_suite
    from deepforecast.cli.streams import one_line
    from deepforecast.cli.table import format_table
    from deepforecast.errors import pluralize

    findings = audit_suite(suite, series=values.series or N_SERIES)
    leaks = [finding for finding in findings if finding.verdict == "leak"]
    columns = {name: [getattr(finding, name) for finding in findings] for name in ("task", "model", "verdict", "message")}
    failed = sum(finding.verdict == "failed" for finding in findings)
    caption = f"{pluralize(len(findings), 'audit')}: {pluralize(len(leaks), 'leak')}, {failed} failed"
    text = "\n".join([*format_table(columns, left_aligned=list(columns)), one_line(caption)])
    return Outcome({"audit": [asdict(finding) for finding in findings]}, text, status=int(bool(leaks)))
