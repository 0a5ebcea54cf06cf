from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deepforecast
from deepforecast.core import registry
from deepforecast.core.registry import MODELS
from deepforecast.errors import DataError
from deepforecast.testing import index

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "deepforecast"
MODEL = "from deepforecast.core.registry import register\n\n\n@register\nclass {name}:\n    pass\n"


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    return {path.name: text for path, text in index.generate_files().items()}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The package's models and generated files in another place."""
    shutil.copytree(PACKAGE / "models", tmp_path / "deepforecast" / "models")
    (tmp_path / "deepforecast" / "core").mkdir()
    for name in ("core/registry.py", "__init__.py"):
        shutil.copy(PACKAGE / name, tmp_path / "deepforecast" / name)
    return tmp_path / "deepforecast"


@pytest.mark.parametrize("name", ["core/registry.py", "__init__.py"])
def test_generated_files_are_up_to_date(generated: dict[str, str], name: str) -> None:
    again = "run python -m deepforecast.testing.index"
    assert (PACKAGE / name).read_text("utf-8") == generated[Path(name).name], again


def test_every_module_registers_what_the_index_says() -> None:
    for name, module in MODELS.items():
        assert registry.get(name).__module__ == module
        assert registry.get(name).__name__ == name


def test_models_are_found_by_their_decorator(copied: Path) -> None:
    (copied / "models" / "baselines" / "toy.py").write_text(MODEL.format(name="Toy") + "\n\nclass Helper:\n    pass\n")
    (copied / "models" / "other.py").write_text("from x import registry\n\n@registry.register\nclass Other:\n    pass\n")
    found = index.find_registered(copied)
    assert found == dict(
        sorted({**MODELS, "Toy": "deepforecast.models.baselines.toy", "Other": "deepforecast.models.other"}.items())
    )


def test_a_name_belongs_to_one_model(copied: Path) -> None:
    (copied / "models" / "again.py").write_text(MODEL.format(name="Naive"))
    with pytest.raises(
        DataError, match=r"Naive is defined in deepforecast\.models\.again and in deepforecast\.models\.baselines\.naive"
    ):
        index.find_registered(copied)


def test_the_command_writes_what_differs(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert index.main(["--check"], copied) == 0
    assert capsys.readouterr().out == ""
    stale = copied / "core" / "registry.py"
    stale.write_text(stale.read_text().replace('    "Naive": "deepforecast.models.baselines.naive",\n', ""))
    stale_text = stale.read_text()
    exports = copied / "__init__.py"
    exports.write_text(exports.read_text().replace("    from deepforecast.core.params import param as param\n", ""))
    assert index.main(["--check"], copied) == 1
    assert stale.read_text() == stale_text
    stale_files = "deepforecast/core/registry.py is out of date\ndeepforecast/__init__.py is out of date\n"
    assert capsys.readouterr().out == stale_files
    assert index.main([], copied) == 0
    assert capsys.readouterr().out == "deepforecast/core/registry.py written\ndeepforecast/__init__.py written\n"
    assert exports.read_text() == (PACKAGE / "__init__.py").read_text()
    assert stale.read_text() == (PACKAGE / "core" / "registry.py").read_text()
    assert index.main(["--check"], copied) == 0


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imported = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {*imported, "__version__"} == set(deepforecast.__dir__())


TYPED = """
import deepforecast
from deepforecast import LSTM, AutoETS, Conformal, LightGBM, Naive, Regression, SeasonalNaive

LSTM(horizon=3, head="normal", hidden_size=8, scaler="robust", missing="ffill")
LightGBM(horizon=2, seed=3, differences=[7])
Regression("ridge", horizon=3)
AutoETS(season_length="auto")
reveal_type(SeasonalNaive(horizon=3, season_length=7).fit(None))
reveal_type(Conformal(Naive(), horizon=3))
LSTM(head="nrmal")
SeasonalNaive(season_length=[7])
SeasonalNaive(seasonlength=7)
Conformal()
AutoETS(12)
deepforecast.LSTMM
"""


def test_a_type_checker_rejects_wrong_parameters(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path), "typed.py"]
    env = {"MYPYPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)}
    process = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    lines = [line for line in process.stdout.splitlines() if line.startswith("typed.py")]
    assert [line.rpartition(".")[2] for line in lines if ": note: Revealed" in line] == ['SeasonalNaive"', 'Conformal"']
    errors = [line for line in lines if ": error:" in line]
    assert [int(line.split(":")[1]) for line in errors] == [11, 12, 13, 14, 15, 16]
    assert "nrmal" in errors[0]
    assert "seasonlength" in errors[2]
