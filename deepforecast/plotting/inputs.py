"""Errors for objects passed in place of a frame, with what to pass instead."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import narwhals.stable.v2 as nw

from deepforecast.data import frames
from deepforecast.errors import DataError, format_value

EXPECTED_TYPES = {
    "table": "a leaderboard or a frame of scores",
    "report": "a fitted network or its `training_report_`",
}
ADVICE = {
    "history": "Use plot(history, model.predict(horizon=12)).",
    "forecast": "Pass model.predict(horizon=12).",
    "table": "Pass compare([model], history, horizon=12).",
    "report": "Pass a fitted network, such as LSTM.",
    "explanation": "Pass explain() of a model with attention, such as Transformer.",
}
BACKTEST_HINT = "Pass cross_validate([model], history, horizon=12)."
SEARCH_HINT = "Use result.plot() to plot the search, or fit result.best_model."


def open_input(value: Any, what: str) -> nw.DataFrame[Any]:
    """Open a frame; models, leaderboards and search results raise `DataError` with a hint."""
    value_type = value if isinstance(value, type) else type(value)
    if hasattr(value_type, "best_params"):
        raise _input_error("the result of a search", what, SEARCH_HINT)
    if hasattr(value_type, "distances"):
        raise _input_error("a leaderboard", what, ADVICE.get(what, BACKTEST_HINT))
    if hasattr(value_type, "fit") and hasattr(value_type, "predict"):
        raise _input_error(format_value(value), what, _model_hint(value, what))
    return frames.to_narwhals(value, what)


def is_decomposition(columns: Collection[str]) -> bool:
    """Whether these are the columns of the result of `decompose`."""
    return {"trend", "remainder"} <= set(columns)


def _input_error(description: str, what: str, advice: str) -> DataError:
    return DataError(
        f"The {what} must be {EXPECTED_TYPES.get(what, 'a pandas, polars or pyarrow DataFrame')}, got {description}. {advice}"
    )


def _model_hint(model: Any, what: str) -> str:
    """What to pass instead of a model to the plot of `what`."""
    attends = getattr(model, "has_attention", False) is True
    if what in ("components", "components ahead"):
        if attends:
            return "Use plot_attention(model.explain()) to plot its attention."
        explains = getattr(getattr(model, "capabilities", None), "explains", False)
        return "Pass model.explain()." if explains else "This model has no components. Pass decompose(history)."
    if what == "explanation" and attends:
        return "Pass model.explain()."
    return ADVICE.get(what, BACKTEST_HINT)
