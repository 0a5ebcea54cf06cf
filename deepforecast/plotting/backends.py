"""The libraries that can paint a chart; each is imported when it is asked for."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from deepforecast.plotting.chart import Chart
from deepforecast.plotting.choices import unknown

Backend: TypeAlias = Literal["matplotlib", "plotly"]
BACKENDS = ("matplotlib", "plotly")


def check_backend(backend: str) -> None:
    """Refuse another name before any work is done."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)


def render(chart: Chart, backend: str) -> Any:
    """The chart as a figure of matplotlib or plotly."""
    if backend == "plotly":
        from deepforecast.plotting.plotly_backend import paint

        return paint(chart)
    from deepforecast.plotting.matplotlib_backend import paint as paint_still

    return paint_still(chart)
