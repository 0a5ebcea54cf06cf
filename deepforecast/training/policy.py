"""How a run uses the machine: it follows from sizes, never from timing, so that the same fit gives the same bits."""

from __future__ import annotations

from deepforecast.core.threads import allowed_threads
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.options import Options

WORTH = 200_000_000
"""Multiplications of a step from which a second thread helps more than it costs."""


def threads_for(network: ForecastNetwork, options: Options) -> int:
    """Threads of a step: one where the work of two is not worth dividing."""
    return allowed_threads() if network.work * options.batch_size >= WORTH else 1
