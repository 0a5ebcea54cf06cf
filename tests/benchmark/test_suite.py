from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from deepforecast.benchmark.suite import (
    BUILT_IN_SUITES,
    Entry,
    Suite,
    find_suite,
    known_suites,
    load_suite,
    parse_entries,
    parse_suite,
    suite_from_mapping,
)  # fmt: skip
from deepforecast.benchmark.suite_checks import refuse_unused_parameters
from deepforecast.benchmark.suite_subset import SuiteSubset, select_subset
from deepforecast.benchmark.task_data import prepare_task
from deepforecast.errors import ParameterError

LARGER = Path(__file__).parents[2] / "benchmarks" / "suites"
TASK = {"dataset": "air_passengers"}


def made(**changed: object) -> Suite:
    return parse_suite({"suite": "s", "models": ["Naive"], "tasks": [TASK], **changed}, "s.yaml")


def test_every_suite_there_is_can_be_read_and_written() -> None:
    names = {"quick", "m4-full", "m4-sample", "m1", "ltsf", "epf", "retail", "probabilistic", "speed", "scaling"}
    assert names <= set(known_suites())
    for path in (*BUILT_IN_SUITES.glob("*.yaml"), *LARGER.glob("*.yaml")):
        suite = load_suite(path)
        assert suite.suite == path.stem
        assert suite.what
        again = yaml.safe_load(yaml.safe_dump(suite.to_mapping()))
        assert suite_from_mapping(again) == suite


def test_m4_sample_is_two_thousand_series_in_the_shares_of_the_whole() -> None:
    tasks = load_suite("m4-sample").tasks
    counts = {task.dataset: task.part.series for task in tasks if task.part is not None}
    assert sum(counts.values()) == 2000
    assert counts["m4_monthly"] == 960


def test_defaults_hold_for_every_task_that_does_not_say_otherwise() -> None:
    found = made(defaults={"horizon": 6, "level": [80]}, tasks=[TASK, {"dataset": "co2", "horizon": 9}])
    assert [task.horizon for task in found.tasks] == [6, 9]
    assert [task.level for task in found.tasks] == [(80,), (80,)]


def test_models_and_peers_take_turns() -> None:
    found = made(models=["Naive", "Mean", "SES"], peers=[{"peer": "other", "model": "ETS"}])
    assert [one.name for one in found.entries(found.tasks[0])] == ["Naive", "other ETS", "Mean", "SES"]


def test_without_models_every_registered_one_runs_that_wraps_no_other() -> None:
    found = made(models=None)
    names = {one.name for one in found.entries(found.tasks[0])}
    assert {"Naive", "AutoETS", "LightGBM", "Transformer"} <= names
    assert "Conformal" not in names


BAD = [
    ({"task": []}, "no key task; did you mean tasks"),
    ({"tasks": []}, "tasks must be a list of at least one"),
    ({"tasks": [{"dataset": "co2", "horizn": 3}]}, r"tasks\[0\] has no key horizn; did you mean horizon"),
    (
        {"tasks": [{"dataset": "co2", "horizon": "12"}]},
        r"tasks\[0\]\.horizon must be an integer or null, got 12 \(str\)",
    ),
    ({"tasks": [{"dataset": "co2", "horizon": True}]}, "horizon must be an integer"),
    ({"tasks": [{"dataset": "co2", "horizon": 0}]}, "horizon must be at least 1, got 0"),
    ({"tasks": [{"dataset": "co2", "windows": {"count": 0}}]}, r"tasks\[0\]\.windows: count must be at least 1"),
    ({"tasks": [{"dataset": "co2", "windows": {"refit": "often"}}]}, "refit must be auto, true, false"),
    ({"tasks": [{"dataset": "co2", "slice": {"series": -1}}]}, r"tasks\[0\]\.slice: series must be at least 1"),
    ({"tasks": [{"dataset": "co2", "scaling": {"kind": "minmax", "rows": 9}}]}, "kind must be standard"),
    ({"tasks": [{"dataset": "co2", "scaling": {}}]}, r"scaling must have rows"),
    ({"tasks": [{"dataset": "co2", "level": [100]}]}, r"must be in \(0, 100\)"),
    ({"tasks": [{"dataset": "co2", "metrics": ["mse", "mas"]}]}, r"s\.yaml: co2: Unknown metric 'mas'"),
    ({"tasks": [{"dataset": "M4_yearly"}]}, "s.yaml: M4_yearly: .*Did you mean 'm4_yearly'"),
    ({"tasks": [{"task": "x", "generate": {"n_serie": 3}}]}, "s.yaml: x: generate must be .*'n_serie'"),
    ({"tasks": [{"dataset": "m1"}]}, "s.yaml: m1: a task must have a horizon"),
    ({"models": ["Naive", "autoets"]}, "s.yaml: models: a model must be registered, got autoets; did you mean AutoETS"),
    (
        {"tasks": [{"dataset": "co2", "models": ["Prohpet"]}]},
        "models: a model must be registered, got Prohpet; did you mean Prophet",
    ),
    (
        {"models": [{"model": "Conformal", "parameters": {"model": {"model": "Naiv"}}}]},
        "a model must be registered, got Naiv; did you mean",
    ),
    (
        {"reference": "SesonalNaive"},
        "reference: a model must be registered, got SesonalNaive; did you mean SeasonalNaive",
    ),
    (
        {"tasks": [{"dataset": "nile", "horizon": 100}]},
        r"nile: 1 window of horizon 100 and 1 training row .* 101 rows, .* at most 100\.",
    ),
    ({"tasks": [{"dataset": "nile", "horizon": 20, "windows": {"count": 5}}]}, "5 windows of horizon 20 .* 101 rows"),
    (
        {"tasks": [{"dataset": "nile", "horizon": 9, "slice": {"last": 9}}]},
        "10 rows, but the series of the task have at most 9",
    ),
    ({"tasks": [{"dataset": "nile", "scaling": {"rows": 91}}]}, "91 training rows require 101 rows"),
    ({"tasks": [{"task": "x", "generate": {"length": 30}, "horizon": 30}]}, "31 rows"),
    (
        {"tasks": [{"task": "x", "generate": {"length": "long"}, "horizon": 3}]},
        "s.yaml: x: generate: length must be an integer",
    ),
    ({"tasks": [{"task": "x", "generate": {"length": float("inf")}, "horizon": 3}]}, "length must be an integer"),
    ({"tasks": [{"dataset": "m1_yearly", "horizon": 5000}]}, "at most 4,335"),
    ({"tasks": [{"dataset": "co2", "generate": {}}]}, "not both"),
    ({"tasks": [{}]}, "a task must have either a dataset"),
    ({"tasks": [{"generate": {}}]}, "must have a name"),
    ({"tasks": [TASK, TASK]}, "got more than once: air_passengers"),
    ({"tasks": ["co2"]}, r"tasks\[0\] must be a mapping"),
    ({"models": ["Naive", "Naive"]}, "got more than once: Naive"),
    ({"models": "Naive"}, "models must be a list"),
    ({"models": [{"model": "Naive", "params": {}}]}, r"models\[0\] has no key params; did you mean parameters"),
    ({"seeds": [0, 0]}, "distinct"),
    ({"seeds": []}, "seeds must be distinct integers"),
    ({"time_limit": 0}, "time_limit must be above 0"),
    ({"defaults": []}, "defaults must be a mapping"),
]


@pytest.mark.parametrize(("changed", "told"), BAD)
def test_what_is_wrong_is_refused_where_it_stands(changed: dict[str, object], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        made(**changed)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("suite: a\nsuite: b\ntasks: []", "got more than once in the mapping of line 1: suite"),
        ("tasks: [{dataset: co2, horizon: 3, horizon: 4}]", "in the mapping of line 1: horizon"),
        ("- a", "must be a mapping"),
        ("suite: [", "must be a valid YAML file"),
        ("suite: !!python/object/apply:os.getcwd []", "must be a valid YAML file"),
    ],
)
def test_files_that_are_no_suites_are_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=told):
        load_suite(path)


def test_suites_are_found_by_name_or_path(tmp_path: Path) -> None:
    assert find_suite("quick") == BUILT_IN_SUITES / "quick.yaml"
    with pytest.raises(ParameterError, match="Unknown suite quik"):
        find_suite("quik")
    with pytest.raises(ParameterError, match="does not exist"):
        find_suite(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("task", [{"dataset": "nile", "horizon": 99}, {"dataset": "nile", "scaling": {"rows": 90}}])
def test_windows_that_a_dataset_just_holds_are_taken(task: dict[str, object]) -> None:
    assert made(tasks=[task]).tasks[0].dataset == "nile"
    assert prepare_task(made(tasks=[task]).tasks[0]).row_fields()["windows"] == 1


def test_what_only_looks_like_a_model_within_a_model_is_left_to_its_job() -> None:
    within = {"model": "Naive", "parameters": [1]}
    assert made(models=[{"model": "Conformal", "parameters": {"model": within}}]).models[0].parameters["model"] == within


def test_the_reference_may_be_an_alias() -> None:
    found = made(models=[{"model": "SeasonalNaive", "alias": "Weekly"}], reference="Weekly")
    assert suite_from_mapping({**found.to_mapping(), "models": [{"model": "Naive"}]}).reference == "Weekly"  # of what is left


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"models": [{"model": "LSTM", "parameters": {"checkpoint_dir": "/elsewhere"}}]}, r"s\.yaml: LSTM: `checkpoint_dir`"),
        ({"models": [{"model": "LSTM", "parameters": {"trainer": {"logger": True}}}]}, r"s\.yaml: LSTM: `trainer`"),
        ({"models": [{"model": "CatBoost", "parameters": {"options": {"train_dir": "/elsewhere"}}}]}, "CatBoost: `train_dir`"),
        (
            {"models": [{"model": "Conformal", "parameters": {"model": {"model": "LSTM", "parameters": {"trainer": {}}}}}]},
            "Conformal: `trainer`",
        ),
        ({"defaults": {"parameters": {"checkpoint_dir": "x"}}}, "air_passengers: `checkpoint_dir`"),
        ({"tasks": [{**TASK, "models": [{"model": "MLP", "parameters": {"trainer": {}}}]}]}, "MLP: `trainer`"),
        (
            {"peers": [{"peer": "other", "model": "NHITS", "parameters": {"default_root_dir": "/elsewhere"}}]},
            "other NHITS: `default_root_dir`",
        ),
    ],
)
def test_parameters_that_write_files_elsewhere_are_refused(changed: dict[str, object], told: str) -> None:
    with pytest.raises(ParameterError, match=f"{told} cannot be set in a benchmark, as it may write files outside of"):
        made(**changed)


def test_a_model_given_to_a_run_writes_no_files_elsewhere_either() -> None:
    with pytest.raises(ParameterError, match="suite s: LSTM: `checkpoint_dir` cannot be set in a benchmark"):
        select_subset(made(), SuiteSubset(models=[{"model": "LSTM", "parameters": {"checkpoint_dir": "/elsewhere"}}]))


def test_parameters_that_are_left_at_none_write_nothing() -> None:
    made(models=[{"model": "LSTM", "parameters": {"checkpoint_dir": None, "trainer": None}}])


def test_what_a_task_tells_models_that_have_no_use_for_it_is_refused() -> None:
    told = {"dataset": "co2", "parameters": {"missing": "ffill", "max_stepz": 3}}
    refuse_unused_parameters(made(tasks=[{**told, "parameters": {"missing": "ffill"}}]))
    with pytest.raises(ParameterError, match=r"co2: .*got max_stepz"):
        refuse_unused_parameters(made(tasks=[told]))
    with pytest.raises(ParameterError, match="max_stepz; did you mean max_steps"):
        refuse_unused_parameters(made(tasks=[told], models=["Naive", "LSTM"]))


@pytest.mark.slow  # imports every model
@pytest.mark.parametrize("name", sorted(known_suites()))
def test_every_suite_tells_its_models_what_some_have_a_use_for(name: str) -> None:
    refuse_unused_parameters(load_suite(name))


def test_entries_may_be_entries() -> None:
    own = Entry(model="Naive", alias="N")
    assert parse_entries([own, "Mean"], "models") == (own, Entry(model="Mean"))
