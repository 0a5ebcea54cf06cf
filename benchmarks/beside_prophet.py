"""Prophet beside `prophet` on the same series: the objective that both make least, by one evaluator, and the forecasts.

    DEEPFORECAST_DATA=... python benchmarks/beside_prophet.py

The objective is Stan's (minus the log posterior without constants): theirs evaluated here, on the design given to Stan, ours
as the kernel reports it. Writes tests/golden/prophet.json and results/prophet_parity.md with --golden.
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
    parser = argparse.ArgumentParser(description="Prophet beside prophet: objectives and forecasts.")
    parser.add_argument("--golden", action="store_true", help="write the numbers of the peer for the tests")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        jobs = cases(Path(folder))
        Path(folder, "jobs.json").write_text(json.dumps([one["job"] for one in jobs]), encoding="utf-8")
        command = [str(peer_python()), str(HERE / "peers" / "prophet_maximum.py"), str(Path(folder, "jobs.json")), folder]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        rows = [compared(one, dict(np.load(Path(folder, f"{one['job']['name']}.npz")))) for one in jobs]
    table = pd.DataFrame(rows).drop(columns="_forecast")
    print(table.to_string(index=False))
    if options.golden:
        said = {row["case"]: {name: row[name] for name in ("theirs", "scale")} | {"forecast": row["_forecast"]} for row in rows}
        source = "prophet 1.5.0 (CmdStan 2.37), benchmarks/beside_prophet.py --golden"
        (HERE / "results" / "prophet_parity.md").write_text(report(table), encoding="utf-8")
        GOLDEN.write_text(json.dumps({"source": source, "cases": said}, indent=1), encoding="utf-8")
    return int(any(row["ours"] > row["theirs"] + 1e-6 or row["away %"] > row["allowed %"] for row in rows))


def report(table: pd.DataFrame) -> str:
    said = [
        "# Prophet's maximum beside that of prophet 1.5",
        "",
        "`ours` and `theirs` are minus the log posterior without constants (less is better), `away %` the largest difference",
        "of the forecasts over their mean size, `band` the mean width of the 80 % interval over theirs, `s` CPU seconds of fit",
        "and predict. The cases are those of tests/models/additive/parity.py. In air_logistic theirs ends short.",
        "",
        "| " + " | ".join(table.columns) + " |",
        "|" + "---|" * len(table.columns),
    ]
    rows = [[one if isinstance(one, str) else f"{one:.8g}" for one in row] for row in table.to_numpy().tolist()]
    return "\n".join([*said, *(f"| {' | '.join(row)} |" for row in rows), ""])


def peer_python() -> Path:
    found = Path(os.environ.get("DEEPFORECAST_PEERS", HERE.parent / "build" / "peers"), "prophet")
    if not (found / ".ready").exists():
        subprocess.run(["sh", str(HERE / "peers" / "make-env"), "prophet", str(found)], check=True)
    return found / "bin" / "python"


def cases(folder: Path) -> list[dict[str, Any]]:
    from tests.models.additive.parity import CASES, frame_of

    found = []
    for name, case in CASES.items():
        frame, future = frame_of(name)
        if frame is None:
            print(f"{name}: left out, DEEPFORECAST_DATA does not have it", file=sys.stderr)
            continue
        job = {"name": name, "csv": str(folder / f"{name}.csv"), "horizon": case.horizon, "freq": case.freq, **case.theirs}
        frame.drop(columns="unique_id").to_csv(job["csv"], index=False)
        if future is not None:
            job["future"] = str(folder / f"{name}_future.csv")
            future.drop(columns="unique_id").to_csv(job["future"], index=False)
        found.append({"job": job, "case": case, "frame": frame, "future": future})
    return found


def compared(one: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    import time

    from tests.models.additive.parity import forecast_of, objective

    case = one["case"]
    model, forecast = forecast_of(case, one["frame"], one["future"])
    start = time.process_time()
    model, forecast = forecast_of(case, one["frame"], one["future"])
    seconds = time.process_time() - start
    ours = model.state_.learned
    size = float(np.abs(theirs["forecast"]).mean())
    away = float(np.abs(forecast["Prophet"].to_numpy() - theirs["forecast"]).max()) / size
    wide = (forecast["Prophet-hi-80"] - forecast["Prophet-lo-80"]).to_numpy() / (theirs["high"] - theirs["low"])
    return {
        "case": case.name,
        "rows": len(theirs["y"]),
        "ours": float(ours["objective"][0]),
        "theirs": objective(theirs),
        "away %": 100 * away,
        "allowed %": 100 * case.close,
        "band": float(wide.mean()),
        "s ours": seconds,
        "s theirs": float(theirs["seconds"]),
        "scale": float(theirs["scale"]),
        "_forecast": [float(f"{value:.10g}") for value in theirs["forecast"]],
    }


if __name__ == "__main__":
    sys.exit(main())
