"""Files of networks without histories, explanations by integrated gradients, and both forms of the GRU.

    python benchmarks/bench_network_features.py [--series 48000] [--repeats 9]

Sizes of files are exact; times are medians of CPU milliseconds on one thread. The two GRUs alternate. Writes
benchmarks/results/network_features.md.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path

import torch

from deepforecast import LSTM, MLP, NBEATS, load
from deepforecast.datasets import generate
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions

RESULTS = Path(__file__).parent / "results" / "network_features.md"
WINDOWS, STEPS, WIDTH = 256, 96, 8  # input of the GRU, whose hidden size is 64


def cpu_milliseconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def file_row(n_series: int, folder: Path) -> str:
    """Sizes with and without histories of an NBEATS at default size, and whether forecasts are equal after loading."""
    frame = generate(n_series, 72, freq="MS")
    model = NBEATS(horizon=18, max_steps=1, trainer={"accelerator": "cpu"}).fit(frame)
    weights = 4 * sum(tensor.numel() for tensor in model.network_.state_dict().values())
    sizes = {}
    for histories in (True, False):
        model.save(folder / "model.dfc", histories=histories)
        sizes[histories] = (folder / "model.dfc").stat().st_size
    some = frame[frame["unique_id"].isin(frame["unique_id"].unique()[:100])]
    is_equal = load(folder / "model.dfc").predict(frame=some, level=80).equals(model.predict(frame=some, level=80))
    return f"| {n_series:,} | {weights:,} | {sizes[True]:,} | {sizes[False]:,} | {'yes' if is_equal else 'NO'} |"


def explain_row(name: str, repeats: int) -> str:
    """CPU time of explaining 24 steps of one series, and the largest error of the sum relative to the forecast."""
    model = {"LSTM": LSTM, "MLP": MLP}[name](horizon=24, max_steps=50, trainer={"accelerator": "cpu"}).fit(generate(1, 400))
    table, forecast = model.explain(), model.predict()[name].to_numpy()
    times = [cpu_milliseconds(model.explain) for _ in range(repeats)]
    without_rest = table[table["component"] != "rest"].groupby("ds", sort=False)["value"].sum().to_numpy()
    error = abs(without_rest - forecast).max() / abs(forecast).max()
    return f"| {name} | {statistics.median(times):.1f} | {error:.1e} |"


def gru_row(repeats: int) -> str:
    """CPU time of forward and backward passes of the GRU with the reset gate after (torch's) and before the product."""
    inputs = torch.randn(WINDOWS, STEPS, WIDTH)
    layers = {reset: Recurrent(WIDTH, RecurrentOptions("gru", 64, reset=reset)) for reset in ("after", "before")}
    times: dict[str, list[float]] = {"after": [], "before": []}
    for _ in range(repeats + 1):
        for reset, layer in layers.items():
            times[reset].append(cpu_milliseconds(lambda layer=layer: layer(inputs)[0].sum().backward()))  # type: ignore[misc]
    after, before = (statistics.median(times[reset][1:]) for reset in ("after", "before"))
    return f"| {after:.1f} | {before:.1f} | {before / after:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=48_000)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        files = [file_row(n_series, Path(folder)) for n_series in (100, options.series)]
    text = f"""# Files, explanations and GRUs of networks

`python benchmarks/bench_network_features.py --series {options.series}`, {date.today().isoformat()}

NBEATS at default size, bytes:

| series | weights | file | file with `histories=False` | `predict(frame=)` equal after loading |
|---|---|---|---|---|
{chr(10).join(files)}

`explain()` of one series, 24 steps:

| network | CPU ms | error of the sum without "rest", relative |
|---|---|---|
{chr(10).join(explain_row(name, options.repeats) for name in ("LSTM", "MLP"))}

GRU, forward and backward, {WINDOWS} windows of {STEPS} steps, CPU ms:

| `reset="after"` (torch) | `reset="before"` | ratio |
|---|---|---|
{gru_row(options.repeats)}
"""
    print(text)
    RESULTS.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
