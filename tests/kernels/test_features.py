"""Features of the past, against pandas; and the next row's against those of the whole table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from deepforecast.data.features import FEATURE_KINDS, parse_lag_feature
from deepforecast.kernels import features as kernel

NAMES = ["lag_1", "lag_5", "difference_1", "difference_7@2", "mean_7", "std_7", "min_7", "max_7", "quantile_7_0.3", "mean_3x7",
         "std_3x7", "max_3x7@9", "mean_40@3", "expanding_mean", "expanding_std@3", "expanding_min", "expanding_max",
         "ewm_0.3"]  # fmt: skip


def coded(names):
    held = [parse_lag_feature(name) for name in names]
    return (
        np.array([[FEATURE_KINDS.index(one.kind), one.lag, one.size, one.stride] for one in held], np.int64),
        np.array([one.level for one in held]),
    )


def by_pandas(y, name):
    """The definition, series by series, with windows of at least one value."""
    one = parse_lag_feature(name)
    y = pd.Series(y)
    if one.kind == "lag":
        return y.shift(one.lag)
    if one.kind == "difference":
        return y.shift(one.lag) - y.shift(one.lag + one.stride)
    if one.kind == "ewm":
        weighted = y.ewm(alpha=one.level, adjust=False, ignore_na=True).mean()
        return weighted.shift(one.lag)
    if one.kind.startswith("expanding"):
        return getattr(y.expanding(min_periods=1), one.kind.removeprefix("expanding_"))().shift(one.lag)
    columns = pd.concat([y.shift(one.lag + step * one.stride) for step in range(one.size)], axis=1)
    if one.kind == "quantile":
        return columns.quantile(one.level, axis=1)
    return getattr(columns, one.kind)(axis=1)


@pytest.fixture(params=["complete", "holes", "large"])
def panel(request):
    rng = np.random.default_rng(3)
    lengths = [60, 1, 25, 8]
    y = rng.normal(size=sum(lengths))
    if request.param == "holes":
        y[rng.random(len(y)) < 0.3] = np.nan
    if request.param == "large":
        y = 3e9 + 4 * y
    return y, np.concatenate([[0], np.cumsum(lengths)])


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_what_pandas_says(panel, name):
    y, indptr = panel
    out = np.full((len(y), 1), -99.0)
    kernel.fill_features(y, indptr, *coded([name]), 0, out)
    near = 1e-6 if y[0] > 1e6 else 1e-9
    for begin, end in pairwise(indptr):
        np.testing.assert_allclose(out[begin:end, 0], by_pandas(y[begin:end], name), rtol=1e-9, atol=near)


def test_an_outlier_leaves_no_trace_in_windows_that_do_not_hold_it():
    y = np.ones(200)
    y[50] = 1e12
    out = np.empty((200, 2))
    kernel.fill_features(y, np.array([0, 200]), *coded(["mean_7", "std_7"]), 0, out)
    np.testing.assert_array_equal(out[80:, 0], 1.0)
    np.testing.assert_array_equal(out[80:, 1], 0.0)


def test_the_next_rows_of_all_series_are_those_of_the_table_of_longer_histories(panel):
    y, indptr = panel
    features, levels = coded(NAMES)
    room, steps, lengths = 60, 10, np.diff(indptr)
    past = np.full((len(lengths), room + steps), np.nan)
    for one, length in enumerate(lengths):
        past[one, room - length : room] = y[indptr[one] : indptr[one + 1]]
    running = np.empty((len(lengths), len(features), kernel.SUMMARY))
    kernel.begin_expanding(y, indptr, features, levels, running)
    more = np.random.default_rng(5).normal(size=(len(lengths), steps)) + (3e9 if y[0] > 1e6 else 0)
    for step in range(steps):
        found = np.empty((len(lengths), len(features)))
        kernel.fill_next_row(past, room + step, features, levels, running, found)
        longer = [np.concatenate([y[b:e], more[i, :step], [0.0]]) for i, (b, e) in enumerate(pairwise(indptr))]
        bounds = np.concatenate([[0], np.cumsum([len(one) for one in longer])])
        whole = np.empty((bounds[-1], len(features)))
        kernel.fill_features(np.concatenate(longer), bounds, features, levels, 0, whole)
        np.testing.assert_allclose(found, whole[bounds[1:] - 1], rtol=1e-9, atol=1e-6 if y[0] > 1e6 else 1e-9)
        past[:, room + step] = more[:, step]
        kernel.update_expanding(past, room + step + 1, features, levels, running)
