"""Tune the hyperparameters of one or several models on one data file by rolling cross-validation.

With --storage, repeating the command resumes the study, also in parallel from other shells or
machines; --n-trials is the total.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import add_data, add_output, add_static, parse_frequency
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser, parse_number
from deepforecast.errors import ParameterError, format_value, pluralize

USAGE = "DATA --model MODEL --horizon STEPS --n-trials N [options]"
EPILOG = """\
a search space is a YAML file with the choices or the range of each parameter
  hidden_size: {low: 16, high: 128, log: true}
  n_layers: [1, 2]
for several models, the same below the name of each model

examples:
  deepforecast tune sales.csv --model lstm --horizon 24 --n-trials 50 --storage study.log --n-jobs 2
  deepforecast tune sales.csv --model LightGBM LinearModel --horizon 14 --n-trials 40 --holdout 1 --save model.dfc"""
MAX_SPACE_BYTES = 1_000_000  # bytes of a space file
EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command."""
    add_data(parser)
    add_static(parser)
    parser.add_argument(
        "--model", "--models", dest="models", metavar="MODEL", nargs="+", action="extend", required=True,
        help="models, each as Name, Name:parameter=value,... or Name(parameter=value); set parameters are not tuned",
    )  # fmt: skip
    parser.add_argument(
        "--horizon", type=int, required=True, metavar="STEPS", help="number of steps to forecast from each cutoff"
    )
    parser.add_argument(
        "--n-trials", type=int, required=True, metavar="N", help="total number of trials, including earlier ones"
    )
    parser.add_argument("--timeout", type=parse_number, metavar="SECONDS", help="time limit of the search")
    parser.add_argument(
        "--metric", nargs="+", action="extend", metavar="NAME", help="objectives, one or several, e.g. mase seconds (mase)"
    )
    space = parser.add_argument("--space", metavar="FILE", help="YAML file of the search space (default: the declared ranges)")
    storage = _add_study_arguments(parser)
    _add_window_arguments(parser)
    plot = parser.add_argument("--plot", metavar="FILE", help="plot the optimization history to an .html file")
    save = parser.add_argument(
        "--save",
        metavar="FILE",
        help="fit the best model to all data and save it; an existing model file is replaced, any other file is not",
    )
    parser.add_inputs(space)
    parser.add_targets(storage, plot, save)
    add_output(parser, "the trials")


def _add_study_arguments(parser: Parser) -> argparse.Action:
    """Add the options of the study; returns the one of its storage."""
    from deepforecast.tuning.study import DEFAULT_TUNING_OPTIONS, PRUNERS, SAMPLERS

    study = parser.add_argument_group("study")
    storage_help = "journal file (fastest), SQLite file (.db), or database URL"
    storage = study.add_argument("--storage", metavar="STORAGE", help=storage_help)
    study.add_argument("--study-name", metavar="NAME", help="name of the study in the storage (default: models and horizon)")
    study.add_argument("--n-jobs", type=int, default=1, metavar="N", help="number of parallel processes (1)")
    study.add_argument("--sampler", choices=SAMPLERS, default=DEFAULT_TUNING_OPTIONS.sampler, help="Optuna sampler (tpe)")
    study.add_argument(
        "--pruner",
        choices=(*PRUNERS, "none"),
        default=DEFAULT_TUNING_OPTIONS.pruner,
        help="Optuna pruner, which stops trials early (median)",
    )
    study.add_argument(
        "--trial-timeout", type=parse_number, metavar="SECONDS", help="time limit of one trial (default: 20 times the first)"
    )
    study.add_argument("--seed", type=int, default=0, metavar="N", help="random seed of the sampler (0)")
    study.add_argument("--seeds", type=int, default=1, metavar="N", help="number of random seeds per configuration (1)")
    study.add_argument(
        "--separate-studies", action="store_true", help="use a separate study per model, with an equal share of the trials"
    )
    return storage


def _add_window_arguments(parser: Parser) -> None:
    """Add the options of the windows."""
    from deepforecast.tuning.study import DEFAULT_TUNING_OPTIONS

    windows = parser.add_argument_group("windows")
    windows.add_argument(
        "--n-windows", type=int, metavar="N", default=DEFAULT_TUNING_OPTIONS.n_windows, help="number of windows (3)"
    )
    windows.add_argument(
        "--holdout", type=int, metavar="N", default=0, help="number of final windows held out from the search (0)"
    )
    windows.add_argument("--refit", default="auto", metavar="WHEN", help="when to refit: auto, true, false, or every N windows")


def run(values: argparse.Namespace) -> Outcome:
    """Tune models."""
    from deepforecast import tune
    from deepforecast.cli.data_files import read_inputs
    from deepforecast.cli.json_output import to_records
    from deepforecast.cli.model_names import build_model
    from deepforecast.cli.output_files import check_frame_target, check_model_target, check_target
    from deepforecast.plotting.backends import need_plotly

    check_frame_target(values.output)
    check_target(values.plot, ".html")
    if values.plot is not None:
        need_plotly("--plot")  # before the search, not after it
    if values.save is not None:
        check_model_target(values.save)
    models = [build_model(text) for text in values.models]
    options = _tuning_options(values)
    inputs, static = read_inputs(values)
    study_result = tune(
        models if len(models) > 1 else models[0], inputs.frame, horizon=values.horizon, n_trials=values.n_trials,
        timeout=values.timeout, metric=values.metric, storage=values.storage, study_name=values.study_name,
        freq=parse_frequency(values.freq), columns=inputs.roles, static=static, options=options,
    )  # fmt: skip
    table = study_result.trials
    written = _write(study_result, values)
    if values.save is not None:
        _fit_and_save(study_result.best_model, inputs, static, values)
        written.append(values.save)
    facts: dict[str, Any] = {
        "best": {
            "trial": study_result.best_trial.number,
            "model": repr(study_result.best_model),
            "params": study_result.best_params,
            study_result.objectives[0]: study_result.best_value,
        },
        "trials": to_records(table),
        "states": table["state"].value_counts().to_dict(),
        "written": written,
    }
    if study_result.holdout is not None:
        facts["holdout"] = to_records(study_result.holdout)
    return _outcome(study_result, facts, values)


def _write(study_result: Any, values: argparse.Namespace) -> list[str]:
    """Write the requested plot and trials; return their paths."""
    from deepforecast.cli.output_files import write_bytes, write_frame

    if values.plot is not None:
        write_bytes(values.plot, study_result.plot().to_html(include_plotlyjs=True).encode())
    if values.output not in (None, "-"):
        write_frame(study_result.trials, values)
    return [path for path in (values.plot, values.output) if path not in (None, "-")]


def _fit_and_save(model: Any, inputs: Any, static: Any, values: argparse.Namespace) -> None:
    from deepforecast.cli.output_files import save_model

    model.fit(inputs.frame, freq=parse_frequency(values.freq), columns=inputs.roles, static=static)
    save_model(model, values.save)


def read_space(path: str) -> Any:
    """Read a search space from a YAML file of plain values."""
    from deepforecast.benchmark.yaml_parsing import parse_mapping

    with open(path, "rb") as file:
        text = file.read(MAX_SPACE_BYTES + 1)
    if len(text) > MAX_SPACE_BYTES or (b"&" in text.replace(b"&&", b"") and b"*" in text):
        raise ParameterError(
            f"--space must be a YAML file of at most 1 MB without references (& and *), got {format_value(path)}.",
            hint="Pass another file.",
        )
    mapping = parse_mapping(text.decode(errors="replace"), format_value(path), "`name: [...]` or `name: {low: 1, high: 9}`")
    return _convert_numbers(dict(mapping))


def _convert_numbers(node: Any) -> Any:
    """Convert text such as 1e-4, which YAML 1.1 does not take for a number."""
    if isinstance(node, dict):
        return {name: _convert_numbers(value) for name, value in node.items()}
    if isinstance(node, list):
        return [_convert_numbers(value) for value in node]
    return float(node) if isinstance(node, str) and EXPONENT.fullmatch(node) else node


def _tuning_options(values: argparse.Namespace) -> Any:
    """The `TuningOptions` of the command-line options."""
    from deepforecast.cli.backtest_options import parse_refit
    from deepforecast.tuning.study import TuningOptions

    return TuningOptions(
        space=None if values.space is None else read_space(values.space),
        n_windows=values.n_windows,
        holdout=values.holdout,
        refit=parse_refit(values.refit),
        n_seeds=values.seeds,
        sampler=values.sampler,
        pruner=None if values.pruner == "none" else values.pruner,
        seed=values.seed,
        n_jobs=values.n_jobs,
        separate_studies=values.separate_studies,
        trial_timeout="auto" if values.trial_timeout is None else values.trial_timeout,
        progress=False if values.json else None,
    )


def _outcome(study_result: Any, facts: dict[str, Any], values: argparse.Namespace) -> Outcome:
    """The five best trials and the best model as text, or on stderr if the table of trials goes to
    standard output."""
    from deepforecast.cli.output_files import csv_bytes
    from deepforecast.cli.streams import one_line, print_notes
    from deepforecast.cli.table import format_frame, format_number

    metric = study_result.objectives[0]
    states = ", ".join(f"{n_trials} {state}" for state, n_trials in facts["states"].items())
    best_trials = study_result.trials[study_result.trials["state"] == "complete"].sort_values(metric).head(5)
    hidden_columns = ("reason", "copy_of", "attempt", "state", "steps")
    shown_columns = [name for name in best_trials if name not in hidden_columns and best_trials[name].notna().any()]
    lines = [
        f"{pluralize(len(study_result.trials), 'trial')} ({states}); the best by {metric}:",
        format_frame(best_trials[shown_columns], max_rows=5),
        one_line(
            f"Best: {metric} {format_number(study_result.best_value)} in trial "
            f"{study_result.best_trial.number}, {study_result.best_model!r}"
        ),
    ]
    if study_result.holdout is not None:
        lines += ["Held-out windows:", format_frame(study_result.holdout.drop(columns="error"))]
    if facts["written"]:
        lines.append(one_line(f"Written: {', '.join(facts['written'])}."))
    text = "\n".join(lines)
    if values.output == "-":
        print_notes(text.splitlines())
        return Outcome(facts, data=csv_bytes(study_result.trials, values.spreadsheet_safe))
    return Outcome(facts, text)
