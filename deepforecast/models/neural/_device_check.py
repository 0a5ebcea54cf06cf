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

N_WINDOWS = 4
SEASON_LENGTH = 4
DEFAULT_HORIZON = 5  # for models without a horizon


def fake_device_step(model: NeuralForecaster, device: str) -> None:
    """Compute loss, gradients and a forecast with all kinds of covariates as fake tensors.

    Raises if tensors of different devices meet, or if a gradient is on another device than its
    weight.
    """
    with passive_waiting("torch"), quiet_import():
        import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from deepforecast.models.neural import _fit
    from deepforecast.nn.batch import Batch

    horizon = model.default_horizon or DEFAULT_HORIZON
    length = max(model.input_size, 1) if isinstance(model.input_size, int) else 3 * horizon
    columns = _example_columns(model, length, horizon)
    n_calendar = columns.calendar_width
    with torch_defaults(), FakeTensorMode():
        network = _fit.build_network(model, columns, SEASON_LENGTH).train()
        _move(network, device)

        def make_numbers(*shape: int) -> torch.Tensor:
            return torch.zeros(N_WINDOWS, *shape, device=device)

        def make_codes(*shape: int) -> torch.Tensor:
            return torch.zeros(N_WINDOWS, *shape, device=device, dtype=torch.int64)

        batch = Batch(
            y=make_numbers(length).double(),
            past=make_numbers(length, 2 + n_calendar),
            future=make_numbers(horizon, 1 + n_calendar),
            static=make_numbers(1),
            past_codes=make_codes(length, 2),
            future_codes=make_codes(horizon, 1),
            static_codes=make_codes(1),
            loc=make_numbers(1).double(),
            scale=make_numbers(1).double(),
            target=make_numbers(horizon).double(),
        )
        for teacher_forcing_ratio in (1.0, 0.5):  # parallel and step-by-step decoding
            network.loss(batch, teacher_forcing_ratio).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            raw, scaling = network.eval()(batch)
            scaling.unstandardize(network.head.median(raw))
    misplaced = [
        name
        for name, parameter in network.named_parameters()
        if parameter.grad is not None and parameter.grad.device != parameter.device
    ]
    if misplaced:
        raise RuntimeError(f"The gradient of weight {misplaced[0]} must be on the device of the weight.")


def _example_columns(model: NeuralForecaster, input_size: int, horizon: int) -> WindowColumns:
    """Columns with two past covariates, of which one is a future covariate, and a static one, of each
    type: numeric and categorical.
    """
    numeric = ("future", "past")
    categorical = ("future_kind", "past_kind")
    names = (*numeric, *categorical, "static", "static_kind")
    return WindowColumns(
        input_size=input_size,
        horizon=horizon,
        numeric=numeric,
        n_future=1,
        categorical=categorical,
        n_future_codes=1,
        static=("static",),
        static_codes=("static_kind",),
        counts={"future_kind": 3, "past_kind": 2, "static_kind": 4},
        loc=dict.fromkeys(names, 0.0),
        scale=dict.fromkeys(names, 1.0),
        calendar=(),
        time_features=model._time_features(None),
    )


def _move(network: nn.Module, device: str) -> None:
    """Move the network in place, as `Module.to(device)`, which does not support fake tensors."""
    from torch.nn import Parameter

    for module in network.modules():
        for name, weight in list(module._parameters.items()):
            if weight is not None:
                setattr(module, name, Parameter(weight.detach().to(device)))
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else buffer.to(device)
