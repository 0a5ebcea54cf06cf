"""Maximum a posteriori estimation of the series of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.models.additive._design_matrix import Design
from deepforecast.models.additive._jobs import Job
from deepforecast.models.additive._scaling import value_scale

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet

EXACT_FIT_DEVIATION = 1e-6  # smaller standard deviations count as zero
DEGREES_OF_FREEDOM = 3.0  # Student's t errors
GROWTHS = {"linear": 0, "logistic": 1, "flat": 2}
CAP_MARGIN = 0.01  # starting points keep this fraction of the cap away from cap and floor


def fit_job(model: Prophet, job: Job, previous: Mapping[str, Floats] | None) -> Iterator[tuple[int, dict[str, Floats | float]]]:
    """Yield number and learned arrays of each series; `previous`: arrays of an earlier fit."""
    scaled = [_scale_values(model, *series_values) for series_values in zip(job.values, job.caps, job.floors, strict=True)]
    varying = [index for index, series_values in enumerate(job.values) if series_values.min() != series_values.max()]
    numbers = [job.series_numbers[index] for index in varying]
    estimates = _estimate(model, job.design, [scaled[index][2:] for index in varying], numbers, previous)
    by_index = dict(zip(varying, estimates, strict=True))
    for index, number in enumerate(job.series_numbers):
        shift, scale = scaled[index][:2]
        steady = np.nan if index in by_index else float(job.values[index][0])
        x, deviation, objective = by_index.get(index, (job.design.zero_parameters, 0.0, 0.0))
        learned = _parameter_arrays(model, job.design, x)
        exact = index in by_index and deviation < EXACT_FIT_DEVIATION and len(job.design.time) <= len(x)
        learned |= {"shift": shift, "scale": scale, "deviation": deviation, "objective": objective, "steady": steady}
        learned["exact"] = exact
        if model.uncertainty == "laplace":
            from deepforecast.models.additive._posterior import covariance_factor

            y, cap = scaled[index][2:]
            learned["factor"] = covariance_factor(model, job.design, y, cap, x, deviation)
        yield number, learned


def _scale_values(model: Prophet, y: Floats, cap: Floats, floor: Floats) -> tuple[float, float, Floats, Floats]:
    """Shift and scale of a series, its scaled values, and its scaled cap."""
    shift, scale = value_scale(model, y, cap, floor)
    shift_by_row = floor + shift if model.growth == "logistic" else shift
    return shift, scale, (y - shift_by_row) / scale, (cap - shift_by_row) / scale


def _estimate(
    model: Prophet,
    design: Design,
    series: list[tuple[Floats, Floats]],
    numbers: list[int],
    previous: Mapping[str, Floats] | None,
) -> list[tuple[Floats, float, float]]:
    """Parameters, standard deviation of the errors and objective of each series."""
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
            None if previous is None else _previous_coefficients(previous, numbers[index], design),
        )
        for index, (y, cap) in enumerate(series)
    ]


def _fit_nonlinear_growth(
    model: Prophet, design: Design, y: Floats, cap: Floats, linear_solution: Floats, previous_coefficients: Floats | None
) -> tuple[Floats, float, float]:
    """Nonlinear least squares from several starting points; the lowest objective wins."""
    from deepforecast.kernels.additive import Prior
    from deepforecast.kernels.gauss_newton import Rows, fit_nonlinear

    hinges, cap = np.ascontiguousarray(design.hinges), np.ascontiguousarray(cap)
    degrees_of_freedom = DEGREES_OF_FREEDOM if model.errors == "student" else 0.0
    rows = Rows(y, design.time, cap, hinges, design.features, design.multiplicative, GROWTHS[model.growth], degrees_of_freedom)
    prior = Prior(design.precision, 1.0 / model.changepoint_prior_scale)
    starts = _starting_points(model, design, y, cap, linear_solution, previous_coefficients)
    return min((fit_nonlinear(rows, prior, start) for start in starts), key=itemgetter(2))


def _starting_points(
    model: Prophet, design: Design, y: Floats, cap: Floats, linear_solution: Floats, previous_coefficients: Floats | None
) -> Iterator[Floats]:
    """Starting points: the linear fit, and the coefficients of an earlier fit."""
    n_trend = 1 if model.growth == "flat" else 2
    features = slice(n_trend, n_trend + len(design.active_columns))
    start = linear_solution.copy()
    if model.growth == "logistic":
        start[features] = 0.0
        rate = start[0] if abs(start[0]) > 1e-3 else 1e-3
        start[:2] = rate, -linear_solution[1] / rate
        start[1] = np.clip(start[1], -50.0, 50.0)
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
    """Logistic trend through the first and the last value, as in Prophet."""
    start = np.zeros_like(template)
    ends = ((y[0], cap[0]), (y[-1], cap[-1]))
    ratio = [
        float(
            np.clip(
                maximum / max(value, CAP_MARGIN * maximum),
                1.0 / (1.0 - CAP_MARGIN),
                1.0 / CAP_MARGIN,
            )
        )
        for value, maximum in ends
    ]
    if abs(ratio[0] - ratio[1]) <= 0.01:
        ratio[0] *= 1.05
    first, last = (float(np.log(odds - 1.0)) for odds in ratio)
    start[0], start[1] = first - last, first / (first - last)
    return start


def _logit(y: Floats, cap: Floats) -> Floats:
    fraction = np.clip(y / cap, CAP_MARGIN, 1.0 - CAP_MARGIN)
    return np.asarray(np.log(fraction / (1.0 - fraction)))


def _previous_coefficients(previous: Mapping[str, Floats], number: int, design: Design) -> Floats:
    """Coefficients of an earlier fit, for the columns of this design."""
    return np.asarray(previous["coefficients"][number][design.active_columns])


def _parameter_arrays(model: Prophet, design: Design, x: Floats) -> dict[str, Floats | float]:
    """Parameters as arrays whose shapes are the same for all series."""
    n_trend = 1 if model.growth == "flat" else 2
    count = len(design.changepoints)
    max_changepoints = model.max_changepoints
    coefficients, delta, changes = np.zeros(len(design.scale)), np.zeros(max_changepoints), np.full(max_changepoints, np.inf)
    coefficients[design.active_columns] = x[n_trend : n_trend + len(design.active_columns)]
    delta[:count], changes[:count] = x[len(x) - count :], design.changepoints
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
        "size": float(np.abs(delta[:count]).mean()) if count else 0.0,
        "count": count,
    }
