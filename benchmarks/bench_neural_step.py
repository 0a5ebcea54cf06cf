"""Training steps compared with a plain torch loop of the same network on prebuilt tensors, and with other libraries.

    python benchmarks/bench_neural_step.py [--rounds 3] [--steps 150] [--quick]

100 series of 2,000 values, input 96, horizon 24, batch size 256, mean absolute error, point forecasts: an LSTM with 64
units, an MLP with three layers of 512 units, DLinear, NHITS with three blocks of two layers of 512 units. The plain loop
uses torch with its default settings; the tuned loop keeps freed buffers and uses the same number of threads as deepforecast.
"deepforecast, callback" is a fit with a Lightning callback called at each step, like the clocks of the other libraries.
Every run is a separate process; runs alternate.
CPU seconds include all cores, and threads that spin while waiting: use --asleep on a machine under load, where the plain
loop and the other libraries take ten times as long otherwise. The 10 % quantile of the CPU time is the cost of a step
while no other process displaces the caches.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from itertools import pairwise
from typing import Any

from common_neural import PEERS, Measurement, child, medians, peer, walks, write

NETWORKS = ("LSTM", "MLP", "DLinear", "NHITS")
BATCH, INPUT, HORIZON = 256, 96, 24
WARM_UP_STEPS = 10  # not measured
LABELS = {
    "fit_networks": "deepforecast", "fit_with_callback": "deepforecast, callback", "plain_loop": "plain loop",
    "tuned_loop": "tuned loop",
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--quick", action="store_true", help="one round of few steps, and a smaller panel")
    parser.add_argument("--asleep", action="store_true", help="passive OpenMP waiting, for machines under load")
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--child", nargs=2)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(globals()[args.child[0]](**json.loads(args.child[1]))))
        return 0
    if args.quick:
        args.rounds, args.steps, args.asleep = 1, 30, True
    if args.asleep:
        os.environ.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    settings = {"series": 100, "length": 2000, "steps": args.steps, "networks": args.networks}
    runs: dict[str, list[Measurement]] = {}
    for _ in range(args.rounds):
        for name in ("fit_networks", "fit_with_callback", "plain_loop", "tuned_loop"):
            runs.setdefault(name, []).append(child(__file__, name, settings))
        for name in args.peers:
            runs.setdefault(name, []).append(peer(f"neural_step_{name}.py", name, settings))
    small_panel = {"series": 100, "length": 200, "steps": args.steps}
    large_panel = {"series": 1000 if args.quick else 10_000, "length": 2000, "steps": args.steps}
    panels = (small_panel, large_panel)
    costs = [[child(__file__, "step_cost", panel) for panel in panels] for _ in range(args.rounds)]
    write("neural_step", report(args, runs, costs, large_panel["series"]), args.quick)
    return 0


# -- children ------------------------------------------------------------------------------------------------------------------


def fit_networks(series: int, length: int, steps: int, networks: list[str]) -> Measurement:
    """Measurements of the public `fit` of each network."""
    return {name: measure_fit(name, walks(series, length), steps) for name in networks}


def fit_with_callback(series: int, length: int, steps: int, networks: list[str]) -> Measurement:
    """The same with a Lightning callback."""
    return {name: measure_fit(name, walks(series, length), steps, use_callback=True) for name in networks}


def step_cost(series: int, length: int, steps: int) -> Measurement:
    """Measurements of DLinear, the cheapest network, for which collecting the windows matters most."""
    return measure_fit("DLinear", walks(series, length), steps)


def measure_fit(name: str, frame: Any, steps: int, use_callback: bool = False) -> Measurement:
    """Measure one fit: seconds to the first step, times of the steps, and MASE.

    The clock is the function that a fit calls after each step to decide whether to stop, or a Lightning callback.
    """
    import pytorch_lightning as pl

    import deepforecast
    from deepforecast.core.monitor import Monitor
    from deepforecast.data.panel import Panel

    step_times: list[tuple[float, float]] = []

    def record_step() -> bool:
        step_times.append((time.perf_counter(), time.process_time()))
        return False

    class Clock(pl.Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            record_step()

    model = getattr(deepforecast, name)(
        horizon=HORIZON, input_size=INPUT, head="point", loss="mae", calendar=None, batch_size=BATCH, max_steps=steps,
        trainer={"callbacks": [Clock()]} if use_callback else None,
    )  # fmt: skip
    is_test = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
    training_rows = frame[~is_test]
    model.clone(max_steps=1).fit(frame[frame["unique_id"] < 2])  # imports
    step_times.clear()
    start = (time.perf_counter(), time.process_time())
    monitor = Monitor(stop_when=None if use_callback else record_step)
    model.__dict__["state_"] = model._fit_panel(Panel.from_frame(training_rows), monitor)  # as in `fit`
    return {**step_statistics(step_times, start), "mase": mase(frame, is_test, model.predict()[name].to_numpy())}


def step_statistics(step_times: list[tuple[float, float]], start: tuple[float, float]) -> Measurement:
    """Milliseconds per step: median of wall-clock time, mean and 10 % quantile of CPU time; seconds to the first step."""
    steps = list(pairwise(step_times[WARM_UP_STEPS:]))
    wall = [1e3 * (after[0] - before[0]) for before, after in steps]
    cpu = [1e3 * (after[1] - before[1]) for before, after in steps]
    statistics_of_steps = {"wall": statistics.median(wall), "cpu": statistics.mean(cpu)}
    statistics_of_steps["cpu_p10"] = sorted(cpu)[len(cpu) // 10]
    return {**statistics_of_steps, "start": step_times[0][0] - start[0], "start_cpu": step_times[0][1] - start[1]}


def mase(frame: Any, is_test: Any, forecast: Any) -> float:
    """MASE of the test rows."""
    y, actual = frame["y"].to_numpy().reshape(frame["unique_id"].nunique(), -1), frame["y"][is_test].to_numpy()
    naive_errors = abs(y[:, 24:-HORIZON] - y[:, : -24 - HORIZON]).mean(1)
    return float((abs(actual - forecast).reshape(len(naive_errors), -1).mean(1) / naive_errors).mean())


def plain_loop(series: int, length: int, steps: int, networks: list[str]) -> Measurement:
    """A straightforward loop on prebuilt tensors with the default settings of torch."""
    import torch

    frame = walks(series, length)
    measurements = {}
    for name in networks:
        body, batches = prebuilt(name, frame)
        measurements[name] = train_loop(body, batches, steps, torch.optim.AdamW(body.parameters(), lr=1e-3))
    return measurements


def tuned_loop(series: int, length: int, steps: int, networks: list[str]) -> Measurement:
    """The same, keeping freed buffers and with the threads that deepforecast uses."""
    from deepforecast.core.threads import allowed_threads, keep_buffers, limit_threads, passive_waiting
    from deepforecast.training.trainer import MIN_PARALLEL_WORK

    with passive_waiting("torch"):
        import torch
    frame = walks(series, length)
    measurements = {}
    for name in networks:
        body, batches = prebuilt(name, frame)
        work = sum(parameter.numel() for parameter in body.parameters()) * BATCH * (INPUT if name == "LSTM" else 1)
        with keep_buffers(), limit_threads(allowed_threads() if work >= MIN_PARALLEL_WORK else 1):
            measurements[name] = train_loop(body, batches, steps, torch.optim.AdamW(body.parameters(), lr=1e-3))
    return measurements


def prebuilt(name: str, frame: Any) -> tuple[Any, list[Any]]:
    """The untrained network, and eight batches of inputs and targets."""
    import torch

    import deepforecast

    model = getattr(deepforecast, name)(
        horizon=HORIZON, input_size=INPUT, head="point", calendar=None, batch_size=BATCH, max_steps=8
    )
    model.lightning_module(frame)
    network, batches = model.network_, []
    for batch in model.datamodule(frame).train_dataloader():
        with torch.no_grad():
            inputs, scale = network.inputs(batch)
            batches.append((inputs, scale.standardize(batch.target).float()))
    return network.body.train(), batches


def train_loop(body: Any, batches: list[Any], steps: int, optimizer: Any) -> Measurement:
    """Measure a training loop: zero_grad, forward, loss, backward, step."""
    start, step_times = (time.perf_counter(), time.process_time()), []
    for step in range(steps):
        inputs, target = batches[step % len(batches)]
        optimizer.zero_grad()
        loss = (body.features(inputs).squeeze(-1) - target).abs().mean()
        loss.backward()
        optimizer.step()
        step_times.append((time.perf_counter(), time.process_time()))
    return step_statistics(step_times, start)


# -- the report ----------------------------------------------------------------------------------------------------------------


def report(args: Any, runs: dict[str, list[Measurement]], costs: list[list[Measurement]], n_series: int) -> list[str]:
    results = {
        name: {network: medians(run[network] for run in measurements) for network in measurements[0]}
        for name, measurements in runs.items()
    }
    lines = [
        "# Training steps compared with a plain torch loop and with other libraries",
        "",
        f"100 series x 2,000, input {INPUT}, horizon {HORIZON}, batch size {BATCH}, point forecasts, mean absolute error; "
        f"medians of {args.rounds} runs of {args.steps} steps, in turn.",
        "",
        "| network | | step, wall ms | step, CPU ms | CPU ms, 10 % quantile | start of fit to first step, s (CPU s) | MASE |",
        "|---|---|---|---|---|---|---|",
    ]
    for network in args.networks:
        for name, by_network in results.items():
            if timing := by_network.get(network):
                mase_cell = f"{timing['mase']:.3f}" if "mase" in timing else ""
                start = f"{timing['start']:.2f} ({timing['start_cpu']:.2f})" if mase_cell else ""
                cells = " | ".join(f"{timing[column]:.2f}" for column in ("wall", "cpu", "cpu_p10"))
                lines.append(f"| {network} | {LABELS.get(name, name)} | {cells} | {start} | {mase_cell} |")
    lines += ["", *required_ratios(results), *size_dependence(costs, n_series)]
    return lines


def required_ratios(results: dict[str, Any]) -> list[str]:
    """The speedups with their required values, by CPU and by wall-clock time."""
    comparisons = [
        ("LSTM", "plain_loop", "at least 1.8"), ("LSTM", "tuned_loop", "at least 1"), ("LSTM", "darts", "at least 2"),
        ("LSTM", "neuralforecast", "at least 3"), ("MLP", "plain_loop", "at least 0.95"), ("MLP", "tuned_loop", ""),
        ("DLinear", "plain_loop", ""), ("DLinear", "darts", ""), ("DLinear", "gluonts", ""), ("DLinear", "neuralforecast", ""),
        ("NHITS", "plain_loop", ""), ("NHITS", "tuned_loop", ""), ("NHITS", "neuralforecast", "at least 2"),
    ]  # fmt: skip
    lines = []
    ours = results["fit_networks"]
    for network, name, requirement in comparisons:
        if network in ours and network in results.get(name, {}):
            wall, cpu, cpu_p10 = (
                results[name][network][column] / ours[network][column] for column in ("wall", "cpu", "cpu_p10")
            )
            speedups = f"{cpu_p10:.2f} by the 10 % quantile of CPU time, {cpu:.2f} by CPU time, {wall:.2f} by wall-clock time"
            required = requirement and f"; required: {requirement}"
            lines.append(f"- {network}, speedup over {LABELS.get(name, name)}: {speedups}{required}.")
    if "DLinear" in ours:
        timing = ours["DLinear"]
        lines.append(
            f"- DLinear: {timing['cpu_p10']:.2f} CPU ms per step (10 % quantile), {timing['wall']:.2f} ms wall-clock; "
            "required: at most 1.2."
        )
    start, start_cpu = (max(timing[column] for timing in ours.values()) for column in ("start", "start_cpu"))
    return [*lines, f"- Start of fit to first step: {start:.2f} s, {start_cpu:.2f} CPU s; required: at most 0.2."]


def size_dependence(costs: list[list[Measurement]], n_series: int) -> list[str]:
    small, large = (medians(round_costs[index] for round_costs in costs) for index in (0, 1))
    return [
        f"- A step of DLinear (10 % quantile of CPU time): {small['cpu_p10']:.2f} ms on 100 x 200, {large['cpu_p10']:.2f} ms "
        f"on {n_series:,} x 2,000 ({large['cpu_p10'] / small['cpu_p10'] - 1:+.0%}; mean over all steps "
        f"{large['cpu'] / small['cpu'] - 1:+.0%}; required: at most 15 %). The first step of the latter follows after "
        f"{large['start']:.1f} s, {large['start_cpu']:.1f} CPU s."
    ]


if __name__ == "__main__":
    sys.exit(main())
