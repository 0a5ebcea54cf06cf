"""Maximum a posteriori estimation of the series of a job, and the posterior of the parameters.

With the standard deviation sigma of the errors, the posterior is approximated by a normal
distribution around its maximum (Laplace approximation) with the Gauss-Newton covariance
sigma^2 (J'WJ + sigma^2 P)^-1, J the Jacobian of the fitted values, W the weights of Student's t
errors and P the prior precision. The Laplace prior of the changes of the slope has no curvature; it
is replaced by a normal prior with the same variance, 2 scale^2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.models.prophet._design_matrix import Design, Job, value_scale

if TYPE_CHECKING:
    from deepforecast.models.prophet._design_matrix import Design
    from deepforecast.models.prophet.prophet import Prophet

EXACT_FIT_DEVIATION = 1e-6  # smaller standard deviations of scaled values are treated as zero
DEGREES_OF_FREEDOM = 3.0  # of Student's t errors
GROWTHS = {"linear": 0, "logistic": 1, "flat": 2}  # codes of `kernels.gauss_newton`
CAP_MARGIN = 0.01  # starting points are at least this fraction of the cap away from cap and floor

Estimate = tuple[Floats, float, float]  # parameters, standard deviation of the errors, objective


def fit_job(model: Prophet, job: Job, previous: Mapping[str, Floats] | None) -> Iterator[tuple[int, dict[str, Floats | float]]]:
    """Yield the index and the learned arrays of each series of a job.

    `previous`: arrays of an earlier fit, as starting points. Constant series are not estimated: their parameters are 0,
    and "steady" is their value, which is NaN for other series. "exact" is whether the residuals are zero because there
    are no more values than parameters.
    """
    scaled_series = [_scale_values(model, *columns) for columns in zip(job.values, job.caps, job.floors, strict=True)]
    varying = [position for position, y in enumerate(job.values) if y.min() != y.max()]
    varying_values = [(scaled_series[position].y, scaled_series[position].cap) for position in varying]
    varying_indices = [job.series_indices[position] for position in varying]
    estimates = _estimate(model, job.design, varying_values, varying_indices, previous)
    estimate_by_position = dict(zip(varying, estimates, strict=True))
    for position, (series_index, scaled) in enumerate(zip(job.series_indices, scaled_series, strict=True)):
        is_estimated = position in estimate_by_position
        x, deviation, objective = estimate_by_position.get(position, (job.design.zero_parameters, 0.0, 0.0))
        learned = _parameter_arrays(model, job.design, x)
        learned |= {"shift": scaled.shift, "scale": scaled.scale, "deviation": deviation, "objective": objective}
        learned["steady"] = np.nan if is_estimated else float(job.values[position][0])
        learned["exact"] = is_estimated and deviation < EXACT_FIT_DEVIATION and len(job.design.time) <= len(x)
        if model.uncertainty == "laplace":
            learned["factor"] = covariance_factor(model, job.design, scaled.y, scaled.cap, x, deviation)
        yield series_index, learned


class _ScaledSeries(NamedTuple):
    """Shift and scale of a series, and its scaled values and caps; logistic growth also subtracts the floor."""

    shift: float
    scale: float
    y: Floats
    cap: Floats


def _scale_values(model: Prophet, y: Floats, cap: Floats, floor: Floats) -> _ScaledSeries:
    """Scale the values and caps of a series at its used rows."""
    shift, scale = value_scale(model, y, cap, floor)
    shift_by_row = floor + shift if model.growth == "logistic" else shift
    return _ScaledSeries(shift, scale, (y - shift_by_row) / scale, (cap - shift_by_row) / scale)


def _estimate(
    model: Prophet,
    design: Design,
    series: list[tuple[Floats, Floats]],
    series_indices: list[int],
    previous: Mapping[str, Floats] | None,
) -> list[Estimate]:
    """Maximum a posteriori estimates of the series, each given by its scaled values and caps.

    A linear fit of all of them at once; for nonlinear models it is a starting point.
    """
    from deepforecast.kernels.additive import Prior, fit_linear

    if not series:
        return []
    ones = np.ones((len(design.time), 1))
    trend = [ones] if model.growth == "flat" else [design.time[:, None], ones]
    design_matrix = np.concatenate([*trend, design.features, design.hinges], axis=1)
    prior = Prior(design.precision, 1.0 / model.changepoint_prior_scale)
    is_linear = design.is_linear and model.errors == "normal" and model.growth != "logistic"
    values = np.stack([y if model.growth != "logistic" else _logit(y, cap) for y, cap in series])
    x, deviations, objectives = fit_linear(values, design_matrix, prior, len(trend) - 1)
    if is_linear:
        return list(zip(x, deviations.tolist(), objectives.tolist(), strict=True))
    return [
        _fit_nonlinear_growth(
            model,
            design,
            y,
            cap,
            x[index],
            None if previous is None else _previous_coefficients(previous, series_indices[index], design),
        )
        for index, (y, cap) in enumerate(series)
    ]


def _fit_nonlinear_growth(
    model: Prophet, design: Design, y: Floats, cap: Floats, linear_solution: Floats, previous_coefficients: Floats | None
) -> Estimate:
    """The Gauss-Newton estimate with the lowest objective from several starting points."""
    from deepforecast.kernels.additive import Prior
    from deepforecast.kernels.gauss_newton import Rows, fit_nonlinear

    rows = Rows(
        y=y,
        time=design.time,
        capacity=np.ascontiguousarray(cap),
        changepoint_hinges=np.ascontiguousarray(design.hinges),
        features=design.features,
        multiply=design.multiplicative,
        growth=GROWTHS[model.growth],
        freedom=DEGREES_OF_FREEDOM if model.errors == "student" else 0.0,  # 0: normal errors
    )
    prior = Prior(design.precision, 1.0 / model.changepoint_prior_scale)
    starts = _starting_points(model, design, y, cap, linear_solution, previous_coefficients)
    return min((fit_nonlinear(rows, prior, start) for start in starts), key=itemgetter(2))  # by the objective


def _starting_points(
    model: Prophet, design: Design, y: Floats, cap: Floats, linear_solution: Floats, previous_coefficients: Floats | None
) -> Iterator[Floats]:
    """Yield starting points from the linear fit and, if given, with the coefficients of an earlier fit.

    The parameters of a logistic trend are rate k and offset m, with the linear fit k t + b of the logits and m = -b / k;
    there is also the starting point of Prophet.
    """
    n_trend = 1 if model.growth == "flat" else 2
    features = slice(n_trend, n_trend + len(design.active_columns))
    start = linear_solution.copy()
    if model.growth == "logistic":
        start[features] = 0.0
        rate = start[0] if abs(start[0]) > 1e-3 else 1e-3  # not near 0, because the offset is divided by it
        start[0] = rate
        start[1] = np.clip(-linear_solution[1] / rate, -50.0, 50.0)
        yield _endpoint_start(y, cap, start)
    else:
        level = float(np.mean(y)) or 1.0
        start[features] = np.where(design.multiplicative > 0.0, linear_solution[features] / level, linear_solution[features])
    yield start
    if previous_coefficients is not None:
        warm_start = start.copy()
        warm_start[features] = previous_coefficients
        yield warm_start


def _endpoint_start(y: Floats, cap: Floats, template: Floats) -> Floats:
    """Parameters of the logistic trend through the first and the last value, as in Prophet; the others are 0."""
    ratios = []  # cap / value, limited to the margin
    for value, end_cap in ((y[0], cap[0]), (y[-1], cap[-1])):
        ratio = end_cap / max(value, CAP_MARGIN * end_cap)
        ratios.append(float(np.clip(ratio, 1.0 / (1.0 - CAP_MARGIN), 1.0 / CAP_MARGIN)))
    if abs(ratios[0] - ratios[1]) <= 0.01:
        ratios[0] *= 1.05
    first_log_odds, last_log_odds = (float(np.log(ratio - 1.0)) for ratio in ratios)  # log((cap - y) / y)
    start = np.zeros_like(template)
    start[0] = first_log_odds - last_log_odds  # rate
    start[1] = first_log_odds / (first_log_odds - last_log_odds)  # offset
    return start


def _logit(y: Floats, cap: Floats) -> Floats:
    """log(y / (cap - y)), with y / cap limited to the margin."""
    fraction = np.clip(y / cap, CAP_MARGIN, 1.0 - CAP_MARGIN)
    return np.asarray(np.log(fraction / (1.0 - fraction)))


def _previous_coefficients(previous: Mapping[str, Floats], series_index: int, design: Design) -> Floats:
    """Coefficients of an earlier fit, for the active columns of this design."""
    return np.asarray(previous["coefficients"][series_index][design.active_columns])


def _parameter_arrays(model: Prophet, design: Design, x: Floats) -> dict[str, Floats | float]:
    """The parameter vector x as named arrays, padded so that shapes are the same for all series.

    delta, changes: sizes and times of the slope changes, padded with 0 and infinity; count: their number;
    size: their mean absolute size. Coefficients of columns that are not active are 0.
    """
    n_trend = 1 if model.growth == "flat" else 2
    n_changepoints = len(design.changepoints)
    coefficients = np.zeros(len(design.scale))
    coefficients[design.active_columns] = x[n_trend : n_trend + len(design.active_columns)]
    delta = np.zeros(model.max_changepoints)
    delta[:n_changepoints] = x[len(x) - n_changepoints :]
    changes = np.full(model.max_changepoints, np.inf)
    changes[:n_changepoints] = design.changepoints
    return {
        "start": design.start,
        "span": design.span,
        "rate": 0.0 if n_trend == 1 else float(x[0]),
        "offset": float(x[n_trend - 1]),
        "delta": delta,
        "changes": changes,
        "coefficients": coefficients,
        "centre": design.centre,
        "unit": design.scale,
        "size": float(np.abs(delta[:n_changepoints]).mean()) if n_changepoints else 0.0,
        "count": n_changepoints,
    }


def covariance_factor(model: Prophet, design: Design, y: Floats, cap: Floats, x: Floats, deviation: float) -> Floats:
    """A square root F of the posterior covariance F F' of rate, offset, coefficients and slope changes.

    `x` are the parameters of the design, `deviation` is the standard deviation of the errors. Rows and columns of parameters
    that were not estimated are 0, and all of F if `deviation` is.
    """
    n_columns = len(design.scale)
    n_parameters = 2 + n_columns + model.max_changepoints
    factor = np.zeros((n_parameters, n_parameters))
    if deviation <= 0.0:
        return factor
    n_trend = 1 if model.growth == "flat" else 2
    jacobian, fitted = _jacobian(model, design, cap, x, n_trend)
    residuals = (y - fitted) / deviation
    # Of Student's t errors with nu = 3: (nu + 1) / (nu + r^2)
    weight = 4.0 / (3.0 + residuals * residuals) if model.errors == "student" else np.ones(len(y))
    prior = np.concatenate([design.precision, np.full(len(design.changepoints), 0.5 / model.changepoint_prior_scale**2)])
    products = (jacobian * weight[:, None]).T @ jacobian
    products[np.diag_indices_from(products)] += deviation**2 * prior
    eigenvalues, eigenvectors = np.linalg.eigh(products)
    # Smaller eigenvalues are rounding errors.
    min_eigenvalue = max(deviation**2 * float(prior.min()), 1e-15 * float(eigenvalues[-1]))
    scaled_vectors = eigenvectors * (deviation / np.sqrt(np.maximum(eigenvalues, min_eigenvalue)))
    trend_indices = [1] if n_trend == 1 else [0, 1]
    change_indices = 2 + n_columns + np.arange(len(design.changepoints))
    estimated = np.concatenate([trend_indices, 2 + design.active_columns, change_indices]).astype(np.int64)
    factor[estimated[:, None], estimated[None, :]] = scaled_vectors
    return factor


def _jacobian(model: Prophet, design: Design, cap: Floats, x: Floats, n_trend: int) -> tuple[Floats, Floats]:
    """Derivatives of the fitted values by x, (rows, parameters), and the fitted values.

    The order of the parameters is that of `Design`: trend, features, slope changes.
    """
    n_features = len(design.active_columns)
    coefficients, delta = x[n_trend : n_trend + n_features], x[n_trend + n_features :]
    rate_term = x[0] * design.time if n_trend == 2 else 0.0
    line = rate_term + x[n_trend - 1] + design.hinges @ delta
    ones = np.ones(len(design.time))
    trend = line
    slope_factor = ones  # d trend / d line
    trend_derivatives = [design.time, ones] if n_trend == 2 else [ones]  # of the line
    if model.growth == "logistic":
        line = x[0] * (design.time - x[1]) + design.hinges @ delta
        logistic = 1.0 / (1.0 + np.exp(-line))
        trend, slope_factor = cap * logistic, cap * logistic * (1.0 - logistic)
        trend_derivatives = [design.time - x[1], -x[0] * ones]
    multiplier = 1.0 + design.features @ (coefficients * design.multiplicative)
    fitted = trend * multiplier + design.features @ (coefficients * (1.0 - design.multiplicative))
    column_factor = np.where(design.multiplicative > 0.0, trend[:, None], 1.0)
    line_derivatives = np.concatenate([np.stack(trend_derivatives, axis=-1), design.hinges], axis=1)
    derivatives = line_derivatives * (slope_factor * multiplier)[:, None]
    blocks = [derivatives[:, :n_trend], design.features * column_factor, derivatives[:, n_trend:]]
    return np.concatenate(blocks, axis=1), fitted
