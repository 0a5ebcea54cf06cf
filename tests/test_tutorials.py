"""The course holds to its rules (tutorials/README.md), and every script runs under the short setting, leaving nothing behind.

Each rule is a function from source text to complaints, so that a bad sample can show it failing.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import deepforecast

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tutorials"
NAME = re.compile(r"(0[1-9]|1[0-467])_[a-z][a-z0-9_]*\.py")  # 15 is kept free
SHORT = 'SHORT = os.environ.get("DEEPFORECAST_SHORT") == "1"  # a quick run, as in the tests: less training'
LAST = ["Exercises", "Solutions", "Reference"]
SECONDS = 300  # two minutes on two idle cores; a busy machine may take longer
SHOW = runpy.run_path(str(FOLDER / "show.py"))
SCRIPTS: list[Path] = SHOW["scripts"]()
SHOWN_WARNINGS = (  # warnings that the text refers to; `-W` takes the beginning of a message, without a colon
    "80 % prediction intervals cover less",
    "95 % prediction intervals cover less",
    "linear, per series",  # tutorial 05: forecasts far outside the history
)
QUICKEST = "01_baselines.py"  # run by `make test` too


def prose(source: str) -> list[str]:
    """The cells of text."""
    return [cell.text for cell in SHOW["cells"](source) if cell.prose]


def code(source: str) -> list[str]:
    """The cells of code."""
    return [cell.text for cell in SHOW["cells"](source) if not cell.prose]


def format_of(source: str) -> list[str]:
    """Percent format that jupytext reads: nothing before the first cell, only comments in text, no commands of notebooks."""
    found = [] if source.startswith("# %% [markdown]\n") else ["begins with '# %% [markdown]'"]
    inside = False
    for number, line in enumerate(source.splitlines(), start=1):
        if line.startswith("# %%"):
            inside = line == "# %% [markdown]"
            if not inside and line != "# %%":
                found.append(f"line {number}: a cell begins with '# %%' or '# %% [markdown]'")
        elif inside and line and line != "#" and not line.startswith("# "):
            found.append(f"line {number}: a cell of text holds comments alone")
    return found + [f"{text.split()[0]}: no commands of notebooks" for text in code(source) if re.match(r"\s*[%!]", text)]


def opening(source: str) -> list[str]:
    """A title with the number, then what the reader will be able to do."""
    first = (prose(source) or [""])[0]
    found = [] if re.match(r"# \d\d · \S", first) else ["the first line of text is '# NN · Title'"]
    if len(re.findall(r"^- \S", first.partition("**After this you can**")[2], flags=re.MULTILINE)) < 2:
        found.append("the first cell lists under '**After this you can**' what the reader will be able to do")
    return found


def ending(source: str) -> list[str]:
    """Exercises, as many solutions, and the reference: in this order, and last."""
    text = "\n".join(prose(source))
    heads = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    if heads[-3:] != LAST or len(heads) < 5:
        return [f"sections, at least two of them, end with {', '.join(LAST)}; got {heads}"]
    exercises, rest = text.split("\n## Exercises\n")[1].split("\n## Solutions\n")
    asked = re.findall(r"^(\d+)\. ", exercises, flags=re.MULTILINE)
    solved = re.findall(r"^### Solution (\d+)$", rest, flags=re.MULTILINE)
    found = [] if asked == solved and len(asked) >= 2 else [f"every exercise has its solution; {asked} asked, {solved} solved"]
    named = re.findall(r"`([^`]+)`", "".join(re.findall(r"^- .+$", rest.split("\n## Reference\n")[1], flags=re.MULTILINE)))
    found += [] if named else ["the reference lists the names used, in backticks"]
    return found + [f"reference: {name} is no public name" for name in named if not is_public(name)]


def is_public(name: str) -> bool:
    """Whether `name` is one of the package, of a module of it (`plotting.plot_residuals`), a method, or a command.

    What begins with an underscore is not.
    """
    if name.startswith("deepforecast "):
        return (ROOT / "deepforecast" / "cli" / f"{name.split()[1].replace('-', '_')}.py").is_file()
    parts = name.removeprefix("deepforecast.").split(".")
    if any(part.startswith("_") for part in parts):
        return False
    if parts[0] in deepforecast.__all__ and parts[0] != "datasets":
        where, rest = getattr(deepforecast, parts[0]), parts[1:]
    elif parts in (["plotting"], ["testing"], ["datasets"]):
        return True
    else:
        folder = ROOT / "deepforecast"
        depth = max((n for n in range(2, len(parts) + 1) if folder.joinpath(*parts[:n]).with_suffix(".py").is_file()), default=1)
        if not (ROOT / "deepforecast" / parts[0]).is_dir() or len(parts) < max(depth, 2):
            return False
        where, rest = importlib.import_module(".".join(["deepforecast", *parts[:depth]])), parts[depth:]
    for part in rest:
        where = getattr(where, part, None)
    return where is not None


def setting(source: str) -> list[str]:
    """The short setting is read by one line, and nothing else is read from the environment."""
    found = [] if source.splitlines().count(SHORT) == 1 else [f"the line `{SHORT}` is there once"]
    reads = len(re.findall(r"\benviron\b|\bgetenv\b", source))
    return found if reads == 1 else [*found, "reads the environment once"]


def imports(source: str) -> list[str]:
    """Of this library public names alone."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "deepforecast":
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names if alias.name.startswith("deepforecast.")]
        else:
            continue
        found += [f"line {node.lineno}: {path} is no public name" for path in paths if "._" in path or not is_public(path)]
    return found


def paths(source: str) -> list[str]:
    """No path of one machine."""
    texts = [n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [f"{text!r} is an absolute path" for text in texts if re.match(r"(/|~/|[A-Za-z]:[\\/])\w", text)]


def pictures(source: str) -> list[str]:
    """There are pictures, shown by notebooks and written nowhere."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls]
    found = [] if any(name.startswith("plot") or name == "subplots" for name in names) else ["has no picture"]
    found += [f"calls {name}" for name in ("savefig", "to_csv", "to_parquet") if name in names]
    return [*found, "calls plt.show"] if "plt.show(" in source else found


def mathematics(source: str) -> list[str]:
    """Every formula is closed: dollars in pairs, braces and environments too."""
    found = []
    for text in prose(source):
        text = re.sub(r"```.*?```|`[^`\n]*`|\\\$", "", text, flags=re.DOTALL)
        blocks = text.split("$$")
        rest = "".join(blocks[::2])
        formulas = [*blocks[1::2], *rest.split("$")[1::2]]
        if len(blocks) % 2 == 0 or rest.count("$") % 2:
            found.append(f"a dollar is left open in the text that begins {text.strip()[:50]!r}")
        for formula in formulas:
            bare = re.sub(r"\\[{}]", "", formula)
            begun, ended = (sorted(re.findall(rf"\\{word}\{{(\w+\*?)\}}", formula)) for word in ("begin", "end"))
            if bare.count("{") != bare.count("}") or begun != ended or "\n\n" in formula.strip():
                found.append(f"the formula {formula.strip()[:60]!r} is not closed")
        if re.search(r"\\[(\[]", rest):
            found.append("formulas stand in $...$ or $$...$$")
    return found


def chance(source: str) -> list[str]:
    """No drawing that differs from run to run, and no global random state."""
    found = re.findall(r"np\.random\.(?!default_rng|Generator)\w+", source)
    return [f"{name}: draw by numpy.random.default_rng(seed)" for name in found]


RULES: list[Callable[[str], list[str]]] = [
    *(format_of, opening, ending, setting, imports, paths, pictures, mathematics, chance),
]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_tutorial_keeps_the_rule(script: Path, rule: Callable[[str], list[str]]) -> None:
    assert not (found := rule(script.read_text("utf-8"))), "\n".join(found)


def test_the_list_is_the_folder() -> None:
    table = (FOLDER / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| \[(\d\d_\w+\.py)\]\((\d\d_\w+\.py)\) \|", table, flags=re.MULTILINE)
    assert [name for name, _ in listed] == [link for _, link in listed] == [script.name for script in SCRIPTS]
    there = {path.name for path in FOLDER.iterdir() if path.is_file()}
    assert {name for name in there if not NAME.fullmatch(name)} == {"README.md", "show.py"}
    numbers = [script.name[:2] for script in SCRIPTS]
    assert len(set(numbers)) == len(numbers)
    for script in SCRIPTS:
        assert prose(script.read_text("utf-8"))[0].startswith(f"# {script.name[:2]} · ")


def links() -> Iterator[tuple[str, str]]:
    """Each link of a tutorial to another file."""
    for script in SCRIPTS:
        for target in re.findall(r"\]\(([^)#:\s]+)\)", "\n".join(prose(script.read_text("utf-8")))):
            yield script.name, target


def test_links_between_tutorials_lead_somewhere() -> None:
    assert [f"{name}: {target}" for name, target in links() if not (FOLDER / target).is_file()] == []


SAMPLE = f"""# %% [markdown]
# # 01 · Title
#
# **After this you can**
#
# - one
# - two

# %%
import os
from deepforecast import plot
{SHORT}
plot(frame)

# %% [markdown]
# ## A
# $a_{{1}}$ costs `$5`
# ## B
# ## Exercises
#
# 1. First?
# 2. Second?
#
# ## Solutions
#
# ### Solution 1
# ### Solution 2
#
# ## Reference
#
# - `plot`, `plotting.plot_residuals`, `Leaderboard.report`, `testing.run`, `deepforecast cross-validate`
"""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_keeps_the_rules_passes(rule: Callable[[str], list[str]]) -> None:
    assert rule(SAMPLE) == []


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        (format_of, "# %% [markdown]\n# # 01", "x = 1\n# %% [markdown]\n# # 01"),
        (format_of, "# ## A\n", "print('text')\n"),
        (format_of, "# %%\nimport os", "# %% setup\nimport os"),
        (format_of, "# %%\nimport os", "# %%\n%matplotlib inline\nimport os"),
        (opening, "# # 01 · Title", "# # Title"),
        (opening, "# - two\n", ""),
        (opening, "**After this you can**", "Learn"),
        (ending, "## Solutions", "## Answers"),
        (ending, "# ### Solution 2\n", ""),
        (ending, "`plot`", "`plod`"),
        (ending, "`Leaderboard.report`", "`Leaderboard._report`"),
        (ending, "cross-validate`", "cross-check`"),
        (setting, SHORT, "SHORT = False"),
        (setting, "plot(frame)", "plot(os.environ['HOME'])"),
        (imports, "import plot", "import plod"),
        (imports, "import plot", "import core"),
        (imports, "from deepforecast import plot", "from deepforecast.models.neural._base import NeuralForecaster"),
        (imports, "from deepforecast import plot", "import deepforecast.nowhere"),
        (paths, "plot(frame)", "plot('/data/x')"),
        (paths, "plot(frame)", r"plot('C:\\data')"),
        (pictures, "plot(frame)", "print(frame)"),
        (pictures, "plot(frame)", "plot(frame).savefig('x.png')"),
        (pictures, "plot(frame)", "plt.subplots()\nplt.show()"),
        (mathematics, "$a_{1}$", "$a_{1}"),
        (mathematics, "$a_{1}$", "$a_{1$"),
        (mathematics, "$a_{1}$", r"$$\begin{aligned} a $$"),
        (mathematics, "$a_{1}$", r"\(a\)"),
        (chance, "plot(frame)", "plot(np.random.randn(3))"),
    ],
)
def test_what_breaks_a_rule_is_noticed(rule: Callable[[str], list[str]], old: str, new: str) -> None:
    assert old in SAMPLE
    broken = SAMPLE.replace(old, new)
    if new.startswith("# %%\n%matplotlib"):
        assert format_of(broken)  # no Python, so nothing else can read it
    else:
        assert rule(broken)


def test_a_page_shows_what_is_printed_and_drawn(tmp_path: Path) -> None:
    script = tmp_path / "01_x.py"
    script.write_text(
        "# %% [markdown]\n# # Title\n# - $x$\n\n"
        "# %%\nimport matplotlib.pyplot as plt\nprint(6 * 7)\n_, axes = plt.subplots()\n\n"
        "# %%\nfrom deepforecast import datasets, plot\nplot(datasets.load('air_passengers'))\n",
        encoding="utf-8",
    )
    text = SHOW["page"](script, tmp_path)
    assert text.startswith("# Title\n- $x$\n\n```python\nimport matplotlib.pyplot as plt\n")
    assert "```text\n42\n```\n\n![picture 1](01_x-1.png)" in text
    assert text.endswith("![picture 2](01_x-2.png)\n")
    assert {path.name for path in tmp_path.iterdir()} == {"01_x.py", "01_x-1.png", "01_x-2.png"}


def test_an_interactive_picture_is_shown_on_the_page(tmp_path: Path) -> None:
    script = tmp_path / "01_x.py"
    script.write_text("# %%\nimport plotly.graph_objects as go\ngo.Figure(go.Scatter(y=[1, 2]), {'height': 300})\n", "utf-8")
    text = SHOW["page"](script, tmp_path)
    assert '<iframe class="interactive" src="01_x-1.plotly.html" title="picture 1" loading="lazy" height="310">' in text
    drawn = (tmp_path / "01_x-1.plotly.html").read_text("utf-8")
    assert 'src="plotly.min.js"' in drawn
    assert "http" not in re.sub(r'"(?:plotlyServerURL|\$schema)": ?"[^"]*"', "", drawn)  # nothing is fetched from elsewhere
    assert (tmp_path / "plotly.min.js").stat().st_size > 1_000_000


def ran(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The script by itself, in an empty folder, without benchmark data; a warning is an error."""
    own = {"DEEPFORECAST_SHORT": "1", "DEEPFORECAST_DATA": str(folder), "MPLBACKEND": "Agg"}
    python = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    filters = ["error", *(f"ignore:{message}" for message in SHOWN_WARNINGS)]
    return subprocess.run(
        [sys.executable, *(f"-W{action}" for action in filters), str(script)],
        cwd=folder, env={**os.environ, **own, "PYTHONPATH": python}, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip


@pytest.mark.parametrize(
    "script",
    [pytest.param(one, id=one.stem, marks=[] if one.name == QUICKEST else [pytest.mark.slow]) for one in SCRIPTS],
)
def test_a_tutorial_runs_and_leaves_nothing(script: Path, tmp_path: Path) -> None:
    done = ran(script, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
    assert [path.name for path in tmp_path.rglob("*")] == []


@pytest.mark.parametrize("line", ["import warnings; warnings.warn('a warning')", "assert 1 == 2"])
def test_a_script_that_fails_is_noticed(line: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(line + "\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    assert ran(script, tmp_path / "empty").returncode != 0
