"""Colours that everybody can tell apart, on white and on a dark page."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from deepforecast.plotting.style import COLORS, NEUTRAL, band_opacity, format_compact, model_style, shorten, stacked_opacity

# How red-, green- and blue-weak eyes see linear RGB (Machado, Oliveira and Fernandes 2009, full severity).
EYES = {
    "usual": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_CONES = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
TO_LAB = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]


def linear(color: str) -> np.ndarray:
    parts = np.array([int(color[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    dark, light = sorted(float(linear(color) @ [0.2126, 0.7152, 0.0722]) for color in (one, other))
    return (light + 0.05) / (dark + 0.05)


def seen(color: str, eye: str) -> np.ndarray:
    """The colour in Oklab, in which distances are those of the eye."""
    light = np.clip(np.asarray(EYES[eye]) @ linear(color), 0, 1)
    return np.asarray(TO_LAB) @ np.cbrt(np.asarray(TO_CONES) @ light)


@pytest.mark.parametrize("page", ["#FFFFFF", "#111111"])
def test_colours_stand_out_on_any_page(page: str) -> None:
    assert min(contrast(color, page) for color in COLORS) >= 3
    assert contrast(NEUTRAL, page) >= 4  # words are in this tone


@pytest.mark.parametrize("eye", list(EYES))
def test_colours_stay_apart_for_every_eye(eye: str) -> None:
    assert min(float(np.linalg.norm(seen(one, eye) - seen(other, eye))) for one, other in combinations(COLORS, 2)) > 0.07


def test_no_two_of_many_models_look_alike() -> None:
    assert len({model_style(index) for index in range(24)}) == 24


@pytest.mark.parametrize(("levels", "models"), [(1, 1), (2, 1), (9, 1), (2, 3)])
def test_bands_together_stay_light(levels: int, models: int) -> None:
    seen_at = [stacked_opacity(band_opacity(levels, models), depth) for depth in range(1, levels + 1)]
    assert seen_at == sorted(seen_at)
    assert 0.1 < seen_at[-1] < 0.5


def test_names_are_cut_in_the_middle_and_controls_are_written_out() -> None:
    assert shorten("a" * 50 + "1", 20).endswith("a1")
    assert len(shorten("a" * 50, 20)) == 20
    assert shorten("a\x1b[31m\n") == "a\\x1b[31m\\n"


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0"), (95.0, "95"), (-1234.5, "-1,234"), (3e9, "3e+09"), (1.23456e-7, "1.23e-07"), (float("nan"), "nan")],
)
def test_numbers_are_told_shortly(value: float, told: str) -> None:
    assert format_compact(value) == told
