"""Backends that render a chart; each library is imported on first use."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, TypeAlias, get_args

from deepforecast.errors import missing_extra_error
from deepforecast.plotting.chart import Chart
from deepforecast.plotting.choices import unknown_choice

Backend: TypeAlias = Literal["matplotlib", "plotly", "svg"]
BACKENDS: tuple[str, ...] = get_args(Backend)


def check_backend(backend: str) -> None:
    """Raise `ParameterError` for an unknown backend, before any work is done."""
    if backend not in BACKENDS:
        raise unknown_choice("backend", backend, BACKENDS)


def render(chart: Chart, backend: str) -> Any:
    """Render a chart as a matplotlib or plotly figure, or an SVG element."""
    if backend == "svg":
        from deepforecast.plotting.svg_backend import SvgFigure

        return SvgFigure(chart)
    if backend == "plotly":
        need_plotly("backend='plotly'")
        with restore_warning_filters():
            from deepforecast.plotting.plotly_backend import paint

            return paint(chart)
    from deepforecast.plotting.matplotlib_backend import paint as paint_still

    return paint_still(chart)


def need_plotly(what: str) -> None:
    """Raise `DependencyError` where plotly, an optional package, is not installed."""
    try:
        with restore_warning_filters():
            import plotly.graph_objects  # noqa: F401
    except ImportError as error:
        raise missing_extra_error(what, "plotly") from error


@contextmanager
def restore_warning_filters() -> Iterator[None]:
    """Remove the warning filters that plotly adds when its parts are imported.

    Only those: `warnings.catch_warnings` would also discard changes made by other threads.
    """
    initial = list(warnings.filters)
    try:
        yield
    finally:
        for filter_entry in [filter_entry for filter_entry in warnings.filters if filter_entry not in initial]:
            if "plotly" in getattr(filter_entry[1], "pattern", ""):
                with suppress(ValueError):  # another thread was faster
                    warnings.filters.remove(filter_entry)  # type: ignore[attr-defined]
