# %% [markdown]
# # 02 · Set-up and doctor, CPU and GPU
#
# Before the course begins, we check that everything is installed and as fast as it should be.
#
# **After this you can**
#
# - install the library and check the installation with `doctor`
# - choose between CPU and GPU by measuring, and set the device of a network
# - set the number of threads, and know when more are slower
# - reproduce results exactly

# %% [markdown]
# ## Install
#
# The library requires Python 3.11 or newer, pip, make and git. From a checkout:
#
# ```bash
# make demo               # creates .venv the first time, then forecasts and compares
# pip install .           # or: into your own environment
# pip install ".[lightgbm,holidays]"    # with extras: boosted trees, national holidays
# ```
#
# `import deepforecast` is fast: pandas, torch and other dependencies are loaded on first use.

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
# ## Check the installation
#
# `deepforecast doctor` lists installed versions, missing packages, the number of available CPUs, the GPUs that torch
# finds, and the data directories. Include its output in questions and bug reports. `--json` prints machine-readable
# output; `--no-gpu` does not import torch and is fast.

# %%
command = [sys.executable, "-m", "deepforecast", "doctor", "--json", "--no-gpu"]
process = subprocess.run(command, capture_output=True, text=True, check=True)
environment = json.loads(process.stdout)
print("deepforecast", environment["deepforecast"]["version"])
for name in ("numpy", "pandas", "torch", "pytorch-lightning"):
    print(f"  {name:18s}", environment["packages"][name])
missing = [name for name, version in environment["packages"].items() if version == "missing"]
missing_extras = [name for name, version in environment["optional packages"].items() if version == "missing"]
print("required packages that are missing:", missing or "none")
print("optional packages that are missing:", missing_extras)

# %% [markdown]
# A missing extra matters only when a feature needs it; the error message then states what to install. All other models
# work without it.
#
# ## CPU or GPU?
#
# Classical models, baselines and regression models run on the CPU. Only networks can use a GPU, and by default they do
# (`trainer={"accelerator": "cpu"}` selects the CPU). Which device is used here?

# %%
import torch

from deepforecast import MLP, AutoETS, SeasonalNaive, datasets, plot

gpu = torch.cuda.is_available()
print("GPU available to torch:", "yes" if gpu else "no", "· networks train on the", "GPU" if gpu else "CPU")

# %% [markdown]
# Is a GPU faster? It multiplies large matrices fast, but every kernel launch has overhead, so it pays off for large
# batches and wide networks. Measure it: here is the time of one training step of an MLP by the width of its layers, on
# the CPU and, if available, on the GPU.

# %%
frame = datasets.generate(20, 300, freq="D", seed=0)


def seconds_per_step(**settings):
    """Median time of a training step, without the time before the first step."""
    model = MLP(horizon=14, input_size=56, batch_size=256, max_steps=STEPS, **settings).fit(frame)
    return model.training_report_["seconds"].diff().median()


widths = [32, 256] if SHORT else [32, 128, 512, 1024]
devices = ["cpu", "gpu"] if gpu else ["cpu"]
figure, axes = plt.subplots(figsize=(7, 3.3), layout="constrained")
for device in devices:
    step_times = [1000 * seconds_per_step(hidden_sizes=[width, width], trainer={"accelerator": device}) for width in widths]
    axes.plot(widths, step_times, "o-", label=device)
axes.set(xlabel="width of the two hidden layers", ylabel="milliseconds per step", xscale="log", ylim=(0, None))
axes.set_xticks(widths, [str(width) for width in widths], minor=False)
axes.minorticks_off()
_ = axes.legend()

# %% [markdown]
# Timings depend on the machine and its load, so the text quotes none. For small networks the overhead per step
# dominates, and a GPU does not help. For large ones the arithmetic dominates: the number of multiplications grows with
# the square of the width.
#
# A model trained on a GPU can forecast on a CPU: model files do not depend on the device.
#
# ## Threads
#
# A CPU has several cores, and numpy, torch and the compiled kernels each start threads to use them. If several
# processes do this at once, they compete for the cores. Two environment variables set the number of threads before
# Python starts:
#
# ```bash
# OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python script.py
# ```
#
# Starting and synchronizing threads takes time. What is the speed-up? Here are products of square matrices with one
# thread and with one per CPU. A value below 1 means that several threads are slower than one.

# %%
print("CPUs:", environment["threads"]["cpus"])


def milliseconds(width, n_threads):
    """Median time of the product of two matrices."""
    torch.set_num_threads(n_threads)
    matrix, times = torch.ones(width, width), []
    for _ in range(30 if SHORT else 200):
        start = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times))


n_cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
previous_n_threads = torch.get_num_threads()
for width in (16, 64, 256, 1024):
    speedup = milliseconds(width, 1) / milliseconds(width, n_cpus)
    print(f"{width:4d} x {width:<4d}: {n_cpus} threads are {speedup:5.2f} times as fast as 1")
torch.set_num_threads(previous_n_threads)

# %% [markdown]
# Small products finish before a second thread has started. Large ones can gain, unless the CPUs are busy with other
# work. The library therefore trains small networks on one thread and large ones on all CPUs, without any setting. The
# rule for your own programs: **either many processes with one thread each, or one process with many threads.**
# `compare(..., n_jobs=2)` and `tune(..., options=TuningOptions(n_jobs=2))` start processes with one
# thread each.

# %% [markdown]
# ## Reproducibility
#
# The same data, seed, versions and number of threads give bitwise identical results:

# %%
passengers = datasets.load("air_passengers")
small = MLP(horizon=12, input_size=24, hidden_sizes=[32], max_steps=STEPS, seed=1)
first = small.fit(passengers).predict()["MLP"].to_numpy()
second = small.clone().fit(passengers).predict()["MLP"].to_numpy()
other_seed = small.clone().set_params(seed=2).fit(passengers).predict()["MLP"].to_numpy()
print("same seed, same forecast:", bool((first == second).all()))
print(f"another seed changes the forecast by up to {np.abs(first - other_seed).max():.0f}")
assert (first == second).all()
assert (first != other_seed).any()

# %% [markdown]
# The library does not change the global random state, so your own random draws are unaffected:

# %%
generator_state = torch.random.get_rng_state()
small.fit(passengers)
assert torch.equal(generator_state, torch.random.get_rng_state())
print("the global random state of torch is unchanged")

# %% [markdown]
# It also writes no files: no logs, and no checkpoints unless `checkpoint_dir` is set.
#
# ## The first run is slow
#
# Classical models are compiled on first use and cached on disk, so the first `AutoETS` of a new installation takes
# longer than all later ones. Exclude it from timings.

# %%
times = []
for _ in range(3):
    start = time.perf_counter()
    model = AutoETS(horizon=12).fit(passengers)
    times.append(time.perf_counter() - start)
print("the first fit took longer than the last:", times[0] > times[-1])
plot(passengers, model.predict(level=80), max_history=60)

# %% [markdown]
# ## Exercises
#
# 1. Use a model whose extra is missing, and a model name that does not exist. What do the messages state?
# 2. How is the time of `fit` of a small network divided between set-up and training? Measure with 1 step and with many.
# 3. Fit `SeasonalNaive` to 10,000 series of 100 days. How many series per second is that?

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
start = time.perf_counter()
MLP(horizon=12, input_size=24, hidden_sizes=[32], max_steps=1).fit(passengers)
setup_seconds = time.perf_counter() - start
start = time.perf_counter()
MLP(horizon=12, input_size=24, hidden_sizes=[32], max_steps=STEPS).fit(passengers)
total_seconds = time.perf_counter() - start
print(f"set-up takes {100 * min(setup_seconds / total_seconds, 1):.0f} % of the time of `fit` with {STEPS} steps")

# %% [markdown]
# ### Solution 3

# %%
panel = datasets.generate(10_000, 100, freq="D", seed=0)
start = time.perf_counter()
SeasonalNaive(horizon=14).fit(panel).predict()
series_per_second = 10_000 / (time.perf_counter() - start)
print(f"at least {10 ** int(np.log10(series_per_second)):,} series per second")
assert series_per_second > 1000

# %% [markdown]
# ## Reference
#
# - `deepforecast doctor`, `deepforecast demo`, `deepforecast models`
# - `MLP`, `AutoETS`, `SeasonalNaive`, `compare`, `tune`, `TuningOptions`, `errors.DependencyError`
