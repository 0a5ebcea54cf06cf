"""What `compare` and `cross-validate` share: their options, and what the functions of these names are given."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import add_data, add_levels, add_static, parse_frequency
from deepforecast.cli.parser import Parser
from deepforecast.errors import ParameterError


def add_backtest(parser: Parser, *, models_required: bool) -> None:
    """Data, models, windows, intervals and metrics."""
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.params import declared_params

    add_data(parser)
    add_static(parser)
    parser.add_argument(
        "--model", "--models", dest="models", metavar="MODEL", nargs="+", action="extend", required=models_required,
        help="Name, Name:parameter=value,... or Name(parameter=value); several, or the option several times"
        + ("" if models_required else "; all baselines if not given"),
    )  # fmt: skip
    missing = declared_params(Forecaster)["missing"]
    parser.add_argument(
        "--missing", choices=missing.choices, default="auto",
        help="what models do with missing values and gaps, inside each window, where their own parameters do not say (auto)",
    )  # fmt: skip
    _add_windows(parser)
    add_levels(parser)
    parser.add_argument(
        "--metrics", nargs="+", action="extend", metavar="NAME",
        help="e.g. mase smape rmse coverage; a name that is not known lists all",
    )  # fmt: skip
    parser.add_argument(
        "--season-length", type=int, metavar="STEPS", help="what mase and rmsse are scaled by; follows from the frequency"
    )


def parse_backtest(values: argparse.Namespace, models: Sequence[str]) -> dict[str, Any]:
    """What was asked for, as both functions take it; `models` as they are named on a command line."""
    from deepforecast.cli.data_files import read_inputs
    from deepforecast.cli.model_names import build_model

    for name in values.metrics or ():
        _check_metric(name)
    candidates = [_with_missing(build_model(text), values.missing) for text in models]
    inputs, static = read_inputs(values)
    _require_horizon(values, candidates)
    return {
        "models": candidates, "frame": inputs.frame, "horizon": values.horizon, "n_windows": values.windows,
        "refit": parse_refit(values.refit), "level": values.level, "freq": parse_frequency(values.freq), "columns": inputs.roles,
        "static": static, "options": _backtest_options(values),
    }  # fmt: skip


def parse_refit(text: str) -> Any:
    """`--refit`: a word or a number of windows; anything else is left for the library to refuse."""
    return {"true": True, "false": False}.get(text.lower(), int(text) if text.isdecimal() else text.lower())


def _add_windows(parser: Parser) -> None:
    """Rolling windows."""
    from deepforecast.evaluation.backtesting import ALIGNMENTS

    parser.add_argument("--horizon", type=int, metavar="STEPS", help="steps to forecast at every cutoff")
    windows = parser.add_argument_group("windows")
    windows.add_argument("--windows", type=int, metavar="N", default=3, help="how many stretches of the past are forecast (3)")
    windows.add_argument(
        "--refit",
        default="auto",
        metavar="WHEN",
        help="auto (local models every window, global ones once), true, false, or every N windows",
    )
    windows.add_argument(
        "--gap", type=int, default=0, metavar="ROWS", help="rows left out between a cutoff and the first step (0)"
    )
    windows.add_argument(
        "--train-size", type=int, metavar="ROWS", help="number of rows per training window; default: all rows before the cutoff"
    )
    windows.add_argument(
        "--align",
        choices=ALIGNMENTS,
        default="auto",
        help="cutoffs counted back from the end of each series, or from the latest end of all (calendar)",
    )
    windows.add_argument("--n-jobs", type=int, default=1, metavar="N", help="number of processes (default 1)")
    windows.add_argument("--seed", type=int, metavar="N", help="given to every model that has one")


def _backtest_options(values: argparse.Namespace) -> Any:
    """The rarer options; no progress bar among machine-readable output."""
    from deepforecast import BacktestOptions

    progress = False if values.json else None
    return BacktestOptions(values.gap, values.train_size, values.align, values.n_jobs, values.seed, progress)


def _with_missing(model: Any, missing: str) -> Any:
    """The model with what is to be done with missing values, if it does not say so itself."""
    return model.clone(missing=missing) if model.missing_method == "auto" else model


def _require_horizon(values: argparse.Namespace, models: Sequence[Any]) -> None:
    """Refuse in the words of a command line what the library would refuse in those of Python."""
    if values.horizon is None and any(model.horizon is None for model in models):
        raise ParameterError("A backtest has a horizon, the same for all models. Say --horizon STEPS.")


def _check_metric(name: str) -> None:
    """Refuse an unknown metric before the models run."""
    from deepforecast.evaluation.metrics import get

    get(name)
