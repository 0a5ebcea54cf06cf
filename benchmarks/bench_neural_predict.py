"""Forecasts of a trained network beside the bare forward, of many series and of one; and the memory a fit takes.

    python benchmarks/bench_neural_predict.py [--rounds 5] [--quick]

An LSTM of 64, input 96, horizon 24, one point a step. Many: 10,000 series at once. One: a frame of one series in, a frame out,
warm; with where the time goes, by own functions. Memory: the most a process that fits 10,000 x 2,000 has beyond the frame.
"calm" is the CPU time that a tenth of the calls stay below.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from beside_neural import Said, child, memory_now, middle, peak, peer, walks, write

INPUT, HORIZON = 96, 24


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a round, a tenth of the series")
    parser.add_argument("--asleep", action="store_true", help="idle threads sleep: for a machine that does other work too")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(globals()[given.child[0]](**json.loads(given.child[1]))))
        return 0
    if given.quick:
        given.rounds, given.asleep = 1, True
    if given.asleep:
        os.environ.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    series = 1000 if given.quick else 10_000
    told = {"series": series, "length": 2000, "turns": 3 if given.quick else 7}
    runs: dict[str, list[Said]] = {}
    for turn in range(given.rounds):
        runs.setdefault("many", []).append(child(__file__, "many", {**told, "length": 200}))
        runs.setdefault("one", []).append(child(__file__, "one", {"turns": 100 if given.quick else 500}))
        if turn < 2:  # memory does not vary
            runs.setdefault("memory", []).append(child(__file__, "memory", told))
            if not given.no_peer:
                runs.setdefault("peer", []).append(peer("neural_predict_neuralforecast.py", "neuralforecast", told))
    write("neural_predict", report(given, runs, series), given.quick)
    return 0


# -- children ------------------------------------------------------------------------------------------------------------------


def fitted(frame: Any, steps: int = 2) -> Any:
    """The model, hardly trained: what it says does not count here."""
    import deepforecast

    model = deepforecast.LSTM(horizon=HORIZON, input_size=INPUT, head="point", calendar=None, max_steps=steps)
    return model.fit(frame)


def many(series: int, length: int, turns: int) -> Said:
    """predict() of all, beside the network's forward on prebuilt batches of as many rows, in turn."""
    model = fitted(walks(series, length))
    forward = bare(model, series)
    found = {"ours": timed(model.predict, turns), "bare": timed(forward, turns)}
    return {f"{who}_{what}": value for who, one in found.items() for what, value in one.items()}


def bare(model: Any, series: int) -> Callable[[], Any]:
    """The body of the network alone on prebuilt inputs: every core for many, one thread for one."""
    import torch

    from deepforecast.core.threads import limit_threads
    from deepforecast.models.neural._predict import HorizonForecaster
    from deepforecast.nn.batch import Inputs

    network = model.network_
    ahead = HorizonForecaster("", model.state_.standing, HORIZON, {})
    with torch.inference_mode():
        inputs = [
            network.inputs(
                ahead._make_batch(
                    ahead.recent_values[begin : begin + 512], np.arange(begin, min(begin + 512, series)), 0
                )
            )[0]
            for begin in range(0, series, 512)
        ]

    def forward() -> None:
        with torch.inference_mode():
            for one in inputs:
                network.features(one)

    def crowd() -> None:
        with limit_threads(os.cpu_count() or 1):
            forward()

    if series > 1:
        return crowd
    every = [getattr(inputs[0], one.name) for one in fields(Inputs)]
    inputs = [Inputs(*(None if one is None else one[:1] for one in every))]  # windows are padded to eight
    torch.set_num_threads(1)
    return forward


def one(turns: int) -> Said:
    """One series: predict() as it stands, and of the end of a frame that is given; and its bare forward."""
    frame = walks(100, 200)
    model = fitted(frame)
    history = frame[frame["unique_id"] == 0].reset_index(drop=True)
    single = fitted(history)
    calls = {"given": lambda: model.predict(frame=history), "standing": single.predict, "bare": bare(single, 1)}
    if hasattr(model, "predictor"):
        ask, values = model.predictor(), history["y"].to_numpy()
        calls["predictor"] = lambda: ask(values)
    found = {name: timed(call, turns) for name, call in calls.items()}
    profile = cProfile.Profile(timer=time.process_time_ns, timeunit=1e-9)
    profile.runcall(lambda: [calls["given"]() for _ in range(turns)])
    said: Said = {f"{who}_{what}": value for who, one in found.items() for what, value in one.items()}
    return said | {"profile": where(profile, turns)}


def where(profile: cProfile.Profile, turns: int) -> list[list[Any]]:
    """The functions of the project that take longest, all they call included: [name, calls, share of the whole]."""
    stats: Any = pstats.Stats(profile)
    whole = max(row[3] for row in stats.stats.values())
    own = [
        [f"{path.split('deepforecast/')[-1]}:{name}", calls // turns, took / whole]
        for (path, _, name), (_, calls, _, took, _) in stats.stats.items()
        if "/deepforecast/" in path
    ]
    return sorted(own, key=lambda row: -row[2])[:30]


def timed(call: Callable[[], Any], turns: int) -> dict[str, float]:
    """Milliseconds of a call: median and best of the wall, mean of the CPU and what a tenth stays below ("calm"); warm."""
    call(), call()
    wall, cpu = list[float](), list[float]()
    for _ in range(turns):
        begin, used = time.perf_counter(), time.process_time()
        call()
        wall.append(1e3 * (time.perf_counter() - begin))
        cpu.append(1e3 * (time.process_time() - used))
    calm = sorted(cpu)[len(cpu) // 10]
    return {"wall": statistics.median(wall), "best": min(wall), "cpu": statistics.mean(cpu), "calm": calm}


def memory(series: int, length: int, turns: int) -> Said:
    """Most memory of a fit, beyond what the frame and the libraries take; wall of predict."""
    frame = walks(series, length)
    fitted(frame[frame["unique_id"] < 2])
    before = memory_now()
    model = fitted(frame, 20)
    return {"before": before, "peak": peak(), "predict": timed(model.predict, 2)["wall"]}


# -- the report ----------------------------------------------------------------------------------------------------------------


def report(given: Any, runs: dict[str, list[Said]], series: int) -> list[str]:
    crowd, alone, held = (middle(runs[name]) for name in ("many", "one", "memory"))
    lines = [
        "# Forecasts beside the bare forward, and the memory of a fit",
        "",
        f"An LSTM of 64, input {INPUT}, horizon {HORIZON}; medians of {given.rounds} runs.",
        "",
        "| | median ms | best ms | CPU ms | calm |",
        "|---|---|---|---|---|",
    ]
    labels = {"many": {"ours": f"predict, {series:,} series", "bare": "their bare forward"},
              "one": {"given": "one series, predict(frame=...)", "standing": "one series, predict()",
                      "predictor": "one series, predictor()", "bare": "its bare forward"}}  # fmt: skip
    for found, names in ((crowd, labels["many"]), (alone, labels["one"])):
        for who, label in names.items():
            if f"{who}_wall" in found:
                numbers = " | ".join(f"{found[f'{who}_{what}']:.2f}" for what in ("wall", "best", "cpu", "calm"))
                lines.append(f"| {label} | {numbers} |")
    lines += [
        "",
        f"- {series:,} series: {crowd['ours_cpu'] / crowd['bare_cpu']:.2f} times the CPU of the bare forward, "
        f"{crowd['ours_calm'] / crowd['bare_calm']:.2f} where it is calm, {crowd['ours_wall'] / crowd['bare_wall']:.2f} times "
        "its wall (asked: at most 1.1).",
        *(f"- One series through {what}: {alone[f'{who}_best']:.2f} ms at best, {alone[f'{who}_wall']:.2f} in the middle "
          f"(asked: at most {most}), {alone[f'{who}_calm'] / alone['bare_calm']:.1f} times the bare forward by calm CPU."
          for who, what, most in (("given", "predict(frame=...)", 0.8), ("predictor", "predictor()", 0.4))),
        f"- Most memory of a fit of {series:,} x 2,000: {held['peak']:.0f} MB, {held['peak'] - held['before']:.0f} more than "
        "before it.",
    ]
    if "peer" in runs:
        other = middle(runs["peer"])
        lines += [
            f"- neuralforecast's: {other['peak']:.0f} MB, {other['peak'] - other['before']:.0f} more than before it: ours "
            f"takes {held['peak'] / other['peak']:.2f} of its peak (asked: at most 0.5), "
            f"{(held['peak'] - held['before']) / (other['peak'] - other['before']):.2f} of what it adds. Its predict of all: "
            f"{other['predict']:.0f} ms (ours there: {held['predict']:.0f}).",
        ]
    lines += ["", "Where the time of one series goes (share, calls included; profiled, so Python weighs more):", ""]
    lines += ["| function | calls | share |", "|---|---|---|"]
    return lines + [f"| {name} | {calls} | {share:.1%} |" for name, calls, share in runs["one"][0]["profile"]]


if __name__ == "__main__":
    sys.exit(main())
