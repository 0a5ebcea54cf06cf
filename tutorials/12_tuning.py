# %% [markdown]
# # 12 · Hyperparameter tuning without overfitting the validation score
#
# How many layers? Which learning rate? How many trees? A model does not learn these from the data: you choose them, or
# you let a search choose. A search is easy to start, and its results are easily overestimated.
#
# **After this you can**
#
# - state what a search optimizes, and explain why its best score is too optimistic
# - search with `tune`: search ranges, the first trial, holdout windows
# - explain how the TPE sampler chooses the next trial
# - prune bad trials early, and measure how much training this saves
# - interrupt a search, resume it, and distribute it over several processes
# - trade accuracy against computing time
#
# The search uses Optuna, and the regression trees are those of LightGBM: `pip install '.[lightgbm]'` in the checkout.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from deepforecast import GRU, LightGBM, LinearModel, Naive, TuningOptions, cross_validate, datasets, plot, score, tune

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training
TREES = 20 if SHORT else 100
STEPS = 12 if SHORT else 80

# %% [markdown]
# ## The objective of a search
#
# **Parameters** are estimated from data: the weights of a network, the splits of a tree. **Hyperparameters** are set
# before training: they determine what can be learned, and how. We forecast the fertility rate (births per woman) of all
# countries with 52 years of data, five years ahead. One global model is trained on all of them.

# %%
frame = datasets.load("fertility")
frame = frame[frame.groupby("unique_id")["y"].transform("count") == 52].reset_index(drop=True)
if SHORT:
    frame = frame[frame["unique_id"].isin(frame["unique_id"].unique()[::8])]
print(frame["unique_id"].nunique(), "countries,", len(frame), "rows")
plotted_ids = frame["unique_id"].unique()[:3]
plot(frame[frame["unique_id"].isin(plotted_ids)])

# %% [markdown]
# The score of a configuration $\lambda$ is computed by cross-validation: fit the model with it on the observations up
# to a cutoff, forecast, and compare the forecasts with the observations that follow. The search looks for
#
# $$\lambda^* = \arg\min_{\lambda} \; \frac{1}{W} \sum_{w=1}^{W}
# \text{error}\big(\text{forecast}_\lambda(y_{\le c_w}), \; y_{c_w+1}, \dots, y_{c_w+H}\big),$$
#
# where $W$ is the number of windows, with cutoffs $c_w$, and $H$ is the horizon. So a search calls `cross_validate`
# once per configuration. By hand it is a loop. We draw the learning rates on a logarithmic scale, since the step from
# 0.01 to 0.02 matters as much as that from 0.1 to 0.2:

# %%
generator = np.random.default_rng(0)
rates = np.exp(generator.uniform(np.log(0.01), np.log(0.3), 3 if SHORT else 6))
model = LightGBM(horizon=5, n_estimators=TREES)
models = [model.clone(learning_rate=float(rate), alias=f"rate {rate:.4f}") for rate in rates]
folds = cross_validate([model.clone(alias="default"), *models], frame, n_windows=1)
print(score(folds, metrics=["mase"], train=frame).sort_values("mase").round(3).to_string(index=False))

# %% [markdown]
# ## The best score is too optimistic
#
# A score is a noisy estimate of the true error. Take $n$ configurations that are all equally good, with true error
# $\mu$ and normal noise of standard deviation $\sigma$. The smallest of the $n$ scores is below $\mu$, and it decreases
# with $n$. For large $n$
#
# $$\mathrm{E}\big[\min_i s_i\big] \approx \mu - \sigma \sqrt{2 \ln n}.$$

# %%
counts = np.array([1, 2, 5, 10, 30, 100, 300])
noise = generator.normal(size=(4000, counts.max()))
lowest = np.array([noise[:, :count].min(axis=1).mean() for count in counts])
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.semilogx(counts, lowest, "o-", label="mean of the best score (simulated)")
axes.semilogx(counts, -np.sqrt(2 * np.log(counts)), ":", label=r"$-\sqrt{2 \ln n}$")
axes.axhline(0, color="0.6", label="true error of all configurations")
axes.set(xlabel="number of configurations", ylabel=r"best score $-$ true error, in units of $\sigma$")
_ = axes.legend()

# %%
assert (np.diff(lowest) < 0).all()
print(f"best of 30 equally good configurations: {lowest[counts == 30].item():.2f} sigma from the true error")

# %% [markdown]
# So the best score of a search is not an estimate of the error on new data: it is too low, because the minimum also
# selects favorable noise. This bias is the **optimism** of a search. The remedy is to evaluate the best configuration
# on data that the search has not used.
#
# ## A search in one call
#
# `tune` draws configurations from the search ranges that the model declares. Parameters that you set yourself, here the
# number of trees, are not searched. With `holdout=1` the last window is not used in the search.

# %%
trials = 8 if SHORT else 25
result = tune(model, frame, n_trials=trials, options=TuningOptions(n_windows=2, step_size=2, holdout=1))
print(result.best_params)
columns = ["number", "state", "mase", "learning_rate", "num_leaves", "lags", "start"]
print(result.trials[columns].head(6).round(3).to_string(index=False))

# %% [markdown]
# The first trial is the default configuration, the model as it was passed. So the best score is never worse than the
# default's. A value of `None` appears in the table as text.

# %%
first = result.trials.iloc[0]
assert first["start"] == "default"
assert result.best_value <= first["mase"]
print(result)
print(result.holdout.drop(columns="error").round(3).to_string(index=False))

# %% [markdown]
# `search` is the score in the search, `held_out` the score on the holdout window. `gain` is the relative improvement
# over the default configuration in the search, `gain_held_out` that on the holdout window, and `optimism` is their
# difference:
#
# $$\text{gain} = 1 - \frac{s(\lambda^*)}{s(\lambda_0)}, \qquad
# \text{optimism} = \text{gain}_\text{search} - \text{gain}_\text{held out}.$$

# %%
best = result.holdout.iloc[1]
np.testing.assert_allclose(best["gain"], 1 - result.best_value / first["mase"])
np.testing.assert_allclose(best["optimism"], best["gain"] - best["gain_held_out"])
assert SHORT or best["gain_held_out"] > 0

# %% [markdown]
# The optimization history follows. This figure is interactive: hover over a trial to see its parameters. There are also
# `result.plot("importance")`, `result.plot("slices")` and `result.plot("parallel")`.

# %%
result.plot()

# %%
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(result.trials["number"], result.trials["mase"], "o", label="trial")
axes.step(result.trials["number"], result.trials["mase"].cummin(), where="post", label="best so far")
axes.set(xlabel="trial", ylabel="MASE in the search", yscale="log")
_ = axes.legend()

# %% [markdown]
# ## How the sampler chooses the next trial
#
# The first ten trials are random, except for the default configuration. Then **TPE** (tree-structured Parzen estimator)
# uses their scores. It splits the trials into the best ones and the rest, and estimates a density for each group:
# $\ell(x)$ for the best, $g(x)$ for the others. Then it draws some candidates from $\ell$. The next trial is the
# candidate with the largest ratio
#
# $$\frac{\ell(x)}{g(x)},$$
#
# so it is similar to good trials and dissimilar to bad ones. By hand, for one parameter and with Gaussian kernels of
# fixed bandwidth:


# %%
def kernel_density(trials, grid, bandwidth):
    """The mean of the normal densities around the trials."""
    z = (grid[:, None] - trials[None, :]) / bandwidth
    return np.exp(-(z**2) / 2).mean(axis=1) / (bandwidth * np.sqrt(2 * np.pi))


complete = result.trials[result.trials["state"] == "complete"].sort_values("mase")
x = np.log10(complete["learning_rate"].to_numpy())
n_best = max(2, len(complete) // 4)
low, high, bandwidth = np.log10(0.01), np.log10(0.3), 0.2
candidates = x[generator.integers(n_best, size=24)] + bandwidth * generator.normal(size=24)  # drawn from l(x)
candidates = candidates[(low <= candidates) & (candidates <= high)]
ratio = kernel_density(x[:n_best], candidates, bandwidth) / kernel_density(x[n_best:], candidates, bandwidth)
next_rate = 10 ** candidates[np.argmax(ratio)]
print(f"by hand, the next learning rate would be {next_rate:.3f}")

# %%
grid = np.linspace(low, high, 200)
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(10**grid, kernel_density(x[:n_best], grid, bandwidth), label=r"$\ell$: best trials")
axes.plot(10**grid, kernel_density(x[n_best:], grid, bandwidth), label="$g$: other trials")
axes.plot(10**x, np.zeros(len(x)), "|", color="0.4", markersize=14, label="trials")
axes.axvline(next_rate, linestyle=":", color="0.4", label="next trial")
axes.set(xscale="log", xlabel="learning rate", ylabel="density")
_ = axes.legend()

# %%
assert 0.01 <= next_rate <= 0.3
assert ratio.max() > 1

# %% [markdown]
# Other samplers are `TuningOptions(sampler="random")`, `"grid"`, `"sobol"` (quasi-random points, which cover the space
# evenly), `"gp"` (a Gaussian process, suitable for few and expensive trials) and `"cma"` (CMA-ES, an evolution
# strategy).
#
# ## Custom search spaces
#
# A dict replaces the declared ranges: a tuple is a range, a list is a set of choices, and `log` means a logarithmic
# scale. A function of the trial is more flexible: one range may depend on the value of another parameter. The random
# seed cannot be tuned, because the best seed is best by chance.

# %%
space = {
    "learning_rate": {"low": 1e-4, "high": 3e-2, "log": True},
    "dropout": (0.0, 0.5),
    "n_layers": [1, 2],
    "input_size": [5, 10, 20],
}
try:
    tune(GRU(horizon=5), frame, n_trials=2, options=TuningOptions(space={"seed": (0, 99)}))
except ValueError as error:
    print(error)


def dependent_ranges(trial):
    """Fewer leaves if the learning rate is high."""
    rate = trial.suggest_float("learning_rate", 0.01, 0.3, log=True)
    return {"learning_rate": rate, "num_leaves": trial.suggest_int("num_leaves", 4, 8 if rate > 0.1 else 32)}


small_result = tune(model, frame, n_trials=4, options=TuningOptions(n_windows=1, space=dependent_ranges))
print(small_result.trials[["mase", "learning_rate", "num_leaves"]].round(3).to_string(index=False))

# %% [markdown]
# ## Pruning bad trials
#
# Training a network is expensive, and most trials are bad. **Pruning** stops such trials before the end of their
# training. `tune` evaluates a trial after each window, and for networks also after 1/8, 1/4 and 1/2 of the training in
# a window. The **median rule** prunes a trial that is worse than half of the completed trials at the same step. After
# 1/8 of the training, where the score is less reliable, it must be worse than two thirds of them; after 1/2, where it
# is more reliable, worse than one third is enough. The first trial is never pruned.

# %%
network = GRU(horizon=5, max_steps=STEPS, hidden_size=16, batch_size=32)
pruned = tune(network, frame, n_trials=8 if SHORT else 20, options=TuningOptions(n_windows=1, holdout=1, space=space))
print(pruned.trials["state"].value_counts().to_dict())
print(pruned.trials[["number", "state", "mase", "learning_rate", "steps"]].head(10).round(4).to_string(index=False))

# %% [markdown]
# `steps` is in hundredths of a window for every model. Optuna stores all intermediate scores in its study,
# `pruned.study`. So we can plot the values on which the rule decided:

# %%
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for trial in pruned.study.trials:
    scores = trial.intermediate_values
    marker, color = ("x-", "0.7") if trial.state.name == "PRUNED" else ("o-", "tab:blue")
    axes.plot(list(scores), list(scores.values()), marker, color=color, linewidth=1)
axes.plot([], [], "x-", color="0.7", label="pruned trial")
axes.plot([], [], "o-", color="tab:blue", label="complete trial")
axes.set(xlabel="step (hundredths of a window)", ylabel="MASE at this step", yscale="log")
_ = axes.legend()

# %%
trained_share = pruned.trials["steps"].sum() / (100 * len(pruned.trials))
print(f"training steps, compared with a search without pruning: {trained_share:.0%}")
pruned_trials = pruned.trials[pruned.trials["state"] == "pruned"]
assert (pruned_trials["steps"] < 100).all()
assert SHORT or trained_share < 0.8
print(pruned.holdout.drop(columns="error").round(3).to_string(index=False))

# %% [markdown]
# Pruning has a cost: a trial that improves slowly but ends well is lost, for example one with a small learning rate.
# Pruning is worthwhile if trials take long; otherwise use `pruner=None`.
#
# ## Resuming and distributing a search
#
# With `storage` the study is stored in a file. A search that was interrupted by Ctrl-C, a crash or a power failure is
# resumed by the same call. `n_trials` is the total number of trials of the study, so a second call with the same number
# adds none. `n_jobs=2` runs trials in two processes. The same call on another machine with access to the file joins the
# search.

# %%
with tempfile.TemporaryDirectory() as folder:
    journal = Path(folder, "study.log")
    options = TuningOptions(n_windows=1)
    before = tune(LinearModel(horizon=5), frame, n_trials=6, storage=journal, options=options)
    parallel = TuningOptions(n_windows=1, n_jobs=2)
    after = tune(LinearModel(horizon=5), frame, n_trials=12, storage=journal, options=parallel)
    print(len(before.trials), "trials, after resuming", len(after.trials))
    assert before.trials["mase"].equals(after.trials["mase"][:6])
    assert len(after.trials) == 12
    try:
        tune(LinearModel(horizon=5), frame.iloc[:520], n_trials=20, storage=journal, options=options)
    except ValueError as error:
        print(str(error).replace(folder, "folder"))

# %% [markdown]
# A study cannot be resumed with other data, because scores on different data sets cannot be compared. The same search
# on the command line:
#
# ```bash
# deepforecast tune sales.csv --model lstm --horizon 24 --n-trials 50 --storage study.log --n-jobs 2
# ```
#
# A file is suitable for a few machines that share a folder. For many machines, pass the URL of a PostgreSQL or MySQL
# server. The command `optuna-dashboard study.log` shows a running study in the browser.
#
# ## Accuracy and computing time
#
# Often both matter. With two objectives there is no single best trial, but a **Pareto front**: the trials that no other
# trial beats in both objectives. Several models can be searched in one study; the model is then one more parameter.

# %%
two_objectives = tune(
    [LinearModel(), Naive(), model.clone(n_estimators=20)],
    frame,
    horizon=5,
    n_trials=8 if SHORT else 20,
    metric=["mase", "seconds"],
    options=TuningOptions(n_windows=1),
)
print(two_objectives.pareto[["model", "mase", "seconds"]].round(3).to_string(index=False))

# %%
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, trials_of_model in two_objectives.trials.groupby("model"):
    axes.plot(trials_of_model["seconds"], trials_of_model["mase"], "o", label=name)
front = two_objectives.pareto
axes.step(front["seconds"][::-1], front["mase"][::-1], where="post", color="0.4", label="Pareto front")
axes.set(xlabel="seconds per trial", ylabel="MASE", xscale="log")
_ = axes.legend()

# %%
for _, trial in front.iterrows():
    more_accurate = two_objectives.trials["mase"] < trial["mase"]
    faster = two_objectives.trials["seconds"] < trial["seconds"]
    assert not (more_accurate & faster).any()

# %% [markdown]
# ## The final model
#
# `best_model` is not fitted. Fit it on all data, including the holdout window, and forecast.

# %%
final = result.best_model.fit(frame)
forecast = final.predict()
plot(frame[frame["unique_id"].isin(plotted_ids)], forecast[forecast["unique_id"].isin(plotted_ids)], max_history=30)

# %% [markdown]
# ## Exercises
#
# 1. By how much is the best of 30 equally good configurations overestimated if each is scored on four windows instead
#    of one? Derive the answer first, then simulate. (Here the errors of the windows are independent; in practice they
#    are correlated.)
# 2. Tune `LinearModel` with three seeds of the sampler, `TuningOptions(seed=0)`, `1` and `2`. Do the best
#    configurations agree? Do their scores?
# 3. Score the five best configurations on the holdout window. Is the best configuration of the search also the best on
#    the holdout window?
#
# ## Solutions
#
# ### Solution 1
#
# The mean over four windows has half the standard deviation, $\sigma / \sqrt{4}$. So the optimism is halved, too.

# %%
four_windows = generator.normal(size=(4000, 30, 4)).mean(axis=2).min(axis=1).mean()
one_window = lowest[counts == 30].item()
print(f"one window: {one_window:.2f} sigma, four windows: {four_windows:.2f} sigma")
np.testing.assert_allclose(four_windows, one_window / 2, rtol=0.05)

# %% [markdown]
# ### Solution 2

# %%
results = [
    tune(LinearModel(horizon=5), frame, n_trials=12, options=TuningOptions(n_windows=1, seed=seed, pruner=None))
    for seed in range(3)
]
best_values = {name: {str(run.best_params.get(name)) for run in results} for name in results[0].best_params}
print("best scores:", [round(run.best_value, 4) for run in results])
print("equal in all best configurations:", [name for name, values in best_values.items() if len(values) == 1])
print("different:", {name: sorted(values) for name, values in best_values.items() if len(values) > 1})
score_range = np.ptp([run.best_value for run in results])
assert score_range < np.ptp(results[0].trials["mase"])

# %% [markdown]
# The three best scores are much closer together than the scores of the trials: many configurations have almost the same
# error. A parameter that differs between seeds without changing the score is unimportant. `result.importance()`
# estimates the importance of each parameter.
#
# ### Solution 3

# %%
holdout_rows = frame.groupby("unique_id").tail(5)
earlier = frame.drop(holdout_rows.index)
candidates = [
    LightGBM(horizon=5, n_estimators=TREES, alias=f"rank {rank + 1}").set_params(**params)
    for rank, params in enumerate(result.best_configurations(5))
]
folds = cross_validate([model.clone(alias="default"), *candidates], frame, n_windows=1)
holdout_errors = score(folds, metrics=["mase"], train=earlier).set_index("model")["mase"]
print((1 - holdout_errors / holdout_errors["default"]).round(3).to_string())

# %% [markdown]
# The ranking on the holdout window can differ: among the best configurations the search cannot separate true
# differences from noise. Do not choose the configuration that is best on the holdout window instead. That would be a
# search on this window, and you would need new data for an unbiased estimate.
#
# ## Reference
#
# - `tune`, `TuningOptions`, `TuningResult`
# - `cross_validate`, `score`, `plot`, `deepforecast tune`
#
# Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization" (TPE). Akiba et al. 2019, "Optuna: A
# Next-generation Hyperparameter Optimization Framework". Golovin et al. 2017, "Google Vizier" (the median rule). Cawley
# and Talbot 2010, "On Over-fitting in Model Selection and Subsequent Selection Bias in Performance Evaluation".
