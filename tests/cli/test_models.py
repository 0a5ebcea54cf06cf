"""`deepforecast models`."""

from __future__ import annotations

import inspect
import re

import pytest

from deepforecast.cli.models import model_family
from deepforecast.core import registry
from deepforecast.core.params import declared_params


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_table_has_every_model(run, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    ran = run("models")
    assert (ran.status, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= int(columns)
    lines = [line for line in ran.out.splitlines() if line[:1].strip()]  # what a model is stands below it, indented
    rows = [re.split(" {2,}", line.strip()) for line in lines]
    for name in registry.names():
        row = next(row for row in rows if row[0] == name)
        assert row[1] == model_family(name)
        assert row[3] == ("yes" if registry.get(name).capabilities.missing else "no")


def test_as_json(run) -> None:
    facts = {one["name"]: one for one in run("models", "--json").facts["models"]}
    assert list(facts) == registry.names()
    assert facts["SeasonalNaive"]["family"] == "baselines"
    assert facts["SeasonalNaive"]["capabilities"]["missing"] is True
    assert facts["SeasonalNaive"]["parameters"]["season_length"]["default"] == "auto"
    assert facts["Conformal"]["parameters"]["model"]["required"] is True


@pytest.mark.parametrize("name", registry.names())
def test_a_model_with_its_parameters(run, name: str) -> None:
    ran = run("models", name.upper())
    text = " ".join(ran.out.split())
    assert (ran.status, ran.err) == (0, "")
    assert not re.search(r">>>|--- |Examples", text)
    for title in ("Parameters", "References", "See Also"):
        assert ran.out.splitlines().count(title) == (f"\n{title}\n" in str(inspect.getdoc(registry.get(name))))
    for parameter, one in declared_params(registry.get(name)).items():
        assert f" {parameter} {' '.join(one.full_help.removesuffix('.').split())} (" in text


def test_a_model_of_another_package_is_of_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepforecast.core.forecaster import Forecaster

    foreign = type("Foreign", (Forecaster,), {"__module__": "their_package.models"})
    monkeypatch.setitem(registry._registered, "Foreign", foreign)
    assert model_family("Foreign") == "their_package"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Naiv", "Did you mean Naive"),
        ("", "must be a registered name, got ''"),
        ("../x", "must be a registered name, got"),
    ],
)
def test_unknown_models_are_refused(run, name: str, said: str) -> None:
    assert said in run("models", name).refusal()
