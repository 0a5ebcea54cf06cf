"""Run all steps on included data: check, compare, tune, plot attention weights, fit, save, forecast, plot, report.

Writes attention.png, forecast.csv, forecast.png, model.dfc and report.html into the folder --output."""

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
PANEL_MODELS = ("SeasonalNaive", "AutoETS", "LinearModel", "LSTM(batch_size=64, max_steps=100)")
CALIBRATED = "Conformal(Naive2(), alias='Calibrated')"
AIRLINE_MODELS = ("Naive", "Drift", "SeasonalNaive", "Naive2", "AutoETS", "AutoTheta", CALIBRATED)
ATTENTION = "Seq2Seq(horizon=14, input_size=28, hidden_size=32, batch_size=64, max_steps=100)"
LEVELS = [80, 95]
PANEL_SERIES = 12
PANEL_DAYS = 280
TRIALS = 20
INDENT = "      "


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--output", metavar="DIR", default="demo-output", help="folder of the files that are written (demo-output)"
    )


def run(values: argparse.Namespace) -> Outcome:
    """Run the steps of the demo."""
    from deepforecast.cli.output_files import check_target

    for name in ("attention.png", "forecast.csv", "forecast.png", "model.dfc", "report.html"):
        check_target(os.path.join(values.output, name), new_folder=True)
    steps = Steps(verbose=not values.json, n_steps=8)
    steps.print_heading("deepforecast: check, compare, tune, explain, forecast and plot, on included data")
    with steps.step("load two data sets"):
        airline, panel = _load_data(steps)
    with steps.step("check the data: gaps, duplicates, frequency, missing values"):
        _check(steps, airline, panel)
    with steps.step("compare four models on the panel: 14 days ahead, 4 cutoffs"):
        _compare_panel(steps, panel)
    with steps.step("compare baselines and classical models on airline passengers: 12 months, 5 cutoffs"):
        board = _compare_airline(steps, airline)
    with steps.step(f"tune a linear model on the airline passengers: {TRIALS} trials, the last 12 months held out"):
        _tune(steps, airline)
    with steps.step("train a network with attention on the panel, and plot its attention weights"):
        picture = _attention(steps, panel, values.output)
    best = _best_model(board)
    with steps.step(f"fit {best}, save it, load it, forecast 24 months"):
        forecast = _forecast(steps, best, airline, values.output)
    with steps.step("write the forecast, its plot and the report of the comparison"):
        files = _write(steps, board, airline, forecast, values.output)
    return _finish(steps, [*files, picture])


@dataclass
class Steps:
    """Progress output: a numbered line per step, its results and its duration."""

    verbose: bool
    n_steps: int
    completed: list[dict[str, Any]] = field(default_factory=list)

    def print_heading(self, text: str) -> None:
        """Print a line in bold."""
        self._print(streams.paint(text, "bold"))

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print the title of a step before and its duration after the block."""
        number = len(self.completed) + 1
        self._print(f"\n{streams.paint(f'[{number}/{self.n_steps}]', 'green')} {title}")
        started = time.perf_counter()
        yield
        elapsed = time.perf_counter() - started
        self.completed.append({"step": title, "seconds": elapsed})
        from deepforecast.cli.table import format_seconds

        self._print(INDENT + streams.paint(format_seconds(elapsed), "dim"))

    def print_lines(self, text: str) -> None:
        """Print indented lines."""
        for line in text.splitlines():
            self._print(INDENT + line)

    def _print(self, text: str) -> None:
        """Print a line at once, unless the output is JSON."""
        if self.verbose:
            streams.print_text(text)
            stream = streams.standard_output()
            if stream is not None:
                stream.flush()


def _load_data(steps: Steps) -> tuple[Any, Any]:
    """The monthly airline data and a generated daily panel."""
    from deepforecast import datasets

    airline = datasets.load("air_passengers")
    panel = datasets.generate(PANEL_SERIES, PANEL_DAYS, seed=1)
    steps.print_lines(
        f"air_passengers: {len(airline)} months of airline passengers, {airline['ds'].min():%Y-%m} to "
        f"{airline['ds'].max():%Y-%m}"
    )
    steps.print_lines(f"a generated panel: {PANEL_SERIES} series of {PANEL_DAYS} days with trend and weekly season")
    return airline, panel


def _check(steps: Steps, airline: Any, panel: Any) -> None:
    """Print the findings of `check` on both data sets."""
    from deepforecast import check

    for name, frame in (("air_passengers", airline), ("the panel", panel)):
        report = check(frame)
        summary = ", ".join(f"{finding.problem} ({finding.count})" for finding in report.findings) or "no problems"
        steps.print_lines(
            f"{name}: {report.summary['series']} series, {report.summary['rows']:,} rows, "
            f"freq {report.summary['freq']}: {summary}"
        )


def _compare_panel(steps: Steps, panel: Any) -> None:
    steps.print_lines(_table(_compare(PANEL_MODELS, panel, horizon=14, n_windows=4)))


def _compare_airline(steps: Steps, airline: Any) -> Any:
    """Compare AIRLINE_MODELS on the airline data, print the table and return the leaderboard."""
    board = _compare(AIRLINE_MODELS, airline, horizon=12, n_windows=5)
    steps.print_lines(_table(board))
    steps.print_lines("coverage: share of observations inside the 80 % and the 95 % interval;")
    steps.print_lines("Calibrated is Naive2 with conformal prediction intervals")
    return board


def _best_model(board: Any) -> str:
    """Return the best model; among ties, the one whose 80 % coverage is closest to nominal."""
    table = board.table
    metric = board.metrics[0]
    tied = table[table[metric] == table[metric].min()]
    return str(tied.loc[(tied["coverage-80"] - 0.8).abs().idxmin(), "model"])


def _compare(names: Sequence[str], frame: Any, horizon: int, n_windows: int) -> Any:
    """The leaderboard of the named models with intervals."""
    from deepforecast import BacktestOptions, compare
    from deepforecast.cli.model_names import build_model

    models = [build_model(name) for name in names]
    quiet = BacktestOptions(progress=False)
    return compare(models, frame, horizon=horizon, n_windows=n_windows, level=LEVELS, options=quiet)


def _table(board: Any) -> str:
    """The leaderboard as text: rank, the first three metrics and the coverage of the intervals."""
    from deepforecast.cli.table import format_number, format_table, terminal_width

    table = board.table
    names = [*board.metrics[:3], *(f"coverage-{level}" for level in LEVELS)]
    columns = {"model": list(map(str, table["model"])), "rank": [format_number(float(value), 3) for value in table["rank"]]}
    for name in names:
        if name in table:
            is_coverage = name.startswith("coverage")
            columns[name] = [f"{100 * value:.0f} %" if is_coverage else format_number(float(value)) for value in table[name]]
    return "\n".join(format_table(columns, width=terminal_width() - len(INDENT)))


def _tune(steps: Steps, airline: Any) -> None:
    """Tune a linear model and print its score in the search and on the holdout windows, next to the default's."""
    from deepforecast import LinearModel, TuningOptions, tune
    from deepforecast.cli.table import format_number

    space = {"transform": [None, "log"], "lags": ["auto", 12, 24], "lag_transforms": ["auto", None], "fourier": (0, 4)}
    study_result = tune(
        LinearModel(horizon=12), airline, n_trials=TRIALS, options=TuningOptions(space=space, holdout=1, progress=False)
    )
    table: Any = study_result.holdout
    default_row = table.iloc[0]
    best_row = table.iloc[1]
    counts = study_result.trials["state"].value_counts().to_dict()
    steps.print_lines(
        f"{', '.join(f'{n_trials} {state}' for state, n_trials in counts.items())}; best: "
        + ", ".join(f"{name}={value!r}" for name, value in study_result.best_params.items())
    )
    for label, name in (("search", "search"), ("held-out", "held_out")):
        steps.print_lines(
            f"mase on the {label} windows: tuned {format_number(float(best_row[name]))}, default "
            f"{format_number(float(default_row[name]))}"
        )


def _attention(steps: Steps, panel: Any, folder: str) -> str:
    """Fit a model with attention to the panel, print the largest weights by lag and return the path of their plot."""
    from deepforecast.cli.model_names import build_model
    from deepforecast.cli.output_files import figure_bytes, write_bytes
    from deepforecast.cli.table import format_size
    from deepforecast.plotting import plot_attention

    attention = build_model(ATTENTION).fit(panel).explain()
    attention = attention[attention["kind"] == "cross"]
    days_back = (attention["cutoff"] - attention["lag"]).dt.days + attention["step"]
    largest = attention["weight"].groupby(days_back).mean().nlargest(3)
    days = ", ".join(f"{day} ({100 * share:.0f} %)" for day, share in largest.items())
    steps.print_lines(f"largest attention weights, by days before the forecast: {days}")
    path = os.path.join(folder, "attention.png")
    write_bytes(path, figure_bytes(plot_attention(attention), path))
    steps.print_lines(f"{streams.one_line(path)} ({format_size(os.path.getsize(path))})")
    return path


def _forecast(steps: Steps, best: str, airline: Any, folder: str) -> Any:
    """Fit the best model, save it, load it again and return its forecast of 24 months."""
    from deepforecast import load
    from deepforecast.cli.model_names import build_model
    from deepforecast.cli.table import format_frame, format_size

    path = os.path.join(folder, "model.dfc")
    models = {model.name: model for model in map(build_model, AIRLINE_MODELS)}
    models[best].clone(horizon=24).fit(airline).save(path)
    steps.print_lines(f"{streams.one_line(path)}: {format_size(os.path.getsize(path))}, no pickle, checked by SHA-256")
    forecast = load(path).predict(level=LEVELS)
    shown = forecast.drop(columns=["unique_id", *(name for name in forecast if str(name).endswith("-95"))])
    steps.print_lines(format_frame(shown, max_rows=6, hint="all rows are in forecast.csv"))
    return forecast


def _write(steps: Steps, board: Any, airline: Any, forecast: Any, folder: str) -> list[str]:
    """Write the forecast, its plot and the report to `folder` and return their paths."""
    from deepforecast import plot
    from deepforecast.cli.output_files import csv_bytes, figure_bytes, write_bytes
    from deepforecast.cli.table import format_size

    csv, png, html = (os.path.join(folder, name) for name in ("forecast.csv", "forecast.png", "report.html"))
    write_bytes(csv, csv_bytes(forecast))
    write_bytes(png, figure_bytes(plot(airline, forecast), png))
    board.report(html)
    for path in (csv, png, html):
        steps.print_lines(f"{streams.one_line(path)} ({format_size(os.path.getsize(path))})")
    return [csv, png, html]


def _finish(steps: Steps, files: list[str]) -> Outcome:
    """Print the total time, the written files and a next command, and return the outcome."""
    from deepforecast.cli.table import format_seconds

    total_seconds = sum(step["seconds"] for step in steps.completed)
    plot, report, attention = map(streams.one_line, files[1:])
    steps.print_heading(f"\nDone in {format_seconds(total_seconds)}.")
    steps.print_heading(f"See {plot}, {attention} and, in a browser, {report}.")
    steps.print_heading(f"Next: {_command_name()} compare YOUR.csv --models SeasonalNaive AutoETS --horizon 14 --level 80")
    return Outcome({"steps": steps.completed, "files": files, "seconds": total_seconds})


def _command_name() -> str:
    """Return the command as this shell finds it; `make demo` runs in an inactive environment."""
    import shutil
    import sys

    is_on_path = shutil.which("deepforecast") or os.path.basename(sys.argv[0]) != "deepforecast"
    return "deepforecast" if is_on_path else streams.one_line(sys.argv[0])
