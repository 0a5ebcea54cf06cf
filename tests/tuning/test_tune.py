from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sqlalchemy.exc import OperationalError

from deepforecast import (
    LSTM,
    MLP,
    BacktestOptions,
    LinearModel,
    SeasonalNaive,
    TuningOptions,
    WindowMean,
    compare,
    datasets,
    param,
    tune,
)
from deepforecast.core import backtest
from deepforecast.errors import (
    CapabilityError,
    DataError,
    DependencyError,
    ParameterError,
    ParameterTypeError,
    SaveError,
    TrainingError,
    TrainingWarning,
)
from deepforecast.tuning import objective, samplers, trial_recovery
from deepforecast.tuning.journal import Journal
from deepforecast.tuning.samplers import QuantilePruner, make_sampler
from deepforecast.tuning.storage import open_storage, silence_optuna
from tests.clock import stopped
from tests.tuning.bent import Bent

STATES = ["complete", "pruned", "failed"]


def searched(model, frame, n_trials=12, **said):
    options = said.pop("options", TuningOptions(n_windows=2, pruner=None))
    return tune(model, frame, n_trials=n_trials, horizon=said.pop("horizon", 3), options=options, **said)


def test_the_first_trial_is_the_model_as_it_is_and_scores_what_compare_says(frame):
    model = Bent(away=2.0, horizon=3)
    found = searched(model, frame, metric="mae", options=TuningOptions(n_windows=3, space={"away": (-4.0, 4.0)}))
    board = compare([model], frame, n_windows=3, metrics="mae")
    first = found.trials.iloc[0]
    assert (first["start"], first["state"]) == ("default", "complete")
    assert first["mae"] == board.table["mae"][0]
    assert found.best_value <= first["mae"]
    assert abs(found.best_params["away"]) < 2
    assert found.best_model == model.clone(**found.best_params)
    assert "state_" not in vars(found.best_model)
    assert len(found.best_model.fit(frame).predict()) == 9


def test_the_trials_frame_has_every_trial(frame):
    found = searched(Bent(), frame, 15)
    assert found.trials["number"].tolist() == list(range(15))
    assert set(found.trials["state"]) == {"complete"}
    assert (found.trials["steps"] == 200).all()
    assert (found.trials["seconds"] >= 0).all()
    assert not [name for name in found.trials if "seed" in name]
    assert found.trials["inner"].notna().tolist() == (found.trials["kind"] == "b").tolist()


def test_a_parameter_has_its_column_whatever_it_is_called(frame):
    found = searched(LinearModel(), frame, 8)
    assert found.trials.columns.is_unique
    # One of its parameters: a choice of None is no missing value.
    assert set(found.trials["lag_transforms"]) == {
        "auto",
        "None",
    }
    assert found.trials.loc[0, ["lags", "lag_transforms", "strategy"]].tolist() == ["auto", "auto", "recursive"]
    assert [one for one in found.plot("parallel").data[0]["dimensions"] if one["label"] == "lag_transforms"]
    own = searched(Timed(), frame, 3)
    assert own.trials.columns.is_unique
    assert own.trials["Timed.seconds"].tolist()[0] == 1.0


class Timed(Bent):
    """A parameter as a column of the frame is called."""

    seconds: float = param(default=1.0, low=0.0, high=2.0, help="of nothing")


def test_the_same_seed_searches_the_same(frame):
    one, same, other = (searched(Bent(), frame, options=TuningOptions(seed=seed, n_windows=2)) for seed in (3, 3, 4))
    columns = [name for name in one.trials if name != "seconds"]
    pd.testing.assert_frame_equal(one.trials[columns], same.trials[columns])
    assert one.trials["away"].tolist() != other.trials["away"].tolist()


def test_nothing_after_the_windows_is_seen_and_nothing_held_out(frame):
    changed = frame.copy()
    changed.loc[changed.groupby("unique_id").cumcount() >= 54, "y"] *= -37  # the two windows held out
    options = TuningOptions(n_windows=2, holdout=2)
    one, other = searched(Bent(), frame, options=options), searched(Bent(), changed, options=options)
    columns = [name for name in one.trials if name != "seconds"]
    pd.testing.assert_frame_equal(one.trials[columns], other.trials[columns])
    assert one.holdout["held_out"].tolist() != other.holdout["held_out"].tolist()
    assert one.holdout["search"].tolist() == other.holdout["search"].tolist()


def test_what_is_held_out_is_scored_apart(frame):
    found = searched(
        Bent(away=3.0), frame, metric="mae", options=TuningOptions(n_windows=2, holdout=1, space={"away": (-4.0, 4.0)})
    )
    board = compare([Bent(away=3.0), found.best_model.clone(alias="best")], frame, horizon=3, n_windows=1, metrics="mae")
    expected = board.table.set_index("model")["mae"]
    assert found.holdout["held_out"].tolist() == [expected["Bent"], expected["best"]]
    assert found.holdout["search"].tolist() == [found.trials["mae"][0], found.best_value]
    best = found.holdout.iloc[1]
    assert best["optimism"] == pytest.approx(best["gain"] - best["gain_held_out"])


def test_several_models_are_searched_as_one(frame):
    found = searched([Bent(away=3.0), WindowMean(), SeasonalNaive()], frame, 15)
    assert found.trials["model"].tolist()[:3] == ["Bent", "WindowMean", "SeasonalNaive"]
    assert set(found.trials["model"]) == {"Bent", "WindowMean", "SeasonalNaive"}
    assert found.best_params["model"] == found.best_model.name
    assert found.trials["WindowMean.window"].notna().sum() > 0


def test_several_models_are_searched_apart(frame):
    found = searched([Bent(away=3.0), WindowMean()], frame, 9, options=TuningOptions(n_windows=2, separate_studies=True))
    assert found.trials["model"].value_counts().to_dict() == {"Bent": 5, "WindowMean": 4}
    assert found.best_value == found.trials["mase"].min()
    assert found.plot().data[0].x.tolist() == sorted({*found.plot().data[0].x})  # one study after the other
    with pytest.raises(ParameterError, match=r"at least the number of models \(2\)"):
        searched([Bent(), WindowMean()], frame, 1, options=TuningOptions(n_windows=2, separate_studies=True))


APART = TuningOptions(n_windows=1, pruner=None, separate_studies=True)


def test_a_model_with_nothing_to_search_has_one_trial_apart(frame):
    found = searched([SeasonalNaive(), Bent(), WindowMean()], frame, 8, options=APART)
    assert found.trials["model"].value_counts().to_dict() == {"Bent": 4, "WindowMean": 3, "SeasonalNaive": 1}


def test_what_is_searched_apart_knows_its_models(frame):
    start = [{"model": "Bent", "away": 0.0}, searched(WindowMean(), frame, 4)]
    found = searched([Bent(), WindowMean()], frame, 8, options=replace(APART, initial_params=start))
    begun = found.trials[found.trials["start"] != ""].groupby("model")["start"].agg(list).to_dict()
    assert begun["Bent"] == ["default", "start 1"]
    assert begun["WindowMean"][:2] == ["default", "start 1"]
    for wrong in (
        {"space": {"Bnet": {"away": (0.0, 1.0)}}},
        {"space": {"away": (0.0, 1.0)}},
        {"initial_params": {"away": 0.0}},
    ):
        with pytest.raises(ParameterError, match="With several models"):
            searched([Bent(), WindowMean()], frame, 8, options=replace(APART, **wrong))


def test_a_study_that_comes_to_nothing_is_left_out(frame):
    with pytest.warns(TrainingWarning, match=r"study of Odd failed.*it broke"):
        found = searched([Bent(fault="raise", alias="Odd"), Bent()], frame, 6, options=APART)
    assert set(found.trials["model"]) == {"Bent"}
    with pytest.warns(TrainingWarning), pytest.raises(TrainingError, match="it broke"):
        searched([Bent(fault="raise", alias="Odd"), Bent(fault="raise")], frame, 6, options=APART)


@pytest.mark.parametrize("fault", ["some-interrupt", "interrupt"])
def test_ctrl_c_ends_all_studies(frame, fault):
    models = [Bent(), Bent(fault=fault, alias="Odd"), WindowMean()]
    with pytest.warns(TrainingWarning, match="interrupted"):
        found = searched(models, frame, 30, options=APART)
    assert set(found.trials["model"]) == ({"Bent"} if fault == "interrupt" else {"Bent", "Odd"})


def test_accuracy_against_seconds(frame):
    found = searched(
        Bent(), frame, 10, metric=["mae", "seconds"], options=TuningOptions(n_windows=1, space={"kind": ["a", "b"]})
    )
    assert found.trials["copy_of"].notna().any()
    front = found.pareto
    assert front["mae"].is_monotonic_increasing
    assert front["seconds"].is_monotonic_decreasing
    assert found.best_value == front["mae"][0]
    assert (found.trials["seconds"] == [one.values[1] for one in found.study.trials]).all()  # of copies, what they are of
    assert set(found.trials["state"]) == {"complete"}
    assert len(found.plot("pareto").data) >= 1


def test_what_is_loaded_and_compiled_first_is_no_trials_time(frame, tmp_path):
    class Loading(Bent):
        warm_up_params: ClassVar = {}

    mark = tmp_path / "marks"
    model = Loading(fault=f"slow-once:{mark}")
    found = searched(model, frame, 3, metric="mae", options=TuningOptions(n_windows=1))
    assert mark.exists()
    assert (found.trials["seconds"] < 0.9).all()


def test_several_seeds_make_one_trial(frame):
    found = searched(
        Bent(away=0.0), frame, 2, metric="mae", options=TuningOptions(n_windows=2, n_seeds=3, space={"width": [8, 9]})
    )
    each = [
        searched(Bent(away=0.0, seed=seed), frame, 1, metric="mae", options=TuningOptions(n_windows=2, space={"width": [8]}))
        for seed in range(3)
    ]
    assert found.trials["mae"][0] == pytest.approx(np.mean([one.best_value for one in each]))
    assert found.best_model.seed == 0


def test_metrics_of_intervals_and_quantiles(frame):
    for metric in ("winkler-80", "coverage-90", "weighted_quantile_loss"):
        found = searched(
            SeasonalNaive(), frame, 2, metric=metric, options=TuningOptions(n_windows=1, space={"season_length": [1, 7]})
        )
        assert np.isfinite(found.best_value)


def test_own_metrics_and_libraries(frame):
    def worst(actual, forecast):
        return float(np.abs(actual - forecast).max())

    found = searched(Bent(), pl.from_pandas(frame), 4, metric=worst)
    assert np.isfinite(found.trials["worst"]).all()


def test_known_configurations_come_first(frame):
    before = searched(Bent(), frame, 8)
    found = searched(Bent(), frame, 5, options=TuningOptions(n_windows=2, initial_params=[{"away": 0.25, "kind": "b"}, before]))
    assert found.trials["start"].tolist()[:4] == ["default", "start 1", "start 2", "start 3"]
    assert found.trials["away"].tolist()[:3] == [1.0, 0.25, before.best_params["away"]]
    assert found.best_value <= before.best_value


def test_the_same_configuration_is_not_tried_twice(frame, tmp_path):
    mark = tmp_path / "marks"
    found = searched(Bent(mark=str(mark)), frame, 20, options=TuningOptions(n_windows=1, space={"kind": ["a", "b"]}))
    assert len(mark.read_text().splitlines()) == 2
    assert found.trials["copy_of"].notna().sum() == 18
    assert set(found.trials["state"]) == {"complete"}


def test_a_grid_ends_when_all_is_tried(frame):
    space = {"away": [0.0, 1.0, 2.0], "kind": ["a", "b"]}
    found = searched(Bent(), frame, 50, options=TuningOptions(n_windows=1, space=space, sampler="grid"))
    assert len(found.trials.drop_duplicates(["away", "kind"])) == 6
    assert len(found.trials) <= 8
    assert found.best_value == found.trials["mase"].min()
    assert set(found.best_params) == {"away", "kind"}


def test_a_grid_of_one_beside_what_is_given(frame):
    found = searched(
        Bent(), frame, 9, options=TuningOptions(n_windows=1, space={"width": [9]}, sampler="grid", initial_params={"away": 2.0})
    )
    assert found.trials["width"].tolist() == [8, 8, 9]
    assert set(found.trials["state"]) == {"complete"}


@pytest.mark.parametrize("sampler", ["tpe", "random", "sobol", "gp", optuna.samplers.RandomSampler(seed=1)])
def test_samplers(frame, sampler):
    found = searched(Bent(), frame, 13, options=TuningOptions(n_windows=1, sampler=sampler))
    assert len(found.trials) == 13
    assert found.trials["away"].nunique() > 8


@pytest.mark.parametrize("sampler", ["gp", "sobol", "cma"])
def test_a_model_that_lies_in_no_range_keeps_no_sampler_from_its_work(frame, sampler):
    options = TuningOptions(n_windows=1, sampler=sampler, space={"away": (-4.0, 4.0)})
    found = searched(Bent(away=9.0), frame, 13, options=options)
    assert found.trials["away"].is_unique
    own = make_sampler(options, found.space, 99, False)
    trial = found.study.ask()
    with silence_optuna():
        space = own.infer_relative_search_space(found.study, trial)
        assert set(space) == {"away"}
        assert -4 <= own.sample_relative(found.study, trial._get_latest_trial(), space)["away"] <= 4


def test_points_of_a_sequence_are_spread_evenly_and_go_on_on_resume(frame, tmp_path):
    said = {"options": TuningOptions(n_windows=1, sampler="sobol", space={"away": (-4.0, 4.0), "kind": ["a", "b"]})}
    searched(Bent(away=9.0), frame, 7, storage=tmp_path / "study.log", **said)
    parts = searched(Bent(away=9.0), frame, 34, storage=tmp_path / "study.log", **said)
    whole = searched(Bent(away=9.0), frame, 34, **said)
    assert parts.trials["away"].tolist() == whole.trials["away"].tolist()
    assert whole.trials["away"].is_unique
    assert set(np.histogram(whole.trials["away"][2:34], bins=8, range=(-4, 4))[0]) <= {3, 4, 5}
    assert set(whole.trials["kind"]) == {"a", "b"}


def test_a_sampler_that_needs_a_package_says_so(frame, monkeypatch):
    monkeypatch.setattr(samplers, "find_spec", lambda name: None)
    with pytest.raises(DependencyError, match="pip install cmaes"):
        searched(Bent(), frame, 3, options=TuningOptions(sampler="cma"))


def test_a_sampler_that_would_read_pickles_takes_no_storage(frame, tmp_path):
    with pytest.raises(ParameterError, match="pickle"):
        searched(Bent(), frame, 3, storage=tmp_path / "study.log", options=TuningOptions(sampler="cma"))
    assert not (tmp_path / "study.log").exists()


def test_cma(frame):
    space = {"away": (-4.0, 4.0), "inner": (0.0, 1.0)}
    found = searched(Bent(), frame, 12, options=TuningOptions(n_windows=1, sampler="cma", space=space))
    assert found.trials["away"].nunique() > 9


def test_a_bar_shows_the_best_so_far(frame, capfd):
    searched(Bent(), frame, 6, options=TuningOptions(n_windows=1, progress=True))
    said = capfd.readouterr().err
    assert "trials: 100%" in said
    assert "best 0." in said or "best 1." in said


# -- ending early --------------------------------------------------------------------------------------------------------------


def test_bad_trials_of_any_family_end_early(frame, tmp_path):
    mark = tmp_path / "marks"
    options = TuningOptions(n_windows=4, space={"away": (-4.0, 4.0)})
    found = searched(Bent(away=0.5, mark=str(mark)), frame, 30, options=options)
    ended = found.trials[found.trials["state"] == "pruned"]
    assert len(ended) > 5
    assert (ended["steps"] < 400).all()
    assert ended["reason"].str.contains("worse than other trials").all()
    assert len(mark.read_text().splitlines()) == found.trials["steps"].sum() / 100
    done = found.trials[found.trials["state"] == "complete"]
    assert ended["away"].abs().median() > done["away"].abs().median()


def test_no_trial_is_ended_when_all_is_fitted(frame):
    space = {"lags": [1, 2, 3, 5, 7, 9], "ridge": {"low": 1e-6, "high": 1e6, "log": True}}
    once, often = (
        searched(LinearModel(), frame, 20, options=TuningOptions(n_windows=4, space=space, refit=refit))
        for refit in ("auto", 2)
    )
    assert set(once.trials["state"]) == {"complete"}
    assert set(often.trials.loc[often.trials["state"] == "pruned", "steps"]) <= {100, 200}
    assert "pruned" in set(often.trials["state"])


def test_networks_end_early_within_a_window_by_their_forecasts():
    frame = datasets.generate(4, 90, seed=2)
    small = LSTM(horizon=7, hidden_size=4, decoder_size=8, max_steps=40, input_size=14, n_layers=2, dropout=0.3)
    options = TuningOptions(n_windows=1, space={"learning_rate": {"low": 1e-6, "high": 3e-2, "log": True}}, pruner="median")
    found = tune(small, frame, n_trials=14, options=options)
    ended = found.trials[found.trials["state"] == "pruned"]
    assert len(ended) > 0
    assert (ended["steps"] < 100).all()
    assert set(ended["steps"]) <= {12, 25, 50}
    alone = compare([small], frame, n_windows=1)
    assert found.trials["mase"][0] == alone.table["mase"][0]  # to be looked at changes nothing


def test_a_look_is_at_some_of_many_series_and_what_it_ends_is_not_forecast(monkeypatch):
    looked, ended = [], []
    kept = objective.forecast_window

    def seen(model, panel, window, state, gap, horizon):
        fold = kept(model, panel, window, state, gap, horizon)
        looked.append(window.series.tolist())
        assert fold.has_row.shape == (32, 5)
        return fold

    monkeypatch.setattr(objective, "forecast_window", seen)
    monkeypatch.setattr(backtest, "forecast_window", lambda *given, **named: ended.append(given) or kept(*given, **named))
    frame = datasets.generate(50, 60, seed=2)
    small = MLP(horizon=5, hidden_sizes=[4], max_steps=40, input_size=10, batch_size=8)
    options = TuningOptions(n_windows=1, space={"learning_rate": {"low": 1e-7, "high": 1e-2, "log": True}})
    found = tune(small, frame, n_trials=9, options=options)
    counts = found.trials["state"].value_counts()
    assert {len(one) for one in looked} == {32}
    assert len(set(map(tuple, looked))) == 1
    assert counts["pruned"] > 0
    assert sum(model.max_steps > 1 for model, *_ in ended) == counts["complete"]  # not those of the warm-up


def test_a_look_at_few_series_is_at_several_windows_of_the_fit(monkeypatch):
    looked = []
    kept = objective.forecast_window
    monkeypatch.setattr(
        objective, "forecast_window", lambda *given, **named: looked.append(given[2].number) or kept(*given, **named)
    )
    frame = datasets.generate(2, 120, seed=2)
    small = MLP(horizon=5, hidden_sizes=[4], max_steps=40, input_size=10, batch_size=8)
    space = {"learning_rate": {"low": 1e-7, "high": 1e-2, "log": True}}
    once, often = (TuningOptions(n_windows=6, space=space, refit=refit) for refit in ("auto", 3))
    first = tune(small, frame, n_trials=1, options=once).trials["mase"][0]
    assert looked == [0, 1, 2, 3, 4, 5] * (len(looked) // 6) != []
    assert first == compare([small], frame, n_windows=6).table["mase"][0]
    looked.clear()
    tune(small, frame, n_trials=1, options=often)
    turns = len(looked) // 6
    assert looked == [0, 1, 2] * turns + [3, 4, 5] * turns != []


@pytest.mark.parametrize(("step", "share"), [(12, 2 / 3), (25, 1 / 2), (50, 1 / 3), (100, 1 / 2), (250, 1 / 3)])
def test_the_further_a_trial_is_the_better_it_has_to_be(step, share):
    study = optuna.create_study()
    for value in range(1, 10):
        values = {} if value == 9 else {step: float(value), step + 1: 0.0}
        study.add_trial(optuna.create_trial(value=0.0, intermediate_values=values))
    ends = []
    for value in np.linspace(0.5, 9.5, 91):
        running = optuna.create_trial(state=TrialState.RUNNING, intermediate_values={step - 1: 0.0, step: float(value)})
        ends.append(QuantilePruner().prune(study, running))
    assert ends == [value > 1 + 7 * share for value in np.linspace(0.5, 9.5, 91)]
    few = optuna.create_study()
    few.add_trials(study.trials[:2])
    assert not QuantilePruner().prune(few, running)
    assert not QuantilePruner().prune(study, optuna.create_trial(state=TrialState.RUNNING))  # it has not said anything yet


def test_the_space_knows_the_season_and_the_length_of_the_data(frame):
    found = searched(LinearModel(), frame, 1, horizon=3)
    assert found.space.ranges[0]["lags"].search == ("auto", 7, 14)  # of 54 days before the first window


def test_what_was_given_is_never_ended_early(frame):
    starts = [{"away": 3.0 + place / 20} for place in range(15)]
    options = TuningOptions(n_windows=3, initial_params=starts, space={"away": (-4.0, 4.0)})
    found = searched(Bent(away=0.0), frame, 16, options=options)
    assert set(found.trials["state"]) == {"complete"}


def test_the_frame_is_left_as_it_was(frame):
    before = frame.copy()
    searched(Bent(), frame, 2, options=TuningOptions(n_windows=2, holdout=1))
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("pruner", ["hyperband", "wilcoxon", optuna.pruners.PercentilePruner(20.0, n_startup_trials=2)])
def test_pruners(frame, pruner):
    options = TuningOptions(n_windows=6, space={"away": (-4.0, 4.0)}, pruner=pruner)
    found = searched(Bent(away=0.0), frame, 25, options=options)
    ended = found.trials[found.trials["state"] == "pruned"]
    assert len(ended) > 2
    assert ended["steps"].between(100, 500).all()
    assert (ended["steps"] % 100 == 0).all()
    assert found.best_params.get("away", 0.0) == pytest.approx(0.0, abs=1.0)


def test_with_several_objectives_none_ends_early_and_it_is_said(frame):
    with pytest.warns(UserWarning, match="cannot be pruned"):
        found = searched(Bent(), frame, 9, metric=["mae", "rmse"], options=TuningOptions(n_windows=2, pruner="hyperband"))
    assert set(found.trials["state"]) == {"complete"}


# -- what goes wrong -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("some-raise", "RuntimeError: it broke at -"),
        ("some-memory", "MemoryError"),
        ("some-device", "CUDA out of memory"),
        ("some-mute", "cannot be read"),
    ],
)
def test_a_trial_that_fails_is_a_row_with_its_reason(frame, fault, words):
    with pytest.warns(TrainingWarning, match="trials failed"):
        found = searched(Bent(fault=fault), frame, 5)
    failed = found.trials[found.trials["state"] == "failed"]
    assert len(found.trials) == 5
    assert len(failed) == (found.trials["away"] < 0).sum() > 0
    assert failed["reason"].str.contains(words).all()


def test_a_score_that_is_no_number_is_a_failure(frame):
    lasts = {tuple(own["y"].to_numpy()[-3:]): own["y"].to_numpy()[-4] for _, own in frame.groupby("unique_id")}

    def odd(actual, forecast):
        away = forecast[0] - lasts.get(tuple(actual), 0.0)
        return float("nan") if away > 0 else float(np.abs(actual - forecast).mean())

    options = TuningOptions(n_windows=1, pruner=None, space={"away": (-4.0, 4.0)})
    with pytest.warns(TrainingWarning, match="trials failed"):
        found = searched(Bent(away=-2.0), frame, 12, metric=odd, options=options)
    assert (
        found.trials["reason"].str.contains("The score of a trial must be finite").sum()
        == (found.trials["state"] == "failed").sum()
        > 0
    )


def test_a_configuration_that_is_refused_is_pruned_with_its_reason(frame):
    with pytest.warns(
        TrainingWarning, match="trials had invalid parameters. The first reason: ParameterError: away is not to be"
    ):
        found = searched(Bent(fault="some-refuse"), frame, 12)
    refused = found.trials[found.trials["away"] < 0]
    assert set(refused["state"]) == {"pruned"}
    assert refused["reason"].str.contains("away is not to be").all()


def test_if_every_trial_fails_the_last_cause_is_chained(frame):
    with pytest.raises(TrainingError, match=r"all 4 trials failed.*it broke at") as caught:
        searched(Bent(fault="raise"), frame, 4)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_trial_that_takes_too_long_is_ended(frame, monkeypatch):
    stopped(monkeypatch)
    options = TuningOptions(n_windows=3, trial_timeout=0.8, pruner=None)
    found = searched(Bent(fault="some-sleep:0.5"), frame, 5, options=options)
    slow = found.trials[found.trials["away"] < 0]
    assert len(slow) > 0
    assert set(slow["state"]) == {"pruned"}
    assert slow["reason"].str.contains("exceeded its time limit").all()
    assert set(found.trials[found.trials["away"] >= 0]["state"]) == {"complete"}


def test_a_timeout_gives_what_there_is_and_the_next_call_goes_on(frame, tmp_path, monkeypatch):
    stopped(monkeypatch)
    said = {"storage": tmp_path / "study.log", "options": TuningOptions(n_windows=1, pruner=None)}
    model = Bent(fault="sleep:0.05")
    with pytest.warns(TrainingWarning, match="timeout"):
        found = searched(model, frame, 60, timeout=1.5, **said)
    assert 0 < len(found.trials) < 60
    assert set(found.trials["state"]) == {"complete"}
    again = searched(model, frame, len(found.trials) + 2, **said)
    assert len(again.trials) == len(found.trials) + 2


def test_ctrl_c_gives_what_there_is_and_the_next_call_goes_on(frame, tmp_path):
    said = {"storage": str(tmp_path / "study.log"), "options": TuningOptions(n_windows=1, pruner=None)}
    with pytest.warns(TrainingWarning, match="interrupted after"):
        found = searched(Bent(fault="some-interrupt"), frame, 20, **said)
    assert set(found.trials["state"]) == {"complete"}
    assert not found.study.get_trials(states=(optuna.trial.TrialState.RUNNING,))
    waiting = found.study.get_trials(states=(optuna.trial.TrialState.WAITING,))
    assert len(waiting) == 1
    assert waiting[0].system_attrs["fixed_params"]["away"] < 0


def test_the_same_line_resumes_to_the_total(frame, tmp_path):
    said = {"storage": str(tmp_path / "study.log")}
    one = searched(Bent(), frame, 6, **said)
    two = searched(Bent(), frame, 10, **said)
    assert len(one.trials) == 6
    assert len(two.trials) == 10
    pd.testing.assert_frame_equal(one.trials, two.trials[:6])
    assert len(searched(Bent(), frame, 10, **said).trials) == 10
    whole = searched(Bent(), frame, 10)
    assert whole.trials["away"].tolist() == two.trials["away"].tolist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"frame": 1}, r"other data.*values [\w-]+, and this call has values [\w-]+\. Pass"),
        ({"columns": {"future": ["sale"]}}, r"other data.*columns .*future=\('sale',\)"),
        ({"horizon": 4}, "other windows.*horizon 3.*and this call has horizon 4"),
        ({"options": TuningOptions(n_windows=2, holdout=1)}, "other windows.*holdout 0, and this call has holdout 1"),
        ({"metric": "rmse"}, "other metrics.*mase.*rmse"),
        ({"options": TuningOptions(n_windows=3, pruner=None)}, "other windows.*2.*3"),
        ({"options": TuningOptions(n_windows=2, space={"away": (0.0, 1.0)})}, "other ranges"),
        ({"options": TuningOptions(n_windows=2, n_seeds=2)}, "other seeds"),
        ({"model": Bent(away=2.0)}, "other models"),
    ],
)
def test_a_study_about_something_else_is_refused(frame, tmp_path, change, words):
    said = {"storage": str(tmp_path / "study.log"), "study_name": "mine"}
    searched(Bent(), frame, 2, **said)
    change = dict(change)
    other = frame.assign(y=frame["y"] + 1) if change.pop("frame", None) else frame
    other = other.assign(sale=1.0) if "columns" in change else other
    model = change.pop("model", Bent())
    with pytest.raises(ParameterError, match=words):
        searched(model, other, 4, **{**said, **change})
    assert len(searched(Bent(), frame, 4, **said).trials) == 4


def test_a_storage_that_goes_away_is_said_with_the_best_so_far(frame, tmp_path):
    path = tmp_path / "study.log"

    def vanishing(actual, forecast):
        if not calls.pop():
            path.unlink()
        return float(np.abs(actual - forecast).mean())

    calls = [False, *[True] * 30]
    with pytest.raises(SaveError, match=r"can no longer be read or written.*Best so far"):
        searched(Bent(), frame, 20, metric=vanishing, storage=path, options=TuningOptions(n_windows=1, pruner=None))
    assert not path.exists()


ALL = ("set_trial_user_attr", "set_trial_state_values", "_set_trial_param", "create_new_trial")


@pytest.mark.parametrize(
    ("name", "kind", "methods"),
    [("study.log", Journal, ["append_logs"]), ("study.db", RDBStorage, ALL), ("study.db", RDBStorage, ALL[:1]),
     ("study.db", RDBStorage, ALL[2:3])],
)  # fmt: skip
def test_a_storage_that_refuses_writes_is_said_and_the_same_call_goes_on(frame, tmp_path, monkeypatch, name, kind, methods):
    def closing(actual, forecast):
        if not calls.pop():
            for method in methods:
                broken.setattr(kind, method, denied)
        return float(np.abs(actual - forecast).mean())

    def denied(*given, **named):
        denied.times.append(1)
        if len(denied.times) > 30:  # it would go on for ever
            raise KeyboardInterrupt
        try:
            raise OperationalError("UPDATE", {}, Exception("read-only database"))
        except OperationalError as error:
            raise StorageInternalError("An exception is raised during the commit.") from error

    denied.times = []
    calls = [*[True] * 30, False, *[True] * 12]
    said = {"metric": closing, "storage": tmp_path / name, "options": TuningOptions(n_windows=1, pruner=None)}
    lost = r"(?i)\(OperationalError: .*read-only.*Best so far: \d"
    with monkeypatch.context() as broken, pytest.raises(SaveError, match=lost):
        searched(Bent(), frame, 12, **said)
    found = searched(Bent(), frame, 12, **said)
    assert found.trials["state"].tolist() == ["complete"] * 12
    assert (found.trials["attempt"] == 2).sum() == 1


@pytest.mark.parametrize("change", ["emptied", "replaced", "cut", "written"])
def test_a_journal_that_others_change_is_said(frame, tmp_path, change):
    path = tmp_path / "study.log"

    def changing(actual, forecast):
        if not calls.pop():
            text = path.read_text()
            if change == "replaced":
                path.rename(tmp_path / "old.log")
            path.write_text({"cut": text[: len(text) // 2], "written": text + "hello\n"}.get(change, ""))
        return float(np.abs(actual - forecast).mean())

    calls = [*[True] * 30, False, *[True] * 12]
    words = "truncated or overwritten" if change == "written" else "truncated or replaced"
    with pytest.raises(SaveError, match=words + r".*Best so far: \d"):
        searched(Bent(), frame, 20, metric=changing, storage=path, options=TuningOptions(n_windows=1, pruner=None))


def test_a_sampler_that_fails_is_not_taken_for_the_storage(frame):
    class Odd(optuna.samplers.RandomSampler):
        def before_trial(self, study, trial):
            raise RuntimeError("it does not draw")

    with pytest.raises(TrainingError, match=r"sampler.*RuntimeError: it does not draw"):
        searched(Bent(), frame, 3, options=TuningOptions(n_windows=1, sampler=Odd()))


def test_a_search_inside_another_of_the_same_name_is_none_of_its_business(frame, tmp_path):
    def nested(actual, forecast):
        if not inner:
            inner.append(searched(Bent(), frame, 2, study_name="mine", storage=tmp_path / "inner.log"))
            with silence_optuna():
                outer = optuna.load_study(study_name="mine", storage=open_storage(tmp_path / "outer.log"))
                assert trial_recovery.fail_dead_trials(outer, 1, 0.1) == 0
        return float(np.abs(actual - forecast).mean())

    inner = []
    found = searched(Bent(), frame, 4, metric=nested, study_name="mine", storage=tmp_path / "outer.log")
    assert set(found.trials["state"]) == set(inner[0].trials["state"]) == {"complete"}
    assert len(found.study.trials) == 4


def test_covariates_that_some_models_cannot_use(frame):
    given = frame.assign(price=np.arange(len(frame), dtype=float))
    models = [Bent(), LinearModel(lags=3, lag_transforms=None)]
    assert len(searched(models, given, 4, columns={"future": ["price"]}).trials) == 4
    with pytest.raises((CapabilityError, TrainingError), match="price"):
        searched(Bent(), given, 4, columns={"future": ["price"]})


# -- the result ----------------------------------------------------------------------------------------------------------------


def test_what_mattered(frame):
    found = searched(Bent(), frame, 30, options=TuningOptions(n_windows=1, pruner=None, sampler="random"))
    for by in ("fanova", "mean_decrease_impurity"):
        table = found.importance(by)
        assert table["parameter"][0] == "away"
        assert table["importance"].sum() == pytest.approx(1.0)
    with pytest.raises(ParameterError, match=r"at least 10 complete trials .* got \d trials? with"):
        searched(Bent(), frame, 2).importance()
    with pytest.raises(ParameterError, match="`by` must be one of fanova, mean_decrease_impurity, got 'ped_anova'"):
        found.importance("ped_anova")


def test_what_is_given_outside_its_range_leaves_no_parameter_out(frame):
    space = {"away": (-2.0, 2.0), "inner": (0.0, 1.0)}
    found = searched(Bent(away=3.0), frame, 20, options=TuningOptions(n_windows=1, pruner=None, space=space, sampler="random"))
    assert set(found.importance()["parameter"]) == {"away", "inner"}
    assert found.importance()["parameter"][0] == "away"


def test_pictures_keep_the_order_of_numbers(frame):
    options = TuningOptions(n_windows=1, pruner=None, space={"lags": ["auto", 28, 7, 14]}, sampler="grid")
    found = searched(LinearModel(), frame, 6, options=options)
    assert found.plot("slices").layout.xaxis.categoryarray == ("7", "14", "28", "auto")
    assert found.plot("parallel").data[0]["dimensions"][1]["ticktext"] == ("7", "14", "28", "auto")
    both = searched([Bent(), WindowMean()], frame, 12)
    assert both.plot("parallel").data[0]["dimensions"][1]["label"] == "model"


def test_pictures(frame):
    found = searched(Bent(), frame, 15, options=TuningOptions(n_windows=3, pruner=None))
    for kind in ("history", "importance", "slices", "parallel"):
        figure = found.plot(kind)
        assert json.loads(figure.to_json())["data"]
    with pytest.raises(ParameterError, match="`kind` must be"):
        found.plot("curve")
    with pytest.raises(ParameterError, match="requires several objectives"):
        found.plot("pareto")
    with pytest.raises(ParameterError, match="`objective` must be"):
        found.plot("history", objective="rmse")


def test_a_result_is_saved_and_gone_on_from(frame, tmp_path):
    path = tmp_path / "saved.log"
    found = searched(Bent(), frame, 5)
    found.save(path)
    again = searched(Bent(), frame, 8, storage=path)
    assert again.trials["away"].tolist()[:5] == found.trials["away"].tolist()
    with pytest.raises(SaveError, match="already exists"):
        found.save(path)
    with pytest.raises(SaveError, match="folder"):
        found.save(tmp_path / "no" / "file.log")
    with pytest.raises(SaveError, match=r"SQLite files. Pass another path, such as study\.log"):
        found.save(tmp_path / "study.db")


def test_the_repr_says_what_came_of_it(frame):
    text = repr(searched(Bent(away=3.0), frame, 3, options=TuningOptions(n_windows=1, space={"away": (-1.0, 1.0)})))
    assert text.startswith("TuningResult(Bent-h3: 3 trials (3 complete); best mase ")
    assert text.endswith("Its gain on unseen data is unknown. Set options=TuningOptions(holdout=1) to measure it.")


def test_print_states_the_gain_on_held_out_data(frame, capsys):
    found = searched(Bent(away=3.0), frame, 10, options=TuningOptions(n_windows=1, holdout=2, space={"away": (-1.0, 1.0)}))
    default, best = found.holdout["held_out"]
    print(found)
    assert capsys.readouterr().out.splitlines()[1] == (
        f"On holdout data its mase is {best:.4g}, {1 - best / default:.1%} lower than the {default:.4g} of the default "
        f"configuration; in the search it was {found.holdout['gain'][1]:.1%} lower than the default's."
    )
    table = found.holdout.assign(gain_held_out=[0.0, -0.052], error="")
    assert "5.2% higher than the " in repr(replace(found, holdout=table))
    assert "ValueError: no" in repr(replace(found, holdout=table.assign(error=["", "ValueError: no"])))
    assert "the same as the " in repr(replace(found, holdout=table.assign(gain_held_out=0.0)))


def test_print_says_that_the_default_configuration_is_the_best(frame):
    found = searched(Bent(away=0.0), frame, 1, options=TuningOptions(n_windows=1, holdout=1))
    score = found.holdout["held_out"][1]
    text = f"The best configuration is the default one. On holdout data its mase is {score:.4g}."
    assert repr(found).splitlines()[1] == text
    assert repr(replace(found, holdout=None)).splitlines()[1] == "The best configuration is the default one."
    assert "could not be measured: no" in repr(replace(found, holdout=found.holdout.assign(error=["", "no"])))


def test_models_searched_apart_have_an_importance_each(frame):
    space = {name: {"away": (-1.0, 1.0), "width": (1, 64)} for name in ("Bent", "B")}
    options = TuningOptions(n_windows=1, separate_studies=True, pruner=None, space=space)
    found = searched([Bent(away=3.0), Bent(away=2.0, alias="B")], frame, 24, options=options)
    for one in (found, *found.others):
        assert one.importance()["importance"].sum() == pytest.approx(1)


# -- what is refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ({"n_trials": 0}, ParameterError, "n_trials"),
        ({"n_trials": -1}, ParameterError, "n_trials"),
        ({"n_trials": 2.5}, ParameterError, "n_trials"),
        ({"timeout": 0}, ParameterError, "timeout"),
        ({"timeout": "1h"}, ParameterTypeError, "timeout"),
        ({"metric": "mse2"}, ParameterError, "mse2"),
        ({"metric": "seconds"}, ParameterError, "besides 'seconds'"),
        ({"metric": ["mase", "rmse", "mase"]}, ParameterError, "got mase repeatedly"),
        ({"storage": optuna.storages.InMemoryStorage(), "options": TuningOptions(n_jobs=2)}, ParameterError, "n_jobs=2 cannot"),
        ({"options": TuningOptions(space={"horizon": (1, 5)})}, ParameterError, "part of the task"),
        ({"options": TuningOptions(space={"alias": ["a", "b"]})}, ParameterError, "does not change forecasts"),
        ({"options": TuningOptions(initial_params={"seed": 3})}, ParameterError, "`initial_params` cannot contain 'seed'"),
        ({"options": TuningOptions(space={"away": (-1e308, 1e308)})}, ParameterError, "away"),
        ({"metric": "crps_from_samples"}, ParameterError, "sample paths"),
        ({"storage": "sqlite:////no/such/dir/x.db"}, ParameterError, "no/such/dir"),
        ({"storage": "foo://x"}, ParameterError, "foo://x"),
        ({"storage": "/no/such/dir/study.log"}, ParameterError, "no/such/dir"),
        ({"storage": 3}, ParameterTypeError, "storage"),
        ({"storage": "/tmp"}, ParameterError, "folder"),
        ({"study_name": ""}, ParameterError, "study_name"),
        ({"study_name": "x" * 501}, ParameterError, "1 to 500"),
        ({"options": {"n_windows": 2}}, ParameterTypeError, "TuningOptions"),
        ({"options": TuningOptions(n_windows=40)}, ParameterError, "n_windows=40"),
        ({"options": TuningOptions(holdout=40)}, ParameterError, "n_windows=40"),
        ({"options": TuningOptions(initial_params=[{"away": "x"}])}, ParameterTypeError, "away"),
        ({"options": TuningOptions(initial_params=[3])}, ParameterTypeError, "initial_params"),
        ({"options": TuningOptions(refit="often")}, ParameterError, "refit"),
        ({"horizon": 0}, ParameterError, "horizon"),
    ],
)  # fmt: skip
def test_what_is_refused_before_any_trial(frame, tmp_path, said, kind, words):
    mark = tmp_path / "marks"
    with pytest.raises(kind, match=words):
        tune(Bent(mark=str(mark)), frame, **{"n_trials": 3, "horizon": 3, **said})
    assert not mark.exists()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"n_windows": 0}, "n_windows"), ({"holdout": -1}, "holdout"), ({"n_seeds": 0}, "n_seeds"), ({"n_jobs": 0}, "n_jobs"),
        ({"sampler": "bayes"}, "sampler"), ({"sampler": optuna.samplers.TPESampler}, "sampler"), ({"pruner": "asha"}, "pruner"),
        ({"trial_timeout": -1}, "trial_timeout"), ({"trial_timeout": "long"}, "trial_timeout"),
        ({"heartbeat_timeout": None}, "heartbeat_timeout"),
        ({"space": 3}, "space"), ({"pruner": "wilcoxon"}, "wilcoxon"), ({"progress": "bar"}, "progress"),
        ({"seed": -1}, "seed"), ({"backtest": {}}, "BacktestOptions"),
    ],
)  # fmt: skip
def test_options_are_checked(said, words):
    with pytest.raises(ParameterError, match=words):
        TuningOptions(**said)


def test_models_and_frames_are_checked(frame):
    with pytest.raises(ParameterTypeError, match=r"Bent\(\)"):
        tune(Bent, frame, n_trials=3, horizon=3)
    with pytest.raises(ParameterError, match="empty"):
        tune([], frame, n_trials=3, horizon=3)
    with pytest.raises(ParameterError, match="horizon"):
        tune(Bent(), frame, n_trials=3)
    with pytest.raises(DataError):
        tune(Bent(), frame[:0], n_trials=3, horizon=3)
    with pytest.raises(ParameterError, match="SeasonalNaive must have at least one parameter to search"):
        searched(SeasonalNaive(), frame)


def test_a_file_of_something_else_is_no_storage(frame, tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("unique_id,ds,y\nA,2024-01-01,3\n")
    with pytest.raises(ParameterError, match="is a file of another kind"):
        searched(Bent(), frame, 3, storage=path)
    assert path.read_text() == "unique_id,ds,y\nA,2024-01-01,3\n"


@pytest.mark.slow
def test_a_study_of_somebody_else_is_refused(frame, tmp_path):
    path = str(tmp_path / "study.db")
    study = optuna.create_study(storage=f"sqlite:///{path}", study_name="theirs")
    study.add_trial(optuna.create_trial(value=1.0))
    with pytest.raises(ParameterError, match="was not created by"):
        searched(Bent(), frame, 3, storage=path, study_name="theirs")


def test_gaps_and_alignment_are_those_of_a_backtest(frame):
    short = frame[(frame["unique_id"] != "C") | (frame["ds"] < "2024-02-20")]
    options = TuningOptions(n_windows=2, gap=2, backtest=BacktestOptions(align="calendar"))
    with pytest.warns(UserWarning, match="Some series are in no window"):
        assert len(searched(Bent(), short, 3, options=options).trials) == 3
