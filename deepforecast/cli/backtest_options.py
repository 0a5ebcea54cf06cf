"""Options of `compare` and `cross-validate`, and the arguments they are turned into."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import add_data, add_levels, add_static, parse_frequency
from deepforecast.cli.parser import Parser
from deepforecast.errors import ParameterError


def add_backtest(parser: Parser, *, models_required: bool) -> None:
    """Add the options for data, models, windows, intervals and metrics."""
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.params import declared_params

    add_data(parser)
    add_static(parser)
    parser.add_argument(
        "--model", "--models", dest="models", metavar="MODEL", nargs="+", action="extend", required=models_required,
        help="models, each as Name, Name:parameter=value,... or Name(parameter=value)"
        + ("" if models_required else " (default: all baselines)"),
    )  # fmt: skip
    missing = declared_params(Forecaster)["missing"]
    parser.add_argument(
        "--missing", choices=missing.choices, default="auto",
        help="treatment of missing values and gaps in each window, for models that do not set it (auto)",
    )  # fmt: skip
    on_failure = declared_params(Forecaster)["on_failure"]
    parser.add_argument(
        "--on-failure", choices=on_failure.choices, default="fallback",
        help="what happens to series that a model cannot fit: an error, a naive forecast, or they are left out (fallback)",
    )  # fmt: skip
    _add_windows(parser)
    add_levels(parser)
    parser.add_argument(
        "--metrics", nargs="+", action="extend", metavar="NAME",
        help="metrics, e.g. mase smape rmse coverage; an unknown name lists all",
    )  # fmt: skip
    parser.add_argument(
        "--season-length",
        type=int,
        metavar="STEPS",
        help="season length by which mase and rmsse are scaled (default: from the frequency)",
    )


def parse_backtest(values: argparse.Namespace, models: Sequence[str]) -> dict[str, Any]:
    """Return the keyword arguments of both functions; `models` are model names as on a command line."""
    from deepforecast.cli.data_files import read_inputs
    from deepforecast.cli.model_names import build_model

    for name in values.metrics or ():
        _check_metric(name)
    candidates = [_with_missing(build_model(text), values.missing).clone(on_failure=values.on_failure) for text in models]
    inputs, static = read_inputs(values)
    _require_horizon(values, candidates)
    return {
        "models": candidates,
        "frame": inputs.frame,
        "horizon": values.horizon,
        "n_windows": values.n_windows,
        "step_size": values.step_size,
        "refit": parse_refit(values.refit),
        "level": values.level,
        "freq": parse_frequency(values.freq),
        "columns": inputs.roles,
        "static": static,
        "gap": values.gap,
        "n_jobs": values.n_jobs,
        "options": _backtest_options(values),
    }


def parse_refit(text: str) -> Any:
    """Parse `--refit`, a word or a number of windows; `cross_validate` rejects anything else."""
    return {"true": True, "false": False}.get(text.lower(), int(text) if text.isdecimal() else text.lower())


def _add_windows(parser: Parser) -> None:
    """Add --horizon and the options of the windows of a backtest."""
    from deepforecast.evaluation.backtesting import ALIGNMENTS

    parser.add_argument("--horizon", type=int, metavar="STEPS", help="number of steps to forecast from each cutoff")
    windows = parser.add_argument_group("windows")
    windows.add_argument("--n-windows", type=int, metavar="N", default=3, help="number of windows, i.e. cutoffs (3)")
    windows.add_argument(
        "--step-size", type=int, metavar="ROWS", help="rows between consecutive cutoffs (default: the horizon)"
    )
    windows.add_argument(
        "--refit",
        default="auto",
        metavar="WHEN",
        help="when to refit: auto (local models in every window, global ones once), true, false, or every N windows",
    )
    windows.add_argument("--gap", type=int, default=0, metavar="ROWS", help="rows between the cutoff and the first step (0)")
    windows.add_argument(
        "--train-size",
        type=int,
        metavar="ROWS",
        help="number of rows per training window (default: all rows before the cutoff)",
    )
    windows.add_argument(
        "--align",
        choices=ALIGNMENTS,
        default="auto",
        help="cutoffs relative to the end of each series, or to the latest end (calendar)",
    )
    windows.add_argument("--n-jobs", type=int, default=1, metavar="N", help="number of processes (1)")
    windows.add_argument("--seed", type=int, metavar="N", help="random seed for models that have one")


def _backtest_options(values: argparse.Namespace) -> Any:
    """Return the other options; `--json` turns the progress bar off."""
    from deepforecast import BacktestOptions

    progress = False if values.json else None
    return BacktestOptions(values.train_size, values.align, values.seed, progress)


def _with_missing(model: Any, missing: str) -> Any:
    return model.clone(missing=missing) if model.missing_method == "auto" else model


def _require_horizon(values: argparse.Namespace, models: Sequence[Any]) -> None:
    """Raise if there is no horizon, naming the option."""
    if values.horizon is None and any(model.horizon is None for model in models):
        raise ParameterError("A backtest requires a horizon, which is the same for all models.", hint="Pass --horizon STEPS.")


def _check_metric(name: str) -> None:
    """Raise on an unknown metric before the models run."""
    from deepforecast.evaluation.metrics import get

    get(name)
