"""The Transformer beside a plain loop around torch.nn.Transformer and beside peers: training, forecasts in turn, sample paths.

    python benchmarks/bench_transformer.py [--rounds 3] [--steps 40] [--threads 1] [--quick]

d_model 64, 4 heads, 2 + 2 layers, feedforward 256, input 96, horizon 24, 256 windows a step, mean absolute error, a point a
step; with torch's dropout of 0.1, and without. Every run is a process of its own, in turn. CPU seconds count: the machine may
do other work (there, pin it to a core: taskset -c 0). `plain` is torch as it comes, ours goes through the public fit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from bench_neural_predict import timed
from bench_neural_step import BATCH, HORIZON, INPUT, looped, mase, told_of
from beside_neural import Said, child, middle, peer, walks, write

FEEDFORWARD = 256
DROPOUT = (0.1, 0.0)
SIZES: dict[str, Any] = {"d_model": 64, "n_heads": 4, "n_layers": 2, "dim_feedforward": FEEDFORWARD, "input_size": INPUT}
EACH: dict[str, dict[str, Any]] = {
    "rows": {"output": "autoregressive", "patch_length": 1},
    "patches, in turn": {"output": "autoregressive", "patch_length": 16},
    "rows, at once": {"patch_length": 1},
    "patches, at once": {"patch_length": 16},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a round of few steps")
    parser.add_argument("--peers", nargs="*", default=["neuralforecast", "darts"])
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(globals()[given.child[0]](**json.loads(given.child[1]))))
        return 0
    if given.quick:
        given.rounds, given.steps = 1, 14
    os.environ.update(OMP_NUM_THREADS=str(given.threads), OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    told = {"steps": given.steps, "dropout": list(DROPOUT)}
    shared = {**told, "series": 100, "length": 2000, "threads": given.threads, "feedforward": FEEDFORWARD}
    runs: dict[str, list[dict[str, Said]]] = {}
    for _ in range(given.rounds):
        for name in ("ours", "plain"):
            runs.setdefault(name, []).append(child(__file__, name, told))
        runs.setdefault("ahead", []).append({"all": child(__file__, "ahead", {})})
        if "neuralforecast" in given.peers:
            runs.setdefault("neuralforecast", []).append(peer("transformer_neuralforecast.py", "neuralforecast", shared))
        if "darts" in given.peers:
            asked = {**shared, "series": 1000, "length": 200}
            runs.setdefault("darts", []).append({"all": peer("transformer_darts.py", "darts", asked)})
    write("transformer", report(given, runs), given.quick)
    return 0


# -- children ------------------------------------------------------------------------------------------------------------------


def model(**given: Any) -> Any:
    import deepforecast

    return deepforecast.Transformer(
        horizon=HORIZON, **{**SIZES, "calendar": None, "head": "point", "batch_size": BATCH, **given}
    )


def ours(steps: int, dropout: list[float]) -> dict[str, Said]:
    """Each way through the public fit; the first with each share of dropout."""
    import pytorch_lightning as pl

    class Clock(pl.Callback):
        def __init__(self) -> None:
            self.seen: list[tuple[float, float]] = []

        def on_train_batch_end(self, *_: Any) -> None:
            self.seen.append((time.perf_counter(), time.process_time()))

    frame, found = walks(100, 2000), {}
    held = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
    model(max_steps=1).fit(frame[frame["unique_id"] < 2])  # imported before
    for share, kind in [*((share, "rows") for share in dropout), *((0.0, kind) for kind in list(EACH)[1:])]:
        clock, begin = Clock(), (time.perf_counter(), time.process_time())
        one = model(max_steps=steps, dropout=share, trainer={"callbacks": [clock]}, **EACH[kind]).fit(frame[~held])
        said = mase(frame, held, one.predict()["Transformer"].to_numpy())
        found[str(share) if kind == "rows" else kind] = {**told_of(clock.seen, begin), "mase": said}
    return found


def plain(steps: int, dropout: list[float]) -> dict[str, Said]:
    """The obvious loop around torch.nn.Transformer on prebuilt tensors, the decoder taught by the values before."""
    import torch

    found = {}
    for share in dropout:
        drawn = [torch.randn(BATCH, INPUT + HORIZON, 1) for _ in range(8)]
        batches = [(one, one[:, INPUT:, 0]) for one in drawn]
        body = _Plain(share)
        found[str(share)] = looped(body, batches, steps, torch.optim.AdamW(body.parameters(), lr=1e-3))
    return found


def _Plain(dropout: float) -> Any:
    import torch
    from torch import nn

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.steps, self.out = nn.Linear(1, 64), nn.Linear(1, 64), nn.Linear(64, 1)
            self.layers = nn.Transformer(64, 4, 2, 2, FEEDFORWARD, dropout, batch_first=True)
            self.later = nn.Transformer.generate_square_subsequent_mask(HORIZON)

        def features(self, whole: Any) -> Any:
            rows, before = self.rows(whole[:, :INPUT]), self.steps(whole[:, INPUT - 1 : -1])
            return self.out(self.layers(rows, before, tgt_mask=self.later, tgt_is_causal=True))

    return torch.nn.Module.train(Plain())


def ahead() -> Said:
    """Forecasts in turn: of 1,000 series, of one, of each step, and paths beside greedy passes."""
    frame = walks(1000, 200)
    few, one = frame[frame["unique_id"] < 100], frame[frame["unique_id"] == 0].reset_index(drop=True)
    told: dict[str, Any] = {"output": "autoregressive", "max_steps": 2}
    many, single = model(**told).fit(frame), model(**told).fit(one)
    drawing = {**told, "head": "quantiles", "decoding": "greedy"}
    drawn, rows = model(**drawing).fit(few), model(**drawing, patch_length=1).fit(few)
    found = {"many": timed(many.predict, 5), "single": timed(single.predict, 100), "greedy": timed(drawn.predict, 10)}
    found |= {"rows_greedy": timed(rows.predict, 10), "rows_paths": timed(lambda: rows.simulate(100), 1)}
    found["paths"] = timed(lambda: drawn.simulate(100), 1)
    said: Said = {f"{who}_{what}": value for who, one in found.items() for what, value in one.items()}
    return said | each_step(many.network_)


def each_step(network: Any) -> Said:
    """CPU milliseconds of the second and of the last step of 1,000 windows: the least of several."""
    import torch

    from deepforecast.nn.batch import Inputs

    rows = torch.randn(1000, INPUT)
    inputs = Inputs(rows, torch.ones_like(rows), *(rows.new_zeros(1000, *shape) for shape in ((INPUT, 0), (HORIZON, 0), (0,))))
    least = [float("inf")] * HORIZON
    with torch.inference_mode():
        for _ in range(8):
            state = network.start(inputs)
            for step in range(HORIZON):
                begin = time.process_time()
                _, state = network.step(state, rows[:, -1], inputs.future_features[:, step], step)
                least[step] = min(least[step], 1e3 * (time.process_time() - begin))
    return {"second_step": least[1], "last_step": least[-1]}


# -- the report ----------------------------------------------------------------------------------------------------------------


def report(given: Any, runs: dict[str, list[dict[str, Said]]]) -> list[str]:
    held = {who: {key: middle(one[key] for one in found) for key in found[0]} for who, found in runs.items()}
    lines = [
        "# The Transformer beside torch.nn.Transformer and beside peers",
        "",
        f"d_model 64, 4 heads, 2 + 2 layers, feedforward {FEEDFORWARD}, input {INPUT}, horizon {HORIZON}, {BATCH} windows a "
        f"step, {given.threads} thread(s); medians of {given.rounds} runs of {given.steps} steps, in turn.",
        "",
        "| | dropout | step, wall ms | step, CPU ms | MASE after |",
        "|---|---|---|---|---|",
    ]
    for who in ("ours", "plain", "neuralforecast"):
        for key, one in held.get(who, {}).items():
            after, share = (f"{one['mase']:.3f}" if "mase" in one else ""), (key if key in ("0.1", "0.0") else "0.0")
            label = f"{who}, rows in turn" if who == "ours" and key == share else who if key == share else f"{who}, {key}"
            lines.append(f"| {label} | {share} | {one['wall']:.0f} | {one['cpu']:.0f} | {after} |")
    return [*lines, "", *asked(held)]


def asked(held: dict[str, dict[str, Said]]) -> list[str]:
    """The figures that are asked for, by CPU."""
    mine, lines = held["ours"], []
    for who, least in (("plain", 1.35), ("neuralforecast", 1.2)):
        for share in map(str, DROPOUT):
            if who in held:
                ratio = held[who][share]["cpu"] / mine[share]["cpu"]
                lines.append(f"- A step, dropout {share}: {ratio:.2f} times faster than {who}'s; asked: at least {least}.")
    lines += [
        f"- {kind}: a step is {mine['0.0']['cpu'] / mine[kind]['cpu']:.1f} times cheaper than of rows in turn; asked: 8."
        for kind in ("patches, at once", "patches, in turn")
    ]
    one = held["ahead"]["all"]
    if "darts" in held:
        ratio = held["darts"]["all"]["cpu"] / one["many_cpu"]
        lines.append(f"- {HORIZON} steps of 1,000 series: {one['many_cpu']:.0f} ms, {ratio:.1f} times darts' speed; asked: 5.")
    lines += [
        f"- The last of them costs {one['last_step']:.2f} ms, the second {one['second_step']:.2f}.",
        f"- One series, warm: {one['single_cpu']:.2f} CPU ms, at best {one['single_best']:.2f}; asked: at most 6.",
        f"- 100 paths of 100 series: {one['paths_cpu']:.0f} ms, {one['paths_cpu'] / one['greedy_cpu'] / 100:.2f} of 100 greedy "
        f"passes, {one['rows_paths_cpu'] / one['rows_greedy_cpu'] / 100:.2f} with single rows; asked: at most 0.3.",
    ]
    return lines


if __name__ == "__main__":
    sys.exit(main())
