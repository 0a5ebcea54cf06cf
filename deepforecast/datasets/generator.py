"""Seeded artificial series whose every part is known: for demonstrations, and for checks that a model learns what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.integers import validate_integer
from deepforecast.datasets.parts import Covariate, Timeline, covariates, late_starts, regular_parts, stream, timeline
from deepforecast.datasets.recipe import COVARIATES, Recipe
from deepforecast.errors import ParameterTypeError, format_value

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
    """A long frame `unique_id, ds, y` and the covariates of the recipe; the same arguments give the same frame.

    `freq` is any spelling of a frequency, or an integer for integer time; `start` the first stamp (it may have a time
    zone). Each part has its own stream of random numbers, so switching one on leaves the others as they were.

    >>> generate(2, 100, freq="MS", recipe=Recipe(covariates=["price"])).columns.tolist()
    ['unique_id', 'ds', 'y', 'price']
    """
    import pandas as pd

    world = _World(n_series, length, freq, seed, start, recipe)
    columns: dict[str, Any] = {**world.keys(), "y": world.kept(world.observed())}
    for name, covariate in world.covariates.items():
        values = world.kept(covariate.values)
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
    """The parts of `generate` with the same arguments, tidy: `unique_id, ds, component, value`.

    For each series and stamp the values sum to y (also to the y that the recipe takes out as missing). Components are
    `level, trend, season_<period>, shift, noise`, one for each covariate, and `no_demand`, which takes y down to 0.

    >>> parts = truth(2, 100)
    >>> bool(abs(parts.groupby(["unique_id", "ds"])["value"].sum().to_numpy() - generate(2, 100)["y"]).max() < 1e-9)
    True
    """
    import pandas as pd

    world = _World(n_series, length, freq, seed, start, recipe)
    keys = world.keys()
    frames = [pd.DataFrame({**keys, "component": name, "value": world.kept(part)}) for name, part in world.parts().items()]
    return pd.concat(frames, ignore_index=True)


class _World:
    """All that one call draws: arrays of shape (series, step), or 1 in place of an axis that they do not vary along."""

    def __init__(self, n_series: int, length: int, freq: Any, seed: int, start: Any, recipe: Recipe | None) -> None:
        self.shape = (validate_integer(n_series, "n_series"), validate_integer(length, "length"))
        self.seed = validate_integer(seed, "seed", minimum=0)
        self.recipe = Recipe() if recipe is None else recipe
        if not isinstance(self.recipe, Recipe):
            raise ParameterTypeError(f"recipe is a Recipe object; got {format_value(recipe)} ({type(recipe).__name__}).")
        self.time: Timeline = timeline(freq, start, self.shape[1])
        self.covariates: dict[str, Covariate] = covariates(self.shape, self.time, self.seed, self.recipe)
        self.starts = late_starts(self.shape, self.seed, self.recipe.ragged)
        self.keep = (np.arange(self.shape[1]) >= self.starts[:, None]).ravel() if self.starts.any() else None

    def parts(self) -> dict[str, Matrix]:
        """The components of y, in the order in which they are added."""
        parts = regular_parts(self.shape, self.time, self.seed, self.recipe)
        parts |= {name: self.covariates[name].effect for name in COVARIATES if name in self.covariates}
        parts["noise"] = self.recipe.noise * stream(self.seed, "noise").standard_normal(self.shape)
        if self.recipe.intermittent:
            idle = stream(self.seed, "demand").random(self.shape) < self.recipe.intermittent
            parts["no_demand"] = np.where(idle, -_total(parts, self.shape), 0.0)
        return parts

    def observed(self) -> Matrix:
        """y, with its missing values."""
        y = _total(self.parts(), self.shape)
        if self.recipe.missing:
            hidden = stream(self.seed, "missing").random(self.shape) < self.recipe.missing
            hidden[:, -1] = False
            hidden[np.arange(self.shape[0]), self.starts] = False
            y[hidden] = np.nan
        return y

    def keys(self) -> dict[str, Any]:
        """The columns `unique_id` and `ds`."""
        import pandas as pd

        n, length = self.shape
        ids = pd.Index([f"s{i:0{len(str(n - 1))}d}" for i in range(n)])
        steps = self.kept(np.arange(length)[None, :])
        return {"unique_id": ids.repeat(length - self.starts), "ds": self.time.stamps.take(steps)}

    def kept(self, part: NDArray[Any]) -> NDArray[Any]:
        """A part on the rows of the frame: without the steps before a series starts."""
        flat: NDArray[Any] = np.broadcast_to(part, self.shape).ravel()
        return flat if self.keep is None else flat[self.keep]


def _total(parts: dict[str, Matrix], shape: tuple[int, int]) -> Matrix:
    total = np.zeros(shape)
    for part in parts.values():
        total += part
    return total
