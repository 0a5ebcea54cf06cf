# %% [markdown]
# # 17 · Add your own model
#
# You have an idea that the library does not have. Write it as a class with three hooks. Everything else comes with it: checks
# of parameters, frames of all kinds, cross-validation, leaderboards, saving, tuning, intervals.
#
# **After this you can**
#
# - declare parameters with ranges, and let the library check them
# - write `_fit`, `_advance` and `_forecast`, and say what each must keep
# - hold the model to the contract with one call
# - add a network with a body of your own, trained by the library
# - bring the model to others as a package

# %%
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

import deepforecast
from deepforecast import (
    Capabilities,
    Forecaster,
    SeasonalNaive,
    compare,
    datasets,
    errors,
    param,
    plot,
    register,
    testing,
    tune,
)
from deepforecast.core.forecast import NormalForecast
from deepforecast.core.state import LearnedState
from deepforecast.models.neural.mlp import MLP
from deepforecast.nn.body import DirectBody

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training
STEPS = 30 if SHORT else 300

# %% [markdown]
# ## An idea
#
# The seasonal naive forecast knows no growth. Exercise 4 of tutorial 01 fixed that: last year's values, raised by last
# year's growth. Growth of the last year alone is noisy, so we hold it back by a share $w$:
#
# $$\hat y_{T+h} = g^{\,w k} \; y_{T+h-m k}, \quad k = \lceil h / m \rceil, \qquad
# g = \frac{y_T + y_{T-1} + \dots + y_{T-m+1}}{y_{T-m} + \dots + y_{T-2m+1}}.$$
#
# ## The class
#
# What a model needs to say:
#
# - **parameters**, each declared once by `param` with its default, its range and a few words of help. The constructor, its
#   checks, `repr`, saving, the command line and the search of `tune` follow from that.
# - **capabilities**: what it can do. Here: positive values only, scale carries over, each series apart, an own distribution.
# - `_fit(panel, monitor)` learns and returns `LearnedState`: arrays, one row a series. The **panel** holds the values of all
#   series one after the other in `y`; series $i$ is `y[indptr[i]:indptr[i + 1]]`.
# - `_advance(learned, panel, fresh)` brings what was learned to the end of other rows: whole histories if `fresh`, else rows
#   that follow. Parameters stay.
# - `_forecast(learned, steps, future)` says the steps ahead: arrays of shape (series, steps).

# %%
@register
class GrowingSeason(Forecaster):
    """Last year's values, raised by the growth of the year before."""

    season: int = param(default=12, at_least=2, help="steps of a year")
    share: float = param(default=0.8, at_least=0, at_most=1, low=0.0, high=1.0, help="how much of the growth is believed")

    capabilities = Capabilities(local=True, scale_equivariant=True, domain="positive", distribution="analytic")

    def _min_observations(self, panel):
        return 3 * self.season

    def _fit(self, panel, monitor):
        m = self.season
        rows = [panel.y[begin:end] for begin, end in zip(panel.indptr[:-1], panel.indptr[1:], strict=True)]
        years = np.stack([y[-2 * m :] for y in rows])
        spread = [np.std(np.log(y[m:] / y[:-m])) for y in rows]  # of the growth over a year, in shares
        return LearnedState({"years": years, "spread": np.array(spread)})

    def _advance(self, learned, panel, fresh):
        m, years = self.season, learned["years"].copy()
        for i, (begin, end) in enumerate(zip(panel.indptr[:-1], panel.indptr[1:], strict=True)):
            y = panel.y[begin:end]
            years[i] = (y if fresh else np.append(years[i], y))[-2 * m :]
        return LearnedState({"years": years, "spread": learned["spread"]})

    def _forecast(self, learned, steps, future):
        m, years = self.season, learned["years"]
        growth = years[:, m:].sum(axis=1) / years[:, :m].sum(axis=1)
        turns = np.arange(steps) // m + 1
        mean = growth[:, None] ** (self.share * turns) * years[:, m + np.arange(steps) % m]
        return NormalForecast(mean, mean * learned["spread"][:, None] * np.sqrt(turns))


# %% [markdown]
# Some thirty lines. And now it is a model like all others:

# %%
frame = datasets.load("air_passengers")
model = GrowingSeason(horizon=24, share=0.9)
print(model)
plot(frame, model.fit(frame).predict(level=80), max_history=72)

# %%
try:
    GrowingSeason(share=1.5)
except errors.ParameterError as error:
    print(error)

# %%
board = compare([GrowingSeason(), SeasonalNaive()], frame, horizon=12, n_windows=8, level=80)
print(board.table[["model", "mase", "coverage-80"]].round(3).to_string(index=False))
assert board.table["model"].iloc[0] == "GrowingSeason"

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.dfc"
    model.save(path)
    assert deepforecast.load(path).predict().equals(model.predict())
print("saved, loaded, the same forecast")

# %% [markdown]
# The ranges of `param` are what `tune` searches.

# %%
found = tune(GrowingSeason(horizon=12), frame, n_trials=4 if SHORT else 12)
print(found.best_params)

# %% [markdown]
# ## The contract
#
# Does it keep all promises? That forecasts do not depend on the order of rows, on values after the cutoff, on the other
# series in the frame; that a model that was saved forecasts the same; that `update` equals a fresh look at the whole history?
# Nobody checks all that by hand. The library ships the checks. `testing.run` tries every rule, and leaves out those that the
# capabilities exclude.
#
# Two rules look at numbers. **Calibration**: on 400 series drawn from the process that a model assumes, 80 % intervals must
# cover 72 to 88 % of the values and 95 % intervals 90 to 98.5 %. `coverage_process` says which process that is: a name in
# `deepforecast.testing.processes`, or, as here, a method that draws the series. **Fitted values**: where a model has
# `fitted_values`, the one of a row must not change with the value of that row, and later ones must.

# %%
def examples(cls):
    """The contract is tried on short series: a short year."""
    return [{"season": 3}]


def coverage_process(self, random, n_series, n_rows):
    """Each value is that of a year before, changed by a random share."""
    years = -(-n_rows // self.season)
    changes = random.normal(scale=0.02, size=(n_series, years, self.season))
    return 100 * np.exp(changes.cumsum(axis=1)).reshape(n_series, -1)[:, :n_rows]


GrowingSeason.examples = classmethod(examples)
GrowingSeason.coverage_process = coverage_process
report = testing.run(GrowingSeason)
print(str(report).splitlines()[0])
report.raise_for_failures()

# %% [markdown]
# That a check can fail is as important. Here is a model that peeks: it takes the largest value of *all* series. Only the
# checks notice.

# %%
@register
class Peeking(GrowingSeason):
    """Adds a hundredth of the largest value of any series."""

    def _forecast(self, learned, steps, future):
        forecast = super()._forecast(learned, steps, future)
        return NormalForecast(forecast.mean + 0.01 * learned["years"].max(), forecast.deviation)


broken = testing.run(Peeking)
for row in broken.with_outcome("failed"):
    print(row.rule)
assert broken.with_outcome("failed")

# %% [markdown]
# ## A network of your own
#
# For a network you write its **body**: a torch module that turns a batch of windows into what is needed for each step ahead.
# Windows, scaling, covariates, training, quantiles and saving are the library's. A body is told its `sizes`, and gets
# `inputs` with `inputs.y`, the scaled window, of shape (batch, input_size). It gives `features`, of shape (batch, horizon,
# width).
#
# As an example: the forecast is a weighted sum of window values, with weights that are positive and add up to 1. It can only
# say what lies between values it has seen, but anyone can read its weights:
#
# $$\hat y_{h} = \sum_{j} a_{hj} \, x_j, \qquad a_h = \operatorname{softmax}(s_h).$$

# %%
class AverageBody(DirectBody):
    """For each step ahead a softmax over the window."""

    def __init__(self, sizes):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(sizes.horizon, sizes.input_size))
        self.spread = nn.Parameter(torch.zeros(sizes.horizon, sizes.out_features))

    def features(self, inputs):
        center = inputs.y @ torch.softmax(self.scores, dim=1).T  # (batch, horizon)
        return center[..., None] + self.spread  # each quantile is the center and a number of its own


@register
class LearnedAverage(MLP):
    """The forecast of each step is a weighted mean of the window, with learned weights."""

    def _body(self, sizes):
        return AverageBody(sizes)


average = LearnedAverage(
    horizon=12, input_size=24, head="point", loss="mse", calendar=None, learning_rate=0.1, max_steps=STEPS
).fit(datasets.load("elnino"))
weights = torch.softmax(average.network_.state_dict()["body.scores"], dim=1).numpy()
largest = np.argsort(-weights[0])[:3]
print("one step ahead, rows back and their weights:", {int(24 - j): round(float(weights[0, j]), 2) for j in largest})
assert SHORT or 24 - largest[0] == 1

# %%
elnino = datasets.load("elnino")
plot(elnino, average.predict(), max_history=60)

# %% [markdown]
# Sea temperature next month: mostly last month, and the rows about one and two years back. Nobody told it that a year has
# twelve months.
#
# ## For others
#
# A model is found by its name if its package says so: an entry point of the group `deepforecast.models` in its
# `pyproject.toml`,
#
# ```toml
# [project.entry-points."deepforecast.models"]
# GrowingSeason = "my_package.growing_season:GrowingSeason"
# ```
#
# Then `deepforecast.load` and the command line know it. In the library itself a model is one file under
# `deepforecast/models`; nothing else is edited.
#
# ## Exercises
#
# 1. Write `LastWeekday`: the mean of the last $k$ values of the same place in the season. Which `LearnedState` array does it need?
# 2. Add `explain` to `GrowingSeason`. Which hook, and what must the parts add up to?
# 3. Break `_advance`: forget the rows that follow. Which rule notices?

# %% [markdown]
# ## Solutions
#
# ### Solution 1

# %%
class LastPlaces(Forecaster):
    """The mean of the last values at the same place of the season."""

    season: int = param(default=12, at_least=1, help="steps of a season")
    turns: int = param(default=3, at_least=1, help="seasons that are averaged")

    capabilities = Capabilities(local=True, scale_equivariant=True, shift_equivariant=True)

    def _min_observations(self, panel):
        return self.season * self.turns

    def _fit(self, panel, monitor):
        ends = panel.indptr[1:]
        return LearnedState({"last": np.stack([panel.y[end - self.season * self.turns : end] for end in ends])})

    def _advance(self, learned, panel, fresh):
        size, last = self.season * self.turns, learned["last"].copy()
        for i, (begin, end) in enumerate(zip(panel.indptr[:-1], panel.indptr[1:], strict=True)):
            last[i] = (panel.y[begin:end] if fresh else np.append(last[i], panel.y[begin:end]))[-size:]
        return LearnedState({"last": last})

    def _forecast(self, learned, steps, future):
        from deepforecast.core.forecast import PointForecast

        season = learned["last"].reshape(-1, self.turns, self.season).mean(axis=1)
        return PointForecast(season[:, np.arange(steps) % self.season], self.name)


by_hand = frame["y"].to_numpy()[-36:].reshape(3, 12).mean(axis=0)
np.testing.assert_allclose(LastPlaces().fit(frame).predict(12)["LastPlaces"], by_hand)
print("one array: the last season * turns values of each series")

# %% [markdown]
# ### Solution 2
#
# The hook is `_explain(learned, steps, future)`; it gives a dict of arrays that add up to the point forecast, and the
# capability is `explains=True`.

# %%
class Explained(GrowingSeason):
    """Says what is last year's value, and what is growth."""

    capabilities = Capabilities(local=True, scale_equivariant=True, domain="positive", distribution="analytic", explains=True)

    def _explain(self, learned, steps, future):
        m = self.season
        last = learned["years"][:, m + np.arange(steps) % m]
        return {"last year": last, "growth": self._forecast(learned, steps, future).mean - last}


print(Explained().fit(frame).explain(2).to_string(index=False, float_format="%.1f"))

# %% [markdown]
# ### Solution 3

# %%
@register
class Forgetful(GrowingSeason):
    """Does not move on."""

    def _advance(self, learned, panel, fresh):
        return learned


failed = testing.run(Forgetful).with_outcome("failed")
print("\n".join(row.rule for row in failed))
assert failed

# %% [markdown]
# ## Reference
#
# - `Forecaster`, `param`, `register`, `Capabilities`, `Panel`
# - `testing.run`, `tune`, `compare`, `load`, `core.state.LearnedState`, `core.forecast.NormalForecast`, `nn.body.DirectBody`
