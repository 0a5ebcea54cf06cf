"""Search for the hyperparameters of a model, or of several, on one data file by rolling cross-validation.

With --storage the same line goes on where it was, and joins in from another shell or machine; --trials counts all of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import add_data, add_output, add_static, frequency_of
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser, number
from deepforecast.errors import ParameterError, format_value, pluralize

USAGE = "DATA --model MODEL --horizon STEPS --trials N [options]"
EPILOG = """\
a space is a YAML file: of each parameter its choices, or where it begins and ends
  hidden_size: {low: 16, high: 128, log: true}
  n_layers: [1, 2]
of several models the same under the name of each

examples:
  deepforecast tune sales.csv --model lstm --horizon 24 --trials 50 --storage study.log --jobs 2
  deepforecast tune sales.csv --model LightGBM LinearModel --horizon 14 --trials 40 --holdout 1 --save model.dfc"""
LARGEST = 1_000_000  # bytes of a space file
EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """The options of the command."""
    from deepforecast.tuning.study import PLAIN, PRUNERS, SAMPLERS

    add_data(parser)
    add_static(parser)
    parser.add_argument(
        "--model", "--models", dest="models", metavar="MODEL", nargs="+", action="extend", required=True,
        help="Name, Name:parameter=value,... or Name(parameter=value); what is set stays; several are searched as one",
    )  # fmt: skip
    parser.add_argument("--horizon", type=int, required=True, metavar="STEPS", help="steps to forecast at every cutoff")
    parser.add_argument("--trials", type=int, required=True, metavar="N", help="trials of the study, earlier ones included")
    parser.add_argument("--timeout", type=number, metavar="SECONDS", help="when to end, with what there is")
    parser.add_argument("--metric", nargs="+", action="extend", metavar="NAME", help="e.g. mase; several, also seconds (mase)")
    space = parser.add_argument(
        "--space", metavar="FILE", help="YAML file of what is searched, in place of the declared ranges"
    )
    study = parser.add_argument_group("the study")
    places = "journal file (the fastest), .db for SQLite, or the URL of a database"
    storage = study.add_argument("--storage", metavar="PLACE", help=places)
    study.add_argument("--study-name", metavar="NAME", help="which study of the storage; models and horizon if not given")
    study.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time (1)")
    study.add_argument("--sampler", choices=SAMPLERS, default=PLAIN.sampler, help="how configurations are drawn (tpe)")
    study.add_argument("--pruner", choices=(*PRUNERS, "none"), default=PLAIN.pruner, help="what ends a trial early (median)")
    study.add_argument("--trial-timeout", type=number, metavar="SECONDS", help="of one trial; 20 times the first if not given")
    study.add_argument("--seed", type=int, default=0, metavar="N", help="of the sampler (0)")
    study.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds that each configuration is tried with (1)")
    study.add_argument("--apart", action="store_true", help="a study for each model, with an equal share of the trials")
    windows = parser.add_argument_group("windows")
    windows.add_argument("--windows", type=int, metavar="N", default=PLAIN.n_windows, help="stretches that are forecast (3)")
    windows.add_argument("--holdout", type=int, metavar="N", default=0, help="last windows that are not searched on (0)")
    windows.add_argument("--refit", default="auto", metavar="WHEN", help="auto, true, false, or every N windows")
    plot = parser.add_argument("--plot", metavar="FILE", help="draw the history: .html")
    save = parser.add_argument(
        "--save",
        metavar="FILE",
        help="fit the best model to all of the data and save it; a model file that exists is replaced, any other file is not",
    )
    parser.reads(space)
    parser.writes(storage, plot, save)
    add_output(parser, "the trials")


def run(values: argparse.Namespace) -> Outcome:
    """Read, search, tell."""
    from deepforecast import tune
    from deepforecast.cli.model_names import build
    from deepforecast.cli.plain import records
    from deepforecast.cli.reading import read_all
    from deepforecast.cli.writing import check_frame_target, check_model_target, check_target
    from deepforecast.plotting.backends import need_plotly

    check_frame_target(values.output)
    check_target(values.plot, ".html")
    if values.plot is not None:
        need_plotly("--plot")  # before the search, not after it
    if values.save is not None:
        check_model_target(values.save)
    models = [build(text) for text in values.models]
    options = _options(values)
    data, static = read_all(values)
    found = tune(
        models if len(models) > 1 else models[0], data.frame, horizon=values.horizon, n_trials=values.trials,
        timeout=values.timeout, metric=values.metric, storage=values.storage, study_name=values.study_name,
        freq=frequency_of(values.freq), columns=data.roles, static=static, options=options,
    )  # fmt: skip
    table, written = found.trials, _write(found, values)
    if values.save is not None:
        _fit_and_save(found.best_model, data, static, values)
        written.append(values.save)
    facts: dict[str, Any] = {
        "best": {"trial": found.best_trial.number, "model": repr(found.best_model), "params": found.best_params,
                 found.objectives[0]: found.best_value},
        "trials": records(table), "states": table["state"].value_counts().to_dict(), "written": written,
    }  # fmt: skip
    if found.holdout is not None:
        facts["holdout"] = records(found.holdout)
    return _outcome(found, facts, values)


def _write(result: Any, values: argparse.Namespace) -> list[str]:
    """The plot and the trials where they are wanted; the paths written."""
    from deepforecast.cli.writing import write_bytes, write_frame

    if values.plot is not None:
        write_bytes(values.plot, result.plot().to_html(include_plotlyjs=True).encode())
    if values.output not in (None, "-"):
        write_frame(result.trials, values)
    return [path for path in (values.plot, values.output) if path not in (None, "-")]


def _fit_and_save(model: Any, data: Any, static: Any, values: argparse.Namespace) -> None:
    """`--save FILE`."""
    from deepforecast.cli.writing import save_model

    model.fit(data.frame, freq=frequency_of(values.freq), columns=data.roles, static=static)
    save_model(model, values.save)


def space_of(path: str) -> Any:
    """The ranges of a YAML file; plain values only."""
    from deepforecast.benchmark.reading import text_to_mapping

    with open(path, "rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST or (b"&" in text.replace(b"&&", b"") and b"*" in text):
        raise ParameterError(f"A space is a small YAML file without references; {format_value(path)} is not.")
    found = text_to_mapping(text.decode(errors="replace"), format_value(path), "`name: [...]` or `name: {low: 1, high: 9}`")
    return _numbers(dict(found))


def _numbers(found: Any) -> Any:
    """YAML 1.1 takes 1e-4 for a text, as it has no point: a number is meant."""
    if isinstance(found, dict):
        return {name: _numbers(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_numbers(value) for value in found]
    return float(found) if isinstance(found, str) and EXPONENT.fullmatch(found) else found


def _options(values: argparse.Namespace) -> Any:
    from deepforecast.cli.backtesting import refit_of
    from deepforecast.tuning.study import TuningOptions

    return TuningOptions(
        space=None if values.space is None else space_of(values.space), n_windows=values.windows, holdout=values.holdout,
        refit=refit_of(values.refit), n_seeds=values.seeds, sampler=values.sampler,
        pruner=None if values.pruner == "none" else values.pruner, seed=values.seed, n_jobs=values.jobs, separate_studies=values.apart,
        trial_timeout="auto" if values.trial_timeout is None else values.trial_timeout,
        progress=False if values.json else None,
    )  # fmt: skip


def _outcome(found: Any, facts: dict[str, Any], values: argparse.Namespace) -> Outcome:
    from deepforecast.cli.streams import notes, one_line
    from deepforecast.cli.table import frame_text, short
    from deepforecast.cli.writing import csv_bytes

    metric = found.objectives[0]
    states = ", ".join(f"{count} {state}" for state, count in facts["states"].items())
    best = found.trials[found.trials["state"] == "complete"].sort_values(metric).head(5)
    left_out = ("reason", "copy_of", "attempt", "state", "steps")
    kept = [name for name in best if name not in left_out and best[name].notna().any()]
    lines = [
        f"{pluralize(len(found.trials), 'trial')} ({states}); the best by {metric}:",
        frame_text(best[kept], most=5),
        one_line(f"Best: {metric} {short(found.best_value)} in trial {found.best_trial.number}, {found.best_model!r}"),
    ]
    if found.holdout is not None:
        lines += ["Where the search did not look:", frame_text(found.holdout.drop(columns="error"))]
    if facts["written"]:
        lines.append(one_line(f"Written: {', '.join(facts['written'])}."))
    text = "\n".join(lines)
    if values.output == "-":
        notes(text.splitlines())
        return Outcome(facts, data=csv_bytes(found.trials, values.spreadsheet_safe))
    return Outcome(facts, text)
