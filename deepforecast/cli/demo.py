"""See it work on data that ships with the library: check, compare, fit, save, forecast, plot, report.

Writes forecast.csv, forecast.png, model.dfc and report.html into the folder --output."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from deepforecast.cli import streams
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser

USAGE = "[options]"
EPILOG = "examples:\n  deepforecast demo --output first-look"
MODELS = ("SeasonalNaive", "Naive2", "Drift", "SeasonalMean", "Naive", "Mean")
LEVELS = [80, 95]
PANEL_SERIES, PANEL_DAYS = 12, 140
INDENT = "      "


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """The options of the command."""
    parser.add_argument("--output", metavar="DIR", default="demo-output", help="folder for the files (demo-output)")


def run(values: argparse.Namespace) -> Outcome:
    """The main job, step by step."""
    from deepforecast.cli.writing import check_target

    for name in ("forecast.csv", "forecast.png", "model.dfc", "report.html"):
        check_target(os.path.join(values.output, name))
    steps = Steps(aloud=not values.json, of=6)
    steps.head("deepforecast: check, compare, forecast and plot, on data that ship with the library")
    with steps.step("load two data sets"):
        airline, panel = _data(steps)
    with steps.step("check them: gaps, duplicates, frequency, missing values"):
        _check(steps, airline, panel)
    with steps.step("compare the baselines on 12 daily series, four weeks ahead of each of four cutoffs"):
        _compare_panel(steps, panel)
    with steps.step("compare them on the airline passengers, a year ahead of each of five cutoffs"):
        board = _compare_airline(steps, airline)
    with steps.step(f"fit the best, {board.best}, save it, load it, forecast 24 months"):
        forecast = _forecast(steps, board.best, airline, values.output)
    with steps.step("write the forecast, its plot and the report of the comparison"):
        files = _write(steps, board, airline, forecast, values.output)
    return _end(steps, files)


@dataclass
class Steps:
    """What is shown while it happens: a line a step with its seconds, and what it found below."""

    aloud: bool
    of: int
    done: list[dict[str, Any]] = field(default_factory=list)

    def head(self, text: str) -> None:
        """The first line."""
        self._say(streams.paint(text, "bold"))

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Run one step; what it `tell`s comes below its line."""
        number = len(self.done) + 1
        self._say(f"\n{streams.paint(f'[{number}/{self.of}]', 'green')} {what}")
        begin = time.perf_counter()
        yield
        took = time.perf_counter() - begin
        self.done.append({"step": what, "seconds": took})
        from deepforecast.cli.table import seconds

        self._say(INDENT + streams.paint(seconds(took), "dim"))

    def tell(self, text: str) -> None:
        """Lines below the step."""
        for line in text.splitlines():
            self._say(INDENT + line)

    def _say(self, text: str) -> None:
        if self.aloud:
            streams.say(text)
            stream = streams.output()
            if stream is not None:
                stream.flush()


def _data(steps: Steps) -> tuple[Any, Any]:
    from deepforecast import datasets

    airline, panel = datasets.load("air_passengers"), datasets.generate(PANEL_SERIES, PANEL_DAYS, seed=1)
    steps.tell(
        f"air_passengers: {len(airline)} months of airline passengers, {airline['ds'].min():%Y-%m} to "
        f"{airline['ds'].max():%Y-%m}"
    )
    steps.tell(f"a generated panel: {PANEL_SERIES} series of {PANEL_DAYS} days with trend and weekly season")
    return airline, panel


def _check(steps: Steps, airline: Any, panel: Any) -> None:
    from deepforecast import check

    for name, frame in (("air_passengers", airline), ("the panel", panel)):
        report = check(frame)
        found = ", ".join(f"{finding.what} ({finding.count})" for finding in report.findings) or "nothing to complain of"
        steps.tell(
            f"{name}: {report.summary['series']} series, {report.summary['rows']:,} rows, "
            f"freq {report.summary['freq']}: {found}"
        )


def _compare_panel(steps: Steps, panel: Any) -> None:
    board = _board(panel, horizon=28, n_windows=4)
    steps.tell(_table(board))


def _compare_airline(steps: Steps, airline: Any) -> Any:
    board = _board(airline, horizon=12, n_windows=5)
    steps.tell(_table(board))
    return board


def _board(frame: Any, horizon: int, n_windows: int) -> Any:
    from deepforecast import Backtest, compare
    from deepforecast.cli.model_names import build

    models = [build(name) for name in MODELS]
    quiet = Backtest(progress=False)
    return compare(models, frame, horizon=horizon, n_windows=n_windows, level=LEVELS, options=quiet)


def _table(board: Any) -> str:
    """The columns of the leaderboard that say most."""
    from deepforecast.cli.table import short, table_lines

    table = board.table
    names = [*board.metrics[:3], *(f"coverage-{level}" for level in LEVELS)]
    columns = {"model": list(map(str, table["model"])), "rank": [short(float(value), 3) for value in table["rank"]]}
    for name in names:
        if name in table:
            share = name.startswith("coverage")
            columns[name] = [f"{100 * value:.0f} %" if share else short(float(value)) for value in table[name]]
    return "\n".join(table_lines(columns))


def _forecast(steps: Steps, best: str, airline: Any, folder: str) -> Any:
    from deepforecast import load
    from deepforecast.cli.model_names import find
    from deepforecast.cli.table import frame_text, size

    path = os.path.join(folder, "model.dfc")
    find(best)(horizon=24).fit(airline).save(path)
    steps.tell(f"{streams.one_line(path)}: {size(os.path.getsize(path))}, no pickle, checked by SHA-256")
    forecast = load(path).predict(level=LEVELS)
    steps.tell(frame_text(forecast, most=6, hint="forecast.csv has all"))
    return forecast


def _write(steps: Steps, board: Any, airline: Any, forecast: Any, folder: str) -> list[str]:
    from deepforecast import plot
    from deepforecast.cli.table import size
    from deepforecast.cli.writing import csv_bytes, figure_bytes, write_bytes

    csv, png, html = (os.path.join(folder, name) for name in ("forecast.csv", "forecast.png", "report.html"))
    write_bytes(csv, csv_bytes(forecast))
    write_bytes(png, figure_bytes(plot(airline, forecast), png))
    board.report(html)
    for path in (csv, png, html):
        steps.tell(f"{streams.one_line(path)} ({size(os.path.getsize(path))})")
    return [csv, png, html]


def _end(steps: Steps, files: list[str]) -> Outcome:
    from deepforecast.cli.table import seconds

    total = sum(step["seconds"] for step in steps.done)
    steps.head(
        f"\nDone in {seconds(total)}. Look at {streams.one_line(files[1])} and open {streams.one_line(files[2])} in a browser."
    )
    steps.tell("Next: deepforecast compare YOUR.csv --horizon 14 --level 80 95 --report report.html")
    return Outcome({"steps": steps.done, "files": files, "seconds": total})
