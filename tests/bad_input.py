"""What the suite of bad input shares: every registered model, one of each kind, and the ways in which a test looks at it."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import SeasonalNaive
from deepforecast.core import params
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import union_members
from deepforecast.errors import DataError, DataWarning
from deepforecast.testing.assertions import collect_warnings
from deepforecast.testing.subject import Subject, make_subjects
from tests.frames import plain


def lacking(subject: Subject) -> str | None:
    """The package that the model stands on and that is not installed here."""
    package = getattr(subject.cls, "package", None)
    return package if package and find_spec(package) is None else None


def marked(every: list[Subject]) -> list[Any]:
    """As parameters of a test; what cannot run here is skipped aloud."""
    return [
        pytest.param(one, marks=[pytest.mark.skip(reason=f"{package} is not installed")] if (package := lacking(one)) else [])
        for one in every
    ]


def kind(subject: Subject) -> tuple[Any, ...]:
    """What a model declares of the data it takes and of its bands: all that is asked before it sees the data."""
    able = subject.capabilities
    covariates = (able.future, able.past, able.static, able.categorical)
    return (*covariates, able.missing, able.local, able.pooled, able.domain, able.distribution is None)


def one_of_each_kind(every: list[Subject]) -> list[Subject]:
    """The first model of each kind: enough for what is decided before a model sees the data.

    What the model itself makes of such data, the contract's checks try with every one.
    """
    kinds: dict[Any, Subject] = {}
    for subject in sorted(every, key=lambda one: getattr(one.cls, "package", None) is not None):
        kinds.setdefault(kind(subject), subject)
    return list(kinds.values())


EVERY = make_subjects()
ALL = pytest.mark.parametrize("subject", marked(EVERY), ids=repr)
LOCAL = pytest.mark.parametrize("subject", marked([one for one in EVERY if one.capabilities.local]), ids=repr)
WITH_BANDS = pytest.mark.parametrize("subject", marked([one for one in EVERY if one.capabilities.distribution]), ids=repr)
KINDS = pytest.mark.parametrize("subject", marked(one_of_each_kind(EVERY)), ids=repr)


def sn(h: int = 5) -> SeasonalNaive:
    return SeasonalNaive(horizon=h, season_length=7)


def made(subject: Subject, h: int = 5) -> Forecaster:
    return weekly(subject.make(horizon=h))


def weekly(model: Forecaster) -> Forecaster:
    """The model with a week where it would look for a season, and so the models in it."""
    changed: dict[str, Any] = {}
    unused = params.unused_parameters(model)
    for name, one in params.declared_params(type(model)).items():
        value = getattr(model, name)
        if name in unused:
            continue
        if isinstance(value, Forecaster):
            changed[name] = weekly(value)
        elif value == "auto" and one.at_least == 1 and int in union_members(one.annotation):
            changed[name] = 7
    return model.clone(**changed)


def undated(model: Forecaster) -> Forecaster:
    """The model, and the models in it, without features of the date: on other days these are others."""
    changed: dict[str, Any] = dict(getattr(type(model), "dateless", {}))
    for name in params.declared_params(type(model)):
        value = getattr(model, name)
        if isinstance(value, Forecaster):
            changed[name] = undated(value)
        elif name == "calendar":
            changed[name] = None
    return model.clone(**changed)


def within(subject: Subject, values: Any) -> Any:
    """The values, or their distances from 0 and a little more where the model takes those above 0 alone."""
    return values if subject.capabilities.domain == "real" else abs(values) + 0.5


def forecast(model: Any, frame: Any, **fit: Any) -> pd.DataFrame:
    return plain(model.fit(frame, **fit).predict())


def refused(model: Any, frame: Any, *words: str, error: type[Exception] = DataError, **fit: Any) -> str:
    """`fit` refuses, and the message holds every one of the words."""
    with pytest.raises(error) as caught:
        model.fit(frame, **fit)
    text = str(caught.value)
    assert [word for word in words if word not in text] == [], text
    return text


def k7(subject: Subject, frame: pd.DataFrame, rows: int, *words: str) -> None:
    """Missing values: forecast through them and say so once, or refuse with the series, the timestamp and the fix."""
    model = made(subject)
    if not model.capabilities.missing:
        refused(model, frame, *words, "missing=")
    else:
        with collect_warnings() as said:
            found = forecast(model, frame)
        assert len(found) == rows
        assert np.isfinite(found[model.name]).all()
        assert len(said) == 1
        assert all(word in said[0] for word in words), said
    for method in ("interpolate", "ffill", *(["zero"] if subject.accepts([0.0]) else [])):
        with warnings.catch_warnings():  # a zero among larger values may lead a forecast astray
            warnings.filterwarnings("ignore", message=".*lie far outside the history", category=DataWarning)
            found = forecast(made(subject).set_params(missing=method), frame)
        assert len(found) == rows
        assert np.isfinite(found.iloc[:, -1]).all()
