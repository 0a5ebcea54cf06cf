"""Where tensors are placed on devices with and without float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from deepforecast.models.neural._device_check import DEVICE, simulated_device
from deepforecast.nn.batch import Batch, as_float64, has_float64, place, without_float64
from deepforecast.nn.scaling import SCALER_FUNCTIONS, scale_window

FLOAT64_FIELDS = ("y", "loc", "scale", "target")


def batch(level: float = 0.0) -> Batch:
    random = np.random.default_rng(0)
    y = torch.from_numpy(level + random.normal(size=(4, 12)))
    zeros, codes = torch.zeros(4, 8, 0), torch.zeros(4, 8, 0, dtype=torch.int64)
    return Batch(y[:, :8], zeros, zeros[:, :4], zeros[:, 0], codes, codes[:, :4], codes[:, 0],
                 torch.zeros(4, 1).double(), torch.ones(4, 1).double(), y[:, 8:], torch.ones(4, 4), torch.ones(4, 8))  # fmt: skip


def test_mps_is_the_device_without_float64() -> None:
    assert [has_float64(torch.device(name)) for name in ("cpu", "cuda", "mps")] == [True, True, False]


def test_without_float64_only_float64_stays_on_the_cpu() -> None:
    with simulated_device(float64=False) as device:
        moved = batch().to(device)
        assert moved.past.device == device
        for name in Batch.__dataclass_fields__:
            assert getattr(moved, name).device.type == ("cpu" if name in FLOAT64_FIELDS else "meta"), name
        assert as_float64(torch.ones(2).to(device)).device.type == "cpu"
    assert has_float64(DEVICE)


def test_with_float64_the_whole_batch_moves() -> None:
    with simulated_device() as device:
        moved = batch().to(device)
        assert {getattr(moved, name).device for name in Batch.__dataclass_fields__} == {device}
        assert as_float64(torch.ones(2).to(device)).device == device


@pytest.mark.parametrize("scaler", SCALER_FUNCTIONS)
@pytest.mark.parametrize("float64", [True, False])
def test_windows_are_scaled_in_float64_for_every_device(scaler: str, float64: bool) -> None:
    """At level 1e9 float32 would lose all digits of the deviations."""
    expected, *_ = scale_window(batch(1e9), scaler, 2, True, torch.ones(1))
    with simulated_device(float64) as device:
        z, mask, scale = scale_window(batch(1e9).to(device), scaler, 2, True, torch.ones(1).to(device))
        assert z.device == mask.device == scale.naive.device == scale.level.device == device
        y = scale.unstandardize(z).cpu()
        np.testing.assert_allclose(z.cpu(), expected, rtol=1e-6)
    np.testing.assert_allclose(y - 1e9, batch(1e9).y - 1e9, rtol=1e-6, atol=1e-6 if scaler not in ("mean_abs", "none") else 1e2)


def test_the_cpu_without_float64_takes_the_same_path() -> None:
    with without_float64("cpu"):
        assert not has_float64(torch.device("cpu"))
        assert place(torch.ones(1).double(), torch.device("cpu")).dtype is torch.float64
    assert has_float64(torch.device("cpu"))
