"""What expressions are: the classes of values, and the functions that calls reach."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from meaning import Meaning, argument_names, is_test, prefixes, sees, takes_any_keyword
from mypy import nodes, types
from sources import FUNCTIONS, Scope, Source
from types_of import UNTYPED, definition_of, flat, instance_of

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
Target = Scope | nodes.TypeInfo | None  # a function, a class, or something of another package


@dataclass(frozen=True)
class Place:
    """An expression where it stands: the source, its scope, and what the arguments of functions around it are."""

    source: Source
    node: ast.expr
    scope: Scope
    given: Mapping[tuple[Scope, str], Place] = field(default_factory=dict)

    def at(self, node: ast.expr, scope: Scope | None = None) -> Place:
        """Another expression, seen with the same arguments."""
        return replace(self, node=node, scope=scope or self.scope)


class Values(Meaning):
    """What expressions are, by mypy; where it has no type (tests have functions without any), by what they are made of."""

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

    def attribute(self, place: Place, name: str) -> tuple[set[str | None], str]:
        """What an attribute of the value of an expression becomes, and a remark if that is not certain."""
        node = place.node
        if isinstance(node, ast.Name) and node.id in UNTYPED:  # imported where it is needed
            return {None}, ""
        kinds = [kind for kind in self.types.of(place.source, node) if not _is_function(kind)]
        infos = self.classes_of(place)
        if infos:
            news: set[str | None] = set()
            for info in infos:
                if info.get(name) or not (new := self._in_subclasses(info, name)):
                    news.add(self.new_member(info, name))
                else:
                    news |= new
            if len(news) > 1:
                return news, "its classes differ"
            if news == {None} and any(info.fallback_to_any and not info.get(name) for info in infos):
                return news, "a base class is unknown"
            return news, ""
        if not kinds or not all(isinstance(kind, types.AnyType) for kind in kinds):
            return {None}, ""
        local = [
            info
            for info in self.definers[name]
            if info.module_name == place.source.module or not is_test(info.module_name)
        ]
        news = {self.new_member(info, name) for info in local}
        near = any(self.near(place.source, info) for info in self.members[name])
        if len(news) == 1 and near and name not in self.foreign:
            return news, "no type is known"
        return {None}, "no type is known" if near else ""

    def _in_subclasses(self, info: nodes.TypeInfo, name: str) -> set[str | None]:
        """What an attribute that only subclasses have becomes in them."""
        return {self.new_member(other, name) for other in self.definers[name] if info in other.mro}

    def classes_of(self, place: Place, depth: int = 0) -> list[nodes.TypeInfo]:
        """The classes of which the value of an expression is, or which it is itself; none if they are not known."""
        node = place.node
        if is_super(node):
            around = next((outer for outer in place.scope.chain if outer.kind == "class"), None)
            info = self.info_of.get(around) if around else None
            return [info] if info else []
        target = self.entity(place.source, node, place.scope)
        if target is not None and (scopes := self.scopes(*target, "classes")):
            return [info for scope in scopes if (info := self.info_of.get(scope))]
        infos = [instance_of(kind) for kind in self.types.of(place.source, node) if not _is_function(kind)]
        if infos and all(infos):
            return [info for info in infos if info]
        if (
            infos
            and not place.given
            and not any(isinstance(k, types.AnyType) for k in self.types.of(place.source, node))
        ):
            return []
        return self._inferred(place, depth) if depth < 12 else []

    def _inferred(self, place: Place, depth: int) -> list[nodes.TypeInfo]:
        node = place.node
        if isinstance(node, ast.IfExp):
            return self._union([place.at(node.body), place.at(node.orelse)], depth)
        if isinstance(node, ast.Name | ast.Subscript):
            return self._union(self.values_of(place, depth + 1), depth)
        if isinstance(node, ast.Attribute):
            found = []
            for info in self.classes_of(place.at(node.value), depth + 1):
                found += _attribute_classes(info, node.attr)
            return found
        if isinstance(node, ast.Call):
            called = [(each, each.node) for each in self.values_of(place.at(node.func), depth + 1)]
            lambdas = [each.at(f.body, each.source.scope_of[f]) for each, f in called if isinstance(f, ast.Lambda)]
            if lambdas:
                return self._union(lambdas, depth)
            found = []
            for target in self.targets(place.at(node.func), depth + 1) or [None]:
                classes = (
                    [target]
                    if isinstance(target, nodes.TypeInfo)
                    else self._returned(place, target, depth)
                    if target
                    else []
                )
                if not classes:
                    return []
                found += classes
            return found
        return []

    def _union(self, places: list[Place], depth: int) -> list[nodes.TypeInfo]:
        found = [self.classes_of(each, depth + 1) for each in places if not _is_none(each.node)]
        return [info for infos in found for info in infos] if all(found) else []

    def _returned(self, place: Place, function: Scope, depth: int) -> list[nodes.TypeInfo]:
        """The classes of what a call of the function returns."""
        node, call = function.node, place.node
        assert isinstance(call, ast.Call)
        annotation = getattr(node, "returns", None)
        source = self.source_with(function)
        if source is None:
            return []
        if isinstance(annotation, ast.Name) and annotation.id == "Self" and isinstance(call.func, ast.Attribute):
            return self.classes_of(place.at(call.func.value), depth + 1)
        if annotation is not None:
            target = self.entity(source, annotation, source.scope)
            scopes = self.scopes(*target, "classes") if target else []
            if scopes:
                return [info for scope in scopes if (info := self.info_of.get(scope))]
        return self._union(self._returns(place, function), depth)

    def _returns(self, place: Place, function: Scope) -> list[Place]:
        """The expressions that a call of the function returns."""
        source = self.source_with(function)
        given = self._given(place, function) if isinstance(place.node, ast.Call) else {}
        return (
            [Place(source, node, scope, given) for node, scope in source.returned.get(function, ())] if source else []
        )

    def _given(self, place: Place, function: Scope) -> dict[tuple[Scope, str], Place]:
        """The arguments of a call, by the names that the function has for them."""
        call, node = place.node, function.node
        assert isinstance(call, ast.Call)
        if not isinstance(node, FUNCTIONS):
            return {}
        names = [arg.arg for arg in [*node.args.posonlyargs, *node.args.args]]
        if function.parent is not None and function.parent.kind == "class":
            names = names[1:]
        positional = zip(names, call.args, strict=False)
        keywords = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
        return {
            (function, name): place.at(value)
            for name, value in [*positional, *keywords]
            if not isinstance(value, ast.Starred)
        }

    def values_of(self, place: Place, depth: int = 0) -> list[Place]:
        """The expressions that may be the value of a name or an element; none if they are not known."""
        node = place.node
        if depth > 12:
            return []
        if isinstance(node, ast.Lambda):
            return [place]
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, int)
        ):
            return self._element(place.at(node.value), node.slice.value, depth + 1)
        bound = place.scope.resolve(node.id) if isinstance(node, ast.Name) else None
        if bound is None or not isinstance(node, ast.Name):
            return []
        if (bound, node.id) in place.given:
            argument = place.given[bound, node.id]
            return self.values_of(argument, depth + 1) or [argument]
        found: list[Place] = []
        for value in place.source.values.get((bound, node.id), ()):
            places = [place.at(value.node, value.scope)]
            if value.loops:
                places = [each for one in places for each in self._elements(one, depth + 1)]
            for index in value.path:
                places = [each for one in places for each in self._element(one, index, depth + 1)]
            if not places:
                return []
            found += places
        if not found and node.id in argument_names(bound):
            found = [*self._parameters(place.source, bound, node.id), *self._fixture(place.source, bound, node.id)]
        return found

    def _elements(self, place: Place, depth: int) -> list[Place]:
        """The elements of a list or tuple that is written out."""
        if isinstance(place.node, ast.List | ast.Tuple | ast.Set):
            return [
                place.at(each.args[0] if isinstance(each, ast.Call) and is_call(each, "param") else each)
                for each in place.node.elts
            ]
        if isinstance(place.node, ast.Name) and depth < 12:
            target = self.entity(place.source, place.node, place.scope)
            source = self.source_of(target[0]) if target else None
            if source is not None and source is not place.source and target:
                values = source.values.get((source.scope, target[1]), ())
                return [each for v in values for each in self._elements(Place(source, v.node, v.scope), depth + 1)]
            return [each for value in self.values_of(place, depth + 1) for each in self._elements(value, depth + 1)]
        return []

    def _element(self, place: Place, index: int, depth: int) -> list[Place]:
        """One element of a tuple, also of one that a function returns."""
        node = place.node
        if isinstance(node, ast.List | ast.Tuple):
            return [place.at(node.elts[index])] if -len(node.elts) <= index < len(node.elts) else []
        if isinstance(node, ast.Name):
            return [
                each for value in self.values_of(place, depth + 1) for each in self._element(value, index, depth + 1)
            ]
        if is_call(node, "param") and isinstance(node, ast.Call):
            return [place.at(node.args[index])] if index < len(node.args) else []
        if isinstance(node, ast.Call) and depth < 12:
            functions = [
                target for target in self.targets(place.at(node.func), depth + 1) or () if isinstance(target, Scope)
            ]
            returns = [each for function in functions for each in self._returns(place, function)]
            return [each for value in returns for each in self._element(value, index, depth + 1)]
        return []

    def _parameters(self, source: Source, scope: Scope, name: str) -> list[Place]:
        """What `parametrize` gives to an argument of a test."""
        found = []
        for decorator in getattr(scope.node, "decorator_list", []):
            if not (is_call(decorator, "parametrize") and len(decorator.args) > 1 and scope.parent is not None):
                continue
            words = [each.value for each in ast.walk(decorator.args[0]) if isinstance(each, ast.Constant)]
            names = re.findall(r"\w+", " ".join(map(str, words)))
            if name in names:
                rows = self._elements(Place(source, decorator.args[1], scope.parent), 0)
                index = names.index(name)
                found += rows if len(names) == 1 else [each for row in rows for each in self._element(row, index, 0)]
        return found

    def _fixture(self, source: Source, scope: Scope, name: str) -> list[Place]:
        """What the fixture that an argument of a test names returns."""
        for home in self.fixtures.get(name, ()):
            if sees(source, home):
                returned = [each for function in home.functions[name] for each in home.returned.get(function, ())]
                return [Place(home, node, inner) for node, inner in returned]
        return []

    def targets(self, place: Place, depth: int = 0) -> list[Target] | None:
        """The functions and classes that an expression may call; None if they are not known."""
        node, source, scope = place.node, place.source, place.scope
        kinds = self.types.of(source, node)
        if isinstance(node, ast.Call) and node.args and all(isinstance(kind, types.AnyType) for kind in kinds):
            inner = self.targets(place.at(node.args[0]), depth + 1)  # delayed(function)(...), njit(function)(...)
            if inner:
                return inner
        target = self.entity(source, node, scope)
        if target is not None:
            if target[0].partition(".")[0] not in self.packages:
                return [None]
            infos = [info for each in self.scopes(*target, "classes") if (info := self.info_of.get(each))]
            if infos or self.scopes(*target, "functions"):
                return [*self.scopes(*target, "functions"), *infos]
        if isinstance(node, ast.Name) and (bound := scope.resolve(node.id)) and bound.kind != "module":
            functions = source.functions.get(f"{bound.qualname}.{node.id}".strip("."), ())
            nested = [each for each in functions if each.parent is bound]
            if nested:
                return [*nested]
        if isinstance(node, ast.Attribute) and (methods := self._methods(place, node, depth)) is not None:
            return methods
        if any(isinstance(kind, types.AnyType) for kind in kinds):
            found: list[Target] = []
            for value in self.values_of(place, depth + 1) if depth < 12 else ():
                if value.node is not node:
                    found += self.targets(value, depth + 1) or []
            return found or None
        return [each for kind in kinds for each in self._called(kind)] or None

    def _called(self, kind: types.ProperType) -> list[Target]:
        """The functions and classes that calling a value of this type reaches."""
        if isinstance(kind, types.Instance):
            return [self.method(kind.type, "forward") or self.method(kind.type, "__call__")]
        if (info := instance_of(kind)) is not None:
            return [info]
        if (definition := definition_of(kind)) is not None:
            module = next((each for each in prefixes(definition.fullname) if each in self.modules), "")
            return [*self.scopes(module, definition.fullname.removeprefix(module).strip("."), "functions")] or [None]
        return [None]

    def _methods(self, place: Place, node: ast.Attribute, depth: int) -> list[Target] | None:
        infos = self.classes_of(place.at(node.value), depth + 1)
        if is_super(node.value):
            bases = infos[0].mro[1:] if infos else []
            return [next((each for base in bases if (each := self.own_method(base, node.attr))), None)]
        found = [self.method(info, node.attr) for info in infos]
        return [*found] if any(found) else None

    def method(self, info: nodes.TypeInfo, name: str) -> Scope | None:
        """The function that a method of a class is, if it is one of the project."""
        return next((each for base in info.mro if (each := self.own_method(base, name))), None)

    def own_method(self, info: nodes.TypeInfo, name: str) -> Scope | None:
        """The same, if the class itself defines it."""
        scope = self.class_of.get(info)
        source = self.source_with(scope) if scope else None
        if scope is None or source is None:
            return None
        found = [each for each in source.functions.get(f"{scope.qualname}.{name}", ()) if each.parent is scope]
        return found[-1] if found else None

    def keyword_of(self, target: Target, name: str, place: Place | None = None, depth: int = 0) -> set[str | None]:
        """What a keyword becomes in a call of a function or class; nothing if it is passed on one knows not where."""
        if isinstance(target, nodes.TypeInfo):
            maker = self.method(target, "__init__")
            explicit = maker is not None and name in argument_names(maker) and not self.is_stub(maker)
            return {self.new_argument(maker, name) if maker and explicit else self.new_member(target, name)}
        if target is not None and name in argument_names(target):
            return {self.new_argument(target, name)}
        if target is None or not takes_any_keyword(target) or depth > 4:
            return set()
        source = self.source_with(target)
        rest = target.node.args.kwarg.arg  # type: ignore[attr-defined]
        given = self._given(place, target) if place else {}
        news: set[str | None] = set()
        for call, inner in source.calls if source else ():
            if (
                source
                and target in inner.chain
                and any(k.arg is None and rest in names_in(k.value) for k in call.keywords)
            ):
                passed = Place(source, call, inner, given)
                for each in self.targets(passed.at(call.func), 1) or ():
                    news |= self.keyword_of(each, name, passed, depth + 1)
        return news

    @property
    def named(self) -> dict[str, list[Scope]]:
        """The functions of the project by their last name."""
        if not hasattr(self, "_functions_by_name"):
            self._functions_by_name: dict[str, list[Scope]] = defaultdict(list)
            for source in self.sources:
                for qualname, scopes in source.functions.items():
                    self._functions_by_name[qualname.rpartition(".")[2]] += scopes
        return self._functions_by_name


def _attribute_classes(info: nodes.TypeInfo, name: str) -> list[nodes.TypeInfo]:
    """The classes of which an attribute is, as far as it is annotated."""
    symbol = info.get(name)
    node = symbol.node if symbol else None
    if isinstance(node, nodes.Decorator):
        node = node.func if node.func.is_property else None
        kind = node.type.ret_type if node and isinstance(node.type, types.CallableType) else None
    else:
        kind = node.type if isinstance(node, nodes.Var) else None
    infos = [instance_of(each) for each in flat(kind)] if kind else []
    return [info for info in infos if info] if all(infos) else []


def _is_function(kind: types.ProperType) -> bool:
    return isinstance(kind, types.FunctionLike) and not kind.is_type_obj()


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_super(node: ast.expr) -> bool:
    """Whether it is super()."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def is_call(node: ast.expr, name: str) -> bool:
    """Whether it calls something of that name."""
    return isinstance(node, ast.Call) and called_name(node) == name


def called_name(call: ast.Call) -> str:
    """The name of what is called, without what is before the last dot."""
    return (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )


def names_in(node: ast.expr) -> set[str]:
    """The names in an expression."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
