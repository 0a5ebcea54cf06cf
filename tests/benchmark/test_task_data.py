from __future__ import annotations

import numpy as np
import pytest

from deepforecast import datasets
from deepforecast.benchmark.suite import Scaling, Slice, Task, Windows
from deepforecast.benchmark.task_data import limit_series, load_frame, plot_history, prepare_frame, prepare_task, sample_ids
from deepforecast.errors import DataError, ParameterError

MADE = Task(task="made", generate={"n_series": 5, "length": 60, "freq": "D", "seed": 3}, horizon=7)


def changed(**fields: object) -> Task:
    from dataclasses import replace

    return replace(MADE, **fields)  # type: ignore[arg-type]


def test_horizon_season_and_roles_are_those_of_the_card() -> None:
    found = prepare_task(Task(dataset="macrodata"))
    assert (found.plan.horizon, found.season_length) == (8, 4)
    assert found.columns["past"] == datasets.card("macrodata").past
    assert prepare_task(Task(dataset="macrodata", columns="none", horizon=2)).panel.covariates == {}


def test_windows_within_test_rows_drop_none_and_leave_none_over() -> None:
    found = prepare_task(changed(windows=Windows(test=20, step=1)))
    assert (found.plan.n_windows, found.plan.step) == (20 - 7 + 1, 1)
    assert prepare_task(changed(windows=Windows(test=21, step=7))).plan.n_windows == 3
    with pytest.raises(ParameterError, match=r"windows\.test must be at least the horizon 7, got 5"):
        prepare_task(changed(windows=Windows(test=5)))


def test_the_scale_is_of_the_first_rows_alone() -> None:
    task = changed(scaling=Scaling(rows=40))
    frame = load_frame(task)
    found = prepare_frame(task, frame).history["y"].to_numpy().reshape(5, 60)
    assert found[:, :40].mean(axis=1) == pytest.approx(np.zeros(5), abs=1e-12)
    assert found[:, :40].std(axis=1) == pytest.approx(np.ones(5))
    late = frame.assign(y=np.where(np.arange(300) % 60 >= 40, 1e6, frame["y"]))
    assert (prepare_frame(task, late).history["y"].to_numpy().reshape(5, 60)[:, :40] == found[:, :40]).all()


def test_a_scale_that_knows_what_is_forecast_is_refused() -> None:
    prepare_task(changed(scaling=Scaling(rows=53)))
    with pytest.raises(ParameterError, match="at most the 53 rows before the first cutoff"):
        prepare_task(changed(scaling=Scaling(rows=54)))


def test_constant_series_are_not_divided_by_nothing() -> None:
    frame = load_frame(MADE).assign(y=4.0)
    assert (prepare_frame(changed(scaling=Scaling(rows=40)), frame).history["y"] == 0).all()


def test_slices_are_drawn_by_seed_and_named_by_ids() -> None:
    def ids(part: Slice) -> list[str]:
        return list(dict.fromkeys(prepare_task(changed(part=part)).history["unique_id"]))

    assert ids(Slice(series=2, seed=1)) == ids(Slice(series=2, seed=1))
    assert len({tuple(ids(Slice(series=2, seed=seed))) for seed in range(9)}) > 1
    assert ids(Slice(ids=("s1", "s3"))) == ["s1", "s3"]
    assert prepare_task(changed(part=Slice(last=20))).panel.lengths.tolist() == [20] * 5
    with pytest.raises(ParameterError, match="must be ids of its series, got s9"):
        prepare_task(changed(part=Slice(ids=("s9",))))


def test_fewer_series_are_said() -> None:
    assert limit_series(MADE, 5) == (MADE, "")
    task, words = limit_series(MADE, 2)
    assert words == "made: 2 of 5 series"
    assert len(prepare_task(task).panel) == 2
    assert limit_series(Task(dataset="fertility"), 10)[1] == "fertility: 10 of 201 series"
    assert limit_series(Task(dataset="fertility", part=Slice(series=5)), 10)[1] == ""


def test_samples_are_spread_and_the_same_for_all() -> None:
    found = prepare_task(MADE)
    assert sample_ids(found, 3) == ["s0", "s2", "s4"]
    assert sample_ids(found, 99) == ["s0", "s1", "s2", "s3", "s4"]
    assert sample_ids(found, 0) == []
    assert set(plot_history(found, ["s2"])["unique_id"]) == {"s2"}


def test_a_task_without_a_horizon_is_refused() -> None:
    with pytest.raises(ParameterError, match="must have a horizon"):
        prepare_task(changed(horizon=None))


def test_windows_that_a_series_is_too_short_for_are_refused_with_task_series_and_rows() -> None:
    with pytest.raises(DataError, match=r"made: n_windows=1 with horizon=60 \(step 60, gap 0\) requires 1 value f"):
        prepare_task(changed(horizon=60))
