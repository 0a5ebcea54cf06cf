"""How long networks learn where nobody says: a few passes; and who asks for bands of many is told."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl

from deepforecast import LSTM, MLP, NBEATS, DLinear, NeuralProphet, load
from deepforecast.datasets import generate
from deepforecast.errors import TrainingWarning
from deepforecast.models.neural._making import options, usual_steps

FEW: dict[str, Any] = {"input_size": 8, "hidden": [8]}


@pytest.mark.parametrize(
    ("model", "windows", "batch", "steps"),
    [
        (LSTM(), 20, 32, 50), (LSTM(), 320, 40, 64), (LSTM(), 2_000, 250, 64), (LSTM(), 8_000, 256, 250),
        (LSTM(), 16_000, 256, 500), (LSTM(), 9_000_000, 256, 500), (LSTM(batch_size=256), 500, 256, 50),
        (LSTM(max_steps=7), 500, 62, 7), (LSTM(max_epochs=2), 500, 62, 18),
        (NBEATS(), 2_000, 250, 64), (NBEATS(), 300_000, 1024, 1027), (NBEATS(), 9_000_000, 1024, 4500),
        (NeuralProphet(), 500, 256, 500), (LSTM(accumulate=4), 8_000, 256, 62), (LSTM(accumulate=4, max_epochs=2), 500, 62, 6),
    ],
)  # fmt: skip
def test_steps_and_batches_follow_the_windows_there_are(model: Any, windows: int, batch: int, steps: int) -> None:
    found = options(model, windows)
    assert (found.batch_size, found.max_steps) == (batch, steps)


def test_steps_never_fall_as_windows_grow() -> None:
    found = [usual_steps(windows, 256) for windows in range(1, 40_000, 97)]
    assert found == sorted(found)


def test_bands_of_windows_known_by_heart_are_told(tmp_path: Path) -> None:
    frame = generate(1, 40)
    model = MLP(horizon=4, batch_size=32, max_steps=40, **FEW).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict()
        model.clone(max_steps=20).fit(frame).predict(level=80)
        model.clone(intervals="conformal").fit(frame).predict(level=80)
        DLinear(horizon=4, input_size=8, batch_size=32, max_steps=40).fit(frame).predict(level=80)
    model.save(tmp_path / "model.dfm")
    told = r"MLP: training passed 44 times .*intervals='conformal'.*with more series or longer ones it would"
    for one in (model, load(tmp_path / "model.dfm")):
        with pytest.warns(TrainingWarning, match=told):
            one.predict(quantiles=[0.1])
    with pytest.warns(TrainingWarning, match=r"passed 55 times .*with more series or longer ones it would"):
        MLP(horizon=4, **FEW).fit(frame).predict(level=80)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"max_steps": 60}, r"66 times .*with max_steps='auto' and batch_size='auto' it would"),
        ({"max_epochs": 70, "batch_size": 29}, r"70 times .*with max_steps='auto' and batch_size='auto', and without max"),
        ({"max_steps": 34}, r"38 times .*with more series or longer ones it would"),  # 50 steps are the fewest nobody says
    ],
)  # fmt: skip
def test_the_way_out_of_many_passes_is_one(said: dict[str, Any], told: str) -> None:
    model = MLP(horizon=4, **FEW, **said).fit(generate(1, 40))
    with pytest.warns(TrainingWarning, match=told):
        model.predict(level=80)


def test_passes_of_a_fit_count_after_some_steps_on() -> None:
    frame = generate(1, 40)
    model = MLP(horizon=4, batch_size=32, max_steps=40, **FEW).fit(frame).fine_tune(frame, max_steps=1)
    with pytest.warns(TrainingWarning, match="passed 45 times"):
        model.predict(level=80)


@pytest.mark.filterwarnings("ignore")
def test_passes_of_an_own_trainer_count() -> None:
    frame = generate(1, 40)
    model = MLP(horizon=4, batch_size=32, max_steps=10, **FEW)
    module = model.lightning_module(frame)
    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
                             "enable_model_summary": False, "accelerator": "cpu"}  # fmt: skip
    pl.Trainer(max_epochs=4, **quiet).fit(module, datamodule=model.datamodule(frame))
    with pytest.warns(TrainingWarning, match="passed 44 times"):
        model.predict(level=80)


def test_rows_held_out_are_looked_at_in_short_runs_too() -> None:
    assert [options(LSTM(), count).validate_every for count in (20, 8_000, 9_000_000)] == [5, 25, 50]
    assert options(LSTM(max_steps=3), 20).validate_every == 1
    assert options(LSTM(validation=5, validate_every=70), 20).validate_every == 70
