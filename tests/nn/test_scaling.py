"""Scaling: what it takes off it gives back, of any magnitude, and what is missing has no part in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from deepforecast.nn.batch import Batch
from deepforecast.nn.scaling import SCALER_FUNCTIONS, scale_window

SCALERS = list(SCALER_FUNCTIONS)
Y = [[3.0, 5.0, 4.0, 8.0, 6.0, 9.0], [1.0, 1.5, float("nan"), 0.5, 2.0, float("nan")]]


def batch(y: Any) -> Batch:
    values = torch.tensor(y, dtype=torch.float64)
    none, codes = torch.zeros(*values.shape, 0), torch.zeros(*values.shape, 0, dtype=torch.int64)
    zero, one = values.new_zeros(len(values), 1), values.new_ones(len(values), 1)
    return Batch(values, none, none, none[:, 0], codes, codes, codes[:, 0], zero, one)


def z_of(y: Any, scaler: str, season: int = 1) -> tuple[Tensor, Tensor, Any]:
    return scale_window(batch(y), scaler, season, True)


@pytest.mark.parametrize("scaler", SCALERS)
def test_what_is_scaled_comes_back(scaler: str) -> None:
    z, seen, scale = z_of(Y, scaler)
    there = seen > 0
    torch.testing.assert_close(scale.unstandardize(z)[there], torch.tensor(Y, dtype=torch.float64)[there], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        scale.unstandardize(scale.standardize(torch.tensor(Y).double()))[there], torch.tensor(Y).double()[there]
    )


@pytest.mark.parametrize("scaler", [one for one in SCALERS if one != "none"])
@pytest.mark.parametrize("size", [1e-200, 1e-9, 1e12, 1e200])
def test_a_series_of_any_magnitude_looks_the_same(scaler: str, size: float) -> None:
    z, _, _ = z_of(Y, scaler)
    other, _, scale = z_of((torch.tensor(Y).double() * size).tolist(), scaler)
    torch.testing.assert_close(other, z, rtol=1e-5, atol=1e-6)
    assert torch.isfinite(scale.unstandardize(other)).all()


@pytest.mark.parametrize("scaler", ["standard", "robust", "min_max", "last", "revin", "difference"])
def test_a_small_season_on_a_high_level_keeps_its_digits(scaler: str) -> None:
    season = torch.tensor([1.0, 4.0, 2.0, 5.0, 3.0, 0.0]).double()
    z, _, _ = z_of([season.tolist()], scaler)
    lifted, _, scale = z_of([(season + 3e9).tolist()], scaler)
    torch.testing.assert_close(lifted, z, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(scale.unstandardize(lifted)[0], season + 3e9, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scaler", SCALERS)
def test_a_hidden_value_has_no_part_in_it(scaler: str) -> None:
    hidden = torch.tensor(Y)
    hidden[0, 2] = float("nan")
    z, seen, scale = z_of(hidden.tolist(), scaler)
    dropped, _, other = z_of([[3.0, 5.0, 8.0, 6.0, 9.0]], scaler)
    assert z[0, 2] == 0
    assert seen[0].tolist() == [1, 1, 0, 1, 1, 1]
    if scaler != "difference":  # a change over a hole is none
        torch.testing.assert_close(scale.loc[0], other.loc[0])
        torch.testing.assert_close(scale.scale[0], other.scale[0])
        torch.testing.assert_close(z[0, [0, 1, 3, 4, 5]], dropped[0])


@pytest.mark.parametrize("scaler", ["standard", "robust", "min_max", "last", "revin", "difference"])
@pytest.mark.parametrize("value", [7.0, 0.1, 1e9, -3e-9, 0.0])
def test_a_constant_window_has_no_spread(scaler: str, value: float) -> None:
    z, _, scale = z_of([[value] * 6, [float("nan")] * 5 + [value]], scaler)
    assert z.abs().max() == 0
    assert scale.scale.abs().max() == 0
    torch.testing.assert_close(scale.unstandardize(torch.randn(2, 3)), torch.full((2, 3), value, dtype=torch.float64))


def test_an_empty_window_is_zeros() -> None:
    for scaler in SCALERS:
        z, seen, scale = z_of([[float("nan")] * 4], scaler)
        assert (z.abs().max(), seen.max()) == (0, 0)
        assert torch.isfinite(scale.loc).all()
        assert torch.isfinite(scale.scale).all()


def test_places_and_spreads_are_what_they_are_called() -> None:
    y = [[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]]
    wanted = {"standard": (5, 2), "min_max": (2, 7), "mean_abs": (0, 5), "last": (9, 4), "difference": (9, 1), "none": (0, 1)}
    for name, (place, spread) in wanted.items():
        scale = z_of(y, name)[2]
        assert (float(scale.loc), float(scale.scale)) == pytest.approx((place, spread)), name
    assert float(z_of(y, "robust")[2].loc) == pytest.approx(4.5)


def test_the_naive_error_is_that_of_the_season_where_it_fits() -> None:
    y = [[1.0, 3.0, 1.0, 3.0, 2.0, 4.0]]
    learned = replace(batch(y), target=torch.zeros(1, 6, dtype=torch.float64))
    one, two, long = (scale_window(learned, "none", season, True)[2].naive for season in (1, 2, 12))
    assert (float(one), float(two), float(long)) == pytest.approx((9 / 5, 2 / 4, 9 / 5))
    assert float(z_of(y, "none", 2)[2].naive) == 1  # where nothing is learned nobody asks for it


def test_a_head_of_counts_is_only_stretched() -> None:
    _, _, scale = scale_window(batch(Y), "standard", 1, False)
    assert scale.loc.abs().max() == 0
    torch.testing.assert_close(scale.scale[0, 0].item(), 35 / 6)
