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
    draws, steps, fitted_state = validate_integer(n_draws, "n_draws"), model._resolve_horizon(horizon), model.fitted_state()
    seed = validate_integer(seed, "seed", minimum=0)
    if not model.capabilities.missing:
        raise CapabilityError(f"Rows are hidden as missing values, which {model.name} does not take. Try a model that does.")
    panel, rows = prepare_history(model, fitted_state, frame, static)
    state = move_state_to_panel(model, fitted_state, panel, rows)
    future_covariates = model._future_covariates(state, steps, future)
    weights = row_importance(model._attention_maps(state.learned_with_series, steps, future_covariates), panel, model.name)
    n_hidden, orders = _hiding_orders(weights, share, draws, seed)

    def forecast(from_state: State) -> Floats:
        return model.forecast_from(from_state, steps, future_covariates).point(model.point_kind)

    baseline, changes = forecast(state), []
    with suppress_warnings():
        for order in orders:
            hidden_state = move_state_to_panel(model, fitted_state, _hide_rows(panel, order, n_hidden), rows)
            changes.append(np.abs(forecast(hidden_state) - baseline).mean(axis=1))
    scale = np.array([np.nanstd(values) for values in panel.padded(weights.shape[1])])
    relative_changes = np.array(changes) / np.where(scale > 0, scale, 1.0)
    columns: dict[str, Any] = {}
    if panel.series.columns.id is not None and panel.series.ids is not None:
        columns[panel.series.columns.id] = panel.series.ids
    columns |= {"rows": n_hidden, "most": relative_changes[0], "least": relative_changes[1], "random": relative_changes[2:].mean(axis=0)}
    return frames.build(panel.series.library, columns)


def row_importance(attention_maps: Any, panel: Panel, name: str) -> Floats:
    """How much the steps ahead look at each of the last rows, (series, rows), the last one last; NaN where nothing was seen.

    The mean over steps, layers and heads of cross-attention, or of self-attention where there is no other. A patch shares its
    weight out among its rows up to the patch before.
    """
    latest_maps = [attention_map for attention_map in attention_maps if attention_map.cutoff == 0]
    selected_maps = [attention_map for attention_map in latest_maps if attention_map.kind == "cross"] or [attention_map for attention_map in latest_maps if (attention_map.queries > 0).any()]
    if not selected_maps:
        raise CapabilityError(f"{name} has no attention to the rows it sees, so there is nothing to try.")
    length = 1 - min(int(attention_map.keys.min()) - _key_spacing(attention_map) + 1 for attention_map in selected_maps)
    total = np.zeros((len(panel), length))
    for attention_map in selected_maps:
        mean = attention_map.weights[:, :, attention_map.queries > 0].mean(axis=(1, 2))
        key_spacing = _key_spacing(attention_map)
        for key, weight in zip(attention_map.keys.tolist(), mean.T, strict=True):
            if key <= 0:
                total[:, key - key_spacing + length : key + length] += weight[:, None] / key_spacing
    return np.where(np.isfinite(panel.padded(length)), total, np.nan)


def _key_spacing(attention_map: AttentionMap) -> int:
    """Rows from one key to the next."""
    return int(np.diff(attention_map.keys).min()) if len(attention_map.keys) > 1 else 1


def _hiding_orders(weights: Floats, share: float, n_draws: int, seed: int) -> tuple[Ints, list[Ints]]:
    """How many rows of each series are hidden, and in which orders: each (series, rows), rows not seen last."""
    observed = np.isfinite(weights)
    n_hidden = np.maximum(np.round(share * observed.sum(axis=1)), 1).astype(np.int64)
    most = np.argsort(np.where(observed, -weights, np.inf), axis=1, kind="stable")
    least = np.argsort(np.where(observed, weights, np.inf), axis=1, kind="stable")
    rng = np.random.default_rng(seed)
    return n_hidden, [most, least, *(np.argsort(np.where(observed, rng.random(observed.shape), np.inf), axis=1) for _ in range(n_draws))]


def _hide_rows(panel: Panel, order: Ints, n_hidden: Ints) -> Panel:
    """The panel with the first `n_hidden` rows of each series' order missing; rows are numbered up to the last one."""
    y, length = panel.y.copy(), order.shape[1]
    is_hidden: NDArray[np.bool_] = np.arange(length) < n_hidden[:, None]
    y[(panel.indptr[1:, None] - length + order)[is_hidden]] = np.nan
    return panel.with_target(y)
