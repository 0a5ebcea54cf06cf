"""From tables to edits: which names of the project a table means, and everything that refers to them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from mypy import nodes, types
from sources import FUNCTIONS, Reference, Scope, Source, Text, arguments, from_module, module_of
from types_of import UNTYPED, Types, definition_of, instance_of, span_of

FORWARDING = {"partial", "submit", "map", "run", "apply", "delayed", "replace", "given", "example"}
LIBRARIES = (
    "builtins",
    "pathlib",
    "datetime",
    "collections",
    "numpy",
    "pandas",
    "torch",
    "torch.nn",
    "narwhals",
    "polars",
)
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

    def __len__(self) -> int:
        return len(self.modules) + len(self.symbols) + sum(map(len, [*self.parameters.values(), *self.locals.values()]))

    def add(self, path: Path) -> None:
        """Add the entries of a file."""
        content = _Loader(path.read_text("utf-8")).get_single_data() or {}
        for section, entries in content.items():
            if section not in SECTIONS:
                self.errors.append(f"{path.name}: a section must be one of {', '.join(SECTIONS)}; got {section}")
                continue
            for key, new in (entries or {}).items():
                own = getattr(self, section)
                if isinstance(new, Mapping):
                    for old, name in new.items():
                        self._put(path, own.setdefault(key, {}), f"{key}: {old}", str(old), name)
                else:
                    self._put(path, own, key, key, new)

    def _put(self, path: Path, names: Names, label: str, key: str, new: Any) -> None:
        if not isinstance(new, str) or not all(map(str.isidentifier, new.split("."))):
            self.errors.append(f"{path.name}: {label}: a new name must be an identifier; got {new!r}")
        elif names.setdefault(key, new) != new:
            self.errors.append(f"{path.name}: {label}: {new} here, {names[key]} before")


class _Loader(yaml.SafeLoader):
    """Reads `no`, `on` and `off` as the names they are, and reports a key that occurs twice."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        twice = sorted({key for key in keys if keys.count(key) > 1}) if len(set(keys)) < len(keys) else []
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"{twice[0]} occurs twice", node.start_mark)
        return super().construct_mapping(node, deep)


class Plan:
    """Edits of all sources for a table, what is wrong with it, and what a person has to decide."""

    def __init__(self, root: Path, table: Table, sources: list[Source], texts: list[Text]) -> None:
        self.root, self.table, self.sources, self.texts = root, table, sources, texts
        self.errors = list(table.errors)
        self.by_hand: dict[str, list[str]] = defaultdict(list)
        self.modules: dict[str, list[Source]] = defaultdict(list)
        for source in sources:
            self.modules[source.module].append(source)
        self.packages = {name.partition(".")[0] for name in self.modules}
        self.globals: dict[tuple[str, str], str] = {}  # module and name -> new name
        self.members: dict[str, dict[nodes.TypeInfo, str]] = defaultdict(dict)  # old name -> class -> new name
        self.local_names: dict[Scope, Names] = {}  # function or module -> names in it and below
        self.argument_names: dict[Scope, Names] = {}  # function -> its own arguments
        self.member_keys: list[tuple[str, str, str]] = []
        self._foreign: set[str] | None = None
        self._passed: dict[tuple[Scope, str], set[str | None]] = {}
        self._words: dict[Text, set[str]] = {}
        self._families: dict[tuple[str, str], set[str]] = {}
        self._spans: dict[Source, list[tuple[int, int, Scope]]] = {}
        self._read_functions_and_globals()

    # -- what the table means ---------------------------------------------------------------------------------------------

    def _read_functions_and_globals(self) -> None:
        """All entries but those of attributes, which need the types."""
        for old, new in self.table.modules.items():
            if old not in self.modules:
                self.errors.append(f"modules: {old} does not exist")
            if new in self.modules and new not in self.table.modules:
                self.errors.append(f"modules: {old} cannot become {new}, which exists")
        for key, new in self.table.symbols.items():
            module, _, qualname = key.partition(":")
            owner, _, name = qualname.rpartition(".")
            if not any(True for _ in self.modules.get(module, ())):
                self.errors.append(f"symbols: {key}: there is no module {module}")
            elif owner:
                if self.scopes(module, owner, "classes"):
                    self.member_keys.append((module, qualname, new))
                elif self.scopes(module, owner, "functions"):
                    self._local(f"symbols: {key}", module, owner, name, new)
                else:
                    self.errors.append(f"symbols: {key}: there is no class {owner}")
            elif any(None in source.scope.names.get(name, ()) for source in self.modules[module]):
                self.globals[module, name] = new
            else:
                self.errors.append(f"symbols: {key}: {module} does not define {name}")
        for key, names in self.table.locals.items():
            module, _, qualname = key.partition(":")
            for old, new in names.items():
                self._local(f"locals: {key}", module, qualname, old, new)
        for key, names in self.table.parameters.items():
            module, _, qualname = key.partition(":")
            for old, new in names.items():
                self._parameter(key, module, qualname, old, new)

    def scopes(self, module: str, qualname: str, kind: str) -> list[Scope]:
        """The classes or functions of this name."""
        return [scope for source in self.modules.get(module, ()) for scope in getattr(source, kind).get(qualname, ())]

    def _local(self, label: str, module: str, qualname: str, old: str, new: str) -> None:
        owners = self.scopes(module, qualname, "functions") or self.scopes(module, qualname, "classes")
        if not qualname:
            owners = [source.scope for source in self.modules.get(module, ())]
            if any(None in owner.names.get(old, ()) for owner in owners):
                self.globals[module, old] = new
                return
        if not owners:
            self.errors.append(f"{label}: there is no function {module}:{qualname}")
        elif not any(self._binds(module, owner, old) for owner in owners):
            self.errors.append(f"{label}: {old} is not bound in it")
        for owner in owners:
            self.local_names.setdefault(owner, {})[old] = new

    def _binds(self, module: str, owner: Scope, name: str) -> bool:
        found = (
            each
            for source in self.modules[module]
            for each in source.references
            if each.kind == "name" and each.name == name
        )
        return any(
            owner in each.scope.chain and (bound := each.scope.resolve(name)) and owner in bound.chain for each in found
        )

    def _parameter(self, key: str, module: str, qualname: str, old: str, new: str) -> None:
        functions = self.scopes(module, qualname, "functions")
        classes = self.scopes(module, qualname, "classes")
        if classes:
            functions = [
                scope
                for scope in self.scopes(module, f"{qualname}.__init__", "functions")
                if old in argument_names(scope)
            ]
            if not functions or any(old in scope.names for scope in classes):
                self.member_keys.append((module, f"{qualname}.{old}", new))
        elif not functions:
            self.errors.append(f"parameters: {key}: there is no function or class {module}:{qualname}")
        elif not any(old in argument_names(scope) for scope in functions):
            self.errors.append(f"parameters: {key}: it has no argument {old}")
        for scope in functions:
            self.argument_names.setdefault(scope, {})[old] = new

    def wanted(self) -> dict[Source, set[tuple[int, int, int, int]]]:
        """The expressions whose types are needed."""
        attributes = {qualname.rpartition(".")[2] for _, qualname, _ in self.member_keys}
        keywords = attributes | {
            old for names in [*self.local_names.values(), *self.argument_names.values()] for old in names
        }
        spans: dict[Source, set[tuple[int, int, int, int]]] = {source: set() for source in self.sources}
        for source in self.sources:
            for each in source.references:
                if each.kind == "attribute" and each.name in attributes and isinstance(each.node, ast.Attribute):
                    spans[source].add(span_of(each.node.value))
            for call, _ in source.calls:
                names = {keyword.arg for keyword in call.keywords}
                if names & keywords or None in names:
                    for node in [call.func, *call.args[:1]]:
                        spans[source].add(span_of(node))
                        if isinstance(node, ast.Attribute):
                            spans[source].add(span_of(node.value))
                        if isinstance(node, ast.Call):
                            spans[source] |= {span_of(argument) for argument in node.args}
                if len(call.args) > 1 and isinstance(call.args[1], ast.Constant) and call.args[1].value in attributes:
                    spans[source].add(span_of(call.args[0]))
                if call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.func, ast.Attribute):
                    spans[source].add(span_of(call.func.value))
        return spans

    def read_members(self, types_: Types) -> None:
        """The entries of attributes and methods: each follows in every class that inherits it or that it comes from."""
        self.types = types_
        self.class_scopes = {
            (source.module, scope.node.lineno): scope
            for source in self.sources
            for scopes in source.classes.values()
            for scope in scopes
            if isinstance(scope.node, ast.ClassDef)
        }
        self.infos = list(types_.infos.values())
        self.info_of = {
            scope: types_.infos[place] for place, scope in self.class_scopes.items() if place in types_.infos
        }
        definers: dict[str, list[nodes.TypeInfo]] = defaultdict(list)
        for each in self.infos:
            for name in each.names:
                definers[name].append(each)
        self.definers = definers
        for module, qualname, new in self.member_keys:
            owner, _, name = qualname.rpartition(".")
            for scope in self.scopes(module, owner, "classes"):
                info = self.info_of.get(scope)
                if info is None:
                    self.errors.append(f"symbols: {module}:{qualname}: mypy does not reach the class {owner}")
                elif not any(name in base.names for base in info.mro):
                    self.errors.append(f"symbols: {module}:{qualname}: {owner} has no attribute {name}")
                else:
                    self._rename_member(f"{module}:{qualname}", info, name, new)
        self._check_members()

    def _rename_member(self, key: str, info: nodes.TypeInfo, name: str, new: str) -> None:
        family = {base for base in info.mro if name in base.names}
        size = 0
        while size < len(family):
            size = len(family)
            for each in self.definers[name]:
                relatives = {base for base in each.mro if name in base.names}
                if relatives & family:
                    family |= relatives
            for each in self.infos:  # a class may join two bases without defining the name
                relatives = {base for base in each.mro if name in base.names}
                if len(relatives) > 1 and relatives & family:
                    family |= relatives
        for each in list(family):
            if each.is_protocol:
                required = set(each.protocol_members)
                family |= {
                    other for other in self.definers[name] if required <= {n for base in other.mro for n in base.names}
                }
        for each in family:
            if each not in self.infos:
                self.errors.append(f"symbols: {key}: {each.fullname}, of another package, defines {name}")
            elif self.members[name].setdefault(each, new) != new:
                self.errors.append(
                    f"symbols: {key}: {each.fullname}.{name} becomes {new} and {self.members[name][each]}"
                )
            elif each is not info:
                self.by_hand["Renamed too, as it is the same attribute"].append(
                    f"{each.fullname}.{name} -> {new} (as {key})"
                )

    def _check_members(self) -> None:
        for name, family in self.members.items():
            for info, new in family.items():
                relatives = {*info.mro, *(other for other in self.infos if info in other.mro)}
                for other in relatives:
                    if new in other.names and other not in self.members.get(new, {}):
                        self.errors.append(
                            f"symbols: {info.fullname}.{name} cannot become {new}: {other.fullname} has it"
                        )

    # -- what a name refers to --------------------------------------------------------------------------------------------

    def new_global(self, module: str, name: str) -> str:
        """What a name at the top of a module becomes there."""
        if (module, name) in self.globals:
            return self.globals[module, name]
        news = {
            self.imported(origin, name)
            for s in self.modules.get(module, ())
            for origin in s.scope.names.get(name, ())
            if origin
        }
        if len(news) > 1:
            self.errors.append(
                f"{module}: {name} is imported from several modules and becomes {' and '.join(sorted(news))}"
            )
        return news.pop() if news else name

    def imported(self, origin: tuple[str, str], name: str) -> str:
        """What a name bound by an import becomes."""
        module, original = origin
        if original != name:  # a module by `import`, or renamed by `as`
            return name
        if f"{module}.{original}" in self.modules and original not in self._names(module):
            return self.new_module(f"{module}.{original}").rpartition(".")[2]
        return self.new_global(module, original)

    def _names(self, module: str) -> set[str]:
        return {
            n
            for source in self.modules[module]
            for n, o in source.scope.names.items()
            if (module, n) not in o and o != [("", "")]
        }

    def new_module(self, module: str) -> str:
        """The full name of a module; those below a renamed package follow."""
        for outer in _prefixes(module):
            if outer in self.table.modules:
                return self.table.modules[outer] + module.removeprefix(outer)
        return module

    def entity(self, source: Source, node: ast.expr, scope: Scope) -> tuple[str, str] | None:
        """What an expression names: (module, "") or (module, name), as far as imports tell."""
        if isinstance(node, ast.Name):
            bound = scope.resolve(node.id)
            origins = [o for o in bound.names.get(node.id, ()) if o] if bound else []
            if origins:
                module, name = origins[0]
                return self.canonical(module, name)
            return (source.module, node.id) if bound is source.scope else None
        if isinstance(node, ast.Attribute):
            owner = self.entity(source, node.value, scope)
            if owner is not None and not owner[1]:
                return self.canonical(owner[0], node.attr)
        return None

    def canonical(self, module: str, name: str, depth: int = 0) -> tuple[str, str]:
        """Where a name of a module is defined."""
        if name:
            for source in self.modules.get(module, ()):
                origins = source.scope.names.get(name)
                if origins and None in origins:
                    return module, name
                for origin in origins or ():
                    if origin is not None and origin != (module, name) and depth < 20:
                        return self.canonical(*origin, depth + 1)
            if f"{module}.{name}" in self.modules or any(m.startswith(f"{module}.{name}.") for m in self.modules):
                return f"{module}.{name}", ""
        return module, name

    def new_name(self, source: Source, each: Reference) -> str:
        """What a name becomes."""
        bound = each.scope.resolve(each.name)
        if bound is None:
            return each.name
        if bound.kind == "module":
            return self.new_global(source.module, each.name)
        for origin in bound.names.get(each.name, ()):
            if origin is not None:
                return self.imported(origin, each.name)
        if bound.kind == "class":
            return self.new_member(self.info_of.get(bound), each.name) or each.name
        own = self.argument_names.get(bound, {})
        if each.name in own and each.name in argument_names(bound):
            return own[each.name]
        for scope in bound.chain:
            if each.name in self.local_names.get(scope, {}):
                return self.local_names[scope][each.name]
        return each.name

    def new_member(self, info: nodes.TypeInfo | None, name: str) -> str | None:
        """What an attribute of a class becomes; None if it stays."""
        if info is None or name not in self.members:
            return None
        return next((self.members[name][base] for base in info.mro if base in self.members[name]), None)

    def new_argument(self, scope: Scope, name: str) -> str | None:
        """What an argument of a function becomes; None if it stays, or if it has none of that name."""
        if name not in argument_names(scope):
            return None
        if name in self.argument_names.get(scope, {}):
            return self.argument_names[scope][name]
        return next((names[name] for outer in scope.chain if name in (names := self.local_names.get(outer, {}))), None)

    # -- edits ------------------------------------------------------------------------------------------------------------

    def edit(self) -> None:
        """Note the edits in all sources."""
        for source in self.sources:
            for each in source.references:
                if each.kind == "name":
                    source.replace(each.start, each.name, self.new_name(source, each))
                elif each.kind == "attribute":
                    self._attribute(source, each)
                elif isinstance(each.call, ast.Call):
                    self._keyword(source, each, each.call)
                elif isinstance(each.call, ast.MatchClass):
                    target = self.entity(source, each.call.cls, each.scope)
                    infos = [self.info_of.get(scope) for scope in self.scopes(*target, "classes")] if target else []
                    source.replace(each.start, each.name, (infos and self.new_member(infos[0], each.name)) or each.name)
            for node, scope in source.imports:
                self._import(source, node, scope)
            for constant, scope in source.strings:
                self._string(source, constant, scope)

    def note(self, heading: str, source: Source, start: int, remark: str = "") -> None:
        """List a place."""
        line = source.line_of(start)
        text = source.lines[line - 1].strip()
        path = source.path.relative_to(self.root)
        self.by_hand[heading].append(f"{path}:{line}: {text}" + (f"    [{remark}]" if remark else ""))

    def _attribute(self, source: Source, each: Reference) -> None:
        assert isinstance(each.node, ast.Attribute)
        owner = self.entity(source, each.node.value, each.scope)
        if owner is not None and not owner[1] and owner[0].partition(".")[0] in self.packages:
            if f"{owner[0]}.{each.name}" in self.modules and each.name not in self._names(owner[0]):
                new = self.new_module(f"{owner[0]}.{each.name}").rpartition(".")[2]
            else:
                new = self.new_global(owner[0], each.name)
            source.replace(each.start, each.name, new)
        elif each.name in self.members and not (owner is not None and owner[0].partition(".")[0] not in self.packages):
            news, remark = self.member_of(source, each.node.value, each.scope, each.name)
            if len(news) == 1 and (renamed := news.pop()) is not None:
                source.replace(each.start, each.name, renamed)
                if remark:
                    self.note(
                        "Renamed where no type is known: no other class has such an attribute",
                        source,
                        each.start,
                        f"{each.name} -> {renamed}",
                    )
            elif remark:
                self.note("Decide by hand: attributes", source, each.start, f"{each.name}: {remark}")

    def member_of(self, source: Source, node: ast.expr, scope: Scope, name: str) -> tuple[set[str | None], str]:
        """What an attribute of the value of an expression becomes, and a remark if that is not certain."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            around = next((outer for outer in scope.chain if outer.kind == "class"), None)
            return {self.new_member(self.info_of.get(around), name) if around else None}, ""
        target = self.entity(source, node, scope)
        if target is not None and (classes := self.scopes(*target, "classes")):
            return {self.new_member(self.info_of.get(each), name) for each in classes}, ""
        if isinstance(node, ast.Name) and node.id in UNTYPED:  # imported where it is needed
            return {None}, ""
        kinds = [
            kind
            for kind in self.types.of(source, node)
            if not isinstance(kind, types.CallableType) or kind.is_type_obj()
        ]
        infos = [instance_of(kind) for kind in kinds]
        if kinds and all(infos):
            news = {self.new_member(info, name) for info in infos}
            if len(news) > 1:
                return news, "its classes differ"
            if news == {None} and any(
                info is not None and info.fallback_to_any and not info.get(name) for info in infos
            ):
                return news, "a base class is unknown"
            return news, ""
        others = [
            info for info in self.definers[name] if info.module_name == source.module or not _is_test(info.module_name)
        ]
        news = {self.new_member(info, name) for info in others}
        if not kinds or news == {None}:
            return {None}, ""
        if len(news) == 1 and name not in self.foreign and any(self._near(source, info) for info in others):
            return news, "no type is known"
        return {None}, "no type is known" if any(self._near(source, info) for info in self.members[name]) else ""

    def _near(self, source: Source, info: nodes.TypeInfo) -> bool:
        """Whether a file may well handle objects of a class: it is beside it, or speaks of it."""
        room = info.module_name.rpartition(".")[0]
        return source.module.startswith((f"{room}.", f"tests.{room.partition('.')[2]}.")) or self.speaks_of(
            source, info.module_name, info.name
        )

    def speaks_of(self, text: Text, module: str, name: str) -> bool:
        """Whether the module, or the class or function (or one derived from it), is named in a text."""
        if text not in self._words:
            self._words[text] = set(re.findall(r"\w+", text.text))
        return not self._words[text].isdisjoint(self._family_names(module, name))

    def _family_names(self, module: str, name: str) -> set[str]:
        key = (module, name)
        if key not in self._families:
            bases = {self.info_of.get(scope) for scope in self.scopes(module, name, "classes")} - {None}
            names = {info.name for info in self.infos if bases & set(info.mro)}
            self._families[key] = {name, module.rpartition(".")[2], *names}
        return self._families[key]

    @property
    def foreign(self) -> set[str]:
        """Attributes that values of other packages have."""
        if self._foreign is None:
            from importlib import import_module

            self._foreign = set()
            for library in LIBRARIES:
                try:
                    members = vars(import_module(library))
                except ImportError:
                    continue
                self._foreign |= {name for each in members.values() if isinstance(each, type) for name in dir(each)}
        return self._foreign

    def targets(self, source: Source, node: ast.expr, scope: Scope) -> list[Scope | nodes.TypeInfo | None] | None:
        """The functions and classes that an expression may call; None in the list: of another package; None: not known."""
        if isinstance(node, ast.Call) and node.args:  # delayed(function)(...), njit(function)(...)
            inner = self.targets(source, node.args[0], scope)
            if inner and not any(kind for kind in self.types.of(source, node) if not isinstance(kind, types.AnyType)):
                return inner
        target = self.entity(source, node, scope)
        if target is not None:
            if target[0].partition(".")[0] not in self.packages:
                return [None]
            scopes = self.scopes(*target, "functions")
            classes = [info for each in self.scopes(*target, "classes") if (info := self.info_of.get(each))]
            if scopes or classes:
                return [*scopes, *classes]
        if isinstance(node, ast.Name) and (bound := scope.resolve(node.id)) and bound.kind != "module":
            functions = source.functions.get(f"{bound.qualname}.{node.id}".strip("."), ())
            nested = [each for each in functions if each.parent is bound]
            if nested:
                return [*nested]
        if isinstance(node, ast.Attribute):
            methods = self._methods(source, node, scope)
            if methods is not None:
                return methods
        targets: list[Scope | nodes.TypeInfo | None] = []
        for kind in self.types.of(source, node):
            info = instance_of(kind)
            if isinstance(kind, types.AnyType):
                return None
            if isinstance(kind, types.Instance):
                found = [self._method(kind.type, name) for name in ("forward", "__call__")]
                targets.append(next((each for each in found if each), None))
            elif info is not None:
                targets.append(info)
            elif (definition := definition_of(kind)) is not None:
                module, _, qualname = self._place(definition.fullname)
                targets += self.scopes(module, qualname, "functions") or [None]
            else:
                targets.append(None)
        return targets or None

    def _place(self, fullname: str) -> tuple[str, str, str]:
        for prefix in _prefixes(fullname):
            if prefix in self.modules:
                return prefix, ":", fullname.removeprefix(prefix).strip(".")
        return fullname, ":", ""

    def _methods(self, source: Source, node: ast.Attribute, scope: Scope) -> list[Scope | nodes.TypeInfo | None] | None:
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "super":
            around = next((outer for outer in scope.chain if outer.kind == "class"), None)
            own = self.info_of.get(around) if around else None
            bases = own.mro[1:] if own else []
            return [next((each for base in bases if (each := self._own_method(base, node.attr))), None)]
        target = self.entity(source, node.value, scope)
        classes = self.scopes(*target, "classes") if target else []
        infos = [self.info_of.get(each) for each in classes] or [
            instance_of(kind) for kind in self.types.of(source, node.value)
        ]
        if not infos or not all(infos):
            return None
        found = [self._method(info, node.attr) for info in infos if info is not None]
        return [*found] if any(found) else None

    def _method(self, info: nodes.TypeInfo, name: str) -> Scope | None:
        return next((each for base in info.mro if (each := self._own_method(base, name))), None)

    def _own_method(self, info: nodes.TypeInfo, name: str) -> Scope | None:
        for each, known in self.info_of.items():
            if known is info:
                source = next(s for s in self.modules[info.module_name] if each in s.classes.get(each.qualname, ()))
                found = [f for f in source.functions.get(f"{each.qualname}.{name}", ()) if f.parent is each]
                return found[-1] if found else None
        return None

    def _keyword(self, source: Source, each: Reference, call: ast.Call) -> None:
        name = each.name
        affected = name in self.members or name in self.renamed_arguments
        if not affected:
            return
        targets = self.targets(source, call.func, each.scope)
        called = (
            call.func.attr
            if isinstance(call.func, ast.Attribute)
            else call.func.id
            if isinstance(call.func, ast.Name)
            else ""
        )
        news: set[str | None] = set()
        open_ended = targets is None
        for target in targets or ():
            if isinstance(target, nodes.TypeInfo):
                maker = self._method(target, "__init__")
                if (
                    maker is not None
                    and maker.chain[-1].node is not None
                    and name in argument_names(maker)
                    and not self._is_stub(maker)
                ):
                    news.add(self.new_argument(maker, name))
                else:
                    news.add(self.new_member(target, name))
            elif target is not None and name in argument_names(target):
                news.add(self.new_argument(target, name))
            elif target is None:
                open_ended = True
            elif takes_any_keyword(target):
                passed = self.passed_on(target, name)
                news |= passed
                open_ended = open_ended or not passed
        if open_ended and not news - {None}:
            certain = self._forwarded(source, each, call, called)
            if certain is not None:
                news |= {certain}
            elif targets is None:
                news |= self._by_name(source, each, called)
            elif (targets != [None] and not self._declared(source, call, name) and self._spoken_of(source, name)) or (
                targets == [None] and called in ("dict", "update", "SimpleNamespace") and self._spoken_of(source, name)
            ):
                self.note("Decide by hand: keywords that are passed on", source, each.start, name)
        if len(news) == 1 and (new := news.pop()) is not None:
            source.replace(each.start, name, new)
        elif len(news) > 1:
            self.note("Decide by hand: keywords", source, each.start, f"{name}: what is called differs")

    def passed_on(self, scope: Scope, name: str, depth: int = 0) -> set[str | None]:
        """What a keyword becomes where a function passes its **kwargs on; nothing if that is not known."""
        assert isinstance(scope.node, FUNCTIONS)
        key = (scope, name)
        if key in self._passed or scope.node.args.kwarg is None or depth > 4:
            return self._passed.get(key, set())
        self._passed[key] = set()
        source = self.source_with(scope)
        rest = scope.node.args.kwarg.arg
        news: set[str | None] = set()
        if source is None:
            return news
        for call, inner in source.calls:
            if scope in inner.chain and any(k.arg is None and rest in _names_in(k.value) for k in call.keywords):
                for target in self.targets(source, call.func, inner) or ():
                    if isinstance(target, nodes.TypeInfo):
                        maker = self._method(target, "__init__")
                        takes = maker is not None and name in argument_names(maker) and not self._is_stub(maker)
                        news.add(self.new_argument(maker, name) if maker and takes else self.new_member(target, name))
                    elif target is not None and name in argument_names(target):
                        news.add(self.new_argument(target, name))
                    elif target is not None and takes_any_keyword(target):
                        news |= self.passed_on(target, name, depth + 1)
        self._passed[key] = news
        return news

    def source_with(self, scope: Scope) -> Source | None:
        """The source of a scope."""
        return next((source for source in self.sources if source.scope is scope.chain[-1]), None)

    def source_of(self, module: str) -> Source | None:
        """The source of a module; its file of Python, not of types."""
        return next((source for source in self.modules.get(module, ()) if source.path.suffix == ".py"), None)

    def _declared(self, source: Source, call: ast.Call, name: str) -> bool:
        """Whether the receiver of the call has an attribute of that name, which then is the one that stays."""
        if not isinstance(call.func, ast.Attribute):
            return False
        infos = [instance_of(kind) for kind in self.types.of(source, call.func.value)]
        return bool(infos) and all(info is not None and info.get(name) for info in infos)

    def _is_stub(self, scope: Scope) -> bool:
        return any(scope in found for s in self.sources if s.path.suffix == ".pyi" for found in s.functions.values())

    @property
    def renamed_arguments(self) -> set[str]:
        """Names of functions' arguments that change."""
        if not hasattr(self, "_renamed_arguments"):
            self._renamed_arguments = {
                name
                for source in self.sources
                for scopes in source.functions.values()
                for scope in scopes
                for name in argument_names(scope)
                if self.new_argument(scope, name)
            }
        return self._renamed_arguments

    def _forwarded(self, source: Source, each: Reference, call: ast.Call, called: str) -> str | None:
        """The new keyword where a function or object is the first argument, or the receiver takes any keyword."""
        if isinstance(call.func, ast.Attribute):
            news = {
                self.new_member(i, each.name) for k in self.types.of(source, call.func.value) if (i := instance_of(k))
            }
            if len(news) == 1 and None not in news:
                return news.pop()
        if called not in FORWARDING or not call.args:
            return self._decorated(source, each, call) if called in FORWARDING else None
        news = {self.new_member(i, each.name) for k in self.types.of(source, call.args[0]) if (i := instance_of(k))}
        for target in self.targets(source, call.args[0], each.scope) or ():
            if isinstance(target, Scope):
                news.add(self.new_argument(target, each.name))
        news.discard(None)
        return news.pop() if len(news) == 1 else None

    def _decorated(self, source: Source, each: Reference, call: ast.Call) -> str | None:
        for scopes in source.functions.values():
            for scope in scopes:
                if isinstance(scope.node, FUNCTIONS) and call in scope.node.decorator_list:
                    return self.new_argument(scope, each.name)
        return None

    def _by_name(self, source: Source, each: Reference, called: str) -> set[str | None]:
        """What the keyword becomes if everything of that name in the package takes it and renames it alike."""
        found = self._named.get(called, []) if called else []
        candidates = [scope for scope in found if each.name in argument_names(scope)]
        news = {self.new_argument(scope, each.name) for scope in candidates}
        if len(news) == 1 and None not in news:
            (new,) = news
            self.note(
                "Renamed by the name of what is called, whose type is not known",
                source,
                each.start,
                f"{each.name} -> {new}",
            )
            return news
        if (
            news - {None}
            or not called
            or (isinstance(each.call, ast.Call) and isinstance(each.call.func, ast.Name) and not candidates)
        ):
            self.note("Decide by hand: keywords", source, each.start, f"{each.name}: what is called is not known")
        return set()

    @property
    def _named(self) -> dict[str, list[Scope]]:
        if not hasattr(self, "_functions_by_name"):
            self._functions_by_name: dict[str, list[Scope]] = defaultdict(list)
            for source in self.sources:
                for qualname, scopes in source.functions.items():
                    self._functions_by_name[qualname.rpartition(".")[2]] += scopes
        return self._functions_by_name

    def _import(self, source: Source, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        start = source.start(node)
        if isinstance(node, ast.Import):
            for alias in node.names:
                source.replace(source.start(alias), alias.name, self.new_module(alias.name))
            return
        module = from_module(source, node)
        parents = set()
        for alias in node.names:
            if f"{module}.{alias.name}" in self.modules and alias.name not in self._names(module):
                parent, _, new = self.new_module(f"{module}.{alias.name}").rpartition(".")
            else:
                parent, new = self.new_module(module), self.new_global(module, alias.name)
            parents.add(parent)
            source.replace(source.start(alias), alias.name, new)
        if len(parents) > 1:
            self.note("Split this import by hand: its modules part", source, start, " and ".join(sorted(parents)))
        elif parents and (parent := parents.pop()) != module:
            if node.level:
                dots = "." * node.level + (node.module or "")
                source.replace(source.text.index(dots, start), dots, parent)
            else:
                source.replace(source.text.index(module, start), module, parent)

    # -- tests ------------------------------------------------------------------------------------------------------------

    def follow_fixtures(self) -> None:
        """An argument of a test follows the fixture of its name; a parametrized one is renamed in `parametrize` too."""
        fixtures: dict[str, list[Source]] = defaultdict(list)
        functions = list(self._functions())
        for source, scope, decorators in functions:
            if "fixture" in decorators:
                fixtures[scope.qualname].append(source)
        for source, scope, decorators in functions:
            if not (scope.qualname.rpartition(".")[2].startswith("test") or "fixture" in decorators):
                continue
            parametrized = self._parametrized(source, scope)
            for name in argument_names(scope) - set(parametrized):
                homes = [home for home in fixtures.get(name, ()) if _sees(source, home)]
                home = next((each for each in homes if each is source), homes[-1] if homes else None)
                fixture_new = self.globals.get((home.module, name)) if home else None
                own_new = self.new_argument(scope, name)
                if home is not None and own_new is not None and own_new != fixture_new:
                    self.errors.append(
                        f"{source.module}:{scope.qualname}: {name} is a fixture of {home.module}: rename that one"
                    )
                elif fixture_new is not None and own_new is None:
                    self.local_names.setdefault(scope, {})[name] = fixture_new
            for name, places in parametrized.items():
                new = self.new_argument(scope, name)
                for start in places if new else ():
                    source.replace(start, name, new or name)

    def _functions(self) -> Iterable[tuple[Source, Scope, str]]:
        """The tests, fixtures and other functions in files of tests, with their decorators."""
        for source in self.sources:
            if source.host is None and _is_test(source.module):
                for scope in (each for found in source.functions.values() for each in found):
                    decorators = getattr(scope.node, "decorator_list", [])
                    yield source, scope, " ".join(ast.unparse(each) for each in decorators)

    def _parametrized(self, source: Source, scope: Scope) -> dict[str, list[int]]:
        """The names that `parametrize` gives to a test, and where they stand."""
        found: dict[str, list[int]] = defaultdict(list)
        for outer in scope.chain:
            for decorator in getattr(outer.node, "decorator_list", []):
                calls = [each for each in ast.walk(decorator) if isinstance(each, ast.Call) and each.args]
                for call in (each for each in calls if ast.unparse(each.func).endswith("parametrize")):
                    for each in ast.walk(call.args[0]):
                        if isinstance(each, ast.Constant) and isinstance(each.value, str):
                            start, end = source.start(each), source.end(each)
                            for match in re.finditer(r"\w+", source.text[start:end]):
                                found[match.group()].append(start + match.start())
        return found

    # -- strings ----------------------------------------------------------------------------------------------------------

    def _string(self, source: Source, node: ast.Constant, scope: Scope) -> None:
        """A string that is one name: an entry of `__all__`, of `__slots__`, an argument of setattr, a type written as text."""
        name = node.value
        use = self.uses(source).get(id(node))
        kind = use[0] if use else ""
        if kind == "type":
            for match in re.finditer(r"[A-Za-z_]\w*", source.text[source.start(node) : source.end(node)]):
                if scope.resolve(match.group()) is source.scope:
                    new = self.new_global(source.module, match.group())
                    source.replace(source.start(node) + match.start(), match.group(), new)
            return
        if name not in self.owners:
            return
        new = name
        if kind == "export":
            new = self.new_global(source.module, name)
        elif kind == "slot":
            new = self.new_member(self.info_of.get(scope), name) or name
        elif use and kind == "lazy":
            module = next(
                (
                    m
                    for m in (use[1], f"{source.module}.{use[1]}", f"{source.module.partition('.')[0]}.{use[1]}")
                    if m in self.modules
                ),
                "",
            )
            new = self.new_global(module, name) if module else name
        elif use and kind == "attribute":
            target = self.entity(source, use[1], scope)
            if target is not None and not target[1] and target[0] in self.modules:
                new = self.new_global(target[0], name)
            elif name in self.members:
                news, remark = self.member_of(source, use[1], scope, name)
                new = (len(news) == 1 and news.pop()) or name
                if remark:
                    self.note(
                        "Decide by hand: names of attributes in strings",
                        source,
                        source.start(node),
                        f"{name}: {remark}",
                    )
        if new != name:
            source.replace(source.text.index(name, source.start(node)), name, new)
        elif kind != "attribute" and self._spoken_of(source, name):
            self.note("Decide by hand: strings equal to a name", source, source.start(node), name)

    def _spoken_of(self, text: Text, name: str) -> bool:
        return any(self.speaks_of(text, *owner) for owner in self.owners.get(name, ()))

    def uses(self, source: Source) -> dict[int, tuple[str, Any]]:
        """What strings are for: the node's id -> kind, and what it is about."""
        if source in self._uses:
            return self._uses[source]
        found: dict[int, tuple[str, Any]] = {}

        def note(node: ast.AST | None, kind: str, about: Any = None) -> None:
            for each in ast.walk(node) if node is not None else ():
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    found[id(each)] = (kind, about)

        for node in ast.walk(source.tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                names = {
                    getattr(each, "id", "")
                    for each in (node.targets if isinstance(node, ast.Assign) else [node.target])
                }
                if "__all__" in names:
                    note(node.value, "export")
                if names & {"__slots__", "__match_args__"}:
                    note(node.value, "slot")
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        note(key, "lazy", value.value)
            if isinstance(node, ast.AnnAssign | ast.arg):
                note(node.annotation, "type")
            if isinstance(node, FUNCTIONS):
                note(node.returns, "type")
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called == "cast" and node.args:
                    note(node.args[0], "type")
                if called in ("TypeVar", "ParamSpec", "NewType", "NamedTuple", "namedtuple") and node.args:
                    note(node.args[0], "export")
                for keyword in node.keywords if called == "TypeVar" else ():
                    note(keyword.value, "type")
                if (
                    called in ("register_buffer", "register_parameter")
                    and node.args
                    and isinstance(node.func, ast.Attribute)
                ):
                    note(node.args[0], "attribute", node.func.value)
                if called in ("getattr", "setattr", "hasattr", "delattr", "object") and len(node.args) > 1:
                    note(node.args[1], "attribute", node.args[0])
        for node in [
            each
            for each in ast.walk(source.tree)
            if isinstance(each, ast.Subscript) and ast.unparse(each.value).endswith("Literal")
        ]:
            for each in ast.walk(node.slice):
                found.pop(id(each), None)
        self._uses[source] = found
        return found

    def read_names(self) -> None:
        """The names that change, for the search in strings."""
        owners: dict[str, set[tuple[str, str]]] = defaultdict(set)  # old name -> module and class or function
        for key, names in self.table.parameters.items():
            for old in names:
                owners[old].add((key.partition(":")[0], key.partition(":")[2].split(".")[0]))
        self.parameters = set(owners)
        for module, name in self.globals:
            owners[name].add((module, name))
        for module, qualname, _ in self.member_keys:
            owners[qualname.rpartition(".")[2]].add((module, qualname.split(".")[0]))
        self.owners = owners
        self._uses: dict[Source, dict[int, tuple[str, Any]]] = {}

    def edit_texts(self) -> None:
        """Names of modules with dots, paths of files and names between backticks, in comments, strings and other files."""
        moved = {
            self.path_of(old): self.path_of(self.new_module(old)) for old in self.modules if self.new_module(old) != old
        }
        self.moved_paths = {old: new for old, new in moved.items() if old is not None and new is not None}
        for text in self.texts:
            self._mentions(text, 0, text.text)
            if text.path.suffix == ".md":
                for match in re.finditer(r"`(\w+)(?:=[^`]*|\(\))?`", text.text):
                    if match.start(1) not in text.edits and self._spoken_of(text, match.group(1)):
                        self._note_text("Decide by hand: names in pages", text, match.start(1), match.group(1))
        for source in self.sources:
            if source.host is None:
                for token in source.tokens:
                    start = source.starts[token.start[0] - 1] + token.start[1]
                    self._mentions(source, start, token.string)
                    self._backticks(source, start, token.string, token.start[0])

    def _note_text(self, heading: str, text: Text, start: int, remark: str) -> None:
        line = text.line_of(start)
        self.by_hand[heading].append(
            f"{text.path.relative_to(self.root)}:{line}: {text.lines[line - 1].strip()[:160]}    [{remark}]"
        )

    def path_of(self, module: str) -> str | None:
        """The path of a module, from the top of the project."""
        sources = self.modules.get(module)
        if sources:
            return sources[0].path.relative_to(self.root).as_posix()
        original = next((old for old in self.modules if self.new_module(old) == module), None)
        path = self.path_of(original) if original else None
        if path is None or original is None:
            return None
        stem = path.removesuffix(".py").removesuffix("/__init__")
        top = stem.removesuffix(original.replace(".", "/"))
        return top + module.replace(".", "/") + path.removeprefix(stem)

    def _mentions(self, text: Text, first: int, piece: str) -> None:
        """Names with dots, and paths."""
        for match in self._dotted.finditer(piece):
            new = self.new_qualname(match.group())
            self._replace_mention(text, first + match.start(), match.group(), new)
        for match in self._path.finditer(piece):
            self._replace_mention(
                text, first + match.start(1), match.group(1), self.moved_paths.get(match.group(1), match.group(1))
            )
            module = module_of(match.group(1))
            start = match.end(1)
            outer = ""
            for name in (match.group(2) or "").split("::")[1:]:
                start += 2
                scopes = self.scopes(module, outer, "classes") if outer else []
                new = (self.new_member(self.info_of.get(scopes[0]), name) if scopes else None) or (
                    name if outer else self.new_global(module, name)
                )
                self._replace_mention(text, first + start, name, new)
                start, outer = start + len(name), name

    def _replace_mention(self, text: Text, start: int, old: str, new: str) -> None:
        if old != new and not any(start <= place < start + len(old) for place in text.edits):
            text.replace(start, old, new)

    @property
    def _dotted(self) -> re.Pattern[str]:
        if not hasattr(self, "_dotted_pattern"):
            tops = {self.new_top(m) for m in self.modules if not m.startswith("page_")}
            short = {old.partition(".")[2] for old in self.table.modules if old.count(".") > 1}
            alternatives = [rf"{re.escape(top)}(?:\.\w+)+(?::[A-Za-z_][\w.]*)?" for top in sorted(tops)]
            quoted = [rf"(?<=[\"'`]){re.escape(name)}(?=[\"'`])" for name in sorted(short)]
            self._dotted_pattern = re.compile(r"(?<![\w./-])(?:" + "|".join([*alternatives, *quoted]) + ")")
            self._path = re.compile(r"(?<![\w.-])((?:[\w-]+/)+[\w-]+\.py)\b((?:::\w+)*)")
            self._short = short
        return self._dotted_pattern

    @staticmethod
    def new_top(module: str) -> str:
        """The first part of a dotted name."""
        return module.partition(".")[0]

    def new_qualname(self, dotted: str) -> str:
        """What a name with dots, and perhaps a colon after the module, becomes."""
        if dotted in self._short:
            top = next(old.partition(".")[0] for old in self.table.modules if old.partition(".")[2] == dotted)
            new = self.new_module(f"{top}.{dotted}")
            return new.removeprefix(f"{top}.")
        head, colon, tail = dotted.partition(":")
        module = next((prefix for prefix in _prefixes(head) if prefix in self.modules), None)
        if module is None:
            return dotted
        names = [*head.removeprefix(module).strip(".").split("."), *tail.split(".")]
        names = [name for name in names if name]
        news = []
        place: tuple[str, str] | None = (module, "")
        scope: Scope | None = None
        for name in names:
            if scope is not None:
                news.append(self.new_member(self.info_of.get(scope), name) or name)
                scope = None
            elif place is not None:
                news.append(self.new_global(place[0], name))
                target = self.canonical(place[0], name)
                scope = next(iter(self.scopes(*target, "classes")), None)
                place = None
            else:
                news.append(name)
        separator = ":" if colon else "."
        before = len(names) - len([n for n in tail.split(".") if n])
        return ".".join([self.new_module(module), *news[:before]]) + (
            separator + ".".join(news[before:]) if colon else ""
        )

    def _backticks(self, source: Source, first: int, piece: str, line: int) -> None:
        """Names between backticks, as they are to be understood at this line."""
        for match in re.finditer(r"`([A-Za-z_]\w*)((?:\.\w+)*)[^`\n]*`", piece):
            name, start = match.group(1), first + match.start(1)
            scope = self._innermost(source, line)
            bound = scope.resolve(name)
            members = [o for o in scope.chain if o.kind == "class"]
            new = name
            if bound is not None:
                new = self.new_name(source, Reference("name", name, start, scope, scope.node))
            if new == name and bound in (None, source.scope) and members:
                new = self.new_member(self.info_of.get(members[0]), name) or new
            self._replace_mention(source, start, name, new)
            if match.group(2):
                owner = self.canonical(source.module, name)
                classes = self.scopes(*owner, "classes")
                attribute = match.group(2)[1:].partition(".")[0]
                info = (
                    self.info_of.get(classes[0])
                    if classes
                    else self.info_of.get(members[0])
                    if members and name == "self"
                    else None
                )
                place = start + len(name) + 1
                self._replace_mention(source, place, attribute, self.new_member(info, attribute) or attribute)
        if piece[:1] != "#":
            for match in re.finditer(r"\b(\w+)=|`(\w+)`", piece):
                name = match.group(1) or match.group(2)
                start = first + match.start()
                if (
                    name in self.parameters
                    and self._spoken_of(source, name)
                    and not any(start <= place <= start + 1 for place in source.edits)
                ):
                    self.note("Decide by hand: parameters named in text", source, start, name)

    def _innermost(self, source: Source, line: int) -> Scope:
        if source not in self._spans:
            scopes = [s for group in (source.classes, source.functions) for found in group.values() for s in found]
            spans = [
                (getattr(scope.node, "lineno", 0), getattr(scope.node, "end_lineno", 0), scope) for scope in scopes
            ]
            self._spans[source] = sorted(spans, key=lambda span: span[1] - span[0])
        return next((scope for first, last, scope in self._spans[source] if first <= line <= last), source.scope)

    # -- what would go wrong ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """In the changed files every name must refer to the definition it referred to before."""
        for source in self.sources:
            if not source.edits:
                continue
            where = f"{source.path.relative_to(self.root)}"
            try:
                text = source.changed()
                compile(text, str(source.path), "exec", dont_inherit=True)
                after = Source(source.path, text, source.module, source.is_package)
            except (SyntaxError, ValueError) as error:
                self.errors.append(f"{where}: {error}")
                continue
            before_index = {scope: i for i, scope in enumerate(source.scopes)}
            after_index = {scope: i for i, scope in enumerate(after.scopes)}
            meant: dict[tuple[int, str], tuple[int, str]] = {}
            origin: dict[tuple[int, str], tuple[int, str]] = {}
            reported = set()
            pairs = zip(
                (each for each in source.references if each.kind == "name"),
                (each for each in after.references if each.kind == "name"),
                strict=True,
            )
            for old, new in pairs:
                old_scope, new_scope = old.scope.resolve(old.name), new.scope.resolve(new.name)
                old_key = (before_index[old_scope] if old_scope else -1, old.name)
                new_key = (after_index[new_scope] if new_scope else -1, new.name)
                alike = meant.setdefault(old_key, new_key) == new_key and origin.setdefault(new_key, old_key) == old_key
                if (not alike or old_key[0] != new_key[0]) and (old.name, new.name) not in reported:
                    reported.add((old.name, new.name))
                    owner = f"{source.module}:{old.scope.qualname}"
                    text = source.lines[source.line_of(old.start) - 1].strip()
                    if old.name == new.name:
                        self.errors.append(f"{owner}: {old.name}, used in {text!r}, would no longer mean the same")
                    else:
                        self.errors.append(
                            f"{owner}: {old.name} cannot become {new.name}, which has another meaning there: {text!r}"
                        )


def argument_names(scope: Scope) -> set[str]:
    """Names of the arguments of a function."""
    return (
        {arg.arg for arg in arguments(scope.node.args)} if isinstance(scope.node, (*FUNCTIONS, ast.Lambda)) else set()
    )


def _names_in(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def takes_any_keyword(scope: Scope) -> bool:
    """Whether a function has **kwargs."""
    return isinstance(scope.node, FUNCTIONS) and scope.node.args.kwarg is not None


def _prefixes(dotted: str) -> Iterable[str]:
    """The name and the names of the packages around it, longest first."""
    while dotted:
        yield dotted
        dotted = dotted.rpartition(".")[0]


def _is_test(module: str) -> bool:
    return module.partition(".")[0] == "tests"


def _sees(source: Source, home: Source) -> bool:
    """Whether the tests of a file have the fixtures of another."""
    return home is source or (home.path.name == "conftest.py" and home.path.parent in source.path.parents)
