# %% [markdown]
# # 12 · Tuning: searching for a better configuration, and not fooling yourself
#
# How many layers? Which learning rate? How many trees? A model does not learn these from data: you choose them, or you let a
# search choose. A search is quick to start and easy to believe too much.
#
# **After this you can**
#
# - say what a search optimises, and why its best score is too good to be true
# - search with `tune`: ranges, the first trial, windows held out
# - explain how the sampler TPE picks the next trial
# - end bad trials early, and count what that saves
# - stop a search, go on with it, and share it between processes
# - weigh accuracy against seconds
#
# The search is run by Optuna. The trees are LightGBM's: `pip install '.[lightgbm]'` from the checkout.

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
# ## What is searched
#
# **Parameters** are learned from data: the weights of a network, the splits of a tree. **Hyperparameters** are set before:
# they say what can be learned, and how. We forecast fertility, births per woman, of all countries with 52 years of data, five
# years ahead. One model learns from all of them.

# %%
frame = datasets.load("fertility")
frame = frame[frame.groupby("unique_id")["y"].transform("count") == 52].reset_index(drop=True)
if SHORT:
    frame = frame[frame["unique_id"].isin(frame["unique_id"].unique()[::8])]
print(frame["unique_id"].nunique(), "countries,", len(frame), "rows")
some = frame["unique_id"].unique()[:3]
plot(frame[frame["unique_id"].isin(some)])

# %% [markdown]
# A configuration $\lambda$ has a score: fit with it on the rows before a cutoff, forecast, and compare with what came. The
# search looks for
#
# $$\lambda^* = \arg\min_{\lambda} \; \frac{1}{W} \sum_{w=1}^{W}
# \text{error}\big(\text{forecast}_\lambda(y_{\le c_w}), \; y_{c_w+1}, \dots, y_{c_w+H}\big),$$
#
# over $W$ windows with cutoffs $c_w$. This is `cross_validate`, done over and over. By hand it takes a loop. We draw each
# learning rate on a logarithm, since the step from 0.01 to 0.02 matters as much as that from 0.1 to 0.2:

# %%
generator = np.random.default_rng(0)
rates = np.exp(generator.uniform(np.log(0.01), np.log(0.3), 3 if SHORT else 6))
model = LightGBM(horizon=5, n_estimators=TREES)
models = [model.clone(learning_rate=float(rate), alias=f"rate {rate:.4f}") for rate in rates]
folds = cross_validate([model.clone(alias="as it is"), *models], frame, n_windows=1)
print(score(folds, metrics=["mase"], train=frame).sort_values("mase").round(3).to_string(index=False))

# %% [markdown]
# ## The best of many is too good to be true
#
# A score is an estimate, with noise. Take $n$ configurations that are all equally good, with true error $\mu$ and noise of
# standard deviation $\sigma$. The smallest of $n$ scores still looks better, the more so the more you try. For large $n$
#
# $$\mathrm{E}\big[\min_i s_i\big] \approx \mu - \sigma \sqrt{2 \ln n}.$$

# %%
counts = np.array([1, 2, 5, 10, 30, 100, 300])
noise = generator.normal(size=(4000, counts.max()))
lowest = np.array([noise[:, :count].min(axis=1).mean() for count in counts])
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.semilogx(counts, lowest, "o-", label="mean of the best score")
axes.semilogx(counts, -np.sqrt(2 * np.log(counts)), ":", label=r"$-\sqrt{2 \ln n}$")
axes.axhline(0, color="0.6", label="the truth: all are equally good")
axes.set(xlabel="configurations tried", ylabel=r"score, in $\sigma$ from the truth")
_ = axes.legend()

# %%
assert (np.diff(lowest) < 0).all()
print("best of 30 equals:", lowest[counts == 30].round(2).item(), "sigma better than it is")

# %% [markdown]
# So the score of the winner is no forecast of how well it will do: part of it is luck. This is the **optimism** of a search.
# The cure is a part of the data that the search has not seen.
#
# ## A search in one call
#
# `tune` draws configurations from the ranges that the model declares. What you set yourself stays as you set it, here the
# number of trees. With `holdout=1` the last window is hidden from the search.

# %%
trials = 8 if SHORT else 25
found = tune(model, frame, n_trials=trials, options=TuningOptions(n_windows=2, step_size=2, holdout=1))
print(found.best_params)
columns = ["number", "state", "mase", "learning_rate", "num_leaves", "lags", "start"]
print(found.trials[columns].head(6).round(3).to_string(index=False))

# %% [markdown]
# The first trial is the model as it is. So a search cannot end below its start without showing it. A choice of `None` stands
# in the frame as text.

# %%
first = found.trials.iloc[0]
assert first["start"] == "default"
assert found.best_value <= first["mase"]
print(found)
print(found.holdout.drop(columns="error").round(3).to_string(index=False))

# %% [markdown]
# `search` is the score in the search, `held_out` that on the hidden window. `gain` is what the best promises over the model as
# it is, `gain_held_out` what it keeps, and `optimism` the difference:
#
# $$\text{gain} = 1 - \frac{s(\lambda^*)}{s(\lambda_0)}, \qquad
# \text{optimism} = \text{gain}_\text{search} - \text{gain}_\text{held out}.$$

# %%
best = found.holdout.iloc[1]
np.testing.assert_allclose(best["gain"], 1 - found.best_value / first["mase"])
np.testing.assert_allclose(best["optimism"], best["gain"] - best["gain_held_out"])
assert SHORT or best["gain_held_out"] > 0

# %% [markdown]
# The history of the search. This picture is interactive: point at a trial to see its parameters. There are also
# `found.plot("importance")`, `found.plot("slices")` and `found.plot("parallel")`.

# %%
found.plot()

# %%
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(found.trials["number"], found.trials["mase"], "o", label="trial")
axes.step(found.trials["number"], found.trials["mase"].cummin(), where="post", label="best so far")
axes.set(xlabel="trial", ylabel="MASE in the search", yscale="log")
_ = axes.legend()

# %% [markdown]
# ## How the next trial is chosen
#
# Ten trials are drawn at random. Then **TPE** (tree-structured Parzen estimator) learns from them. It splits the trials into
# the good ones and the rest, and draws a density around each group: $\ell(x)$ for the good, $g(x)$ for the others. Then it
# draws a few candidates from $\ell$. The next trial is the one with the largest
#
# $$\frac{\ell(x)}{g(x)},$$
#
# so it lies where the good ones are and the bad ones are not. By hand, for one parameter, with a bump of fixed width on each
# trial:


# %%
def density(points, at, width):
    """The mean of bell curves around the points."""
    return np.exp(-(((at[:, None] - points[None, :]) / width) ** 2) / 2).mean(axis=1) / (width * np.sqrt(2 * np.pi))


done = found.trials[found.trials["state"] == "complete"].sort_values("mase")
x = np.log10(done["learning_rate"].to_numpy())
good = max(2, len(done) // 4)
low, high, width = np.log10(0.01), np.log10(0.3), 0.2
candidates = x[generator.integers(good, size=24)] + width * generator.normal(size=24)  # from the density of the good
candidates = candidates[(low <= candidates) & (candidates <= high)]
ratio = density(x[:good], candidates, width) / density(x[good:], candidates, width)
next_rate = 10 ** candidates[np.argmax(ratio)]
print(f"by hand, the next learning rate would be {next_rate:.3f}")

# %%
at = np.linspace(low, high, 200)
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(10**at, density(x[:good], at, width), label=r"$\ell$: the good trials")
axes.plot(10**at, density(x[good:], at, width), label="$g$: the others")
axes.plot(10**x, np.zeros(len(x)), "|", color="0.4", markersize=14, label="trials")
axes.axvline(next_rate, linestyle=":", color="0.4", label="next")
axes.set(xscale="log", xlabel="learning rate", ylabel="density")
_ = axes.legend()

# %%
assert 0.01 <= next_rate <= 0.3
assert ratio.max() > 1

# %% [markdown]
# Other samplers: `TuningOptions(sampler="random")`, `"grid"`, `"sobol"` (points that fill the space evenly), `"gp"` (a Gaussian
# process, good with few and dear trials), `"cma"`.
#
# ## Ranges of your own
#
# A dict says what is searched instead: a tuple is a range, a list is a choice, `log` means a logarithm. A function of the trial
# can do more, for instance tie one parameter to another. The seed cannot be tuned: the search would find the luckiest one.

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


def tied(trial):
    """Fewer leaves for trees that learn fast."""
    rate = trial.suggest_float("learning_rate", 0.01, 0.3, log=True)
    return {"learning_rate": rate, "num_leaves": trial.suggest_int("num_leaves", 4, 8 if rate > 0.1 else 32)}


small = tune(model, frame, n_trials=4, options=TuningOptions(n_windows=1, space=tied))
print(small.trials[["mase", "learning_rate", "num_leaves"]].round(3).to_string(index=False))

# %% [markdown]
# ## Ending bad trials early
#
# A network is dear: most of its trials are bad, and are trained to their end all the same. Unless somebody looks. A trial of
# `tune` is looked at after each window, and while a network trains also an eighth, a quarter and half through a window. The
# **median rule**: a trial that is worse than half of the finished ones at the same step is ended. An eighth through, which
# tells less, it has to be worse than two thirds of them, and halfway, which tells more, only than one third. The first trial
# is never ended.

# %%
network = GRU(horizon=5, max_steps=STEPS, hidden_size=16, batch_size=32)
pruned = tune(network, frame, n_trials=8 if SHORT else 20, options=TuningOptions(n_windows=1, holdout=1, space=space))
print(pruned.trials["state"].value_counts().to_dict())
print(pruned.trials[["number", "state", "mase", "learning_rate", "steps"]].head(10).round(4).to_string(index=False))

# %% [markdown]
# `steps` counts in hundredths of a window, whatever the model. Every look is kept by Optuna, whose study is
# `pruned.study`. So we can draw what the rule saw:

# %%
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for one in pruned.study.trials:
    looks = one.intermediate_values
    early = one.state.name == "PRUNED"
    axes.plot(list(looks), list(looks.values()), "x-" if early else "o-", color="0.7" if early else "tab:blue", linewidth=1)
axes.plot([], [], "x-", color="0.7", label="ended early")
axes.plot([], [], "o-", color="tab:blue", label="to its end")
axes.set(xlabel="step (hundredths of the window)", ylabel="MASE of the forecasts so far", yscale="log")
_ = axes.legend()

# %%
share = pruned.trials["steps"].sum() / (100 * len(pruned.trials))
print(f"trained {share:.0%} of the steps that all trials would have taken")
ended = pruned.trials[pruned.trials["state"] == "pruned"]
assert (ended["steps"] < 100).all()
assert SHORT or share < 0.8
print(pruned.holdout.drop(columns="error").round(3).to_string(index=False))

# %% [markdown]
# Is this free? No: a trial that starts slowly and ends well is lost. Small learning rates do that. With many seconds a trial
# the rule pays; otherwise say `pruner=None`.
#
# ## Stop, go on, share
#
# With `storage` the study lives in a file. A call that was cut short, by Ctrl-C, a crash or a power cut, goes on where it was:
# by the same call. `n_trials` counts all trials of the study, so a second call with the same number adds none. `n_jobs=2`
# lets two processes work on it, and the same call on another machine that sees the file joins in.

# %%
with tempfile.TemporaryDirectory() as folder:
    journal = Path(folder, "study.log")
    options = TuningOptions(n_windows=1)
    before = tune(LinearModel(horizon=5), frame, n_trials=6, storage=journal, options=options)
    after = tune(LinearModel(horizon=5), frame, n_trials=12, storage=journal, options=TuningOptions(n_windows=1, n_jobs=2))
    print(len(before.trials), "trials, then", len(after.trials))
    assert before.trials["mase"].equals(after.trials["mase"][:6])
    assert len(after.trials) == 12
    try:
        tune(LinearModel(horizon=5), frame.iloc[:520], n_trials=20, storage=journal, options=options)
    except ValueError as error:
        print(str(error).replace(folder, "folder"))

# %% [markdown]
# Other data under the same name are refused: scores of two data sets cannot be compared. Put the same line in a shell:
#
# ```bash
# deepforecast tune sales.csv --model lstm --horizon 24 --trials 50 --storage study.log --jobs 2
# ```
#
# A file is right for a few machines that share a folder. For many, give the URL of a PostgreSQL or MySQL server. The
# program `optuna-dashboard study.log` shows a study in the browser while it runs.
#
# ## Accurate, or fast?
#
# Often both count. Ask for two objectives, and there is no single best any more, but a **Pareto front**: the trials that no
# other beats in both. Several models can share one study; which model is then one more parameter.

# %%
both = tune(
    [LinearModel(), Naive(), model.clone(n_estimators=20)],
    frame,
    horizon=5,
    n_trials=8 if SHORT else 20,
    metric=["mase", "seconds"],
    options=TuningOptions(n_windows=1),
)
print(both.pareto[["model", "mase", "seconds"]].round(3).to_string(index=False))

# %%
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, own in both.trials.groupby("model"):
    axes.plot(own["seconds"], own["mase"], "o", label=name)
front = both.pareto
axes.step(front["seconds"][::-1], front["mase"][::-1], where="post", color="0.4", label="Pareto front")
axes.set(xlabel="seconds a trial", ylabel="MASE", xscale="log")
_ = axes.legend()

# %%
for _, one in front.iterrows():
    beaten = (both.trials["mase"] < one["mase"]) & (both.trials["seconds"] < one["seconds"])
    assert not beaten.any()

# %% [markdown]
# ## The model to keep
#
# `best_model` is not fitted. Fit it on all data, the hidden window too, and forecast.

# %%
final = found.best_model.fit(frame)
forecast = final.predict()
plot(frame[frame["unique_id"].isin(some)], forecast[forecast["unique_id"].isin(some)], max_history=30)

# %% [markdown]
# ## Exercises
#
# 1. How much better does the best of 30 equally good configurations look if each is scored on four windows instead of one?
#    Argue first, then simulate. (The errors of windows are independent here; in truth they are not.)
# 2. Tune `LinearModel` with three seeds of the sampler, `TuningOptions(seed=0)`, `1` and `2`. Do the best configurations agree? Do
#    their scores?
# 3. Score the best five configurations on the hidden window, not only the winner. Is the winner of the search
#    also the best on the hidden window?
#
# ## Solutions
#
# ### Solution 1
#
# The mean of four windows has half the standard deviation, $\sigma / \sqrt{4}$. So the optimism halves, too.

# %%
four = generator.normal(size=(4000, 30, 4)).mean(axis=2).min(axis=1).mean()
one_window = lowest[counts == 30].item()
print(f"one window: {one_window:.2f} sigma, four windows: {four:.2f} sigma")
np.testing.assert_allclose(four, one_window / 2, rtol=0.05)

# %% [markdown]
# ### Solution 2

# %%
results = [
    tune(LinearModel(horizon=5), frame, n_trials=12, options=TuningOptions(n_windows=1, seed=seed, pruner=None))
    for seed in range(3)
]
drawn = {name: {str(result.best_params.get(name)) for result in results} for name in results[0].best_params}
print("scores", [round(result.best_value, 4) for result in results])
print("the best agree in", [name for name, values in drawn.items() if len(values) == 1])
print("they differ in", {name: sorted(values) for name, values in drawn.items() if len(values) > 1})
spread = np.ptp([result.best_value for result in results])
assert spread < np.ptp(results[0].trials["mase"])

# %% [markdown]
# The three scores are much closer together than those of the trials: many roads lead to about the same error. A parameter
# that differs from seed to seed without changing the score does not matter. `result.importance()` says so, too.
#
# ### Solution 3

# %%
last = frame.groupby("unique_id").tail(5)
earlier = frame.drop(last.index)
candidates = [
    LightGBM(horizon=5, n_estimators=TREES, alias=f"place {place + 1}").set_params(**params)
    for place, params in enumerate(found.best_configurations(5))
]
folds = cross_validate([model.clone(alias="as it is"), *candidates], frame, n_windows=1)
hidden = score(folds, metrics=["mase"], train=earlier).set_index("model")["mase"]
print((1 - hidden / hidden["as it is"]).round(3).to_string())

# %% [markdown]
# The order on the hidden window need not be the same: among the best few the search cannot tell skill from luck. Do not pick
# the winner of the hidden window instead. Then that window has been searched on, too, and you would need a new one.
#
# ## Reference
#
# - `tune`, `TuningOptions`, `TuningResult`
# - `cross_validate`, `score`, `plot`, `deepforecast tune`
#
# Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization" (TPE). Akiba et al. 2019, "Optuna: A Next-generation
# Hyperparameter Optimization Framework". Golovin et al. 2017, "Google Vizier" (the median rule). Cawley and Talbot 2010, "On
# Over-fitting in Model Selection and Subsequent Selection Bias in Performance Evaluation".
