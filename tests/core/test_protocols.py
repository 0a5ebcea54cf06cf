"""Models as estimators of scikit-learn: displayed, copied and checked; refused where it splits and transforms rows."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sklearn.base
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.validation import check_is_fitted

import deepforecast
from deepforecast import Conformal, Forecaster, Naive, Theta
from deepforecast.core.registry import MODELS
from deepforecast.errors import CapabilityError, DeepForecastError, ParameterTypeError
from tests.frames import D

FRAME = D("A", 30)
TO_USE = r"deepforecast\.tune\(model, frame, \.\.\.\).*deepforecast\.cross_validate\(model, frame"


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Forecaster:
    """Each registered model, unfitted."""
    cls: Any = getattr(deepforecast, request.param)
    given = {"model": Naive()} if request.param == "Conformal" else cls.examples()[0] if hasattr(cls, "examples") else {}
    made: Forecaster = cls(**given)
    return made


def test_scikit_learn_tells_models_that_are_not_fitted(model: Forecaster) -> None:
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_scikit_learn_displays_every_model(model: Forecaster) -> None:
    text = estimator_html_repr(model)
    assert type(model).__name__ in text
    assert "Not fitted" in text


def test_scikit_learn_copies_every_model(model: Forecaster) -> None:
    assert sklearn.base.clone(model) == model


def test_grid_search_and_pipeline_refuse_every_model(model: Forecaster) -> None:
    x, y = FRAME[["ds"]], FRAME["y"]
    grid = {"horizon": [1, 2]}
    for scoring in (None, "neg_mean_absolute_error"):
        with pytest.raises(CapabilityError, match=TO_USE):
            GridSearchCV(model, grid, scoring=scoring).fit(x, y)
        with pytest.raises(CapabilityError, match=TO_USE):
            cross_val_score(model, x, y, scoring=scoring)
    for steps in ([("model", model)], [("scale", StandardScaler()), ("model", model)]):
        for target in (None, y):
            with pytest.raises(ParameterTypeError, match=TO_USE):
                Pipeline(steps).fit(FRAME[["y"]], target)


def test_attributes_and_tags_of_every_model_can_be_read(model: Forecaster) -> None:
    """Tools that look at any object, such as debuggers and displays, ask for them."""
    tags = get_tags(model)
    assert "estimator_type=None" in repr(tags)
    assert not is_regressor(model)
    assert not is_classifier(model)
    assert hasattr(model, "score")
    for use in (lambda: bool(tags.input_tags.pairwise), lambda: model.score(FRAME)):  # type: ignore[attr-defined]
        with pytest.raises(CapabilityError, match=TO_USE):
            use()


def test_fitted_models_are_known_as_fitted() -> None:
    model = Theta(horizon=2).fit(FRAME)
    check_is_fitted(model)
    assert "Fitted" in estimator_html_repr(model)
    assert "Naive" in estimator_html_repr(Conformal(Naive(), horizon=2))
    model.set_params(decomposition="none")
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_positional_target_of_a_fit_is_refused_before_anything_is_read() -> None:
    with pytest.raises(TypeError, match=r"Naive\.fit takes one positional argument, the frame, got 2") as raised:
        Naive().fit(None, np.zeros(3))
    assert isinstance(raised.value, DeepForecastError)


def test_missing_attributes_are_plain_attribute_errors() -> None:
    model: Any = Naive()
    assert not hasattr(model, "state_")
    assert "score" not in dir(model)
    with pytest.raises(AttributeError, match="'Naive' object has no attribute 'predikt'"):
        _ = model.predikt


def test_models_are_made_without_scikit_learn() -> None:
    code = "import sys, deepforecast as d; d.Naive(horizon=1), d.AutoETS(); assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)
