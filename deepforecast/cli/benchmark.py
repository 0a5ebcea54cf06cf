"""Run a suite of benchmarks: every model on every task, each job in a process of its own, a row a job.

SUITE is quick, which is included, or the path of a YAML file (the repository has more). Results go to the folder that --output
names, and nowhere else; the same command goes on where one was stopped. `audit SUITE` looks for forecasts that know the
future."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser, number

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

USAGE = "SUITE [options] | audit SUITE [options]"
EPILOG = """\
examples:
  deepforecast benchmark quick
  deepforecast benchmark quick --models SeasonalNaive AutoETS LSTM:max_steps=200 --output run
  deepforecast benchmark quick --tasks 'air*' --models Naive DLinear --seeds 0 --output run
  deepforecast benchmark mine.yaml --jobs 2 --output run --report run.html
  deepforecast benchmark audit quick --models Naive2 LightGBM"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """The options of the command."""
    suite = parser.add_argument(
        "words", metavar="SUITE", nargs="+", help="name or path of a suite; audit SUITE for the leak audit"
    )
    parser.reads(suite)
    parser.add_argument("--models", metavar="MODEL", nargs="+", help="these alone, as Name or Name:parameter=value,...")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="jobs side by side, each on one thread (default 1)")
    parser.add_argument("--output", metavar="FOLDER", help="keep rows, forecasts and scores there, so that a later run goes on")
    report = parser.add_argument("--report", metavar="FILE", help="write the run to one HTML page that opens offline")
    parser.writes(report)
    parser.add_argument("--peers", metavar="NAME", nargs="+", help="other libraries in the suite that run beside these models")
    parser.add_argument("--tasks", metavar="NAME", nargs="+", help="these alone; patterns as air* may be given")
    parser.add_argument("--seeds", metavar="N", nargs="+", type=int, help="instead of those of the suite")
    parser.add_argument("--series", metavar="N", type=int, help="at most so many series of each task, drawn at random")
    parser.add_argument("--windows", metavar="N", type=int, help="at most so many windows of each task, the last ones")
    parser.add_argument("--time-limit", metavar="SECONDS", type=number, help="for each job, instead of the suite's")
    parser.add_argument("--retry", action="store_true", help="run jobs again that failed or took too long")
    parser.add_argument("--metric", metavar="NAME", help="what the table is by (default: the first the suite asks for)")


def run(values: argparse.Namespace) -> Outcome:
    """Run or audit."""
    from deepforecast.benchmark.cutting import Cut, adjusted
    from deepforecast.benchmark.suite import load
    from deepforecast.cli.writing import check_target
    from deepforecast.errors import ParameterError, format_value

    check_target(values.report, ".html")
    audits = values.words[0] == "audit"
    names = values.words[audits:]
    if len(names) != 1:
        raise ParameterError(f"One suite is run at a time; got {format_value(' '.join(names) or 'none')}. See --help.")
    cut = Cut(
        models=None if values.models is None else [entry_of(text) for text in values.models],
        peers=values.peers,
        tasks=values.tasks,
        seeds=values.seeds,
        series=None if audits else values.series,
        windows=None if audits else values.windows,
        time_limit=values.time_limit,
    )
    suite = adjusted(load(names[0]), cut)
    _refuse_own_suite(names[0], values.output)
    return _audit(suite, values) if audits else _run(suite, values)


def _refuse_own_suite(name: str, output: str | None) -> None:
    """Refuse a folder where the record of the run would replace the user's own suite file."""
    from deepforecast.benchmark.rows import RESULTS, SUITE
    from deepforecast.benchmark.suite import find
    from deepforecast.errors import ParameterError, format_value

    if output is None or os.path.exists(os.path.join(output, RESULTS)):  # the suite file of an earlier run is ours
        return
    record = os.path.join(output, SUITE)
    if os.path.exists(record) and os.path.samefile(record, find(name)):
        raise ParameterError(
            f"--output must be a folder without the suite that is run: {format_value(record)} would be replaced. Pass another folder."
        )


def entry_of(text: str) -> dict[str, Any]:
    """A model as a suite names it.

    >>> entry_of("seasonal-naive:season_length=7,alias=Weekly")
    {'model': 'SeasonalNaive', 'parameters': {'season_length': 7}, 'alias': 'Weekly'}
    """
    from deepforecast.cli.model_names import build

    return _entry(build(text))


def _entry(model: Forecaster) -> dict[str, Any]:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.params import declared_params

    given: dict[str, Any] = {}
    for name, one in declared_params(type(model)).items():
        value = getattr(model, name)
        if name not in ("alias", "horizon") and (one.required or value is not one.default):
            given[name] = _entry(value) if isinstance(value, Forecaster) else value
    return {"model": type(model).__name__, "parameters": given, **({"alias": model.name} if model.alias else {})}


def _run(suite: Any, values: argparse.Namespace) -> Outcome:
    import tempfile
    from datetime import UTC, datetime

    from deepforecast.benchmark.engine import Run, run
    from deepforecast.benchmark.summary import check_metric, summarise
    from deepforecast.cli.streams import note, one_line

    if values.metric is not None:
        check_metric(suite, values.metric)
    options = Run(jobs=values.jobs, retry=values.retry, progress=False if values.json else None)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    if values.output is None:
        note("nothing of this run is kept; --output FOLDER keeps it")
        with tempfile.TemporaryDirectory(prefix="deepforecast-") as folder:
            rows = run(suite, folder, options=options)
            _report(folder, rows, values)
    else:
        try:
            rows = run(suite, values.output, options=options)
        except KeyboardInterrupt:
            note(f"interrupted; what is done stands in {values.output}, and the same command goes on from there")
            raise
        _report(values.output, rows, values)
    bad = [row for row in rows if row.status != "ok"]
    good = any(row.metrics for row in rows)
    summary = summarise(rows, metric=values.metric, reference=suite.reference) if good else None
    facts = {
        "suite": suite.suite, "cut": list(suite.cut), "output": values.output,
        "metric": None if summary is None else summary.metric,
        "leaderboard": [] if summary is None else _records(summary.table),
        "failed": [{"job": row.job, "status": row.status, "error": row.error} for row in bad],
    }  # fmt: skip
    before = {row.machine["rehearsal"] for row in rows if row.started >= began and "rehearsal" in row.machine}
    rehearsed = [f"Rehearsal, so that no job compiles or imports: {one}." for one in before]
    text = "\n".join([*_table(summary, suite), *_failures(rows), *rehearsed, *map(one_line, _kept(values, suite))])
    return Outcome(facts, text, status=int(any(row.status != "not run" for row in bad)))


def _report(folder: str, rows: Sequence[Any], values: argparse.Namespace) -> None:
    from deepforecast.benchmark.report import write_report
    from deepforecast.cli.streams import note

    if values.report is None:
        return
    if any(row.metrics for row in rows):
        write_report(folder, values.report, metric=values.metric)
    else:
        note("no report was written, as no job has a result")
        values.report = None


def _table(summary: Any, suite: Any) -> list[str]:
    from deepforecast.cli.table import short, table_lines
    from deepforecast.errors import pluralize

    if summary is None:
        return []
    table = summary.table
    columns = {"model": list(table["model"])}
    for name in ("rank", "skill", "wins"):
        if table[name].notna().any():
            columns[name] = [short(float(value), 3) for value in table[name]]
    if len(summary.tasks) <= 6:
        place = {name: at for at, name in enumerate(summary.models)}
        for at, task in enumerate(summary.tasks):
            columns[task] = [short(float(summary.values[place[name], at])) for name in table["model"]]
    columns["seconds"] = [short(float(one), 3) for one in table["fit_seconds"] + table["predict_seconds"]]
    columns["MB"] = [short(float(one), 3) for one in table["peak_mb"]]
    columns["failed"] = [str(one) for one in table["failed"]]
    tasks = pluralize(len(summary.tasks), "task")
    about = f"{summary.metric} of suite {suite.suite}; skill and wins over {tasks} against {suite.reference}"
    return [*table_lines(columns), about]


def _failures(rows: Sequence[Any]) -> list[str]:
    from deepforecast.benchmark.summary import fallen
    from deepforecast.cli.streams import one_line
    from deepforecast.errors import format_value

    bad = fallen(rows)
    lines = [one_line(f"{row.status}: {who} ({format_value(row.error, 160)})") for who, row in bad[:10]]
    more = [f"... and {len(bad) - 10} more"] if len(bad) > 10 else []
    return ["", *lines, *more] if bad else []


def _kept(values: argparse.Namespace, suite: Any) -> list[str]:
    cut = [f"Cut: {'; '.join(suite.cut)}."] if suite.cut else []
    written = [one for one in (values.output, values.report) if one is not None]
    return [*cut, f"Written: {', '.join(written)}."] if written else cut


def _records(table: Any) -> list[Mapping[str, Any]]:
    from deepforecast.cli.plain import records

    return list(records(table))


def _audit(suite: Any, values: argparse.Namespace) -> Outcome:
    from dataclasses import asdict

    from deepforecast.benchmark.audit import SERIES, audit
    from deepforecast.cli.streams import one_line
    from deepforecast.cli.table import table_lines
    from deepforecast.errors import pluralize

    found = audit(suite, series=values.series or SERIES)
    leaks = [one for one in found if one.verdict == "leak"]
    columns = {name: [getattr(one, name) for one in found] for name in ("task", "model", "verdict", "told")}
    failed = sum(one.verdict == "failed" for one in found)
    said = f"{pluralize(len(found), 'audit')}: {pluralize(len(leaks), 'leak')}, {failed} that failed"
    text = "\n".join([*table_lines(columns, left=list(columns)), one_line(said)])
    return Outcome({"audit": [asdict(one) for one in found]}, text, status=int(bool(leaks)))
