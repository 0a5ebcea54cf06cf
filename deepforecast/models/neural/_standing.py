"""Where each series stands: the last rows of its columns, as a network looks at them."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from deepforecast.core.state import Learned, State
from deepforecast.data.covariates import UNKNOWN, Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.windows import Channels
from deepforecast.errors import DataError
from deepforecast.training.defaults import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


_CHANNELS: MutableMapping[Any, Channels] = WeakKeyDictionary()  # of each network, read once


def channels_of(learned: Learned) -> Channels:
    """The columns of the fit."""
    network = learned.shared["network"]
    found = _CHANNELS.get(network)
    if found is None:
        found = _CHANNELS[network] = Channels.read(learned.shared["channels"])
    return found


def at_end(panel: Panel, channels: Channels, scale: tuple[Floats, Floats]) -> dict[str, Any]:
    """The last rows of every column of a panel, and by what its series are scaled where they are as a whole."""
    rows = channels.input_size
    held: dict[str, Any] = {"tail": panel.padded(rows), "place": scale[0], "spread": scale[1]}
    for name in (*channels.numbers, *channels.codes):
        lost = np.nan if name in channels.numbers else float(UNKNOWN)
        held[f"tail:{name}"] = _padded(panel.covariates[name].values, panel, rows, lost)
    for name in (*channels.static, *channels.static_codes):
        held[f"static:{name}"] = panel.static[name].values.astype(np.float64)
    return held


def refuse_unseen(name: str, learned: Learned) -> None:
    """No series is forecast of which nothing was seen in all the rows that the network looks at: it would be zero."""
    series, tail = learned.series, learned.by_series["tail"]
    unseen = np.flatnonzero(np.isnan(tail).all(axis=1))
    if not len(unseen):
        return
    named = series is not None and series.own_ids is not None
    whose = f"of series {series.labels(unseen)}" if series is not None and named else "here"
    until = f", the last at {series.calendar.text(int(series.last[unseen[0]]))}" if series is not None and named else ""
    raise DataError(
        f"{name} looks at the last {tail.shape[1]} values of a series, and one of them has to be known; {whose} none is"
        f"{until}. Leave such series out, end them where they are known, say missing='ffill', or fit with a larger input_size=."
    )


def say_still(name: str, state: State, future: Mapping[str, Covariate]) -> None:
    """Warn of numbers ahead that differ from the one value they had in all of the fit: they count as nothing."""
    channels = channels_of(state.learned)
    still = {one: future[one] for one in future if channels.spread.get(one) == 0.0}
    if not still:
        return
    from deepforecast.models.statistical._regressors import say_untold

    say_untold(name, np.tile([channels.centre[one] for one in still], (len(state.series), 1)), still, state.series)


def begun(model: NeuralForecaster, learned: Learned, panel: Panel) -> dict[str, Any]:
    """The same for histories of any series."""
    return at_end(model._beside(panel, learned), channels_of(learned), known_scales(model, learned, panel))


def moved(learned: Learned, panel: Panel) -> dict[str, Any]:
    """The last rows after further ones."""
    held = dict(learned.by_series)
    for name in [one for one in held if one == "tail" or one.startswith("tail:")]:
        values = panel.y if name == "tail" else panel.covariates[name.partition(":")[2]].values
        held[name] = _gone_on(held[name], values, panel)
    return held


def known_scales(model: NeuralForecaster, learned: Learned, panel: Panel) -> tuple[Floats, Floats]:
    """Of histories of any series after a fit: that of all series together is as it was in the fit, and of models that keep it,
    that of each it knows."""
    known = learned.shared.get("scale")
    if known is not None:
        return np.full(len(panel), known[0]), np.full(len(panel), known[1])
    place, spread = scales(panel, model)
    if model.keeps_scale:
        number = numbers_in(learned, panel)
        there = number >= 0
        for values, name in ((place, "place"), (spread, "spread")):
            values[there] = learned.by_series[name][number[there]]
    return place, spread


def numbers_in(known: Learned, panel: Panel) -> Ints:
    """The number of each series of a panel among those of which something is known, -1 for one that is not there."""
    series = known.series
    if series is None or series.own_ids is None or panel.series.own_ids is None:
        return np.arange(len(panel))
    return series.numbers_of(panel.series.own_ids)


def scales(panel: Panel, model: NeuralForecaster) -> tuple[Floats, Floats]:
    """Place and spread of each series as a whole, or of all of them together."""
    place, spread = np.zeros(len(panel)), np.ones(len(panel))
    if model.scaler_scope == "window":
        return place, spread
    ends = panel.indptr if model.scaler_scope == "series" else np.array([0, len(panel.y)])
    for one, (begin, end) in enumerate(pairwise(ends)):
        where = one if model.scaler_scope == "series" else slice(None)
        place[where], spread[where] = scale_of(panel.y[begin:end], model.scaler)
    return place, spread


def scale_of(values: Floats, scaler: str) -> tuple[float, float]:
    """Place and spread of all the values of a series."""
    import torch

    from deepforecast.nn.scaling import of_series

    with torch_defaults():
        place, spread = of_series(torch.tensor(values).unsqueeze(0), scaler)
        return float(place), float(spread)


def _padded(values: Floats, panel: Panel, rows: int, lost: float) -> Floats:
    index = panel.indptr[1:, None] - rows + np.arange(rows)
    inside = index >= panel.indptr[:-1, None]
    return np.where(inside, values[np.where(inside, index, 0)], lost)


def _gone_on(before: Floats, values: Floats, panel: Panel) -> Floats:
    """Of the rows before and the further ones behind them, the last."""
    rows = before.shape[1]
    found = np.empty_like(before)
    for one in range(len(before)):
        new = values[panel.indptr[one] : panel.indptr[one + 1]][-rows:]
        found[one] = np.concatenate([before[one, len(new) :], new])
    return found
