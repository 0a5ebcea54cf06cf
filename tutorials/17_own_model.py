# %% [markdown]
# # 17 · Add your own model
#
# A forecasting method that the library does not have is added as a class with three methods. The library provides the
# rest: parameter validation, support for all data frame libraries, cross-validation, leaderboards, saving, tuning and
# prediction intervals.
#
# **After this you can**
#
# - declare parameters with ranges, and let the library validate them
# - implement `_fit`, `_advance` and `_forecast`, and decide which state they must store
# - test the model with the contract checks of the library
# - add a neural network with a custom body, trained by the library
# - distribute the model as a package

# %%
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

import deepforecast
from deepforecast import (
    MLP,
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
from deepforecast.nn.network import DirectBody

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training
STEPS = 30 if SHORT else 300

# %% [markdown]
# ## The forecasting method
#
# The seasonal naive method ignores growth. Exercise 4 of tutorial 01 solved this: it multiplied the values of the last
# year by the growth of the last year. The growth of a single year is noisy, so we reduce it with a weight $w$ between 0
# and 1:
#
# $$\hat y_{T+h} = g^{\,w k} \; y_{T+h-m k}, \quad k = \lceil h / m \rceil, \qquad
# g = \frac{y_T + y_{T-1} + \dots + y_{T-m+1}}{y_{T-m} + \dots + y_{T-2m+1}}.$$
#
# ## The class
#
# A model class defines:
#
# - **parameters**, each declared once by `param` with its default, its range and a short description. The constructor,
#   its validation, `repr`, saving, the command line and the search space of `tune` are derived from these declarations.
# - **capabilities**, the properties of the model. Here: it requires positive values, multiplying the data by a factor
#   multiplies the forecasts by the same factor, each series is forecast independently, and prediction intervals have a
#   formula.
# - `_fit(panel, monitor)` estimates the model and returns a `LearnedState` of arrays with one row per series. The
#   **panel** stores the values of all series in a single array `y`; series $i$ is `y[indptr[i]:indptr[i + 1]]`.
# - `_advance(learned, panel, fresh)` updates the state with the rows of `panel`: complete histories if `fresh` is true,
#   otherwise the rows that follow the last known ones. The parameters do not change.
# - `_forecast(learned, steps, future)` returns the forecasts, arrays of shape (series, steps).


# %%
@register
class GrowingSeason(Forecaster):
    """The values of the last year, multiplied by a part of its growth."""

    season_length: int = param(default=12, at_least=2, help="number of steps per year")
    growth_weight: float = param(
        default=0.8, at_least=0, at_most=1, low=0.0, high=1.0, help="weight of the growth; 0: no growth",
    )  # fmt: skip

    capabilities = Capabilities(local=True, scale_equivariant=True, domain="positive", distribution="analytic")

    def _min_observations(self, panel):
        return 3 * self.season_length

    def _fit(self, panel, monitor):
        m = self.season_length
        series = [panel.y[begin:end] for begin, end in zip(panel.indptr[:-1], panel.indptr[1:], strict=True)]
        last_two_years = np.stack([y[-2 * m :] for y in series])
        deviation = [np.std(np.log(y[m:] / y[:-m])) for y in series]  # of the relative change over a year
        return LearnedState({"last_two_years": last_two_years, "deviation": np.array(deviation)})

    def _advance(self, learned, panel, fresh):
        m, last_two_years = self.season_length, learned["last_two_years"].copy()
        for i, (begin, end) in enumerate(zip(panel.indptr[:-1], panel.indptr[1:], strict=True)):
            y = panel.y[begin:end]
            last_two_years[i] = (y if fresh else np.append(last_two_years[i], y))[-2 * m :]
        return LearnedState({"last_two_years": last_two_years, "deviation": learned["deviation"]})

    def _forecast(self, learned, steps, future):
        m, last_two_years = self.season_length, learned["last_two_years"]
        growth = last_two_years[:, m:].sum(axis=1) / last_two_years[:, :m].sum(axis=1)
        k = np.arange(steps) // m + 1
        mean = growth[:, None] ** (self.growth_weight * k) * last_two_years[:, m + np.arange(steps) % m]
        return NormalForecast(mean, mean * learned["deviation"][:, None] * np.sqrt(k))


# %% [markdown]
# The class has some thirty lines, and it is used like any other model:

# %%
frame = datasets.load("air_passengers")
model = GrowingSeason(horizon=24, growth_weight=0.9)
print(model)
plot(frame, model.fit(frame).predict(level=80), max_history=72)

# %%
try:
    GrowingSeason(growth_weight=1.5)
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
print("the loaded model makes the same forecasts")

# %% [markdown]
# `tune` searches the ranges declared with `param`.

# %%
tuning_result = tune(GrowingSeason(horizon=12), frame, n_trials=4 if SHORT else 12)
print(tuning_result.best_params)

# %% [markdown]
# ## Contract checks
#
# Does the class satisfy the rules for all models? For example, its forecasts must not depend on the order of the rows,
# on values after the cutoff or on the other series of the frame; a saved and loaded model must make the same forecasts;
# and `update` must give the same state as the whole history processed at once. The library provides these checks.
# `testing.run` checks every rule that applies to the capabilities of the model.
#
# Two of the rules in detail. **Calibration**: on 400 series simulated from the process that the model assumes, 80 %
# intervals must cover 72 to 88 % of the values, and 95 % intervals 90 to 98.5 %. `coverage_process` is this process: a
# name in `deepforecast.testing.processes` or, as here, a method that simulates the series. **Fitted values**: if a
# model has `fitted_values`, the fitted value at a time must not depend on the observation at that time, and later
# fitted values must.


# %%
def examples(cls):
    """Parameters for the checks, which use short series: a season of three steps."""
    return [{"season_length": 3}]


def coverage_process(self, random, n_series, n_rows):
    """Each value is that of the previous year, multiplied by a random factor."""
    n_years = -(-n_rows // self.season_length)
    changes = random.normal(scale=0.02, size=(n_series, n_years, self.season_length))
    return 100 * np.exp(changes.cumsum(axis=1)).reshape(n_series, -1)[:, :n_rows]


GrowingSeason.examples = classmethod(examples)
GrowingSeason.coverage_process = coverage_process
report = testing.run(GrowingSeason)
print(str(report).splitlines()[0])
report.raise_for_failures()

# %% [markdown]
# The checks must also detect errors. The following model declares that it forecasts each series independently, but uses
# the largest value of *all* series. This mistake is hard to see in its forecasts, but the checks detect it.


# %%
@register
class LeakingSeason(GrowingSeason):
    """Adds one percent of the largest value of all series."""

    def _forecast(self, learned, steps, future):
        forecast = super()._forecast(learned, steps, future)
        return NormalForecast(forecast.mean + 0.01 * learned["last_two_years"].max(), forecast.deviation)


report = testing.run(LeakingSeason)
for row in report.with_outcome("failed"):
    print(row.rule)
assert report.with_outcome("failed")

# %% [markdown]
# ## A custom neural network
#
# For a neural network you write its **body**: a torch module that maps a batch of input windows to features for each
# step of the horizon. The library provides the windows, scaling, covariates, training, quantiles and saving. The
# constructor of the body gets the `sizes`. Its method `features` gets `inputs`, where `inputs.y` is the scaled window
# of shape (batch, input_size), and returns an array of shape (batch, horizon, out_features).
#
# In this example the forecast is a weighted mean of the values in the window: the weights are positive and sum to 1.
# Such a mean is always between the smallest and the largest value of the window, but its weights are easy to interpret:
#
# $$\hat y_{h} = \sum_{j} a_{hj} \, x_j, \qquad a_h = \operatorname{softmax}(s_h).$$


# %%
class AverageBody(DirectBody):
    """A weighted mean of the window for each step, with softmax weights."""

    def __init__(self, sizes):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(sizes.horizon, sizes.input_size))
        self.offsets = nn.Parameter(torch.zeros(sizes.horizon, sizes.out_features))

    def features(self, inputs):
        mean = inputs.y @ torch.softmax(self.scores, dim=1).T  # (batch, horizon)
        return mean[..., None] + self.offsets  # one offset per output, e.g. per quantile


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
print("largest weights one step ahead, by lag:", {int(24 - j): round(float(weights[0, j]), 2) for j in largest})
assert SHORT or 24 - largest[0] == 1

# %%
elnino = datasets.load("elnino")
plot(elnino, average.predict(), max_history=60)

# %% [markdown]
# The forecast of the sea surface temperature of the next month depends mostly on the last month and on the months about
# one and two years earlier. The network has learned this from the data; the period of twelve months was not specified.
#
# ## Distributing a model
#
# The library finds a model of another package by its name if the `pyproject.toml` of this package declares an entry
# point of the group `deepforecast.models`:
#
# ```toml
# [project.entry-points."deepforecast.models"]
# GrowingSeason = "my_package.growing_season:GrowingSeason"
# ```
#
# Then the model is available in `deepforecast.load` and on the command line. A model within the library is a single
# file in `deepforecast/models`; no other file is edited.
#
# ## Exercises
#
# 1. Write `RecentSeasonalMean`: the mean of the last $k$ values of the same season, for example of the last three Mays.
#    Which array must its `LearnedState` contain?
# 2. Add `explain` to `GrowingSeason`. Which method do you define, and what must the sum of the components be?
# 3. Break `_advance`: ignore the rows that follow. Which rule fails?

# %% [markdown]
# ## Solutions
#
# ### Solution 1


# %%
class RecentSeasonalMean(Forecaster):
    """The mean of the last values of the same season."""

    season_length: int = param(default=12, at_least=1, help="number of steps per seasonal cycle")
    n_cycles: int = param(default=3, at_least=1, help="number of seasonal cycles that are averaged")

    capabilities = Capabilities(local=True, scale_equivariant=True, shift_equivariant=True)

    def _min_observations(self, panel):
        return self.season_length * self.n_cycles

    def _fit(self, panel, monitor):
        n_values = self.season_length * self.n_cycles
        return LearnedState({"last_values": np.stack([panel.y[end - n_values : end] for end in panel.indptr[1:]])})

    def _advance(self, learned, panel, fresh):
        n_values, last_values = self.season_length * self.n_cycles, learned["last_values"].copy()
        for i, (begin, end) in enumerate(zip(panel.indptr[:-1], panel.indptr[1:], strict=True)):
            y = panel.y[begin:end]
            last_values[i] = (y if fresh else np.append(last_values[i], y))[-n_values:]
        return LearnedState({"last_values": last_values})

    def _forecast(self, learned, steps, future):
        from deepforecast.core.forecast import PointForecast

        seasonal_means = learned["last_values"].reshape(-1, self.n_cycles, self.season_length).mean(axis=1)
        return PointForecast(seasonal_means[:, np.arange(steps) % self.season_length], self.name)


by_hand = frame["y"].to_numpy()[-36:].reshape(3, 12).mean(axis=0)
np.testing.assert_allclose(RecentSeasonalMean().fit(frame).predict(12)["RecentSeasonalMean"], by_hand)
print("one array: the last season_length * n_cycles values of each series")

# %% [markdown]
# ### Solution 2
#
# The method is `_explain(learned, steps, future)`. It returns a dict of arrays, the components, whose sum must be the
# point forecast. The capability `explains=True` must be declared.


# %%
class ExplainedSeason(GrowingSeason):
    """With the components `last year` and `growth`."""

    capabilities = Capabilities(
        local=True, scale_equivariant=True, domain="positive", distribution="analytic", explains=True,
    )  # fmt: skip

    def _explain(self, learned, steps, future):
        m = self.season_length
        last_year = learned["last_two_years"][:, m + np.arange(steps) % m]
        return {"last year": last_year, "growth": self._forecast(learned, steps, future).mean - last_year}


print(ExplainedSeason().fit(frame).explain(2).to_string(index=False, float_format="%.1f"))

# %% [markdown]
# ### Solution 3


# %%
@register
class NeverUpdated(GrowingSeason):
    """Ignores new rows."""

    def _advance(self, learned, panel, fresh):
        return learned


failed_rows = testing.run(NeverUpdated).with_outcome("failed")
print("\n".join(row.rule for row in failed_rows))
assert failed_rows

# %% [markdown]
# ## Reference
#
# - `Forecaster`, `param`, `register`, `Capabilities`, `Panel`
# - `testing.run`, `tune`, `compare`, `load`, `core.state.LearnedState`, `core.forecast.NormalForecast`,
#   `nn.network.DirectBody`
