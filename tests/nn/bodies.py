"""What the tests of direct bodies share: inputs from a seed, and what every body keeps to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.network import DirectBody

T = TypeVar("T")
PLAIN = InputSizes(input_size=12, horizon=4, out_features=1)
FULL = InputSizes(input_size=12, horizon=4, out_features=3, past=2, future=2, static=3)


def some_inputs(sizes: InputSizes, windows: int = 5, seed: int = 0, dtype: torch.dtype = torch.float32) -> Inputs:
    """Windows of random numbers; the first of them begins with two missing rows, the second misses one in the middle."""
    drawn = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=drawn, dtype=dtype)

    length, horizon = sizes.input_size, sizes.horizon
    seen = torch.ones(windows, length, dtype=dtype)
    seen[0, :2] = 0.0
    if windows > 1:
        seen[1, length // 2] = 0.0
    past, future = normal(windows, length, sizes.past), normal(windows, horizon, sizes.future)
    return Inputs(normal(windows, length) * seen, seen, past, future, normal(windows, sizes.static))


def seeded(make: Callable[[], T], seed: int = 0) -> T:
    """What `make` gives with torch's generator at `seed`; the generator of everyone else stays where it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def shuffled(body: DirectBody, seed: int = 1) -> DirectBody:
    """All its weights random, those that begin at zero, too."""
    drawn = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in body.parameters():
            weight.copy_(torch.randn(weight.shape, generator=drawn) / 3)
    return body


def moved(body: DirectBody, inputs: Inputs, field: str) -> float:
    """By how much the features move when a field of the inputs does."""
    with torch.no_grad():
        other = replace(inputs, **{field: getattr(inputs, field) + 1.0})
        return float((body.features(other) - body.features(inputs)).abs().max())


def keeps_the_rules(
    make: Callable[[InputSizes], DirectBody], used: tuple[str, ...] = ("y", "past", "future", "static"), least: float = 1e-3
) -> None:
    """Shapes, gradients in every weight, every field of use, the same again in evaluation, windows for themselves, devices."""
    for sizes in (PLAIN, FULL):
        body, inputs = seeded(lambda sizes=sizes: make(sizes)), some_inputs(sizes)
        found = body.features(inputs)
        assert found.shape == (5, sizes.horizon, sizes.out_features)
        assert found.dtype == torch.float32
        found.square().sum().backward()
        for name, weight in body.named_parameters():
            assert weight.grad is not None, name
            assert weight.grad.abs().sum() > 0, name
    shuffled(body).eval()
    assert all(moved(body, inputs, field) > least for field in used)
    with torch.no_grad():
        found = body.features(inputs)
        assert torch.equal(found, body.features(inputs))
        for window in range(5):
            alone = body.features(rows(inputs, window, window + 1))
            assert torch.allclose(alone, found[window : window + 1], atol=1e-4, rtol=1e-4)
    _on_another_device(make)


def rows(inputs: Inputs, begin: int, end: int) -> Inputs:
    """Some of the windows."""
    held = {one.name: getattr(inputs, one.name) for one in fields(inputs)}
    return Inputs(**{name: value[begin:end] for name, value in held.items() if value is not None})


def _on_another_device(make: Callable[[InputSizes], DirectBody]) -> None:
    """Nothing is built on the CPU on the way: on another device it would be in the wrong place."""
    body = make(FULL).to("meta")
    held = {one.name: getattr(some_inputs(FULL), one.name) for one in fields(Inputs)}
    inputs = Inputs(**{name: value.to("meta") for name, value in held.items() if value is not None})
    with NothingOnTheCPU():
        assert body.features(inputs).device.type == "meta"
        with pytest.raises(AssertionError):  # a product with a tensor from elsewhere, which torch itself does not mind here
            inputs.y @ torch.ones(12, 3)


class NothingOnTheCPU(TorchFunctionMode):
    """Refuses calls with or for tensors of the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for one in tree_leaves((args, kwargs, found)):
            assert not (isinstance(one, Tensor) and one.device.type == "cpu"), f"{func} of a tensor on the CPU"
        return found
