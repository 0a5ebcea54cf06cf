"""The generated parts of README.md: python benchmarks/readme_table.py [--check]

The table of measurements comes from benchmarks/results; which cells stand in it is said below, no figure is typed, and rows
in which another library is ahead stay. What models cannot do comes from the capabilities of each with its defaults.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from deepforecast.errors import ParameterError

ROOT = Path(__file__).resolve().parents[1]
README, RESULTS = ROOT / "README.md", ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- measured: python benchmarks/readme_table.py -->\n", "<!-- measured: end -->\n"
DECLARED = re.compile(r"(?<=<!-- capabilities -->).*?(?=<!-- end -->)")
Place = tuple[str, str]  # how the row begins (several cells: parted by a bar), and the column


@dataclass(frozen=True)
class Line:
    """A task: how long it takes here and with the other, and how wrong both are, each from a cell of `result`."""

    task: str
    result: str
    unit: str
    here: Place
    other: str
    beside: Place
    metric: str = ""
    errors: tuple[Place, Place] | None = None


LINES = (
    Line("`AutoETS`, M4 monthly", "ets", "CPU ms a series", ("AutoETS", "CPU ms a series"), "statsforecast",
         ("statsforecast", "CPU ms a series"), "sMAPE", (("AutoETS", "sMAPE"), ("statsforecast", "sMAPE"))),
    Line("`AutoARIMA`, M4 monthly", "arima", "CPU ms a series", ("AutoARIMA", "CPU ms a series"), "statsforecast",
         ("statsforecast", "CPU ms a series"), "MASE", (("AutoARIMA", "MASE"), ("statsforecast", "MASE"))),
    Line("`AutoTheta`, M4 monthly", "theta", "CPU µs a series", ("AutoTheta", "CPU µs a series"), "statsforecast",
         ("statsforecast", "CPU µs a series"), "MASE", (("AutoTheta", "MASE"), ("statsforecast", "MASE"))),
    Line("`Prophet`, NN5 daily, 111 series", "prophet", "CPU s", ("nn5_daily|mean", "seconds ours"), "prophet",
         ("nn5_daily|mean", "prophet"), "MASE", (("nn5_daily|mean", "MASE ours"), ("nn5_daily|mean", "MASE prophet"))),
    Line("`LightGBM`, Rossmann, 1,115 shops", "regression_accuracy", "s", ("rossmann|1,115|LightGBM", "seconds"), "mlforecast",
         ("rossmann|1,115|mlforecast", "seconds"), "MASE",
         (("rossmann|1,115|LightGBM", "MASE"), ("rossmann|1,115|mlforecast", "MASE"))),
    Line("`LightGBM`, M5, 3,046 items", "regression_accuracy", "s", ("m5_ca_1|3,046|LightGBM", "seconds"), "mlforecast",
         ("m5_ca_1|3,046|mlforecast", "seconds"), "MASE",
         (("m5_ca_1|3,046|LightGBM", "MASE"), ("m5_ca_1|3,046|mlforecast", "MASE"))),
    Line("`LSTM`, M4 weekly, defaults of both", "neural_accuracy", "CPU s", ("m4_weekly|359|LSTM", "CPU seconds"),
         "neuralforecast", ("m4_weekly|359|neuralforecast LSTM", "CPU seconds"), "MASE",
         (("m4_weekly|359|LSTM", "MASE"), ("m4_weekly|359|neuralforecast LSTM", "MASE"))),
    Line("`SeasonalNaive`, 100,000 series", "seasonal_naive", "s", ("deepforecast", "seconds"), "statsforecast",
         ("statsforecast: `forecast`, its way", "seconds")),
    Line("`score`, six metrics, 9,000,000 forecasts", "score", "s", ("six metrics, pandas", "seconds"), "utilsforecast",
         ("six metrics, pandas", "utilsforecast")),
    Line("`import deepforecast`", "import", "s", ("`import deepforecast`", "seconds"), "`import pandas`",
         ("`import pandas`", "seconds")),
)  # fmt: skip


METHODS = (("simulate", "simulates"), ("explain", "explains"))


def table() -> str:
    """The table as Markdown."""
    rows = ["| | here | beside | error here | beside |", "|---|---|---|---|---|"]
    for line in LINES:
        took = [cell(line.result, line.here), f"{line.other}: {cell(line.result, line.beside)}"]
        wrong = [cell(line.result, place) for place in line.errors or ()]
        told = [f"{line.metric} {wrong[0]}", wrong[1]] if wrong else ["", ""]
        task = f"[{line.task}](benchmarks/results/{line.result}.md), {line.unit}"
        rows.append("| " + " | ".join([task, *took, *told]) + " |")
    return "\n".join(rows) + "\n"


def cell(result: str, place: Place) -> str:
    """One cell of the tables of a result."""
    start, column = place
    heads: list[str] = []
    for text in (RESULTS / f"{result}.md").read_text("utf-8").splitlines():
        cells = [one.strip() for one in text.strip().strip("|").split("|")] if text.startswith("|") else []
        if not cells or set("".join(cells)) <= set("-: "):
            heads = heads if cells else []
        elif not heads:
            heads = cells
        elif column in heads and _begins(cells, start.split("|")) and cells[heads.index(column)]:
            return cells[heads.index(column)]
    raise SystemExit(
        f"benchmarks/results/{result}.md has no row {start!r} with a column {column!r}: see LINES in {Path(__file__).name}."
    )


def _begins(cells: list[str], start: list[str]) -> bool:
    return cells[: len(start)] == start or (len(start) == 1 and cells[0].startswith(start[0]))


def capabilities() -> str:
    """The methods that not every model has, and the models that lack them."""
    return ", ".join(f"`{method}` (all but {_lacking(name)})" for method, name in METHODS)


def _lacking(capability: str) -> str:
    from deepforecast.core import registry

    lacking = []
    for cls in registry.models():
        try:
            model = cls()
        except ParameterError:  # a wrapper, which can do what the model or regressor in it can
            continue
        if not getattr(model.capabilities, capability):
            lacking.append(f"`{cls.__name__}`")
    return ", ".join(lacking)


def updated(readme: str) -> str:
    """The text of a README with its generated parts as they are now."""
    if not DECLARED.search(readme):
        raise SystemExit("README.md marks the methods of models by <!-- capabilities --><!-- end -->")
    readme = DECLARED.sub(lambda _: capabilities(), readme)
    if BEGIN not in readme or END not in readme:
        raise SystemExit(f"README.md marks where the table stands by\n{BEGIN}{END}")
    return re.sub(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", lambda _: "\n" + table() + "\n", readme, flags=re.DOTALL)


def main(check: bool) -> int:
    before = README.read_text("utf-8")
    after = updated(before)
    if check:
        print(
            "README.md is not what benchmarks/results say: run python benchmarks/readme_table.py" if before != after else "well"
        )
        return int(before != after)
    README.write_text(after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
