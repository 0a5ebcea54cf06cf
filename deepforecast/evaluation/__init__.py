"""Forecasts of the past held against what came true: rolling windows, metrics, comparisons with their significance.

The functions stand here by name, so that `from deepforecast.evaluation import *` gives them and not the modules they are in.
"""

from deepforecast.evaluation.backtesting import BacktestOptions
from deepforecast.evaluation.compare import compare
from deepforecast.evaluation.cross_validation import cross_validate
from deepforecast.evaluation.faithfulness import faithfulness
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.score import score

__all__ = ["BacktestOptions", "Leaderboard", "compare", "cross_validate", "faithfulness", "score"]
