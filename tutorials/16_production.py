# %% [markdown]
# # 16 · From notebook to production: save, serve, update, monitor
#
# A forecast in a notebook helps nobody at six in the morning. This tutorial takes a model to where it works every day: it is
# saved, loaded elsewhere, fed with new values, watched, and replaced when it has grown old.
#
# **After this you can**
#
# - save a model, load it without its training data, and trust the file
# - answer requests: new histories, unknown series, many at once
# - move a model on with new values without fitting it again
# - watch data and errors, and decide when to refit
# - replace a model only by one that is better

# %%
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import deepforecast
from deepforecast import MLP, AutoETS, SeasonalNaive, check, compare, datasets, errors, score

SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training

# %% [markdown]
# The data: twelve quarterly series of the US economy. We pretend that it is the end of 1999; what comes after is the future,
# which we let arrive quarter by quarter.

# %%
everything = datasets.load("macrodata_panel")
known = everything[everything["ds"] < "2000-01-01"]
coming = [quarter for _, quarter in everything[everything["ds"] >= "2000-01-01"].groupby("ds")]
print(f"{known['unique_id'].nunique()} series, {len(coming)} quarters to come")

# %% [markdown]
# ## Save and load
#
# `save` writes one file, whole or not at all: at every moment there is the old file or the new one. In it are numbers and
# text under a checksum, and no code. `load` needs neither the data nor the notebook.

# %%
workshop = tempfile.TemporaryDirectory()
path = Path(workshop.name) / "economy.dfc"
model = AutoETS(horizon=4).fit(known)
model.save(path)
print(f"{path.stat().st_size:,} bytes for {known['unique_id'].nunique()} series")

begun = time.perf_counter()
served = deepforecast.load(path)
print(f"loaded in {1000 * (time.perf_counter() - begun):.0f} ms")
assert served.predict().equals(model.predict())

# %% [markdown]
# A real test of "elsewhere" is another process. It knows the file and nothing else:

# %%
program = f"""
import deepforecast
print(deepforecast.load({str(path)!r}).predict(1).head(2).to_string(index=False))
"""
done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
print(done.stdout)

# %% [markdown]
# A file that was damaged on its way is refused; it never forecasts something a little different. We turn one bit.

# %%
damaged = path.with_name("damaged.dfc")
content = bytearray(path.read_bytes())
content[len(content) // 2] ^= 1
damaged.write_bytes(content)
try:
    deepforecast.load(damaged)
except errors.ModelFileError as error:
    print(str(error).replace(str(damaged), "damaged.dfc"))

# %% [markdown]
# On the command line the same is `deepforecast fit`, `deepforecast predict`; a nightly job needs no Python of yours.
#
# ## Serve
#
# A request brings histories, and wants forecasts. `predict(frame=...)` forecasts from the end of these histories. A
# **global** model, one for all series, forecasts series it has never seen, too:

# %%
network = MLP(horizon=4, input_size=16, hidden_sizes=[64]).fit(known)
visitor = datasets.load("danish_data")[["unique_id", "ds", "y"]].assign(unique_id="Danish money")
print(network.predict(frame=visitor).round({"MLP": 3}).to_string(index=False))

# %% [markdown]
# A service answers in a few lines, whatever the framework around it. What users send wrong must come back as a clear answer,
# not as a crash: all errors of the library derive from one class, and the messages state the rule, the value and the fix.

# %%
def answer(request):
    """What a web service would return: a status and a body."""
    try:
        history = pd.DataFrame(request["history"]).assign(unique_id="request", ds=lambda rows: pd.to_datetime(rows["ds"]))
        forecast = network.predict(request.get("horizon"), frame=history, level=request.get("level"))
    except errors.DeepForecastError as error:
        return 422, str(error)
    return 200, forecast.assign(ds=forecast["ds"].astype(str)).to_dict("records")


stamps = pd.date_range("2020-01-01", periods=20, freq="QS").astype(str).tolist()
good = {"history": {"ds": stamps, "y": list(range(20))}, "horizon": 2, "level": 80}
twice = {"history": {"ds": [*stamps, stamps[3]], "y": list(range(21))}}
for request in (good, twice, {**good, "level": 150}):
    status, body = answer(request)
    print(status, body[0] if status == 200 else body[:140])
assert [answer(request)[0] for request in (good, twice)] == [200, 422]

# %% [markdown]
# Ask for many series in one call, not one by one: a call has a cost of its own.

# %%
one = known[known["unique_id"] == "cpi"]
many = pd.concat([one.assign(unique_id=f"cpi {i}") for i in range(500)])
begun = time.perf_counter()
network.predict(frame=many)
together = time.perf_counter() - begun
begun = time.perf_counter()
for _ in range(10):
    network.predict(frame=one)
apart = 50 * (time.perf_counter() - begun)
print(f"500 series in one call take 1/{apart / together:.0f} of the time of 500 calls")
assert together < apart

# %% [markdown]
# ## Update
#
# A quarter has passed, and new values are here. `update` appends them: the state moves on, the parameters stay. That is
# cheap, and it is what you do every day. `fit` estimates the parameters again; do that only when needed.
#
# First look at what arrives. `check` finds what is wrong with a frame before a model does:

# %%
late = pd.concat([known, coming[0].iloc[:11], coming[1]])  # one series did not report in the first quarter
print(check(late))

# %%
nightly = deepforecast.load(path)
nightly.update(coming[0])
again = AutoETS(horizon=4).fit(pd.concat([known, coming[0]]))
difference = (nightly.predict()["AutoETS"] / again.predict()["AutoETS"] - 1).abs()
print(f"updated and refitted differ by {difference.median():.2%} in the median")
try:
    nightly.update(coming[0])
except errors.DataError as error:
    print(error)

# %% [markdown]
# The same quarter twice is refused, so a job that is run again by mistake does no harm.
#
# ## Monitor
#
# Let the years go by. Each quarter we forecast one quarter ahead, wait, write down the error and whether the interval held,
# and update. We scale errors by the mean change of each series, so that they can be added up.

# %%
scale = known.groupby("unique_id")["y"].apply(lambda y: y.diff().abs().mean())
nightly, log = deepforecast.load(path), []
for quarter in coming:
    forecast = nightly.predict(1, level=80)
    seen = forecast.merge(quarter, on=["unique_id", "ds"])
    error = (seen["y"] - seen["AutoETS"]).abs() / seen["unique_id"].map(scale)
    held = seen["y"].between(seen["AutoETS-lo-80"], seen["AutoETS-hi-80"])
    log.append({"ds": quarter["ds"].iloc[0], "error": error.mean(), "coverage": held.mean()})
    nightly.update(quarter)
log = pd.DataFrame(log).set_index("ds")

# %%
figure, axes = plt.subplots(2, 1, figsize=(9, 4.6), sharex=True, layout="constrained")
axes[0].bar(log.index, log["error"], width=70)
axes[0].set(ylabel="scaled error")
axes[1].plot(log.index, log["coverage"].rolling(4).mean(), "o-")
axes[1].axhline(0.8, color="grey", linestyle="--")
axes[1].set(ylabel="coverage, last year", ylim=(0, 1.05))
print("worst quarter:", str(log["error"].idxmax().date()), " coverage over all:", round(log["coverage"].mean(), 2))
assert log["error"].idxmax().year in (2008, 2009)

# %% [markdown]
# For eight years nothing much. Then the crisis of 2008: the errors jump and the intervals miss. No model of the past saw it
# coming, but the monitor saw it at once. A simple alarm: is the error of the last quarter beyond nearly all errors before it?

# %%
alarms = [log.index[i] for i in range(8, len(log)) if log["error"].iloc[i] > 1.5 * log["error"].iloc[:i].quantile(0.95)]
print("alarms:", [str(stamp.date()) for stamp in alarms])
assert alarms
assert min(alarms).year == 2008

# %% [markdown]
# An alarm is a question, not an answer. Is a value wrong? Has the world changed for good, or for a while? Only in the second
# case refit.
#
# ## Replace
#
# A new model takes over only if it is better where it counts: on the last values, which neither has seen. The **champion** is
# in service, the **challenger** wants to be.

# %%
recent = pd.concat([known, *coming])
board = compare(
    [AutoETS(alias="champion"), SeasonalNaive(alias="baseline"), AutoETS(damped=True, alias="challenger")],
    recent,
    horizon=4,
    n_windows=2 if SHORT else 6,
    level=80,
)
print(board.table[["model", "mase", "mase-low", "mase-high", "coverage-80"]].round(2).to_string(index=False))

# %%
board.plot()

# %% [markdown]
# Keep a baseline on the board for ever. The day it wins, something is broken. If the whiskers of two models lie on each
# other, keep the champion: changing has a cost too.
#
# What else to write down with each model: the version of the library, the last stamp of the data, the leaderboard.
# `repr(model)` and `get_params()` say how it was made.

# %%
print(deepforecast.__version__, served)
assert served.get_params() == model.get_params()

# %% [markdown]
# ## Exercises
#
# 1. Write a nightly job as a function: load, check, update, forecast, save. What happens if it is killed while it saves?
# 2. How long may a model run on `update` alone? Compare forecasts of 2007 by a model fitted in 1999 and updated with one
#    fitted in 2006.
# 3. Add to `answer` a limit on the size of a request. Where does it belong: before or after the library?

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# `save` is atomic: after a kill there is the old file, and the job can be run again. `update` refuses quarters it knows, so
# running twice does no harm; catch that one.

# %%
def job(path, arrived):
    model = deepforecast.load(path)
    try:
        model.update(arrived)
    except errors.DataError as error:
        print("not updated:", str(error)[:60], "...")
    model.save(path)
    return model.predict(level=80)


first = job(path, coming[0])
second = job(path, coming[0])  # by mistake
assert first.equals(second)

# %% [markdown]
# ### Solution 2

# %%
until_2006 = everything[everything["ds"] < "2007-01-01"]
year = everything[(everything["ds"] >= "2007-01-01") & (everything["ds"] < "2008-01-01")]
old = AutoETS(horizon=4, alias="fitted in 1999").fit(known)
old.update(until_2006[until_2006["ds"] >= "2000-01-01"])
fresh = AutoETS(horizon=4, alias="fitted in 2006").fit(until_2006)
both = old.predict().merge(fresh.predict())
aged = score(both, actual=year, train=until_2006, metrics=["mase"])
print(aged.round(3).to_string(index=False))
assert np.ptp(aged["mase"]) < 0.1

# %% [markdown]
# After seven years of updates the old parameters are about as good as new ones here. Parameters age slowly; states age at once.
# So update always, and fit when the monitor or the leaderboard asks for it.
#
# ### Solution 3
#
# Before: what is refused early costs nothing, and a service has limits that a library cannot know.

# %%
def limited(request, most=10_000):
    rows = len(request["history"]["y"])
    return answer(request) if rows <= most else (413, f"a request holds at most {most:,} rows; got {rows:,}")


print(limited(good, most=10))
workshop.cleanup()

# %% [markdown]
# ## Reference
#
# - `load`, `Forecaster.save`, `Forecaster.update`, `Forecaster.predict`, `Forecaster.fine_tune`
# - `check`, `compare`, `score`, `errors.DeepForecastError`
# - `deepforecast fit`, `deepforecast predict`, `deepforecast doctor`
