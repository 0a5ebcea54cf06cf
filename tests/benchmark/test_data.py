from __future__ import annotations

import numpy as np
import pytest

from deepforecast import datasets
from deepforecast.benchmark.data import arranged, last_rows, limited, prepare, rows_of, sampled
from deepforecast.benchmark.suite import Scaling, Slice, Task, Windows
from deepforecast.errors import DataError, ParameterError

MADE = Task(task="made", generate={"n_series": 5, "length": 60, "freq": "D", "seed": 3}, horizon=7)


def changed(**fields: object) -> Task:
    from dataclasses import replace

    return replace(MADE, **fields)  # type: ignore[arg-type]


def test_horizon_season_and_roles_are_those_of_the_card() -> None:
    found = prepare(Task(dataset="macrodata"))
    assert (found.plan.horizon, found.season) == (8, 4)
    assert found.columns["past"] == datasets.card("macrodata").past
    assert prepare(Task(dataset="macrodata", columns="none", horizon=2)).panel.covariates == {}


def test_windows_within_test_rows_drop_none_and_leave_none_over() -> None:
    found = prepare(changed(windows=Windows(test=20, step=1)))
    assert (found.plan.n_windows, found.plan.step) == (20 - 7 + 1, 1)
    assert prepare(changed(windows=Windows(test=21, step=7))).plan.n_windows == 3
    with pytest.raises(ParameterError, match=r"windows\.test holds 5 rows"):
        prepare(changed(windows=Windows(test=5)))


def test_the_scale_is_of_the_first_rows_alone() -> None:
    task = changed(scaling=Scaling(rows=40))
    frame = rows_of(task)
    found = arranged(task, frame).history["y"].to_numpy().reshape(5, 60)
    assert found[:, :40].mean(axis=1) == pytest.approx(np.zeros(5), abs=1e-12)
    assert found[:, :40].std(axis=1) == pytest.approx(np.ones(5))
    late = frame.assign(y=np.where(np.arange(300) % 60 >= 40, 1e6, frame["y"]))
    assert (arranged(task, late).history["y"].to_numpy().reshape(5, 60)[:, :40] == found[:, :40]).all()


def test_a_scale_that_knows_what_is_forecast_is_refused() -> None:
    prepare(changed(scaling=Scaling(rows=53)))
    with pytest.raises(ParameterError, match="at most the 53 rows before the first cutoff"):
        prepare(changed(scaling=Scaling(rows=54)))


def test_constant_series_are_not_divided_by_nothing() -> None:
    frame = rows_of(MADE).assign(y=4.0)
    assert (arranged(changed(scaling=Scaling(rows=40)), frame).history["y"] == 0).all()


def test_slices_are_drawn_by_seed_and_named_by_ids() -> None:
    def ids(part: Slice) -> list[str]:
        return list(dict.fromkeys(prepare(changed(part=part)).history["unique_id"]))

    assert ids(Slice(series=2, seed=1)) == ids(Slice(series=2, seed=1))
    assert len({tuple(ids(Slice(series=2, seed=seed))) for seed in range(9)}) > 1
    assert ids(Slice(ids=("s1", "s3"))) == ["s1", "s3"]
    assert prepare(changed(part=Slice(last=20))).panel.lengths.tolist() == [20] * 5
    with pytest.raises(ParameterError, match="there is no s9"):
        prepare(changed(part=Slice(ids=("s9",))))


def test_fewer_series_are_said() -> None:
    assert limited(MADE, 5) == (MADE, "")
    task, words = limited(MADE, 2)
    assert words == "made: 2 of 5 series"
    assert len(prepare(task).panel) == 2
    assert limited(Task(dataset="fertility"), 10)[1] == "fertility: 10 of 201 series"
    assert limited(Task(dataset="fertility", part=Slice(series=5)), 10)[1] == ""


def test_samples_are_spread_and_the_same_for_all() -> None:
    found = prepare(MADE)
    assert sampled(found, 3) == ["s0", "s2", "s4"]
    assert sampled(found, 99) == ["s0", "s1", "s2", "s3", "s4"]
    assert sampled(found, 0) == []
    assert set(last_rows(found, ["s2"])["unique_id"]) == {"s2"}


def test_a_task_without_a_horizon_is_refused() -> None:
    with pytest.raises(ParameterError, match="has a horizon"):
        prepare(changed(horizon=None))


def test_windows_that_a_series_is_too_short_for_are_refused_with_task_series_and_rows() -> None:
    with pytest.raises(DataError, match=r"made: .*horizon=60 .*needs 1 value .*60 rows after that; series s.* rows"):
        prepare(changed(horizon=60))
