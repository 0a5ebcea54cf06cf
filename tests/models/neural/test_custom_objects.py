"""Losses and heads that a user passes as objects: trained, checked, copied, saved, and recognized by what they state."""

from __future__ import annotations

import copy
import functools
import json
import subprocess
import sys
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from pytorch_lightning import Callback
from pytorch_lightning.loggers import CSVLogger
from sklearn.base import clone
from torch import Tensor, nn

from deepforecast import LSTM, DLinear, Head, NeuralProphet, Transformer, load
from deepforecast.cli.flags import describe_parameter
from deepforecast.core.params import declared_params
from deepforecast.datasets import generate
from deepforecast.errors import ModelFileError, ParameterError, ParameterTypeError, SaveError, TrainingError
from deepforecast.models.neural import _fit
from deepforecast.nn.heads.distributions import LaplaceHead
from deepforecast.nn.heads.point import PointHead
from deepforecast.tuning.ranges import resolve_ranges
from tests.models.neural import custom_parts
from tests.models.neural.custom_parts import (
    LEVELS,
    Call,
    Forgetful,
    Linked,
    Options,
    PositiveCounts,
    PrivateFloor,
    Squared,
    TiltedLoss,
    Unprintable,
    WideLaplace,
    power_loss,
)

ROOT = Path(__file__).resolve().parents[3]
PARTS = "tests.models.neural.custom_parts"
FRAME = generate(2, 60)


def network(cls: Any = DLinear, **params: Any) -> Any:
    return cls(**{"horizon": 4, "input_size": 8, "max_steps": 15, **params})


def with_attribute(module: Any, name: str, value: Any) -> Any:
    setattr(module, name, value)
    return module


def frozen(module: nn.Module) -> nn.Module:
    return module.requires_grad_(False)


def points(model: Any, frame: pd.DataFrame = FRAME) -> np.ndarray:
    return model.fit(frame).predict()[model.name].to_numpy()


@pytest.mark.parametrize(
    ("loss", "name"), [(nn.L1Loss(), "mae"), (nn.MSELoss(), "mse"), (nn.HuberLoss(reduction="none"), "huber")]
)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_a_loss_of_torch_trains_as_the_loss_of_its_name(loss: Any, name: str, missing: bool) -> None:
    frame = FRAME.copy()
    if missing:  # the mean is over the observed targets
        frame.loc[np.random.default_rng(0).random(len(frame)) < 0.3, "y"] = np.nan
        frame.loc[frame.groupby("unique_id").cumcount() > 56, "y"] = FRAME["y"]
    expected = points(network(head="point", loss=name), frame)
    np.testing.assert_allclose(points(network(head="point", loss=loss), frame), expected, rtol=1e-4)


def test_missing_targets_never_reach_a_loss() -> None:
    sizes: list[int] = []

    def loss(prediction: Tensor, target: Tensor) -> Tensor:
        sizes.append(len(target))
        assert prediction.shape == target.shape == (len(target),)
        return (prediction - target).square()

    head = PointHead(loss)
    raw, target = torch.zeros(2, 3, 1, requires_grad=True), torch.tensor([[1.0, torch.nan, 3.0], [torch.nan, torch.nan, 2.0]])
    observed = (target == target).float()
    mean = head.mean_loss(raw, torch.nan_to_num(target, 0.0), observed, None)  # type: ignore[arg-type]
    assert mean.item() == pytest.approx((1 + 9 + 4) / 3)
    assert sizes == [3]
    empty = head.mean_loss(raw, torch.zeros(2, 3), torch.zeros(2, 3), None)  # type: ignore[arg-type]
    empty.backward()
    assert (empty.item(), sizes) == (0.0, [3])


@pytest.mark.parametrize("cls", [LSTM, Transformer, DLinear])
def test_a_head_object_is_the_head_of_its_name(cls: Any) -> None:
    forecasts = [network(cls, head=head, max_steps=3).fit(FRAME).predict(level=80) for head in ("laplace", LaplaceHead())]
    pd.testing.assert_frame_equal(*forecasts)


def test_a_head_of_a_user_has_intervals_paths_and_fitted_values() -> None:
    model = network(head=WideLaplace(0.3), max_steps=100).fit(FRAME)
    forecast = model.predict(level=[50, 95])
    assert (forecast["DLinear-lo-95"] < forecast["DLinear-lo-50"]).all()
    assert (forecast["DLinear-lo-50"] < forecast["DLinear"]).all()
    assert np.isfinite(model.simulate(3)["DLinear"]).all()
    errors = (model.fitted_values()["DLinear"] - FRAME["y"]).abs().mean()
    assert errors < 0.7 * (FRAME["y"] - FRAME["y"].mean()).abs().mean()


def test_capabilities_are_those_that_the_head_states() -> None:
    assert network(head=LaplaceHead()).capabilities == network(head="laplace").capabilities
    assert network(head=PointHead("mse")).capabilities == network(head="point").capabilities
    counts = network(head=PositiveCounts()).capabilities
    assert (counts.domain, counts.shift_equivariant, counts.scale_equivariant) == ("nonnegative", False, False)
    assert network(head="point", loss="smape").capabilities.shift_equivariant is False
    assert network(head="point", loss=power_loss).capabilities == network(head="point").capabilities


def test_training_changes_copies_of_the_objects() -> None:
    loss = TiltedLoss(0.5)
    model = network(head="point", loss=loss).fit(FRAME)
    assert float(loss.weight.detach()) == 2.0
    assert int(loss.calls) == 0
    assert float(model.network_.head.loss_function.weight.detach()) < 2.0
    assert int(model.network_.head.loss_function.calls) == 15
    assert (points(model) == points(model)).all()  # a second fit starts again


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"head": "point", "loss": power_loss}, "loss=power_loss"),
        ({"head": "point", "loss": nn.HuberLoss(delta=0.5)}, "loss=HuberLoss(reduction='mean', delta=0.5)"),
        ({"head": WideLaplace(0.2)}, "head=WideLaplace(floor=0.2)"),
    ],
)
def test_objects_survive_clone_repr_and_loggers(params: dict[str, Any], text: str) -> None:
    model = network(**params)
    assert text in repr(model)
    assert model == model.clone() == clone(model) == copy.deepcopy(model)
    for name, value in params.items():
        assert model.get_params()[name] is value
    hyperparameters = dict(_fit.training_options(model, 100).hyperparameters)
    assert json.loads(json.dumps(hyperparameters)) == hyperparameters
    assert text.partition("=")[2] in hyperparameters.values()
    assert not params.keys() & resolve_ranges(model, None).keys()  # set by the user, so not searched


def test_objects_with_other_settings_or_weights_differ() -> None:
    assert network(head=WideLaplace(0.2)) != network(head=WideLaplace(0.3))
    assert network(head="point", loss=nn.HuberLoss(delta=1)) != network(head="point", loss=nn.HuberLoss(delta=2))
    assert network(head=WideLaplace(0.2)) != network(head=PositiveCounts(0.2))
    other = TiltedLoss()
    with torch.no_grad():
        other.weight += 1
    assert network(head="point", loss=TiltedLoss()) == network(head="point", loss=TiltedLoss())
    assert network(head="point", loss=TiltedLoss()) != network(head="point", loss=other)


def test_the_command_line_offers_names_alone() -> None:
    for name in ("loss", "head"):
        text = describe_parameter(declared_params(DLinear)[name])
        assert "class" not in text
        assert "Callable" not in text


def test_a_training_is_resumed_with_a_function_of_the_same_name(tmp_path: Path) -> None:
    same = types.FunctionType(power_loss.__code__, power_loss.__globals__, power_loss.__name__)  # as in another process
    same.__qualname__ = power_loss.__qualname__
    for loss in (power_loss, same):  # the second fit finds the checkpoint of the first
        network(head="point", loss=loss, checkpoint_dir=str(tmp_path), checkpoint_every=5).fit(FRAME)
    with pytest.raises(TrainingError, match="loss"):
        network(head="point", loss=TiltedLoss(), checkpoint_dir=str(tmp_path)).fit(FRAME)


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (nn.L1Loss, ParameterTypeError, r"must be 'mae'.* or a function, got <class .*L1Loss'> .*Did you mean L1Loss\(\)"),
        (lambda p, t: 1.0, ParameterError, r"must return a tensor of shape \(8,\) or \(\), got float"),
        (lambda p, t: (p - t)[:3], ParameterError, r"must return a tensor of shape \(8,\) or \(\), got \(3,\)"),
        (lambda p, t: (p - t).detach(), ParameterError, "must have a gradient"),
        (lambda p, t: p.log(), ParameterError, r"must be finite, got \[nan"),
        (lambda p: p, ParameterError, "must be computable for tensors, got TypeError"),
    ],
)
def test_a_loss_that_breaks_its_contract_is_refused_before_training(
    loss: Callable[..., Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        network(head="point", loss=loss).fit(FRAME)


class Broken(WideLaplace):
    """A head that a test breaks."""

    changes: ClassVar[dict[str, Any]] = {}

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__("changes").get(name) or super().__getattribute__(name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out_features": "2"}, "`out_features` of a head must be an integer of at least 1 and at most 100,000, got 2"),
        ({"loss": lambda raw, target, scaling: target.mean()}, r"loss\(raw, target, scaling\) of `head` must return a tensor of"),
        ({"loss": lambda raw, target, scaling: target}, "must have a gradient"),
        ({"median": lambda raw: raw}, r"median\(raw\) of `head` must return a tensor of shape \(2, 3\), got \(2, 3, 2\)"),
        ({"_mean": lambda raw: raw[..., 0] / 0}, r"mean\(raw\) of `head` must be finite"),
        ({"_quantiles": lambda raw, p, scale: raw[..., :1] - p}, r"quantiles\(raw, p\) of `head` must not decrease in p"),
    ],
)
def test_a_head_that_breaks_its_contract_is_refused_before_training(changes: dict[str, Any], message: str) -> None:
    head = Broken()
    head.__dict__["changes"] = changes
    with pytest.raises(ParameterError, match=message):
        network(head=head).fit(FRAME)


def test_types_are_checked_on_construction() -> None:
    for params in ({"loss": 3}, {"head": nn.L1Loss()}):
        with pytest.raises(ParameterTypeError, match=r"or a (function|Head), got"):
            network(**params)
    with pytest.raises(ParameterTypeError, match=r"Did you mean WideLaplace\(\)"):
        network(head=WideLaplace)
    with pytest.raises(ParameterTypeError, match="`head` must be 'quantiles', 'point', 'normal', 'student_t' or 'laplace'"):
        network(NeuralProphet, head=WideLaplace())
    assert issubclass(WideLaplace, Head)


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"head": "point", "loss": power_loss}, f"{PARTS}.power_loss"),
        ({"head": "point", "loss": TiltedLoss(0.4)}, f"{PARTS}.TiltedLoss"),
        ({"head": "point", "loss": nn.HuberLoss(delta=0.5)}, "torch.nn.modules.loss.HuberLoss"),
        ({"head": WideLaplace(0.2)}, f"{PARTS}.WideLaplace"),
    ],
)
def test_files_with_objects_are_loaded_only_if_these_are_trusted(tmp_path: Path, params: dict[str, Any], name: str) -> None:
    model, path = network(**params).fit(FRAME), tmp_path / "model"
    with pytest.raises(SaveError, match=rf"Pass save\(path, allow_skops=True\), and load\(path, trusted=\['{name}'\]\)"):
        model.save(path)
    assert not path.exists()
    model.save(path, allow_skops=True)
    with pytest.raises(ModelFileError, match=rf"must be trusted. If you trust .* load\(path, trusted=\['{name}'\]\)"):
        load(path)
    loaded = load(path, trusted=[name])
    assert loaded == model
    pd.testing.assert_frame_equal(loaded.predict(), model.predict())
    assert (points(loaded) == points(model)).all()  # the initial weights of the object are in the file, too


def test_an_untrusted_module_is_not_imported(tmp_path: Path) -> None:
    path = tmp_path / "model"
    network(head=WideLaplace()).fit(FRAME).save(path, allow_skops=True)
    code = f"import sys; from deepforecast import load\ntry: load({str(path)!r})\nexcept ValueError: print({PARTS!r} in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert output.strip() == "False"


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda prediction, target: (prediction - target).square(), "cannot be imported by this name. Define it at the top level"),
        (Forgetful(0.5), r"Forgetful must be restored by .* from the settings \(\) .*Store each constructor argument"),
        (Squared(2.0), r"Squared must be restored by .* from the settings \(tilt=4.0\).*Store each constructor argument of"),
        (Options(tilt=0.3), r"Options must be restored by .* from the settings \(\).*Store each constructor argument"),
        (with_attribute(TiltedLoss(0.3), "floor", 1.0), r"TiltedLoss must be .* from the settings \(tilt=0.3\).*change no other"),
        (with_attribute(Linked(), "level", weakref.ref(LEVELS[1])), r"Linked must be .* \(\), which has other outputs"),
        (frozen(TiltedLoss(0.3)), "TiltedLoss must be restored"),
    ],
)
def test_objects_that_cannot_be_restored_are_not_saved(tmp_path: Path, loss: Any, message: str) -> None:
    with pytest.raises(SaveError, match=message):
        network(head="point", loss=loss).fit(FRAME).save(tmp_path / "model", allow_skops=True)
    assert not (tmp_path / "model").exists()


def test_a_head_stored_under_another_name_is_not_saved(tmp_path: Path) -> None:
    model = network(head=PrivateFloor(5.0)).fit(FRAME)
    assert model != network(head=PrivateFloor(0.1))
    assert model == network(head=PrivateFloor(5.0))
    with pytest.raises(SaveError, match="PrivateFloor must be restored by its constructor arguments and weights"):
        model.save(tmp_path / "model", allow_skops=True)


def test_objects_of_trainer_are_not_in_a_file(tmp_path: Path) -> None:
    plain = {"enable_progress_bar": False, "plugins": [], "limit_train_batches": 1.0}
    objects = {"logger": CSVLogger(tmp_path), "callbacks": [Callback()], "default_root_dir": tmp_path}
    model = network(trainer={**plain, **objects}, max_steps=3).fit(FRAME)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.trainer == plain
    assert set(model.trainer) == {*plain, *objects}  # the model itself keeps them
    pd.testing.assert_frame_equal(loaded.predict(), model.predict())
    network(trainer=objects, max_steps=3).fit(FRAME).save(tmp_path / "model")
    assert load(tmp_path / "model").trainer is None


@pytest.mark.parametrize("value", [Unprintable(), nn.L1Loss, Call(1.0), functools.partial(power_loss)])
def test_models_with_any_object_have_a_repr_and_compare(value: Any) -> None:
    models = [network(head="point") for _ in range(2)]
    for model in models:
        model.__dict__["loss"] = value  # a class is refused by the constructor
    assert type(value).__name__ in repr(models[0]) or value.__name__ in repr(models[0])
    assert " at 0x" not in repr(models[0])
    assert models[0] == models[1]
    assert models[0] != network(head="point")
    assert network(head="point", loss=Unprintable()) == network(head="point", loss=Unprintable())
    assert network(trainer={"plugins": np.ones(2)}) == network(trainer={"plugins": np.ones(2)})
    assert network(trainer={"plugins": np.ones(2)}) != network(trainer={"plugins": np.zeros(2)})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda p, t: (p - t) ** 2, lambda p, t: (p - t) ** 4),
        (Call(1.0), Call(2.0)),
        (Forgetful(1.0), Forgetful(2.0)),
    ],
)
def test_a_training_is_not_resumed_with_another_object(tmp_path: Path, first: Any, second: Any) -> None:
    params = {"head": "point", "checkpoint_dir": str(tmp_path), "max_steps": 4}
    for loss in (first, copy.deepcopy(first)):
        network(loss=loss, **params).fit(FRAME)
    with pytest.raises(TrainingError, match="differ in: loss"):
        network(loss=second, **params).fit(FRAME)


def test_a_function_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network(head="point", loss=power_loss).fit(FRAME).save(tmp_path / "model", allow_skops=True)
    monkeypatch.delattr(custom_parts, "power_loss")
    with pytest.raises(ModelFileError, match=f"{PARTS}.power_loss cannot be imported"):
        load(tmp_path / "model", trusted=[f"{PARTS}.power_loss"])


NEW_FILE = '''
from deepforecast.nn.heads.distributions import LaplaceHead, SymmetricHead
from deepforecast.nn.heads.base import softplus_floor
import torch

def cubic(point, target, scaling):
    return (point - target).abs() ** 3

class LogisticHead(SymmetricHead):
    name = "logistic"
    out_features = 2

    def loss(self, raw, target, scaling):
        scale = softplus_floor(raw[..., 1])
        z = (target - raw[..., 0]) / scale
        return z + 2 * torch.nn.functional.softplus(-z) + scale.log()

    def _quantiles(self, raw, p, scale):
        return raw[..., :1] + softplus_floor(raw[..., 1:]) * torch.logit(p)
'''
ADD_ROWS = '''
import sys, types
from pathlib import Path
import deepforecast.nn
deepforecast.nn.__path__.append(sys.argv[1])
source = Path(deepforecast.nn.__path__[0], "names.py").read_text()
for table, row in (
    ("HEAD_FACTS: dict[str, HeadFacts] = {", '"logistic": HeadFacts("logistic.LogisticHead"),'),
    ("LOSS_FACTS: dict[str, LossFacts] = {", '"cubic": LossFacts("logistic.cubic"),'),
):
    assert source.count(table) == 1
    source = source.replace(table, table + row)
names = sys.modules["deepforecast.nn.names"] = deepforecast.nn.names = types.ModuleType("deepforecast.nn.names")
exec(compile(source, "names.py", "exec"), vars(names))

from deepforecast import DLinear, load
from deepforecast.datasets import generate
frame = generate(2, 60)
model = DLinear(horizon=4, max_steps=5, head="logistic").fit(frame)
assert type(model.network_.head).__name__ == "LogisticHead"
assert model.predict(level=80).notna().all().all()
model.save(sys.argv[1] + "/model")
assert load(sys.argv[1] + "/model").predict().equals(model.predict())
point = DLinear(horizon=4, max_steps=5, head="point", loss="cubic").fit(frame)
assert not point.predict().equals(DLinear(horizon=4, max_steps=5, head="point").fit(frame).predict())
try:
    DLinear(head="none")
except ValueError as error:
    assert "'logistic'" in str(error)
print("done")
'''


def test_a_new_head_or_loss_is_a_file_and_a_row(tmp_path: Path) -> None:
    (tmp_path / "logistic.py").write_text(NEW_FILE)
    command = [sys.executable, "-c", ADD_ROWS, str(tmp_path)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert output.stdout.strip() == "done", output.stderr
