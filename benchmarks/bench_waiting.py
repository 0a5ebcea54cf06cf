"""Wait policies of idle OpenMP threads: seconds of LightGBM and torch, on an idle machine and with busy processes.

    python benchmarks/bench_waiting.py [--rounds 3] [--busy 0 1 2]

Every measurement is a separate process, since a policy is read when a library is loaded. Policies alternate within a round,
so that changes of the machine load affect all equally. The table shows the minimum over rounds without busy processes, and
the median with them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "waiting.md"
POLICIES: dict[str, dict[str, str]] = {
    "passive (what deepforecast sets)": {},
    "spinning (OpenMP's own default)": {"FIRST": "1"},
    "spinning 1,000 times": {"GOMP_SPINCOUNT": "1000"},
    "spinning 10,000 times": {"GOMP_SPINCOUNT": "10000"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
"""FIRST: the library is imported before deepforecast can set the policy, as after `import lightgbm`."""
WORK = ("lightgbm", "torch")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--child", choices=WORK)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(globals()[f"work_{args.child}"]()))
        return 0
    seconds: dict[tuple[str, str, int], list[float]] = {}
    for busy in args.busy:
        busy_processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        try:
            for _ in range(args.rounds):
                for work in WORK:
                    for policy in POLICIES:
                        seconds.setdefault((work, policy, busy), []).append(child(work, policy))
                        print(busy, work, policy, f"{seconds[work, policy, busy][-1]:.2f}", file=sys.stderr, flush=True)
        finally:
            for process in busy_processes:
                process.kill()
    lines = report(args, seconds)
    print("\n".join(lines))
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def child(work: str, policy: str) -> float:
    """Wall-clock seconds of a task under a policy, in a separate process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "KMP_"))}
    process = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--child", work], check=True, stdout=subprocess.PIPE, text=True,
        env={**environment, **POLICIES[policy]},
    )  # fmt: skip
    return float(json.loads(process.stdout.splitlines()[-1]))


def work_lightgbm() -> float:
    """Fit and forecast of 300 series of 300 values, after a first fit."""
    import numpy as np
    import pandas as pd

    if os.environ.get("FIRST"):
        import lightgbm  # noqa: F401
    from deepforecast import LightGBM

    y = np.random.default_rng(0).normal(size=(300, 300)).cumsum(axis=1)
    times = np.tile(pd.date_range("2020-01-01", periods=300), 300)
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(300), 300), "ds": times, "y": y.reshape(-1)})
    model = LightGBM(horizon=24, n_estimators=100).fit(frame[frame["unique_id"] < 3])
    start = time.perf_counter()
    model.fit(frame).predict()
    return time.perf_counter() - start


def work_torch() -> float:
    """20 training steps of an LSTM with 64 units on 256 windows of 96 rows, after three steps."""
    from deepforecast.core.threads import passive_waiting

    if os.environ.get("FIRST"):
        import torch
    with passive_waiting("torch"):
        import torch
    torch.manual_seed(0)
    lstm, head = torch.nn.LSTM(1, 64, batch_first=True), torch.nn.Linear(64, 1)
    optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
    inputs = torch.randn(256, 96, 1)
    step_starts = []
    for _ in range(23):
        step_starts.append(time.perf_counter())
        optimizer.zero_grad()
        (head(lstm(inputs)[0][:, -1]) ** 2).mean().backward()
        optimizer.step()
    return time.perf_counter() - step_starts[3]


def report(args: argparse.Namespace, seconds: dict[tuple[str, str, int], list[float]]) -> list[str]:
    headings = ["idle machine" if not busy else f"{busy} busy processes" for busy in args.busy]
    lines = [
        "# Wait policies of idle threads",
        "",
        f"Wall-clock seconds: fit and forecast of LightGBM with 100 trees on 300 series of 300 values; 20 steps of an LSTM in "
        f"torch. {args.rounds} rounds, {os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f}.",
    ]
    for work in WORK:
        lines += ["", f"| {work} | {' | '.join(headings)} |", "|---" * (len(headings) + 1) + "|"]
        for policy in POLICIES:
            cells = [(min if not busy else statistics.median)(seconds[work, policy, busy]) for busy in args.busy]
            lines.append(f"| {policy} | {' | '.join(f'{value:.2f}' for value in cells)} |")
    return [*lines, "", f"Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}."]


if __name__ == "__main__":
    sys.exit(main())
