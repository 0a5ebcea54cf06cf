"""The page of a comparison: whole by itself, safe whatever the data say, the same for the same board, written or not at all."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import BacktestOptions, Drift, Mean, Naive, SeasonalNaive, WindowMean, compare
from deepforecast.errors import DataWarning, ParameterTypeError, SaveError
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.metrics import Metric
from deepforecast.evaluation.report import render_page, write_report
from tests.evaluation.boards import LastValue, seasonal
from tests.frames import LIBRARIES, converted

# The seasonal series are few and short: their intervals cover little, which is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*prediction intervals cover less than:UserWarning")

FRAME = seasonal()
HOSTILE = "<img src=x onerror=\"hit=1\"></script><script>hit=2</script><style>*{}\x1b[31m\u202e\x00=cmd|' /C calc'!A0&amp;$x$"
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "footer", "nav", "a", "script", "small"),
    *("h1", "h2", "h3", "p", "div", "span", "table", "thead", "tbody", "tr", "th", "td", "button", "details", "summary"),
    *("dl", "dt", "dd", "ul", "li", "wbr", "svg", "g", "path", "rect", "circle", "text"),
}


class Page(HTMLParser):
    """What a browser would find: tags, attributes, scripts, words by section, lines of text of each figure on a wide page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.words: dict[str, str] = {"": ""}
        self.figures: dict[str, list[str]] = {}
        self.section, self.inside, self.figure = "", "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in held.items()]
        if tag == "section":
            self.section = held["id"]
            self.words[self.section] = ""
        if tag == "script":
            self.scripts.append((held, ""))
        if held.get("class") == "figure":
            self.figure = held["id"]
            self.figures[self.figure] = []
        elif held.get("class") == "narrow":
            self.figure = ""
        if tag != "wbr":
            self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""
        self.section = "" if tag == "section" else self.section

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.figure and self.inside in ("text", "title"):
            self.figures[self.figure] += data.split("\n")
        elif self.inside not in ("style", "text", "title"):
            self.words[self.section] += data


def board(*models: Any, frame: Any = FRAME, **options: Any) -> Leaderboard:
    return compare(list(models), frame, **{"horizon": 4, "n_windows": 2, **options})


def reading(found: Leaderboard) -> Page:
    return Page(render_page(found))


@pytest.fixture(scope="module")
def usual() -> Leaderboard:
    return board(Naive(), SeasonalNaive(), Mean(), LastValue(how="fit"), level=[50, 80], options=BacktestOptions(seed=7))


@pytest.fixture(scope="module")
def seen(usual: Leaderboard) -> Page:
    return reading(usual)


def test_the_page_says_all_there_is(usual: Leaderboard, seen: Page) -> None:
    assert list(seen.words) == ["", "leaderboard", "scores", "cost", "pairs", "coverage", "forecasts", "failures", "settings"]
    assert "SeasonalNaive leads" in seen.words[""]
    assert "The difference to Naive" in seen.words[""]
    assert usual.settings["made"][:10] in seen.words[""]
    for name in [*usual.table["model"], "rank", *usual.criteria, "fit s", "predict s", "failed"]:
        assert name in seen.words["coverage" if name.startswith(("width", "winkler")) else "leaderboard"]
    assert "LastValuefailed: ValueError: no <b>fit</b> \\x1b[31m today" in seen.words["leaderboard"]
    assert "LastValueValueError: no <b>fit</b> \\x1b[31m today" in seen.words["failures"]
    told = ["horizon4", "n windows2", "seed7", "level50, 80", "season length12", "not judgednone"]
    told += ["SeasonalNaive(horizon=4)", "numpy" + np.__version__, "cores"]
    assert all(one in seen.words["settings"] for one in told)
    assert "relative_bias" in seen.words["settings"]
    assert list(seen.figures) == [
        *(f"scores-{place}" for place in range(len(usual.criteria))), "pareto", "coverage-plot",
        "forecast-0", "forecast-1", "forecast-2",
    ]  # fmt: skip


def test_the_page_needs_nothing_else(usual: Leaderboard, seen: Page) -> None:
    assert seen.tags <= ALLOWED
    addresses = [value for _, name, value in seen.attributes if name in ("href", "src", "srcset", "action", "data", "poster")]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    anchors = {value for _, name, value in seen.attributes if name == "id"}
    assert {address[1:] for address in addresses} <= anchors
    assert not re.search(r"@import|url\(", (Path(__file__).parents[2] / "deepforecast/evaluation/report.css").read_text())
    assert len(render_page(usual).encode()) < 1_000_000


def test_only_the_script_of_the_page_may_run(seen: Page) -> None:
    policy = next(value for _, name, value in seen.attributes if name == "content" and "script-src" in value)
    run = [text for held, text in seen.scripts if "type" not in held]
    hashes = {f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in run}
    said = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert len(run) == 1
    assert set(said.pop("script-src").split()) == hashes
    assert said == {
        "default-src": "'none'", "base-uri": "'none'", "form-action": "'none'", "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
    }  # fmt: skip
    assert not any(name.startswith("on") for _, name, _ in seen.attributes)


def test_nothing_of_the_data_is_interpreted() -> None:
    frame = FRAME.assign(unique_id=FRAME["unique_id"] + HOSTILE, extra=1.0)
    frame = frame.rename(columns={"y": HOSTILE, "extra": HOSTILE + "2"})
    metric = Metric.from_function(lambda actual, forecast: abs(actual - forecast).max(), name="m" + HOSTILE, rewards=HOSTILE)
    models = [Naive(alias="N" + HOSTILE), Drift(alias="D" + HOSTILE), LastValue(how="fit", alias="F" + HOSTILE)]
    with pytest.warns(DataWarning, match="without a role"):
        found = board(*models, frame=frame, level=80, metrics=[metric, "mae"], columns={"target": HOSTILE})
    text = render_page(found)
    seen = Page(text)
    assert seen.tags <= ALLOWED
    assert not any(name.startswith("on") for _, name, _ in seen.attributes)
    assert len(seen.scripts) == 1
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert "<img" not in text
    assert "hit=2</script>" not in text
    for section in ("leaderboard", "pairs", "forecasts", "failures", "settings"):
        assert '<img src=x onerror="hit=1"></script>' in seen.words[section]
    assert any("<img" in line for lines in seen.figures.values() for line in lines)  # as text
    assert "$x$" not in "".join(re.findall("<svg.*?</svg>", text, re.DOTALL))


def test_the_table_sorts_by_what_is_better(usual: Leaderboard) -> None:
    part = render_page(usual).partition('id="leaderboard"')[2].partition("</section>")[0]
    rows = re.findall(r"<tr[^>]*><th scope=\"row\">.*?</tr>", part)
    assert [row.startswith('<tr class="failed">') for row in rows] == [False] * 3 + [True]
    cells = [re.findall(r'<td data-value="([^"]*)"( class="best")?>([^<]*)', row) for row in rows]
    column = 1 + [*usual.metrics, *(name for name in usual.criteria if name not in usual.metrics)].index("coverage-80")
    away = (usual.table["coverage-80"] - 0.8).abs()
    assert [float(row[column][0]) for row in cells[:3]] == pytest.approx(away.tolist()[:3])
    assert [bool(row[column][1]) for row in cells[:3]] == (away == away.min()).tolist()[:3]
    assert [bool(row[1][1]) for row in cells[:3]] == [True, False, False]
    assert 'colspan="10"><span>failed: ValueError: no &lt;b&gt;fit' in rows[3]


def test_tables_stay_as_wide_as_a_page() -> None:
    models = [WindowMean(window=size, alias=f"Window{size}") for size in range(1, 14)]
    found = board(*models, level=[50, 60, 80, 90, 95])
    sections = re.findall(r'<section id="(\w+)">(.*?)</section>', render_page(found), re.DOTALL)
    tables = dict(sections)
    assert re.findall("coverage-<wbr>([0-9]+)", tables["leaderboard"]) == ["50", "60"]
    for name in ("coverage", "width", "winkler"):
        assert re.findall(f"{name}-<wbr>([0-9]+)", tables["coverage"]) == ["50", "60", "80", "90", "95"]
    assert tables["pairs"].count('scope="row"') == tables["pairs"].count('scope="col"') - 1 == 12
    assert "Shown are the first 12 of 13 models." in tables["pairs"]
    assert "Shown are the first" not in reading(board(Naive(), Mean())).words["pairs"]


def test_the_pairs_say_who_wins_and_how_surely(usual: Leaderboard) -> None:
    part = render_page(usual).partition('id="pairs"')[2].partition("</section>")[0]
    wins = usual.significance.set_index(["model", "against"])
    first, second = usual.table["model"].iloc[:2]
    share, p_value = wins.loc[(first, second), ["wins", "p_value"]]
    assert p_value < 0.05
    assert f'<td class="for">{100 * share:.0f} %<small>p = {p_value:.2g}</small></td>' in part
    assert f'<td class="against">{100 * (1 - share):.0f} %<small>p = {p_value:.2g}</small></td>' in part
    sure = (usual.significance["p_value"] < 0.05).sum()
    assert len(re.findall('class="(?:for|against)"', part)) == sure
    assert part.count("<td>–</td>") == 3


def test_the_forecasts_shown_are_the_best_the_median_and_the_worst(usual: Leaderboard, seen: Page) -> None:
    own = usual.by_series[usual.by_series["model"] == "SeasonalNaive"].sort_values("mase")
    expected = own.iloc[[0, (len(own) - 1) // 2, -1]]
    for place, (what, row) in enumerate(zip(("Best", "Median", "Worst"), expected.itertuples(), strict=True)):
        assert f"{what} series: mase {row.mase:.4g}" in seen.words["forecasts"]
        figure = seen.figures[f"forecast-{place}"]
        assert {row.unique_id, "observed", "SeasonalNaive", "80 % interval"} <= set(figure)


def test_coverage_stands_against_its_level(usual: Leaderboard, seen: Page) -> None:
    said = seen.figures["coverage-plot"]
    for row in usual.table.iloc[:3].itertuples():
        covered = usual.table.loc[row.Index, ["coverage-50", "coverage-80"]] * 100
        assert [f"{row.model}: {covered.iloc[i]:.1f} % coverage at level {level}" for i, level in enumerate((50, 80))] == [
            text for text in said if text.startswith(f"{row.model}:")
        ]


@pytest.mark.parametrize("library", LIBRARIES)
def test_any_library_and_any_names(library: str) -> None:
    frame = FRAME.rename(columns={"unique_id": "A", "ds": "B", "y": "A-lo-5"})
    columns = {"id": "A", "time": "B", "target": "A-lo-5"}
    seen = reading(board(Naive(alias="A-lo-80"), frame=converted(frame, library), columns=columns, level=80))
    assert len([name for name in seen.figures if name.startswith("forecast")]) == 3
    assert {"80 % interval", "observed", "A-lo-80"} <= set(seen.figures["forecast-0"])


@pytest.mark.parametrize(
    ("frame", "figures"),
    [
        (FRAME[FRAME["unique_id"] == "s7"], 1),
        (FRAME[FRAME["unique_id"] == "s7"][["ds", "y"]], 1),
        (FRAME[FRAME["unique_id"] == "s7"].set_index("ds")["y"], 1),
        (FRAME[FRAME["unique_id"].isin(["s7", "s8"])], 2),
        (FRAME.assign(ds=FRAME.groupby("unique_id").cumcount()), 3),
        (FRAME.assign(unique_id=FRAME["unique_id"].astype("category")), 3),
        (FRAME.assign(unique_id=FRAME["unique_id"].str[1:].astype(int)), 3),
        (FRAME.assign(ds=FRAME["ds"].dt.tz_localize("Europe/Berlin")), 3),
    ],
    ids=["one series", "no id", "series", "two series", "integer time", "categories", "integer ids", "time zone"],
)
def test_any_shape_of_data(frame: Any, figures: int) -> None:
    seen = reading(board(Naive(), Drift(), frame=frame))
    assert len([name for name in seen.figures if name.startswith("forecast")]) == figures
    assert "coverage" not in seen.words
    assert ("pairs" in seen.words) == (figures > 1)


def test_a_board_of_one_model_and_of_undefined_scores() -> None:
    assert "pairs" not in reading(board(Naive())).words
    with pytest.warns(DataWarning, match="ranked by smape"):
        found = board(Naive(), Mean(), frame=FRAME.assign(y=5.0))
    seen = reading(found)
    assert "Naive and Mean are tied" in seen.words[""]
    assert "mase has no value for any model." in seen.words["scores"]
    assert "Left out: 96 of 96 points where mase is undefined." in seen.words["failures"]


def test_the_same_board_is_the_same_page(usual: Leaderboard, tmp_path: Path) -> None:
    write_report(usual, tmp_path / "a.html")
    usual.report(str(tmp_path / "b.html"))
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize("how", ["again", "shuffled", "on workers"])
def test_reports_of_equal_runs_differ_in_times_and_date_only(usual: Leaderboard, how: str) -> None:
    frame = FRAME.sample(frac=1, random_state=0) if how == "shuffled" else FRAME
    models = [Naive(), SeasonalNaive(), Mean(), LastValue(how="fit")]
    n_jobs = 2 if how == "on workers" else None
    again = board(*models, frame=frame, level=[50, 80], n_jobs=n_jobs, options=BacktestOptions(seed=7))

    def timeless(found: Leaderboard) -> str:
        table = found.table.assign(fit_seconds=1.0, predict_seconds=1.0, peak_mb=1.0)
        gone = dict.fromkeys(("made", "seconds", "estimate_seconds", "n_jobs"), "")
        return render_page(replace(found, table=table, settings={**found.settings, **gone}))

    assert timeless(usual) == timeless(again)


def test_a_missing_folder_is_made(usual: Leaderboard, tmp_path: Path) -> None:
    usual.report(tmp_path / "new" / "folder" / "report.html")
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["report.html"]


def test_what_cannot_be_written_names_the_path_and_leaves_what_was_there(
    usual: Leaderboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("old")
    for path in (tmp_path / "file" / "report.html", tmp_path, tmp_path / "nul\0.html"):
        with pytest.raises(SaveError, match=re.escape(str(path)[-8:].replace("\0", "\\x00"))):
            usual.report(path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SaveError, match="No space left on device"):
        usual.report(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(ParameterTypeError, match="`path` must be a str"):
        usual.report(3)


def test_many_models_and_long_names_stay_readable() -> None:
    models = [Naive(alias=f"model_with_a_very_long_name_number_{i}_of_many") for i in range(12)]
    seen = reading(board(*models, level=80))
    assert "Shown are the first 8 of 12 models." in seen.words["coverage"]
    labels = [line for line in seen.figures["scores-0"] if "   " in line]
    assert len(labels) == 12
    assert all(len(label) < 60 for label in labels)


def test_history_is_shown_as_it_is_given_with_what_is_missing() -> None:
    frame = FRAME.copy()
    frame.loc[frame["ds"] == pd.Timestamp("2018-07-01"), "y"] = np.nan
    with pytest.warns(DataWarning, match="missing"):
        found = board(Naive(), frame=frame)
    told = [line for line in reading(found).figures["forecast-0"] if line.startswith("observed: ")]
    assert len(told) == 3 * 4 + 8 - 1  # three horizons of history and two windows, less the missing value


@pytest.mark.parametrize("horizon", [2, 4])
def test_history_before_the_windows_is_three_horizons_long(horizon: int) -> None:
    seen = reading(board(Naive(), frame=seasonal(1, 240), horizon=horizon))
    assert len([line for line in seen.figures["forecast-0"] if line.startswith("observed: ")]) == 3 * horizon + 2 * horizon


def test_bold_is_what_reads_best() -> None:
    found = board(*(Naive(alias=name) for name in "AB"), Mean(alias="C"), metrics=["relative_bias", "mae"])
    shown = found.table.set_index("model")["relative_bias"].abs()
    part = render_page(found).partition('id="leaderboard"')[2].partition("</section>")[0]
    heads = [re.sub("<[^>]+>", "", one) for one in re.findall(r"<th scope=\"col\".*?</th>", part)]
    assert heads[:4] == ["model", "rank", "relative_bias, distance from 0", "relative_bias"]
    bold = {
        re.findall('class="name">([^<]*)', row)[0]: 'class="best"' in re.findall(r"<td.*?</td>", row)[2]
        for row in re.findall(r"<tr><th scope=\"row\">.*?</tr>", part)
    }
    assert bold == {name: bool(shown[name] == shown.min()) for name in "ABC"}
