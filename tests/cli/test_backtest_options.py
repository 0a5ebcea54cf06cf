"""What `compare` and `cross-validate` share."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deepforecast import BacktestOptions, Naive2, SeasonalNaive, cross_validate
from deepforecast.evaluation.backtesting import ALIGNMENTS


@pytest.fixture
def gappy(folder: Path) -> pd.DataFrame:
    """`gaps.csv`: a series with a value missing every nine days."""
    days = np.arange(80)
    y = np.where(days % 9 == 4, np.nan, 20 + days % 7 + 0.1 * days)
    frame = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=80), "y": y})
    frame.to_csv(folder / "gaps.csv", index=False)
    return frame


def forecasts(run, *arguments: str) -> pd.DataFrame:
    ran = run("cross-validate", "gaps.csv", "--horizon", "3", "--n-windows", "2", "--output", "-", *arguments)
    assert ran.status == 0, ran.err
    return pd.read_csv(io.StringIO(ran.out))


@pytest.mark.parametrize("missing", ["interpolate", "ffill", "zero"])
def test_missing_values_are_filled_as_the_option_says(run, gappy: pd.DataFrame, missing: str) -> None:
    found = forecasts(run, "--model", "Naive2", "--missing", missing)
    expected = cross_validate(Naive2(missing=missing), gappy, horizon=3, n_windows=2)
    np.testing.assert_allclose(found["Naive2"], expected["Naive2"], rtol=1e-13)  # as far as pandas 2 reads a CSV exactly


def test_a_model_that_says_itself_what_to_do_keeps_to_it(run, gappy: pd.DataFrame) -> None:
    models = ["--model", "Naive2:missing=zero", "Conformal(Naive2(missing='zero'), alias='Bands')"]
    found = forecasts(run, *models, "--missing", "interpolate")
    expected = cross_validate(Naive2(missing="zero"), gappy, horizon=3, n_windows=2)
    assert found["Naive2"].tolist() == found["Bands"].tolist() == expected["Naive2"].tolist()


@pytest.mark.parametrize("align", ALIGNMENTS)
def test_cutoffs_are_aligned_as_the_option_says(run, folder: Path, align: str) -> None:
    days = pd.date_range("2024-01-01", periods=30).astype(str)
    lines = [f"a,{day},{place % 7}" for place, day in enumerate(days)]
    lines += [f"b,{day},{place}" for place, day in enumerate(days[:28])]
    (folder / "gaps.csv").write_text("unique_id,ds,y\n" + "\n".join(lines) + "\n")
    found = forecasts(run, "--model", "SeasonalNaive", "--align", align)
    frame = pd.read_csv(folder / "gaps.csv", parse_dates=["ds"])
    expected = cross_validate(SeasonalNaive(), frame, horizon=3, n_windows=2, options=BacktestOptions(align=align))
    assert found["cutoff"].tolist() == expected["cutoff"].astype(str).tolist()


def test_the_scale_follows_the_season_given(run, gappy: pd.DataFrame) -> None:
    for command, rows in (("cross-validate", "scores"), ("compare", "leaderboard")):
        base = [command, "gaps.csv", "--model", "SeasonalNaive", "--horizon", "3", "--metrics", "mase", "--json"]
        options = ([], ["--season-length", "7"], ["--season-length", "1"])
        usual, weekly, daily = (run(*base, *more).facts[rows][0]["mase"] for more in options)
        assert usual == weekly != daily


@pytest.mark.parametrize("command", ["compare", "cross-validate"])
@pytest.mark.parametrize(
    ("option", "said"),
    [(["--missing", "maybe"], "--missing: invalid choice"), (["--align", "end"], "--align: invalid choice")],
)
def test_what_cannot_be_is_refused(run, command: str, option: list[str], said: str) -> None:
    assert said in run(command, "sales.csv", "--model", "Naive", "--horizon", "3", *option).refusal()
