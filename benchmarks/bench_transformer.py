"""Transformer compared with a plain loop around torch.nn.Transformer and with other libraries.

    python benchmarks/bench_transformer.py [--rounds 3] [--steps 40] [--threads 1] [--quick]

Measured are training, autoregressive forecasts and sample paths: d_model 64, 4 heads, 2 + 2 layers, feedforward 256, input
96, horizon 24, batch size 256, mean absolute error, point forecasts; with the default dropout of torch, 0.1, and without.
Every run is a separate process; runs alternate. CPU seconds are compared, so the machine may be under load (pin the process
to a core then: taskset -c 0). The plain loop uses torch with its default settings; deepforecast is called by its public fit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from bench_neural_predict import timed
from bench_neural_step import BATCH, HORIZON, INPUT, mase, step_statistics, train_loop
from common_neural import Measurement, child, medians, peer, walks, write

FEEDFORWARD = 256
DROPOUT = (0.1, 0.0)
NETWORK_SIZE: dict[str, Any] = {"d_model": 64, "n_heads": 4, "n_layers": 2, "dim_feedforward": FEEDFORWARD, "input_size": INPUT}
VARIANTS: dict[str, dict[str, Any]] = {
    "rows": {"output": "autoregressive", "patch_length": 1},
    "patches, autoregressive": {"output": "autoregressive", "patch_length": 16},
    "rows, direct": {"patch_length": 1},
    "patches, direct": {"patch_length": 16},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one round of few steps")
    parser.add_argument("--peers", nargs="*", default=["neuralforecast", "darts"])
    parser.add_argument("--child", nargs=2)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(globals()[args.child[0]](**json.loads(args.child[1]))))
        return 0
    if args.quick:
        args.rounds, args.steps = 1, 14
    os.environ.update(OMP_NUM_THREADS=str(args.threads), OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    settings = {"steps": args.steps, "dropout": list(DROPOUT)}
    peer_settings = {**settings, "series": 100, "length": 2000, "threads": args.threads, "feedforward": FEEDFORWARD}
    runs: dict[str, list[dict[str, Measurement]]] = {}
    for _ in range(args.rounds):
        for name in ("fit_variants", "plain_loop"):
            runs.setdefault(name, []).append(child(__file__, name, settings))
        runs.setdefault("forecast_cost", []).append({"all": child(__file__, "forecast_cost", {})})
        if "neuralforecast" in args.peers:
            runs.setdefault("neuralforecast", []).append(peer("transformer_neuralforecast.py", "neuralforecast", peer_settings))
        if "darts" in args.peers:
            darts_settings = {**peer_settings, "series": 1000, "length": 200}
            runs.setdefault("darts", []).append({"all": peer("transformer_darts.py", "darts", darts_settings)})
    write("transformer", report(args, runs), args.quick)
    return 0


# -- children ------------------------------------------------------------------------------------------------------------------


def make_model(**params: Any) -> Any:
    import deepforecast

    return deepforecast.Transformer(
        horizon=HORIZON, **{**NETWORK_SIZE, "calendar": None, "head": "point", "batch_size": BATCH, **params}
    )


def fit_variants(steps: int, dropout: list[float]) -> dict[str, Measurement]:
    """Measurements of the public fit of each variant; the first one with each dropout rate."""
    import pytorch_lightning as pl

    class Clock(pl.Callback):
        def __init__(self) -> None:
            self.step_times: list[tuple[float, float]] = []

        def on_train_batch_end(self, *_: Any) -> None:
            self.step_times.append((time.perf_counter(), time.process_time()))

    frame, measurements = walks(100, 2000), {}
    is_test = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
    make_model(max_steps=1).fit(frame[frame["unique_id"] < 2])  # imports
    runs = [*((rate, "rows") for rate in dropout), *((0.0, variant) for variant in list(VARIANTS)[1:])]
    for rate, variant in runs:
        clock, start = Clock(), (time.perf_counter(), time.process_time())
        model = make_model(max_steps=steps, dropout=rate, trainer={"callbacks": [clock]}, **VARIANTS[variant])
        model.fit(frame[~is_test])
        test_mase = mase(frame, is_test, model.predict()["Transformer"].to_numpy())
        timing = {**step_statistics(clock.step_times, start), "mase": test_mase}
        measurements[str(rate) if variant == "rows" else variant] = timing
    return measurements


def plain_loop(steps: int, dropout: list[float]) -> dict[str, Measurement]:
    """A straightforward loop around torch.nn.Transformer on prebuilt tensors, with teacher forcing."""
    import torch

    measurements = {}
    for dropout_rate in dropout:
        inputs = [torch.randn(BATCH, INPUT + HORIZON, 1) for _ in range(8)]
        batches = [(batch, batch[:, INPUT:, 0]) for batch in inputs]
        body = _Plain(dropout_rate)
        measurements[str(dropout_rate)] = train_loop(body, batches, steps, torch.optim.AdamW(body.parameters(), lr=1e-3))
    return measurements


def _Plain(dropout: float) -> Any:
    import torch
    from torch import nn

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.steps, self.out = nn.Linear(1, 64), nn.Linear(1, 64), nn.Linear(64, 1)
            self.layers = nn.Transformer(64, 4, 2, 2, FEEDFORWARD, dropout, batch_first=True)
            self.causal_mask = nn.Transformer.generate_square_subsequent_mask(HORIZON)

        def features(self, windows: Any) -> Any:
            rows, decoder_inputs = self.rows(windows[:, :INPUT]), self.steps(windows[:, INPUT - 1 : -1])
            return self.out(self.layers(rows, decoder_inputs, tgt_mask=self.causal_mask, tgt_is_causal=True))

    return torch.nn.Module.train(Plain())


def forecast_cost() -> Measurement:
    """Timings of autoregressive forecasts: 1,000 series, one series, single steps, sample paths and greedy passes."""
    frame = walks(1000, 200)
    hundred_series = frame[frame["unique_id"] < 100]
    single_series = frame[frame["unique_id"] == 0].reset_index(drop=True)
    params: dict[str, Any] = {"output": "autoregressive", "max_steps": 2}
    many_model, single_model = make_model(**params).fit(frame), make_model(**params).fit(single_series)
    sampling_params = {**params, "head": "quantiles", "decoding": "greedy"}
    sampling_model = make_model(**sampling_params).fit(hundred_series)
    row_model = make_model(**sampling_params, patch_length=1).fit(hundred_series)
    timings = {"many": timed(many_model.predict, 5), "single": timed(single_model.predict, 100)}
    timings["greedy"] = timed(sampling_model.predict, 10)
    timings |= {"rows_greedy": timed(row_model.predict, 10), "rows_paths": timed(lambda: row_model.simulate(100), 1)}
    timings["paths"] = timed(lambda: sampling_model.simulate(100), 1)
    measurement: Measurement = {
        f"{call}_{statistic}": value for call, timing in timings.items() for statistic, value in timing.items()
    }
    return measurement | decoding_step_cost(many_model.network_)


def decoding_step_cost(network: Any) -> Measurement:
    """CPU milliseconds of the second and the last decoding step of 1,000 windows: minimum over repetitions."""
    import torch

    from deepforecast.nn.batch import Inputs

    rows = torch.randn(1000, INPUT)
    inputs = Inputs(rows, torch.ones_like(rows), *(rows.new_zeros(1000, *shape) for shape in ((INPUT, 0), (HORIZON, 0), (0,))))
    min_milliseconds = [float("inf")] * HORIZON
    with torch.inference_mode():
        for _ in range(8):
            state = network.initial_state(inputs)
            for step in range(HORIZON):
                start = time.process_time()
                _, state = network.step(state, rows[:, -1], inputs.future_features[:, step], step)
                min_milliseconds[step] = min(min_milliseconds[step], 1e3 * (time.process_time() - start))
    return {"second_step": min_milliseconds[1], "last_step": min_milliseconds[-1]}


# -- the report ----------------------------------------------------------------------------------------------------------------


def report(args: Any, runs: dict[str, list[dict[str, Measurement]]]) -> list[str]:
    results = {
        name: {key: medians(run[key] for run in measurements) for key in measurements[0]} for name, measurements in runs.items()
    }
    lines = [
        "# Transformer compared with torch.nn.Transformer and with other libraries",
        "",
        f"d_model 64, 4 heads, 2 + 2 layers, feedforward {FEEDFORWARD}, input {INPUT}, horizon {HORIZON}, batch size {BATCH}, "
        f"{args.threads} thread(s); medians of {args.rounds} alternating runs of {args.steps} steps.",
        "",
        "| | dropout | step, wall ms | step, CPU ms | MASE |",
        "|---|---|---|---|---|",
    ]
    for name, label in (("fit_variants", "deepforecast"), ("plain_loop", "plain loop"), ("neuralforecast", "neuralforecast")):
        for key, timing in results.get(name, {}).items():
            mase_cell = f"{timing['mase']:.3f}" if "mase" in timing else ""
            is_rate = key in ("0.1", "0.0")
            variant = "" if not is_rate else ", rows, autoregressive" if name == "fit_variants" else ""
            row_label = f"{label}{variant}" if is_rate else f"{label}, {key}"
            rate = key if is_rate else "0.0"
            lines.append(f"| {row_label} | {rate} | {timing['wall']:.0f} | {timing['cpu']:.0f} | {mase_cell} |")
    return [*lines, "", *required_ratios(results)]


def required_ratios(results: dict[str, dict[str, Measurement]]) -> list[str]:
    """The ratios of CPU times with their required values."""
    ours, lines = results["fit_variants"], []
    for name, label, minimum in (("plain_loop", "the plain loop", 1.35), ("neuralforecast", "neuralforecast", 1.2)):
        for rate in map(str, DROPOUT):
            if name in results:
                ratio = results[name][rate]["cpu"] / ours[rate]["cpu"]
                lines.append(f"- Step, dropout {rate}: {ratio:.2f} times faster than {label}; required: at least {minimum}.")
    lines += [
        f"- {variant}: a step is {ours['0.0']['cpu'] / ours[variant]['cpu']:.1f} times faster than autoregressive rows; "
        "required: 8."
        for variant in ("patches, direct", "patches, autoregressive")
    ]
    costs = results["forecast_cost"]["all"]
    if "darts" in results:
        ratio = results["darts"]["all"]["cpu"] / costs["many_cpu"]
        lines.append(
            f"- {HORIZON} steps of 1,000 series: {costs['many_cpu']:.0f} ms, {ratio:.1f} times faster than darts; required: 5."
        )
    lines += [
        f"- The last of these steps takes {costs['last_step']:.2f} ms, the second one {costs['second_step']:.2f} ms.",
        f"- One series, after a first call: {costs['single_cpu']:.2f} CPU ms, {costs['single_best']:.2f} ms at best; required: "
        "at most 6.",
        f"- 100 paths of 100 series: {costs['paths_cpu']:.0f} ms, {costs['paths_cpu'] / costs['greedy_cpu'] / 100:.2f} of 100 "
        f"greedy passes, {costs['rows_paths_cpu'] / costs['rows_greedy_cpu'] / 100:.2f} with patch_length=1; required: at most "
        "0.3.",
    ]
    return lines


if __name__ == "__main__":
    sys.exit(main())
