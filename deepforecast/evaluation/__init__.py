"""Evaluation of forecasts: rolling cross-validation, metrics, model comparison and significance
tests.

The functions are imported by name because some modules share their name.
"""

from deepforecast.evaluation.backtesting import BacktestOptions
from deepforecast.evaluation.compare import compare
from deepforecast.evaluation.cross_validation import cross_validate
from deepforecast.evaluation.faithfulness import faithfulness
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.score import score

__all__ = ["BacktestOptions", "Leaderboard", "compare", "cross_validate", "faithfulness", "score"]
