"""The steps ahead of a fitted model: mean, bands, components and sample paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.stamps import stamps_at
from deepforecast.models.additive._bands import AdditiveForecast, DrawnForecast
from deepforecast.models.additive._clock import scaled
from deepforecast.models.additive._evaluating import Laid, bent, laid_out, parts_of
from deepforecast.models.additive._solving import FREEDOM

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet

SAMPLES = 1000  # paths that bands of a saturating trend are made of, as many as Prophet draws
DRAWS = 5  # of a step: noise, how many changes, how large, which way, when
CLIPPED = "bounds"
"""The component of what cap and floor cut off."""


def ahead(model: Prophet, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
    """The forecast: bands by formula, or by paths where the trend saturates."""
    laid = _laid(model, learned, steps, future)
    mean, low, high = _clipped(model, laid, steps)
    if model.growth == "logistic":
        return DrawnForecast(mean, paths(model, learned, steps, SAMPLES, 0, future))
    past, series = np.maximum(laid.time - 1.0, 0.0), _series(learned, steps)
    change = learned["size"][series] * past * laid.moved * np.abs(laid.grown)
    scale = learned["scale"][series]
    noise = learned["deviation"][series] * scale
    if model.uncertainty == "laplace":
        away = _away(model, learned, laid, steps, future).reshape(len(scale), -1) / scale[:, None]
        noise = scale * np.sqrt(learned["deviation"][series] ** 2 + np.square(away).sum(axis=-1))
    count = learned["count"][series] * past

    def folded(values: Floats) -> Floats:
        return np.asarray(values.reshape(-1, steps))

    return AdditiveForecast(mean, folded(noise), folded(change), folded(count), model.errors == "student", low, high)


def components(model: Prophet, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
    """What adds up to the mean: trend, each part (those that are 0 in every series left out), and what bounds cut off."""
    laid = _laid(model, learned, steps, future)
    mean, _, _ = _clipped(model, laid, steps)
    return {name: values.reshape(-1, steps) for name, values in shown(model, learned, laid, mean.reshape(-1)).items()}


def shown(model: Prophet, learned: Learned, laid: Laid, mean: Floats) -> dict[str, Floats]:
    """The components of rows, as `components` gives them."""
    from deepforecast.data.parts import places

    every, parts = laid.components, places(parts_of(learned))
    there = [name for name, where in parts.items() if learned["coefficients"][:, where].any()]
    found = {name: every[name] for name in ("trend", *there)}
    if bounded(model):
        found[CLIPPED] = mean - np.asarray(sum(found.values()))
    return found


def paths(
    model: Prophet, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]
) -> Floats:
    """Sample paths (series, samples, steps), each series' own whatever stands beside it."""
    laid = _laid(model, learned, steps, future)
    _, low, high = _clipped(model, laid, steps)
    known = (2 + learned["coefficients"].shape[1] + model.most_changes) if model.uncertainty == "laplace" else 0
    age = _age(learned)
    found = np.empty((len(age), samples, steps))
    away = _away(model, learned, laid, steps, future) if known else None
    for one in range(len(age)):
        rows = slice(one * steps, (one + 1) * steps)
        reach = int(age[one]) + steps
        draws = _draws(learned.take(np.array([one])), seed, (known + DRAWS * reach, samples))[0]
        own, when = draws[known:].reshape(reach, DRAWS, samples), slice(age[one], reach)
        line, noise = _changed(learned, one, reach, own)[when], own[when, 0]
        if model.errors == "student":
            noise = _student(noise)
        moved = laid.moved[rows, None] * line
        if model.growth == "logistic":
            scale = learned["scale"][one]
            moved = scale * bent(laid.line[rows, None] + line, laid.cap[rows, None]) - laid.moving[rows, None]
        if not np.isnan(learned["steady"][one]):
            moved = 0.0 * moved
        path = laid.mean[rows, None] + moved * laid.grown[rows, None]
        path = path + learned["deviation"][one] * learned["scale"][one] * noise
        if away is not None:
            path = path + away[one] @ draws[:known]
        found[one] = np.clip(path.T, low[one], high[one])
    return found


def bounded(model: Prophet) -> bool:
    """Whether cap or floor cut forecasts off: where the trend does not saturate by itself."""
    return model.growth != "logistic" and (model.cap is not None or model.floor is not None)


def _laid(model: Prophet, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Laid:
    positions = learned.series.calendar.following(learned.series.last, steps)  # type: ignore[union-attr]
    return laid_out(model, learned, learned.series.calendar, _series(learned, steps), positions, future)  # type: ignore[union-attr]


def _series(learned: Learned, steps: int) -> Ints:
    return np.repeat(np.arange(len(learned["rate"])), steps)


def _clipped(model: Prophet, laid: Laid, steps: int) -> tuple[Floats, Floats, Floats]:
    """The mean within its bounds, and these, (series, steps)."""
    none = np.full(len(laid.trend), np.inf)
    low = laid.limits.floor if bounded(model) and model.floor is not None else -none
    high = laid.limits.cap if bounded(model) and model.cap is not None else none
    mean, least, most = (one.reshape(-1, steps) for one in (laid.mean, low, high))
    return np.clip(mean, least, most), least, most


def _age(learned: Learned) -> Ints:
    """Steps from the last value of the fit to where each series stands."""
    series = learned.series
    return np.asarray((series.last - learned["end"]) // series.calendar.step)  # type: ignore[union-attr]


def _draws(learned: Learned, seed: int, shape: tuple[int, int]) -> Floats:
    """Standard normal numbers that belong to each series."""
    from deepforecast.core.noise import standard_normal

    names = ("rate", "offset", "deviation", "scale")
    return standard_normal(seed, np.stack([learned[name] for name in names], axis=1), shape)


def _changed(learned: Learned, one: int, reach: int, draws: Floats) -> Floats:
    """How far the line of a path is from the one expected, at each step from the last value of the fit on, (steps, samples)."""
    from scipy.special import gammaincinv, ndtr, pdtr

    series = learned.series
    positions = learned["end"][one] + series.calendar.step * np.arange(1, reach + 1)  # type: ignore[union-attr]
    stamps = stamps_at(series.calendar, positions)  # type: ignore[union-attr]
    passed = np.maximum(scaled(stamps.rows, learned["start"][one], learned["span"][one]) - 1.0, 0.0)
    length = np.diff(passed, prepend=0.0)
    slopes, steps = np.zeros(draws[:, 0].shape), np.zeros(draws[:, 0].shape)
    share = ndtr(draws[:, 1])
    expected = np.broadcast_to(learned["count"][one] * length[:, None], share.shape)
    some = np.nonzero(share > np.exp(-expected))
    if learned["size"][one] > 0.0 and len(some[0]):
        count = np.ones(len(some[0]))
        for more in range(1, 200):
            above = share[some] > pdtr(more, expected[some])
            if not above.any():
                break
            count += above
        size = np.sqrt(2.0 * gammaincinv(count, ndtr(draws[:, 2][some]))) * draws[:, 3][some]
        slopes[some] = learned["size"][one] * size
        steps[some] = slopes[some] * length[some[0]] * ndtr(draws[:, 4][some])
    before = np.cumsum(slopes, axis=0) - slopes
    return np.asarray(np.cumsum(before * length[:, None] + steps, axis=0))


def _student(draws: Floats) -> Floats:
    from scipy.special import ndtr, stdtrit

    return np.asarray(stdtrit(FREEDOM, ndtr(draws)))


def _away(model: Prophet, learned: Learned, laid: Laid, steps: int, future: Mapping[str, Covariate]) -> Floats:
    """What independent draws of the parameters add at each step: (series, steps, parameters), in units of the values."""
    from deepforecast.models.additive._sensitivity import sensitivity

    along = sensitivity(model, learned, laid, steps, future)
    return np.asarray(np.einsum("nsp,npq->nsq", along, learned["factor"]))


