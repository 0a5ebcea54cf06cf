"""`faithfulness`: whether a forecast hangs on the rows a model looks at, tried by hiding them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.explanations import AttentionMap
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.state import State
from deepforecast.core.state_updates import move_state_to_panel, prepare_history
from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.integers import validate_integer
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, ParameterError, format_value, suppress_warnings


def faithfulness(
    model: Forecaster,
    frame: Frame,
    *,
    share: float = 0.1,
    horizon: int | None = None,
    future: Frame | None = None,
    static: Frame | None = None,
    n_draws: int = 5,
    seed: int = 0,
) -> Frame:
    """How much the forecast from the end of these histories changes where the target of a `share` of the rows the model sees
    is hidden: of those it attends to `most`, of those it attends to `least`, and of `random` ones (the mean of `n_draws`).

    A row a series, with the number of `rows` hidden. A change is the mean absolute difference of the forecasts, in standard
    deviations of the values the model sees. Attention that tells what the forecast is made of has `most` above `random` and
    `least` below it, for series on average rather than for each.

    What it does not tell: hidden rows are missing to the model as rows with a gap are, so the scale of the window is another
    one too, and where the last row goes, what the decoder starts from; covariates and the calendar of a hidden row stay; and
    what is in a row may have reached the forecast through its neighbours, which an encoder has read with it. So a small
    difference between `most` and `least` is a reason to doubt the weights, and a large one no proof of a cause.
    (Jain, Wallace 2019, "Attention is not explanation"; Wiegreffe, Pinter 2019, "Attention is not not explanation".)

    >>> from deepforecast import Seq2Seq, datasets
    >>> frame = datasets.generate(2, 100)
    >>> model = Seq2Seq(horizon=7, hidden_size=8, max_steps=20).fit(frame)
    >>> list(faithfulness(model, frame).columns)
    ['unique_id', 'rows', 'most', 'least', 'random']
    """
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 0.5:
        raise ParameterError(f"share is a number above 0 and at most 0.5, of which most and least differ; got {format_value(share)}.")
    draws, steps, before = validate_integer(n_draws, "n_draws"), model._resolve_horizon(horizon), model.fitted_state()
    seed = validate_integer(seed, "seed", minimum=0)
    if not model.capabilities.missing:
        raise CapabilityError(f"Rows are hidden as missing values, which {model.name} does not take. Try a model that does.")
    panel, rows = prepare_history(model, before, frame, static)
    state = move_state_to_panel(model, before, panel, rows)
    known = model._future_covariates(state, steps, future)
    weights = importance(model._attention_maps(state.learned_with_series, steps, known), panel, model.name)
    count, orders = _orders(weights, share, draws, seed)

    def forecast(at: State) -> Floats:
        return model.forecast_from(at, steps, known).point(model.point_kind)

    plain, changes = forecast(state), []
    with suppress_warnings():
        for order in orders:
            hidden = move_state_to_panel(model, before, _hidden(panel, order, count), rows)
            changes.append(np.abs(forecast(hidden) - plain).mean(axis=1))
    scale = np.array([np.nanstd(one) for one in panel.padded(weights.shape[1])])
    found = np.array(changes) / np.where(scale > 0, scale, 1.0)
    columns: dict[str, Any] = {}
    if panel.series.columns.id is not None and panel.series.ids is not None:
        columns[panel.series.columns.id] = panel.series.ids
    columns |= {"rows": count, "most": found[0], "least": found[1], "random": found[2:].mean(axis=0)}
    return frames.build(panel.series.library, columns)


def importance(looked: Any, panel: Panel, name: str) -> Floats:
    """How much the steps ahead look at each of the last rows, (series, rows), the last one last; NaN where nothing was seen.

    The mean over steps, layers and heads of cross-attention, or of self-attention where there is no other. A patch shares its
    weight out among its rows up to the patch before.
    """
    own = [one for one in looked if one.cutoff == 0]
    chosen = [one for one in own if one.kind == "cross"] or [one for one in own if (one.queries > 0).any()]
    if not chosen:
        raise CapabilityError(f"{name} has no attention to the rows it sees, so there is nothing to try.")
    length = 1 - min(int(one.keys.min()) - _gap(one) + 1 for one in chosen)
    total = np.zeros((len(panel), length))
    for one in chosen:
        mean = one.weights[:, :, one.queries > 0].mean(axis=(1, 2))
        gap = _gap(one)
        for key, weight in zip(one.keys.tolist(), mean.T, strict=True):
            if key <= 0:
                total[:, key - gap + length : key + length] += weight[:, None] / gap
    return np.where(np.isfinite(panel.padded(length)), total, np.nan)


def _gap(one: AttentionMap) -> int:
    """Rows from one key to the next."""
    return int(np.diff(one.keys).min()) if len(one.keys) > 1 else 1


def _orders(weights: Floats, share: float, draws: int, seed: int) -> tuple[Ints, list[Ints]]:
    """How many rows of each series are hidden, and in which orders: each (series, rows), rows not seen last."""
    seen = np.isfinite(weights)
    count = np.maximum(np.round(share * seen.sum(axis=1)), 1).astype(np.int64)
    most = np.argsort(np.where(seen, -weights, np.inf), axis=1, kind="stable")
    least = np.argsort(np.where(seen, weights, np.inf), axis=1, kind="stable")
    rng = np.random.default_rng(seed)
    return count, [most, least, *(np.argsort(np.where(seen, rng.random(seen.shape), np.inf), axis=1) for _ in range(draws))]


def _hidden(panel: Panel, order: Ints, count: Ints) -> Panel:
    """The panel with the first `count` rows of each series' order missing; rows are numbered up to the last one."""
    y, length = panel.y.copy(), order.shape[1]
    first: NDArray[np.bool_] = np.arange(length) < count[:, None]
    y[(panel.indptr[1:, None] - length + order)[first]] = np.nan
    return panel.with_target(y)
