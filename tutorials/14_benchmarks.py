# %% [markdown]
# # 14 · Benchmarks that can be trusted
#
# One dataset says little: a model may be lucky there. A **benchmark** asks many models the same questions on many datasets,
# writes down everything that was said and what it cost, and lets anyone ask again. Here you make one.
#
# **After this you can**
#
# - write a suite of tasks as data, run it, and go on with a run that was stopped
# - compare models over datasets of different size by ratios and the geometric mean
# - say which differences are more than luck: ranks, Friedman's test, the critical difference
# - weigh accuracy against seconds
# - audit a forecast for knowledge of the future

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from deepforecast import datasets
from deepforecast.benchmark.job_results import read_rows, rows_to_frame
from deepforecast.benchmark.leak_audit import audit_suite
from deepforecast.benchmark.suite import parse_suite
from deepforecast.benchmark.suite_run import run_suite
from deepforecast.benchmark.summary import summarize
from deepforecast.benchmark.yaml_parsing import parse_mapping
from deepforecast.evaluation.critical_difference import friedman
from deepforecast.evaluation.skill import skill

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

# %% [markdown]
# ## A suite is data
#
# A **task** is a dataset with a horizon and cutoffs. A **suite** is a list of tasks, of models, and of metrics. It is written
# in YAML, a plain text of keys and values. That makes it easy to read, to share, and to change one thing at a time. A key that
# is not known is refused, so a slip of the finger cannot pass for a result.

# %%
text = """
suite: small
what: six real series or sets of them, from twelve to three hundred years
reference: SeasonalNaive
models: [SeasonalNaive, Drift, AutoETS, AutoTheta, LinearModel]
defaults:
  metrics: [mase, smape]
  windows: {count: 2}
  parameters: {missing: interpolate}
tasks:
  - dataset: air_passengers
  - dataset: elec_equip
  - dataset: elnino
  - dataset: nile
  - dataset: macrodata_panel
  - dataset: sunspots
"""
suite = parse_suite(parse_mapping(text, "small.yaml"), "small.yaml")
for task in suite.tasks:
    card = datasets.card(task.dataset)
    print(f"{task.name:16} horizon {card.horizon:3}  season {card.season_length:3}  {card.what}")

try:
    parse_suite(parse_mapping(text.replace("windows", "widnows"), "small.yaml"), "small.yaml")
except ValueError as error:
    print(f"\na slip: {error}")

# %% [markdown]
# ## A run is a folder of rows
#
# A **job** is one model on one task (with one seed, for models that draw random numbers). Each job runs in a process of its
# own, so none can take another down, and with a limit of time and of memory. When it is over, one **row** is written: metrics,
# seconds, memory, versions, machine. A job that failed is a row too, with its error. Nothing is left out in silence.

# %%
home = tempfile.TemporaryDirectory()
folder = Path(home.name) / "run"
rows = run_suite(suite, folder)
found = rows_to_frame(rows)
print(found[["task", "model", "status", "metric:mase", "fit_seconds", "peak_mb"]].head(6).to_string(index=False))
assert len(rows) == 6 * 5
print("\nkept:", ", ".join(sorted(path.name for path in folder.iterdir())))

# %% [markdown]
# Run it again, and nothing is run: all rows are there. So a run of many hours may be stopped and goes on where it was.

# %%
size = (folder / "results.jsonl").stat().st_size
again = run_suite(suite, folder)
assert (folder / "results.jsonl").stat().st_size == size
assert [row.job for row in again] == [row.job for row in read_rows(folder)]

# %% [markdown]
# ## Errors of different size: ratios and the geometric mean
#
# On one task the error is 0.4, on another 12. Their mean is decided by the second alone. So each error is first divided by
# that of a **reference** on the same task, here the seasonal naive forecast: $r_i = e_i / e_i^{\text{ref}}$. Ratios are put
# together by the **geometric mean**, for which half the error on one task and double the error on another make 1, no gain and
# no loss. The **skill** is what is missing to 1:
#
# $$\text{skill} = 1 - \Bigl( \prod_{i=1}^{n} r_i \Bigr)^{1/n}.$$
#
# 0 is as good as the reference, 0.2 is a fifth less error, below 0 is worse.

# %%
errors = found.pivot(index="model", columns="task", values="metric:mase")
values = errors.to_numpy()
reference = errors.index.get_loc("SeasonalNaive")
ratios = values / values[reference]
by_hand = 1 - np.prod(ratios, axis=1) ** (1 / ratios.shape[1])
scores = skill(values, reference)
np.testing.assert_allclose(scores.value, by_hand, atol=1e-12)
for name, value, low, high in zip(errors.index, scores.value, scores.low, scores.high, strict=True):
    print(f"{name:14} skill {value:6.3f}   (95 % interval over tasks: {low:6.3f} to {high:6.3f})")

# %% [markdown]
# The interval asks: had these six tasks been six others of the kind, what then? Tasks are drawn with replacement a thousand
# times. Six tasks are few, so the intervals are wide. That is the honest answer.

# %% [markdown]
# ## More than luck? Ranks and the critical difference
#
# Ratios say how much, **ranks** say how often. On each task the best model has rank 1, the next 2. If all models were alike,
# every order would be as likely as any other, and mean ranks would lie close together. Friedman's test asks whether they lie
# further apart than that. With $k$ models, $n$ tasks, mean ranks $R_j$ and no ties it is
#
# $$\chi^2_F = \frac{12 n}{k (k+1)} \Bigl( \sum_{j=1}^{k} R_j^2 - \frac{k (k+1)^2}{4} \Bigr).$$
#
# Two models differ by Nemenyi's test if their mean ranks are further apart than the **critical difference**.

# %%
ranks = np.argsort(np.argsort(values, axis=0), axis=0) + 1
k, n = values.shape
mean_rank = ranks.mean(axis=1)
chi_squared = 12 * n / (k * (k + 1)) * ((mean_rank**2).sum() - k * (k + 1) ** 2 / 4)
verdict = friedman(values)
np.testing.assert_allclose(chi_squared, verdict.statistic)
print(f"p = {verdict.p_value:.3f}; ranks differ if they are {verdict.critical_difference:.2f} apart")

# %%
figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
order = np.argsort(verdict.mean_ranks)
axes.plot(verdict.mean_ranks[order], np.arange(k), "o")
for place, one in enumerate(order):
    axes.annotate(errors.index[one], (verdict.mean_ranks[one], place), xytext=(8, -3), textcoords="offset points")
for number, clique in enumerate(verdict.cliques):
    axes.plot(
        [verdict.mean_ranks[clique[0]], verdict.mean_ranks[clique[-1]]], [-0.8 - 0.4 * number] * 2, linewidth=4, color="0.6"
    )
axes.set(xlabel="mean rank (a grey bar: no two models on it differ)", yticks=[], xlim=(0.8, k + 0.8))
axes.margins(y=0.12)
_ = axes.invert_yaxis()

# %%
rank = dict(zip(errors.index, verdict.mean_ranks, strict=True))
assert verdict.p_value < 0.05
assert rank["SeasonalNaive"] - rank["AutoTheta"] > verdict.critical_difference
assert max(rank["AutoETS"], rank["LinearModel"]) - rank["AutoTheta"] < verdict.critical_difference

# %% [markdown]
# This is how to read it. The models are not all alike: $p$ is small. AutoTheta is ahead of the seasonal naive forecast by more
# than the critical difference. Between AutoTheta, AutoETS and LinearModel these six tasks do not decide, whatever the order of
# their ranks says.

# %% [markdown]
# ## What it costs
#
# The most accurate model is not always the one to use. A model is worth its seconds if no other is both faster and better: it
# then lies on the **Pareto front**.

# %%
board = summarize(rows).table  # wins: the share of all duels, task by task, that a model wins
np.testing.assert_allclose(board["wins"], (k - board["rank"]) / (k - 1), atol=1e-9)
seconds = board["fit_seconds"] + board["predict_seconds"]
front = [not ((seconds < one) & (board["skill"] > two)).any() for one, two in zip(seconds, board["skill"], strict=True)]
board = board.assign(seconds=seconds, front=front)
print(board[["model", "rank", "skill", "wins", "seconds", "front"]].round(3).to_string(index=False))

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.scatter(seconds, board["skill"], c=["tab:blue" if one else "0.7" for one in front])
for name, x, one in zip(board["model"], seconds, board["skill"], strict=True):
    axes.annotate(name, (x, one), xytext=(5, 4), textcoords="offset points")
axes.set(xscale="log", xlabel="seconds for all tasks", ylabel="skill")
_ = axes.margins(0.15)

# %% [markdown]
# ## Does a forecast know the future?
#
# A forecast made at a cutoff may not depend on anything after it. There is a simple way to find out: change what comes after
# the cutoff, forecast again, and see whether anything moved. Here is a forecaster with a slip that is often made: it smooths
# the series **before** it is cut.

# %%
y = datasets.load("air_passengers")["y"].to_numpy()
cutoff = 120


def smooth_then_cut(values: np.ndarray) -> np.ndarray:
    """The last smoothed value before the cutoff; the mean over seven months looks three months ahead."""
    return np.convolve(values, np.ones(7) / 7, mode="same")[:cutoff][-1:]


def cut_then_smooth(values: np.ndarray) -> np.ndarray:
    """The mean of the last seven months before the cutoff."""
    return values[:cutoff][-7:].mean(keepdims=True)


changed = np.where(np.arange(len(y)) >= cutoff, 10 * y, y)
for forecaster in (smooth_then_cut, cut_then_smooth):
    print(f"{forecaster.__name__}: the forecast moves by {float(np.abs(forecaster(changed) - forecaster(y))[0]):.1f}")
assert smooth_then_cut(changed) != smooth_then_cut(y)
assert cut_then_smooth(changed) == cut_then_smooth(y)

# %% [markdown]
# `audit_suite` does this with every model of a suite on every task, from the raw rows on, so that scaling and filling are looked at
# as well. Forecasts have to be equal to the last bit.

# %%
findings = audit_suite(
    parse_suite({**parse_mapping(text, "small.yaml"), "models": ["Drift", "AutoETS", "LinearModel"]}, "small")
)
for one in findings[:3]:
    print(f"{one.task}: {one.model} is {one.verdict} ({one.n_rows} forecasts)")
assert {one.verdict for one in findings} == {"clean"}

# %% [markdown]
# ## Exercises
#
# 1. On one task model A has half the error of the reference, on another double. What is its skill, and what would the
#    arithmetic mean of the ratios say?
# 2. A sixth model is added: a copy of the best. What happens to the critical difference, and why?
#
# ## Solutions
#
# ### Solution 1
#
# The skill is 0. The arithmetic mean of 0.5 and 2 is 1.25, which would call A worse; and with A as the reference it would
# call the other worse, too.

# %%
print(skill([[1.0, 1.0], [0.5, 2.0]], 0).value[1], np.mean([0.5, 2.0]))
assert abs(skill([[1.0, 1.0], [0.5, 2.0]], 0).value[1]) < 1e-12

# %% [markdown]
# ### Solution 2
#
# It grows: the more models, the more pairs, and the more likely that some pair lies far apart by luck.

# %%
more = friedman(np.vstack([values, values[order[0]]]))
print(f"{verdict.critical_difference:.2f} with {k} models, {more.critical_difference:.2f} with {k + 1}")
assert more.critical_difference > verdict.critical_difference
home.cleanup()

# %% [markdown]
# ## Reference
#
# - `benchmark.suite_run.run_suite`, `benchmark.suite.parse_suite`, `deepforecast benchmark`
# - `benchmark.job_results.read_rows`, `benchmark.job_results.rows_to_frame`, `benchmark.summary.summarize`
# - `evaluation.skill.skill`, `evaluation.critical_difference.friedman`
# - `benchmark.leak_audit.audit_suite`
# - Demšar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7
# - Shchur et al. (2025), fev-bench: a realistic benchmark for time series forecasting
