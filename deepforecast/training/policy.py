"""How a run uses the machine: it follows from sizes, never from timing, so that the same fit gives the same bits."""

from __future__ import annotations

import math

import torch

from deepforecast.core.threads import torch_threads
from deepforecast.errors import TrainingWarning, say
from deepforecast.nn.network import ForecastNetwork
from deepforecast.nn.windows import Windows
from deepforecast.training.options import Options

WORTH = 200_000_000
"""Multiplications of a step from which a second thread helps more than it costs."""

SHARE = 0.5
"""Of a device's free memory, how much the windows may take: the rest is the network's."""


def threads_for(network: ForecastNetwork, options: Options) -> int:
    """Threads of a step: one where the work of two is not worth dividing."""
    cells = [one for part in network.modules() if isinstance(part, torch.nn.RNNBase) for one in part.parameters()]
    work = network.work + sum(one.numel() for one in cells) * (network.sizes.input_size - 1)  # once for each row of a window
    return torch_threads() if work * options.batch_size >= WORTH else 1


def placed(windows: Windows, device: torch.device) -> Windows:
    """The panel on the device, if there is room for it; else where it is, from where batches go there."""
    if windows.y.device == device or windows.bytes > SHARE * free_memory(device):
        return windows
    return windows.to(device)


def free_memory(device: torch.device) -> float:
    """Bytes that a device has left, as far as it tells."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    return math.inf if device.type == "cpu" else 0.0


def device_type(accelerator: str) -> str:
    """The device that Lightning takes by this name."""
    if accelerator not in ("auto", "gpu"):
        return "cuda" if accelerator == "cuda" else accelerator
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def precision_for(options: Options) -> str:
    """The precision asked for, or the next best that the device has; what it lacks is said."""
    asked, device = options.precision, device_type(options.accelerator)
    there = asked
    if asked == "16-mixed" and device == "cpu":
        there = "bf16-mixed"
    elif asked == "bf16-mixed" and not _has_bf16(device):
        there = "32-true"
    if there != asked:
        say(f"Mixed precision is used where the device has it; {device} has no {asked}: trained in {there}.", TrainingWarning)
    return there


def _has_bf16(device: str) -> bool:
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return torch.amp.is_autocast_available(device)
