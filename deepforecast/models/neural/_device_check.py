"""A training step with fake tensors, which finds device mismatches without the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepforecast.core.threads import passive_waiting
from deepforecast.data.windows import WindowColumns
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.imports import quiet_import

if TYPE_CHECKING:
    from torch import nn

    from deepforecast.models.neural._base import NeuralForecaster

N_WINDOWS, SEASON, N_STEPS = 4, 4, 5


def fake_device_step(model: NeuralForecaster, device: str) -> None:
    """Compute loss, gradients and a forecast with all kinds of covariates as fake tensors."""
    with passive_waiting("torch"), quiet_import():
        import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from deepforecast.models.neural import _fit
    from deepforecast.nn.batch import Batch

    horizon = model.default_horizon or N_STEPS
    length = max(model.input_size, 1) if isinstance(model.input_size, int) else 3 * horizon
    names = ("ahead", "behind", "kind_ahead", "kind_behind", "fixed", "kind")
    columns = WindowColumns(
        length, horizon, names[:2], 1, names[2:4], 1, names[4:5], names[5:], {"kind_ahead": 3, "kind_behind": 2, "kind": 4},
        dict.fromkeys(names, 0.0), dict.fromkeys(names, 1.0), (), model._time_features(None),
    )  # fmt: skip
    n_calendar = columns.calendar_width
    with torch_defaults(), FakeTensorMode():
        network = _fit.build_network(model, columns, SEASON).train()
        _move(network, device)

        def make_numbers(*shape: int) -> torch.Tensor:
            return torch.zeros(N_WINDOWS, *shape, device=device)

        def make_codes(*shape: int) -> torch.Tensor:
            return torch.zeros(N_WINDOWS, *shape, device=device, dtype=torch.int64)

        batch = Batch(
            make_numbers(length).double(),
            make_numbers(length, 2 + n_calendar),
            make_numbers(horizon, 1 + n_calendar),
            make_numbers(1),
            make_codes(length, 2),
            make_codes(horizon, 1),
            make_codes(1),
            make_numbers(1).double(),
            make_numbers(1).double(),
            make_numbers(horizon).double(),
        )
        for ratio in (1.0, 0.5):
            network.loss(batch, ratio).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            raw, scaling = network.eval()(batch)
            scaling.unstandardize(network.head.median(raw))
    misplaced = [
        name
        for name, parameter in network.named_parameters()
        if parameter.grad is not None and parameter.grad.device != parameter.device
    ]
    if misplaced:
        raise RuntimeError(f"gradients are on another device than their weights: {misplaced[0]}")


def _move(network: nn.Module, device: str) -> None:
    """`Module.to(device)` for fake tensors, which torch does not support."""
    from torch.nn import Parameter

    for module in network.modules():
        for name, weight in list(module._parameters.items()):
            if weight is not None:
                setattr(module, name, Parameter(weight.detach().to(device)))
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else buffer.to(device)
