"""A simulated device refuses what a real one does, and computes what the CPU does."""

from __future__ import annotations

import pytest
import torch

from deepforecast.models.neural._device_check import DeviceMismatchError, SimulatedTensor, simulated_device


def test_a_simulated_device_refuses_what_a_device_refuses() -> None:
    with simulated_device() as device:
        on_device = torch.arange(6.0, device=device).view(2, 3)
        with pytest.raises(DeviceMismatchError, match="'add' must be on one device"):
            on_device + torch.ones(3)
        with pytest.raises(DeviceMismatchError):
            torch.nn.functional.linear(on_device, torch.ones(4, 3))
        with pytest.raises((TypeError, RuntimeError)):
            on_device.numpy()
        with simulated_device(float64=False), pytest.raises(DeviceMismatchError, match="no float64"):
            on_device.double()


def test_a_simulated_device_computes_what_the_cpu_does() -> None:
    with simulated_device() as device:
        weight = torch.arange(6.0).view(2, 3).to(device).requires_grad_()
        ((weight @ torch.tensor([1.0, 2.0, 3.0], device=device)) * torch.tensor(2.0)).sum().backward()
        assert isinstance(weight.grad, SimulatedTensor)
        assert weight.grad.cpu().tolist() == [[2, 4, 6], [2, 4, 6]]
        assert weight.detach()[torch.tensor([1])].cpu().tolist() == [[3, 4, 5]]
        assert weight.detach().clone().transpose_(0, 1).shape == (3, 2)
        assert float(weight.detach().sum()) == 15
