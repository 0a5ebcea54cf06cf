"""What Lightning's loggers and callbacks see of a training: loss, validation loss, hyperparameters."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepforecast import DLinear, NeuralProphet
from tests.training.runs import FRAME

SMALL: dict[str, Any] = {"horizon": 4, "input_size": 12, "batch_size": 8}


class Collected:
    """What a logger was given."""

    def __init__(self) -> None:
        self.hyperparameters: list[dict[str, Any]] = []
        self.metrics: dict[str, list[float]] = {}


def collecting() -> tuple[Any, Collected]:
    from pytorch_lightning.loggers import Logger

    found = Collected()

    class Collecting(Logger):
        name, version = "collected", 0

        def log_hyperparams(self, params: Any, *_: Any, **__: Any) -> None:
            found.hyperparameters.append(dict(params))

        def log_metrics(self, metrics: Any, step: Any = None) -> None:
            for name, value in metrics.items():
                found.metrics.setdefault(name, []).append(value)

    return Collecting(), found


def trainer_of(folder: Path, **given: Any) -> Any:
    import pytorch_lightning as pl

    quiet = {
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return pl.Trainer(
        accelerator="cpu", log_every_n_steps=1, default_root_dir=folder, **quiet, **given
    )


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_users_own_trainer_logs_loss_validation_and_hyperparameters(tmp_path: Path) -> None:
    model = DLinear(**SMALL, max_steps=5, validation_size=10, quantiles=[0.1, 0.5])
    module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
    logger, found = collecting()
    trainer_of(tmp_path, max_epochs=1, logger=logger).fit(module, datamodule=data)
    fit = DLinear(**SMALL, max_steps=5, validation_size=10, quantiles=[0.1, 0.5]).fit(FRAME)
    np.testing.assert_allclose(found.metrics["loss"], fit.training_report_.loss, rtol=1e-5)
    assert len(found.metrics["validation"]) == 1
    assert found.hyperparameters == [dict(module.hparams)]
    assert module.hparams["model"] == "DLinear"
    assert {**model.get_params(), "trainer": None}.items() >= {
        name: value for name, value in module.hparams.items() if name != "model"
    }.items()
    json.dumps(dict(module.hparams), allow_nan=False)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_csv_logger_and_early_stopping_on_the_loss_work(tmp_path: Path) -> None:
    from pytorch_lightning.callbacks import EarlyStopping
    from pytorch_lightning.loggers import CSVLogger

    model = DLinear(**SMALL, max_steps=3)
    logger, stop = CSVLogger(str(tmp_path)), EarlyStopping("loss", patience=1, min_delta=1e9)
    trainer = trainer_of(tmp_path, max_epochs=9, logger=logger, callbacks=[stop])
    trainer.fit(model.lightning_module(FRAME), datamodule=model.datamodule(FRAME))
    assert trainer.current_epoch == 2
    with (Path(logger.log_dir) / "metrics.csv").open() as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    assert len(losses) == 6
    assert "season_length" in (Path(logger.log_dir) / "hparams.yaml").read_text()


@pytest.mark.parametrize("kind", [DLinear, NeuralProphet])
def test_a_fit_with_a_logger_logs_hyperparameters_once(kind: Any) -> None:
    logger, found = collecting()
    model = kind(**SMALL, max_steps=3, trainer={"logger": logger, "log_every_n_steps": 1}).fit(
        FRAME
    )
    (hyperparameters,) = found.hyperparameters
    assert hyperparameters["model"] == kind.__name__
    assert hyperparameters["max_steps"] == 3
    assert set(hyperparameters) == {"model", *model.get_params()} - {"trainer"}
    json.dumps(hyperparameters, allow_nan=False)
    assert len(found.metrics["loss"]) == 3


def test_two_runs_of_a_users_own_trainer_warn_of_nothing_avoidable(
    tmp_path: Path, caplog: Any
) -> None:
    trainer = trainer_of(tmp_path, max_epochs=1, logger=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            model = DLinear(**SMALL, max_steps=2)
            trainer.fit(model.lightning_module(FRAME), datamodule=model.datamodule(FRAME))
    messages = [str(one.message) for one in caught] + caplog.messages
    for avoidable in ("Total length of", "transfer_batch_to_device", "will override"):
        assert not [message for message in messages if avoidable in message]
