"""A model in a forked process, as gunicorn --preload or multiprocessing make them, does not hang.

OpenMP's threads do not survive a fork, and libraries wait for them forever. The child that hangs
is killed after a time far longer than it needs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
QUICK = ["LightGBM", "LinearModel", "estimator"]
KINDS = [
    "SeasonalNaive", "AutoETS", "AutoARIMA", "AutoTheta", "LightGBM", "XGBoost", "CatBoost", "GradientBoosting",
    "LinearModel", "forest", "neighbours", "estimator", "Prophet", "LSTM", "Transformer", "Seq2Seq", "NBEATS", "Conformal",
]  # fmt: skip
LIMIT, QUICK_LIMIT = 120, 40  # seconds

PROGRAM = """
import copy, os, pickle, signal, sys
import deepforecast as d
from deepforecast.datasets import generate
LIMIT, ACTS = int(sys.argv[2]), sys.argv[3].split(",")
frame, many = generate(6, 300), generate(1500, 120)
TREES, NETWORK = {"n_estimators": 10}, {"input_size": 96, "max_steps": 2}

def estimator():
    from sklearn.ensemble import HistGradientBoostingRegressor
    return d.Regression(HistGradientBoostingRegressor(max_iter=5), horizon=7)

MAKE = {
    "LightGBM": TREES, "XGBoost": TREES, "CatBoost": TREES, "GradientBoosting": TREES,
    "LSTM": NETWORK, "Transformer": NETWORK, "Seq2Seq": {"max_steps": 2},
    "forest": lambda: d.Regression("random_forest", horizon=7),
    "neighbours": lambda: d.Regression("knn", horizon=7),
    "estimator": estimator, "NBEATS": NETWORK,
    "Conformal": lambda: d.Conformal(d.LightGBM(horizon=7, n_estimators=10), n_windows=2, pool=True),
}

def in_child(act):
    pid = os.fork()
    if not pid:
        signal.alarm(LIMIT)  # its default action ends the child, whatever it waits for
        try:
            act()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return "killed after its time" if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

def longer(model):
    model.predict(frame=frame if model.capabilities.local else many)
    if model.capabilities.explains:
        model.explain()

for name in sys.argv[1].split(","):
    kind = MAKE.get(name, {})
    try:
        model = kind() if callable(kind) else getattr(d, name)(horizon=7, **kind)
        model.fit(frame)
    except d.errors.DependencyError:
        continue
    held = name == "estimator"
    model.save("model.dfc", allow_skops=held)
    loaded = model if held else d.load("model.dfc")
    data = pickle.dumps(model)
    acts = {
        "fitted": lambda: model.predict(), "loaded": lambda: loaded.predict(), "longer": lambda: longer(model),
        "read": lambda: held or d.load("model.dfc").predict(), "refitted": lambda: model.clone().fit(frame),
        "dumps": lambda: pickle.dumps(model), "pickle": lambda: pickle.loads(data).predict(),
        "deepcopy": lambda: copy.deepcopy(model).predict(),
        "saved": lambda: model.save("child.dfc", allow_skops=held),
    }
    print(name, {act: result for act in ACTS if (result := in_child(acts[act]))}, flush=True)
"""


def forked(kinds: list[str], acts: str, folder: Path, limit: int) -> list[str]:
    """A line for each model: its name, and what went wrong in which act."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    env.pop("OMP_NUM_THREADS", None)
    call = [sys.executable, "-c", PROGRAM, ",".join(kinds), str(limit), acts]
    done = subprocess.run(call, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def test_models_forecast_in_a_forked_process(tmp_path: Path) -> None:
    lines = forked(QUICK, "loaded,longer,dumps,pickle,deepcopy,saved", tmp_path, QUICK_LIMIT)
    assert lines == [f"{name} {{}}" for name in QUICK]


@pytest.mark.slow
def test_every_kind_of_model_works_in_a_forked_process(tmp_path: Path) -> None:
    acts = "fitted,loaded,longer,read,refitted,dumps,pickle,deepcopy,saved"
    lines = forked(KINDS, acts, tmp_path, LIMIT)
    assert len(lines) >= 14
    assert [line for line in lines if not line.endswith(" {}")] == []
