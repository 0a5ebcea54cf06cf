"""Residual correlation between the steps of the horizon, for sample paths.

Direct networks predict the marginal distribution of each step, and so do autoregressive ones for the
steps of a patch. For sample paths these are joined by a Gaussian copula, whose correlation is
estimated from the residuals on training windows; steps of different patches are correlated through
the values that later patches receive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from deepforecast.core.state import LearnedState
from deepforecast.core.threads import limit_threads
from deepforecast.data import windows
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.neural._forecast import to_array
from deepforecast.nn.batch import WindowStore
from deepforecast.nn.network import AutoregressiveBody
from deepforecast.training.process import torch_defaults
from deepforecast.training.sampler import gather_batch, place_on_device, to_device

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

MAX_WINDOWS = 1024  # sampled training windows
MAX_HORIZON = 1024  # limits the (horizon, horizon) matrix
BATCH_SIZE = 256  # windows
SAMPLING_STEP = 2**31 - 1  # "training step" of the draw: no step of a training has this number
QUARTILES = (0.25, 0.5, 0.75)
MIN_EIGENVALUE = 1e-6  # of the correlation matrix, so that it has a Cholesky factor


def fit_residual_correlation(model: NeuralForecaster, learned: LearnedState, panel: Panel) -> LearnedState:
    """Add "correlation_factor", the Cholesky factor of the residual correlation (horizon, horizon), to the state.

    The state is returned unchanged if no sample path uses the correlation (point heads,
    autoregressive networks without patches, a horizon of 1) and for horizons above MAX_HORIZON.
    """
    network = learned.shared["network"]
    horizon = network.sizes.horizon
    block_length = network.body.block_length if isinstance(network.body, AutoregressiveBody) else horizon
    if block_length == 1 or not network.head.has_distribution or horizon > MAX_HORIZON:
        return learned
    scores = normal_scores(_standardized_residuals(model, learned, panel))
    block = np.arange(horizon) // block_length
    same_block = block[:, None] == block
    factor = np.linalg.cholesky(np.where(same_block, shrink_correlation(scores), 0.0))
    return replace(learned, shared={**learned.shared, "correlation_factor": factor})


@torch_defaults()
def _standardized_residuals(model: NeuralForecaster, learned: LearnedState, panel: Panel) -> Floats:
    """Residuals (target - median) / interquartile range, (windows, horizon).

    The divisor is 1 where the quartiles are equal. Missing targets, those of weight 0 and constant
    windows give NaN. The windows are all training windows, or MAX_WINDOWS of them drawn at random.
    """
    network = learned.shared["network"]
    columns = network.sizes.window_columns
    window_index = windows.training_windows(
        panel, columns.input_size, columns.horizon, model.validation_size or 0, model.recent_windows
    )
    if len(window_index) <= MAX_WINDOWS:
        series, cutoff = window_index.locate(np.arange(len(window_index)))
    else:
        series, cutoff = window_index.draw(model.seed, SAMPLING_STEP, MAX_WINDOWS, False)
    # Only the series of these windows are needed: `index` is that of a window's series among them.
    selected, index = np.unique(series, return_inverse=True)
    loc = np.ascontiguousarray(learned.by_series["loc"][selected, None])
    scale = np.ascontiguousarray(learned.by_series["scale"][selected, None])
    panel = model._add_series_columns(panel, learned).take(selected)
    arrays = replace(windows.window_arrays(panel, columns), loc=loc, scale=scale)
    device = next(network.parameters()).device
    store = place_on_device(WindowStore.from_arrays(arrays), device)
    lowest, highest = network.head.probability_range
    levels = torch.tensor([min(max(level, lowest), highest) for level in QUARTILES], dtype=torch.float64)
    residuals: list[Floats] = []
    with torch.inference_mode(), limit_threads(1):
        for begin in range(0, len(series), BATCH_SIZE):
            selection = slice(begin, begin + BATCH_SIZE)
            batch = to_device(gather_batch(store, arrays, index[selection], cutoff[selection]), device)
            raw, scaling = network.forward_teacher_forced(batch)
            lower, median, upper = network.head.quantiles(raw, levels, scaling.scale.expand(raw.shape[:2])).unbind(-1)
            iqr = upper - lower
            target = torch.where(scaling.scale > 0, scaling.standardize(batch.target), torch.nan)
            if batch.weight is not None:
                target = target.masked_fill(batch.weight.to(target.device) == 0, torch.nan)
            residuals.append(to_array((target - median) / torch.where(iqr > 0, iqr, torch.ones_like(iqr))))
    return np.concatenate(residuals)


def normal_scores(residuals: Floats) -> Floats:
    """Normal quantiles at (rank - 0.5) / n in each column; NaN stays NaN and does not count in n."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(residuals, axis=0, nan_policy="omit")
    return np.asarray(ndtri((ranks - 0.5) / np.maximum(np.isfinite(residuals).sum(axis=0), 1)))


def shrink_correlation(values: Floats) -> Floats:
    """Correlation of zero-mean columns, pairwise complete, shrunk towards the identity.

    R* = (1 - lambda) R + lambda I with lambda = sum var(r_ij) / sum r_ij^2 over i != j (Schäfer,
    Strimmer 2005, doi:10.2202/1544-6115.1175), followed by a shift to positive definiteness.
    """
    observed = np.isfinite(values)
    filled = np.where(observed, values, 0.0)
    n_columns = values.shape[1]
    n_pairs = np.maximum(observed.T.astype(np.float64) @ observed, 1.0)
    # sum_squares[i, j]: sum of squares of column i where column j is observed.
    sum_squares = (filled**2).T @ observed
    correlation = filled.T @ filled / np.maximum(np.sqrt(sum_squares * sum_squares.T), 1e-300)
    off_diagonal = ~np.eye(n_columns, dtype=bool)
    sampling_variance = ((1 - np.minimum(correlation**2, 1.0)) ** 2 / n_pairs)[off_diagonal].sum()
    intensity = min(max(float(sampling_variance / max((correlation[off_diagonal] ** 2).sum(), 1e-300)), 1e-3), 1.0)
    shrunken = np.where(off_diagonal, (1 - intensity) * np.clip(correlation, -1, 1), 1.0)
    min_eigenvalue = float(np.linalg.eigvalsh(shrunken)[0])
    if min_eigenvalue > MIN_EIGENVALUE:
        return shrunken
    # The division keeps the diagonal at 1.
    return (shrunken + (MIN_EIGENVALUE - min_eigenvalue) * np.eye(n_columns)) / (1 + MIN_EIGENVALUE - min_eigenvalue)
