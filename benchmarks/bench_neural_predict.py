"""Run time of forecasts of a trained network compared with its bare forward pass, and memory of a fit.

    python benchmarks/bench_neural_predict.py [--rounds 5] [--quick]
    python benchmarks/bench_neural_predict.py --latency [--rounds 20] [--earlier FOLDER]

An LSTM with 64 units, input 96, horizon 24, point forecasts. Measured are 10,000 series at once; one series, from frame
to frame, after a first call, with a profile by functions of deepforecast; and the peak memory of a fit of 10,000 series
of 2,000 values. The 10 % quantile of the CPU time is less affected by other processes than the mean.

`--latency` measures one warm forecast of an LSTM at its defaults in all forms, its network alone, other models and many
series, on one thread: CPU ms, medians of interleaved rounds. With `--earlier`, the folder of another version of the package,
its process takes turns with that of this version, so that both are measured under the same load.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
from common_neural import Measurement, child, current_memory, medians, peak_memory, peer, walks, write

INPUT, HORIZON = 96, 24


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round with a tenth of the series")
    parser.add_argument("--asleep", action="store_true", help="passive OpenMP waiting, for machines under load")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--latency", action="store_true", help="one warm forecast only")
    parser.add_argument("--earlier", help="folder with another version of the package, for --latency")
    parser.add_argument("--child", nargs=2)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(globals()[args.child[0]](**json.loads(args.child[1]))))
        return 0
    if args.latency:
        write("neural_latency", latency_report(args.earlier, 2 if args.quick else args.rounds), args.quick)
        return 0
    if args.quick:
        args.rounds, args.asleep = 1, True
    if args.asleep:
        os.environ.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    series = 1000 if args.quick else 10_000
    settings = {"series": series, "length": 2000, "repeats": 3 if args.quick else 7}
    runs: dict[str, list[Measurement]] = {}
    for round_number in range(args.rounds):
        runs.setdefault("many_series", []).append(child(__file__, "many_series", {**settings, "length": 200}))
        runs.setdefault("one_series", []).append(child(__file__, "one_series", {"repeats": 100 if args.quick else 500}))
        if round_number < 2:  # memory does not vary
            runs.setdefault("memory", []).append(child(__file__, "memory", settings))
            if not args.no_peer:
                runs.setdefault("peer", []).append(peer("neural_predict_neuralforecast.py", "neuralforecast", settings))
    write("neural_predict", report(args, runs, series), args.quick)
    return 0


# -- children ------------------------------------------------------------------------------------------------------------------


def fit_model(frame: Any, steps: int = 2) -> Any:
    """A model trained for a few steps; its accuracy does not matter here."""
    import deepforecast

    model = deepforecast.LSTM(horizon=HORIZON, input_size=INPUT, head="point", calendar=None, max_steps=steps)
    return model.fit(frame)


def many_series(series: int, length: int, repeats: int) -> Measurement:
    """Timings of predict() of all series and of the forward pass on prebuilt batches."""
    model = fit_model(walks(series, length))
    forward = bare_forward(model, series)
    timings = {"predict": timed(model.predict, repeats), "bare": timed(forward, repeats)}
    return {f"{call}_{statistic}": value for call, timing in timings.items() for statistic, value in timing.items()}


def bare_forward(model: Any, series: int) -> Callable[[], Any]:
    """The forward pass of the network on prebuilt inputs: on all cores for many series, on one thread for one."""
    import torch

    from deepforecast.core.threads import limit_threads
    from deepforecast.models.neural._horizon_forecaster import HorizonForecaster
    from deepforecast.nn.batch import Inputs

    network = model.network_
    forecaster = HorizonForecaster("", model.state_.learned_with_series, HORIZON, {})
    windows = torch.from_numpy(forecaster.recent_values)
    with torch.inference_mode():
        inputs = [
            network.inputs(
                forecaster._make_batch(
                    windows[start : start + 512], np.arange(start, min(start + 512, series)), 0
                )
            )[0]
            for start in range(0, series, 512)
        ]

    def forward() -> None:
        with torch.inference_mode():
            for batch_inputs in inputs:
                network.features(batch_inputs)

    def forward_on_all_cores() -> None:
        with limit_threads(os.cpu_count() or 1):
            forward()

    if series > 1:
        return forward_on_all_cores
    tensors = [getattr(inputs[0], field.name) for field in fields(Inputs)]
    inputs = [Inputs(*(None if tensor is None else tensor[:1] for tensor in tensors))]  # batches are padded to 8 windows
    torch.set_num_threads(1)
    return forward


def one_series(repeats: int) -> Measurement:
    """Timings of predict() and predict(frame=...) of one series, and of the forward pass, with a profile."""
    frame = walks(100, 200)
    model = fit_model(frame)
    history = frame[frame["unique_id"] == 0].reset_index(drop=True)
    single_model = fit_model(history)
    calls = {"frame": lambda: model.predict(frame=history), "fitted": single_model.predict}
    calls["bare"] = bare_forward(single_model, 1)
    if hasattr(model, "predictor"):
        predictor, values = model.predictor(), history["y"].to_numpy()
        calls["predictor"] = lambda: predictor(values)
    timings = {name: timed(call, repeats) for name, call in calls.items()}
    profile = cProfile.Profile(timer=time.process_time_ns, timeunit=1e-9)
    profile.runcall(lambda: [calls["frame"]() for _ in range(repeats)])
    measurement: Measurement = {
        f"{call}_{statistic}": value for call, timing in timings.items() for statistic, value in timing.items()
    }
    return measurement | {"profile": slowest_functions(profile, repeats)}


def slowest_functions(profile: cProfile.Profile, repeats: int) -> list[list[Any]]:
    """The slowest functions of deepforecast, including called functions: [name, calls, share of the total time]."""
    stats: Any = pstats.Stats(profile)
    total = max(row[3] for row in stats.stats.values())
    functions = [
        [f"{path.split('deepforecast/')[-1]}:{name}", calls // repeats, cumulative / total]
        for (path, _, name), (_, calls, _, cumulative, _) in stats.stats.items()
        if "/deepforecast/" in path
    ]
    return sorted(functions, key=lambda row: -row[2])[:30]


def timed(call: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Milliseconds of a call: median and minimum of wall-clock time, mean and 10 % quantile of CPU time."""
    call(), call()
    wall, cpu = list[float](), list[float]()
    for _ in range(repeats):
        start, cpu_start = time.perf_counter(), time.process_time()
        call()
        wall.append(1e3 * (time.perf_counter() - start))
        cpu.append(1e3 * (time.process_time() - cpu_start))
    cpu_p10 = sorted(cpu)[len(cpu) // 10]
    return {"wall": statistics.median(wall), "best": min(wall), "cpu": statistics.mean(cpu), "cpu_p10": cpu_p10}


def memory(series: int, length: int, repeats: int) -> Measurement:
    """Memory before a fit, its peak during the fit, and wall-clock time of predict."""
    frame = walks(series, length)
    fit_model(frame[frame["unique_id"] < 2])
    before = current_memory()
    model = fit_model(frame, 20)
    return {"before": before, "peak": peak_memory(), "predict": timed(model.predict, 2)["wall"]}


# -- latency of one forecast ---------------------------------------------------------------------------------------------------

LATENCY_ROWS = {
    "frame": "predict(frame=...)",
    "frame_level": "predict(frame=..., level=[80])",
    "fitted": "predict()",
    "fitted_level": "predict(level=[80])",
    "predictor": "predictor()",
    "network": "network alone, scaling included",
    "bare": "bare torch: its LSTM and linear layers",
    "frame_1000": "predict(frame=...), 1,000 series",
    "frame_10000": "predict(frame=...), 10,000 series",
    "seasonal_naive": "SeasonalNaive, predict(frame=...)",
    "auto_ets": "AutoETS, predict(frame=...)",
    "light_gbm": "LightGBM, predict(frame=...)",
}
SLOW_ROWS = {"frame_1000": 3, "frame_10000": 1}  # number of calls per round, 25 of the others


def latency_calls() -> dict[str, Callable[[], Any]]:
    """The calls to measure, by the keys of `LATENCY_ROWS`."""
    import torch

    import deepforecast
    from deepforecast.models.neural._horizon_forecaster import make_forecaster

    torch.set_num_threads(1)
    history, panel = walks(1, 200), walks(10_000, 200)
    model = deepforecast.LSTM(horizon=HORIZON, input_size=INPUT, hidden_size=64, max_steps=2).fit(history)
    predictor, values, last_time = model.predictor(), history["y"].to_numpy(), history["ds"].iloc[-1]
    forecaster = make_forecaster(model, model.state_.learned_with_series, HORIZON, {})
    with torch.inference_mode():
        batch = forecaster._make_batch(forecaster.windows, np.arange(1), 0)
        inputs = model.network_.inputs(batch)[0]
    others: dict[str, Any] = {
        "seasonal_naive": deepforecast.SeasonalNaive(horizon=HORIZON),
        "auto_ets": deepforecast.AutoETS(horizon=HORIZON),
        "light_gbm": deepforecast.LightGBM(horizon=HORIZON),
    }
    others = {name: other.fit(history) for name, other in others.items()}
    thousand = panel[panel["unique_id"] < 1000]
    return {
        "frame": lambda: model.predict(frame=history),
        "frame_level": lambda: model.predict(frame=history, level=[80]),
        "fitted": model.predict,
        "fitted_level": lambda: model.predict(level=[80]),
        "predictor": lambda: predictor(values, last_time=last_time),
        "network": torch.inference_mode()(lambda: model.network_(batch)),
        "bare": torch.inference_mode()(lambda: model.network_.body.features(inputs)),
        "frame_1000": lambda: model.predict(frame=thousand),
        "frame_10000": lambda: model.predict(frame=panel),
        **{name: partial(other.predict, frame=history) for name, other in others.items()},
    }


def latency() -> Measurement:
    """Time the calls once for each line of the standard input, and answer with their CPU times in ms as a line of JSON."""
    calls = latency_calls()
    for call in calls.values():
        call(), call()
    for _ in sys.stdin:
        times: dict[str, list[float]] = {}
        for name, call in calls.items():
            call()  # the caches of the processor have those of the call before
            for _ in range(SLOW_ROWS.get(name, 25)):
                start = time.process_time_ns()
                call()
                times.setdefault(name, []).append((time.process_time_ns() - start) / 1e6)
        print(json.dumps(times), flush=True)
    return {}


def latency_report(earlier: str | None, rounds: int) -> list[str]:
    """A table of the calls, with a column of an earlier version of the package."""
    versions = {"CPU ms": os.environ.get("PYTHONPATH", "")} | ({"earlier": earlier} if earlier else {})
    processes: dict[str, Any] = {}
    times = {label: dict[str, list[float]]() for label in versions}
    for label, folder in versions.items():
        env = os.environ | {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "ignore", __file__, "--child", "latency", "{}"]
        processes[label] = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for _ in range(rounds):
        for label, process in processes.items():
            print("go", file=process.stdin, flush=True)  # the next process waits for the answer of this one
            for name, values in json.loads(process.stdout.readline()).items():
                times[label].setdefault(name, []).extend(values)
    for process in processes.values():
        process.communicate()
    header = " | ".join(f"{label} | 10 % quantile" for label in versions)
    lines = [
        "# Latency of one warm forecast",
        "",
        f"LSTM(horizon={HORIZON}, input_size={INPUT}, hidden_size=64) at its defaults, one series of 200 values; one thread; CPU ms,",
        f"medians and 10 % quantiles of {rounds} interleaved rounds. The network runs on 4 windows, to which batches are padded.",
        "",
        f"| | {header} |" + (" ratio |" if earlier else ""),
        "|---" * (2 * len(versions) + 1 + bool(earlier)) + "|",
    ]
    for name, title in LATENCY_ROWS.items():
        quantiles = [np.quantile(times[label][name], [0.5, 0.1]) for label in versions]
        cells = [f"{value:.2f}" for pair in quantiles for value in pair]
        cells += [f"{quantiles[0][1] / quantiles[1][1]:.2f}"] if earlier else []
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines + (["", "The ratio is that of the 10 % quantiles, which other processes disturb least."] if earlier else [])


# -- the report ----------------------------------------------------------------------------------------------------------------


def report(args: Any, runs: dict[str, list[Measurement]], series: int) -> list[str]:
    many, one, fit = (medians(runs[name]) for name in ("many_series", "one_series", "memory"))
    lines = [
        "# Run time of forecasts compared with the bare forward pass, and memory of a fit",
        "",
        f"An LSTM with 64 units, input {INPUT}, horizon {HORIZON}; medians of {args.rounds} runs.",
        "",
        "| | median ms | best ms | CPU ms | CPU ms, 10 % quantile |",
        "|---|---|---|---|---|",
    ]
    labels = {"many": {"predict": f"predict, {series:,} series", "bare": "bare forward pass of these"},
              "one": {"frame": "one series, predict(frame=...)", "fitted": "one series, predict()",
                      "predictor": "one series, predictor()", "bare": "bare forward pass of it"}}  # fmt: skip
    for timings, names in ((many, labels["many"]), (one, labels["one"])):
        for call, label in names.items():
            if f"{call}_wall" in timings:
                cells = " | ".join(f"{timings[f'{call}_{column}']:.2f}" for column in ("wall", "best", "cpu", "cpu_p10"))
                lines.append(f"| {label} | {cells} |")
    lines += [
        "",
        f"- {series:,} series: {many['predict_cpu'] / many['bare_cpu']:.2f} times the CPU time of the bare forward pass, "
        f"{many['predict_cpu_p10'] / many['bare_cpu_p10']:.2f} times by the 10 % quantile, "
        f"{many['predict_wall'] / many['bare_wall']:.2f} times by wall-clock time (required: at most 1.1).",
        *(f"- One series with {method}: {one[f'{call}_best']:.2f} ms at best, median {one[f'{call}_wall']:.2f} (required: at "
          f"most {max_milliseconds}), {one[f'{call}_cpu_p10'] / one['bare_cpu_p10']:.1f} times the bare forward pass by the "
          "10 % quantile of CPU time."
          for call, method, max_milliseconds in (("frame", "predict(frame=...)", 0.8), ("predictor", "predictor()", 0.4))),
        f"- Peak memory of a fit of {series:,} x 2,000: {fit['peak']:.0f} MB, {fit['peak'] - fit['before']:.0f} MB more than "
        "before it.",
    ]  # fmt: skip
    if "peer" in runs:
        peer_fit = medians(runs["peer"])
        increase, peer_increase = fit["peak"] - fit["before"], peer_fit["peak"] - peer_fit["before"]
        lines += [
            f"- neuralforecast: {peer_fit['peak']:.0f} MB, {peer_increase:.0f} MB more than before the fit. The peak of "
            f"deepforecast is {fit['peak'] / peer_fit['peak']:.2f} of that (required: at most 0.5), its increase "
            f"{increase / peer_increase:.2f}. predict of all series takes {peer_fit['predict']:.0f} ms in neuralforecast, "
            f"{fit['predict']:.0f} ms in deepforecast.",
        ]
    lines += ["", "Profile of the forecast of one series (share including called functions; profiling slows down Python code):"]
    lines += ["", "| function | calls | share |", "|---|---|---|"]
    return lines + [f"| {name} | {calls} | {share:.1%} |" for name, calls, share in runs["one_series"][0]["profile"]]


if __name__ == "__main__":
    sys.exit(main())
