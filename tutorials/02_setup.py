# %% [markdown]
# # 02 · Set-up and doctor, CPU and GPU
#
# Before the course: is everything installed, and as fast as it should be?
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
# You need Python 3.11 or newer, pip, make and git. From a checkout:
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
# `deepforecast doctor` lists installed versions, missing packages, the number of available CPUs, the GPUs that torch finds,
# and the data directories. Include its output in questions and bug reports. `--json` prints machine-readable output;
# `--no-gpu` does not import torch and is fast.

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
# A missing extra matters only when a feature needs it; the error then states what to install. All other models work
# without it.
#
# ## CPU or GPU?
#
# Classical models, baselines and regression models run on the CPU. Only networks can use a GPU, and by default they do:
# `accelerator="auto"`. Which device is used here?

# %%
import torch

from deepforecast import MLP, AutoETS, SeasonalNaive, datasets, plot

gpu = torch.cuda.is_available()
print("a GPU for torch:", "yes" if gpu else "no", "· so networks train on the", "GPU" if gpu else "CPU")

# %% [markdown]
# Is a GPU faster? It multiplies large matrices fast, but every kernel launch has overhead, so it pays off for large batches
# and wide networks. Measure it: here is the time of one training step of an MLP by width, on the CPU and, if available, on
# the GPU:

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
# Timings depend on the machine and its load, so the text quotes none. For small networks the overhead per step dominates, and
# a GPU does not help. For large ones the arithmetic dominates: the number of multiplications grows with the square of the
# width.
#
# A model trained on a GPU can forecast on a CPU: model files do not depend on the device.
#
# ## Threads
#
# A CPU has several cores, and numpy, torch and the compiled kernels each start threads to use them. If several processes do
# this at once, they compete for the cores. Two environment variables set the number of threads before Python starts:
#
# ```bash
# OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python script.py
# ```
#
# Starting and synchronizing threads takes time. What is the speed-up? Here are products of square matrices with one thread
# and with one per CPU. Below 1, more threads are slower.

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
# Small products finish before a second thread has started. Large ones can gain, unless the CPUs are busy with other work.
# The library therefore trains small networks on one thread and large ones on all CPUs, without any setting. The rule for your
# own programs: **either many processes with one thread each, or one process with many threads.**
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
again = small.clone().fit(passengers).predict()["MLP"].to_numpy()
other = small.clone().set_params(seed=2).fit(passengers).predict()["MLP"].to_numpy()
print("same seed, same forecast:", bool((first == again).all()))
print(f"another seed differs by up to {np.abs(first - other).max():.0f}")
assert (first == again).all()
assert (first != other).any()

# %% [markdown]
# The library does not change the global random state, so your own random draws are unaffected:

# %%
generator_state = torch.random.get_rng_state()
small.fit(passengers)
assert torch.equal(generator_state, torch.random.get_rng_state())
print("torch's global random state: as before")

# %% [markdown]
# It also writes no files: no logs, and no checkpoints unless `checkpoint_dir` is set.
#
# ## The first run is slow
#
# Classical models are compiled on first use and cached on disk, so the first `AutoETS` of a new installation takes longer
# than all later ones. Exclude it from timings.

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
# 1. Use a model whose extra is missing, and a model name that does not exist. What do the messages say?
# 2. How much of the time of `fit` of a small network is training, and how much is set-up? Measure with 1 step and with many.
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
