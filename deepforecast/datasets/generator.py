"""Synthetic series with known components, for demonstrations and for tests of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.datasets.components import (
    Covariate,
    Timeline,
    draw_covariates,
    draw_start_steps,
    make_timeline,
    random_stream,
    regular_components,
)
from deepforecast.datasets.recipe import COVARIATES, Recipe
from deepforecast.errors import ParameterTypeError, format_value, validate_integer

if TYPE_CHECKING:
    import pandas as pd

Matrix = NDArray[np.float64]


def generate(
    n_series: int = 3,
    length: int = 200,
    *,
    freq: Any = "D",
    seed: int = 0,
    start: Any = None,
    recipe: Recipe | None = None,
) -> pd.DataFrame:
    """Generate synthetic series as a long frame `unique_id, ds, y` with covariates.

    Parameters
    ----------
    n_series : int, default 3
        Number of series.
    length : int, default 200
        Number of time steps of each series.
    freq : str, int or pandas offset, default "D"
        Frequency; an integer for integer time.
    seed : int, default 0
        Random seed. The same arguments give the same frame. Components have independent random
        streams: adding one does not change the others.
    start : timestamp or int, optional
        First timestamp, possibly with a time zone. Defaults to 2020-01-01, or 1 for integer time.
    recipe : Recipe, optional
        Components and covariates of the series.

    Returns
    -------
    pandas.DataFrame
        The series, sorted by id and time.

    See Also
    --------
    truth : The components of the same series.

    Examples
    --------
    >>> generate(2, 100, freq="MS", recipe=Recipe(covariates=["price"])).columns.tolist()
    ['unique_id', 'ds', 'y', 'price']
    """
    import pandas as pd

    panel = _GeneratedPanel(n_series, length, freq, seed, start, recipe)
    columns: dict[str, Any] = {**panel.key_columns(), "y": panel.to_rows(panel.target())}
    for name, covariate in panel.covariates.items():
        values = panel.to_rows(covariate.values)
        levels = covariate.levels
        columns[name] = values if levels is None else pd.Categorical.from_codes(values, categories=pd.Index(levels))
    return pd.DataFrame(columns)


def truth(
    n_series: int = 3,
    length: int = 200,
    *,
    freq: Any = "D",
    seed: int = 0,
    start: Any = None,
    recipe: Recipe | None = None,
) -> pd.DataFrame:
    """Return the components of the series that `generate` returns for the same arguments.

    Parameters
    ----------
    n_series, length, freq, seed, start, recipe
        As in `generate`.

    Returns
    -------
    pandas.DataFrame
        Columns `unique_id, ds, component, value`. For each series and timestamp the values sum to
        y, also where the recipe makes y missing. Components are `level, trend, season_<period>,
        shift, noise`, one per covariate, and `no_demand`, which reduces y to 0.

    See Also
    --------
    generate : The series themselves.

    Examples
    --------
    >>> components = truth(2, 100)
    >>> bool(abs(components.groupby(["unique_id", "ds"])["value"].sum().to_numpy() - generate(2, 100)["y"]).max() < 1e-9)
    True
    """
    import pandas as pd

    panel = _GeneratedPanel(n_series, length, freq, seed, start, recipe)
    keys = panel.key_columns()
    frames = [
        pd.DataFrame({**keys, "component": name, "value": panel.to_rows(component)})
        for name, component in panel.components().items()
    ]
    return pd.concat(frames, ignore_index=True)


class _GeneratedPanel:
    """The random draws of a call, broadcastable to shape (series, step)."""

    def __init__(self, n_series: int, length: int, freq: Any, seed: int, start: Any, recipe: Recipe | None) -> None:
        """Validate the arguments and draw timestamps, covariates and the first step of each series."""
        self.shape = (validate_integer(n_series, "n_series"), validate_integer(length, "length"))
        self.seed = validate_integer(seed, "seed", minimum=0)
        self.recipe = Recipe() if recipe is None else recipe
        if not isinstance(self.recipe, Recipe):
            raise ParameterTypeError(
                f"`recipe` must be a Recipe, got {format_value(recipe)} ({type(recipe).__name__}).",
                parameter="recipe",
                value=recipe,
            )
        self.timeline: Timeline = make_timeline(freq, start, self.shape[1])
        self.covariates: dict[str, Covariate] = draw_covariates(self.shape, self.timeline, self.seed, self.recipe)
        self.start_steps = draw_start_steps(self.shape, self.seed, self.recipe.ragged)
        self.row_mask = (np.arange(self.shape[1]) >= self.start_steps[:, None]).ravel() if self.start_steps.any() else None

    def components(self) -> dict[str, Matrix]:
        """The components of y, in the order of summation."""
        components = regular_components(self.shape, self.timeline, self.seed, self.recipe)
        components |= {name: self.covariates[name].effect for name in COVARIATES if name in self.covariates}
        components["noise"] = self.recipe.noise * random_stream(self.seed, "noise").standard_normal(self.shape)
        if self.recipe.intermittent:
            without_demand = random_stream(self.seed, "demand").random(self.shape) < self.recipe.intermittent
            components["no_demand"] = np.where(without_demand, -_sum_components(components, self.shape), 0.0)
        return components

    def target(self) -> Matrix:
        """The target with missing values."""
        y = _sum_components(self.components(), self.shape)
        if self.recipe.missing:
            is_missing = random_stream(self.seed, "missing").random(self.shape) < self.recipe.missing
            is_missing[:, -1] = False
            is_missing[np.arange(self.shape[0]), self.start_steps] = False
            y[is_missing] = np.nan
        return y

    def key_columns(self) -> dict[str, Any]:
        """Ids s0, s1, ... (padded with zeros to equal length) and timestamps of all rows."""
        import pandas as pd

        n_series, length = self.shape
        n_digits = len(str(n_series - 1))
        ids = pd.Index([f"s{number:0{n_digits}d}" for number in range(n_series)])
        steps = self.to_rows(np.arange(length)[None, :])
        return {"unique_id": ids.repeat(length - self.start_steps), "ds": self.timeline.timestamps.take(steps)}

    def to_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """An array as a column of the frame, without the steps before the start of each series."""
        flat: NDArray[Any] = np.broadcast_to(values, self.shape).ravel()
        return flat if self.row_mask is None else flat[self.row_mask]


def _sum_components(components: dict[str, Matrix], shape: tuple[int, int]) -> Matrix:
    total = np.zeros(shape)
    for component in components.values():
        total += component
    return total
