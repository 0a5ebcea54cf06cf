"""Without the optional packages plotly and skops: all but what they bring works, and an error names the extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.linear_model import Ridge

from deepforecast import Regression, datasets

PROGRAM = '''
import sys
from importlib.abc import MetaPathFinder


class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("plotly", "skops"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
folder = sys.argv[1]

from sklearn.linear_model import Ridge

from deepforecast import Naive, Regression, SeasonalNaive, compare, datasets, load, plot
from deepforecast.cli import main
from deepforecast.errors import DependencyError
from deepforecast.plotting.tuning import plot_importance

frame = datasets.load("air_passengers")
board = compare([Naive(), SeasonalNaive()], frame, horizon=6, n_windows=2, level=80)
board.report(folder + "/report.html")
board.plot()
for model in (SeasonalNaive(horizon=6), Regression("ridge", horizon=6)):
    model.fit(frame).save(folder + "/model.dfc")
    assert load(folder + "/model.dfc").predict().equals(model.predict())
foreign = Regression(Ridge(), horizon=6).fit(frame)
for call in (
    lambda: plot(frame, backend="plotly"),
    lambda: plot_importance(None),
    lambda: foreign.save(folder + "/foreign.dfc", allow_skops=True),
    lambda: load(folder + "/regressor.dfc"),
):
    try:
        call()
    except DependencyError as error:
        print(error)
print(main(["tune", "d.csv", "--model", "Naive", "--horizon", "2", "--n-trials", "2", "--plot", folder + "/search.html"]))
print(sorted({name.partition(".")[0] for name in sys.modules} & {"plotly", "skops"}))
'''


@pytest.mark.slow
def test_everything_else_works_without_plotly_and_skops(tmp_path: Path) -> None:
    Regression(Ridge(), horizon=6).fit(datasets.load("air_passengers")).save(tmp_path / "regressor.dfc")
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert not (tmp_path / "foreign.dfc").exists()
    plotly = "requires the package plotly (extra plotly), which is not installed. Run: pip install plotly"
    skops = "requires the package skops (extra skops), which is not installed. Run: pip install skops"
    assert done.stdout.splitlines() == [
        f"backend='plotly' {plotly}",
        f"Plotting a search {plotly}",
        f"A file with a regressor of another library {skops}",
        f"A file with a regressor of another library {skops}",
        "2",
        "[]",
    ]
    assert f"--plot {plotly}" in " ".join(done.stderr.split())
