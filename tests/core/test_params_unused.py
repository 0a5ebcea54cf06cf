"""A parameter without effect, given the others, is refused with a fix, not ignored."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import optuna
import pandas as pd
import pytest

from deepforecast import (
    ARIMA,
    CES,
    ETS,
    MSTL,
    SES,
    AutoARIMA,
    AutoETS,
    Croston,
    Holt,
    HoltWinters,
    Theta,
    UnobservedComponents,
    decompose,
)
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import (
    Not,
    declared_params,
    param,
    refuse_unused_parameters,
    unused_parameters,
)
from deepforecast.errors import ParameterError, ParameterTypeError
from deepforecast.tuning.space import sample_from

Y = 50 + np.resize([0.0, 3.0, 5.0, 1.0], 40) + np.random.default_rng(0).normal(size=40)
FRAME = pd.DataFrame({"ds": pd.date_range("2010-01-01", periods=40, freq="QS"), "y": Y})
IDLE = {
    "ETS season_length": (ETS(season_length=4), "seasonal="),
    "ETS gamma": (ETS(gamma=0.1), "seasonal="),
    "ETS beta": (ETS(trend=None, beta=0.1), "trend="),
    "ETS phi": (ETS(phi=0.9), "damped=True"),
    "Holt phi": (Holt(phi=0.9), "damped=True"),
    "HoltWinters phi": (HoltWinters(phi=0.9), "damped=True"),
    "HoltWinters gamma": (HoltWinters(season_length=1, gamma=0.1), "season_length"),
    "AutoETS season_length": (AutoETS(seasonal=None, season_length=4), "season"),
    "AutoETS damped": (AutoETS(trend=None, damped=True), "trend"),
    "AutoETS multiplicative_trend": (AutoETS(trend="additive", multiplicative_trend=True), "trend='auto'"),
    "AutoETS transformed": (AutoETS(box_cox=0, multiplicative_trend=True), "box_cox"),
    "ARIMA season_length": (ARIMA(season_length=4), "seasonal_order="),
    "ARIMA method": (ARIMA(method="conditional", engine="statsmodels"), "engine='kernels'"),
    "AutoARIMA max_d": (AutoARIMA(d=1, max_d=1), "d=1"),
    "AutoARIMA unit_root_test": (AutoARIMA(d=1, unit_root_test="adf"), "d=1"),
    "AutoARIMA max_seasonal_d": (AutoARIMA(seasonal_d=1, max_seasonal_d=2), "seasonal_d=1"),
    "AutoARIMA max_order": (AutoARIMA(max_order=3), "stepwise=False"),
    "AutoARIMA seasonal_d": (AutoARIMA(season_length=1, seasonal_d=1), "season_length"),
    "CES season_length": (CES(season_length=4), "seasonal='simple', 'partial' or 'full'"),
    "Croston alpha": (Croston(variant="optimized", alpha=0.3), "variant='classic'"),
    "Theta season_length": (Theta(decomposition="none", season_length=4), "decomposition='auto'"),
    "Theta decomposition": (Theta(decomposition="additive", season_length=1), "season_length"),
    "UnobservedComponents harmonics": (UnobservedComponents(harmonics=2), "trigonometric="),
    "UnobservedComponents damped_cycle": (UnobservedComponents(damped_cycle=True), "cycle=True"),
    "UnobservedComponents stochastic_season": (UnobservedComponents(season_length=1, stochastic_season=False), "season_length"),
    "MSTL seasonal_window": (MSTL(season_length=1, seasonal_window=7), "season_length"),
    "MSTL rest": (MSTL(trend_model=ETS(season_length=4)), "seasonal="),
}


@pytest.mark.parametrize("name", IDLE)
def test_an_idle_parameter_is_refused(name: str) -> None:
    model, way = IDLE[name]
    with pytest.raises(ParameterError, match="has no effect") as raised:
        model.fit(FRAME)
    assert way in str(raised.value)
    assert name.split()[-1] in str(raised.value) or name.endswith(("transformed", "rest"))


def test_what_says_that_there_is_no_season_is_not_idle() -> None:
    for model in (ETS(season_length=1), ARIMA(season_length=1), CES(season_length=1), SES(alpha=0.1), Theta(season_length=1)):
        model.fit(FRAME)


def test_several_seasons_are_different() -> None:
    for lengths in ([4, 4], [1, 4]):
        for model in (MSTL(season_length=lengths), AutoARIMA(season_length=lengths)):
            with pytest.raises(ParameterError, match="distinct integers above 1"):
                model.fit(FRAME)
        with pytest.raises(ParameterError, match="distinct integers above 1"):
            decompose(FRAME, lengths)


# -- param(needs=...) -----------------------------------------------------------------------------------------------------


def trial() -> optuna.Trial:
    """A trial of random choices."""
    return optuna.create_study(sampler=optuna.samplers.RandomSampler()).ask()


class Toy(Forecaster):
    """A parameter for each kind of condition."""

    kind: Literal["a", "b", "c"] = param(default="a", search=("a", "b", "c"), help="kind")
    order: tuple[int, int] = param(default=(0, 0), help="order")
    size: int | None = param(default=None, at_least=1, help="size")
    only: int = param(default=1, low=1, high=9, needs={"kind": "b"}, help="of kind b.")
    other: int = param(default=1, low=1, high=9, needs={"kind": Not("a")}, help="of other kinds")
    season: int | None = param(default=None, needs={"order": Not((0, 0))}, off=1, help="season")
    both: int = param(default=1, needs={"kind": "a", "size": Not(None)}, help="of two")
    either: int = param(
        default=1, needs=("kind='a' or a size", lambda values: values["kind"] == "a" or values["size"] is not None),
        help="of one",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"only": 2}, "Toy: only=2 has no effect with kind='a'. Set kind='b', or omit `only`."),
        ({"other": 2}, "Toy: other=2 has no effect with kind='a'. Set kind='b' or 'c', or omit `other`."),
        ({"season": 4}, "Toy: season=4 has no effect with order=(0, 0). Set another `order`, or omit `season`."),
        ({"season": 4, "order": [0, 0]}, "Toy: season=4 has no effect with order=(0, 0)."),
        ({"both": 2}, "Toy: both=2 has no effect with size=None. Set `size`, or omit `both`."),
        ({"both": 2, "kind": "b", "size": 3}, "Toy: both=2 has no effect with kind='b'. Set kind='a', or omit `both`."),
        ({"kind": "b", "either": 2}, "Toy: either=2 has no effect without kind='a' or a size. Set kind='a' or a size, or omit"),
    ],
)
def test_a_parameter_whose_needs_are_not_met_is_refused(given: dict[str, Any], message: str) -> None:
    model = Toy(**given)
    with pytest.raises(ParameterError) as raised:
        refuse_unused_parameters(model)
    assert str(raised.value).replace("[0, 0]", "(0, 0)").startswith(message)
    assert (raised.value.value, raised.value.hint[:4]) == (given[raised.value.parameter or ""], "Set ")


def test_defaults_and_values_that_leave_out_are_not_refused() -> None:
    for model in (Toy(), Toy(season=1), Toy(season=np.int64(1)), Toy(kind="b", only=2, other=2), Toy(order=(1, 0), season=4)):
        refuse_unused_parameters(model)
    assert unused_parameters(Toy(season=1)) == ["only", "other", "both"]
    assert unused_parameters(Toy(kind="b")) == ["season", "both", "either"]


def test_the_help_says_when_a_parameter_has_an_effect() -> None:
    text = " ".join((Toy.__doc__ or "").split())
    assert "Of kind b. Used only with kind='b'. other" in text
    assert "Season. Not used with order=(0, 0). both" in text
    assert "Of two. Used only with kind='a', not with size=None. either" in text
    assert "Of one. Used only with kind='a' or a size. alias" in text


def test_a_search_leaves_out_what_would_have_no_effect() -> None:
    params = declared_params(Toy)
    searched = {name: params[name] for name in ("kind", "only", "other")}
    for _ in range(30):
        drawn = sample_from(searched, {name: one.default for name, one in params.items()}, trial())
        assert ("only" in drawn, "other" in drawn) == (drawn["kind"] == "b", drawn["kind"] != "a")
        refuse_unused_parameters(Toy(**drawn))


def test_a_subclass_inherits_changes_or_drops_the_needs() -> None:
    class Again(Toy):
        only: int = param(default=2, low=2, high=3)
        other: int = param(default=1, needs={"kind": "c"})
        both: int = param(default=1, needs=None)

    params, values = declared_params(Again), {name: declared.default for name, declared in declared_params(Again).items()}
    assert unused_parameters(Again(kind="b")) == ["other", "season", "either"]
    assert unused_parameters(Again(kind="c")) == ["only", "season", "either"]
    searched = {name: params[name] for name in ("only", "other")}
    assert set(sample_from(searched, {**values, "kind": "b"}, trial())) == {"only"}
    assert set(sample_from(searched, {**values, "kind": "c"}, trial())) == {"other"}
    assert params["both"].when is None


def test_a_search_condition_of_its_own_replaces_that_of_the_needs() -> None:
    class Own(Toy):
        only: int = param(default=1, low=1, high=9, when=lambda values: values["kind"] == "c")

    class Below(Own):
        only: int = param(default=2)

    for cls in (Own, Below):
        assert "only" in sample_from({"only": declared_params(cls)["only"]}, {"kind": "c"}, trial())
        assert "only" in unused_parameters(cls(kind="c"))


def test_needs_must_be_about_parameters_of_the_class() -> None:
    with pytest.raises(ParameterTypeError, match=r"Wrong\.size: the keys of `needs` must be parameters, got knd"):

        class Wrong(Toy):
            size: int | None = param(default=None, needs={"knd": "a"})
