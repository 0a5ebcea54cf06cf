"""Gradient boosted trees by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.foreign import Foreign
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.threads import allowed_threads, waiting_passively
from deepforecast.data.frames import Floats
from deepforecast.errors import DependencyError
from deepforecast.models.regression._base import Regressive
from deepforecast.models.regression._samples import Sample


@register
class LightGBM(Regressive):
    """Gradient boosted trees on lags, windows, the calendar and covariates; one model for all series.

    Categories and missing values are the trees' own. Trees know no value beyond those they saw: differences of the target
    (chosen by tests unless given) or `detrend=True` let forecasts go on.
    Reference: Ke et al. (2017), LightGBM: A Highly Efficient Gradient Boosting Decision Tree.
    """

    capabilities = replace(Regressive.capabilities, sign_equivariant=False)
    takes_missing: ClassVar[bool] = True
    gives_quantiles: ClassVar[bool] = True

    learning_example: ClassVar[dict[str, Any]] = {**Regressive.learning_example, "min_rows": 2, "n_trees": 100, "learning_rate": 0.3}

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """What the contract checks try: small trees."""
        return [{"n_trees": 10, "min_rows": 3}, {"n_trees": 10, "min_rows": 3, "strategy": "direct", "quantiles": [0.05, 0.5, 0.95]}]

    n_trees: int = param(200, at_least=1, low=50, high=1000, log=True, help="trees")
    learning_rate: float = param(0.05, above=0, low=0.01, high=0.3, log=True, help="how much each tree counts")
    n_leaves: int = param(31, at_least=2, low=7, high=127, log=True, help="leaves of a tree at most")
    min_rows: int = param(20, at_least=1, low=5, high=100, log=True, help="rows in a leaf at least")
    row_share: float = param(0.9, above=0, at_most=1, low=0.5, high=1.0, help="share of rows each tree is grown on")
    column_share: float = param(0.9, above=0, at_most=1, low=0.5, high=1.0, help="share of columns each tree looks at")
    penalty: float = param(0.0, at_least=0, low=0.0, high=10.0, help="of the squares of leaf values")
    seed: int = param(0, at_least=0, help="of the rows and columns drawn")
    options: dict[str, Any] | None = param(None, help="anything else LightGBM takes, by its own names")

    def _train(self, sample: Sample, level: float | None) -> Any:
        lightgbm = _imported()
        categories = sample.categories or "auto"
        data = lightgbm.Dataset(sample.rows, sample.target, weight=sample.weight, categorical_feature=categories, free_raw_data=True)
        aim = {"objective": "regression"} if level is None else {"objective": "quantile", "alpha": level}
        options = {
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "min_data_in_leaf": self.min_rows,
            "bagging_fraction": self.row_share,
            "bagging_freq": 1 if self.row_share < 1 else 0,
            "feature_fraction": self.column_share,
            "lambda_l2": self.penalty,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": allowed_threads(),
            "verbosity": -1,
            **aim,
            **(self.options or {}),
        }
        return lightgbm.train(options, data, num_boost_round=self.n_trees)

    def _values(self, regressor: Any, rows: Any) -> Floats:
        return np.asarray(regressor.predict(rows, num_threads=allowed_threads()), dtype=np.float64)

    def _written(self, regressor: Any, foreign: Foreign) -> dict[str, Any]:
        return {"text": np.frombuffer(regressor.model_to_string().encode(), dtype=np.uint8)}

    def _revived(self, said: Mapping[str, Any], foreign: Foreign) -> Any:
        return _imported().Booster(model_str=said["text"].tobytes().decode())


def _imported() -> Any:
    try:
        with waiting_passively("lightgbm"):
            import lightgbm
    except ImportError:
        raise DependencyError("LightGBM needs the package lightgbm. Install it: pip install 'deepforecast[lightgbm]'.") from None
    return lightgbm
