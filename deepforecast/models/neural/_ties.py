"""How the errors of the steps ahead hang together: what makes paths of forecasts that are made for each step by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepforecast.core.state import Learned
from deepforecast.core.threads import limited
from deepforecast.data import windows
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.neural._standing import channels_of
from deepforecast.nn.batch import Batch
from deepforecast.nn.body import Stepwise
from deepforecast.nn.network import ForecastNetwork
from deepforecast.nn.windows import Windows
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.sampler import gathered

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

WINDOWS = 1024  # that are looked at
LONGEST = 1024  # steps; of more, a matrix of steps by steps is more than it is worth
DRAW = 2**31 - 1  # a step that no training draws windows for
MIDDLE = (0.25, 0.5, 0.75)


def tied(model: NeuralForecaster, learned: Learned, panel: Panel) -> Learned:
    """With `ties`: a factor of the correlation of the steps' errors in training windows, (horizon, horizon), rows of length 1.

    Not where paths are not made by it: of points, of steps taken in turn, of one step, and beyond a horizon of 1,024.
    """
    network = learned.shared["network"]
    horizon = network.sizes.horizon
    if isinstance(network.body, Stepwise) or not network.head.distribution or not 1 < horizon <= LONGEST:
        return learned
    factor = np.linalg.cholesky(shrunk(scores(_errors(model, learned, panel))))
    return replace(learned, shared={**learned.shared, "ties": factor})


@torch_defaults()
def _errors(model: NeuralForecaster, learned: Learned, panel: Panel) -> Floats:
    """Errors in units of the spread forecast, (windows, horizon), NaN where nothing was seen."""
    network, channels = learned.shared["network"], channels_of(learned)
    there = windows.places(panel, channels.input_size, channels.horizon, model.validation_size or 0, model.recent_windows)
    few = len(there) <= WINDOWS
    series, cutoff = there.at(np.arange(len(there))) if few else there.draw(model.seed, DRAW, WINDOWS, False)
    some, number = np.unique(series, return_inverse=True)
    held: dict[str, Any] = {name: np.ascontiguousarray(learned.by_series[name][some, None]) for name in ("place", "spread")}
    rows = replace(windows.rows(model._beside(panel, learned).take(some), channels), **held)
    store = Windows.of(rows)
    low, high = network.head.reach
    asked = torch.tensor([min(max(one, low), high) for one in MIDDLE], dtype=torch.float64)
    parts: list[Any] = []
    with torch.inference_mode(), limited(1):
        for begin in range(0, len(series), 256):
            part = slice(begin, begin + 256)
            parts.append(_away(network, gathered(store, rows, number[part], cutoff[part]), asked))
    return np.concatenate(parts)


def _away(network: ForecastNetwork, batch: Batch, asked: Tensor) -> Floats:
    raw, scale = network(batch)
    left, middle, right = network.head.quantiles(raw, asked, scale.spread.expand(raw.shape[:2])).unbind(-1)
    wide = right - left
    target = torch.where(scale.spread > 0, scale.away(batch.target), torch.nan)
    return np.asarray(((target - middle) / torch.where(wide > 0, wide, torch.ones_like(wide))).numpy())


def scores(errors: Floats) -> Floats:
    """Each column's ranks as standard normal values; NaN stays."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(errors, axis=0, nan_policy="omit")
    return np.asarray(ndtri((ranks - 0.5) / np.maximum(np.isfinite(errors).sum(axis=0), 1)))


def shrunk(values: Floats) -> Floats:
    """The correlation of columns around 0, NaN left out, shrunk to the identity by what chance adds to it.

    Schäfer, Strimmer 2005: the share is the sum of the variances of the correlations over the sum of their squares.
    """
    there = np.isfinite(values)
    known, size = np.where(there, values, 0.0), values.shape[1]
    both = np.maximum(there.T.astype(np.float64) @ there, 1.0)
    square = (known**2).T @ there
    found = known.T @ known / np.maximum(np.sqrt(square * square.T), 1e-300)
    outside = ~np.eye(size, dtype=bool)
    chance = ((1 - np.minimum(found**2, 1.0)) ** 2 / both)[outside].sum()
    share = min(max(float(chance / max((found[outside] ** 2).sum(), 1e-300)), 1e-3), 1.0)
    smaller = np.where(outside, (1 - share) * np.clip(found, -1, 1), 1.0)
    least = float(np.linalg.eigvalsh(smaller)[0])
    return smaller if least > 1e-6 else (smaller + (1e-6 - least) * np.eye(size)) / (1 + 1e-6 - least)
