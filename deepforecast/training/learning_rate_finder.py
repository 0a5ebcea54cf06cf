"""Learning-rate range test (Smith 2017, arXiv:1506.01186)."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.optimization import clip_gradients, make_optimizer, seed_generators
from deepforecast.training.options import TrainingOptions
from deepforecast.training.sampler import WindowSampler

RATES = np.geomspace(1e-6, 1.0, 100)
SMOOTHING = 0.9  # decay of the exponential moving average of the losses
DIVERGED_FACTOR = 4.0  # the test stops if the loss is this many times the smallest
MIN_RATES = 11  # rates before the test may stop for this reason
RATE_DIVISOR = 10.0  # at the rate of the smallest loss divided by this, the loss is still decreasing


def find_learning_rate(
    network: ForecastNetwork, sampler: WindowSampler, options: TrainingOptions
) -> float:
    """Find a learning rate by training a copy of the network with rates that grow from 1e-6 to 1.

    The test stops early if the loss diverges. Its batches are not those of the run. Returns the
    rate of the smallest smoothed loss, divided by `RATE_DIVISOR`.

    References
    ----------
    Smith (2017), "Cyclical Learning Rates for Training Neural Networks", arXiv:1506.01186.
    """
    trial = deepcopy(network).train()
    options = replace(options, learning_rate=float(RATES[0]))
    optimizer = make_optimizer(trial, options)
    losses: list[float] = []
    for step, rate in enumerate(RATES):
        for group in optimizer.param_groups:
            group["lr"] = float(rate)
        batch = next(sampler.step_batches(sampler.stop_step + step))
        seed_generators(options.seed * 1_000_003 + step, batch.past.device)
        optimizer.zero_grad()
        loss = trial.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        clip_gradients(list(trial.parameters()), options)
        optimizer.step()
        losses.append(float(loss.detach()))
        if not math.isfinite(losses[-1]) or (
            step >= MIN_RATES and losses[-1] > DIVERGED_FACTOR * max(min(losses), 1e-3)
        ):
            break
    return choose_rate(np.array(losses))


def choose_rate(losses: Floats) -> float:
    """Return the learning rate given the losses (n,) of the first n of `RATES`.

    The losses are smoothed by an exponential moving average with bias correction.

    Examples
    --------
    >>> choose_rate(np.concatenate([np.full(50, 1.0), np.linspace(1.0, 0.5, 20), np.linspace(0.5, 9.0, 10)])) < 1e-2
    True
    """
    mean = 0.0
    weight_sum = 0.0
    smoothed_losses: list[float] = []
    for loss in losses[np.isfinite(losses)]:
        mean = SMOOTHING * mean + (1 - SMOOTHING) * float(loss)
        weight_sum = SMOOTHING * weight_sum + (1 - SMOOTHING)
        smoothed_losses.append(mean / weight_sum)
    index = int(np.argmin(smoothed_losses)) if smoothed_losses else 0
    return float(max(RATES[index] / RATE_DIVISOR, RATES[0]))
