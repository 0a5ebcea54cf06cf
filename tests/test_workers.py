"""However many workers and threads there are, and wherever the rows were cut, the bits are the same."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from joblib import parallel_config

from deepforecast import Conformal, Drift, Forecaster, Naive, SeasonalNaive, compare, cross_validate
from deepforecast.core.parallel import map_chunks
from deepforecast.core.threads import limit_threads
from deepforecast.testing.subject import Subject
from tests.bad_input import ALL, KINDS, LOCAL, made
from tests.frames import P, converted, plain, same

H = 5


def noisy(k: int = 6, n: int = 40) -> pd.DataFrame:
    frame = P(k, n)
    return frame.assign(y=frame["y"] + np.random.default_rng(0).normal(size=len(frame)))


def levels(model: Forecaster) -> list[int] | None:
    return [50, 80] if model.capabilities.distribution is not None else None


@LOCAL
def test_forecasts_are_the_same_on_any_number_of_workers(subject: Subject) -> None:
    """Each worker fits some of the series by itself: what a cluster does with a local model."""
    model, frame = made(subject), noisy()
    wanted, ids = model.clone().fit(frame).predict(level=levels(model)), frame["unique_id"].unique()

    def work(part: slice) -> Any:
        own = frame[frame["unique_id"].isin(ids[part])]
        return model.clone().fit(own).predict(level=levels(model))

    for workers in (1, 2, 4):
        found = pd.concat(map_chunks(work, len(ids), n_jobs=workers, cost=0.5), ignore_index=True)
        assert len(found) == len(ids) * H
        same(found, wanted)


@KINDS
def test_chunks_that_split_a_series_are_one_frame(subject: Subject) -> None:
    """Chunks of a table as partitions of a file give them, their ends inside series, in any order."""
    model, frame = made(subject), noisy()
    wanted = model.clone().fit(frame).predict(level=levels(model))
    cuts = [0, 17, 55, 56, 130, 199, len(frame)]
    parts = [frame.iloc[start:stop] for start, stop in pairwise(cuts)]
    orders = (parts[::-1], parts, parts[::2] + parts[1::2])
    for order in orders if model.capabilities.local else orders[:1]:
        arrow = pa.concat_tables([converted(part, "pyarrow") for part in order])
        assert arrow["y"].num_chunks == len(parts)
        polars = pl.concat([converted(part, "polars") for part in order], rechunk=False)
        for given in (pd.concat(order), arrow, polars):
            found = plain(model.clone().fit(given).predict(level=levels(model)))
            assert len(found) == 6 * H
            same(found, wanted, types=False)


MODELS = (Naive(), SeasonalNaive(season_length=7), Drift(), Conformal(Naive(), alias="Bands"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*prediction intervals cover less than:UserWarning")  # of a short comparison
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_cross_validation_is_the_same_on_any_number_of_workers(backend: str) -> None:
    frame = noisy()
    wanted = cross_validate(list(MODELS), frame, horizon=H, n_windows=2, level=50, n_jobs=1)
    assert len(wanted) == 6 * H * 2
    for workers in (2, 4, -1):
        with parallel_config(backend=backend):
            same(cross_validate(list(MODELS), frame, horizon=H, n_windows=2, level=50, n_jobs=workers), wanted)
    with parallel_config(backend=backend, n_jobs=2):
        board = compare(list(MODELS), frame, horizon=H, n_windows=2, level=50)
    same(board.forecasts, wanted)


@ALL
def test_number_of_library_threads_changes_nothing(subject: Subject) -> None:
    model, frame = made(subject), noisy()
    found = []
    for number in (1, 2, 4):
        with limit_threads(number):
            found.append(model.clone().fit(frame).predict(level=levels(model)))
    for one in found[1:]:
        if model.capabilities.local:
            same(one, found[0])
        else:
            name = model.name
            np.testing.assert_allclose(one[name], found[0][name], rtol=1e-6, atol=1e-6 * np.abs(found[0][name]).max())
