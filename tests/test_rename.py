"""The tool that renames, `.ci/rename`, on a small project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / ".ci" / "renaming"
FILES = {
    "pkg/__init__.py": "",
    "pkg/scaling.py": '''\
"""Scales."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

__all__ = ["Scale", "moved"]


@dataclass(frozen=True)
class Scale:
    """A `place` and a `spread`.

    >>> Scale(place=1.0).place
    1.0
    """

    place: float
    spread: float = 1.0

    def back(self, other: float, told: bool = False) -> float:
        """`told` has no effect; see `place`."""
        found = [other * one.spread for one in (self, self)]
        return sum(one + self.place for one in found) + len(f"{told} told {self.place!r}")


class Wide(Scale):
    def back(self, other: float, told: bool = False) -> float:
        return super().back(other, told=told) + self.place


class Seat:
    place: str = "seat"

    def back(self) -> str:
        return self.place


class Moves(Protocol):
    def step(self, size: int) -> int: ...


class Walker:
    def step(self, size: int) -> int:
        return size


def moved(scale: Scale | None, by: float) -> Scale | None:
    try:
        found = None if scale is None else replace(scale, place=scale.place + by)
    except ValueError as error:
        raise TypeError(str(error)) from error
    later = partial(moved, by=by)
    take = lambda found: found + 1  # noqa: E731
    while (one := take(0)) < 0:
        print(one, later)
    return found


def sat(seat: Seat) -> str:
    place = seat.place
    return place + str(dict(place=place))
''',
    "pkg/using.py": '''\
"""Uses `pkg.scaling`."""

from pkg import scaling
from pkg.scaling import Moves, Scale, Walker
from pkg.scaling import moved as shift


def walk(moves: Moves) -> int:
    return moves.step(1) + Walker().step(size=2)


def use(several: list[Scale]) -> "Scale":
    first = several[0]
    print(getattr(first, "place"), scaling.Wide(place=2.0).back(1.0, told=True))
    return scaling.moved(first, by=2.0) or shift(first, 1.0) or first
''',
    "tests/__init__.py": "",
    "tests/test_scaling.py": """\
import pytest

from pkg.scaling import Scale


@pytest.fixture
def small():
    return Scale(1.0)


SMALL = dict(place=1.0)


def made(**told):
    return Scale(**told)


@pytest.mark.parametrize(("place", "found"), [(1.0, 2.0)])
def test_back(small, place, found, monkeypatch):
    scale = made(**{"place": place})
    assert made(place=place) == scale == Scale(**SMALL)
    monkeypatch.setattr("pkg.scaling.moved", None)
    monkeypatch.setattr(Scale, "back", lambda self, other: other)
    assert scale.place + small.place == found
    assert {"place": 1}
""",
    "tests/mutants/area.yaml": """\
- name: not_moved_back
  symbol: pkg.scaling:Scale.back
  old: |-
    other * one.spread for one in (self, self)
  new: |-
    other * one.spread - one.place for one in (self,)
  tests: [tests/test_scaling.py::test_back]
""",
    "README.md": """\
See pkg/scaling.py and `pkg.scaling.Scale.place`.

```python
from pkg.scaling import Scale

print(Scale(1.0).place)
```
""",
}
TABLE = '''\
modules:
  pkg.scaling: pkg.scales
symbols:
  pkg.scaling:Scale.place: loc
  pkg.scaling:Scale.back: inverse
  pkg.scaling:moved: shifted
  pkg.scaling:Moves.step: advance
  tests.test_scaling:small: small_scale
locals:
  pkg.scaling:Scale.back: {other: value, one: scale, found: scaled, told: verbose}
  pkg.scaling:Wide.back: {told: verbose}
  pkg.scaling:moved: {one: count, found: result_scale, error: cause, by: distance}
  tests.test_scaling:test_back: {place: loc, found: expected}
'''  # fmt: skip


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def project(root: Path) -> Path:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    return root


def rename(
    root: Path, cache: Path, *tables: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    paths = []
    for number, table in enumerate(tables):
        paths.append(root / f"table{number}.yaml")
        paths[-1].write_text(table, "utf-8")
    command = [
        sys.executable,
        str(TOOL),
        "--root",
        str(root),
        "--cache",
        str(cache),
        *options,
        *map(str, paths),
    ]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, str]:
    root = project(tmp_path_factory.mktemp("project"))
    done = rename(root, cache, TABLE)
    assert done.returncode == 0, done.stderr
    texts = {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for path in root.rglob("*")
        if path.suffix in (".py", ".md", ".yaml")
    }
    return {**texts, "report": done.stdout}


def test_modules_move_with_their_tests_and_everything_that_names_them(
    renamed: dict[str, str],
) -> None:
    assert "pkg/scaling.py" not in renamed
    assert (
        "from pkg import scales\nfrom pkg.scales import Moves, Scale, Walker\nfrom pkg.scales import shifted as shift"
        in renamed["pkg/using.py"]
    )
    assert '"""Uses `pkg.scales`."""' in renamed["pkg/using.py"]
    assert "moved: pkg/scaling.py -> pkg/scales.py" in renamed["report"]


def test_attributes_are_renamed_where_the_type_is_the_class_or_derived_from_it(
    renamed: dict[str, str],
) -> None:
    text = renamed["pkg/scales.py"]
    assert '"""A `loc` and a `spread`.\n\n    >>> Scale(loc=1.0).loc\n' in text
    assert "    loc: float\n" in text
    assert "replace(scale, loc=scale.loc + distance)" in text
    assert "return super().inverse(other, verbose=verbose) + self.loc" in text
    assert (
        'class Seat:\n    place: str = "seat"\n\n    def back(self) -> str:\n        return self.place\n'
        in text
    )
    assert "place = seat.place\n    return place + str(dict(place=place))" in text
    assert (
        'getattr(first, "loc"), scales.Wide(loc=2.0).inverse(1.0, verbose=True)'
        in renamed["pkg/using.py"]
    )


def test_a_class_that_fits_a_protocol_follows_it(renamed: dict[str, str]) -> None:
    assert renamed["pkg/scales.py"].count("def advance(self, size: int)") == 2
    assert "moves.advance(1) + Walker().advance(size=2)" in renamed["pkg/using.py"]


def test_names_in_functions_are_renamed_by_scope(renamed: dict[str, str]) -> None:
    text = renamed["pkg/scales.py"]
    assert "scaled = [value * scale.spread for scale in (self, self)]" in text
    assert (
        'return sum(scale + self.loc for scale in scaled) + len(f"{verbose} told {self.loc!r}")'
        in text
    )
    assert '"""`verbose` has no effect; see `loc`."""' in text
    assert "except ValueError as cause:\n        raise TypeError(str(cause)) from cause" in text
    assert "take = lambda result_scale: result_scale + 1" in text
    assert "while (count := take(0)) < 0:\n        print(count, later)" in text
    assert "later = partial(shifted, by=distance)".replace("by=", "distance=") in text


def test_exports_types_and_calls_by_keyword_follow(renamed: dict[str, str]) -> None:
    assert '__all__ = ["Scale", "shifted"]' in renamed["pkg/scales.py"]
    assert "scales.shifted(first, distance=2.0) or shift(first, 1.0)" in renamed["pkg/using.py"]


def test_tests_follow_fixtures_parameters_and_what_functions_without_types_return(
    renamed: dict[str, str],
) -> None:
    text = renamed["tests/test_scaling.py"]
    assert (
        '@pytest.mark.parametrize(("loc", "expected"), [(1.0, 2.0)])\ndef test_back(small_scale, loc, expected, monkeypatch):'
        in text
    )
    assert "SMALL = dict(loc=1.0)" in text
    assert 'made(**{"loc": loc})' in text
    assert "assert made(loc=loc) == scale" in text
    assert 'monkeypatch.setattr("pkg.scales.shifted", None)' in text
    assert 'monkeypatch.setattr(Scale, "inverse", lambda self, other: other)' in text
    assert "assert scale.loc + small_scale.loc == expected" in text


def test_a_dictionary_key_is_listed_and_stays(renamed: dict[str, str]) -> None:
    assert 'assert {"place": 1}' in renamed["tests/test_scaling.py"]
    assert 'tests/test_scaling.py:25: assert {"place": 1}    [place]' in renamed["report"]


def test_mutants_follow_the_code_that_they_change(renamed: dict[str, str]) -> None:
    text = renamed["tests/mutants/area.yaml"]
    assert "symbol: pkg.scales:Scale.inverse" in text
    assert "    value * scale.spread for scale in (self, self)\n" in text
    assert "    value * scale.spread - scale.loc for scale in (self,)\n" in text
    assert "mutants that would not apply" not in renamed["report"]


def test_pages_follow(renamed: dict[str, str]) -> None:
    assert "See pkg/scales.py and `pkg.scales.Scale.loc`." in renamed["README.md"]
    assert "from pkg.scales import Scale\n\nprint(Scale(1.0).loc)" in renamed["README.md"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("locals:\n  pkg.scaling:moved: {found: scale}", "scale and found would both be scale in moved"),
        ("locals:\n  pkg.scaling:sat: {place: str}", "str would be that of sat"),
        ("symbols:\n  pkg.scaling:moved: sat", "moved and sat would both be sat in the module"),
        ("symbols:\n  pkg.scaling:Scale.place: spread", "Scale.place cannot become spread: pkg.scaling.Scale has it"),
        ("symbols:\n  pkg.scaling:Scale.away: away_from", "Scale has no attribute away"),
        ("locals:\n  pkg.scaling:sat: {unknown: name}", "unknown is not bound in it"),
        ("modules:\n  pkg.absent: pkg.present", "pkg.absent does not exist"),
        ("modules:\n  pkg.scaling: pkg.using", "pkg.scaling cannot become pkg.using, which exists"),
        ("symbol:\n  pkg.scaling:moved: shifted", "a section must be one of"),
        ("symbols:\n  pkg.scaling:moved: class", "must be an identifier"),
    ],
)  # fmt: skip
def test_a_table_with_an_error_changes_nothing(
    tmp_path: Path, cache: Path, table: str, message: str
) -> None:
    root = project(tmp_path)
    done = rename(root, cache, table)
    assert done.returncode == 1
    assert message in done.stderr
    assert {name: (root / name).read_text("utf-8") for name in FILES} == FILES


def test_two_tables_may_not_differ(tmp_path: Path, cache: Path) -> None:
    root = project(tmp_path)
    done = rename(
        root,
        cache,
        "symbols:\n  pkg.scaling:moved: shifted",
        "symbols:\n  pkg.scaling:moved: pushed",
    )
    assert "pkg.scaling:moved: pushed here, shifted before" in done.stderr
    assert {name: (root / name).read_text("utf-8") for name in FILES} == FILES


def test_a_dry_run_counts_and_changes_nothing(tmp_path: Path, cache: Path) -> None:
    root = project(tmp_path)
    done = rename(root, cache, TABLE, options=("--dry-run",))
    assert done.returncode == 0, done.stderr
    assert "tests/mutants/area.yaml: 9\n" in done.stdout
    assert "17 entries, 91 edits in 5 files" in done.stdout
    assert {name: (root / name).read_text("utf-8") for name in FILES} == FILES
