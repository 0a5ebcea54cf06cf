from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

import deepforecast
from deepforecast import Forecaster, Naive
from deepforecast.core import registry
from deepforecast.core.registry import MODELS
from deepforecast.errors import DependencyError, ParameterError, ParameterTypeError


class Elsewhere(Forecaster):
    pass


class Misnamed(Forecaster):
    pass


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Sets up entry points as installed packages have them; what a test registers is gone after it."""

    def install(**points: str | list[str]) -> None:
        found = [
            EntryPoint(name, value, registry.GROUP)
            for name, values in points.items()
            for value in ([values] if isinstance(values, str) else values)
        ]
        monkeypatch.setattr(registry, "entry_points", lambda group: found if group == "deepforecast.models" else [])

    before = dict(registry._registered)
    yield install
    registry._registered.clear()
    registry._registered.update(before)


def test_every_name_of_the_index_gives_its_class() -> None:
    for name, module in MODELS.items():
        cls = registry.get(name)
        assert (cls.__name__, cls.__module__) == (name, module)
        assert getattr(deepforecast, name) is cls
    assert set(MODELS) <= set(registry.names())
    assert {cls.__name__ for cls in registry.models()} >= set(MODELS)


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"Unknown model 'SeasonalNaif'\. Use SeasonalNaive"):
        registry.get("SeasonalNaif")
    with pytest.raises(ParameterError, match=r"Use .*Naive.*WindowMean"):
        registry.get("zzzzzz")


def test_asking_for_names_imports_no_model() -> None:
    code = "import sys; from deepforecast.core.registry import names; names(); print([m for m in sys.modules if '.model' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_name_belongs_to_one_class(installed: Callable[..., None]) -> None:
    registry.register(Elsewhere)
    assert registry.register(Elsewhere) is Elsewhere
    assert registry.get("Elsewhere") is Elsewhere
    with pytest.raises(
        ParameterError, match=r"must be unique, but .*test_registry defines Elsewhere, too\. Rename the class of other"
    ):
        registry.register(type("Elsewhere", (Forecaster,), {"__module__": "other"}))
    again = type("Elsewhere", (Forecaster,), {"__module__": Elsewhere.__module__, "__qualname__": Elsewhere.__qualname__})
    assert registry.get(registry.register(again).__name__) is again


@pytest.mark.parametrize("loaded", [True, False])
def test_a_name_of_the_library_cannot_be_taken(installed: Callable[..., None], loaded: bool) -> None:
    if not loaded:
        registry._registered.pop("Naive", None)
    with pytest.raises(ParameterError, match=r"naive defines Naive, too"):
        registry.register(type("Naive", (Forecaster,), {"__module__": "other"}))
    assert loaded == ("Naive" in registry._registered)


@pytest.mark.parametrize("thing", [int, Naive(), "Naive", None])
def test_only_forecasters_are_registered(thing: Any) -> None:
    with pytest.raises(ParameterTypeError, match="must be passed a subclass of Forecaster"):
        registry.register(thing)


def test_a_model_of_another_package_is_found_by_its_entry_point(installed: Callable[..., None]) -> None:
    installed(Elsewhere=f"{__name__}:Elsewhere")
    assert "Elsewhere" in registry.names()
    assert registry.get("Elsewhere") is Elsewhere


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no_such_module:Broken", "Broken of .*no_such_module:Broken.* could not be imported: ModuleNotFoundError"),
        (f"{__name__}:Absent", "could not be imported: AttributeError"),
        (f"{__name__}:Misnamed", "must load the class of that name, got .*Misnamed"),
    ],
)
def test_an_entry_point_that_does_not_lead_to_its_model(installed: Callable[..., None], value: str, words: str) -> None:
    installed(Broken=value)
    with pytest.raises(DependencyError, match=words):
        registry.get("Broken")


def test_two_packages_with_a_model_of_one_name(installed: Callable[..., None]) -> None:
    installed(Elsewhere=[f"{__name__}:Elsewhere", "other:Elsewhere"])
    with pytest.raises(ParameterError, match=r"several packages define Elsewhere: .*other:Elsewhere"):
        registry.get("Elsewhere")
    installed(Elsewhere=[f"{__name__}:Elsewhere"] * 2)  # one package seen by two paths
    assert registry.get("Elsewhere") is Elsewhere


def test_unreadable_package_metadata_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(**_: Any) -> None:
        raise OSError(24, "Too many open files", "entry_points.txt")

    monkeypatch.setattr(registry, "entry_points", none_left)
    assert registry.get("Naive") is Naive  # the library's own need none
    with pytest.raises(DependencyError, match=r"Cannot search installed packages for models: .*Too many open"):
        registry.names()
