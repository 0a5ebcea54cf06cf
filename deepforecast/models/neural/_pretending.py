"""A step of learning on a device that need not be there: shapes and devices are followed, nothing is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepforecast.core.threads import waiting_passively
from deepforecast.data.windows import Channels
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.importing import unnoticed

if TYPE_CHECKING:
    from torch import nn

    from deepforecast.models.neural._base import NeuralForecaster

ROWS, SEASON, STEPS = 4, 4, 5


def step(model: NeuralForecaster, device: str) -> None:
    """Loss, gradients and a forecast of a network that is given a column of every kind, all of it on the device."""
    with waiting_passively("torch"), unnoticed():
        import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from deepforecast.models.neural import _making
    from deepforecast.nn.batch import Batch

    horizon = model.own_horizon or STEPS
    length = max(model.input_size, 1) if isinstance(model.input_size, int) else 3 * horizon
    names = ("ahead", "behind", "kind_ahead", "kind_behind", "fixed", "kind")
    channels = Channels(
        length, horizon, names[:2], 1, names[2:4], 1, names[4:5], names[5:], {"kind_ahead": 3, "kind_behind": 2, "kind": 4},
        dict.fromkeys(names, 0.0), dict.fromkeys(names, 1.0), (), model._moments(None),
    )  # fmt: skip
    clock = channels.clock_width
    with torch_defaults(), FakeTensorMode():
        network = _making.fresh(model, channels, SEASON).train()
        _move(network, device)

        def numbers(*shape: int) -> torch.Tensor:
            return torch.zeros(ROWS, *shape, device=device)

        def codes(*shape: int) -> torch.Tensor:
            return torch.zeros(ROWS, *shape, device=device, dtype=torch.int64)

        batch = Batch(
            numbers(length).double(), numbers(length, 2 + clock), numbers(horizon, 1 + clock), numbers(1), codes(length, 2),
            codes(horizon, 1), codes(1), numbers(1).double(), numbers(1).double(), numbers(horizon).double(),
        )  # fmt: skip
        for share in (1.0, 0.5):
            network.loss(batch, share).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            raw, scale = network.eval()(batch)
            scale.back(network.head.median(raw))
    lost = [name for name, one in network.named_parameters() if one.grad is not None and one.grad.device != one.device]
    if lost:
        raise RuntimeError(f"gradients lie on another device than their weights: {lost[0]}")


def _move(network: nn.Module, device: str) -> None:
    """What `Module.to` does, which tensors that pretend do not let it do."""
    from torch.nn import Parameter

    for part in network.modules():
        for name, weight in list(part._parameters.items()):
            if weight is not None:
                setattr(part, name, Parameter(weight.detach().to(device)))
        for name, held in part._buffers.items():
            part._buffers[name] = None if held is None else held.to(device)
