"""How a run uses the machine: it follows from sizes, never from timing, so that the same fit gives the same bits."""

from __future__ import annotations

import math

import torch

from deepforecast.core.threads import torch_threads
from deepforecast.errors import TrainingWarning, warn
from deepforecast.nn.network import ForecastNetwork
from deepforecast.nn.windows import WindowStore
from deepforecast.training.options import TrainingOptions

MIN_PARALLEL_WORK = 200_000_000
"""Multiplications of a step from which a second thread helps more than it costs."""

MEMORY_FRACTION = 0.5
"""Of a device's free memory, how much the windows may take: the rest is the network's."""


def threads_for(network: ForecastNetwork, options: TrainingOptions) -> int:
    """Threads of a step: one where the work of two is not worth dividing."""
    cell_parameters = [parameter for layer in network.modules() if isinstance(layer, torch.nn.RNNBase) for parameter in layer.parameters()]
    work = network.n_multiplications + sum(parameter.numel() for parameter in cell_parameters) * (network.sizes.input_size - 1)  # once for each row of a window
    return torch_threads() if work * options.batch_size >= MIN_PARALLEL_WORK else 1


def place_on_device(windows: WindowStore, device: torch.device) -> WindowStore:
    """The panel on the device, if there is room for it; else where it is, from where batches go there."""
    if windows.y.device == device or windows.nbytes > MEMORY_FRACTION * free_memory(device):
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


def precision_for(options: TrainingOptions) -> str:
    """The precision asked for, or the next best that the device has; what it lacks is said."""
    requested, device = options.precision, device_type(options.accelerator)
    precision = requested
    if requested == "16-mixed" and device == "cpu":
        precision = "bf16-mixed"
    elif requested == "bf16-mixed" and not _has_bf16(device):
        precision = "32-true"
    if precision != requested:
        warn(f"Mixed precision is used where the device has it; {device} has no {requested}: trained in {precision}.", TrainingWarning)
    return precision


def _has_bf16(device: str) -> bool:
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return torch.amp.is_autocast_available(device)
