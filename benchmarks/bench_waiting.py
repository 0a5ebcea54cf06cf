"""How OpenMP's idle threads should wait: seconds of LightGBM and torch under each policy, on a quiet machine and beside others.

    python benchmarks/bench_waiting.py [--rounds 3] [--busy 0 1 2]

Every figure is from a process of its own: policies are read once, when a library is loaded. Policies take turns within a round,
so that what else the machine does meets all of them; the best round counts for the quiet machine, the median beside others.
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
"""Of the last but first, the libraries are imported before deepforecast could set anything: as after `import lightgbm`."""
WORK = ("lightgbm", "torch")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--child", choices=WORK)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(globals()[f"work_{given.child}"]()))
        return 0
    found: dict[tuple[str, str, int], list[float]] = {}
    for busy in given.busy:
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        try:
            for _ in range(given.rounds):
                for work in WORK:
                    for policy in POLICIES:
                        found.setdefault((work, policy, busy), []).append(child(work, policy))
                        print(busy, work, policy, f"{found[work, policy, busy][-1]:.2f}", file=sys.stderr, flush=True)
        finally:
            for other in others:
                other.kill()
    lines = report(given, found)
    print("\n".join(lines))
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def child(work: str, policy: str) -> float:
    """Seconds by the clock of some work under a policy."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "KMP_"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--child", work], check=True, stdout=subprocess.PIPE, text=True,
        env={**plain, **POLICIES[policy]},
    )  # fmt: skip
    return float(json.loads(done.stdout.splitlines()[-1]))


def work_lightgbm() -> float:
    """A fit and a forecast of 300 series of 300, with a model fitted once before."""
    import numpy as np
    import pandas as pd

    if os.environ.get("FIRST"):
        import lightgbm  # noqa: F401
    from deepforecast import LightGBM

    y = np.random.default_rng(0).normal(size=(300, 300)).cumsum(axis=1)
    stamps = np.tile(pd.date_range("2020-01-01", periods=300), 300)
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(300), 300), "ds": stamps, "y": y.reshape(-1)})
    model = LightGBM(horizon=24, n_estimators=100).fit(frame[frame["unique_id"] < 3])
    start = time.perf_counter()
    model.fit(frame).predict()
    return time.perf_counter() - start


def work_torch() -> float:
    """Twenty steps of an LSTM of 64 on 256 windows of 96 rows, after three others."""
    from deepforecast.core.threads import passive_waiting

    if os.environ.get("FIRST"):
        import torch
    with passive_waiting("torch"):
        import torch
    torch.manual_seed(0)
    lstm, head = torch.nn.LSTM(horizon=1, season_length=64, batch_first=True), torch.nn.Linear(64, 1)
    steps = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
    rows = torch.randn(256, 96, 1)
    began = []
    for _ in range(23):
        began.append(time.perf_counter())
        steps.zero_grad()
        (head(lstm(rows)[0][:, -1]) ** 2).mean().backward()
        steps.step()
    return time.perf_counter() - began[3]


def report(given: argparse.Namespace, found: dict[tuple[str, str, int], list[float]]) -> list[str]:
    heads = ["no other of ours" if not busy else f"beside {busy} busy" for busy in given.busy]
    lines = [
        "# How idle threads wait",
        "",
        f"Seconds by the clock: LightGBM's fit and forecast of 300 series of 300 with 100 trees; 20 steps of an LSTM by torch. "
        f"{given.rounds} rounds, {os.cpu_count()} cores; load of the machine before: {os.getloadavg()[1]:.1f}.",
    ]
    for work in WORK:
        lines += ["", f"| {work} | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
        for policy in POLICIES:
            seconds = [(min if not busy else statistics.median)(found[work, policy, busy]) for busy in given.busy]
            lines.append(f"| {policy} | {' | '.join(f'{one:.2f}' for one in seconds)} |")
    return [*lines, "", f"Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}."]


if __name__ == "__main__":
    sys.exit(main())
