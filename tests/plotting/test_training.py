"""`plot_training`: losses, the step that was kept, and why the run ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import MLP, Naive
from deepforecast.errors import DataError, NotFittedError
from deepforecast.plotting import plot_training
from deepforecast.plotting.style import COLORS

STEPS = np.arange(1, 201)
REPORT = pd.DataFrame({
    "step": STEPS, "loss": 1.0 + 1.0 / STEPS, "learning_rate": 0.1 / STEPS, "gradient_norm": 1000.0 / STEPS, "seconds": 0.01 * STEPS,
    "validation_loss": np.where(STEPS % 50 == 0, 2.0 + (STEPS - 100) ** 2 / 1e4, np.nan), "selected": STEPS == 100,
})  # fmt: skip


class Network:
    """A fitted network as far as it is drawn."""

    training_report_, stop_reason_ = REPORT, "all steps done"


def test_fitted_network_is_drawn_by_its_report() -> None:
    drawn, expected = plot_training(Network()), plot_training(REPORT, stop_reason="all steps done")
    assert drawn.get_suptitle() == expected.get_suptitle() == "weights of step 100 of 200; all steps done"
    np.testing.assert_array_equal(drawn.axes[0].lines[0].get_ydata(), REPORT.loss)


def test_models_without_training_steps_are_refused() -> None:
    with pytest.raises(DataError, match=r"must be a fitted network or its `training_report_`, got Naive\(\)"):
        plot_training(Naive())
    with pytest.raises(NotFittedError, match="MLP has not been fitted"):
        plot_training(MLP(horizon=2))


def test_what_is_drawn(library: Callable[..., Any]) -> None:
    figure = plot_training(library(REPORT), stop_reason="no better on validation")
    loss, rate, norm = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss", "learning rate", "gradient norm (log scale)"]
    assert figure.get_suptitle() == "weights of step 100 of 200; no better on validation"
    every, mean, validation = loss.lines[:3]
    np.testing.assert_allclose(every.get_ydata(), REPORT.loss)
    np.testing.assert_allclose(mean.get_ydata(), REPORT.loss.groupby((STEPS - 1) // 4).mean())
    np.testing.assert_allclose(mean.get_xdata(), np.arange(2.5, 200, 4))
    assert validation.get_xdata().tolist() == [50, 100, 150, 200]
    assert validation.get_ydata().tolist() == [2.25, 2.0, 2.25, 3.0]
    np.testing.assert_allclose(rate.lines[0].get_ydata(), REPORT.learning_rate)
    for axes in figure.axes:
        assert axes.lines[-1].get_xdata()[0] == 100
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["training (mean over steps)", "validation"]
    assert (loss.get_yscale(), norm.get_yscale()) == ("linear", "log")


def test_a_short_run_without_validation() -> None:
    figure = plot_training(REPORT[["step", "loss", "learning_rate", "gradient_norm"]][:30])
    assert [line.get_color() for line in figure.axes[0].lines] == [COLORS[0]]
    assert figure.get_suptitle() == ""


def test_losses_that_were_no_number_break_the_line() -> None:
    broken = REPORT.assign(loss=REPORT.loss.where((STEPS < 50) | (STEPS > 60)))
    mean = plot_training(broken).axes[0].lines[1].get_ydata()
    assert np.isnan(mean).sum() == 2
    assert np.isnan(plot_training(broken.assign(loss=np.nan)).axes[0].lines[1].get_ydata()).all()


def test_plotly_draws_the_same() -> None:
    figure = plot_training(REPORT, stop_reason="all steps done", backend="plotly")
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    np.testing.assert_allclose(lines[0].y, REPORT.loss)
    assert "step 100: 2" in [text for trace in figure.data if trace.mode == "markers" and trace.text for text in trace.text]
    assert any("weights of step 100 of 200" in (one.text or "") for one in figure.layout.annotations)
    assert figure.layout.yaxis3.type == "log"


def test_refusals() -> None:
    with pytest.raises(DataError, match="must have the columns step, loss, learning_rate, gradient_norm, got"):
        plot_training(REPORT.drop(columns="gradient_norm"))
    with pytest.raises(DataError, match="non-empty DataFrame, got 0 rows"):
        plot_training(REPORT[:0])
