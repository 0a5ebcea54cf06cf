"""From a design and values to what is learned of each series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.models.additive._designing import Design
from deepforecast.models.additive._fitting import Job
from deepforecast.models.additive._scaling import value_scale

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet

EXACT = 1e-6  # a deviation below it is none
FREEDOM = 3.0  # of Student's t
GROWTHS = {"linear": 0, "logistic": 1, "flat": 2}
INSIDE = 0.01  # of the cap: how near to it and to the floor a start may come


def solved(model: Prophet, job: Job, known: Mapping[str, Floats] | None) -> Iterator[tuple[int, dict[str, Floats | float]]]:
    """The number of each series of a job, and what is learned of it. `known`: what was learned of them before."""
    ready = [_scaled(model, *one) for one in zip(job.values, job.caps, job.floors, strict=True)]
    moving = [place for place, one in enumerate(job.values) if one.min() != one.max()]
    numbers = [job.numbers[place] for place in moving]
    found = _found(model, job.design, [ready[place][2:] for place in moving], numbers, known)
    by_place = dict(zip(moving, found, strict=True))
    for place, number in enumerate(job.numbers):
        shift, scale = ready[place][:2]
        steady = np.nan if place in by_place else float(job.values[place][0])
        x, deviation, objective = by_place.get(place, (job.design.nothing, 0.0, 0.0))
        learned = _laid_out(model, job.design, x)
        exact = place in by_place and deviation < EXACT and len(job.design.time) <= len(x)
        learned |= {"shift": shift, "scale": scale, "deviation": deviation, "objective": objective, "steady": steady}
        learned["exact"] = exact
        if model.uncertainty == "laplace":
            from deepforecast.models.additive._posterior import factor

            y, cap = ready[place][2:]
            learned["factor"] = factor(model, job.design, y, cap, x, deviation)
        yield number, learned


def _scaled(model: Prophet, y: Floats, cap: Floats, floor: Floats) -> tuple[float, float, Floats, Floats]:
    """Shift and scale of a series, its scaled values, and its scaled cap."""
    shift, scale = value_scale(model, y, cap, floor)
    below = floor + shift if model.growth == "logistic" else shift
    return shift, scale, (y - below) / scale, (cap - below) / scale


def _found(
    model: Prophet,
    design: Design,
    series: list[tuple[Floats, Floats]],
    numbers: list[int],
    known: Mapping[str, Floats] | None,
) -> list[tuple[Floats, float, float]]:
    """Parameters, deviation and objective of each."""
    from deepforecast.kernels.additive import Prior, straight

    if not series:
        return []
    ones = np.ones((len(design.time), 1))
    trend = [ones] if model.growth == "flat" else [design.time[:, None], ones]
    whole = np.concatenate([*trend, design.features, design.hinges], axis=1)
    prior = Prior(design.precision, 1.0 / model.changepoint_prior_scale)
    plain = design.straight and model.errors == "normal" and model.growth != "logistic"
    values = np.stack([y if model.growth != "logistic" else _unbent(y, cap) for y, cap in series])
    x, deviations, objectives = straight(values, whole, prior, len(trend) - 1)
    if plain:
        return list(zip(x, deviations.tolist(), objectives.tolist(), strict=True))
    return [
        _bent(model, design, y, cap, x[place], None if known is None else _before(known, numbers[place], design))
        for place, (y, cap) in enumerate(series)
    ]


def _bent(
    model: Prophet, design: Design, y: Floats, cap: Floats, near: Floats, before: Floats | None
) -> tuple[Floats, float, float]:
    """The best that is found from several starts."""
    from deepforecast.kernels.additive import Prior
    from deepforecast.kernels.curved import Rows, curved

    hinges, cap = np.ascontiguousarray(design.hinges), np.ascontiguousarray(cap)
    freedom = FREEDOM if model.errors == "student" else 0.0
    rows = Rows(y, design.time, cap, hinges, design.features, design.multiply, GROWTHS[model.growth], freedom)
    prior = Prior(design.precision, 1.0 / model.changepoint_prior_scale)
    return min((curved(rows, prior, one) for one in _starts(model, design, y, cap, near, before)), key=itemgetter(2))


def _starts(
    model: Prophet, design: Design, y: Floats, cap: Floats, near: Floats, before: Floats | None
) -> Iterator[Floats]:
    """Where to search from: the straight model, and what was found before."""
    free = 1 if model.growth == "flat" else 2
    features = slice(free, free + len(design.on))
    start = near.copy()
    if model.growth == "logistic":
        start[features] = 0.0
        rate = start[0] if abs(start[0]) > 1e-3 else 1e-3
        start[:2] = rate, -near[1] / rate
        start[1] = np.clip(start[1], -50.0, 50.0)
        yield _through_the_ends(y, cap, start)
    else:
        level = float(np.mean(y)) or 1.0
        start[features] = np.where(design.multiply > 0.0, near[features] / level, near[features])
    yield start
    if before is not None:
        again = start.copy()
        again[features] = before
        yield again


def _through_the_ends(y: Floats, cap: Floats, like: Floats) -> Floats:
    """A saturating trend through the first and the last value, as Prophet starts."""
    start = np.zeros_like(like)
    ends = ((y[0], cap[0]), (y[-1], cap[-1]))
    ratio = [float(np.clip(most / max(value, INSIDE * most), 1.0 / (1.0 - INSIDE), 1.0 / INSIDE)) for value, most in ends]
    if abs(ratio[0] - ratio[1]) <= 0.01:
        ratio[0] *= 1.05
    first, last = (float(np.log(one - 1.0)) for one in ratio)
    start[0], start[1] = first - last, first / (first - last)
    return start


def _unbent(y: Floats, cap: Floats) -> Floats:
    share = np.clip(y / cap, INSIDE, 1.0 - INSIDE)
    return np.asarray(np.log(share / (1.0 - share)))


def _before(known: Mapping[str, Floats], number: int, design: Design) -> Floats:
    """The coefficients found before, in the columns of this design."""
    return np.asarray(known["coefficients"][number][design.on])


def _laid_out(model: Prophet, design: Design, x: Floats) -> dict[str, Floats | float]:
    """Parameters in arrays whose shapes follow from the model alone."""
    free = 1 if model.growth == "flat" else 2
    count = len(design.changes)
    room = model.most_changes
    coefficients, delta, changes = np.zeros(len(design.scale)), np.zeros(room), np.full(room, np.inf)
    coefficients[design.on] = x[free : free + len(design.on)]
    delta[:count], changes[:count] = x[len(x) - count :], design.changes
    return {
        "start": design.start,
        "span": design.span,
        "rate": 0.0 if free == 1 else float(x[0]),
        "offset": float(x[free - 1]),
        "delta": delta,
        "changes": changes,
        "coefficients": coefficients,
        "centre": design.centre,
        "unit": design.scale,
        "size": float(np.abs(delta[:count]).mean()) if count else 0.0,
        "count": count,
    }
