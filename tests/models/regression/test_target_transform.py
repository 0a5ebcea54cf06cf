"""What is learned in place of the target: each way there has a way back, to the last digits that doubles allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
from deepforecast.models.regression._target_transform import (
    POWER_GRID,
    TargetTransform,
    box_cox_transform,
    difference,
    inverse_box_cox,
)

LENGTHS, H = (30, 17, 41), 6


def panel_of(parts: list[np.ndarray]) -> Panel:
    frames = [
        pd.DataFrame({"unique_id": f"s{one}", "ds": pd.date_range("2024-01-01", periods=len(y)), "y": y})
        for one, y in enumerate(parts)
    ]
    return Panel.from_frame(pd.concat(frames, ignore_index=True))


def parts_of(seed: int, level: float, spread: float) -> list[np.ndarray]:
    """Series above 0 that drift, each with H values more than are learned from."""
    random = np.random.default_rng(seed)
    return [level * np.exp(spread * np.cumsum(random.normal(size=n + H))) for n in LENGTHS]


TARGETS = st.builds(
    TargetTransform,
    st.sampled_from([None, "log", "box_cox"]),
    st.booleans(),
    st.sampled_from([(), (1,), (7,), (7, 1), (2, 3, 1)]),
    st.booleans(),
)


@settings(max_examples=60)
@given(TARGETS, st.integers(0, 10_000), st.sampled_from([1e-6, 1.0, 3e7]), st.sampled_from([0.01, 0.1]))
def test_forward_and_back_are_inverses(target: TargetTransform, seed: int, level: float, spread: float) -> None:
    """What later values are on the scale that is learned, taken back from the end of the history, is these values."""
    whole = parts_of(seed, level, spread)
    early = [y[:-H] for y in whole]
    panel, grown = panel_of(early), panel_of(whole)
    z, held = target.fit(panel, "it")
    applied = target.apply(grown.y, grown.indptr, held, np.zeros(3, dtype=np.int64))
    begun = np.concatenate([applied[start : start + len(y)] for start, y in zip(grown.indptr, early, strict=False)])
    np.testing.assert_allclose(begun, z, rtol=1e-9, atol=1e-9)
    ahead = np.stack([applied[end - H : end] for end in grown.indptr[1:]])
    past, passed = np.stack([y[-16:] for y in early]), np.array([len(y) for y in early])
    ends = target.start_values(
        target.detrend_power(panel.y, panel.indptr, held, np.zeros(3, dtype=np.int64)), panel.indptr, held["drift"]
    )
    found = target.invert(ahead, held, target.difference_starts(ends), passed)
    np.testing.assert_allclose(found, [y[-H:] for y in whole], rtol=1e-7)
    tail = target.transform_tail(past, held, passed)
    wanted = [z[end - tail.shape[1] : end] for end in panel.indptr[1:]]
    np.testing.assert_allclose(tail, wanted, rtol=1e-7, atol=1e-7)


@given(st.floats(1e-8, 1e8), st.sampled_from(POWER_GRID.tolist()))
def test_a_power_is_undone(value: float, power: float) -> None:
    y, powers = np.array([value]), np.array([power])
    moved = box_cox_transform(y, powers)
    if power * moved[0] > -0.999_99 and abs(power * moved[0]) < 1e6:  # else the bend has swallowed the digits
        np.testing.assert_allclose(inverse_box_cox(moved, powers), y, rtol=1e-6)


def test_powers_are_those_of_box_and_cox() -> None:
    y = np.array([0.5, 1.0, 4.0])
    np.testing.assert_allclose(box_cox_transform(y, np.zeros(3)), np.log(y))
    np.testing.assert_allclose(box_cox_transform(y, np.full(3, 0.5)), 2 * (np.sqrt(y) - 1))
    np.testing.assert_array_equal(box_cox_transform(y, np.ones(3)), y)


@pytest.mark.parametrize(("make", "wanted"), [(np.exp, 0.0), (np.square, 0.5), (lambda x: x, 1.0)])
def test_box_cox_finds_the_power_under_which_values_are_normal(make: Any, wanted: float) -> None:
    values = 10 + np.random.default_rng(3).normal(size=3000)
    _, held = TargetTransform("box_cox").fit(panel_of([make(values)]), "it")
    assert held["power"][0] == pytest.approx(wanted, abs=0.3)


def test_what_is_learned_has_mean_0_and_spread_1_and_starts_after_its_differences() -> None:
    panel = panel_of(parts_of(1, 5.0, 0.1))
    z, _ = TargetTransform(differences=(7, 1)).fit(panel, "it")
    for begin, end in zip(panel.indptr, panel.indptr[1:], strict=False):
        assert np.isnan(z[begin : begin + 8]).all()
        assert np.mean(z[begin + 8 : end]) == pytest.approx(0, abs=1e-12)
        assert np.std(z[begin + 8 : end]) == pytest.approx(1)


def test_a_line_is_taken_out_whole() -> None:
    z, held = TargetTransform(detrend=True).fit(panel_of([3.0 + 2.0 * np.arange(20), 5.0 - np.arange(9.0)]), "it")
    np.testing.assert_allclose(held["line"], [[3, 2], [5, -1]], atol=1e-9)
    np.testing.assert_allclose(z, 0, atol=1e-9)


def test_differences_stay_within_a_series() -> None:
    found = difference(np.array([1.0, 4.0, 9.0, 100.0, 101.0]), np.array([0, 3, 5]), 1)
    np.testing.assert_array_equal(found, [np.nan, 3, 5, np.nan, 1])


def test_a_difference_goes_on_from_the_last_value_where_some_lack() -> None:
    ends = TargetTransform(differences=(1,)).start_values(np.array([1.0, 2.0, 4.0, np.nan]), np.array([0, 4]), np.array([1.5]))
    assert ends.tolist() == [[5.5]]


def test_a_season_goes_on_from_its_own_places_where_some_lack() -> None:
    y = np.array([1.0, 5.0, 9.0, 2.0, 6.0, np.nan, np.nan, 8.0, np.nan, np.nan])
    ends = TargetTransform(differences=(3,)).start_values(y, np.array([0, len(y)]), np.array([1.0]))
    assert ends.tolist() == [[8.0, 11.0, 4.0]]


def test_before_a_series_began_stands_its_first_value() -> None:
    ends = TargetTransform(differences=(3, 1)).start_values(np.array([np.nan, 5.0, 6.0]), np.array([0, 3]), np.zeros(1))
    assert ends.tolist() == [[5.0, 5.0, 5.0, 6.0]]


def test_last_digits_of_what_repeats_itself_are_no_spread() -> None:
    week = np.tile(np.sqrt(np.arange(1.0, 8.0)), 6) + 0.1 * np.arange(42)
    z, held = TargetTransform(differences=(7, 1)).fit(panel_of([week, np.zeros(42)]), "it")
    assert held["scale"].tolist() == [0, 0]
    assert np.nanmax(np.abs(z)) == 0


def test_the_mean_of_a_bent_target_lies_above_its_median() -> None:
    target, panel = TargetTransform("log", scale=False), panel_of([np.exp(np.array([0.0, 1.0, 2.0, 1.0]))])
    _, held = target.fit(panel, "it")
    where, passed = np.array([[1.0, 1.0]]), np.array([4])
    assert target.invert(where, held, [], passed)[0, 0] == pytest.approx(np.e)
    raised = target.invert(where, held, [], passed, np.array([0.4]))
    assert raised[0, 0] == pytest.approx(np.exp(1 + 0.4**2 / 2), rel=0.02)
    walk = TargetTransform("log", differences=(1,), scale=False)
    _, kept = walk.fit(panel, "it")
    tails = walk.difference_starts(np.array([[1.0]]))
    means = walk.invert(np.zeros((1, 2)), kept, tails, passed, np.array([0.4]))[0]
    assert means[1] > means[0] > np.e  # errors of a walk add up


def test_a_power_of_what_is_not_above_0_is_refused_by_series_and_value() -> None:
    panel = panel_of([np.array([1.0, 2.0]), np.array([1.0, -3.0])])
    with pytest.raises(
        DataError, match=r"Mine: values must be positive with transform='log', got -3 in series s1.*Use transform=None"
    ):
        TargetTransform("log").fit(panel, "Mine")
