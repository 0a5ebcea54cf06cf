"""The range test: at which learning rate a network learns best, tried on a copy in a hundred steps of growing rates."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.options import Options
from deepforecast.training.sampler import Steps
from deepforecast.training.stepping import clipped, optimizer_for, seed

RATES = np.geomspace(1e-6, 1.0, 100)
SMOOTH = 0.9  # how much of a smoothed loss is those before
BLOWN = 4.0  # times the least loss: rates beyond are too large
BELOW = 10.0  # the rate is so many times smaller than that of the least loss, where it still falls


def found_rate(network: ForecastNetwork, steps: Steps, options: Options) -> float:
    """The largest rate to train at, by batches that the run itself does not draw. Smith 2017, "Cyclical learning rates"."""
    trial = deepcopy(network).train()
    options = replace(options, learning_rate=float(RATES[0]))
    optimizer = optimizer_for(trial, options)
    seen: list[float] = []
    for number, rate in enumerate(RATES):
        for group in optimizer.param_groups:
            group["lr"] = float(rate)
        batch = next(steps.of(steps.end + number))
        seed(options.seed * 1_000_003 + number, batch.y.device)
        optimizer.zero_grad()
        loss = trial.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        clipped(list(trial.parameters()), options)
        optimizer.step()
        seen.append(float(loss.detach()))
        if not math.isfinite(seen[-1]) or (number > 10 and seen[-1] > BLOWN * max(min(seen), 1e-3)):
            break
    return chosen(np.array(seen))


def chosen(losses: Floats) -> float:
    """The rate for these losses, one for each of `RATES` as far as they went.

    >>> chosen(np.concatenate([np.full(50, 1.0), np.linspace(1.0, 0.5, 20), np.linspace(0.5, 9.0, 10)])) < 1e-2
    True
    """
    weights, smooth, mean = 0.0, [], 0.0
    for one in losses[np.isfinite(losses)]:
        mean, weights = SMOOTH * mean + (1 - SMOOTH) * float(one), SMOOTH * weights + (1 - SMOOTH)
        smooth.append(mean / weights)
    least = int(np.argmin(smooth)) if smooth else 0
    return float(max(RATES[least] / BELOW, RATES[0]))
