"""Correlation of the residuals between the steps of the horizon, for sample paths of direct
networks.

Direct networks predict the marginal distribution of each step. Sample paths join them with a
Gaussian copula, whose correlation is estimated from the residuals on training windows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepforecast.core.state import LearnedState
from deepforecast.core.threads import limit_threads
from deepforecast.data import windows
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.neural._series_state import window_columns
from deepforecast.nn.batch import Batch
from deepforecast.nn.body import AutoregressiveBody
from deepforecast.nn.network import ForecastNetwork
from deepforecast.nn.windows import WindowStore
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.sampler import gather_batch

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

MAX_WINDOWS = 1024  # sampled training windows
MAX_HORIZON = 1024  # limits the (horizon, horizon) matrix
SAMPLING_STEP = 2**31 - 1  # random stream that no training step uses
QUARTILES = (0.25, 0.5, 0.75)


def fit_residual_correlation(model: NeuralForecaster, learned: LearnedState, panel: Panel) -> LearnedState:
    """Add "ties" to the learned state: the Cholesky factor of the residual correlation, (horizon,
    horizon).

    Skipped where no sample path uses it: for point heads, autoregressive networks and a horizon of
    1; and for horizons above 1,024.
    """
    network = learned.shared["network"]
    horizon = network.sizes.horizon
    if isinstance(network.body, AutoregressiveBody) or not network.head.has_distribution or not 1 < horizon <= MAX_HORIZON:
        return learned
    factor = np.linalg.cholesky(shrink_correlation(normal_scores(_errors(model, learned, panel))))
    return replace(learned, shared={**learned.shared, "ties": factor})


@torch_defaults()
def _errors(model: NeuralForecaster, learned: LearnedState, panel: Panel) -> Floats:
    """Residuals over the predicted interquartile range, (windows, horizon); NaN where missing."""
    network, columns = learned.shared["network"], window_columns(learned)
    window_index = windows.training_windows(panel, columns.input_size, columns.horizon, model.validation_size or 0, model.recent_windows)
    uses_all = len(window_index) <= MAX_WINDOWS
    series, cutoff = window_index.locate(np.arange(len(window_index))) if uses_all else window_index.draw(model.seed, SAMPLING_STEP, MAX_WINDOWS, False)
    selected, row = np.unique(series, return_inverse=True)
    by_series = (learned.by_series[name][selected, None] for name in ("place", "spread"))
    loc, scale = map(np.ascontiguousarray, by_series)
    panel = model._add_series_columns(panel, learned).take(selected)
    rows = replace(windows.window_arrays(panel, columns), loc=loc, scale=scale)
    store = WindowStore.from_arrays(rows)
    low, high = network.head.probability_range
    levels = torch.tensor([min(max(level, low), high) for level in QUARTILES], dtype=torch.float64)
    batches: list[Any] = []
    with torch.inference_mode(), limit_threads(1):
        for begin in range(0, len(series), 256):
            batch_slice = slice(begin, begin + 256)
            batches.append(_standardized_errors(network, gather_batch(store, rows, row[batch_slice], cutoff[batch_slice]), levels))
    return np.concatenate(batches)


def _standardized_errors(network: ForecastNetwork, batch: Batch, levels: Tensor) -> Floats:
    raw, scaling = network(batch)
    lower, median, upper = network.head.quantiles(raw, levels, scaling.scale.expand(raw.shape[:2])).unbind(-1)
    iqr = upper - lower
    target = torch.where(scaling.scale > 0, scaling.standardize(batch.target), torch.nan)
    return np.asarray(((target - median) / torch.where(iqr > 0, iqr, torch.ones_like(iqr))).numpy())


def normal_scores(errors: Floats) -> Floats:
    """Normal scores of the ranks in each column; NaN stays NaN."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(errors, axis=0, nan_policy="omit")
    return np.asarray(ndtri((ranks - 0.5) / np.maximum(np.isfinite(errors).sum(axis=0), 1)))


def shrink_correlation(values: Floats) -> Floats:
    """Correlation of zero-mean columns, pairwise complete, shrunk towards the identity.

    R* = (1 - lambda) R + lambda I with lambda = sum var(r_ij) / sum r_ij^2 over i != j (Schäfer,
    Strimmer 2005, doi:10.2202/1544-6115.1175), followed by a shift to positive definiteness.
    """
    observed = np.isfinite(values)
    filled, size = np.where(observed, values, 0.0), values.shape[1]
    pair_counts = np.maximum(observed.T.astype(np.float64) @ observed, 1.0)
    square = (filled**2).T @ observed
    correlation = filled.T @ filled / np.maximum(np.sqrt(square * square.T), 1e-300)
    off_diagonal = ~np.eye(size, dtype=bool)
    sampling_variance = ((1 - np.minimum(correlation**2, 1.0)) ** 2 / pair_counts)[off_diagonal].sum()
    intensity = min(max(float(sampling_variance / max((correlation[off_diagonal] ** 2).sum(), 1e-300)), 1e-3), 1.0)
    shrunken = np.where(off_diagonal, (1 - intensity) * np.clip(correlation, -1, 1), 1.0)
    min_eigenvalue = float(np.linalg.eigvalsh(shrunken)[0])
    return shrunken if min_eigenvalue > 1e-6 else (shrunken + (1e-6 - min_eigenvalue) * np.eye(size)) / (1 + 1e-6 - min_eigenvalue)
