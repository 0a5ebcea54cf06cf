"""See it work on data that ships with the library: check, compare, tune, see attention, fit, save, forecast, plot, report.

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
PANEL_SERIES, PANEL_DAYS = 12, 280
TRIALS = 20
INDENT = "      "


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """The options of the command."""
    parser.add_argument("--output", metavar="DIR", default="demo-output", help="folder for the files (demo-output)")


def run(values: argparse.Namespace) -> Outcome:
    """The main job, step by step."""
    from deepforecast.cli.writing import check_target

    for name in ("attention.png", "forecast.csv", "forecast.png", "model.dfc", "report.html"):
        check_target(os.path.join(values.output, name), new_folder=True)
    steps = Steps(aloud=not values.json, of=8)
    steps.head("deepforecast: check, compare, tune, explain, forecast and plot, on data that ship with it")
    with steps.step("load two data sets"):
        airline, panel = _data(steps)
    with steps.step("check them: gaps, duplicates, frequency, missing values"):
        _check(steps, airline, panel)
    with steps.step("compare four kinds of model on the panel: 14 days ahead, 4 cutoffs"):
        _compare_panel(steps, panel)
    with steps.step("compare baselines and classical models on the airline passengers: 12 months ahead, 5 cutoffs"):
        board = _compare_airline(steps, airline)
    with steps.step(f"tune a regression on them: {TRIALS} trials, the last 12 months held out"):
        _tune(steps, airline)
    with steps.step("train a network with attention on the panel, and see where it looks"):
        picture = _attention(steps, panel, values.output)
    best = _best(board)
    with steps.step(f"fit {best}, save it, load it, forecast 24 months"):
        forecast = _forecast(steps, best, airline, values.output)
    with steps.step("write the forecast, its plot and the report of the comparison"):
        files = _write(steps, board, airline, forecast, values.output)
    return _end(steps, [*files, picture])


@dataclass
class Steps:
    """What is shown while it happens: a line a step with its seconds, and what it found below."""

    aloud: bool
    of: int
    done: list[dict[str, Any]] = field(default_factory=list)

    def head(self, text: str) -> None:
        """A line that stands out."""
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
    steps.tell(_table(_board(PANEL_MODELS, panel, horizon=14, n_windows=4)))


def _compare_airline(steps: Steps, airline: Any) -> Any:
    board = _board(AIRLINE_MODELS, airline, horizon=12, n_windows=5)
    steps.tell(_table(board))
    steps.tell("coverage: how much of what came lay inside the 80 % and the 95 % interval;")
    steps.tell("Calibrated is Naive2 with conformal intervals, made of its own past errors")
    return board


def _best(board: Any) -> str:
    """The best model; of several with the same points, that whose intervals keep their promise best."""
    table, metric = board.table, board.metrics[0]
    equal = table[table[metric] == table[metric].min()]
    return str(equal.loc[(equal["coverage-80"] - 0.8).abs().idxmin(), "model"])


def _board(names: Sequence[str], frame: Any, horizon: int, n_windows: int) -> Any:
    from deepforecast import BacktestOptions, compare
    from deepforecast.cli.model_names import build

    models = [build(name) for name in names]
    quiet = BacktestOptions(progress=False)
    return compare(models, frame, horizon=horizon, n_windows=n_windows, level=LEVELS, options=quiet)


def _table(board: Any) -> str:
    """The columns of the leaderboard that say most."""
    from deepforecast.cli.table import room, short, table_lines

    table = board.table
    names = [*board.metrics[:3], *(f"coverage-{level}" for level in LEVELS)]
    columns = {"model": list(map(str, table["model"])), "rank": [short(float(value), 3) for value in table["rank"]]}
    for name in names:
        if name in table:
            share = name.startswith("coverage")
            columns[name] = [f"{100 * value:.0f} %" if share else short(float(value)) for value in table[name]]
    return "\n".join(table_lines(columns, width=room() - len(INDENT)))


def _tune(steps: Steps, airline: Any) -> None:
    from deepforecast import LinearModel, TuningOptions, tune
    from deepforecast.cli.table import short

    space = {"transform": [None, "log"], "lags": ["auto", 12, 24], "lag_transforms": ["auto", None], "fourier": (0, 4)}
    found = tune(
        LinearModel(horizon=12), airline, n_trials=TRIALS, options=TuningOptions(space=space, holdout=1, progress=False)
    )
    table: Any = found.holdout
    usual, best = table.iloc[0], table.iloc[1]
    counts = found.trials["state"].value_counts().to_dict()
    steps.tell(
        f"{', '.join(f'{count} {state}' for state, count in counts.items())}; best: "
        + ", ".join(f"{name}={value!r}" for name, value in found.best_params.items())
    )
    for where, name in (("searched", "search"), ("held out", "held_out")):
        steps.tell(f"mase where {where}: {short(float(best[name]))}, of the model as it is {short(float(usual[name]))}")


def _attention(steps: Steps, panel: Any, folder: str) -> str:
    from deepforecast.cli.model_names import build
    from deepforecast.cli.table import size
    from deepforecast.cli.writing import figure_bytes, write_bytes
    from deepforecast.plotting import plot_attention

    looked = build(ATTENTION).fit(panel).explain()
    looked = looked[looked["kind"] == "cross"]
    back = (looked["cutoff"] - looked["lag"]).dt.days + looked["step"]
    most = looked["weight"].groupby(back).mean().nlargest(3)
    days = ", ".join(f"{day} ({100 * share:.0f} %)" for day, share in most.items())
    steps.tell(f"days before the one forecast that Seq2Seq looks at most: {days}")
    path = os.path.join(folder, "attention.png")
    write_bytes(path, figure_bytes(plot_attention(looked), path))
    steps.tell(f"{streams.one_line(path)} ({size(os.path.getsize(path))})")
    return path


def _forecast(steps: Steps, best: str, airline: Any, folder: str) -> Any:
    from deepforecast import load
    from deepforecast.cli.model_names import build
    from deepforecast.cli.table import frame_text, size

    path = os.path.join(folder, "model.dfc")
    models = {model.name: model for model in map(build, AIRLINE_MODELS)}
    models[best].clone(horizon=24).fit(airline).save(path)
    steps.tell(f"{streams.one_line(path)}: {size(os.path.getsize(path))}, no pickle, checked by SHA-256")
    forecast = load(path).predict(level=LEVELS)
    shown = forecast.drop(columns=["unique_id", *(name for name in forecast if str(name).endswith("-95"))])
    steps.tell(frame_text(shown, most=6, hint="forecast.csv has all"))
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
    plot, report, attention = map(streams.one_line, files[1:])
    steps.head(f"\nDone in {seconds(total)}.")
    steps.head(f"Look at {plot}, {attention} and, in a browser, {report}.")
    steps.head(f"Next: {_as_called()} compare YOUR.csv --models SeasonalNaive AutoETS --horizon 14 --level 80")
    return Outcome({"steps": steps.done, "files": files, "seconds": total})


def _as_called() -> str:
    """The command as this shell finds it: `make demo` runs it from an environment that is not active."""
    import shutil
    import sys

    found = shutil.which("deepforecast") or os.path.basename(sys.argv[0]) != "deepforecast"
    return "deepforecast" if found else streams.one_line(sys.argv[0])
