# %% [markdown]
# # 16 · From notebook to production: save, serve, update, monitor
#
# In production a model makes new forecasts every day without a notebook. This tutorial shows how to save a model and
# load it elsewhere, update it with new observations, monitor its accuracy, and replace it by a better one.
#
# **After this you can**
#
# - save a model, load it without its training data, and detect damaged files
# - serve requests: new histories, series not in the training data, many series at once
# - update a model with new observations without fitting it again
# - monitor data and errors, and decide when to refit
# - replace a model only by a more accurate one

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
# The data are twelve quarterly series of the US economy. The history ends in 1999. The later quarters are used as new
# observations, which arrive one quarter at a time.

# %%
panel = datasets.load("macrodata_panel")
history = panel[panel["ds"] < "2000-01-01"]
new_quarters = [quarter for _, quarter in panel[panel["ds"] >= "2000-01-01"].groupby("ds")]
print(f"{history['unique_id'].nunique()} series, {len(new_quarters)} new quarters")

# %% [markdown]
# ## Save and load
#
# `save` writes a single file, and it is atomic: at each instant the path holds either the complete old file or the
# complete new one. The file contains numbers and text with a checksum, and no code. `load` needs neither the training
# data nor the notebook.

# %%
temporary_folder = tempfile.TemporaryDirectory()
path = Path(temporary_folder.name) / "economy.dfc"
model = AutoETS(horizon=4).fit(history)
model.save(path)
print(f"{path.stat().st_size:,} bytes for {history['unique_id'].nunique()} series")

start = time.perf_counter()
loaded = deepforecast.load(path)
print(f"loaded in {1000 * (time.perf_counter() - start):.0f} ms")
assert loaded.predict().equals(model.predict())

# %% [markdown]
# Another process can load the file as well. It needs only the file and the library:

# %%
program = f"""
import deepforecast
print(deepforecast.load({str(path)!r}).predict(1).head(2).to_string(index=False))
"""
process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
print(process.stdout)

# %% [markdown]
# Loading a damaged file raises an error; it never results in slightly different forecasts. Here we flip one bit.

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
# The command-line equivalents are `deepforecast fit` and `deepforecast predict`; a scheduled job needs no Python code.
#
# ## Serve
#
# A request contains histories and asks for forecasts. `predict(frame=...)` forecasts from the end of these histories. A
# **global model**, a single model for all series, also forecasts series that were not in the training data:

# %%
network = MLP(horizon=4, input_size=16, hidden_sizes=[64]).fit(history)
new_series = datasets.load("danish_data")[["unique_id", "ds", "y"]].assign(unique_id="Danish money")
print(network.predict(frame=new_series).round({"MLP": 3}).to_string(index=False))

# %% [markdown]
# A web service needs only a few lines, with any framework. An invalid request must return a clear message instead of
# crashing the service. All errors of the library derive from one class, and the messages state the rule, the value and
# the fix.


# %%
def handle_request(request):
    """Return the status code and the body of the response of a web service."""
    try:
        frame = pd.DataFrame(request["history"]).assign(unique_id="request", ds=lambda rows: pd.to_datetime(rows["ds"]))
        forecast = network.predict(request.get("horizon"), frame=frame, level=request.get("level"))
    except errors.DeepForecastError as error:
        return 422, str(error)
    return 200, forecast.assign(ds=forecast["ds"].astype(str)).to_dict("records")


dates = pd.date_range("2020-01-01", periods=20, freq="QS").astype(str).tolist()
valid = {"history": {"ds": dates, "y": list(range(20))}, "horizon": 2, "level": 80}
duplicated_date = {"history": {"ds": [*dates, dates[3]], "y": list(range(21))}}
for request in (valid, duplicated_date, {**valid, "level": 150}):
    status, body = handle_request(request)
    print(status, body[0] if status == 200 else body[:140])
assert [handle_request(request)[0] for request in (valid, duplicated_date)] == [200, 422]

# %% [markdown]
# Forecast many series in one call rather than one by one, because each call has a fixed cost.

# %%
single_series = history[history["unique_id"] == "cpi"]
many_series = pd.concat([single_series.assign(unique_id=f"cpi {i}") for i in range(500)])
start = time.perf_counter()
network.predict(frame=many_series)
time_of_one_call = time.perf_counter() - start
start = time.perf_counter()
for _ in range(10):
    network.predict(frame=single_series)
time_of_500_calls = 50 * (time.perf_counter() - start)
print(f"500 series in one call take 1/{time_of_500_calls / time_of_one_call:.0f} of the time of 500 calls")
assert time_of_one_call < time_of_500_calls

# %% [markdown]
# ## Update
#
# After each quarter new observations are available. `update` appends them: it updates the state of each series and
# keeps the parameters. It is fast and can run every day. `fit` estimates the parameters again, which is only needed
# occasionally.
#
# Check new data first. `check` reports problems of a frame before they cause errors in a model:

# %%
incomplete = pd.concat([history, new_quarters[0].iloc[:11], new_quarters[1]])  # one series lacks the first new quarter
print(check(incomplete))

# %%
updated = deepforecast.load(path)
updated.update(new_quarters[0])
refitted = AutoETS(horizon=4).fit(pd.concat([history, new_quarters[0]]))
difference = (updated.predict()["AutoETS"] / refitted.predict()["AutoETS"] - 1).abs()
print(f"median difference of the forecasts after update and after refit: {difference.median():.2%}")
try:
    updated.update(new_quarters[0])
except errors.DataError as error:
    print(error)

# %% [markdown]
# Updating with the same quarter twice raises an error, so running a job twice by mistake has no effect on the
# forecasts.
#
# ## Monitor
#
# Now we simulate the following years. For each quarter we make a forecast one quarter ahead, record its error and the
# coverage of the 80 % intervals once the observations are available, and update. The errors are divided by the mean
# absolute change of each series, so that they can be averaged over series.

# %%
scale = history.groupby("unique_id")["y"].apply(lambda y: y.diff().abs().mean())
monitored, log = deepforecast.load(path), []
for quarter in new_quarters:
    forecast = monitored.predict(1, level=80)
    evaluated = forecast.merge(quarter, on=["unique_id", "ds"])
    scaled_error = (evaluated["y"] - evaluated["AutoETS"]).abs() / evaluated["unique_id"].map(scale)
    inside = evaluated["y"].between(evaluated["AutoETS-lo-80"], evaluated["AutoETS-hi-80"])
    log.append({"ds": quarter["ds"].iloc[0], "error": scaled_error.mean(), "coverage": inside.mean()})
    monitored.update(quarter)
log = pd.DataFrame(log).set_index("ds")

# %%
figure, axes = plt.subplots(2, 1, figsize=(9, 4.6), sharex=True, layout="constrained")
axes[0].bar(log.index, log["error"], width=70)
axes[0].set(ylabel="mean scaled error")
axes[1].plot(log.index, log["coverage"].rolling(4).mean(), "o-")
axes[1].axhline(0.8, color="grey", linestyle="--")
axes[1].set(ylabel="coverage (4-quarter mean)", ylim=(0, 1.05))
print("largest error:", str(log["error"].idxmax().date()), " mean coverage:", round(log["coverage"].mean(), 2))
assert log["error"].idxmax().year in (2008, 2009)

# %% [markdown]
# For eight years the errors vary little. In the crisis of 2008 they increase sharply, and many values are outside the
# intervals. A model fitted to the past could not predict the crisis, but monitoring detects it immediately. A simple
# alarm rule: the error of the last quarter exceeds 1.5 times the 95 % quantile of the previous errors.

# %%
alarms = [log.index[i] for i in range(8, len(log)) if log["error"].iloc[i] > 1.5 * log["error"].iloc[:i].quantile(0.95)]
print("alarms:", [str(date.date()) for date in alarms])
assert alarms
assert min(alarms).year == 2008

# %% [markdown]
# The cause of an alarm must be investigated. It may be an error in the data, a temporary change or a permanent change
# of the process. Refit only after a permanent change.
#
# ## Replace
#
# A new model replaces the old one only if it is more accurate on the most recent observations, on which neither was
# fitted. The model in production is called the **champion**, its possible replacement the **challenger**.

# %%
board = compare(
    [AutoETS(alias="champion"), SeasonalNaive(alias="baseline"), AutoETS(damped=True, alias="challenger")],
    panel,
    horizon=4,
    n_windows=2 if SHORT else 6,
    level=80,
)
print(board.table[["model", "mase", "mase-low", "mase-high", "coverage-80"]].round(2).to_string(index=False))

# %%
board.plot()

# %% [markdown]
# Always include a baseline in the comparison. If it is the most accurate model, something is wrong. If the confidence
# intervals of champion and challenger overlap, keep the champion, because a replacement has costs, too.
#
# Also record for each model the version of the library, the last date of the training data and the leaderboard.
# `repr(model)` and `get_params()` return its parameters.

# %%
print(deepforecast.__version__, loaded)
assert loaded.get_params() == model.get_params()

# %% [markdown]
# ## Exercises
#
# 1. Write a nightly job as a function: load, check, update, forecast, save. What happens if it is killed while it
#    saves?
# 2. For how long can a model be used with `update` alone? Compare the forecasts of 2007 by a model fitted in 1999 and
#    updated since with those of a model fitted in 2006.
# 3. Add a limit on the size of a request to `handle_request`. Should it be checked before or after calling the library?

# %% [markdown]
# ## Solutions
#
# ### Solution 1
#
# `save` is atomic: if the job is killed, the old file is still there, and the job can be run again. `update` raises an
# error for quarters that the model already has, so catch this error. Then running the job twice has the same result as
# running it once.


# %%
def nightly_job(path, new_rows):
    model = deepforecast.load(path)
    try:
        model.update(new_rows)
    except errors.DataError as error:
        print("not updated:", str(error)[:60], "...")
    model.save(path)
    return model.predict(level=80)


first_run = nightly_job(path, new_quarters[0])
second_run = nightly_job(path, new_quarters[0])  # by mistake
assert first_run.equals(second_run)

# %% [markdown]
# ### Solution 2

# %%
until_2006 = panel[panel["ds"] < "2007-01-01"]
year_2007 = panel[(panel["ds"] >= "2007-01-01") & (panel["ds"] < "2008-01-01")]
updated = AutoETS(horizon=4, alias="fitted in 1999").fit(history)
updated.update(until_2006[until_2006["ds"] >= "2000-01-01"])
refitted = AutoETS(horizon=4, alias="fitted in 2006").fit(until_2006)
forecasts = updated.predict().merge(refitted.predict())
scores = score(forecasts, actual=year_2007, train=until_2006, metrics=["mase"])
print(scores.round(3).to_string(index=False))
assert np.ptp(scores["mase"]) < 0.1

# %% [markdown]
# After seven years of updates the old parameters are about as accurate as new ones on these data. Parameters become
# outdated slowly, but the state is outdated with each new observation. So update always, and refit if the monitoring or
# a comparison of models shows a need.
#
# ### Solution 3
#
# Before calling the library: rejecting a request early saves its computation, and the library cannot know the limits of
# the service.


# %%
def handle_limited_request(request, max_rows=10_000):
    n_rows = len(request["history"]["y"])
    if n_rows > max_rows:
        return 413, f"a request must have at most {max_rows:,} rows, got {n_rows:,}"
    return handle_request(request)


print(handle_limited_request(valid, max_rows=10))
temporary_folder.cleanup()

# %% [markdown]
# ## Reference
#
# - `load`, `Forecaster.save`, `Forecaster.update`, `Forecaster.predict`, `Forecaster.fine_tune`
# - `check`, `compare`, `score`, `errors.DeepForecastError`
# - `deepforecast fit`, `deepforecast predict`, `deepforecast doctor`
