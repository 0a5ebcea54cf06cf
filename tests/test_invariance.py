"""I1 to I4, I8, I9, I11, C6: what may not change a forecast, and how its bands lie.

Order, units and dtypes (I1, I9) are settled before a model sees the data: one of each kind; the contract tries every one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Forecaster
from deepforecast.testing.subject import Subject
from tests.bad_input import ALL, KINDS, LOCAL, WITH_BANDS, made, undated, within
from tests.frames import D, P, joined, same

H = 5


def noisy(k: int = 3, n: int = 44) -> pd.DataFrame:
    frame = P(k, n)
    return frame.assign(y=np.round(64 * (frame["y"] + np.random.default_rng(0).normal(size=len(frame)))) / 64)


def levels(model: Forecaster) -> list[int] | None:
    return [50, 80] if model.capabilities.distribution is not None else None


def forecast(subject: Subject, frame: Any, **fit: Any) -> pd.DataFrame:
    model = made(subject, H)
    return model.fit(frame, **fit).predict(level=levels(model))


def numbers(found: pd.DataFrame) -> np.ndarray:
    return np.asarray(found.select_dtypes("float64"))


def of(found: pd.DataFrame, name: Any) -> np.ndarray:
    return numbers(found[found["unique_id"] == name])


@KINDS
def test_row_order(subject: Subject) -> None:
    frame = noisy()
    wanted = forecast(subject, frame)
    for other in (frame[::-1], frame.sample(frac=1, random_state=0), frame.sort_values("ds", kind="stable")):
        same(forecast(subject, other), wanted)


@LOCAL
def test_series_order_labels_and_an_unrelated_series(subject: Subject) -> None:
    frame = noisy()
    wanted = forecast(subject, frame)
    names = {"s001": "zebra", "s002": "m", "s003": "a"}
    huge = 1e9 * np.random.default_rng(1).normal(size=30)
    unrelated = D("other", 30, start="1999-05-05").assign(y=within(subject, huge))
    renamed = frame.assign(unique_id=frame["unique_id"].map(names))
    for other in (renamed, joined(renamed, unrelated), joined(unrelated, renamed[::-1])):
        found = forecast(subject, other)
        for old, new in names.items():
            np.testing.assert_array_equal(of(found, new), of(wanted, old))


@ALL
def test_other_series_at_predict(subject: Subject) -> None:
    frame = noisy()
    model = made(subject, H).fit(frame)
    wanted = model.predict(frame=frame, level=levels(model))
    for name in ("s001", "s003"):
        found = model.predict(frame=frame[frame["unique_id"] == name], level=levels(model))
        np.testing.assert_allclose(of(found, name), of(wanted, name), rtol=0 if model.capabilities.local else 1e-6)


@ALL
@pytest.mark.parametrize(
    ("freq", "start", "later"),
    [("D", "2024-01-01", "1971-06-09"), ("h", "2024-01-01", "2031-07-01 05:00"), ("MS", "2001-01-01", "1950-05-01")],
)
def test_time_shift(subject: Subject, freq: str, start: str, later: str) -> None:
    parts = [D("A", 44, freq, start), D("A", 44, freq, later)]
    y = noisy(1)["y"]
    model = undated(made(subject, H))
    found = [model.clone().fit(part.assign(y=y)).predict(level=levels(model)) for part in parts]
    in_days = hasattr(type(model), "dateless")  # months are not of one length to a model that counts days
    np.testing.assert_allclose(numbers(found[0]), numbers(found[1]), rtol=0.01 if in_days and freq == "MS" else 0)


@KINDS
def test_unit_of_ds_dtype_of_y_and_type_of_the_ids(subject: Subject) -> None:
    frame = noisy()
    wanted = numbers(forecast(subject, frame))
    for unit in ("s", "ms", "us", "ns"):
        found = forecast(subject, frame.assign(ds=frame["ds"].astype(f"datetime64[{unit}]")))
        assert found["ds"].dtype == f"datetime64[{unit}]"
        np.testing.assert_array_equal(numbers(found), wanted)
    for dtype in ("float32", "Float64", "double[pyarrow]"):
        np.testing.assert_array_equal(numbers(forecast(subject, frame.assign(y=frame["y"].astype(dtype)))), wanted)
    for ids in (
        frame["unique_id"].str[1:].astype("int64"),
        frame["unique_id"].str[1:].astype("uint8"),
        frame["unique_id"].astype("category"),
        frame["unique_id"].astype(object),
    ):
        found = forecast(subject, frame.assign(unique_id=ids))
        assert found["unique_id"].dtype == ids.dtype
        np.testing.assert_array_equal(numbers(found), wanted)


@ALL
def test_shorter_horizon_is_the_beginning_of_a_longer_one(subject: Subject) -> None:
    """Asked of one fit, and of fits for either horizon: of these, calibrated bands rest on other windows, and one regressor
    that gives all steps of its horizon together is another for another horizon."""
    model = made(subject, 2 * H).fit(noisy())
    longer, shorter = (model.predict(steps, level=levels(model)) for steps in (2 * H, H))
    same(shorter, longer.groupby("unique_id").head(H).reset_index(drop=True))
    if model.capabilities.local and getattr(model, "strategy", None) != "direct_multioutput":
        kept = [name for name in longer if not (model.calibrates and name.startswith(f"{model.name}-"))]
        same(forecast(subject, noisy())[kept], shorter[kept])


@WITH_BANDS
def test_intervals_are_central_nested_and_of_zero_width_around_a_constant(subject: Subject) -> None:
    model = made(subject, H)
    found = model.fit(noisy(1)).predict(level=[50, 80], quantiles=[0.1, 0.25, 0.75, 0.9])
    at = {name.removeprefix(f"{model.name}-"): found[name] for name in found}
    assert (at["hi-80"] - at["lo-80"] > at["hi-50"] - at["lo-50"]).all()
    for side, level, quantile in (("lo", 80, 0.1), ("lo", 50, 0.25), ("hi", 50, 0.75), ("hi", 80, 0.9)):
        np.testing.assert_array_equal(at[f"{side}-{level}"], at[f"q-{quantile}"])
    steady = made(subject, H).fit(noisy(1).assign(y=7.0)).predict(level=[50, 80])
    precision = 1e-6 if model.capabilities.local else 7e-3
    np.testing.assert_allclose(numbers(steady), 7.0, rtol=0, atol=precision)
