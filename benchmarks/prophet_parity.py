"""Parity of Prophet with the package `prophet`: values of the objective, forecasts and intervals on the same series.

    DEEPFORECAST_DATA=... python benchmarks/prophet_parity.py

The objective is that of Stan (minus the log posterior without constants): for prophet evaluated here on the design
matrix passed to Stan, for deepforecast as returned by the kernel. With --golden, writes tests/golden/prophet.json and
results/prophet_parity.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
GOLDEN = HERE.parent / "tests" / "golden" / "prophet.json"


def main() -> int:
    parser = argparse.ArgumentParser(description="Prophet and prophet: objectives and forecasts.")
    parser.add_argument("--golden", action="store_true", help="write the results of prophet for the tests")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cases_with_jobs = load_cases(Path(folder))
        Path(folder, "jobs.json").write_text(json.dumps([case["job"] for case in cases_with_jobs]), encoding="utf-8")
        command = [str(peer_python()), str(HERE / "peers" / "prophet_maximum.py"), str(Path(folder, "jobs.json")), folder]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        rows = [compare(case, dict(np.load(Path(folder, f"{case['job']['name']}.npz")))) for case in cases_with_jobs]
    table = pd.DataFrame(rows).drop(columns="_forecast")
    print(table.to_string(index=False))
    if args.golden:
        golden_cases = {
            row["case"]: {"theirs": row["prophet"], "scale": row["scale"], "forecast": row["_forecast"]} for row in rows
        }
        source = "prophet 1.5.0 (CmdStan 2.37), benchmarks/prophet_parity.py --golden"
        (HERE / "results" / "prophet_parity.md").write_text(report(table), encoding="utf-8")
        GOLDEN.write_text(json.dumps({"source": source, "cases": golden_cases}, indent=1), encoding="utf-8")
    return int(any(row["deepforecast"] > row["prophet"] + 1e-6 or row["difference %"] > row["allowed %"] for row in rows))


def report(table: pd.DataFrame) -> str:
    header = [
        "# Objective of Prophet compared with prophet 1.5",
        "",
        "`deepforecast` and `prophet`: minus the log posterior without constants (lower is better); `difference %`: largest",
        "difference of the forecasts relative to their mean size; `interval width`: mean width of the 80 % interval divided by",
        "that of prophet; `s`: CPU seconds of fit and predict. The cases are those of tests/models/prophet/parity.py. In",
        "air_logistic the optimiser of prophet ends before the maximum.",
        "",
        "| " + " | ".join(table.columns) + " |",
        "|" + "---|" * len(table.columns),
    ]
    rows = [[value if isinstance(value, str) else f"{value:.8g}" for value in row] for row in table.to_numpy().tolist()]
    return "\n".join([*header, *(f"| {' | '.join(row)} |" for row in rows), ""])


def peer_python() -> Path:
    folder = Path(os.environ.get("DEEPFORECAST_PEERS", HERE.parent / "build" / "peers"), "prophet")
    if not (folder / ".ready").exists():
        subprocess.run(["sh", str(HERE / "peers" / "make-env"), "prophet", str(folder)], check=True)
    return folder / "bin" / "python"


def load_cases(folder: Path) -> list[dict[str, Any]]:
    from tests.models.prophet.parity import CASES, frame_of

    loaded = []
    for name, case in CASES.items():
        frame, future = frame_of(name)
        if frame is None:
            print(f"{name}: skipped, not found in DEEPFORECAST_DATA", file=sys.stderr)
            continue
        job = {"name": name, "csv": str(folder / f"{name}.csv"), "horizon": case.horizon, "freq": case.freq, **case.theirs}
        frame.drop(columns="unique_id").to_csv(job["csv"], index=False)
        if future is not None:
            job["future"] = str(folder / f"{name}_future.csv")
            future.drop(columns="unique_id").to_csv(job["future"], index=False)
        loaded.append({"job": job, "case": case, "frame": frame, "future": future})
    return loaded


def compare(loaded: dict[str, Any], peer_results: dict[str, Any]) -> dict[str, Any]:
    import time

    from tests.models.prophet.parity import forecast_of, objective

    case = loaded["case"]
    model, forecast = forecast_of(case, loaded["frame"], loaded["future"])
    start = time.process_time()
    model, forecast = forecast_of(case, loaded["frame"], loaded["future"])
    seconds = time.process_time() - start
    learned = model.state_.learned
    size = float(np.abs(peer_results["forecast"]).mean())
    difference = float(np.abs(forecast["Prophet"].to_numpy() - peer_results["forecast"]).max()) / size
    width = (forecast["Prophet-hi-80"] - forecast["Prophet-lo-80"]).to_numpy()
    width_ratio = width / (peer_results["high"] - peer_results["low"])
    return {
        "case": case.name,
        "rows": len(peer_results["y"]),
        "deepforecast": float(learned["objective"][0]),
        "prophet": objective(peer_results),
        "difference %": 100 * difference,
        "allowed %": 100 * case.close,
        "interval width": float(width_ratio.mean()),
        "s deepforecast": seconds,
        "s prophet": float(peer_results["seconds"]),
        "scale": float(peer_results["scale"]),
        "_forecast": [float(f"{value:.10g}") for value in peer_results["forecast"]],
    }


if __name__ == "__main__":
    sys.exit(main())
