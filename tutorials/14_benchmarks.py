# %% [markdown]
# # 14 · Reliable benchmarks
#
# A result on a single dataset may be due to chance. A **benchmark** evaluates many models in the same way on many
# datasets, records all results and their computational cost, and can be repeated by anyone. Here you build one.
#
# **After this you can**
#
# - define a suite of tasks in YAML, run it, and resume an interrupted run
# - compare models over datasets of different scale with error ratios and the geometric mean
# - decide which differences are statistically significant: ranks, Friedman test, critical difference
# - trade accuracy against computing time
# - audit a forecast for leakage, the use of data after the cutoff

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
# ## A suite of tasks
#
# A **task** is a dataset with a horizon and cutoffs. A **suite** is a list of tasks, models and metrics. It is written
# in YAML, a text format of keys and values that is easy to read, to share and to change. An unknown key raises an
# error, so a misspelled key cannot silently change a result.

# %%
suite_yaml = """
suite: small
what: six real datasets, single series and a panel, from twelve to three hundred years long
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
suite = parse_suite(parse_mapping(suite_yaml, "small.yaml"), "small.yaml")
for task in suite.tasks:
    card = datasets.card(task.dataset)
    print(f"{task.name:16} horizon {card.horizon:3}  season {card.season_length:3}  {card.description}")

try:
    parse_suite(parse_mapping(suite_yaml.replace("windows", "widnows"), "small.yaml"), "small.yaml")
except ValueError as error:
    print(f"\nmisspelled key: {error}")

# %% [markdown]
# ## A run and its result rows
#
# A **job** is one model on one task (and one random seed, for models that use random numbers). Each job runs in its own
# process, so that a crash does not affect other jobs, and with limits of time and memory. At its end one **row** is
# written: metrics, computing time, memory, versions and machine. A failed job has a row, too, with its error message.
# So failures are never dropped silently.

# %%
temporary_folder = tempfile.TemporaryDirectory()
folder = Path(temporary_folder.name) / "run"
rows = run_suite(suite, folder)
results = rows_to_frame(rows)
print(results[["task", "model", "status", "metric:mase", "fit_seconds", "peak_mb"]].head(6).to_string(index=False))
assert len(rows) == 6 * 5
print("\nfiles:", ", ".join(sorted(path.name for path in folder.iterdir())))

# %% [markdown]
# A second call runs no job, because all rows exist. So a run of many hours can be interrupted and resumed.

# %%
size = (folder / "results.jsonl").stat().st_size
resumed_rows = run_suite(suite, folder)
assert (folder / "results.jsonl").stat().st_size == size
assert [row.job for row in resumed_rows] == [row.job for row in read_rows(folder)]

# %% [markdown]
# ## Errors on different scales: ratios and the geometric mean
#
# Suppose the error is 0.4 on one task and 12 on another. Then the second dominates their mean. So each error is first
# divided by the error of a **reference model** on the same task, here the seasonal naive method:
# $r_i = e_i / e_i^{\text{ref}}$. The ratios are averaged by the **geometric mean**: half the error on one task and
# double the error on another give a mean ratio of
# 1. The **skill score** is 1 minus the mean ratio:
#
# $$\text{skill} = 1 - \Bigl( \prod_{i=1}^{n} r_i \Bigr)^{1/n}.$$
#
# A skill of 0 means as accurate as the reference, 0.2 means 20 % less error, and a negative value means less accurate
# than the reference.

# %%
mase = results.pivot(index="model", columns="task", values="metric:mase")
errors = mase.to_numpy()  # (models, tasks)
reference = mase.index.get_loc("SeasonalNaive")
ratios = errors / errors[reference]
by_hand = 1 - np.prod(ratios, axis=1) ** (1 / ratios.shape[1])
scores = skill(errors, reference)
np.testing.assert_allclose(scores.value, by_hand, atol=1e-12)
for name, value, low, high in zip(mase.index, scores.value, scores.low, scores.high, strict=True):
    print(f"{name:14} skill {value:6.3f}   (95 % interval over tasks: {low:6.3f} to {high:6.3f})")

# %% [markdown]
# The interval estimates how much the skill would vary with six other tasks of the same kind. It is a bootstrap
# interval: the tasks are resampled with replacement 1000 times. Six tasks are few, so the intervals are wide.

# %% [markdown]
# ## Statistical significance: ranks and the critical difference
#
# Ratios measure the size of the differences, **ranks** how often a model is better. On each task the best model has
# rank 1, the second best rank 2, and so on. If all models performed equally, all orders would be equally probable, and
# the mean ranks would be similar. The Friedman test rejects this hypothesis if the mean ranks differ too much. With $k$
# models, $n$ tasks, mean ranks $R_j$ and no ties its statistic is
#
# $$\chi^2_F = \frac{12 n}{k (k+1)} \Bigl( \sum_{j=1}^{k} R_j^2 - \frac{k (k+1)^2}{4} \Bigr).$$
#
# By the Nemenyi test, two models differ if the difference of their mean ranks is larger than the **critical
# difference**.

# %%
ranks = np.argsort(np.argsort(errors, axis=0), axis=0) + 1
k, n = errors.shape
mean_rank = ranks.mean(axis=1)
chi_squared = 12 * n / (k * (k + 1)) * ((mean_rank**2).sum() - k * (k + 1) ** 2 / 4)
test = friedman(errors)
np.testing.assert_allclose(chi_squared, test.statistic)
print(f"p = {test.p_value:.3f}, critical difference of mean ranks {test.critical_difference:.2f}")

# %%
figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
order = np.argsort(test.mean_ranks)
axes.plot(test.mean_ranks[order], np.arange(k), "o")
for row, model in enumerate(order):
    axes.annotate(mase.index[model], (test.mean_ranks[model], row), xytext=(8, -3), textcoords="offset points")
for number, clique in enumerate(test.cliques):
    clique_ranks = [test.mean_ranks[clique[0]], test.mean_ranks[clique[-1]]]
    axes.plot(clique_ranks, [-0.8 - 0.4 * number] * 2, linewidth=4, color="0.6")
axes.set(xlabel="mean rank (grey bar: models that do not differ significantly)", yticks=[], xlim=(0.8, k + 0.8))
axes.margins(y=0.12)
_ = axes.invert_yaxis()

# %%
rank = dict(zip(mase.index, test.mean_ranks, strict=True))
assert test.p_value < 0.05
assert rank["SeasonalNaive"] - rank["AutoTheta"] > test.critical_difference
assert max(rank["AutoETS"], rank["LinearModel"]) - rank["AutoTheta"] < test.critical_difference

# %% [markdown]
# The interpretation: $p$ is small, so the models do not all perform equally. AutoTheta is better than the seasonal
# naive method, because the difference of their mean ranks exceeds the critical difference. The differences between
# AutoTheta, AutoETS and LinearModel are not significant on these six tasks, although their mean ranks differ.

# %% [markdown]
# ## Computing time
#
# The most accurate model is not always the one to use. A model is on the **Pareto front** if no other model is both
# faster and more accurate. Only models on the front are worth their computing time.

# %%
board = summarize(rows).table  # "wins": share of the pairwise comparisons (other model, task) that a model wins
np.testing.assert_allclose(board["wins"], (k - board["rank"]) / (k - 1), atol=1e-9)
seconds = board["fit_seconds"] + board["predict_seconds"]
on_front = [
    not ((seconds < model_seconds) & (board["skill"] > model_skill)).any()
    for model_seconds, model_skill in zip(seconds, board["skill"], strict=True)
]
board = board.assign(seconds=seconds, on_front=on_front)
print(board[["model", "rank", "skill", "wins", "seconds", "on_front"]].round(3).to_string(index=False))

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.scatter(seconds, board["skill"], c=["tab:blue" if is_on_front else "0.7" for is_on_front in on_front])
for name, model_seconds, model_skill in zip(board["model"], seconds, board["skill"], strict=True):
    axes.annotate(name, (model_seconds, model_skill), xytext=(5, 4), textcoords="offset points")
axes.set(xscale="log", xlabel="seconds for all tasks (blue: on the Pareto front)", ylabel="skill score")
_ = axes.margins(0.15)

# %% [markdown]
# ## Detecting leakage
#
# A forecast made at a cutoff must not depend on any data after it. This can be tested: change the values after the
# cutoff, forecast again, and compare the forecasts. Here is a forecaster with a common mistake: it smooths the whole
# series and then removes the values after the cutoff.

# %%
y = datasets.load("air_passengers")["y"].to_numpy()
cutoff = 120


def smooth_then_cut(values: np.ndarray) -> np.ndarray:
    """The last smoothed value before the cutoff; the centered mean of seven months includes three months after it."""
    return np.convolve(values, np.ones(7) / 7, mode="same")[:cutoff][-1:]


def cut_then_smooth(values: np.ndarray) -> np.ndarray:
    """The mean of the last seven months before the cutoff."""
    return values[:cutoff][-7:].mean(keepdims=True)


changed = np.where(np.arange(len(y)) >= cutoff, 10 * y, y)
for forecaster in (smooth_then_cut, cut_then_smooth):
    print(f"{forecaster.__name__}: the forecast changes by {float(np.abs(forecaster(changed) - forecaster(y))[0]):.1f}")
assert smooth_then_cut(changed) != smooth_then_cut(y)
assert cut_then_smooth(changed) == cut_then_smooth(y)

# %% [markdown]
# `audit_suite` applies this test to every model of a suite on every task. It changes the raw data, so that the test
# includes scaling and the imputation of missing values. The forecasts must be bitwise identical.

# %%
audited_models = ["Drift", "AutoETS", "LinearModel"]
findings = audit_suite(parse_suite({**parse_mapping(suite_yaml, "small.yaml"), "models": audited_models}, "small"))
for finding in findings[:3]:
    print(f"{finding.task}: {finding.model} is {finding.verdict} ({finding.n_rows} forecasts)")
assert {finding.verdict for finding in findings} == {"clean"}

# %% [markdown]
# ## Exercises
#
# 1. On one task model A has half the error of the reference, on another double. What is its skill score, and what is
#    the arithmetic mean of the ratios?
# 2. A sixth model is added, a copy of the best. How does the critical difference change, and why?
#
# ## Solutions
#
# ### Solution 1
#
# The skill score is 0. The arithmetic mean of 0.5 and 2 is 1.25, so A would be worse than the reference. But with A as
# the reference, the other model would be worse, too.

# %%
print(skill([[1.0, 1.0], [0.5, 2.0]], 0).value[1], np.mean([0.5, 2.0]))
assert abs(skill([[1.0, 1.0], [0.5, 2.0]], 0).value[1]) < 1e-12

# %% [markdown]
# ### Solution 2
#
# It increases. With more models there are more pairs, and a large difference in some pair is more probable by chance.

# %%
test_with_copy = friedman(np.vstack([errors, errors[order[0]]]))
print(f"{test.critical_difference:.2f} with {k} models, {test_with_copy.critical_difference:.2f} with {k + 1}")
assert test_with_copy.critical_difference > test.critical_difference
temporary_folder.cleanup()

# %% [markdown]
# ## Reference
#
# - `benchmark.suite_run.run_suite`, `benchmark.suite.parse_suite`, `deepforecast benchmark`
# - `benchmark.job_results.read_rows`, `benchmark.job_results.rows_to_frame`, `benchmark.summary.summarize`
# - `evaluation.skill.skill`, `evaluation.critical_difference.friedman`
# - `benchmark.leak_audit.audit_suite`
# - Demšar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7
# - Shchur et al. (2025), fev-bench: a realistic benchmark for time series forecasting
