# %% [markdown]
# # 02 · Set-up and doctor, CPU and GPU
#
# Before a long course: is everything there, and is it as fast as it should be?
#
# **After this you can**
#
# - install the library and ask `doctor` what is there and what is missing
# - choose between CPU and GPU by measuring, and say which of them a network uses
# - set the number of threads, and know when more are slower
# - run the same thing twice and get the same numbers

# %% [markdown]
# ## Install
#
# You need Python 3.11 or newer, pip, make and git. From a checkout:
#
# ```bash
# make demo               # makes .venv the first time, then forecasts and compares
# pip install .           # or: into an environment of your own
# pip install ".[lightgbm,holidays]"    # with extras: boosted trees, holidays by country
# ```
#
# `import deepforecast` is light on purpose: pandas, torch and their like are loaded when they are first used.

# %%
import json
import os
import subprocess
import sys
import time

import matplotlib.pyplot as plt
import numpy as np

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training
STEPS = 12 if SHORT else 40

program = """
import sys, deepforecast
print([name for name in ("pandas", "torch", "matplotlib", "sklearn") if name in sys.modules])
"""
loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
print("heavy libraries loaded by `import deepforecast`:", loaded.stdout.strip())
assert loaded.stdout.strip() == "[]"

# %% [markdown]
# ## Ask the doctor
#
# In a terminal: `deepforecast doctor`. It says which versions are installed, what is missing, how many CPUs may be used, what
# torch knows of a GPU, and where data are looked for. It is the first thing to send with a question. `--json` gives the same
# for programs. `--no-gpu` leaves torch alone and is quick.

# %%
command = [sys.executable, "-m", "deepforecast", "doctor", "--json", "--no-gpu"]
done = subprocess.run(command, capture_output=True, text=True, check=True)
facts = json.loads(done.stdout)
print("deepforecast", facts["deepforecast"]["version"])
for name in ("numpy", "pandas", "torch", "pytorch-lightning"):
    print(f"  {name:18s}", facts["packages"][name])
missing = [name for name, version in facts["packages"].items() if version == "missing"]
print("needed and missing:", missing or "nothing")
print("extras that are not installed:", [name for name, version in facts["optional packages"].items() if version == "missing"])

# %% [markdown]
# An extra that is missing is no trouble until it is asked for. Then the error says what to install. Models that need none of
# it work all the same.
#
# ## CPU or GPU?
#
# Classical models, baselines and regressors run on the CPU. Only networks can use a GPU, and they take it by themselves:
# `accelerator="auto"`. What would they take here?

# %%
import torch

from deepforecast import MLP, AutoETS, SeasonalNaive, datasets, plot

gpu = torch.cuda.is_available()
print("a GPU for torch:", "yes" if gpu else "no", "· so networks train on the", "GPU" if gpu else "CPU")

# %% [markdown]
# Is a GPU faster? It multiplies large matrices fast, and it needs time for each small order. So it pays for large batches and
# wide networks. Whoever doubts measures. Here is the time of a training step of an MLP by its width, on the CPU and, where
# there is one, on the GPU:

# %%
frame = datasets.generate(20, 300, freq="D", seed=0)


def seconds_per_step(**how):
    """The usual time of a step of training, without what is spent before the first one."""
    model = MLP(horizon=14, input_size=56, batch_size=256, max_steps=STEPS, **how).fit(frame)
    return model.training_report_["seconds"].diff().median()


widths = [32, 256] if SHORT else [32, 128, 512, 1024]
devices = ["cpu", "gpu"] if gpu else ["cpu"]
figure, axes = plt.subplots(figsize=(7, 3.3), layout="constrained")
for device in devices:
    speeds = [1000 * seconds_per_step(hidden_sizes=[width, width], accelerator=device) for width in widths]
    axes.plot(widths, speeds, "o-", label=device)
axes.set(xlabel="width of two hidden layers", ylabel="milliseconds a step", xscale="log", ylim=(0, None))
axes.set_xticks(widths, [str(width) for width in widths], minor=False)
axes.minorticks_off()
_ = axes.legend()

# %% [markdown]
# Times differ from machine to machine and from hour to hour; this is why there are none in the text. While a network is
# small, the overhead of a step counts more than its arithmetic, and a GPU brings nothing. Then the arithmetic takes over: the
# number of its multiplications grows with the square of the width.
#
# A model that was trained on a GPU forecasts on a CPU: its file knows no device.
#
# ## Threads
#
# A CPU has several cores. numpy, torch and the compiled kernels each start threads for them. If several processes do so at
# once, they wait for each other. Two environment variables set the number before Python starts:
#
# ```bash
# OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python script.py
# ```
#
# Threads have to be started and waited for. What does a second one bring? Here are products of square matrices with one thread
# and with as many as there are CPUs. Below 1, more threads are slower.

# %%
print("cpus:", facts["threads"]["cpus"])


def milliseconds(width, threads):
    """The usual time of a product of two matrices."""
    torch.set_num_threads(threads)
    matrix, times = torch.ones(width, width), []
    for _ in range(30 if SHORT else 200):
        begun = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - begun)
    return 1000 * float(np.median(times))


cpus, before = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(), torch.get_num_threads()
for width in (16, 64, 256, 1024):
    gain = milliseconds(width, 1) / milliseconds(width, cpus)
    print(f"{width:4d} x {width:<4d}: {cpus} threads are {gain:5.2f} times as fast as 1")
torch.set_num_threads(before)

# %% [markdown]
# Small products are over before a second thread has begun. Large ones can gain, unless the CPUs are busy with something else:
# then threads wait for each other, and lose. So a network of the library trains on one thread while it is small,
# and on all CPUs when it is large; you need not say so. The rule for your own programs: **either many processes with one thread
# each, or one process with many threads.** `compare(..., options=BacktestOptions(n_jobs=2))` and `tune(..., options=Study(n_jobs=2))`
# make processes, and give each one thread by themselves.

# %% [markdown]
# ## The same again
#
# Science needs results that can be repeated. The same data, seed, versions and number of threads give the same bits:

# %%
passengers = datasets.load("air_passengers")
small = MLP(horizon=12, input_size=24, hidden_sizes=[32], max_steps=STEPS, seed=1)
first = small.fit(passengers).predict()["MLP"].to_numpy()
again = small.clone().fit(passengers).predict()["MLP"].to_numpy()
other = small.clone().set_params(seed=2).fit(passengers).predict()["MLP"].to_numpy()
print("same seed, same forecast:", bool((first == again).all()))
print(f"another seed differs by up to {np.abs(first - other).max():.0f}")
assert (first == again).all()
assert (first != other).any()

# %% [markdown]
# The library leaves the global random state alone. Your own draws are what they would have been without it:

# %%
generator_state = torch.random.get_rng_state()
small.fit(passengers)
assert torch.equal(generator_state, torch.random.get_rng_state())
print("torch's global random state: as before")

# %% [markdown]
# And it leaves no files behind: no logs, no checkpoints, unless `checkpoint_dir` names a folder.
#
# ## The first run is slow
#
# Classical models are compiled when they are first used, and the result is kept on disk. So the first `AutoETS` of a new
# installation takes longer than all later ones; never measure that one.

# %%
times = []
for _ in range(3):
    begun = time.perf_counter()
    model = AutoETS(horizon=12).fit(passengers)
    times.append(time.perf_counter() - begun)
print("the first fit took longer than the last:", times[0] > times[-1])
plot(passengers, model.predict(level=80), max_history=60)

# %% [markdown]
# ## Exercises
#
# 1. Ask for a model whose extra is missing, or for a name that does not exist. What do the messages say?
# 2. How much of `fit` of a small network is training, and how much is set-up? Measure with 1 step and with many.
# 3. Fit `SeasonalNaive` to 10,000 series of 100 days. How many series a second is that?

# %% [markdown]
# ## Solutions
#
# ### Solution 1

# %%
import deepforecast

try:
    deepforecast.LSTN  # noqa: B018
except AttributeError as error:
    print(error)

try:
    deepforecast.CatBoost().fit(passengers)
    print("CatBoost is installed")
except deepforecast.errors.DependencyError as error:
    print(error)

# %% [markdown]
# ### Solution 2

# %%
begun = time.perf_counter()
MLP(horizon=12, input_size=24, hidden_sizes=[32], max_steps=1).fit(passengers)
setting_up = time.perf_counter() - begun
begun = time.perf_counter()
MLP(horizon=12, input_size=24, hidden_sizes=[32], max_steps=STEPS).fit(passengers)
whole = time.perf_counter() - begun
print(f"set-up is {100 * min(setting_up / whole, 1):.0f} % of a training of {STEPS} steps")

# %% [markdown]
# ### Solution 3

# %%
many = datasets.generate(10_000, 100, freq="D", seed=0)
begun = time.perf_counter()
SeasonalNaive(horizon=14).fit(many).predict()
rate = 10_000 / (time.perf_counter() - begun)
print(f"about {10 ** int(np.log10(rate)):,} series a second or more")
assert rate > 1000

# %% [markdown]
# ## Reference
#
# - `deepforecast doctor`, `deepforecast demo`, `deepforecast models`
# - `MLP`, `AutoETS`, `SeasonalNaive`, `BacktestOptions`, `TuningOptions`, `errors.DependencyError`
