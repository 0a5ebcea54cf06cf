"""Recent values of each series that forecasts need, and summaries of expanding windows."""

from __future__ import annotations

import numpy as np

from deepforecast.data.features import FEATURE_KINDS
from deepforecast.data.frames import Floats, Ints
from deepforecast.kernels import features as kernel
from deepforecast.models.regression._design import Design, encode_features

FIRST_EXPANDING = FEATURE_KINDS.index("expanding_mean")


def tail(values: Floats, indptr: Ints, width: int) -> Floats:
    """Last `width` values of each series, (series, width), padded with NaN on the left."""
    index = indptr[1:, None] - width + np.arange(width)
    inside = index >= indptr[:-1, None]
    return np.where(inside, values[np.where(inside, index, 0)], np.nan)


def extend_tail(tails: Floats, values: Floats, indptr: Ints) -> Floats:
    """Tails (series, values) of the same width after further values of each series were appended."""
    width, n_new = tails.shape[1], np.diff(indptr)
    position = np.arange(width) + n_new[:, None]  # in the tail followed by the new values
    previous = np.take_along_axis(tails, np.minimum(position, width - 1), axis=1)
    index = np.clip(indptr[:-1, None] + position - width, 0, max(len(values) - 1, 0))
    return np.where(position < width, previous, values[index])


def expanding_positions(design: Design) -> list[int]:
    """Indices of the expanding windows among the features of the target."""
    return [
        position
        for position, feature in enumerate(design.target_features)
        if FEATURE_KINDS.index(feature.kind) >= FIRST_EXPANDING
    ]


def summarize_expanding(design: Design, z: Floats, indptr: Ints) -> Floats:
    """Running summaries of expanding windows for the row after each series: (series, windows, `kernel.SUMMARY`).

    They are the same for all steps of a block, because the lags increase with the step.
    """
    features = [design.target_features[position] for position in expanding_positions(design)]
    summaries = np.zeros((len(indptr) - 1, len(features), kernel.SUMMARY))
    if features:
        kernel.begin_expanding(z, indptr, *encode_features(features), summaries)
    return summaries


def extend_summaries(design: Design, previous: Floats, z: Floats, indptr: Ints, n_known: int) -> Floats:
    """Summaries after further values; the first `n_known` values of each series in `z` are already included."""
    summaries = previous.copy()
    kernel.extend_expanding(
        z,
        indptr,
        n_known,
        *encode_features([design.target_features[position] for position in expanding_positions(design)]),
        summaries,
    )
    return summaries


def pad_summaries(design: Design, summaries: Floats) -> Floats:
    """Summaries with one entry per feature of the target, as the kernel requires; zeros for other features."""
    positions = expanding_positions(design)
    padded = np.zeros((len(summaries), len(design.target_features), kernel.SUMMARY if positions else 0))
    if positions:
        padded[:, positions] = summaries
    return padded
