"""Cost of what networks do besides forecasting: files, explanations, fitted values, tiny fits, training steps, both GRUs.

    python benchmarks/bench_network_features.py [--series 48000] [--repeats 9] [--steps 60]

Sizes of files are exact; times are medians of CPU milliseconds on one thread. What is compared alternates. Writes
benchmarks/results/network_features.md.

A training step is that of `fit` at defaults (Lightning's Trainer, gathering of the batch, schedule, record). The bare loop
next to it calls zero_grad, the same `network.loss` on the same batches, gathered before, backward, gradient clipping and
AdamW. Both keep freed buffers. Required: at most 1.05 times the bare loop where that takes 8 ms or more, else 0.4 ms more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import date
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import torch
from common_neural import walks

from deepforecast import LSTM, MLP, NBEATS, load
from deepforecast.core import registry
from deepforecast.core.monitor import Monitor
from deepforecast.core.threads import keep_buffers
from deepforecast.data.panel import Panel
from deepforecast.datasets import generate
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions
from deepforecast.training.module import clip_gradients, make_optimizer

RESULTS = Path(__file__).parent / "results" / "network_features.md"
WINDOWS, STEPS, WIDTH = 256, 96, 8  # input of the GRU, whose hidden size is 64
TINY: dict[str, dict[str, Any]] = {"LSTM": {"hidden_size": 16}, "MLP": {"hidden_sizes": [16]}, "DLinear": {}}
N_BATCHES = 8  # of the bare loop
WARM_UP_STEPS = 10  # not measured
CPU = {"accelerator": "cpu"}


def cpu_milliseconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def file_row(n_series: int, folder: Path) -> str:
    """Sizes with and without histories of an NBEATS at default size, and whether forecasts are equal after loading."""
    frame = generate(n_series, 72, freq="MS")
    model = NBEATS(horizon=18, max_steps=1, trainer=CPU).fit(frame)
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
    model = {"LSTM": LSTM, "MLP": MLP}[name](horizon=24, max_steps=50, trainer=CPU).fit(generate(1, 400))
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


def tiny_fit_row(name: str, repeats: int) -> str:
    """CPU time of a warm fit of 20 steps on two series of 100 time steps, with and without calibrated intervals."""
    frame = generate(2, 100)
    models = [
        registry.get(name)(horizon=7, max_steps=20, intervals=intervals, trainer=CPU, **TINY[name])
        for intervals in (None, "uncalibrated")
    ]
    times: list[list[float]] = [[], []]
    for _ in range(repeats + 1):
        for model, measured in zip(models, times, strict=True):
            measured.append(cpu_milliseconds(lambda model=model: model.fit(frame)))  # type: ignore[misc]
    default, uncalibrated = (statistics.median(measured[1:]) for measured in times)
    return f"| {name} | {default:.1f} | {uncalibrated:.1f} |"


def step_row(name: str, n_rounds: int, n_steps: int) -> str:
    """Median CPU time of a training step, of the bare loop and of gathering a batch, over interleaved rounds."""
    frame = walks(100, 2000)
    model = registry.get(name)(horizon=24, max_steps=n_steps, intervals="uncalibrated")
    steps, bare_steps, gathering = [], [], []
    for _ in range(n_rounds):
        steps.append(statistics.median(fit_steps(model, frame)))
        bare, gather = bare_loop_steps(model, frame, n_steps)
        bare_steps.append(bare)
        gathering.append(gather)
    step, bare = statistics.median(steps), statistics.median(bare_steps)
    spread = f"{min(steps):.2f} to {max(steps):.2f} | {bare:.2f} | {min(bare_steps):.2f} to {max(bare_steps):.2f}"
    is_met = step <= 1.05 * bare if bare >= 8 else step <= bare + 0.4
    required = "at most 1.05 x" if bare >= 8 else "at most + 0.4 ms"
    difference = f"{step / bare:.2f} | {step - bare:+.2f} | {statistics.median(gathering):.2f}"
    return f"| {name} | {step:.2f} | {spread} | {difference} | {required} | {'yes' if is_met else 'no'} |"


def fit_steps(model: Any, frame: Any) -> list[float]:
    """CPU milliseconds of each training step of a fit, between the calls that decide whether to stop."""
    times: list[float] = []

    def record_step() -> bool:
        times.append(1e3 * time.process_time())
        return False

    model._fit_panel(Panel.from_frame(frame), Monitor(stop_when=record_step))  # as in `fit`
    return [after - before for before, after in pairwise(times)][WARM_UP_STEPS:]


def bare_loop_steps(model: Any, frame: Any, n_steps: int) -> tuple[float, float]:
    """Median CPU milliseconds of a step of a loop in torch on batches gathered before, and of gathering one."""
    module = model.lightning_module(frame)
    network = module.network.train()
    loader = iter(model.datamodule(frame).train_dataloader())
    gathering = statistics.median(cpu_milliseconds(lambda: next(loader)) for _ in range(n_steps - N_BATCHES))
    batches = list(islice(loader, N_BATCHES))
    optimizer, parameters = make_optimizer(network, module.options), list(network.parameters())
    times = []
    with keep_buffers():
        for step in range(n_steps):
            optimizer.zero_grad()
            network.loss(batches[step % N_BATCHES]).backward()
            clip_gradients(parameters, module.options)
            optimizer.step()
            times.append(1e3 * time.process_time())
    steps = [after - before for before, after in pairwise(times)][WARM_UP_STEPS:]
    return statistics.median(steps), gathering


def fitted_values_row(name: str, repeats: int) -> str:
    """CPU time of the fitted values of 100 series of 240 hours, and of their forecast."""
    model: Any = registry.get(name)(horizon=24, max_steps=50, trainer=CPU).fit(walks(100, 240))
    windows = 100 * -(-(240 - model.network_.sizes.input_size) // 24)
    times: dict[str, list[float]] = {"fitted_values": [], "predict": []}
    for _ in range(repeats + 1):
        for method, measured in times.items():
            measured.append(cpu_milliseconds(getattr(model, method)))
    fitted, forecast = (statistics.median(measured[1:]) for measured in times.values())
    return f"| {name} | {windows} | {fitted:.1f} | {1e3 * fitted / windows:.0f} | 100 | {forecast:.1f} | {1e3 * forecast / 100:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=48_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, default=60, help="training steps of each round")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        files = [file_row(n_series, Path(folder)) for n_series in (100, options.series)]
    text = f"""# Files, explanations, fitted values and training steps of networks

`python benchmarks/bench_network_features.py --series {options.series}`, {date.today().isoformat()}, one thread, load average
{os.getloadavg()[0]:.1f} at the start.

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

A tiny fit (hidden size 16, 20 steps, two series of 100 time steps, horizon 7), CPU ms; required: at most 50:

| network | default | `intervals="uncalibrated"` |
|---|---|---|
{chr(10).join(tiny_fit_row(name, options.repeats) for name in TINY)}

A training step at defaults (100 series of 2,000 hours, horizon 24, 256 windows) next to a bare loop in torch on the same
batches with the same loss, CPU ms, medians and range of {options.repeats} interleaved rounds of {options.steps} steps. The step
gathers its batch, which is part of the difference; the bare loop has its batches before:

| network | step | range | bare loop | range | ratio | difference | gathering of a batch | required | met |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(step_row(name, options.repeats, options.steps) for name in ("DLinear", "MLP", "LSTM", "GRU"))}

`fitted_values()` of 100 series of 240 hours next to `predict()`, horizon 24:

| network | windows | CPU ms | µs per window | windows of `predict` | CPU ms | µs per window |
|---|---|---|---|---|---|---|
{chr(10).join(fitted_values_row(name, options.repeats) for name in ("DLinear", "MLP", "LSTM"))}
"""
    print(text)
    RESULTS.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
