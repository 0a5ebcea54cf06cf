"""Forecasts of every model on small panels: arrays that refactoring must not change.

`make golden` compares two commits bit for bit. Names of cases and arrays are free text: a renamed
parameter changes `configurations.py`, never a name.

`python -m tests.golden.forecasts FILE.npz` writes the arrays of all cases.
`python -m tests.golden.forecasts --summary` writes `forecasts.json`, a few numbers of each case
that other machines reproduce to a tolerance (tests/test_golden.py).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import deepforecast
from tests.golden.configurations import CONFIGURATIONS, NET, RECURRENT

Arrays = dict[str, np.ndarray]
SUMMARY = Path(__file__).with_suffix(".json")
HORIZON, APPENDED, LEVELS = 3, 2, [50, 80]
NUMBERS = {"future": ["price"], "past": ["visits"], "static": ["size"]}
CATEGORIES = {"future": ["promotion"], "past": [], "static": ["region"]}

NETWORKS = (  # beginnings of names
    *("DLinear", "DeepAR", "GRU", "LSTM", "MLP", "NBEATS", "NHITS", "NLinear", "NeuralProphet", "RNN", "Seq2Seq"),
    *("PatchTST", "TCN", "TFT", "TiDE", "TimeXer", "Transformer", "DecoderOnly", "xLSTM", "Conformal network", "Regression by mlp"),
    *("backtest", "comparison", "search", "fine tuning"),
)
STATSMODELS = ("UnobservedComponents", "ETS by statsmodels", "ARIMA by statsmodels")
# Relative limits of the stored summary on another machine, measured with other instruction sets: a
# network of a few steps rounds in float32, and the optimisers of statsmodels stop somewhere else.
LIMIT, LIMIT_OF_NETWORKS, LIMIT_OF_STATSMODELS = 1e-6, 1e-4, 1e-3


class Data(NamedTuple):
    """A panel cut in three: history, observations to append, and the steps after them."""

    history: pd.DataFrame
    appended: pd.DataFrame
    ahead: pd.DataFrame
    freq: Any = None

    def future(self, columns: Mapping[str, list[str]], *, appended: bool) -> pd.DataFrame | None:
        """The future covariates of the steps after the history or the appended observations."""
        if not columns.get("future"):
            return None
        rows = self.ahead if appended else pd.concat([self.appended, self.ahead])
        steps = rows.sort_values(["unique_id", "ds"]).groupby("unique_id").head(HORIZON)
        return steps[["unique_id", "ds", *columns["future"]]].reset_index(drop=True)


@cache
def data(kind: str) -> Data:
    """A panel: daily, covariates (daily), missing, monthly, integer, counts or hourly."""
    starts: dict[str, tuple[Any, Any, int]] = {
        "monthly": ("2015-01-01", "MS", 12),
        "hourly": (pd.Timestamp("2024-03-28", tz="Europe/Berlin"), "h", 24),
        "integer": (5, 1, 4),
    }
    start, freq, season = starts.get(kind, ("2024-01-01", "D", 7))
    if kind == "monthly":
        lengths = [48, 41]
    else:
        lengths = [96] if kind == "hourly" else [66, 58, 61]
    parts = [series(i, n + APPENDED + HORIZON, start, freq, season) for i, n in enumerate(lengths)]
    frame = pd.concat(parts, ignore_index=True)
    if kind == "counts":
        frame["y"] = np.where(frame["y"] % 3 < 1, np.round(frame["y"] / 8), 0.0)
    left = frame.groupby("unique_id").cumcount(ascending=False)
    if kind == "missing":
        position = frame.groupby("unique_id").cumcount()
        frame.loc[position.isin([4, 5, 20]), "y"] = np.nan
        frame, left = (part[position != 30].reset_index(drop=True) for part in (frame, left))
    cuts = (
        left >= APPENDED + HORIZON,
        (left < APPENDED + HORIZON) & (left >= HORIZON),
        left < HORIZON,
    )
    return Data(
        *(frame[rows].reset_index(drop=True) for rows in cuts),
        freq=1 if kind == "integer" else None,
    )


def series(number: int, length: int, start: Any, freq: Any, season: int) -> pd.DataFrame:
    """A positive series with trend, season, noise and effects of covariates; exact in float32."""
    rng = np.random.default_rng(number)
    t = np.arange(length) + 4 * number
    price, visits = rng.integers(0, 9, length) / 4, rng.integers(0, 9, length) / 2
    promotion = rng.integers(0, 3, length)
    y = 60 + 20 * number + 0.2 * t + 12 * np.sin(2 * np.pi * t / season) + 3 * price - 4 * promotion
    y[1:] += 2 * visits[:-1]
    first = (
        pd.date_range(start, periods=5, freq=freq)[4 * number % 5]
        if isinstance(freq, str)
        else start + 4 * number
    )
    stamps = (
        pd.date_range(first, periods=length, freq=freq)
        if isinstance(freq, str)
        else first + np.arange(length)
    )
    y = np.round((y + 2 * rng.normal(size=length)) * 64) / 64
    columns = {"unique_id": f"s{number}", "ds": stamps, "y": y, "price": price, "visits": visits}
    columns["promotion"] = pd.Categorical.from_codes(promotion, ["none", "flyer", "display"])
    columns["region"] = pd.Categorical.from_codes(np.full(length, number % 2), ["north", "south"])
    return pd.DataFrame({**columns, "size": 1.5 * number})


def roles(model: Any) -> dict[str, list[str]]:
    """The covariates a model takes."""
    able = model.capabilities
    kinds = [NUMBERS, CATEGORIES] if able.categorical else [NUMBERS]
    return {
        role: [name for kind in kinds for name in kind[role]]
        for role in NUMBERS
        if able.can_use(role)
    }


def numbers(label: str, frame: pd.DataFrame, model: str = "") -> Arrays:
    """The numeric columns of a frame; those of a forecast without the name of the model."""
    columns = [name for name in frame.columns if frame[name].dtype.kind in "fi" and name != "ds"]
    names = (
        [name.removeprefix(model).strip("-") or "point" for name in columns]
        if model
        else range(len(columns))
    )
    return {
        f"{label} {name}": frame[column].to_numpy(float)
        for name, column in zip(names, columns, strict=True)
    }


def forecasts(make: Callable[[], Any], kind: str) -> Arrays:
    """Forecasts after fit, from other histories, after save and load, and after an update."""
    from deepforecast import load
    from deepforecast.errors import CapabilityError

    model, panel = make(), data(kind)
    columns = roles(model) if kind == "covariates" else {}
    if kind == "missing" and not model.capabilities.missing:
        model = model.clone(missing="interpolate")
    model.fit(panel.history, freq=panel.freq, columns=columns)
    able, future = model.capabilities, panel.future(columns, appended=False)
    levels = LEVELS if able.distribution is not None or model.calibrates else None
    forecast = model.predict(level=levels, future=future)
    stamps = forecast["ds"]
    if kind != "integer":
        stamps = (pd.to_datetime(stamps, utc=True) - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    arrays = {"stamps": stamps.to_numpy(float)}
    arrays |= numbers("predict", forecast, model.name)
    if able.distribution is not None:
        arrays |= numbers(
            "quantiles", model.predict(quantiles=[0.1, 0.75], future=future), model.name
        )
    if able.simulates:
        arrays |= numbers(
            "simulate", model.simulate(2, seed=5, future=future).drop(columns="sample")
        )
    if able.explains:
        arrays |= numbers("explain", model.explain(future=future))
    if hasattr(model, "fitted_values"):
        with suppress(CapabilityError):
            arrays |= numbers("fitted values", model.fitted_values())
    unseen = {} if model.calibrates or (columns and able.by_series) else {"s0": "new"}
    recent = (
        panel.history.replace({"unique_id": unseen})
        .groupby("unique_id")
        .tail(40)
        .reset_index(drop=True)
    )
    renamed = None if future is None else future.replace({"unique_id": unseen})
    arrays |= numbers(
        "other histories", model.predict(frame=recent, future=renamed, level=levels), model.name
    )
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        loaded = load(Path(folder, "model"))
    arrays |= numbers("loaded", loaded.predict(level=levels, future=future), model.name)
    loaded.update(panel.appended)
    later = panel.future(columns, appended=True)
    return arrays | numbers("updated", loaded.predict(level=levels, future=later), model.name)


def backtest() -> Arrays:
    """Windows of several models, with and without refits, and their scores."""
    from deepforecast import cross_validate, score

    models, panel = contenders(), data("covariates")
    rolled = cross_validate(models, panel.history, horizon=HORIZON, n_windows=2, level=LEVELS)
    stepped = cross_validate(
        models[:2], panel.history, horizon=2, n_windows=3, step_size=1, refit=False
    )
    scores = score(rolled, metrics=["mae", "rmse", "smape", "mase"], train=panel.history)
    return {
        **numbers("windows", rolled),
        **numbers("without refits", stepped),
        **numbers("scores", scores),
    }


def comparison() -> Arrays:
    """A comparison's tables, without what is measured in seconds and megabytes."""
    from deepforecast import compare

    board = compare(contenders(), data("daily").history, horizon=HORIZON, n_windows=2, level=80)
    frames = {
        "table": board.table,
        "series": board.by_series,
        "significance": board.significance,
        "windows": board.forecasts,
    }
    measured = ["fit_seconds", "predict_seconds", "peak_mb"]
    arrays = {
        label: numbers(label, frame.drop(columns=measured, errors="ignore"))
        for label, frame in frames.items()
    }
    return {name: array for part in arrays.values() for name, array in part.items()}


def search() -> Arrays:
    """Trials of two short searches."""
    from deepforecast import MLP, LinearModel, tune

    models = {"regression": LinearModel(), "network": MLP(**{**NET, "hidden_sizes": [8]})}
    panel, arrays = data("daily"), Arrays()
    for label, model in models.items():
        result = tune(model, panel.history, horizon=HORIZON, n_trials=3)
        best = result.best_model.fit(panel.history).predict()
        arrays |= numbers(label, best)
    return arrays


def fine_tuning() -> Arrays:
    """A network and a regression that go on learning."""
    from deepforecast import LSTM, LinearModel

    panel, arrays = data("daily"), Arrays()
    for model in (LSTM(**RECURRENT, horizon=HORIZON), LinearModel(horizon=HORIZON)):
        model.fit(panel.history)
        arrays |= numbers(
            model.name, model.fine_tune(panel.history.query("unique_id != 's2'")).predict()
        )
    return arrays


def contenders() -> list[Any]:
    """A model of each family, cheap ones."""
    from deepforecast import LSTM, AutoETS, Conformal, Drift, LinearModel, SeasonalNaive

    return [
        SeasonalNaive(),
        AutoETS(season_length=7),
        Conformal(Drift()),
        LinearModel(intervals="conformal"),
        LSTM(**RECURRENT),
    ]


def configured(model: str, parameters: dict[str, Any]) -> Any:
    """An unfitted model; wrapped ones are pairs of name and parameters."""
    values = dict(parameters)
    if isinstance(values.get("model"), tuple):
        values["model"] = configured(*values["model"])
    if values.get("events") == "EVENTS":
        values["events"] = {"sale": ["2024-01-20", "2024-02-14", "2024-03-08"]}
    return getattr(deepforecast, model)(**{"horizon": HORIZON, **values})


def seasonal(subject: Any) -> Any:
    """The model of a contract example with a season of 4, as integer time has none of its own."""
    from deepforecast.core.params import declared_params

    special: dict[str, dict[str, Any]] = {"ARIMA": {}, "CES": {}, "WindowMean": {"window": 4}}
    if "model" in subject.parameters:
        return subject.make(model=subject.parameters["model"].clone(season_length=4))
    free = "season_length" in declared_params(subject.cls) and "season_length" not in subject.parameters
    return subject.make(**special.get(subject.name, {"season_length": 4} if free else {}))


def installed(model: str) -> bool:
    """Whether the library a model needs can be imported."""
    from deepforecast.core import registry

    package = getattr(registry.get(model), "package", None)
    return package is None or find_spec(package) is not None


def cases() -> dict[str, Callable[[], Arrays]]:
    """Every case that can run here, by name."""
    from deepforecast.core.registry import MODELS
    from deepforecast.testing.subject import make_subjects

    by_name: dict[str, Callable[[], Arrays]] = {
        "backtest": backtest,
        "comparison": comparison,
        "search": search,
        "fine tuning": fine_tuning,
    }
    for name in filter(installed, MODELS):
        for subject in make_subjects([name]):
            able = subject.capabilities
            covariates = ["covariates"] if any(roles(subject.make()).values()) else []
            for kind in ("daily", "missing", "monthly", *covariates):
                by_name[f"{subject.name}, {kind}"] = partial(forecasts, subject.make, kind)
            if able.by_series or name in ("LinearModel", "NLinear"):
                by_name[f"{subject.name}, integer"] = partial(
                    forecasts, partial(seasonal, subject), "integer"
                )
    for name, (model, kind, parameters) in CONFIGURATIONS.items():
        if installed(model):
            by_name[name] = partial(forecasts, partial(configured, model, parameters), kind)
    return by_name


def record(only: str = "", share: str = "0/1") -> dict[str, Arrays]:
    """The arrays of the cases whose name contains `only`; the share "k/n" is every n-th of them."""
    import torch

    torch.set_num_threads(1)
    first, step = map(int, share.split("/"))
    chosen = [(name, case) for name, case in cases().items() if only in name][first::step]
    recorded, failures = {}, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, case in chosen:
            try:
                recorded[name] = case()
            except Exception as error:
                failures.append(f"{name}: {type(error).__name__}: {error}")
    if failures:
        raise SystemExit("\n".join(["golden: cases that cannot run:", *failures]))
    return recorded


def summary(arrays: Arrays) -> dict[str, list[float | None]]:
    """First value, mean and standard deviation to eight digits, without infinities and NaN.

    Arrays whose names begin with the same word are one. Sample paths are left out: the signs of
    eigenvectors, and so the paths, are those of the machine.
    """
    groups: dict[str, list[np.ndarray]] = {}
    for name, array in arrays.items():
        if not name.startswith("simulate"):
            groups.setdefault(name.partition(" ")[0], []).append(array)
    numbers: dict[str, list[float | None]] = {}
    for name, group in groups.items():
        array = np.concatenate(group)
        finite = array[np.isfinite(array)]
        values = (array[0], finite.mean(), finite.std()) if len(finite) else ()
        numbers[name] = [float(f"{value:.8g}") if np.isfinite(value) else None for value in values]
    return numbers


def stored() -> dict[str, dict[str, list[float | None]]]:
    """The stored summary of each case."""
    return json.loads(SUMMARY.read_text(encoding="utf-8"))


def write_summary(recorded: Mapping[str, Arrays]) -> None:
    """Store the summary of all cases, a line for each."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(summary(arrays), separators=(',', ':'))}"
        for name, arrays in recorded.items()
    ]
    SUMMARY.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def deviations(name: str, arrays: Arrays, expected: Mapping[str, list[float | None]]) -> list[str]:
    """What of a case is further from its stored summary than another machine may be."""
    limit = LIMIT_OF_NETWORKS if name.startswith(NETWORKS) else LIMIT
    limit = LIMIT_OF_STATSMODELS if name.startswith(STATSMODELS) else limit
    actual, lines = summary(arrays), []
    for array, values in expected.items():
        pairs = list(zip(values, actual.get(array, []), strict=False))
        size = max((abs(value) for value in values if value is not None), default=0.0)
        close = all(
            (a is None) == (b is None) and (a is None or abs(a - b) <= limit * size)
            for a, b in pairs
        )
        if not close or len(values) != len(actual.get(array, [])):
            lines.append(f"{name}: {array} is summarised by {actual.get(array)}, not {values}")
    return lines


def main() -> None:
    """Write the arrays, write their summary, or compare them with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", nargs="?", help="the .npz file to write")
    parser.add_argument("--share", default="0/1", help="k/n: every n-th case from the k-th on")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--summary", action="store_true", help=f"write {SUMMARY.name}")
    parser.add_argument("--check", action="store_true", help=f"compare with {SUMMARY.name}")
    options = parser.parse_args()
    package = Path(deepforecast.__file__).resolve().parent
    if package.parent != Path(__file__).resolve().parents[2]:
        raise SystemExit(f"golden: deepforecast is imported from {package}. Set PYTHONPATH.")
    recorded = record(options.only, options.share)
    if options.path:
        named = {
            f"{case}|{name}": array
            for case, arrays in recorded.items()
            for name, array in arrays.items()
        }
        np.savez(options.path, **named)
    if options.summary:
        write_summary(recorded)
    if options.check:
        expected = stored()
        lines = [
            f"{name}: missing" for name in expected if name not in recorded and not options.only
        ]
        lines += [
            line
            for name in recorded
            if name in expected
            for line in deviations(name, recorded[name], expected[name])
        ]
        raise SystemExit("\n".join(lines)) if lines else SystemExit(0)


if __name__ == "__main__":
    main()
