"""Whatever head a network ends in: forecasts, bands, paths and files, within what its values can be."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from deepforecast import MLP, load
from deepforecast.errors import CapabilityError, DataError
from deepforecast.models.neural import _base
from deepforecast.nn.heads.registry import HEADS
from tests.models.neural.test_predict import panel

# 60 steps are too few for good intervals.
pytestmark = pytest.mark.filterwarnings("ignore:.*after calibration", "ignore:.*lie far outside")

LEVELS = [50, 80, 95]
NOT_NEGATIVE = [name for name, one in HEADS.items() if one.support != "real"]


def demand() -> pd.DataFrame:
    """Whole numbers, six of ten of them 0."""
    rng = np.random.default_rng(0)
    return panel(4, 90).assign(y=rng.poisson(6.0, 360) * (rng.random(360) < 0.4)).astype({"y": float})


@cache
def fitted(name: str, **said: Any) -> Any:
    frame = demand() if name != "lognormal" else demand().assign(y=lambda one: one.y + 1)
    return MLP(horizon=4, input_size=12, hidden_sizes=[16], **{"max_steps": 60, "batch_size": 128, **said}, head=name).fit(
        frame
    )


def test_every_head_is_known_to_the_models() -> None:
    assert set(get_args(_base.HeadName)) == set(HEADS)


@pytest.mark.parametrize("name", HEADS)
def test_bands_are_nested_around_the_median_and_within_what_values_can_be(name: str) -> None:
    model = fitted(name)
    if not HEADS[name].has_distribution:
        assert np.isfinite(model.predict()["MLP"]).all()
        with pytest.raises(CapabilityError, match="no predictive distribution"):
            model.predict(level=80)
        return
    found = model.predict(9, level=LEVELS, quantiles=[0.5])
    columns = [*(f"MLP-lo-{level}" for level in reversed(LEVELS)), "MLP-q-0.5", *(f"MLP-hi-{level}" for level in LEVELS)]
    values = found[columns].to_numpy()
    assert np.isfinite(values).all()
    assert (np.diff(values, axis=1) >= 0).all()
    if name in NOT_NEGATIVE:
        assert values.min() >= 0
    if HEADS[name].is_count:
        np.testing.assert_allclose(values[: , 0], values[:, 0].round(), atol=1e-9)


@pytest.mark.parametrize("name", [one for one in HEADS if HEADS[one].has_distribution])
def test_paths_lie_as_the_bands(name: str) -> None:
    model = fitted(name)
    paths = model.simulate(300)["MLP"].to_numpy().reshape(4, 300, 4)
    high = model.predict(quantiles=[0.9])["MLP-q-0.9"].to_numpy().reshape(4, 1, 4)
    assert (paths > high + 1e-9).mean() <= 0.13
    assert (paths >= high - 1e-9).mean() >= 0.07
    if name in NOT_NEGATIVE:
        assert paths.min() >= 0


@pytest.mark.parametrize("name", HEADS)
def test_a_file_says_the_same(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    model.save(tmp_path / "model")
    level = 80 if HEADS[name].has_distribution else None
    pd.testing.assert_frame_equal(load(tmp_path / "model").predict(level=level), model.predict(level=level), check_exact=True)


@pytest.mark.parametrize("name", NOT_NEGATIVE)
def test_values_below_zero_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="y"):
        MLP(horizon=2, head=name, max_steps=1).fit(panel(1, 40))


def test_the_mean_of_intermittent_demand_is_learned_where_its_median_is_nothing() -> None:
    model = fitted("tweedie", batch_size=256, intervals="uncalibrated")  # learns in one part
    assert (model.predict()["MLP"] == 0).mean() > 0.5
    mean = model.clone(point="mean").fit(demand()).predict()["MLP"]
    assert mean.mean() == pytest.approx(demand().y.mean(), rel=0.35)
