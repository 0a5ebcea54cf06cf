"""The dataset `generated`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepforecast.datasets.cards import Card
from deepforecast.datasets.entries import Entry, entry_from_frame
from deepforecast.datasets.generator import generate
from deepforecast.datasets.recipe import Recipe

if TYPE_CHECKING:
    import pandas as pd

RECIPE = Recipe(covariates="all")


def entries() -> list[Entry]:
    """The entry of `generate` with all covariates and defaults otherwise."""
    card = Card(
        name="generated",
        description="synthetic series with trend, weekly season, noise and all kinds of covariates with known effects",
        frequency="D",
        season_length=7,
        horizon=14,
        series=3,
        rows=600,
        licence="Apache-2.0",
        reference="deepforecast.datasets.generate",
        source="deepforecast",
        note="the same as generate(recipe=Recipe(covariates='all')); the effects are in Effects()",
        future=RECIPE.columns["future"],
        past=RECIPE.columns["past"],
        static=RECIPE.columns["static"],
    )
    return [entry_from_frame(card, _generate_frame)]


def _generate_frame() -> pd.DataFrame:
    return generate(recipe=RECIPE)
