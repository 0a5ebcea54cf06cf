"""A training step beside a plain torch loop of the same network on prebuilt tensors, and beside the peers.

    python benchmarks/bench_neural_step.py [--rounds 3] [--steps 150] [--quick]

100 series of 2,000, input 96, horizon 24, 256 windows a step, mean absolute error, one point a step: an LSTM of 64, an MLP of
three layers of 512, DLinear. `plain` is torch as it comes; `kept` keeps freed buffers and uses the threads that ours does.
Every run is a process of its own, in turn. CPU seconds count both cores, and waiting threads where they spin: where the machine
does other work too, say --asleep, or the plain loop and the peers take ten times as long. "calm" is the CPU time that a tenth
of the steps stays below: what a step costs where nothing else empties the processor's caches meanwhile. `ours` is a fit as
anybody calls it; `called back` one with a callback of Lightning's, which is told of every step, as the peers' clocks are.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any

from beside_neural import PEERS, Said, child, middle, peer, walks, write

NETWORKS = ("LSTM", "MLP", "DLinear")
BATCH, INPUT, HORIZON = 256, 96, 24
WARM = 10  # steps not counted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--quick", action="store_true", help="a round of few steps, a smaller panel for the cost of a step")
    parser.add_argument("--asleep", action="store_true", help="idle threads sleep: for a machine that does other work too")
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(globals()[given.child[0]](**json.loads(given.child[1]))))
        return 0
    if given.quick:
        given.rounds, given.steps, given.asleep = 1, 30, True
    if given.asleep:
        os.environ.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    told = {"series": 100, "length": 2000, "steps": given.steps, "networks": given.networks}
    runs: dict[str, list[Said]] = {}
    for _ in range(given.rounds):
        for name in ("ours", "called_back", "plain", "kept"):
            runs.setdefault(name, []).append(child(__file__, name, told))
        for name in given.peers:
            runs.setdefault(name, []).append(peer(f"neural_step_{name}.py", name, told))
    small = {"series": 100, "length": 200, "steps": given.steps}
    large = {"series": 1000 if given.quick else 10_000, "length": 2000, "steps": given.steps}
    costs = [[child(__file__, "cost", size) for size in (small, large)] for _ in range(given.rounds)]
    write("neural_step", report(given, runs, costs, large["series"]), given.quick)
    return 0


# -- children ------------------------------------------------------------------------------------------------------------------


def ours(series: int, length: int, steps: int, networks: list[str]) -> Said:
    """Each network through the public fit."""
    return {name: trained(name, walks(series, length), steps) for name in networks}


def called_back(series: int, length: int, steps: int, networks: list[str]) -> Said:
    """The same, with a callback of Lightning's."""
    return {name: trained(name, walks(series, length), steps, called=True) for name in networks}


def cost(series: int, length: int, steps: int) -> Said:
    """CPU seconds of a step on panels of any size: the cheapest network, where gathering weighs most."""
    return trained("DLinear", walks(series, length), steps)


def trained(name: str, frame: Any, steps: int, called: bool = False) -> Said:
    """One fit: seconds to the first step (wall, and CPU), then each step's. Its clock is what a fit asks after each step
    whether to go on, or a callback."""
    import pytorch_lightning as pl

    import deepforecast
    from deepforecast.core.monitor import Monitor
    from deepforecast.data.panel import Panel

    seen: list[tuple[float, float]] = []

    def now() -> bool:
        seen.append((time.perf_counter(), time.process_time()))
        return False

    class Clock(pl.Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            now()

    model = getattr(deepforecast, name)(
        horizon=HORIZON, input_size=INPUT, head="point", loss="mae", calendar=None, batch_size=BATCH, max_steps=steps,
        trainer={"callbacks": [Clock()]} if called else None,
    )  # fmt: skip
    held = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
    before = frame[~held]
    model.clone(max_steps=1).fit(frame[frame["unique_id"] < 2])  # imported before
    seen.clear()
    begin = (time.perf_counter(), time.process_time())
    # As `fit` does.
    model.__dict__["state_"] = model._fit_panel(Panel.from_frame(before), Monitor(stop_when=None if called else now))
    return {**told_of(seen, begin), "mase": mase(frame, held, model.predict()[name].to_numpy())}


def told_of(seen: list[tuple[float, float]], begin: tuple[float, float]) -> Said:
    """Milliseconds of a step: wall (median) and CPU (mean, and what a tenth stays below); seconds to the first."""
    wall = [1e3 * (after[0] - before[0]) for before, after in zip(seen[WARM:-1], seen[WARM + 1 :], strict=True)]
    cpu = [1e3 * (after[1] - before[1]) for before, after in zip(seen[WARM:-1], seen[WARM + 1 :], strict=True)]
    found = {"wall": statistics.median(wall), "cpu": statistics.mean(cpu), "calm": sorted(cpu)[len(cpu) // 10]}
    return {**found, "start": seen[0][0] - begin[0], "start_cpu": seen[0][1] - begin[1]}


def mase(frame: Any, held: Any, forecast: Any) -> float:
    """Of the rows held out."""
    y, true = frame["y"].to_numpy().reshape(frame["unique_id"].nunique(), -1), frame["y"][held].to_numpy()
    naive = abs(y[:, 24:-HORIZON] - y[:, : -24 - HORIZON]).mean(1)
    return float((abs(true - forecast).reshape(len(naive), -1).mean(1) / naive).mean())


def plain(series: int, length: int, steps: int, networks: list[str]) -> Said:
    """The obvious loop on prebuilt tensors, torch as it comes."""
    import torch

    frame = walks(series, length)
    found = {}
    for name in networks:
        body, batches = prebuilt(name, frame)
        found[name] = looped(body, batches, steps, torch.optim.AdamW(body.parameters(), lr=1e-3))
    return found


def kept(series: int, length: int, steps: int, networks: list[str]) -> Said:
    """The same with buffers kept and the threads that ours uses."""
    from deepforecast.core.threads import allowed_threads, keep_buffers, limit_threads, passive_waiting
    from deepforecast.training.hardware import MIN_PARALLEL_WORK

    with passive_waiting("torch"):
        import torch
    frame = walks(series, length)
    found = {}
    for name in networks:
        body, batches = prebuilt(name, frame)
        work = sum(one.numel() for one in body.parameters()) * BATCH * (INPUT if name == "LSTM" else 1)
        with keep_buffers(), limit_threads(allowed_threads() if work >= MIN_PARALLEL_WORK else 1):
            found[name] = looped(body, batches, steps, torch.optim.AdamW(body.parameters(), lr=1e-3))
    return found


def prebuilt(name: str, frame: Any) -> tuple[Any, list[Any]]:
    """The body of ours, untrained, and eight batches as it sees them with what they are to give."""
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
            batches.append((inputs, scale.away(batch.target).float()))
    return network.body.train(), batches


def looped(body: Any, batches: list[Any], steps: int, optimizer: Any) -> Said:
    """zero_grad, forward, loss, backward, step."""
    begin, seen = (time.perf_counter(), time.process_time()), []
    for step in range(steps):
        inputs, target = batches[step % len(batches)]
        optimizer.zero_grad()
        loss = (body.features(inputs).squeeze(-1) - target).abs().mean()
        loss.backward()
        optimizer.step()
        seen.append((time.perf_counter(), time.process_time()))
    return told_of(seen, begin)


# -- the report ----------------------------------------------------------------------------------------------------------------


def report(given: Any, runs: dict[str, list[Said]], costs: list[list[Said]], many: int) -> list[str]:
    held = {who: {net: middle(one[net] for one in found) for net in found[0]} for who, found in runs.items()}
    lines = [
        "# A training step beside a plain torch loop, and beside peers",
        "",
        f"100 series x 2,000, input {INPUT}, horizon {HORIZON}, {BATCH} windows a step, points by mean absolute error; "
        f"medians of {given.rounds} runs of {given.steps} steps, in turn.",
        "",
        "| network | | step, wall ms | step, CPU ms | calm | start of fit to first step, s (CPU s) | MASE after |",
        "|---|---|---|---|---|---|---|",
    ]
    for net in given.networks:
        for who, found in held.items():
            if one := found.get(net):
                after = f"{one['mase']:.3f}" if "mase" in one else ""
                start = f"{one['start']:.2f} ({one['start_cpu']:.2f})" if after else ""
                numbers = " | ".join(f"{one[what]:.2f}" for what in ("wall", "cpu", "calm"))
                lines.append(f"| {net} | {who.replace('_', ' ')} | {numbers} | {start} | {after} |")
    lines += ["", *asked(held), *sizes(costs, many)]
    return lines


def asked(held: dict[str, Any]) -> list[str]:
    """The figures that are asked for, each by wall and by CPU."""
    wanted = [
        ("LSTM", "plain", "at least 1.8"), ("LSTM", "kept", "at least 1"), ("LSTM", "darts", "at least 2"),
        ("LSTM", "neuralforecast", "at least 3"), ("MLP", "plain", "at least 0.95"), ("MLP", "kept", ""),
        ("DLinear", "plain", ""), ("DLinear", "darts", ""), ("DLinear", "gluonts", ""), ("DLinear", "neuralforecast", ""),
    ]  # fmt: skip
    lines = []
    for net, who, least in wanted:
        if net in held["ours"] and net in held.get(who, {}):
            wall, cpu, calm = (held[who][net][what] / held["ours"][net][what] for what in ("wall", "cpu", "calm"))
            said = f"- {net}: {calm:.2f} times faster than {who}'s by calm CPU, {cpu:.2f} by CPU, {wall:.2f} by wall"
            lines.append(f"{said}{least and f'; asked: {least}'}.")
    if "DLinear" in held["ours"]:
        one = held["ours"]["DLinear"]
        lines.append(f"- DLinear: {one['calm']:.2f} calm CPU ms a step, {one['wall']:.2f} ms wall; asked: at most 1.2.")
    start, cpu = (max(one[what] for one in held["ours"].values()) for what in ("start", "start_cpu"))
    return [*lines, f"- Start of fit to first step: {start:.2f} s, {cpu:.2f} of CPU; asked: at most 0.2."]


def sizes(costs: list[list[Said]], many: int) -> list[str]:
    small, large = (middle(one[place] for one in costs) for place in (0, 1))
    return [
        f"- A step of DLinear: {small['calm']:.2f} calm CPU ms on 100 x 200, {large['calm']:.2f} on {many:,} x 2,000 "
        f"({large['calm'] / small['calm'] - 1:+.0%}; by all steps {large['cpu'] / small['cpu'] - 1:+.0%}; asked: 15 % at most)."
        f" First step after {large['start']:.1f} s there, {large['start_cpu']:.1f} of CPU."
    ]


if __name__ == "__main__":
    sys.exit(main())
