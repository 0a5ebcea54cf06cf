"""`deepforecast tune`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from deepforecast import load

LINE = ["tune", "sales.csv", "--model", "window-mean", "--horizon", "7", "--n-trials", "6", "--n-windows", "2"]


def test_the_best_trials(run) -> None:
    ran = run(*LINE)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("6 trials (")
    assert "Best: mase" in ran.out
    assert "WindowMean(horizon=7" in ran.out


def test_the_same_line_goes_on(run, folder: Path) -> None:
    line = [*LINE, "--storage", "study.log", "--json"]
    first = run(*line).facts
    again = run(*line).facts
    assert (folder / "study.log").exists()
    assert first["trials"] == again["trials"]
    more = run(*line[:7], "8", *line[8:]).facts
    assert more["trials"][:6] == first["trials"]
    assert len(more["trials"]) == 8
    assert more["best"]["mase"] <= first["best"]["mase"]


def test_files_and_what_is_held_out(run, folder: Path) -> None:
    ran = run(*LINE, "--holdout", "1", "--plot", "history.html", "--output", "trials.csv")
    assert "Held-out windows:" in ran.out
    assert ran.out.splitlines()[-1] == "Written: history.html, trials.csv."
    assert len(pd.read_csv(folder / "trials.csv")) == 6
    assert "best so far" in (folder / "history.html").read_text()


def test_the_best_model_is_fitted_to_all_data_and_saved(run, folder: Path) -> None:
    ran = run(*LINE, "--save", "best.dfc", "--output", "trials.csv")
    assert (ran.status, ran.out.splitlines()[-1]) == (0, "Written: trials.csv, best.dfc.")
    model = load(folder / "best.dfc")
    assert f", {model!r}\n" in ran.out
    frame = pd.read_csv(folder / "sales.csv", dtype={"unique_id": str}, parse_dates=["ds"])
    expected = model.clone().fit(frame).predict(level=80)
    pd.testing.assert_frame_equal(model.predict(level=80), expected, check_dtype=False)
    facts = run(*LINE, "--save", "best.dfc", "--json").facts
    assert facts["written"] == ["best.dfc"]


def test_where_the_best_model_cannot_be_saved_is_said_before_the_search(run, folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    assert "--save must be a new file or a model file" in run(*LINE, "--save", "notes.txt", "--storage", "s.log").refusal()
    assert "does not exist" in run(*LINE, "--save", "new/best.dfc", "--storage", "s.log").refusal()
    assert "deepforecast tune reads as DATA" in run(*LINE, "--save", "sales.csv").refusal()
    assert "deepforecast tune writes as --storage" in run(*LINE, "--save", "s.log", "--storage", "s.log").refusal()
    assert not (folder / "s.log").exists()


@pytest.mark.parametrize("target", ["--output", "--save"])
@pytest.mark.parametrize("url", ["sqlite:///t.csv", "sqlite:///./t.csv?timeout=9", "sqlite+pysqlite:///file:t.csv?uri=true"])
def test_a_study_is_not_overwritten_by_its_own_search(run, folder: Path, url: str, target: str) -> None:
    message = run(*LINE, "--storage", url, target, "t.csv").refusal()
    assert f"{target} must not be a file that deepforecast tune writes as --storage, got t.csv" in message
    assert not (folder / "t.csv").exists()


def test_a_study_does_not_replace_the_data(run, folder: Path) -> None:
    message = run(*LINE, "--storage", "sqlite:///sales.csv").refusal()
    assert "got sqlite:///sales.csv, which is the same file as sales.csv" in message
    assert run(*LINE, "--storage", "sqlite:///t.db", "--plot", "t.html").status == 0


def test_a_model_without_ranges_is_told_of_the_option(run) -> None:
    ran = run(*LINE[:3], "Naive", *LINE[4:])
    assert "(option --space)" in ran.refusal()


def test_one_trial_is_one_trial(run) -> None:
    assert run(*LINE[:7], "1", *LINE[8:]).out.startswith("1 trial (")


def test_a_space_from_a_file(run, folder: Path) -> None:
    (folder / "space.yaml").write_text("window: [3, 5]\n")
    facts = run(*LINE, "--space", "space.yaml", "--json").facts
    assert {one["window"] for one in facts["trials"] if one["start"] == ""} <= {3, 5}
    (folder / "space.yaml").write_text("WindowMean:\n  window: {low: 2, high: 4}\nMean: {}\n")
    both = [*LINE[:4], "Naive", *LINE[4:]]
    assert run(*both, "--space", "space.yaml").status == 2


def test_numbers_without_a_point_are_numbers(run, folder: Path) -> None:
    (folder / "space.yaml").write_text("ridge: {low: 1e-6, high: 1E-2, log: true}\n")
    facts = run(*LINE[:3], "linear-model", *LINE[4:], "--space", "space.yaml", "--json").facts
    assert all(1e-6 <= one["ridge"] <= 1e-2 for one in facts["trials"] if one["start"] == "")
    (folder / "space.yaml").write_text("ridge: [1e-3, +2.e+0]\n")
    facts = run(*LINE[:3], "linear-model", *LINE[4:], "--space", "space.yaml", "--json").facts
    assert {one["ridge"] for one in facts["trials"] if one["start"] == ""} <= {1e-3, 2.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("window: !!python/object/apply:os.system ['true']", "must be a valid YAML file"),
        ("- 3", "`name: [...]`"),
        ("windw: [3, 5]", "window"),
        ("window: {low: 9, high: 3}", "'low' cannot be above 'high'"),
        ("a: &x [1]\nb: *x\n", "without references"),
        ("window: [", "must be a valid YAML file"),
        ("", "`name: [...]`"),
        ("window: [2]\nwindow: [3]", "line 1: window"),
        ("window: {low: 2, high: 9, log: maybe}", "'log': True"),
        ("window: {choices: 3}", "'choices': [...]"),
        ("3: [1]", "no parameter 3"),
    ],
)
def test_bad_spaces(run, folder: Path, text: str, words: str) -> None:
    (folder / "space.yaml").write_text(text)
    ran = run(*LINE, "--space", "space.yaml")
    assert ran.status == 2
    assert words in ran.err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--n-trials", "0"], "n_trials"), (["--sampler", "bayes"], "sampler"), (["--storage", "foo://x"], "foo://x"),
        (["--space", "absent.yaml"], "absent.yaml"), (["--plot", "h.png"], ".html"), (["--model", "Nave"], "Naive"),
    ],
)  # fmt: skip
def test_wrong_use(run, more: list[str], words: str) -> None:
    ran = run(*LINE, *more)
    assert ran.status == 2
    assert words in ran.err
