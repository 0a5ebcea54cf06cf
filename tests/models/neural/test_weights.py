"""Observation weights of networks: in the loss of training, validation and fine-tuning, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, MLP, DecoderOnly, DLinear, NeuralProphet, Transformer, load
from deepforecast.core.state_updates import prepare_history
from deepforecast.errors import DataError, ParameterError, TrainingWarning
from deepforecast.models.neural import _residual_correlation
from tests.models.neural.test_lightning import trained

COLUMNS = {"weight": "w"}
QUICK: dict[str, Any] = {"horizon": 3, "input_size": 10, "max_steps": 12, "batch_size": 32}


def frame(n_steps: int = 80) -> pd.DataFrame:
    """Two series that change their level after 40 days, with weights from 1 to 4."""
    random = np.random.default_rng(0)
    step = np.tile(np.arange(n_steps), 2)
    y = np.where(step < 40, 10.0, 20.0) + random.normal(size=2 * n_steps)
    stamps = np.tile(pd.date_range("2024-01-01", periods=n_steps), 2)
    return pd.DataFrame({"unique_id": np.repeat(["a", "b"], n_steps), "ds": stamps, "y": y, "w": 1.0 + step % 4})


def point(forecast: pd.DataFrame) -> np.ndarray:
    return forecast.iloc[:, 2].to_numpy()


@pytest.mark.parametrize(
    "model",
    [
        MLP(**QUICK, hidden_sizes=[8]),
        LSTM(**QUICK, hidden_size=8, validation_size=6, validate_every=4, patience=3),
        Transformer(horizon=3, input_size=10, max_steps=6, d_model=8, n_heads=2, output="autoregressive", teacher_forcing="linear"),
        DecoderOnly(horizon=3, input_size=10, max_steps=6, d_model=8, n_heads=2, patch_length=2),
        NeuralProphet(horizon=3, max_steps=6),
    ],
    ids=lambda model: type(model).__name__,
)
def test_only_the_ratios_of_weights_count(model: Any) -> None:
    unweighted = point(model.fit(frame().drop(columns="w")).predict())
    equal = point(model.fit(frame().assign(w=0.3), columns=COLUMNS).predict())
    np.testing.assert_array_equal(equal, unweighted)
    weighted = point(model.fit(frame(), columns=COLUMNS).predict())
    losses = model.training_report_["loss"]
    doubled = point(model.fit(frame().assign(w=lambda rows: 2 * rows["w"]), columns=COLUMNS).predict())
    np.testing.assert_array_equal(doubled, weighted)
    np.testing.assert_array_equal(model.training_report_["loss"], losses)
    assert np.abs(weighted - unweighted).max() > 1e-4


def test_targets_of_weight_0_teach_nothing() -> None:
    """Neither steps nor initial weights; NeuralProphet without autoregression has no values as inputs."""
    data = frame().iloc[:80]
    data = data.assign(w=np.where(data.index % 5 == 0, 0.0, 1.0))
    wild = data.assign(y=np.where(data["w"] == 0, 1e3, data["y"]))
    model = NeuralProphet(horizon=3, input_size=0, scaler="none", max_steps=8)
    forecasts = [point(model.fit(rows, columns=COLUMNS).predict()) for rows in (wild, data)]
    np.testing.assert_array_equal(*forecasts)


def test_the_heavier_level_is_learned() -> None:
    is_early = frame()["ds"] < pd.Timestamp("2024-02-10")
    model = NeuralProphet(horizon=3, input_size=0, growth="flat", max_steps=20)
    early, late = (
        point(model.fit(frame().assign(w=np.where(is_early == heavy, 1.0, 0.01)), columns=COLUMNS).predict()).mean()
        for heavy in (True, False)
    )
    assert early < 12
    assert late > 18


def test_the_validation_loss_is_weighted() -> None:
    data, model = frame(), MLP(**QUICK, validation_size=6, validate_every=4)
    data["w"] = 1.0
    outlier = data["y"].where(data["ds"] != data["ds"].max(), 1e3)
    plain = model.fit(data.drop(columns="w")).training_report_["validation_loss"].dropna()
    light = data.assign(y=outlier, w=data["w"].where(data["ds"] != data["ds"].max(), 0.0))
    weighted = model.fit(light, columns=COLUMNS).training_report_["validation_loss"].dropna()
    assert weighted.max() < 3 * plain.max()
    heavy = model.fit(light.assign(w=1.0), columns=COLUMNS).training_report_["validation_loss"].dropna()
    assert heavy.min() > 10 * weighted.max()


def test_weights_must_not_all_be_0_among_the_targets_of_training() -> None:
    data = frame().groupby("unique_id", group_keys=False)[["unique_id", "ds", "y", "w"]].apply(
        lambda rows: rows.assign(w=np.where(np.arange(80) < 10, 1.0, 0.0))
    )
    with pytest.raises(DataError, match=r"Column w must have a positive weight .* observation to train on"):
        MLP(**QUICK).fit(data, columns=COLUMNS)  # the first 10 steps are inputs only
    held_out = frame().assign(w=np.where(frame().groupby("unique_id").cumcount() >= 74, 1.0, 0.0))
    with pytest.raises(DataError, match="Column w must have a positive weight"):
        MLP(**QUICK, validation_size=6).fit(held_out, columns=COLUMNS)


def test_a_loss_of_the_user_must_not_reduce_weighted_losses() -> None:
    import torch

    def scalar(forecast: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (forecast - target).abs().mean()

    with pytest.raises(ParameterError, match=r"`loss` must return one number per time step if observations have weights"):
        MLP(**QUICK, head="point", loss=scalar).fit(frame(), columns=COLUMNS)
    MLP(**QUICK, head="point", loss=scalar).fit(frame().assign(w=2.0), columns=COLUMNS)


def test_a_tail_without_weight_does_not_calibrate() -> None:
    position = frame().groupby("unique_id").cumcount()
    model = MLP(**QUICK).fit(frame().assign(w=np.where(position < 60, 1.0, 0.0)), columns=COLUMNS)
    message = r"not calibrated: .* must have at least \d+ observed values \(of positive weight\), got 0"
    with pytest.warns(TrainingWarning, match=message):
        assert np.isfinite(point(model.predict(level=80))).all()


def test_weights_of_the_tail_alone_are_trained_on_in_one_part() -> None:
    """The first part of the training would have none."""
    position = frame().groupby("unique_id").cumcount()
    model = MLP(**QUICK).fit(frame().assign(w=np.where(position >= 74, 1.0, 0.0)), columns=COLUMNS)
    assert "calibration" not in model.state_.learned.shared
    assert (model.training_report_["loss"] > 0).mean() > 0.5


def test_forecasts_need_no_weights(tmp_path: Path) -> None:
    data = frame()
    model = DLinear(horizon=3, input_size=10, max_steps=5).fit(data, columns=COLUMNS)
    expected = model.predict()
    bare, invalid = data.drop(columns="w"), data.assign(w=-1.0)
    for history in (data, bare, invalid):
        pd.testing.assert_frame_equal(model.predict(frame=history), expected)
    model.save(tmp_path / "model.dfc")
    loaded = load(tmp_path / "model.dfc")
    assert loaded.state_.series.columns.weight == "w"
    pd.testing.assert_frame_equal(loaded.predict(frame=bare), expected)
    later = data.groupby("unique_id").tail(2).assign(ds=lambda rows: rows["ds"] + pd.Timedelta(days=2))
    forecasts = [load(tmp_path / "model.dfc").update(rows).predict() for rows in (later, later.drop(columns="w"))]
    pd.testing.assert_frame_equal(*forecasts)


def test_fine_tuning_and_a_trainer_use_the_weights_of_their_frame() -> None:
    data = frame()
    model = DLinear(horizon=3, input_size=10, max_steps=5).fit(data, columns=COLUMNS)
    weighted, unweighted, equal = (
        point(model.clone().fit(data, columns=COLUMNS).fine_tune(rows, max_steps=5).predict())
        for rows in (data, data.drop(columns="w"), data.assign(w=5.0))
    )
    np.testing.assert_array_equal(unweighted, equal)
    assert np.abs(weighted - unweighted).max() > 0
    with pytest.raises(DataError, match="column w is -1"):
        model.fine_tune(data.assign(w=-1.0))


@pytest.mark.filterwarnings("ignore")
def test_batches_of_a_datamodule_have_the_weights() -> None:
    data = frame()
    model = trained(DLinear(horizon=3, input_size=10, batch_size=8), 2, data, columns=COLUMNS)
    batch = next(iter(model.datamodule(data).train_dataloader()))
    assert batch.weight.shape == batch.target.shape
    assert set(batch.weight.unique().tolist()) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert batch.select_windows(2, 5).weight.tolist() == batch.weight[2:5].tolist()
    assert next(iter(model.datamodule(data.drop(columns="w")).train_dataloader())).weight is None


def test_targets_of_weight_0_have_no_part_in_the_residual_correlation() -> None:
    data = frame()
    model = DLinear(horizon=3, input_size=10, max_steps=3).fit(data, columns=COLUMNS)
    learned = model.state_.learned_with_series
    light = data.assign(w=np.where(data.index % 5 == 0, 0.0, 1.0))
    panel, _ = prepare_history(model, model.state_, light, None, trains=True)
    residuals = _residual_correlation._standardized_residuals(model, learned, panel)
    unweighted, _ = prepare_history(model, model.state_, light, None)
    all_residuals = _residual_correlation._standardized_residuals(model, learned, unweighted)
    kept = np.isfinite(residuals)
    assert np.isfinite(all_residuals).sum() > kept.sum() > 0.7 * kept.size
    np.testing.assert_array_equal(residuals[kept], all_residuals[kept])
