"""The tables of new names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import Path
from typing import Any

import yaml

SECTIONS = ("modules", "symbols", "parameters", "locals")
Names = dict[str, str]


@dataclass
class Table:
    """The entries of all tables together."""

    modules: Names = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, Names] = field(default_factory=dict)
    locals: dict[str, Names] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)  # what a table leaves to a person

    def __len__(self) -> int:
        return (
            len(self.modules)
            + len(self.symbols)
            + sum(map(len, [*self.parameters.values(), *self.locals.values()]))
        )

    def renamed_keys(self, name: Callable[[str], str]) -> Table:
        """The table with other names of modules."""

        def key(text: str) -> str:
            module, colon, qualname = text.partition(":")
            return name(module) + colon + qualname

        modules = {name(old): name(new) for old, new in self.modules.items()}
        symbols = {key(old): new for old, new in self.symbols.items()}
        parameters = {key(old): new for old, new in self.parameters.items()}
        local_names = {key(old): new for old, new in self.locals.items()}
        return Table(modules, symbols, parameters, local_names, self.errors, self.remarks)

    def add(self, path: Path) -> None:
        """Add the entries of a file."""
        text = path.read_text("utf-8")
        self.remarks += [line.strip() for line in text.splitlines() if "# MANUAL:" in line]
        try:
            content = _Loader(text).get_single_data() or {}
        except yaml.YAMLError as error:
            self.errors.append(f"{path.name}: {error}")
            return
        for section, entries in content.items():
            if section not in SECTIONS:
                self.errors.append(
                    f"{path.name}: a section must be one of {', '.join(SECTIONS)}; got {section}"
                )
                continue
            for key, new in (entries or {}).items():
                target = getattr(self, section)
                if isinstance(new, Mapping):
                    for old, name in new.items():
                        self._put(path, target.setdefault(key, {}), f"{key}: {old}", str(old), name)
                else:
                    self._put(path, target, key, key, new)

    def _put(self, path: Path, names: Names, label: str, key: str, new: Any) -> None:
        if not isinstance(new, str) or any(
            not name.isidentifier() or iskeyword(name) for name in new.split(".")
        ):
            self.errors.append(
                f"{path.name}: {label}: a new name must be an identifier; got {new!r}"
            )
        elif names.setdefault(key, new) != new:
            self.errors.append(f"{path.name}: {label}: {new} here, {names[key]} before")


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads `no`, `on` and `off` as the names they are, and reports a key that occurs twice."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        twice = [key for key, count in Counter(keys).items() if count > 1]
        if twice:
            problem = f"{twice[0]} occurs twice"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping
