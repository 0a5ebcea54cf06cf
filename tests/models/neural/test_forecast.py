"""What a network says is held within bounds."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast import LSTM, MLP, NBEATS
from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.models.neural._forecast import QuantileFactors
from tests.models.neural.test_predict import fitted, panel


@pytest.mark.parametrize("rest", [{}, {"head": "normal"}, {"head": "point"}])
def test_bounds_hold_points_bands_and_paths(rest: dict[str, str]) -> None:
    free, model = fitted("MLP", **rest), fitted("MLP", bounds=(0, 1.5), **rest)
    level = None if rest.get("head") == "point" else 95
    plain, found = (one.predict(14, level=level).iloc[:, 2:].to_numpy() for one in (free, model))
    assert plain.min() < 0
    assert plain.max() > 1.5
    assert (found.min(), found.max()) == (0, 1.5)
    if level:
        paths = model.simulate(50, 14)["MLP"]
        assert (paths.min(), paths.max()) == (0, 1.5)


def test_bounds_hold_steps_taken_in_turn() -> None:
    model = LSTM(horizon=4, input_size=8, hidden_size=4, max_steps=2, output="autoregressive", bounds=(0, None))
    model.fit(panel(2, 60))
    assert model.predict(level=80).iloc[:, 2:].min().min() >= 0
    assert model.simulate(20)["LSTM"].min() >= 0


def test_the_parts_of_a_bounded_forecast_add_up_to_it() -> None:
    model = NBEATS(
        horizon=6, input_size=24, stacks=["trend", "season"], hidden_sizes=[8], max_steps=3, head="point", bounds=(0, 1)
    )
    model.fit(panel(3, 60))
    parts = model.explain().pivot_table(index=["unique_id", "ds"], columns="component", values="value")
    np.testing.assert_allclose(parts.sum(axis=1), model.predict()["NBEATS"], atol=1e-4)


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0)])
def test_bounds_that_are_none_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(ParameterError, match="`bounds` must be a lower and a larger upper bound"):
        MLP(horizon=2, bounds=bounds).fit(panel(1, 30))


def test_a_point_has_no_level() -> None:
    with pytest.raises(CapabilityError, match="MLP cannot forecast levels"):
        fitted("MLP", head="point").predict(level=80)


def test_the_median_is_the_quantile_of_one_half() -> None:
    found = fitted("MLP").predict(quantiles=[0.1, 0.5, 0.9])
    assert (found["MLP"] == found["MLP-q-0.5"]).all()


def test_factors_of_each_series_are_those_of_one() -> None:
    probabilities, factors = np.array([0.1, 0.4, 0.9]), np.array([2.0, 1.5, 0.5])
    shared = QuantileFactors(probabilities, factors).at([0.05, 0.25, 0.45, 0.5, 0.95])
    assert shared.tolist() == [2.0, 1.75, 1.5, 0.5, 0.5]
    by_series = QuantileFactors(probabilities, np.stack([factors, 2 * factors])).at([0.05, 0.25, 0.45, 0.5, 0.95])
    assert by_series.tolist() == [shared.tolist(), (2 * shared).tolist()]
