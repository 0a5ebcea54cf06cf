from __future__ import annotations

import ast
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deepforecast
from deepforecast.core import registry
from deepforecast.core.index import MODELS
from deepforecast.errors import DataError
from deepforecast.testing import index, stub

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "deepforecast"
MODEL = "from deepforecast.core.registry import register\n\n\n@register\nclass {name}:\n    pass\n"


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    return {path.name: text for path, text in index.generated().items()}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The package's models and generated files in another place."""
    shutil.copytree(PACKAGE / "models", tmp_path / "deepforecast" / "models")
    (tmp_path / "deepforecast" / "core").mkdir()
    for name in ("core/index.py", "__init__.py", "__init__.pyi"):
        shutil.copy(PACKAGE / name, tmp_path / "deepforecast" / name)
    return tmp_path / "deepforecast"


@pytest.mark.parametrize("name", ["core/index.py", "__init__.pyi"])
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
    found = index.registered(copied)
    assert found == dict(
        sorted({**MODELS, "Toy": "deepforecast.models.baselines.toy", "Other": "deepforecast.models.other"}.items())
    )


def test_a_name_belongs_to_one_model(copied: Path) -> None:
    (copied / "models" / "again.py").write_text(MODEL.format(name="Naive"))
    with pytest.raises(
        DataError, match=r"Naive is in deepforecast\.models\.again and in deepforecast\.models\.baselines\.naive"
    ):
        index.registered(copied)


def test_the_command_writes_what_differs(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert index.main(["--check"], copied) == 0
    assert capsys.readouterr().out == ""
    stale = copied / "core" / "index.py"
    stale.write_text("MODELS: dict[str, str] = {}\n")
    (copied / "__init__.pyi").unlink()
    assert index.main(["--check"], copied) == 1
    assert stale.read_text() == "MODELS: dict[str, str] = {}\n"
    assert (
        capsys.readouterr().out == "deepforecast/core/index.py is not up to date\ndeepforecast/__init__.pyi is not up to date\n"
    )
    assert index.main([], copied) == 0
    assert capsys.readouterr().out == "deepforecast/core/index.py written\ndeepforecast/__init__.pyi written\n"
    assert stale.read_text() == (PACKAGE / "core" / "index.py").read_text()
    assert index.main(["--check"], copied) == 0


def test_the_stub_has_the_public_names(generated: dict[str, str]) -> None:
    tree = ast.parse(generated["__init__.pyi"])
    (listed,) = [node for node in tree.body if isinstance(node, ast.Assign)]
    assert ast.literal_eval(listed.value) == [name for name in dir(deepforecast) if name in deepforecast.__dir__()]
    assert set(ast.literal_eval(listed.value)) == {*deepforecast._NAMES, *MODELS, "__version__"}


@pytest.mark.parametrize("name", MODELS)
def test_the_stub_has_the_constructor(generated: dict[str, str], name: str) -> None:
    (cls,) = [
        node for node in ast.parse(generated["__init__.pyi"]).body if isinstance(node, ast.ClassDef) and node.name == name
    ]
    (init,) = [node for node in cls.body if isinstance(node, ast.FunctionDef)]
    real = inspect.signature(registry.get(name)).parameters.values()
    positional = [one.name for one in real if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert [arg.arg for arg in init.args.args] == ["self", *positional]
    assert [arg.arg for arg in init.args.kwonlyargs] == [one.name for one in real if one.kind is one.KEYWORD_ONLY]
    defaults = [*init.args.defaults, *(one for one in init.args.kw_defaults if one is not None)]
    assert [ast.literal_eval(one) for one in defaults] == [one.default for one in real if one.default is not one.empty]
    assert (ast.get_docstring(cls) or "").startswith((registry.get(name).__doc__ or "").partition("\n")[0])


def test_defaults_are_written_as_literals_or_not_at_all() -> None:
    said = [stub._default(one) for one in ((1, 1, 1), (7,), (), ("a", (2.5, None)), (1, float("nan")), float, "...")]
    assert said == ["(1, 1, 1)", "(7,)", "()", '("a", (2.5, None))', "...", "...", '"..."']


TYPED = """
import deepforecast
from deepforecast import Conformal, Naive, SeasonalNaive
reveal_type(SeasonalNaive(3, season_length=7).fit(None))
reveal_type(Conformal(Naive(), horizon=3))
reveal_type(deepforecast.__version__)
SeasonalNaive(season_length=[7])
SeasonalNaive(seasonlength=7)
Conformal()
"""


@pytest.mark.slow
def test_a_type_checker_sees_constructors(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path), "typed.py"]
    env = {"MYPYPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    said = [line for line in done.stdout.splitlines() if line.startswith("typed.py")]
    assert [line.partition(": ")[2] for line in said[:3]] == [
        'note: Revealed type is "deepforecast.SeasonalNaive"',
        'note: Revealed type is "deepforecast.Conformal"',
        said[2].partition(": ")[2],
    ]
    assert said[2].endswith(('"str"', '"builtins.str"'))
    assert [line.split(":")[1] for line in said if ": error:" in line] == ["7", "8", "9"]
