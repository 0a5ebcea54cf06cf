"""Faithfulness of attention weights: the effect of masking the observations with the largest
weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.forecast import AttentionMap
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.state import State
from deepforecast.core.state_updates import move_state_to_panel, prepare_history
from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, ParameterError, format_value, suppress_warnings, validate_integer


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
    """Measure how much a forecast depends on the observations with the largest attention weights.

    Target values of a share of the lookback window are masked: those with the most attention,
    those with the least, and random ones. If attention explains the forecast, masking the former
    changes it more than masking random values, and masking the latter less, on average over series.

    Parameters
    ----------
    model : Forecaster
        A fitted model with attention that accepts missing values.
    frame : DataFrame
        Histories to forecast from.
    share : float, default 0.1
        Share of the lookback window to mask, above 0 and at most 0.5.
    horizon : int, optional
        Number of steps. None: the `horizon` of the model.
    future : DataFrame, optional
        Values of the future covariates.
    static : DataFrame, optional
        Static covariates.
    n_draws : int, default 5
        Number of random masks to average over.
    seed : int, default 0
        Random seed of the masks.

    Returns
    -------
    DataFrame
        One row per series with the number of masked `rows` and the mean absolute change of the
        forecast for `most`, `least` and `random`, in standard deviations of the lookback window.

    Raises
    ------
    CapabilityError
        If the model has no attention to past observations or does not accept missing values.

    Notes
    -----
    Masking also changes the scale of the window and, for the last observation, the initial value of
    the decoder; covariates of masked rows remain; and an encoder may have passed information on to
    neighbouring rows. A small difference between `most` and `least` is a reason to doubt the
    weights; a large one does not prove causality.

    References
    ----------
    Jain, Wallace (2019), Attention is not Explanation. arXiv:1902.10186.
    Wiegreffe, Pinter (2019), Attention is not not Explanation. arXiv:1908.04626.

    Examples
    --------
    >>> from deepforecast import Seq2Seq, datasets
    >>> frame = datasets.generate(2, 100)
    >>> model = Seq2Seq(horizon=7, hidden_size=8, max_steps=20).fit(frame)
    >>> list(faithfulness(model, frame).columns)
    ['unique_id', 'rows', 'most', 'least', 'random']
    """
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 0.5:
        raise ParameterError(
            f"`share` must be a number above 0 and at most 0.5, got {format_value(share)}.",
            hint="Pass for example share=0.1.",
            parameter="share",
            value=share,
        )
    n_draws = validate_integer(n_draws, "n_draws")
    n_steps = model._resolve_horizon(horizon)
    fitted_state = model.fitted_state()
    seed = validate_integer(seed, "seed", minimum=0)
    if not model.capabilities.missing:
        raise CapabilityError(
            f"{model.name} cannot handle missing values, which are used to mask observations.",
            hint="Use a model that accepts missing values.",
        )
    panel, state_series = prepare_history(model, fitted_state, frame, static)
    state = move_state_to_panel(model, fitted_state, panel, state_series)
    future_covariates = model._future_covariates(state, n_steps, future)
    weights = row_importance(model._attention_maps(state.learned_with_series, n_steps, future_covariates), panel, model.name)
    n_masked, orders = _masking_orders(weights, share, n_draws, seed)

    def forecast(from_state: State) -> Floats:
        return model.forecast_from(from_state, n_steps, future_covariates).point(model.point_kind)

    baseline = forecast(state)
    changes = []
    with suppress_warnings():
        for order in orders:
            masked_state = move_state_to_panel(model, fitted_state, _mask_rows(panel, order, n_masked), state_series)
            changes.append(np.abs(forecast(masked_state) - baseline).mean(axis=1))
    scale = np.array([np.nanstd(values) for values in panel.padded(weights.shape[1])])
    relative_changes = np.array(changes) / np.where(scale > 0, scale, 1.0)
    columns: dict[str, Any] = {}
    if panel.series.columns.id is not None and panel.series.ids is not None:
        columns[panel.series.columns.id] = panel.series.ids
    columns |= {
        "rows": n_masked,
        "most": relative_changes[0],
        "least": relative_changes[1],
        "random": relative_changes[2:].mean(axis=0),
    }
    return frames.build(panel.series.library, columns)


def row_importance(attention_maps: Any, panel: Panel, name: str) -> Floats:
    """Attention of the forecast steps to each past row, shape (series, rows), most recent last; NaN
    where missing.

    The mean over steps, layers and heads of cross-attention, or of self-attention if there is none;
    of an encoder alone, over all queries in the window.
    The weight of a patch is divided equally among its rows.
    """
    latest_maps = [
        attention_map for attention_map in attention_maps if attention_map.cutoff == 0 and not attention_map.variables
    ]
    cross_maps = [attention_map for attention_map in latest_maps if attention_map.kind == "cross"]
    forecast_maps = [attention_map for attention_map in latest_maps if (attention_map.queries > 0).any()]
    selected_maps = cross_maps or forecast_maps or latest_maps
    if not selected_maps:
        raise CapabilityError(
            f"{name} has no attention to past observations.", hint="Use a model with attention, such as Transformer."
        )
    # keys are time steps relative to the cutoff, 0 being the last observation; a patch ends at its key
    n_window_rows = 1 - min(int(attention_map.keys.min()) - _key_spacing(attention_map) + 1 for attention_map in selected_maps)
    importance = np.zeros((len(panel), n_window_rows))
    for attention_map in selected_maps:
        is_ahead = attention_map.queries > 0
        mean = attention_map.weights[:, :, is_ahead if is_ahead.any() else slice(None)].mean(axis=(1, 2))
        key_spacing = _key_spacing(attention_map)
        for key, weight in zip(attention_map.keys.tolist(), mean.T, strict=True):
            if key <= 0:
                importance[:, key - key_spacing + n_window_rows : key + n_window_rows] += weight[:, None] / key_spacing
    return np.where(np.isfinite(panel.padded(n_window_rows)), importance, np.nan)


def _key_spacing(attention_map: AttentionMap) -> int:
    """Number of rows between keys (the patch stride)."""
    return int(np.diff(attention_map.keys).min()) if len(attention_map.keys) > 1 else 1


def _masking_orders(weights: Floats, share: float, n_draws: int, seed: int) -> tuple[Ints, list[Ints]]:
    """The number of rows to mask per series, and the orders to mask them in.

    Each order has shape (series, rows) and missing rows last: by highest weight first, by lowest weight
    first, and `n_draws` random ones.
    """
    observed = np.isfinite(weights)
    n_masked = np.maximum(np.round(share * observed.sum(axis=1)), 1).astype(np.int64)
    highest_first = np.argsort(np.where(observed, -weights, np.inf), axis=1, kind="stable")
    lowest_first = np.argsort(np.where(observed, weights, np.inf), axis=1, kind="stable")
    rng = np.random.default_rng(seed)
    return n_masked, [
        highest_first,
        lowest_first,
        *(np.argsort(np.where(observed, rng.random(observed.shape), np.inf), axis=1) for _ in range(n_draws)),
    ]


def _mask_rows(panel: Panel, order: Ints, n_masked: Ints) -> Panel:
    """The panel with the first `n_hidden` rows in the order of each series set to NaN."""
    y = panel.y.copy()
    n_window_rows = order.shape[1]
    is_masked: NDArray[np.bool_] = np.arange(n_window_rows) < n_masked[:, None]
    y[(panel.indptr[1:, None] - n_window_rows + order)[is_masked]] = np.nan
    return panel.with_target(y)
