"""A parameter without effect, given the others, is refused with a fix, not ignored."""

from __future__ import annotations

import numpy as np
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
from deepforecast.errors import ParameterError

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
    "ARIMA method": (ARIMA(method="conditional", engine="statsmodels"), "exact"),
    "AutoARIMA max_d": (AutoARIMA(d=1, max_d=1), "d=1"),
    "AutoARIMA unit_root_test": (AutoARIMA(d=1, unit_root_test="adf"), "d=1"),
    "AutoARIMA max_seasonal_d": (AutoARIMA(seasonal_d=1, max_seasonal_d=2), "seasonal_d=1"),
    "AutoARIMA max_order": (AutoARIMA(max_order=3), "stepwise=False"),
    "AutoARIMA seasonal_d": (AutoARIMA(season_length=1, seasonal_d=1), "season_length"),
    "CES season_length": (CES(season_length=4), "seasonal='full'"),
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
