"""Tail calibration: factors for the distance of each quantile from the median, from forecasts of observations
that the network was not trained on.

The factor of quantile q is the max(q, 1 - q) quantile of

    (y - median) / (quantile_q - median)

over the steps of all windows, limited to LIMITS and shrunk to the factor known before by n / (n + 30) - unless 80 %
intervals cover less than 50 % of the held-out values; then they are widened in full - where n is the number of horizons
observed in the tail of a series: windows that overlap are not independent, and neither are those of different series at
the same time (on M1 monthly, whose tail is one horizon of 578 series, factors that count each series worsen the interval
score). Calibrated quantiles are

    Q'(u) = median + f(u) (Q(u) - median).

Factors do not decrease with the distance from the median (isotonic regression), so calibrated quantiles cannot cross.
For positive distributions all values are logarithms, so that their quantiles stay positive.

The network that forecasts the tail has seen it neither in training nor in the scales of the target (`scaler_scope`). The
standardization of covariates and the ratio of scaler="level", a few numbers for all series, are estimated from all rows.
Factors of recent values, after the training data, are in `_predict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from deepforecast.core.state import LearnedState
from deepforecast.core.threads import limit_threads
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.windows import WindowArrays
from deepforecast.errors import TrainingWarning, format_list, warn
from deepforecast.models.neural._forecast import AUTOREGRESSIVE_SAMPLING, move, stratified_noise, to_array
from deepforecast.nn.batch import Inputs, WindowStore, place
from deepforecast.nn.decoding import decode_samples
from deepforecast.nn.names import Head, head_facts
from deepforecast.nn.network import AutoregressiveBody, ForecastNetwork
from deepforecast.nn.scaling import Scale
from deepforecast.training.process import torch_defaults
from deepforecast.training.sampler import gather_batch, place_on_device, to_device

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

# Quantiles that have a factor, as far as the head has them.
PROBABILITIES = (0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.995)
TAIL_SHARE = 0.1  # of the time steps of a series
LIMITS = (0.25, 4.0)
SHRINKAGE = 30.0  # number of independent windows at which factors count half
MIN_COVERAGE = 0.625  # of the level; intervals that cover less of the tail are widened, with a warning
MAX_WINDOWS = 512
MAX_PATH_WINDOWS = 128  # the same for autoregressive networks, which draw sample paths per window
BATCH_SIZE = 256  # windows


def held_out_rows(panel: Panel, horizon: int, validation_size: int | None = None) -> Ints:
    """Number of last time steps of each series (series,) to calibrate on: a tenth, at least a horizon.

    0 for a series that would have fewer than a horizon and two time steps left to train on. With `validation_size` it is
    that number, 0 for a series that is not longer.
    """
    if validation_size is not None:
        return np.where(panel.lengths > validation_size, validation_size, 0)
    rows = np.maximum(np.ceil(TAIL_SHARE * panel.lengths).astype(np.int64), horizon)
    return np.where(panel.lengths - rows >= horizon + 2, rows, 0)


def observed_in_tail(panel: Panel, tail: Ints) -> Ints:
    """Number of observed values, not of weight 0, among the last `tail` time steps of each series, (series,)."""
    if not tail.any():
        return np.zeros_like(tail)
    is_observed = ~np.isnan(panel.y) if panel.weight is None else ~np.isnan(panel.y) & (panel.weight > 0)
    n_observed = np.concatenate([[0], np.cumsum(is_observed)])  # before each row
    stop = panel.indptr[1:]
    return np.asarray(n_observed[stop] - n_observed[stop - tail])


def reason_not_calibrated(
    model: NeuralForecaster, network: ForecastNetwork, panel: Panel, tail: Ints, max_steps: int
) -> str:
    """The rule that does not permit to calibrate on the `tail` of each series, what was found and a fix; '' if none.

    It is known before training, which then has one part.
    """
    horizon = network.sizes.horizon
    lowest, highest = network.head.probability_range
    probabilities = factor_probabilities(network)
    if not ((probabilities < 0.5).any() and (probabilities > 0.5).any()):
        levels = f"{lowest:g} to {highest:g}" if model.quantiles is None else format_list(model.quantiles)
        return f"quantile levels must reach from 0.4 or below to 0.6 or above, got {levels}. Pass more levels"
    if max_steps < 2:
        return f"`max_steps` must be at least 2, one for each part of the training, got {max_steps}. Set max_steps=2"
    if not tail.any():
        return (
            f"a series must have at least {2 * horizon + 2} time steps, so that a horizon can be held out, got at most "
            f"{panel.lengths.max()}. Pass longer series"
        )
    n_observed, required = int(observed_in_tail(panel, tail).sum()), min(horizon, int(tail.max()))
    if n_observed < required:
        return (
            f"the last {tail.max()} time steps of the series, which are held out, must have at least {required} observed "
            f"values (of positive weight), got {n_observed}. Pass series with fewer missing values at the end"
        )
    return ""


def factor_probabilities(network: ForecastNetwork) -> Floats:
    """The PROBABILITIES that the head of a network has."""
    lowest, highest = network.head.probability_range
    return np.array([level for level in PROBABILITIES if lowest <= level <= highest])


def continued(previous: LearnedState, panel: Panel) -> dict[str, Any]:
    """The entries "calibration" and "not_calibrated" of `previous`, whose network was trained on `panel`, too.

    The factors stay, but the coverage was that of other weights, and becomes NaN.
    """
    entries = {name: previous.shared[name] for name in ("calibration", "not_calibrated") if name in previous.shared}
    if "calibration" in entries:
        calibration = entries["calibration"]
        unknown = np.full(len(calibration["levels"]), np.nan)
        end = max(calibration["end"], int(panel.series.last.max()))
        entries["calibration"] = {**calibration, "uncalibrated": unknown, "calibrated": unknown, "end": end}
    return entries


def spread_windows(first: Ints, last: Ints, step: int, max_windows: int, seed: int) -> tuple[Ints, Ints]:
    """Series and cutoff of windows, every `step` time steps back from `last` to `first` (series,), or a random part."""
    counts = np.maximum((last - first) // step + 1, 0)
    series = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts, counts)
    cutoff = last[series] - step * number
    if len(series) > max_windows:
        chosen = sample_numbers(len(series), max_windows, seed)
        series, cutoff = series[chosen], cutoff[chosen]
    return series, cutoff


def sample_numbers(count: int, max_count: int, seed: int) -> Ints:
    """A random part of the numbers below `count`, in increasing order; all if they are not more than `max_count`."""
    return np.arange(count) if count <= max_count else np.sort(np.random.default_rng(seed).choice(count, max_count, replace=False))


@torch_defaults()
def forecast_windows(
    model: NeuralForecaster, network: ForecastNetwork, store: WindowStore, arrays: WindowArrays, series: Ints, cutoff: Ints,
    probabilities: Sequence[float],
) -> tuple[Floats, Floats]:
    """Quantiles of the network (windows, horizon, probabilities) after each cutoff, and the values that followed.

    These are NaN where missing or of weight 0, and in windows of scale 0, whose quantiles are all equal.
    """
    device = next(network.parameters()).device
    store = place_on_device(store, device)
    quantiles: list[Floats] = []
    actual: list[Floats] = []
    with torch.inference_mode(), limit_threads(1):
        for begin in range(0, len(series), BATCH_SIZE):
            selection = slice(begin, begin + BATCH_SIZE)
            batch = to_device(gather_batch(store, arrays, series[selection], cutoff[selection]), device)
            inputs, scaling = network.inputs(batch)
            loc, scale = to_array(scaling.loc), to_array(scaling.scale)
            if isinstance(network.body, AutoregressiveBody):
                z = _path_quantiles(model, network, inputs, scaling, probabilities)
            else:
                levels = torch.tensor(list(probabilities), dtype=torch.float64)
                raw = network.features(inputs)
                z = to_array(network.head.quantiles(raw, levels, scaling.scale.expand(raw.shape[:2])))
            quantiles.append(loc[..., None] + scale[..., None] * z)
            is_used = scale > 0 if batch.weight is None else (scale > 0) & (to_array(batch.weight) > 0)
            actual.append(np.where(is_used, to_array(cast(Tensor, batch.target)), np.nan))
    return np.concatenate(quantiles), np.concatenate(actual)


def _path_quantiles(
    model: NeuralForecaster, network: ForecastNetwork, inputs: Inputs, scaling: Scale, probabilities: Sequence[float]
) -> Floats:
    """Quantiles of the sample paths of an autoregressive network, in units of z, as those of its forecasts."""
    n_paths, n_pooled = AUTOREGRESSIVE_SAMPLING
    uniform = torch.from_numpy(ndtr(stratified_noise(network.sizes.horizon, n_paths))).expand(len(inputs.y), -1, -1)
    sampling = model._decoding_options().sampling
    paths = decode_samples(network, inputs, scaling, place(uniform, inputs.y.device), sampling, n_pooled)
    return np.asarray(np.moveaxis(np.quantile(to_array(paths[:, n_paths:]), list(probabilities), axis=1), 0, -1))


def estimate_factors(
    probabilities: Floats, quantiles: Floats, actual: Floats, weight: float, previous: Floats, head: str | Head
) -> Floats:
    """The factors from quantiles (windows, horizon, probabilities and the median last), see the module.

    `actual` (windows, horizon) has NaN where missing; `previous` are the factors to shrink to, which count 1 - `weight`.
    A factor stays the previous one if no step has both an observed value and a quantile other than the median.

    Below the median both differences of the ratio are negative: values below the calibrated quantile have ratios above
    its factor, so the factor is the 1 - probability quantile of the ratios.
    """
    if head_facts(head).support == "positive":
        with np.errstate(divide="ignore", invalid="ignore"):
            quantiles, actual = np.log(quantiles), np.log(actual)
    median = quantiles[..., -1]
    factors = previous.copy()
    for index, probability in enumerate(probabilities):
        distance = quantiles[..., index] - median
        ratios = (actual - median)[distance != 0] / distance[distance != 0]
        ratios = ratios[np.isfinite(ratios)]
        if len(ratios):
            ratio = float(np.clip(np.quantile(ratios, max(probability, 1 - probability)), *LIMITS))
            factors[index] = previous[index] ** (1 - weight) * ratio**weight
    return make_monotone(probabilities, factors)


def make_monotone(probabilities: Floats, factors: Floats) -> Floats:
    """Isotonic regression of the logarithms: factors that do not decrease with the distance from the median."""
    below = int(np.searchsorted(probabilities, 0.5))
    return np.asarray(np.exp(np.concatenate([_isotonic(np.log(factors[:below][::-1]))[::-1], _isotonic(np.log(factors[below:]))])))


def _isotonic(values: Floats) -> Floats:
    """The nondecreasing sequence with the least squared distance (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        blocks.append((float(value), 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (right, n_right), (left, n_left) = blocks.pop(), blocks.pop()
            blocks.append(((left * n_left + right * n_right) / (n_left + n_right), n_left + n_right))
    return np.repeat([value for value, _ in blocks], [count for _, count in blocks])


def calibrates(model: NeuralForecaster) -> bool:
    """Whether the model learns a distribution whose quantiles are calibrated.

    Those of intervals="conformal" are not forecast, but the training is the same, so that the point forecasts are, too.
    """
    return model.calibrates_tail and model.intervals != "uncalibrated" and head_facts(model.head).has_distribution


def calibrate(
    model: NeuralForecaster, network: ForecastNetwork, store: WindowStore, arrays: WindowArrays, panel: Panel, tail: Ints
) -> dict[str, Any]:
    """The entry "calibration" of the state, from the last `tail` time steps of each series (series,) of the panel.

    The network was not trained on these steps. There is no entry if the values before all of them are constant: all
    quantiles are equal then.
    """
    probabilities, horizon = factor_probabilities(network), arrays.horizon
    last = np.where(tail > 0, arrays.lengths - np.minimum(horizon, tail), -1)
    max_windows = MAX_PATH_WINDOWS if isinstance(network.body, AutoregressiveBody) else MAX_WINDOWS
    series, cutoff = spread_windows(arrays.lengths - tail, last, max(horizon // 2, 1), max_windows, model.seed)
    quantiles, actual = forecast_windows(model, network, store, arrays, series, cutoff, [*probabilities, 0.5])
    if np.isnan(actual).all():
        return {}
    n_observed = observed_in_tail(panel, tail)
    n_observed = n_observed[n_observed > 0]
    # Whole horizons, or a part of one.
    n_windows = float(np.where(n_observed < horizon, n_observed / min(horizon, tail.max()), n_observed // horizon).mean())
    ones = np.ones(len(probabilities))
    factors = estimate_factors(probabilities, quantiles, actual, n_windows / (n_windows + SHRINKAGE), ones, model.head)
    # Indices of the probabilities at both ends of a central interval.
    pairs = [pair for pair in combinations(range(len(probabilities)), 2) if abs(probabilities[[*pair]].sum() - 1) < 1e-9]
    levels = np.array([round(float(100 * (probabilities[high] - probabilities[low])), 6) for low, high in pairs])
    uncalibrated = np.array([_coverage(quantiles, actual, *pair) for pair in pairs])
    if _is_far_below(levels, uncalibrated):  # however few windows there are
        full_factors = estimate_factors(probabilities, quantiles, actual, 1.0, ones, model.head)
        factors = np.maximum(factors, full_factors)
    moved = move(quantiles[..., -1:], quantiles[..., :-1], factors, model.head)
    calibration = {
        "probabilities": probabilities,
        "factors": factors,
        "levels": levels,
        "uncalibrated": uncalibrated,  # coverage of the levels in percent, before calibration
        # The same after calibration.
        "calibrated": np.array([_coverage(moved, actual, *pair) for pair in pairs]),
        "windows": n_windows,
        "end": int(panel.series.last.max()),
    }
    return {"calibration": calibration}


def _coverage(quantiles: Floats, actual: Floats, low: int, high: int) -> float:
    """Percent of the observed values between two quantiles (windows, horizon, levels), given by their index."""
    observed = ~np.isnan(actual)
    inside = (quantiles[..., low] <= actual) & (actual <= quantiles[..., high])
    return float(100 * inside[observed].mean()) if observed.any() else float("nan")


def _is_far_below(levels: Floats, coverage: Floats) -> bool:
    """Whether intervals of about 80 % cover less than MIN_COVERAGE of their level."""
    if not len(levels):
        return False
    index = int(np.argmin(np.abs(levels - 80)))
    return bool(coverage[index] < MIN_COVERAGE * levels[index])


def warn_of_poor_calibration(model: NeuralForecaster, learned: LearnedState) -> None:
    """Warn if the intervals could not be calibrated.

    Warn also if one of about 80 % covered less than MIN_COVERAGE of its level on the tail, before it was widened.
    """
    reason = learned.shared.get("not_calibrated")
    if reason is not None:
        warn(
            f"{model.name}: prediction intervals are not calibrated: {reason}, or set intervals='uncalibrated'.",
            TrainingWarning,
            subject=model.name,
        )
    calibration = learned.shared.get("calibration")
    if calibration is None or not _is_far_below(calibration["levels"], calibration["uncalibrated"]):
        return
    index = int(np.argmin(np.abs(calibration["levels"] - 80)))
    level, before, after = (float(calibration[name][index]) for name in ("levels", "uncalibrated", "calibrated"))
    warn(
        f"{model.name}: {level:g} % prediction intervals covered {before:.0f} % of the last observations, which were held out "
        f"of the first half of the training; the intervals were widened to cover {after:.0f} % of these. Pass longer series, "
        "or set intervals='conformal'.",
        TrainingWarning,
        subject=model.name,
    )


def calibration_columns(calibration: Mapping[str, Any] | None) -> dict[str, Any]:
    """The columns of `calibration_`, one row per level; none without a calibration."""
    if calibration is None:
        return {name: np.empty(0) for name in ("level", "uncalibrated", "calibrated", "n_windows")}
    levels = calibration["levels"]
    return {
        "level": levels,
        "uncalibrated": calibration["uncalibrated"],
        "calibrated": calibration["calibrated"],
        "n_windows": np.full(len(levels), calibration["windows"]),
    }
