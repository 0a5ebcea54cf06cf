"""What a table means: which definitions it renames, and what each name refers to."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from mypy import nodes
from mypy.subtypes import is_subtype
from mypy.typevars import fill_typevars_with_any
from sources import FUNCTIONS, Reference, Scope, Source, Text, arguments, module_of
from tables import Names, Table
from types_of import Types


class Meaning:
    """Edits of all sources for a table, what is wrong with it, and what a person has to decide."""

    def __init__(self, root: Path, table: Table, sources: list[Source], texts: list[Text]) -> None:
        self.root, self.sources, self.texts = root, sources, texts
        self.by_hand: dict[str, list[str]] = defaultdict(list)
        self.modules: dict[str, list[Source]] = defaultdict(list)
        for source in sources:
            self.modules[source.module].append(source)
        self.table = table.renamed_keys(self.import_name)
        self.errors = table.errors
        self.by_hand["Decide by hand: remarks of the tables"] += table.remarks
        self.packages = {name.partition(".")[0] for name in self.modules}
        self.globals: dict[tuple[str, str], str] = {}  # module and name -> new name
        self.members: dict[str, dict[nodes.TypeInfo, str]] = defaultdict(
            dict
        )  # old name -> class -> new name
        self.local_names: dict[Scope, Names] = {}  # function or module -> names in it and below
        self.argument_names: dict[Scope, Names] = {}  # function -> its own arguments
        self.member_keys: list[tuple[str, str, str]] = []
        self.fixtures: dict[str, list[Source]] = defaultdict(list)
        self._foreign: set[str] | None = None
        self._words: dict[Text, set[str]] = {}
        self._families: dict[tuple[str, str], set[str]] = {}
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

    def import_name(self, module: str) -> str:
        """The name by which a module is imported, which for a folder on sys.path is not that from the top of the project."""
        name = module_of(module.replace(".", "/") + ".py")
        return name if name in self.modules or module not in self.modules else module

    def scopes(self, module: str, qualname: str, category: str) -> list[Scope]:
        """The classes or functions of this name."""
        return [
            scope
            for source in self.modules.get(module, ())
            for scope in getattr(source, category).get(qualname, ())
        ]

    def _local(self, label: str, module: str, qualname: str, old: str, new: str) -> None:
        owners = self.scopes(module, qualname, "functions") or self.scopes(
            module, qualname, "classes"
        )
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
        references = (
            each
            for source in self.modules[module]
            for each in source.references
            if each.category == "name" and each.name == name
        )
        return any(
            owner in each.scope.chain
            and (bound := each.scope.resolve(name))
            and owner in bound.chain
            for each in references
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
            self.errors.append(
                f"parameters: {key}: there is no function or class {module}:{qualname}"
            )
        elif not any(old in argument_names(scope) for scope in functions):
            self.errors.append(f"parameters: {key}: it has no argument {old}")
        for scope in functions:
            self.argument_names.setdefault(scope, {})[old] = new

    def note(self, heading: str, source: Source, start: int, remark: str = "") -> None:
        """List a place."""
        line = source.line_of(start)
        text = source.lines[line - 1].strip()
        path = source.path.relative_to(self.root)
        self.by_hand[heading].append(
            f"{path}:{line}: {text}" + (f"    [{remark}]" if remark else "")
        )

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
            scope: types_.infos[position]
            for position, scope in self.class_scopes.items()
            if position in types_.infos
        }
        self.class_of = {class_info: scope for scope, class_info in self.info_of.items()}
        definers: dict[str, list[nodes.TypeInfo]] = defaultdict(list)
        for each in self.infos:
            for name in each.names:
                definers[name].append(each)
        self.definers = definers
        for module, qualname, new in self.member_keys:
            owner, _, name = qualname.rpartition(".")
            for scope in self.scopes(module, owner, "classes"):
                class_info = self.info_of.get(scope)
                if class_info is None:
                    self.errors.append(
                        f"symbols: {module}:{qualname}: mypy does not reach the class {owner}"
                    )
                elif not any(name in base.names for base in class_info.mro):
                    self.errors.append(
                        f"symbols: {module}:{qualname}: {owner} has no attribute {name}"
                    )
                else:
                    self._rename_member(f"{module}:{qualname}", class_info, name, new)
        self._check_members()

    def _rename_member(self, key: str, class_info: nodes.TypeInfo, name: str, new: str) -> None:
        family = {base for base in class_info.mro if name in base.names}
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
        keys = {(module, qualname) for module, qualname, _ in self.member_keys}
        for protocol in [each for each in family if each.is_protocol]:
            for candidate in self.definers[name]:
                scope = self.class_of.get(candidate)
                has_entry = (
                    scope is not None
                    and (candidate.module_name, f"{scope.qualname}.{name}") in keys
                )
                if not has_entry and is_subtype(
                    fill_typevars_with_any(candidate), fill_typevars_with_any(protocol)
                ):
                    family.add(candidate)
        for each in family:
            if each not in self.infos:
                self.errors.append(
                    f"symbols: {key}: {each.fullname}, of another package, defines {name}"
                )
            elif self.members[name].setdefault(each, new) != new:
                self.errors.append(
                    f"symbols: {key}: {each.fullname}.{name} becomes {new} and {self.members[name][each]}"
                )
            elif each is not class_info:
                self.by_hand["Renamed too, as it is the same attribute"].append(
                    f"{each.fullname}.{name} -> {new} (as {key})"
                )

    def _check_members(self) -> None:
        for name, family in self.members.items():
            for class_info, new in family.items():
                relatives = {
                    *class_info.mro,
                    *(relative for relative in self.infos if class_info in relative.mro),
                }
                for relative in relatives:
                    if new in relative.names and relative not in self.members.get(new, {}):
                        self.errors.append(
                            f"symbols: {class_info.fullname}.{name} cannot become {new}: {relative.fullname} has it"
                        )

    def read_names(self) -> None:
        """The names that change, for the search in strings."""
        owners: dict[str, set[tuple[str, str]]] = defaultdict(
            set
        )  # old name -> module and class or function
        for key, names in self.table.parameters.items():
            for old in names:
                owners[old].add((key.partition(":")[0], key.partition(":")[2].split(".")[0]))
        self.parameters = set(owners)
        for module, name in self.globals:
            owners[name].add((module, name))
        for module, qualname, _ in self.member_keys:
            owners[qualname.rpartition(".")[2]].add((module, qualname.split(".")[0]))
        self.owners = owners

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
        for outer in prefixes(module):
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
            if f"{module}.{name}" in self.modules or any(
                m.startswith(f"{module}.{name}.") for m in self.modules
            ):
                return f"{module}.{name}", ""
        return module, name

    def new_name(self, source: Source, each: Reference) -> str:
        """What a name becomes."""
        bound = each.scope.resolve(each.name)
        if bound is None:
            return each.name
        if bound.category == "module":
            return self.new_global(source.module, each.name)
        for origin in bound.names.get(each.name, ()):
            if origin is not None:
                return self.imported(origin, each.name)
        if bound.category == "class":
            return self.new_member(self.info_of.get(bound), each.name) or each.name
        new_arguments = self.argument_names.get(bound, {})
        if each.name in new_arguments and each.name in argument_names(bound):
            return new_arguments[each.name]
        for scope in bound.chain:
            if each.name in self.local_names.get(scope, {}):
                return self.local_names[scope][each.name]
        return each.name

    def new_member(self, class_info: nodes.TypeInfo | None, name: str) -> str | None:
        """What an attribute of a class becomes; None if it stays."""
        if class_info is None or name not in self.members:
            return None
        return next(
            (self.members[name][base] for base in class_info.mro if base in self.members[name]),
            None,
        )

    def new_argument(self, scope: Scope, name: str) -> str | None:
        """What an argument of a function becomes; None if it stays, or if it has none of that name."""
        if name not in argument_names(scope):
            return None
        if name in self.argument_names.get(scope, {}):
            return self.argument_names[scope][name]
        return next(
            (
                names[name]
                for outer in scope.chain
                if name in (names := self.local_names.get(outer, {}))
            ),
            None,
        )

    def source_with(self, scope: Scope) -> Source | None:
        """The source of a scope."""
        if not hasattr(self, "_source_with"):
            self._source_with = {source.scope: source for source in self.sources}
        return self._source_with.get(scope.chain[-1])

    def source_of(self, module: str) -> Source | None:
        """The source of a module; its file of Python, not of types."""
        return next(
            (
                source
                for source in self.modules.get(self.import_name(module), ())
                if source.path.suffix == ".py"
            ),
            None,
        )

    def is_stub(self, scope: Scope) -> bool:
        """Whether a function stands in a file of types."""
        return any(
            scope in scopes
            for s in self.sources
            if s.path.suffix == ".pyi"
            for scopes in s.functions.values()
        )

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

    def near(self, source: Source, class_info: nodes.TypeInfo) -> bool:
        """Whether a file may handle objects of a class: it is in the same folder, or mentions it."""
        package = class_info.module_name.rpartition(".")[0]
        return source.module.startswith(
            (f"{package}.", f"tests.{package.partition('.')[2]}.")
        ) or self.speaks_of(source, class_info.module_name, class_info.name)

    def speaks_of(self, text: Text, module: str, name: str) -> bool:
        """Whether the module, or the class or function (or one derived from it), is named in a text."""
        if text not in self._words:
            self._words[text] = set(re.findall(r"\w+", text.text))
        return not self._words[text].isdisjoint(self._family_names(module, name))

    def spoken_of(self, text: Text, name: str, of_classes: bool = False) -> bool:
        """Whether a text names a class, function or module of which the name is a renamed part; or only of classes."""
        return any(
            self.speaks_of(text, *owner)
            for owner in self.owners[name]
            if not of_classes or owner[1] != name
        )

    def _family_names(self, module: str, name: str) -> set[str]:
        key = (module, name)
        if key not in self._families:
            bases = {self.info_of.get(scope) for scope in self.scopes(module, name, "classes")} - {
                None
            }
            names = {class_info.name for class_info in self.infos if bases & set(class_info.mro)}
            self._families[key] = {name, module.rpartition(".")[2], *names}
        return self._families[key]


def argument_names(scope: Scope) -> set[str]:
    """Names of the arguments of a function."""
    return (
        {arg.arg for arg in arguments(scope.node.args)}
        if isinstance(scope.node, (*FUNCTIONS, ast.Lambda))
        else set()
    )


def takes_any_keyword(scope: Scope) -> bool:
    """Whether a function has **kwargs."""
    return isinstance(scope.node, FUNCTIONS) and scope.node.args.kwarg is not None


def prefixes(dotted: str) -> Iterable[str]:
    """The name and the names of the packages around it, longest first."""
    while dotted:
        yield dotted
        dotted = dotted.rpartition(".")[0]


def is_test(module: str) -> bool:
    """Whether a module is one of the tests."""
    return module.partition(".")[0] == "tests"


def sees(source: Source, home: Source) -> bool:
    """Whether the tests of a file have the fixtures of another."""
    return home is source or (
        home.path.name == "conftest.py" and home.path.parent in source.path.parents
    )
