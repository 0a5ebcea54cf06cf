"""Models by name."""

from __future__ import annotations

import pytest

from deepforecast import Conformal, Naive, SeasonalNaive, WindowMean
from deepforecast.cli.model_names import build_model, find_model
from deepforecast.errors import ParameterError


@pytest.mark.parametrize("name", ["SeasonalNaive", "seasonalnaive", "seasonal-naive", "SEASONAL_NAIVE"])
def test_capitals_and_dashes_do_not_matter(name: str) -> None:
    assert find_model(name) is SeasonalNaive


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("naive", Naive()),
        ("SeasonalNaive:season_length=7", SeasonalNaive(season_length=7)),
        ("SeasonalNaive:season-length=auto,alias=a b", SeasonalNaive(alias="a b")),
        ("SeasonalNaive:alias=a,b", SeasonalNaive(alias="a,b")),
        ("WindowMean:window=28,intervals=conformal", WindowMean(window=28, intervals="conformal")),
        ("Conformal:model=Naive,n_windows=5", Conformal(Naive(), n_windows=5)),
        (
            "Conformal:model=SeasonalNaive(season_length=7, alias='x'),adaptation_rate=0.1",
            Conformal(SeasonalNaive(season_length=7, alias="x"), adaptation_rate=0.1),
        ),
        ("Conformal(Naive(), method='adaptive')", Conformal(Naive(), method="adaptive")),
        ("conformal(model=naive, method=adaptive)", Conformal(Naive(), method="adaptive")),
        ("SeasonalNaive()", SeasonalNaive()),
        ("Naive:alias=f(x)", Naive(alias="f(x)")),
    ],
)
def test_models_with_parameters(text: str, model: object) -> None:
    assert build_model(text) == model


def test_what_a_model_prints_can_be_given_back() -> None:
    model = Conformal(SeasonalNaive(season_length=7), horizon=14, method="adaptive")
    assert build_model(repr(model)) == model


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be a registered name, got ''"),
        ("Nave", "must be a registered name, got 'Nave'. Did you mean Naive"),
        ("Oracle9000", "Available: "),
        ("SeasonalNaive:7", "must be given as name=value, for example season_length=12, got '7'"),
        ("SeasonalNaive:season_lenght=7", "has no parameter season_lenght. Did you mean season_length"),
        ("SeasonalNaive:season_length=0", "`season_length` must be 'auto' or an integer"),
        ("SeasonalNaive:alias=a,alias=b", "repeated in 'SeasonalNaive:alias=a,alias=b': alias"),
        ("SeasonalNaive(", "A model must be given as Name"),
        ("SeasonalNaive(__import__('os').system('x'))", "Python literals or models"),
        ("SeasonalNaive(7).fit(1)", "A model must be given as Name"),
        ("SeasonalNaive(**{'alias': 'x'})", "cannot be given with **"),
        ("SeasonalNaive(7, 8, 9)", "keyword arguments only"),
        ("Naive(" * 5000, "A model must be given as Name"),
        ("Conformal(Nave())", "must be a registered name, got 'Nave'"),
        ("Conformal", "Conformal requires `model`"),
        ("\x1b[2J", r"must be a registered name, got '\\x1b[2J'"),
    ],
)
def test_names_that_are_no_model_are_refused(text: str, said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        build_model(text)
    assert said in str(refused.value)
