"""Where panels stand."""

from __future__ import annotations

from deepforecast.plotting.chart import Chart, Panel

ONE, WIDE = Panel(()), Panel((), span=2)


def test_panels_fill_row_by_row_and_the_rest_stays_empty() -> None:
    assert Chart((ONE, ONE, ONE), columns=2).cells == [[0, 1], [2, -1]]
    assert Chart((ONE, WIDE, ONE), columns=2).cells == [[0, -1], [1, 1], [2, -1]]


def test_place_is_the_first_cell_of_a_panel() -> None:
    chart = Chart((WIDE, ONE, ONE), columns=2)
    assert [chart.first_cell(at) for at in range(3)] == [(0, 0), (1, 0), (1, 1)]
