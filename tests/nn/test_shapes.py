"""Signatures of `nn` state the shape of every tensor, and calls that break one are noticed."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from jaxtyping import TypeCheckError
from torch import Tensor

import deepforecast.nn
from deepforecast.nn import attention, multihead, scaling
from deepforecast.nn.attention import attend
from deepforecast.nn.batch import Batch, Inputs
from deepforecast.nn.heads.quantiles import QuantileHead
from deepforecast.nn.layers import BatchNorm
from deepforecast.nn.scaling import Scale, scale_window
from tests.nn import shapes
from tests.nn.scales import scale


def zeros(*shape: int) -> Tensor:
    return torch.zeros(*shape)


WRONG: dict[str, Callable[[], Any]] = {
    "function, axis of another length": lambda: attend(zeros(2, 1, 3), zeros(2, 4, 5)),
    "function, axis too few": lambda: attend(zeros(1, 3), zeros(3, 5)),
    "function of another module": lambda: multihead.attention(zeros(2, 4, 3, 8), zeros(2, 4, 5, 8), zeros(2, 4, 6, 8)),
    "mask of numbers": lambda: attend(zeros(2, 1, 3), zeros(2, 3, 5), zeros(2, 1, 3)),
    "method": lambda: QuantileHead().loss(zeros(2, 3, 9), zeros(2, 4), scale(2)),
    "inherited method": lambda: QuantileHead().mean_loss(zeros(2, 3, 9), zeros(2, 3), zeros(2, 1), scale(2)),
    "module": lambda: BatchNorm(3)(zeros(2, 3).long()),
    "dataclass": lambda: Inputs(zeros(2, 5), zeros(2, 5), zeros(2, 4, 1), zeros(2, 3, 1), zeros(2, 0)),
    "dtype of a dataclass": lambda: Scale(zeros(2, 1), zeros(2, 1), zeros(2, 1)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_shape_is_noticed(name: str) -> None:
    with pytest.raises(TypeCheckError, match="whilst checking the parameters"):
        WRONG[name]()


def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "masked_softmax", lambda scores, valid: torch.cat([scores, scores], 1))
    with pytest.raises(TypeCheckError, match=r"checking the return value of deepforecast\.nn\.attention\.attend"):
        attend(zeros(2, 1, 3), zeros(2, 3, 5))


def test_a_wrong_shape_inside_the_package_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls within `nn` are checked too, not only those of the tests."""
    monkeypatch.setitem(scaling.SCALER_FUNCTIONS, "none", lambda y, mask, n_observed: (y.double()[:, :1], y.double()))
    none, codes = zeros(2, 5, 0), zeros(2, 5, 0).long()
    ones = torch.ones(2, 1).double()
    batch = Batch(zeros(2, 5).double(), none, none[:, :3], none[:, 0], codes, codes[:, :3], codes[:, 0], ones, ones)
    with pytest.raises(TypeCheckError, match=r"Scale\.__init__"):
        scale_window(batch, "none", 0, True)


def test_outside_of_the_tests_of_nn_nothing_is_checked() -> None:
    """The package itself knows nothing of jaxtyping: its functions are the plain ones as soon as the block ends."""
    module = types.ModuleType("user")
    module.attend = checked = attend  # type: ignore[attr-defined]
    plain = checked.__wrapped__  # type: ignore[attr-defined]
    module.attend = plain  # type: ignore[attr-defined]
    assert module.attend is not attend
    with shapes.checked_shapes(module):
        assert module.attend is attend
    assert module.attend is plain
    assert not hasattr(plain, "__wrapped__")
    sources = [path.read_text("utf-8") for path in Path(deepforecast.__path__[0]).rglob("*.py")]
    at_run_time = [line for text in sources for line in text.splitlines() if line.startswith(("from jaxtyping", "import jaxtyping"))]
    assert at_run_time == []


def test_every_tensor_of_a_public_signature_has_a_shape() -> None:
    assert len(shapes.MODULES) > 20
    assert len(shapes.checked_functions()) + len(shapes.checked_members()) > 200
    assert [place for module in shapes.MODULES for place in shapes.unshaped(module)] == []


def test_a_tensor_without_a_shape_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = '''
from __future__ import annotations
from collections.abc import Callable
from dataclasses import dataclass
from torch import Tensor
def plain(x: Tensor) -> Float[Tensor, "n"]: ...
def nested(x: Float[Tensor, "n"]) -> tuple[list[Tensor | None], int]: ...
def with_function(x: Float[Tensor, "n"], function: Callable[[Tensor], Tensor]) -> None: ...
def _private(x: Tensor) -> Tensor: ...
@dataclass
class Fields:
    x: Tensor
    @property
    def y(self) -> Tensor: ...
    @classmethod
    def make(cls, x: Tensor) -> int: ...
    def _hidden(self) -> Tensor: ...
'''
    module = types.ModuleType("sample")
    monkeypatch.setitem(sys.modules, "sample", module)  # where a dataclass looks for its module
    exec(source, vars(module))
    places = [place.removeprefix("sample.") for place in shapes.unshaped(module)]
    assert sorted(places) == ["Fields.__init__: x", "Fields.make: x", "Fields.y: return", "nested: return", "plain: x"]
