"""Update the generated parts of README.md: python benchmarks/readme_table.py [--check]

The table of measurements consists of cells of benchmarks/results, selected by LINES; no figure is typed by hand, and rows in
which another library is better are kept. The lists of models without a method come from the capabilities of the models with
default parameters.
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
CellAddress = tuple[str, str]  # first cells of the row, separated by bars (the last one may be a prefix), and the column


@dataclass(frozen=True)
class Line:
    """A row of the table: run times and errors of deepforecast and another library, from cells of one results file.

    Parameters
    ----------
    task : str
        Description of the task.
    result : str
        Name of the results file.
    unit : str
        Unit of the run times.
    own_cell, other_cell : CellAddress
        Cells with the run times of deepforecast and of the other library.
    other : str
        Name of the other library.
    metric : str
        Name of the error metric.
    errors : tuple of CellAddress, optional
        Cells with the errors of deepforecast and of the other library.
    """

    task: str
    result: str
    unit: str
    own_cell: CellAddress
    other: str
    other_cell: CellAddress
    metric: str = ""
    errors: tuple[CellAddress, CellAddress] | None = None


LINES = (
    Line("`AutoETS`, M4 monthly", "ets", "CPU ms per series", ("AutoETS", "CPU ms per series"), "statsforecast",
         ("statsforecast", "CPU ms per series"), "sMAPE", (("AutoETS", "sMAPE"), ("statsforecast", "sMAPE"))),
    Line("`AutoARIMA`, M4 monthly", "arima", "CPU ms per series", ("AutoARIMA", "CPU ms per series"), "statsforecast",
         ("statsforecast", "CPU ms per series"), "MASE", (("AutoARIMA", "MASE"), ("statsforecast", "MASE"))),
    Line("`AutoTheta`, M4 monthly", "theta", "CPU µs per series", ("AutoTheta", "CPU µs per series"), "statsforecast",
         ("statsforecast", "CPU µs per series"), "MASE", (("AutoTheta", "MASE"), ("statsforecast", "MASE"))),
    Line("`Prophet`, NN5 daily, 111 series", "prophet", "CPU s", ("nn5_daily|mean", "seconds"), "prophet",
         ("nn5_daily|mean", "seconds, prophet"), "MASE", (("nn5_daily|mean", "MASE"), ("nn5_daily|mean", "MASE, prophet"))),
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
         ("statsforecast: `forecast`, recommended", "seconds")),
    Line("`score`, six metrics, 9,000,000 forecasts", "score", "s", ("six metrics, pandas", "seconds"), "utilsforecast",
         ("six metrics, pandas", "seconds, utilsforecast")),
    Line("`import deepforecast`", "import", "s", ("`import deepforecast`", "seconds"), "`import pandas`",
         ("`import pandas`", "seconds")),
)  # fmt: skip


CAPABILITIES = (("simulate", "simulates"), ("explain", "explains"))


def table() -> str:
    """Return the table as Markdown."""
    rows = ["| | deepforecast | other library | error, deepforecast | error, other |", "|---|---|---|---|---|"]
    for line in LINES:
        times = [cell(line.result, line.own_cell), f"{line.other}: {cell(line.result, line.other_cell)}"]
        errors = [cell(line.result, address) for address in line.errors or ()]
        error_cells = [f"{line.metric} {errors[0]}", errors[1]] if errors else ["", ""]
        task = f"[{line.task}](benchmarks/results/{line.result}.md), {line.unit}"
        rows.append("| " + " | ".join([task, *times, *error_cells]) + " |")
    return "\n".join(rows) + "\n"


def cell(result: str, address: CellAddress) -> str:
    """Return a cell of a results file; raises `SystemExit` if there is none."""
    row_start, column = address
    headings: list[str] = []
    for text in (RESULTS / f"{result}.md").read_text("utf-8").splitlines():
        cells = [text_cell.strip() for text_cell in text.strip().strip("|").split("|")] if text.startswith("|") else []
        if not cells or set("".join(cells)) <= set("-: "):
            headings = headings if cells else []
        elif not headings:
            headings = cells
        elif column in headings and _begins(cells, row_start.split("|")) and cells[headings.index(column)]:
            return cells[headings.index(column)]
    raise SystemExit(
        f"benchmarks/results/{result}.md has no row {row_start!r} with a column {column!r}. Set another cell in LINES of "
        f"{Path(__file__).name}."
    )


def _begins(cells: list[str], start: list[str]) -> bool:
    return cells[: len(start)] == start or (len(start) == 1 and cells[0].startswith(start[0]))


def capabilities() -> str:
    """Return the methods that not every model has, with the models without them."""
    return ", ".join(f"`{method}` (all but {_lacking(name)})" for method, name in CAPABILITIES)


def _lacking(capability: str) -> str:
    from deepforecast.core import registry

    lacking = []
    for cls in registry.models():
        try:
            model = cls()
        except ParameterError:  # a wrapper, which has the capabilities of the wrapped model
            continue
        if not getattr(model.capabilities, capability):
            lacking.append(f"`{cls.__name__}`")
    return ", ".join(lacking)


def updated(readme: str) -> str:
    """Return a README with its generated parts updated; raises `SystemExit` if a mark is missing."""
    if not DECLARED.search(readme):
        raise SystemExit("README.md must contain the marks <!-- capabilities --><!-- end -->")
    readme = DECLARED.sub(lambda _: capabilities(), readme)
    if BEGIN not in readme or END not in readme:
        raise SystemExit(f"README.md must contain the marks of the table,\n{BEGIN}{END}")
    return re.sub(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", lambda _: "\n" + table() + "\n", readme, flags=re.DOTALL)


def main(check: bool) -> int:
    before = README.read_text("utf-8")
    after = updated(before)
    if check:
        print(
            "README.md differs from benchmarks/results. Use python benchmarks/readme_table.py"
            if before != after
            else "README.md is up to date"
        )
        return int(before != after)
    README.write_text(after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
