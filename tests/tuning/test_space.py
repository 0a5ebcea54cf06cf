from __future__ import annotations

import optuna
import pytest

from deepforecast import LSTM, Conformal, LinearModel, Regression, SeasonalNaive, WindowMean
from deepforecast.core.params import declared_params, refuse_unused_parameters
from deepforecast.core.registry import get, names
from deepforecast.errors import ParameterError, ParameterTypeError
from deepforecast.tuning.space import Configuration, format_params, make_space, parse_params
from tests.tuning.bent import Bent


def drawn(space, count=40):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [space.draw(study.ask()) for _ in range(count)]


def test_ranges_come_from_the_declarations_and_never_name_the_seed():
    space = make_space([Bent()], None)
    assert list(space.ranges[0]) == ["away", "width", "kind", "inner", "shape"]
    for one in drawn(space):
        assert -4 <= one.params["away"] <= 4
        assert one.params["shape"] in ((1, 2), (3,))
        assert ("inner" in one.params) == (one.params["kind"] == "b")
        assert space.build_model(one).shape == one.params["shape"]


def test_what_was_said_of_a_model_stays():
    space = make_space([Bent(away=2.0, kind="b")], None)
    assert list(space.ranges[0]) == ["width", "inner", "shape"]
    assert all(space.build_model(one).away == 2.0 and "inner" in one.params for one in drawn(space))


def test_dear_parameters_stay_affordable_without_a_gpu():
    assert make_space([Bent()], None).ranges[0]["width"].high == 16
    assert make_space([Bent()], {"width": (1, 64)}).ranges[0]["width"].high == 64


def test_a_dict_says_what_is_searched_instead():
    space = make_space([Bent()], {"width": (2, 4), "away": [0.0, 3.0], "inner": {"low": 0.25, "high": 1, "step": 0.25}})
    for one in drawn(space):
        assert set(one.params) == {"width", "away", "inner"}
        assert one.params["width"] in (2, 3, 4)
        assert one.params["away"] in (0.0, 3.0)
        assert one.params["inner"] in (0.25, 0.5, 0.75, 1.0)
    assert space.ranges[0]["width"].log  # as it is declared


def test_a_range_ends_with_its_last_step():
    space = make_space([Bent()], {"width": {"low": 8, "high": 16, "step": 5}, "away": {"low": 0.0, "high": 1.0, "step": 0.3}})
    assert space.ranges[0]["width"].high == 13
    study = optuna.create_study()
    for _ in range(10):
        one = space.draw(study.ask())  # where Optuna would warn
        assert one.params["width"] in (8, 13)
        assert 0 <= one.params["away"] < 0.91


def test_a_function_draws():
    space = make_space([Bent()], lambda trial: {"away": trial.suggest_float("away", 0, 1), "kind": "b"})
    assert all(0 <= one.params["away"] <= 1 and space.build_model(one).kind == "b" for one in drawn(space))


def test_several_models_have_names_of_their_own():
    space = make_space([Bent(), Bent(alias="Other", kind="b"), SeasonalNaive()], {"Other": {"away": (0.0, 1.0)}})
    trial = optuna.create_study().ask()
    space.draw(trial)
    assert trial.params["model"] in ("Bent", "Other", "SeasonalNaive")
    assert all(name == "model" or name.startswith(trial.params["model"] + ".") for name in trial.params)
    assert {space.build_model(one).name for one in drawn(space)} == {"Bent", "Other", "SeasonalNaive"}


def test_wrapped_models_are_searched_too():
    space = make_space([Conformal(Bent())], None)
    assert "model__away" in space.ranges[0]
    for one in drawn(space):
        assert ("model__inner" in one.params) == (one.params["model__kind"] == "b")
        assert space.build_model(one).model.away == one.params["model__away"]


@pytest.mark.parametrize(
    ("seasons", "rows", "lags", "sizes"),
    [
        ((7,), 735, (7, 14, 28), (12, 24)),
        ((12,), 144, (12, 24, 48), (12, 24)),
        ((12,), 40, (12,), (12, 24)),
        ((24, 168), 5000, (24, 48, 96), (12, 24)),
        ((96, 672), 5000, (96, 192), (12, 24)),
        ((1,), 29, (3, 6), (12,)),
        ((52,), 12, (1,), ()),
    ],
)
def test_lags_follow_the_season_and_windows_the_horizon_as_far_as_the_data_reach(seasons, rows, lags, sizes):
    models = [LinearModel(horizon=6), Conformal(LinearModel(horizon=6)), LSTM(horizon=6)]
    found = [make_space([one], None, seasons, rows).ranges[0] for one in models]
    assert found[0]["lags"].search == found[1]["model__lags"].search == ("auto", *lags)
    assert found[2]["input_size"].search == ("auto", *sizes)
    said = make_space([LinearModel(season_length=[10, 3])], None, seasons, 0).ranges[0]
    assert said["lags"].search == ("auto", 3, 6, 12)


def test_a_regressor_of_ones_own_by_its_own_names():
    from sklearn.linear_model import Ridge

    space = make_space([Regression(Ridge())], {"regressor__alpha": {"low": 0.1, "high": 10.0, "log": True}})
    one = drawn(space, 1)[0]
    assert space.build_model(one).regressor.alpha == one.params["regressor__alpha"]


def test_configurations_are_spelled_as_trials_hold_them():
    space = make_space([Bent()], None)
    given = Configuration(0, {"away": 9.0, "shape": (3,), "kind": "b"})
    assert space.to_trial_params(given) == {"width": 8, "kind": "b", "inner": 0.5, "shape": "(3,)"}  # 9 lies outside
    assert space.configuration_key(given) != space.configuration_key(Configuration(0, {}))
    assert space.configuration_key(Configuration(0, {"away": 1.0})) == space.configuration_key(Configuration(0, {}))


def test_parameters_survive_as_text():
    params = {"a": (1, 2), "b": [0.5, None], "c": "x'y", "d": True}
    assert parse_params(format_params(params)) == params
    with pytest.raises(ValueError):
        parse_params("__import__('os')")


def test_a_grid_has_every_value():
    space = make_space([Bent()], {"width": (2, 4), "shape": [(1, 2), (3,)], "away": {"low": 0.0, "high": 1.0, "step": 0.5}})
    assert space.grid() == {"width": [2, 3, 4], "shape": ["(1, 2)", "(3,)"], "away": [0.0, 0.5, 1.0]}
    with pytest.raises(ParameterError, match="away"):
        make_space([Bent()], {"away": (0.0, 1.0)}).grid()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seed": (0, 9)}, "'seed', because"),
        ({"model__seed": (0, 9)}, "'seed', because"),
        ({"wdth": (1, 2)}, "width"),
        ({"width": (4, 2)}, "'low' cannot be above 'high'"),
        ({"width": (0, 4)}, "width"),
        ({"width": (1.5, 4)}, "integer bounds"),
        ({"width": "large"}, "range"),
        ({"width": []}, "range"),
        ({"kind": ["a", "c"]}, "kind"),
        ({"away": {"low": 1}}, "range"),
        ({"away": {"low": -1, "high": 1, "log": True}}, "must be positive on a log scale"),
        ({"away": {"low": 0, "high": 1, "steps": 2}}, "range"),
        ({"away": (float("nan"), 1.0)}, "numbers"),
        ({}, "empty"),
    ],
)
def test_ranges_that_are_none_are_refused_by_name(given, words):
    with pytest.raises(ParameterError, match=words):
        make_space([Bent()], given)


def test_a_model_without_ranges_says_so():
    with pytest.raises(ParameterError, match="SeasonalNaive must have at least one parameter to search"):
        make_space([SeasonalNaive()], None)
    with pytest.raises(ParameterError, match="keys of `space`"):
        make_space([Bent(), WindowMean()], {"away": (0, 1)})
    with pytest.raises(ParameterTypeError, match="function"):
        make_space([Bent(), WindowMean()], lambda trial: {})
    with pytest.raises(ParameterTypeError, match="must return a dict"):
        make_space([Bent()], lambda trial: 3).draw(optuna.create_study().ask())
    with pytest.raises(ParameterError, match="seed"):
        make_space([Bent()], lambda trial: {"seed": 3}).draw(optuna.create_study().ask())


@pytest.mark.parametrize("name", [name for name in names() if any(one.needs for one in declared_params(get(name)).values())])
def test_no_model_draws_what_its_fit_refuses(name):
    declared = declared_params(get(name)).values()
    if any(one.is_searched for one in declared) and not any(one.required for one in declared):
        space = make_space([get(name)(horizon=24)], None)
        for one in drawn(space, 60):
            built = space.build_model(one)
            refuse_unused_parameters(built)


@pytest.mark.parametrize("name", names())
def test_every_model_draws_what_it_can_be_built_with(name):
    cls = get(name)
    needed = [key for key, one in declared_params(cls).items() if one.required]
    made = cls(**{key: {"model": Bent(), "regressor": "ridge"}[key] for key in needed})
    searched = any(one.is_searched for one in declared_params(cls).values())
    if not searched and "model" not in needed:
        with pytest.raises(ParameterError, match="must have at least one parameter to search"):
            make_space([made], None)
        return
    space = make_space([made], None)
    trial = optuna.create_study().ask()
    space.build_model(space.draw(trial))
    for one in drawn(space, 5):
        assert not any(key.rpartition("__")[2] == "seed" for key in one.params)
        space.build_model(one)
