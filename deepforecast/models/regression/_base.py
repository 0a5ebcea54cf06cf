"""What the regression models share: features, transformed target, strategy, and one regressor over all series (or one for each).

Regressive      a family member says how a regressor is made and trained on a `Sample`, kept as numbers and text, and revived
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.state import Learned
from deepforecast.data import calendar_features
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.frequency import seasons
from deepforecast.data.lags import Lagged, lagged, lags_of
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.models.regression._design import Design, known, table
from deepforecast.models.regression._targets import Target


@dataclass(frozen=True)
class Sample:
    """What a regressor learns from: rows of features, what follows each, how much each counts; the names of the columns, and
    which of them are codes of categories. `times`: the place of each row in time, for a split that respects it."""

    rows: Any
    target: Floats
    weight: Floats | None
    names: list[str]
    categories: list[int]
    times: Ints


class Regressive(Forecaster):
    """A regressor on features of the past, of the calendar, and of columns known ahead."""

    capabilities = Capabilities(
        future=True, past=True, static=True, categorical=True, local=False, scale_equivariant=True, explains=True
    )

    adds_up: ClassVar[bool] = False  # a linear model: categories and what comes round get columns of their own
    takes_missing: ClassVar[bool] = False

    lags: int | list[int] | str = param("auto", choices=("auto",), at_least=1, help="rows back that are features; 3 for 1 to 3")
    windows: list[str] | str = param("auto", choices=("auto",), help="features of the past such as 'mean_28', 'std_28@7', 'ewm_0.3'")
    season_length: int | list[int] | str = param("auto", choices=("auto",), at_least=1, help="steps after which seasons repeat")
    calendar: list[str] | str | None = param("auto", choices=("auto", None), help="features of the date; auto: by the frequency")
    holidays: str | None = param(None, help="code of the country whose holidays are features")
    fourier: int = param(0, at_least=0, low=0, high=10, help="pairs of sine and cosine for each season")
    time_index: bool = param(False, help="whether the number of the row is a feature")
    identity: bool = param(False, help="whether the number of the series is a feature")
    strategy: str = param("recursive", choices=("recursive", "direct", "blocks"), help="one step after the other, or one model a step")
    block: int = param(7, at_least=1, help="steps in a block, for strategy='blocks'")
    differences: list[int] | str = param("auto", choices=("auto",), at_least=1, help="lags of differences taken of the target")
    scale: bool = param(True, help="whether each series is centred and scaled")
    detrend: bool = param(False, help="whether the line of each series is taken out")
    power: str | None = param(None, choices=(None, "log", "box_cox"), help="power of the target that is learned")
