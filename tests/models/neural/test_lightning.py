"""A Trainer of the user's: the network learns in it as in a fit, and batches are read as the model reads frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, MLP, DLinear
from deepforecast.errors import DataError, NotFittedError, ParameterError
from deepforecast.training.options import schedule_factor
from tests.training.runs import DROPOUT, FRAME, same

SMALL: dict[str, Any] = {"horizon": 4, "input_size": 12, "batch_size": 8}
COLUMNS = {"future": ["promo"]}


def trained(model: Any, steps: int, frame: Any = FRAME, callbacks: Any = (), **fit: Any) -> Any:
    import pytorch_lightning as pl

    module, data = model.lightning_module(frame, **fit), model.datamodule(frame)
    trainer = pl.Trainer(max_steps=steps, max_epochs=-1, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, callbacks=list(callbacks))  # fmt: skip
    trainer.fit(module, datamodule=data)
    return model


def promoted(order: list[str]) -> pd.DataFrame:
    """A series that follows a category, its categories in this order."""
    promo = np.random.default_rng(0).choice(["none", "half", "full"], 90)
    y = np.random.default_rng(1).normal(size=90) + np.select([promo == "half", promo == "full"], [5.0, 10.0])
    stamps = pd.date_range("2024-01-01", periods=90)
    return pd.DataFrame({"unique_id": "a", "ds": stamps, "y": y, "promo": pd.Categorical(promo, categories=order)})


@pytest.mark.filterwarnings("ignore")
def test_dropout_is_on_while_it_learns() -> None:
    import pytorch_lightning as pl

    class Seen(pl.Callback):
        def on_train_batch_start(self, _: Any, module: Any, *__: Any) -> None:
            seen.append(all(one.training for one in module.modules()))

    seen: list[bool] = []
    model = trained(LSTM(**{**DROPOUT, "max_steps": 4}), 4, callbacks=[Seen()])
    assert seen == [True] * 4
    assert not any(one.training for one in model.network_.modules())


@pytest.mark.filterwarnings("ignore")
def test_its_schedule_spans_the_steps_of_the_trainer() -> None:
    import pytorch_lightning as pl

    class Rates(pl.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            seen.append(trainer.optimizers[0].param_groups[0]["lr"])

    seen: list[float] = []
    model = DLinear(**SMALL, max_steps=500, intervals="uncalibrated")
    trained(model, 20, callbacks=[Rates()])
    whole = DLinear(**SMALL, max_steps=20).lightning_module(FRAME).options
    assert seen == pytest.approx([whole.learning_rate * schedule_factor(whole, step) for step in range(20)])
    assert same(model, DLinear(**SMALL, max_steps=20, intervals="uncalibrated").fit(FRAME))


@pytest.mark.filterwarnings("ignore")
def test_each_epoch_has_windows_of_its_own() -> None:
    """Two epochs of ten steps are the windows of one of twenty."""
    model = DLinear(**SMALL, max_steps=10)
    trained(model, 20)
    assert same(model, DLinear(**SMALL, max_steps=20, intervals="uncalibrated").fit(FRAME))


@pytest.mark.filterwarnings("ignore")
def test_paths_hang_together_as_after_a_fit() -> None:
    model = trained(DLinear(**SMALL, max_steps=20), 20)
    fit = DLinear(**SMALL, max_steps=20, intervals="uncalibrated").fit(FRAME)
    assert model.simulate(20).equals(fit.simulate(20))
    model.fit(FRAME.head(60))
    assert len(model.state_.series) == 1


def test_a_frame_is_read_with_the_columns_and_categories_of_the_fit() -> None:
    frame = promoted(["none", "half", "full"])
    model = MLP(**SMALL, hidden_sizes=[8], max_steps=2).fit(frame, columns=COLUMNS)
    before, after = (next(iter(model.datamodule(one).train)) for one in (frame, promoted(["full", "none", "half"])))
    assert before.future_codes.tolist() == after.future_codes.tolist()
    with pytest.raises(DataError, match="promo"):
        model.datamodule(frame.drop(columns="promo"))
    with pytest.raises(DataError, match="requires at least 2 values"):
        model.datamodule(frame.head(1))


def test_what_is_missing_is_filled_as_in_a_fit() -> None:
    frame = FRAME.assign(y=FRAME.y.where(np.arange(len(FRAME)) % 7 != 0))
    model = DLinear(**SMALL, max_steps=2, missing="interpolate").fit(frame)
    assert all(bool(one.y.isfinite().all()) for one in model.datamodule(frame).train)


def test_a_scale_of_all_series_stays_that_of_the_fit() -> None:
    model = DLinear(**SMALL, max_steps=2, scaler_scope="panel").fit(FRAME)
    loc, scale = model.state_.learned["panel_scale"]
    batch = next(iter(model.datamodule(FRAME.assign(y=FRAME.y * 100)).train))
    assert set(batch.loc.flatten().tolist()) == {loc}
    assert set(batch.scale.flatten().tolist()) == {scale}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"ema_decay": 0.9}, "Use the callback EMAWeightAveraging"), ({"time_limit": 5.0}, "max_time= of the Trainer"),
     ({"trainer": {"devices": 1}}, "Use the arguments of your Trainer"),
     ({"learning_rate": "find"}, "must be a number with a Trainer")],
)  # fmt: skip
def test_parameters_that_only_fit_can_use_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        DLinear(**SMALL, **parameters).lightning_module(FRAME)


@pytest.mark.filterwarnings("ignore")
def test_a_precision_that_networks_do_not_have_is_refused() -> None:
    import pytorch_lightning as pl

    model = DLinear(**SMALL)
    module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
    trainer = pl.Trainer(max_steps=1, precision="64-true", logger=False, enable_checkpointing=False, enable_progress_bar=False)
    with pytest.raises(ParameterError, match="must be one of 32-true, bf16-mixed, 16-mixed, got 64-true"):
        trainer.fit(module, datamodule=data)


@pytest.mark.filterwarnings("ignore")
def test_without_a_known_end_the_rate_is_constant_after_the_warmup() -> None:
    import pytorch_lightning as pl

    rates: list[float] = []

    class Rates(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            rates.append(trainer.optimizers[0].param_groups[0]["lr"])
            trainer.should_stop = len(rates) == 30

    model = DLinear(**SMALL, max_steps=10, warmup=0.2, learning_rate=0.01)
    module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
    pl.Trainer(max_epochs=-1, logger=False, enable_checkpointing=False, enable_progress_bar=False, callbacks=[Rates()]).fit(
        module, datamodule=data
    )
    assert rates == pytest.approx([0.005] + [0.01] * 29)


def test_batches_before_there_is_a_network_are_refused_with_the_way_out() -> None:
    with pytest.raises(NotFittedError, match=r"lightning_module\(frame\) or fit\(frame\) first"):
        DLinear(**SMALL).datamodule(FRAME)


def test_a_datamodule_has_the_batches_of_all_steps_of_a_user_trainer() -> None:
    model = DLinear(**SMALL, max_steps=3, trainer={"accumulate_grad_batches": 2}).fit(FRAME)
    data = model.datamodule(FRAME)
    assert len(list(data.train)) == len(data.train) == 6
