"""What the adapters of benchmarks/peers share: windows cut at their cutoffs, rows matched, errors in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
ADAPTER = """
import sys
sys.path.append({peers!r})
import peer_job
told = peer_job.job()

class Adapter:
    roles = ("future",)
    def fit(self, train):
        self.fits = getattr(self, "fits", 0) + 1
        told.note(f"fit {{self.fits}} saw {{train['ds'].max()}}")
        return train.groupby("unique_id")["y"].last()
    def predict(self, fitted, context, ahead):
        last = context.groupby("unique_id")["y"].last()
        said = ahead.assign(point=ahead["unique_id"].map(last), **{{name: 0.0 for name in told.quantiles}})
        return said.iloc[::-1] if told.model == "Naive" else said.iloc[1:]

peer_job.run(told, Adapter(), ("pandas",))
"""


def _folder(folder: Path, **job: object) -> Path:
    history = pd.DataFrame({"unique_id": ["a"] * 7 + ["b"] * 5, "ds": [*range(7), *range(5)], "y": [*range(7), *range(10, 15)]})
    future = pd.DataFrame(
        {"unique_id": ["a"] * 4 + ["b"] * 4, "cutoff": [4, 4, 6, 6, 2, 2, 4, 4], "ds": [5, 6, 7, 8, 3, 4, 5, 6]}
    )
    history.astype({"y": "float64"}).to_parquet(folder / "history.parquet")
    future.to_parquet(folder / "future.parquet")
    told = {
        "name": "peer Naive", "model": "Naive", "parameters": {}, "horizon": 2, "freq": 1, "season_length": 1, "level": [80],
        "columns": {"future": [], "past": ["seen"], "static": []}, "refit": 0, "windows": 2, "seed": 0, "time_limit": 60,
        "threads": 1,
    }  # fmt: skip
    (folder / "job.json").write_text(json.dumps(told | job))
    return folder


def _run(folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "forecast_naive.py"
    script.write_text(ADAPTER.format(peers=str(PEERS)))
    return subprocess.run([sys.executable, "-P", str(script), str(folder)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("refit", "fits"), [(0, ["fit 1 saw 4"]), (1, ["fit 1 saw 4", "fit 2 saw 6"])])
def test_a_window_sees_rows_up_to_its_cutoffs(tmp_path: Path, refit: int, fits: list[str]) -> None:
    done = _run(_folder(tmp_path, refit=refit))
    assert done.returncode == 0, done.stderr
    found = pd.read_parquet(tmp_path / "forecasts.parquet")
    assert list(found) == ["unique_id", "ds", "cutoff", "peer Naive", "peer Naive-lo-80", "peer Naive-hi-80"]
    rows = found.sort_values(["unique_id", "ds"])
    assert rows["peer Naive"].tolist() == [4.0, 4.0, 6.0, 6.0, 12.0, 12.0, 14.0, 14.0]
    timing = json.loads((tmp_path / "timing.json").read_text())
    assert {"fit_seconds", "fit_cpu", "predict_seconds", "predict_cpu", "peak_memory_mb", "versions"} <= set(timing)
    assert timing["note"].split("; ") == ["columns not used: seen", *fits]


def test_rows_that_are_missing_end_it_with_one_line(tmp_path: Path) -> None:
    done = _run(_folder(tmp_path, model="Gaps"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ValueError: 1 of 4 forecasts are missing or no numbers, first a at 5"
    assert not (tmp_path / "forecasts.parquet").exists()
