"""The builder of the site: every public name has its page, docstrings become Markdown, links that lead nowhere are found."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deepforecast

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from builder import benchmarks, course, docstrings, entries, errors, further, home, links, llms, models, reference, written  # noqa: E402
from builder.page import WRITTEN, BuildError, Page, folded  # noqa: E402


def test_every_public_name_has_its_place() -> None:
    assert reference.unplaced() == []
    assert set(deepforecast.__all__) - {"datasets", "errors"} <= set(reference.places())


@pytest.mark.parametrize(("package", "prefix"), [("plotting", ""), ("datasets", "datasets."), ("testing", "testing.")])
def test_every_public_function_of_a_package_has_its_place(package: str, prefix: str) -> None:
    module = getattr(__import__(f"deepforecast.{package}"), package)
    functions = {prefix + name for name in module.__all__ if callable(getattr(module, name))}
    assert functions
    assert functions <= set(reference.places())


def test_modules_of_networks_and_heads_have_their_place() -> None:
    assert {"nn.heads.base.Head", "nn.attention.Attention"} <= set(reference.places())


def test_a_public_name_without_a_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "GROUPS", tuple(group for group in reference.GROUPS if group.path != "tuning"))
    assert reference.unplaced() == ["TuningOptions", "TuningResult", "tune"]
    with pytest.raises(BuildError, match="TuningOptions, TuningResult, tune"):
        reference.pages()


def bare(value: int) -> None:
    pass


class Half:
    """Only the class says what it is."""

    def said(self) -> None:
        """This does."""

    def unsaid(self) -> None:
        pass


@pytest.mark.parametrize(("thing", "name"), [(bare, "bare"), (Half, "Half.unsaid")])
def test_a_public_name_without_a_docstring_is_noticed(thing: Any, name: str) -> None:
    with pytest.raises(BuildError, match=rf"^{name} is public and has no docstring"):
        entries.entry(thing.__name__, thing)


def test_a_model_page_tells_every_parameter() -> None:
    pages = {page.title: page.text for page in models.pages()}
    from deepforecast.core.params import declared_params

    for name in ("SeasonalNaive", "LSTM", "Conformal"):
        lacking = [one for one in declared_params(getattr(deepforecast, name)) if f"| `{one}` |" not in pages[name]]
        assert not lacking
    assert "a number of at least 0 and below 1" in pages["LSTM"]  # the range of dropout
    assert "16 to 256, log scale" in pages["LSTM"]  # where hidden_size is searched
    assert set(deepforecast.core.registry.MODELS) == set(pages) - {"All models"}


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        ("Adds.\n\n>>> 1 + 1\n2\n", "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```"),
        ("Of these:\n- one\n- two", "Of these:\n\n- one\n- two"),
        ("So:\n\n    x = 1\n\n    y = 2\n\nEnd.", "So:\n\n```python\nx = 1\n\ny = 2\n```\n\nEnd."),
        ("n < 3 and `n < 4`", "n &lt; 3 and `n < 4`"),
        (
            "Adds.\n\nParameters\n----------\na, b : int, optional\n    Summands.\n\n    - any\n*rest\n    More.\n\n"
            "Raises\n------\nTypeError\n    If not.\n\nSee Also\n--------\nsum : Many.\nfsum\n\n"
            "Examples\n--------\nSo:\n\n>>> 1 + 1\n2",
            "Adds.\n\n**Parameters**\n\n- `a`, `b` (int, optional): Summands.\n\n    - any\n- `*rest`: More.\n\n"
            "**Raises**\n\n- `TypeError`: If not.\n\n**See Also**\n\n- `sum`: Many.\n- `fsum`\n\n"
            "**Examples**\n\nSo:\n\n```pycon\n>>> 1 + 1\n2\n```",
        ),
    ],
)
def test_docstrings_become_markdown(docstring: str, markdown: str) -> None:
    assert docstrings.markdown(inspect.cleandoc("\n" + docstring)) == markdown


def test_long_printed_lines_are_folded() -> None:
    short, long = "```text\nshort\n```\n", f"```text\n{'word ' * 30}\n```\n"
    assert folded(f"{short}\n{long}\n{short}") == f"{short}\n{long.replace('```text', '``` { .text .wrapped }')}\n{short}"


def told_by_name(gap: int, size: int) -> None:
    """Windows.

    gap: rows left out (1. at least). `size`: rows
    learned from; not: others.
    """


def test_what_is_said_of_parameters_is_a_list() -> None:
    text = entries.entry("told", told_by_name)
    assert text.endswith("\n\nWindows.\n\n- `gap`: rows left out (1. at least).\n- `size`: rows learned from; not: others.")
    assert docstrings.markdown("a, `b`: as there; c: not.", ["a", "b", "c"]) == "- `a`, `b`: as there\n- `c`: not."
    assert docstrings.markdown("gap: rows left out.") == "gap: rows left out."
    assert docstrings.markdown("gap: rows left out.", ["gap"]) == "gap: rows left out."  # no list of one


def wide(frame: list[int], *rest: int, horizon: int | None = None, level: object = "none", columns: object = None) -> int:
    return 0


def test_a_signature_is_cut_where_it_is_long() -> None:
    assert docstrings.signature("bare", bare) == "bare(value: int) -> None"
    assert "options: BacktestOptions = BacktestOptions()," in docstrings.signature("compare", deepforecast.compare)
    assert docstrings.signature("wide", wide).splitlines()[:3] == ["wide(", "    frame: list[int],", "    *rest: int,"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use `LSTM`, `LSTM(horizon=3)`.", "Use [`LSTM`](models/LSTM.md), [`LSTM(horizon=3)`](models/LSTM.md)."),
        ("`plotting.plot_pareto`", "[`plotting.plot_pareto`](reference/plotting.md#plot_pareto)"),
        ("`deepforecast doctor`", "[`deepforecast doctor`](reference/command-line.md#deepforecast-doctor)"),
        ("# `LSTM`\n\n[the `LSTM` model](x.md)", "# `LSTM`\n\n[the `LSTM` model](x.md)"),
        ("```python\n`LSTM`\n```\n`unknown`", "```python\n`LSTM`\n```\n`unknown`"),
    ],
)
def test_names_lead_to_their_place(text: str, expected: str) -> None:
    assert links.linked(text, "guide.md", reference.places()) == expected


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">1</a><a href="b.html#gone">2</a><a href="c.html">3</a><a href="https://example.org">4</a>'
        '<img src="picture.png"><script src="https://example.org/x.js"></script><link rel="canonical" href="https://example.org/">'
    )
    (tmp_path / "b.html").write_text('<h2 id="there">b</h2><a href="#there">5</a>')
    assert links.broken(tmp_path) == [
        "a.html loads https://example.org/x.js from another server",
        "a.html links to b.html#gone: no such anchor on that page",
        "a.html links to c.html: no such file",
        "a.html links to picture.png: no such file",
    ]


def test_a_tutorial_that_fails_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "tutorials" / "03_broken.py"
    script.parent.mkdir()
    script.write_text("# %% [markdown]\n# # 03 · Broken\n\n# %%\nprint(1)\nprint(1 / 0)\n")
    (script.parent / "show.py").write_text((ROOT / "tutorials" / "show.py").read_text("utf-8"))
    for name, value in {"ROOT": tmp_path, "COURSE": script.parent, "CACHE": tmp_path / "cache"}.items():
        monkeypatch.setattr(course, name, value)
    with pytest.raises(BuildError, match=r"^tutorials/03_broken.py, line 6: the tutorial failed\.(.|\n)*ZeroDivisionError"):
        course._shown(script, short=True, jobs=1)


def test_a_tutorial_is_run_anew_only_when_something_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "03_short.py"
    script.write_text("# # 03 · Short\n")
    before = course._key(script, True)
    assert course._key(script, True) == before
    assert course._key(script, False) != before
    script.write_text("# # 03 · Longer\n")
    assert course._key(script, True) != before


def test_an_error_that_does_not_come_is_noticed() -> None:
    said = errors.message_of("import deepforecast\ndeepforecast.SeasonalNaive(horizon=-1)", {})
    assert said.startswith("ParameterError: `horizon` must be")
    with pytest.raises(BuildError, match="this does not"):
        errors.message_of("1 + 1", {})


def test_formulas_are_drawn_and_code_is_left_alone() -> None:
    pytest.importorskip("latex2mathml", reason="latex2mathml of the extra docs is not installed")
    from builder.mathematics import typeset

    assert ">arg<" in typeset("$\\arg\\min_x$", "a.md")
    drawn = typeset("Of $y_t$ and `$x$`, for $5 and $6:\n\n$$\\frac{1}{2}$$\n", "a.md")
    assert drawn.count("<math") == 2
    assert "<mfrac>" in drawn
    assert "`$x$`" in drawn
    assert "$5 and $6" in drawn
    assert typeset("$\\lVert x \\rVert^2$", "a.md").count('stretchy="false">&#x02016;') == 2  # both bars of one height
    with pytest.raises(BuildError, match=r"a\.md: the formula '\\\\nothing\{x\}'"):
        typeset("$\\nothing{x}$", "a.md")


def test_every_formula_of_the_course_is_drawn() -> None:
    pytest.importorskip("latex2mathml", reason="latex2mathml of the extra docs is not installed")
    from builder.mathematics import typeset

    drawn = {page.path: typeset(page.text, page.path).count("<math") for page in course.pages("none")}
    assert drawn["tutorials/08_attention.md"] > 20
    assert len(drawn) == len(course.scripts()) + 1


def test_files_at_the_top_find_their_places() -> None:
    placed = home.placed("[a](benchmarks/results/score.md) [b](CONTRIBUTING.md)")
    assert placed == "[a](benchmarks/score.md) [b](contributing.md)"
    with pytest.raises(BuildError, match=r"'deepforecast/errors\.py'"):
        home.placed("[a](deepforecast/errors.py)")


@pytest.mark.parametrize("make", [home.page, benchmarks.pages, lambda: home.copied("CHANGELOG.md", "x")])
def test_pages_of_files_are_made(make: Callable[[], Any]) -> None:
    assert make()


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("# A\n\n```python\nimport x\n```\n\nIt does `this`. More.", "It does `this`."),
        ("# A\n\n[a.py](a.py){ download } runs.\n\n*Attention* is\nall. You", "*Attention* is all."),
        ("# A\n\n`x` is there:\n\n- b", "`x` is there."),
        ("# A\n\nIs it fast? Ask.", "Is it fast?"),
        ("# A\n\n| a | b |\n", ""),
    ],
)
def test_a_page_is_summed_up_by_its_first_sentence(text: str, summary: str) -> None:
    assert Page("a.md", "A", text).summary == summary


def test_llms_txt_lists_every_page() -> None:
    text = llms.text("site", "about", {"Start": [Page("a.md", "A", "# A\n\nSays [a](../a.md). More.")], "Empty": []})
    assert text == "# site\n\n> about\n\n## Start\n\n- [A](a.md): Says a.\n"


def test_what_the_course_uses_beyond_the_public_names_has_its_place() -> None:
    taken = reference.places()
    found = further.places(taken)
    text = further.page(taken).text
    assert "unit_roots.kpss" in found
    assert not [name for name in found if "plot_residuals" in name]  # told with the plots
    for place in found.values():
        assert f"{{ #{place.partition('#')[2]} }}" in text
    assert links.linked("`additive` `datasets.load`", "guide.md", taken | found).startswith("`additive` [`datasets.load`]")


def test_marks_in_written_pages_are_filled() -> None:
    assert "`Transformer`" in written.able("global")
    assert "`SeasonalNaive`" not in written.able("future")
    assert written.packages().count("\n") >= 12
    with pytest.raises(BuildError, match="nonsense"):
        written._filled(written.MARK.search("<!-- nonsense --><!-- end -->"), "guide")  # type: ignore[arg-type]


README_PAGES = sorted(set(re.findall(r"\]\(docs/pages/(\w+)\.md\)", (ROOT / "README.md").read_text("utf-8"))))


@pytest.mark.parametrize("name", README_PAGES)
def test_pages_the_readme_links_to_read_well_in_the_repository(name: str) -> None:
    text = (WRITTEN / f"{name}.md").read_text("utf-8")
    unfilled = [mark[0] for mark in written.MARK.finditer(text) if not mark["content"].strip()]
    assert unfilled == [], "run python -m builder.written in docs"
    targets = re.findall(r"\]\(((?!https?://)[^)#]+)", text)
    assert [target for target in targets if not (WRITTEN / target).exists()] == []


def test_names_of_other_libraries_on_the_migration_page_are_those_of_the_error_messages() -> None:
    assert written.updated("migration") == (WRITTEN / "migration.md").read_text("utf-8"), (
        "run python -m builder.written in docs"
    )


def test_lists_of_models_in_the_guide_are_those_declared() -> None:
    guide = (WRITTEN / "guide.md").read_text("utf-8")
    assert written.updated("guide") == guide, "run python -m builder.written in docs"
    assert guide.count("<!-- models") == 7


@pytest.mark.slow
def test_messages_on_the_errors_page_are_those_raised() -> None:
    page = (WRITTEN / "errors.md").read_text("utf-8")
    assert page.count("<!-- message -->") > 20
    assert errors.updated() == page, "run python -m builder.written in docs"
