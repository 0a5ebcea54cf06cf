"""Threads, device and precision of a run.

They are chosen by the sizes of the run, not by timing, so that results are reproducible.
"""

from __future__ import annotations

import math

import torch

from deepforecast.core.threads import torch_threads
from deepforecast.errors import TrainingWarning, warn
from deepforecast.nn.batch import WindowStore, has_float64
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.options import TrainingOptions

MIN_PARALLEL_WORK = 200_000_000
"""Multiplications per step from which more than one thread is faster."""

MEMORY_FRACTION = 0.5
"""Largest share of a device's free memory for the windows."""


def threads_for(network: ForecastNetwork, options: TrainingOptions) -> int:
    """Return the number of threads for a training step: 1 if it is small."""
    n_cell_weights = sum(
        parameter.numel()
        for layer in network.modules()
        if isinstance(layer, torch.nn.RNNBase)
        for parameter in layer.parameters()
    )
    # Weights of recurrent cells are used once per time step.
    n_multiplications = network.n_multiplications + n_cell_weights * (network.sizes.input_size - 1)
    return torch_threads() if n_multiplications * options.batch_size >= MIN_PARALLEL_WORK else 1


def place_on_device(windows: WindowStore, device: torch.device) -> WindowStore:
    """Return the windows on the device if they fit into its memory, else unchanged.

    Batches of windows that are not on the device are moved one by one, also on a device without
    float64, for which the CPU scales them.
    """
    if windows.y.device == device or not has_float64(device) or windows.nbytes > MEMORY_FRACTION * free_memory(device):
        return windows
    return windows.to(device)


def free_memory(device: torch.device) -> float:
    """Return the free memory of a device in bytes; 0 if unknown, infinite for the CPU."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    return math.inf if device.type == "cpu" else 0.0


def device_type(accelerator: str) -> str:
    """Return torch's device type for an accelerator name of Lightning.

    'gpu' is CUDA or MPS, 'auto' is CUDA or the CPU: small networks are slower on MPS.
    """
    if accelerator not in ("auto", "gpu"):
        return accelerator
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if accelerator == "gpu" and torch.backends.mps.is_available() else "cpu"


def precision_for(options: TrainingOptions) -> str:
    """Return the requested precision, or with a warning a similar one that the device supports."""
    requested, device = options.precision, device_type(options.accelerator)
    precision = requested
    if device == "mps":  # Lightning's mixed precision is that of CUDA there
        precision = "32-true"
    elif requested == "16-mixed" and device == "cpu":
        precision = "bf16-mixed"
    elif requested == "bf16-mixed" and not _has_bf16(device):
        precision = "32-true"
    if precision != requested:
        message = (
            f"The device {device} cannot train with precision={requested!r}; {precision!r} is used. "
            f"Set precision={precision!r} to silence this warning."
        )
        warn(message, TrainingWarning)
    return precision


def _has_bf16(device: str) -> bool:
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return torch.amp.is_autocast_available(device)
