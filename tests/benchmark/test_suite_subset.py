from __future__ import annotations

import pytest

from deepforecast.benchmark.suite import Suite, parse_suite
from deepforecast.benchmark.suite_subset import SuiteSubset, select_subset
from deepforecast.errors import ParameterError

MADE = {"task": "made", "generate": {"n_series": 2, "length": 50, "freq": "D"}, "horizon": 5, "windows": {"test": 20}}
SUITE = parse_suite(
    {
        "suite": "s",
        "models": ["Naive", {"model": "SES", "parameters": {"intervals": "conformal"}}],
        "tasks": [MADE, {"dataset": "nile", "models": ["Mean", {"model": "Naive", "parameters": {"alias": "N"}}]}],
        "seeds": [0, 1],
        "time_limit": 9,
    },
    "s",
)


def names(suite: Suite, task: int = 0) -> list[str]:
    return [one.name for one in suite.entries(suite.tasks[task])]


def test_nothing_is_left_out_where_nothing_is_asked() -> None:
    assert select_subset(SUITE, SuiteSubset()) == SUITE


def test_all_that_is_left_out_is_said() -> None:
    cut = SuiteSubset(models=["Mean"], tasks=["made"], seeds=[1], series=1, windows=3, time_limit=5)
    found = select_subset(SUITE, cut)
    assert found.cut == (
        "only models Mean", "only tasks made", "seeds 1 of 0, 1", "made: 1 of 2 series", "made: the last 3 of 4 windows",
    )  # fmt: skip
    assert names(found) == ["Mean"]
    assert (found.time_limit, found.seeds, len(found.tasks)) == (5.0, (1,), 1)
    assert (found.tasks[0].windows.count, found.tasks[0].windows.test) == (3, None)


def test_a_model_asked_for_by_name_is_as_the_suite_has_it() -> None:
    found = select_subset(SUITE, SuiteSubset(models=["SES", "Naive", "Drift"]))
    assert [one.parameters for one in found.entries(found.tasks[0])] == [{"intervals": "conformal"}, {}, {}]
    assert [one.parameters for one in found.entries(found.tasks[1])] == [{}, {"alias": "N"}, {}]
    other = select_subset(SUITE, SuiteSubset(models=[{"model": "SES", "parameters": {"point": "mean"}}]))
    assert other.entries(other.tasks[0])[0].parameters == {"point": "mean"}


def test_peers_run_where_all_do_or_they_are_asked_for() -> None:
    suite = parse_suite(
        {"suite": "s", "models": ["Naive"], "tasks": [MADE],
         "peers": [{"peer": "one", "model": "ETS"}, {"peer": "two", "model": "A"}, {"peer": "two", "model": "B"}]},
        "s",
    )  # fmt: skip
    assert names(select_subset(suite, SuiteSubset(series=1))) == ["Naive", "one ETS", "two A", "two B"]
    alone = select_subset(suite, SuiteSubset(models=["Naive"]))
    assert names(alone) == ["Naive"]
    assert "without one ETS, two A, two B" in alone.cut
    assert names(select_subset(suite, SuiteSubset(models=["Naive"], peers=["one"]))) == ["Naive", "one ETS"]
    assert names(select_subset(suite, SuiteSubset(peers=["two B"]))) == ["Naive", "two B"]
    with pytest.raises(ParameterError, match="must be from one"):
        select_subset(suite, SuiteSubset(peers=["three"]))


@pytest.mark.parametrize(
    ("cut", "told"),
    [
        ({"models": []}, "models must be a non-empty list"),
        ({"tasks": "made"}, "tasks must be a non-empty list"),
        ({"series": 0}, "series"),
        ({"windows": 1.5}, "windows"),
        ({"time_limit": 0}, "time_limit"),
    ],
)
def test_what_is_no_cut_is_refused(cut: dict[str, object], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        SuiteSubset(**cut)  # type: ignore[arg-type]


def test_a_pattern_that_fits_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="must match a task of suite s, got etth1"):
        select_subset(SUITE, SuiteSubset(tasks=["etth1*"]))


def test_models_that_nothing_has_are_refused_and_names_of_the_suite_are_not() -> None:
    suite = parse_suite({"suite": "s", "models": [{"model": "Naive", "alias": "Last"}], "tasks": [{"dataset": "nile"}]}, "s")
    assert [one.model for one in select_subset(suite, SuiteSubset(models=["Last"])).models or ()] == ["Naive"]
    with pytest.raises(ParameterError, match="a model must be registered, got Naiv; did you mean Naive"):
        select_subset(suite, SuiteSubset(models=["Naiv"]))
