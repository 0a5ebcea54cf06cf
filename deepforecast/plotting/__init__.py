"""Plots of tidy frames with matplotlib, plotly or SVG. Each function is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepforecast.plotting.attention import plot_attention
    from deepforecast.plotting.components import plot_components
    from deepforecast.plotting.cross_validation import plot_cross_validation
    from deepforecast.plotting.figure import plot
    from deepforecast.plotting.leaderboard import plot_leaderboard
    from deepforecast.plotting.pareto import plot_pareto
    from deepforecast.plotting.residuals import plot_residuals
    from deepforecast.plotting.training import plot_training

__all__ = [
    "plot", "plot_attention", "plot_components", "plot_cross_validation", "plot_leaderboard", "plot_pareto", "plot_residuals",
    "plot_training",
]  # fmt: skip

_PLACES = {
    "plot": "figure",
    "plot_attention": "attention",
    "plot_components": "components",
    "plot_cross_validation": "cross_validation",
    "plot_leaderboard": "leaderboard",
    "plot_pareto": "pareto",
    "plot_residuals": "residuals",
    "plot_training": "training",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
