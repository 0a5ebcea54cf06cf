"""From declared components and a panel to what an additive network consists of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.moments import Moments
from deepforecast.data.panel import Panel
from deepforecast.data.parts import REGRESSOR, SEASON, Part
from deepforecast.data.stamps import stamps_at
from deepforecast.data.windows import Channels
from deepforecast.errors import DataError, ParameterError, say, shown, some
from deepforecast.models.additive._changepoints import checked, refuse_outside, said
from deepforecast.models.additive._clock import placed, scaled
from deepforecast.models.additive._planning import planned
from deepforecast.models.additive._scaling import flag, holds
from deepforecast.models.neural._standing import numbers_in

if TYPE_CHECKING:
    from deepforecast.models.additive.neural_prophet import NeuralProphet
    from deepforecast.nn.additive import Additive, Term

EXAMPLE = Moments((Part("weekly", SEASON, 2, 10.0, True, 7.0, 1),), None, 0, 1, (0.5,), 1)
"""Of no panel, to try a network with."""

ROUNDING = 1e-5  # of the size of a forecast: what float32 leaves between it and its components
KINDS = {SEASON: "seasons", REGRESSOR: "regressors"}
ONE = "series"  # how series are called where there is but one, without a name


def moments_of(model: NeuralProphet, panel: Panel) -> Moments:
    """What follows from time, for all series together: the parts that their stamps tell of, and when the slope may change."""
    _check(model)
    there = ~np.isnan(panel.y)
    stamps = stamps_at(panel.calendar, panel.row_positions[there])
    clock = np.unique(stamps.clock[np.unique(stamps.place)])
    start, span = int(clock[0]), int(clock[-1] - clock[0])
    if span <= 0:
        raise DataError(f"{model.name} needs values at 2 stamps at least, to tell how long a history is. Give longer series.")
    parts = tuple(_settled(one, panel) for one in planned(model, panel) if holds(one, clock, stamps.per_day))
    left = len(panel) * (model.validation_size or 0)
    changes = _changes(model, panel, clock, stamps.per_day)
    return Moments(parts, model.country, start, span, tuple(map(float, changes)), max(int(there.sum()) - left, 1))


def _changes(model: NeuralProphet, panel: Panel, clock: Ints, per_day: int) -> Floats:
    if model.growth == "flat":
        return np.empty(0)
    start, span = int(clock[0]), int(clock[-1] - clock[0])
    if model.changepoints is None:
        return placed(scaled(clock, start, span), model.n_changepoints, model.changepoint_range)
    checked(model.changepoints, not panel.calendar.frequency.base)
    refuse_outside(model.changepoints, panel, clock[:1], clock[-1:], per_day)
    return scaled(said(model.changepoints, per_day), start, span)


def _check(model: NeuralProphet) -> None:
    from deepforecast.models.additive.neural_prophet import OWN

    unknown = [one for one in model.local if one not in OWN]
    if unknown:
        raise ParameterError(f"local is a list of {some(OWN)}; {shown(unknown[0])} is none of them. Say local=['trend'].")


def named(model: NeuralProphet, panel: Panel, known: Learned | None) -> Panel:
    """A panel that says which series each is, where components are their own: one not seen in fit is of an unknown kind."""
    if not model.local:
        return panel
    name = panel.series.columns.id or ONE
    if known is None:
        codes, labels = np.arange(len(panel), dtype=np.float64), tuple(panel.series.label(one) for one in range(len(panel)))
    else:
        number, labels = numbers_in(known, panel), None
        held = known.by_series[f"static:{name}"]
        codes = np.where(number >= 0, held[np.maximum(number, 0)], -1.0)
        new = np.flatnonzero(codes < 0)
        if len(new):
            say(
                f"{model.name} has learned a {' and '.join(model.local)} of each series; series {panel.series.labels(new)} was "
                "not there in fit and has the mean of theirs."
            )
        labels = tuple(map(str, range(int(known.shared["channels"]["counts"][name]))))
    return replace(panel, static={**panel.static, name: Covariate(codes, labels)})


def planned_network(model: NeuralProphet, channels: Channels | None) -> Additive:
    """The plan of the network of these channels."""
    from deepforecast.models.additive.neural_prophet import LAGS
    from deepforecast.nn.additive import Additive

    if channels is None or channels.moments is None:
        raise DataError(f"{model.name} follows time, and its channels hold none of it.")
    moments, clock, count = channels.moments, channels.clock_width, len(channels.numbers)
    codes = _embedded(channels, channels.codes[: channels.ahead_codes])
    ahead = sum(stop.stop - stop.start for stop in codes.values())
    known = (*range(channels.ahead), *range(count, count + clock + ahead))
    lagged = [(name, slice(place, place + 1)) for place, name in enumerate(channels.numbers) if place >= channels.ahead]
    behind = _embedded(channels, channels.codes[channels.ahead_codes :])
    begin = count + clock + ahead
    lagged += [(name, slice(begin + one.start, begin + one.stop)) for name, one in behind.items()]
    series = sum(channels.counts[name] for name in channels.static_codes[:1]) if model.local else 0
    return Additive(
        known, channels.ahead, None if model.growth == "flat" else moments.changes,
        tuple(_terms(model, channels, moments, codes)), model.input_size != 0, tuple(lagged), tuple(model.hidden_sizes), series,
        "trend" in model.local, moments.values, float(model.changepoint_prior_scale), model.lag_prior_scale, LAGS,
    )  # fmt: skip


def _terms(
    model: NeuralProphet, channels: Channels, moments: Moments, codes: Mapping[str, slice]
) -> Iterator[Term]:
    """A term for each part, and for columns known ahead of which no part is known."""
    from deepforecast.nn.additive import Term

    begin = channels.ahead + 1
    for one in moments.timed:
        where, begin = slice(begin, begin + one.columns), begin + one.columns
        gate = None
        if one.condition:
            place = channels.numbers.index(one.condition)
            gate = (place, float(channels.spread[one.condition]), float(channels.centre[one.condition]))
        yield Term(one.name, where, one.prior_scale, one.multiplies, _own(model, one), gate=gate)
    places = {name: slice(number, number + 1) for number, name in enumerate(channels.numbers[: channels.ahead])}
    first = channels.ahead + channels.clock_width
    places |= {name: slice(first + one.start, first + one.stop) for name, one in codes.items()}
    said = {one.name: one for one in moments.parts if one.kind == REGRESSOR}
    taken = {one.condition for one in moments.parts}
    for name, where in places.items():
        one = said.get(name) or Part(name, REGRESSOR, 1, 10.0, False, standardize="yes")
        if name in said or name not in taken:
            yield Term(name, where, one.prior_scale, one.multiplies, _own(model, one), _shift(channels, one))


def _own(model: NeuralProphet, part: Part) -> bool:
    return KINDS.get(part.kind, "events") in model.local


def _shift(channels: Channels, part: Part) -> float:
    """What brings 0 back to where it was, of what is not to be standardised; columns come around 0."""
    return channels.centre[part.name] / channels.spread[part.name] if part.standardize == "no" and not part.names else 0.0


def _settled(part: Part, panel: Panel) -> Part:
    """A column that is standardised or not: flags are not, if nothing is said."""
    if part.kind != REGRESSOR or part.standardize != "auto":
        return part
    values = panel.covariates[part.name].values
    known = values[~np.isnan(values)]
    return replace(part, standardize="no" if len(known) and flag(known) else "yes")


def _embedded(channels: Channels, names: tuple[str, ...]) -> dict[str, slice]:
    """Where the vectors of categories stand, side by side."""
    from deepforecast.nn.embeddings import embedding_width

    found, begin = {}, 0
    for name in names:
        width = embedding_width(channels.counts[name])
        found[name] = slice(begin, begin + width)
        begin += width
    return found


def on_the_scale(parts: dict[str, Floats]) -> dict[str, Floats]:
    """Components with the level in the trend, and without a rest that is but rounding."""
    found = dict(parts)
    level, rest = found.pop("level"), found.pop("rest")
    whole = level + rest + np.asarray(sum(found.values()))
    found["trend"] = level + found["trend"]
    size = np.abs(whole).max(axis=1, keepdims=True) + np.abs(whole - level).max(axis=1, keepdims=True)
    if (np.abs(rest) <= ROUNDING * size).all():
        most = max(found, key=lambda name: float(np.ptp(found[name], axis=1).max()))  # where it is not seen
        return {**found, most: found[most] + rest}
    return {**found, "rest": rest}
