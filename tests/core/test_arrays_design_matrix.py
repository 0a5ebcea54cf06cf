"""Columns known ahead as numbers for a linear term."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from deepforecast import ARIMA, ETS, AutoARIMA, NeuralProphet, UnobservedComponents, cross_validate
from deepforecast.core.arrays import design_matrix, standardize
from deepforecast.data.covariates import UNKNOWN, Covariate
from deepforecast.errors import DataWarning


def test_numbers_are_taken_as_they_are_and_steps_ahead_are_flattened():
    found = design_matrix(
        {"a": Covariate(np.array([[1.0, 2.0], [3.0, 4.0]])), "b": Covariate(np.array([[5.0, np.nan], [7.0, 8.0]]))}
    )
    np.testing.assert_array_equal(found, [[1, 5], [2, np.nan], [3, 7], [4, 8]])


def test_a_category_is_coded_against_the_mean_and_an_unknown_one_is_average():
    found = design_matrix({"day": Covariate(np.array([0.0, 1.0, 2.0, UNKNOWN]), ("a", "b", "c"))})
    np.testing.assert_array_equal(found, [[1, 0], [0, 1], [-1, -1], [0, 0]])


def test_columns_are_centred_and_scaled_within_each_series():
    matrix = np.array([[1.0], [3.0], [10.0], [20.0], [30.0]])
    away, centre, scale = standardize(matrix, np.array([0, 2, 5]))
    np.testing.assert_allclose(centre[:, 0], [2, 20])
    np.testing.assert_allclose(scale[:, 0], [1, np.std([10, 20, 30])])
    np.testing.assert_allclose(away[:2, 0], [-1, 1])


def test_a_column_that_never_varies_counts_as_nothing_and_a_missing_one_stays_missing():
    away, _, scale = standardize(np.array([[5.0, 1.0], [5.0, np.nan], [5.0, 3.0]]), np.array([0, 3]))
    np.testing.assert_array_equal(away[:, 0], 0)
    assert scale[0, 0] == np.inf
    np.testing.assert_array_equal(away[:, 1], [-1, np.nan, 1])


@pytest.mark.parametrize("categories", [(), ("a",)])
def test_a_covariate_with_at_most_one_category_has_no_column(categories):
    matrix = design_matrix({"day": Covariate(np.full(5, UNKNOWN), categories)})
    assert [array.shape for array in (matrix, *standardize(matrix, np.array([0, 2, 5])))] == [(5, 0), (5, 0), (2, 0), (2, 0)]


@pytest.mark.parametrize("model", [ETS(season_length=1), NeuralProphet(max_steps=2, trainer={"accelerator": "cpu"})], ids=str)
@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_categories_may_be_unknown_in_a_whole_training_window(model):
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=40), "y": noise(0)})
    frame["c"] = pd.Categorical([None] * 36 + ["a", "b"] * 2)
    forecasts = cross_validate(model, frame, horizon=4, n_windows=1, columns={"future": ["c"]})
    assert forecasts[model.name].notna().all()


def test_no_columns():
    assert design_matrix({}).shape == (0, 0)


def series(x, shop, ids=("a", "b")):
    rows = [
        pd.DataFrame({"id": one, "ds": pd.date_range("2024-01-01", periods=40), "y": noise(place), "x": x[place], "shop": shop})
        for place, one in enumerate(ids)
    ]
    return shops(pd.concat(rows))


def shops(frame):
    return frame.assign(shop=pd.Categorical(frame["shop"], ["open", "shut"]))


def noise(seed):
    return np.random.default_rng(seed).normal(10, 1, 40)


def beside(frame, **columns):
    stamps = pd.date_range("2024-02-10", periods=3)
    return shops(pd.concat([pd.DataFrame({"id": one, "ds": stamps, **columns}) for one in frame["id"].unique()]))


MODELS = [
    ARIMA(horizon=3, order=(1, 0, 0)),
    AutoARIMA(horizon=3, season_length=1),
    ETS(horizon=3, season_length=1),
    UnobservedComponents(horizon=3, season_length=1),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
def test_a_column_that_never_varied_in_fit_and_does_ahead_is_said_once(model):
    frame = series([np.zeros(40), np.arange(40.0) % 3], "open")
    model = model.clone().fit(frame, columns={"id": "id", "future": ["x", "shop"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(future=beside(frame, x=[0.0] * 3, shop="open"))
    with pytest.warns(DataWarning, match=r"x of series '?a'?\. Their") as said:
        model.predict(future=beside(frame, x=[0.0, 1.0, 0.0], shop="open"))
    assert len(said) == 1
    new = beside(frame, x=[0.0] * 3, shop="open").assign(y=10.0)
    model.update(new)
    with pytest.warns(DataWarning, match="x of series"):
        model.predict(1, future=new.groupby("id").head(1).drop(columns="y").assign(ds=pd.Timestamp("2024-02-13"), x=5.0))


def test_a_category_that_stays_the_same_in_fit_is_said_too():
    frame = series([np.arange(40.0) % 3] * 2, ["open"] * 39 + ["shut"])
    frame.loc[frame["shop"] == "shut", "y"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ARIMA(horizon=3, order=(1, 0, 0)).fit(frame, columns={"id": "id", "future": ["x", "shop"]})
    with pytest.warns(DataWarning, match="shop of series"):
        model.predict(future=beside(frame, x=[0.0] * 3, shop="shut"))
