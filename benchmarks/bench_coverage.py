"""Coverage of every model's 80 % and 95 % prediction intervals at defaults, on public data.

    python benchmarks/bench_coverage.py [--docstrings] [model ...]

Each model is fitted on the training part of the sets that suit it and forecasts the test part
(EPF: fitted once, then 146 forecasts of a day, three days apart, across the test year). Models
without a distribution of their own are measured with `intervals="conformal"`. A run replaces the
rows of the given models (default: all) in results/coverage.md. `--docstrings` measures
nothing: it writes the figures of results/coverage.md into the docstring of every model. Requires
the benchmark data (DEEPFORECAST_DATA).
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deepforecast import AutoETS, datasets
from deepforecast.core import registry

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "coverage.md"
COMMAND = "benchmarks/bench_coverage.py"
LEVELS = (80, 95)
SEED = 0
HISTORY = 24 * 7 * 8  # hours before each forecast of EPF
PARAGRAPH = "Measured coverage of 80 % intervals"


@dataclass(frozen=True)
class Benchmark:
    """A public data set: name in `datasets`, horizon, frequency and number of series used."""

    dataset: str
    horizon: int
    freq: str
    n_series: int | None = None
    future: tuple[str, ...] = ()
    n_windows: int = 1  # more than one: fitted once, then forecast at cutoffs across the test part


BENCHMARKS = {
    "M1 yearly": Benchmark("m1_yearly", 6, "YS"),
    "M1 quarterly": Benchmark("m1_quarterly", 8, "QS"),
    "M1 monthly": Benchmark("m1_monthly", 18, "MS"),
    "M4 hourly (100 series)": Benchmark("m4_hourly", 48, "h", n_series=100),
    "NN5 daily": Benchmark("nn5_daily", 56, "D"),
    "M5 daily (300 items)": Benchmark("m5_ca_1", 28, "D", n_series=300),
    "EPF Nord Pool hourly": Benchmark("epf_np", 24, "h", future=("grid_load_forecast", "wind_power_forecast"), n_windows=146),
}
M1 = ("M1 yearly", "M1 quarterly", "M1 monthly")
SHORT_SEASONS = (*M1, "NN5 daily")
INTERMITTENT = ("M5 daily (300 items)",)
NETWORKS = ("M1 monthly", "NN5 daily", "EPF Nord Pool hourly")
# Benchmarks of each model; other local models use SHORT_SEASONS and M4 hourly.
SUITABLE = {
    **dict.fromkeys(("ADIDA", "Croston", "IMAPA", "TSB"), INTERMITTENT),
    **dict.fromkeys(("ARIMA", "AutoARIMA", "UnobservedComponents"), SHORT_SEASONS),
    "Conformal": ("NN5 daily", "M4 hourly (100 series)"),  # M1 series are too short for calibration
    "Prophet": ("M1 monthly", "NN5 daily"),
}
N_SERIES_SLOW = {
    "UnobservedComponents": 40,
    "AutoARIMA": 100,
}  # number of series for slow models
WRAPPED = {"Conformal": {"model": AutoETS()}, "Regression": {"regressor": "ridge"}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docstrings", action="store_true", help="write results/coverage.md into docstrings")
    parser.add_argument("model", nargs="*", help="models to measure (default: all)")
    args = parser.parse_args()
    if args.docstrings:
        return write_docstrings()
    figures = read_figures()
    for name in args.model or registry.names():
        started = time.process_time()
        figures[name] = {key: coverage(name, key) for key in suitable(name)}
        write_figures(figures)
        print(f"{name}: {figures[name]}, {time.process_time() - started:.0f} CPU s", flush=True)
    return 0


def suitable(name: str) -> tuple[str, ...]:
    """The benchmarks of a model."""
    if name in SUITABLE:
        return SUITABLE[name]
    local = registry.get(name)(**WRAPPED.get(name, {})).capabilities.local
    return (*SHORT_SEASONS, "M4 hourly (100 series)") if local else NETWORKS


def coverage(name: str, key: str) -> str:
    """Percent of the actual values inside the intervals, as "80.3 / 94.8"."""
    benchmark = BENCHMARKS[key]
    train, test = load(benchmark, N_SERIES_SLOW.get(name))
    model = make_model(name, benchmark)
    levels = LEVELS[:1] if model.intervals else LEVELS  # too few windows to calibrate 95 %
    forecasts = forecast(model, train, test, benchmark, levels)
    joined = test[["unique_id", "ds", "y"]].merge(forecasts, on=["unique_id", "ds"], validate="1:m")
    covered = (100 * joined["y"].between(joined[f"model-lo-{level}"], joined[f"model-hi-{level}"]).mean() for level in levels)
    return " / ".join(f"{share:.1f}" for share in covered)


def load(benchmark: Benchmark, n_series: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test part as frames with dates (M1 and M4 count time steps) and plain ids."""
    parts = [datasets.load(benchmark.dataset, split=split) for split in ("train", "test")]
    ids = parts[0]["unique_id"].astype(str).unique()
    wanted = min(n_series or len(ids), benchmark.n_series or len(ids), len(ids))
    ids = np.random.default_rng(SEED).choice(ids, wanted, replace=False)
    columns = ["unique_id", "ds", "y", *benchmark.future]
    parts = [part[columns].assign(unique_id=part["unique_id"].astype(str)) for part in parts]
    parts = [part[part["unique_id"].isin(ids)].reset_index(drop=True) for part in parts]
    if np.issubdtype(parts[0]["ds"].dtype, np.integer):
        last = max(part["ds"].max() for part in parts)
        dates = pd.date_range("1970-01-01", periods=last + 1, freq=benchmark.freq)
        parts = [part.assign(ds=dates[part["ds"].to_numpy()]) for part in parts]
    return parts[0], parts[1]


def make_model(name: str, benchmark: Benchmark) -> Any:
    """The model with default parameters, and conformal intervals if it has none of its own."""
    options: dict[str, Any] = {
        "horizon": benchmark.horizon,
        "alias": "model",
        **WRAPPED.get(name, {}),
    }
    model = registry.get(name)(**options)
    if model.capabilities.distribution is None:
        return model.clone(intervals="conformal")
    return model


def forecast(
    model: Any,
    train: pd.DataFrame,
    test: pd.DataFrame,
    benchmark: Benchmark,
    levels: tuple[int, ...],
) -> pd.DataFrame:
    """Forecasts of the test part with intervals."""
    columns = {"future": benchmark.future}
    with warnings.catch_warnings():
        # warnings on short series and overfitted networks: the figures show the effect on intervals
        warnings.simplefilter("ignore")
        model.fit(train, freq=benchmark.freq, columns=columns)
        if benchmark.n_windows == 1:
            return model.predict(level=levels)
        whole = pd.concat([train, test])
        steps = np.arange(benchmark.n_windows) * 3 * benchmark.horizon + len(train)
        days = []
        for step in steps:
            history = whole.iloc[int(step) - HISTORY : int(step)]
            future = whole.iloc[int(step) : int(step) + benchmark.horizon].drop(columns="y")
            days.append(model.predict(frame=history, future=future, level=levels))
        return pd.concat(days)


def read_figures() -> dict[str, dict[str, str]]:
    """The cells of results/coverage.md by model and benchmark."""
    if not RESULTS.exists():
        return {}
    lines = [line for line in RESULTS.read_text("utf-8").splitlines() if line.startswith("|")]
    header, _, *body = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    return {row[0]: {key: cell for key, cell in zip(header[1:], row[1:], strict=True) if cell} for row in body}


def write_figures(figures: dict[str, dict[str, str]]) -> None:
    """Write results/coverage.md."""
    lines = [
        "# Coverage of prediction intervals on public data",
        "",
        "Percent of the actual values inside the 80 % / 95 % interval, models at defaults:",
        f"`python {COMMAND}`. Models without a distribution of their own:",
        '`intervals="conformal"`; `Conformal` wraps AutoETS, `Regression` ridge.',
        "Fewer series of each set:",
        f"{', '.join(f'{name} {count}' for name, count in N_SERIES_SLOW.items())}.",
        "",
        f"| model | {' | '.join(BENCHMARKS)} |",
        "|---" * (len(BENCHMARKS) + 1) + "|",
    ]
    for name, cells in sorted(figures.items()):
        lines += [f"| {name} | {' | '.join(cells.get(key, '') for key in BENCHMARKS)} |"]
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def sentence(name: str, figures: dict[str, str]) -> str:
    """The sentence on coverage in the docstring of a model."""
    options = [f"{key}={value!r}" for key, value in WRAPPED.get(name, {}).items()]
    if name != "Conformal" and make_model(name, next(iter(BENCHMARKS.values()))).intervals:
        options.append("intervals='conformal'")
    how = f"with {', '.join(options)}" if options else "at defaults"
    shares = ", ".join(f"{key} {float(cell.split('/')[0]):.0f} %" for key, cell in figures.items())
    count = N_SERIES_SLOW.get(name)
    series = "" if count is None else f"; {count} series of each set"
    return f"{PARAGRAPH} {how}: {shares} ({COMMAND}{series})."


def documented(source: str, name: str, figures: dict[str, str]) -> str:
    """The source of a model with the coverage inserted in its docstring, before the first section or example."""
    start = source.index(f"\nclass {name}(")
    end = source.index('"""', source.index('"""', start) + 3)
    docstring = source[start:end]
    docstring = re.sub(rf"\n\n    {PARAGRAPH}[^\n]*(\n    [^\n]+)*", "", docstring)
    lines = textwrap.wrap(sentence(name, figures), 96, break_on_hyphens=False)
    paragraph = "\n\n" + "\n".join(f"    {line}" for line in lines)
    section = re.search(r"\n\n    (>>> |\w[\w ]*\n    -{3,}\n)", docstring)
    if section is None:
        raise ValueError(f"{name}: the docstring must have a section or an example after the coverage")
    text, sections = docstring[: section.start()], docstring[section.start() :]
    return source[:start] + text + paragraph + sections + source[end:]


def write_docstrings() -> int:
    for name, figures in read_figures().items():
        path = source_file(name)
        source = path.read_text("utf-8")
        path.write_text(documented(source, name, figures), encoding="utf-8")
    return 0


def source_file(name: str) -> Path:
    """The file of a model."""
    return Path(sys.modules[registry.get(name).__module__].__file__ or "")


if __name__ == "__main__":
    sys.exit(main())
