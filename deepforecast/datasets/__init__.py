"""Bundled datasets, benchmark sets downloaded on first use, and a generator."""

from deepforecast.datasets.cards import Card
from deepforecast.datasets.catalogue import card, load, names, table
from deepforecast.datasets.generator import generate, truth
from deepforecast.datasets.local_files import where
from deepforecast.datasets.recipe import COVARIATES, Effects, Recipe

__all__ = ["COVARIATES", "Card", "Effects", "Recipe", "card", "generate", "load", "names", "table", "truth", "where"]
