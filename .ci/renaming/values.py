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
class Expression:
    """An expression where it stands: the source, its scope, and what the arguments of functions around it are."""

    source: Source
    node: ast.expr
    scope: Scope
    arguments: Mapping[tuple[Scope, str], Expression] = field(default_factory=dict)

    def with_node(self, node: ast.expr, scope: Scope | None = None) -> Expression:
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
                self._foreign |= {
                    name
                    for each in members.values()
                    if isinstance(each, type)
                    for name in dir(each)
                }
        return self._foreign

    def attribute(self, expression: Expression, name: str) -> tuple[set[str | None], str]:
        """What an attribute of the value of an expression becomes, and a remark if that is not certain."""
        node = expression.node
        if isinstance(node, ast.Name) and node.id in UNTYPED:  # imported where it is needed
            return {None}, ""
        mypy_types = [
            mypy_type
            for mypy_type in self.types.of(expression.source, node)
            if not _is_function(mypy_type)
        ]
        infos = self.classes_of(expression)
        if infos:
            news: set[str | None] = set()
            for class_info in infos:
                if class_info.get(name) or not (new := self._in_subclasses(class_info, name)):
                    news.add(self.new_member(class_info, name))
                else:
                    news |= new
            if len(news) > 1:
                return news, "its classes differ"
            if news == {None} and any(
                class_info.fallback_to_any and not class_info.get(name) for class_info in infos
            ):
                return news, "a base class is unknown"
            return news, ""
        if not mypy_types or not all(
            isinstance(mypy_type, types.AnyType) for mypy_type in mypy_types
        ):
            return {None}, ""
        local = [
            class_info
            for class_info in self.definers[name]
            if class_info.module_name == expression.source.module
            or not is_test(class_info.module_name)
        ]
        news = {self.new_member(class_info, name) for class_info in local}
        near = any(self.near(expression.source, class_info) for class_info in self.members[name])
        if len(news) == 1 and near and name not in self.foreign:
            return news, "no type is known"
        return {None}, "no type is known" if near else ""

    def _in_subclasses(self, class_info: nodes.TypeInfo, name: str) -> set[str | None]:
        """What an attribute that only subclasses have becomes in them."""
        return {
            self.new_member(subclass, name)
            for subclass in self.definers[name]
            if class_info in subclass.mro
        }

    def classes_of(self, expression: Expression, depth: int = 0) -> list[nodes.TypeInfo]:
        """The classes of which the value of an expression is, or which it is itself; none if they are not known."""
        node = expression.node
        if is_super(node):
            around = next(
                (outer for outer in expression.scope.chain if outer.category == "class"), None
            )
            class_info = self.info_of.get(around) if around else None
            return [class_info] if class_info else []
        target = self.entity(expression.source, node, expression.scope)
        if target is not None and (scopes := self.scopes(*target, "classes")):
            return [class_info for scope in scopes if (class_info := self.info_of.get(scope))]
        infos = [
            instance_of(mypy_type)
            for mypy_type in self.types.of(expression.source, node)
            if not _is_function(mypy_type)
        ]
        if infos and all(infos):
            return [class_info for class_info in infos if class_info]
        if (
            infos
            and not expression.arguments
            and not any(
                isinstance(expression_type, types.AnyType)
                for expression_type in self.types.of(expression.source, node)
            )
        ):
            return []
        return self._inferred(expression, depth) if depth < 12 else []

    def _inferred(self, expression: Expression, depth: int) -> list[nodes.TypeInfo]:
        node = expression.node
        if isinstance(node, ast.IfExp):
            return self._union(
                [expression.with_node(node.body), expression.with_node(node.orelse)], depth
            )
        if isinstance(node, ast.Name | ast.Subscript):
            return self._union(self.values_of(expression, depth + 1), depth)
        if isinstance(node, ast.Attribute):
            class_infos = []
            for class_info in self.classes_of(expression.with_node(node.value), depth + 1):
                class_infos += _attribute_classes(class_info, node.attr)
            return class_infos
        if isinstance(node, ast.Call):
            called = [
                (each, each.node)
                for each in self.values_of(expression.with_node(node.func), depth + 1)
            ]
            lambdas = [
                each.with_node(f.body, each.source.scope_of[f])
                for each, f in called
                if isinstance(f, ast.Lambda)
            ]
            if lambdas:
                return self._union(lambdas, depth)
            class_infos = []
            for target in self.targets(expression.with_node(node.func), depth + 1) or [None]:
                classes = (
                    [target]
                    if isinstance(target, nodes.TypeInfo)
                    else self._returned(expression, target, depth)
                    if target
                    else []
                )
                if not classes:
                    return []
                class_infos += classes
            return class_infos
        return []

    def _union(self, places: list[Expression], depth: int) -> list[nodes.TypeInfo]:
        groups = [self.classes_of(each, depth + 1) for each in places if not _is_none(each.node)]
        return [class_info for infos in groups for class_info in infos] if all(groups) else []

    def _returned(
        self, expression: Expression, function: Scope, depth: int
    ) -> list[nodes.TypeInfo]:
        """The classes of what a call of the function returns."""
        node, call = function.node, expression.node
        assert isinstance(call, ast.Call)
        source = self.source_with(function)
        annotation = getattr(node, "returns", None)
        if source is None or isinstance(annotation, ast.Subscript | ast.Attribute | ast.Constant):
            return []
        names = sorted(names_in(annotation)) if annotation is not None else []
        if names == ["Self"] and isinstance(call.func, ast.Attribute):
            return self.classes_of(expression.with_node(call.func.value), depth + 1)
        infos = []
        for name in names:
            target = self.entity(source, ast.Name(name), source.scope)
            scopes = self.scopes(*target, "classes") if target else []
            infos += [class_info for scope in scopes if (class_info := self.info_of.get(scope))]
            is_foreign = target is None or target[0].partition(".")[0] not in self.packages
            if not scopes and is_foreign and name != "Any":
                return []
        return infos or self._union(self._returns(expression, function), depth)

    def _returns(self, expression: Expression, function: Scope) -> list[Expression]:
        """The expressions that a call of the function returns."""
        source = self.source_with(function)
        argument_values = (
            self._argument_values(expression, function)
            if isinstance(expression.node, ast.Call)
            else {}
        )
        return (
            [
                Expression(source, node, scope, argument_values)
                for node, scope in source.returned.get(function, ())
            ]
            if source
            else []
        )

    def _argument_values(
        self, expression: Expression, function: Scope
    ) -> dict[tuple[Scope, str], Expression]:
        """The arguments of a call, by the names that the function has for them."""
        call, node = expression.node, function.node
        assert isinstance(call, ast.Call)
        if not isinstance(node, FUNCTIONS):
            return {}
        names = [arg.arg for arg in [*node.args.posonlyargs, *node.args.args]]
        if function.parent is not None and function.parent.category == "class":
            names = names[1:]
        positional = zip(names, call.args, strict=False)
        keywords = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
        return {
            (function, name): expression.with_node(value)
            for name, value in [*positional, *keywords]
            if not isinstance(value, ast.Starred)
        }

    def values_of(self, expression: Expression, depth: int = 0) -> list[Expression]:
        """The expressions that may be the value of a name or an element; none if they are not known."""
        node = expression.node
        if depth > 12:
            return []
        if isinstance(node, ast.Lambda):
            return [expression]
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, int)
        ):
            return self._element(expression.with_node(node.value), node.slice.value, depth + 1)
        bound = expression.scope.resolve(node.id) if isinstance(node, ast.Name) else None
        if bound is None or not isinstance(node, ast.Name):
            return []
        if (bound, node.id) in expression.arguments:
            argument = expression.arguments[bound, node.id]
            return self.values_of(argument, depth + 1) or [argument]
        assigned: list[Expression] = []
        for value in expression.source.values.get((bound, node.id), ()):
            expressions = [expression.with_node(value.node, value.scope)]
            if value.loops:
                expressions = [
                    each
                    for container in expressions
                    for each in self._elements(container, depth + 1)
                ]
            for index in value.path:
                expressions = [
                    each
                    for container in expressions
                    for each in self._element(container, index, depth + 1)
                ]
            if not expressions:
                return []
            assigned += expressions
        if not assigned and node.id in argument_names(bound):
            assigned = [
                *self._parameters(expression.source, bound, node.id),
                *self._fixture(expression.source, bound, node.id),
            ]
        return assigned

    def _elements(self, expression: Expression, depth: int) -> list[Expression]:
        """The elements of a list or tuple that is written out."""
        if isinstance(expression.node, ast.List | ast.Tuple | ast.Set):
            return [
                expression.with_node(
                    each.args[0] if isinstance(each, ast.Call) and is_call(each, "param") else each
                )
                for each in expression.node.elts
            ]
        if isinstance(expression.node, ast.Name) and depth < 12:
            target = self.entity(expression.source, expression.node, expression.scope)
            source = self.source_of(target[0]) if target else None
            if source is not None and source is not expression.source and target:
                values = source.values.get((source.scope, target[1]), ())
                return [
                    each
                    for assigned in values
                    for each in self._elements(
                        Expression(source, assigned.node, assigned.scope), depth + 1
                    )
                ]
            return [
                each
                for value in self.values_of(expression, depth + 1)
                for each in self._elements(value, depth + 1)
            ]
        return []

    def _element(self, expression: Expression, index: int, depth: int) -> list[Expression]:
        """One element of a tuple, also of one that a function returns."""
        node = expression.node
        if isinstance(node, ast.List | ast.Tuple):
            return (
                [expression.with_node(node.elts[index])]
                if -len(node.elts) <= index < len(node.elts)
                else []
            )
        if isinstance(node, ast.Name):
            return [
                each
                for value in self.values_of(expression, depth + 1)
                for each in self._element(value, index, depth + 1)
            ]
        if is_call(node, "param") and isinstance(node, ast.Call):
            return [expression.with_node(node.args[index])] if index < len(node.args) else []
        if isinstance(node, ast.Call) and depth < 12:
            functions = [
                target
                for target in self.targets(expression.with_node(node.func), depth + 1) or ()
                if isinstance(target, Scope)
            ]
            returns = [
                each for function in functions for each in self._returns(expression, function)
            ]
            return [each for value in returns for each in self._element(value, index, depth + 1)]
        return []

    def _parameters(self, source: Source, scope: Scope, name: str) -> list[Expression]:
        """What `parametrize` gives to an argument of a test."""
        expressions = []
        for decorator in getattr(scope.node, "decorator_list", []):
            if not (
                is_call(decorator, "parametrize")
                and len(decorator.args) > 1
                and scope.parent is not None
            ):
                continue
            words = [
                each.value for each in ast.walk(decorator.args[0]) if isinstance(each, ast.Constant)
            ]
            names = re.findall(r"\w+", " ".join(map(str, words)))
            if name in names:
                rows = self._elements(Expression(source, decorator.args[1], scope.parent), 0)
                index = names.index(name)
                expressions += (
                    rows
                    if len(names) == 1
                    else [each for row in rows for each in self._element(row, index, 0)]
                )
        return expressions

    def _fixture(self, source: Source, scope: Scope, name: str) -> list[Expression]:
        """What the fixture that an argument of a test names returns."""
        for home in self.fixtures.get(name, ()):
            if sees(source, home):
                returned = [
                    each
                    for function in home.functions[name]
                    for each in home.returned.get(function, ())
                ]
                return [Expression(home, node, inner) for node, inner in returned]
        return []

    def targets(self, expression: Expression, depth: int = 0) -> list[Target] | None:
        """The functions and classes that an expression may call; None if they are not known."""
        node, source, scope = expression.node, expression.source, expression.scope
        mypy_types = self.types.of(source, node)
        if (
            isinstance(node, ast.Call)
            and node.args
            and all(isinstance(mypy_type, types.AnyType) for mypy_type in mypy_types)
        ):
            inner = self.targets(
                expression.with_node(node.args[0]), depth + 1
            )  # delayed(function)(...), njit(function)(...)
            if inner:
                return inner
        target = self.entity(source, node, scope)
        if target is not None:
            if target[0].partition(".")[0] not in self.packages:
                return [None]
            infos = [
                class_info
                for each in self.scopes(*target, "classes")
                if (class_info := self.info_of.get(each))
            ]
            if infos or self.scopes(*target, "functions"):
                return [*self.scopes(*target, "functions"), *infos]
        if (
            isinstance(node, ast.Name)
            and (bound := scope.resolve(node.id))
            and bound.category != "module"
        ):
            functions = source.functions.get(f"{bound.qualname}.{node.id}".strip("."), ())
            nested = [each for each in functions if each.parent is bound]
            if nested:
                return [*nested]
        if (
            isinstance(node, ast.Attribute)
            and (methods := self._methods(expression, node, depth)) is not None
        ):
            return methods
        if any(isinstance(mypy_type, types.AnyType) for mypy_type in mypy_types):
            targets: list[Target] = []
            for value in self.values_of(expression, depth + 1) if depth < 12 else ():
                if value.node is not node:
                    targets += self.targets(value, depth + 1) or []
            return targets or None
        return [each for mypy_type in mypy_types for each in self._called(mypy_type)] or None

    def _called(self, mypy_type: types.ProperType) -> list[Target]:
        """The functions and classes that calling a value of this type reaches."""
        if isinstance(mypy_type, types.Instance):
            return [
                self.method(mypy_type.type, "forward") or self.method(mypy_type.type, "__call__")
            ]
        if (class_info := instance_of(mypy_type)) is not None:
            return [class_info]
        if (definition := definition_of(mypy_type)) is not None:
            module = next(
                (each for each in prefixes(definition.fullname) if each in self.modules), ""
            )
            return [
                *self.scopes(
                    module, definition.fullname.removeprefix(module).strip("."), "functions"
                )
            ] or [None]
        return [None]

    def _methods(
        self, expression: Expression, node: ast.Attribute, depth: int
    ) -> list[Target] | None:
        infos = self.classes_of(expression.with_node(node.value), depth + 1)
        if is_super(node.value):
            bases = infos[0].mro[1:] if infos else []
            return [
                next((each for base in bases if (each := self.own_method(base, node.attr))), None)
            ]
        methods = [self.method(class_info, node.attr) for class_info in infos]
        return [*methods] if any(methods) else None

    def method(self, class_info: nodes.TypeInfo, name: str) -> Scope | None:
        """The function that a method of a class is, if it is one of the project."""
        return next(
            (each for base in class_info.mro if (each := self.own_method(base, name))), None
        )

    def own_method(self, class_info: nodes.TypeInfo, name: str) -> Scope | None:
        """The same, if the class itself defines it."""
        scope = self.class_of.get(class_info)
        source = self.source_with(scope) if scope else None
        if scope is None or source is None:
            return None
        methods = [
            each
            for each in source.functions.get(f"{scope.qualname}.{name}", ())
            if each.parent is scope
        ]
        return methods[-1] if methods else None

    def keyword_of(
        self, target: Target, name: str, expression: Expression | None = None, depth: int = 0
    ) -> set[str | None]:
        """What a keyword becomes in a call of a function or class; nothing if it is passed on one knows not where."""
        if isinstance(target, nodes.TypeInfo):
            maker = self.method(target, "__init__")
            explicit = (
                maker is not None and name in argument_names(maker) and not self.is_stub(maker)
            )
            return {
                self.new_argument(maker, name)
                if maker and explicit
                else self.new_member(target, name)
            }
        if target is not None and name in argument_names(target):
            return {self.new_argument(target, name)}
        if target is None or not takes_any_keyword(target) or depth > 4:
            return set()
        source = self.source_with(target)
        kwargs_name = target.node.args.kwarg.arg  # type: ignore[attr-defined]
        argument_values = self._argument_values(expression, target) if expression else {}
        news: set[str | None] = set()
        for call, inner in source.calls if source else ():
            if (
                source
                and target in inner.chain
                and self._passes_on(source, call, inner, kwargs_name)
            ):
                passed = Expression(source, call, inner, argument_values)
                for each in self.targets(passed.with_node(call.func), 1) or ():
                    news |= self.keyword_of(each, name, passed, depth + 1)
        return news

    @staticmethod
    def _passes_on(source: Source, call: ast.Call, scope: Scope, kwargs_name: str) -> bool:
        """Whether a call gets the keywords of the function around it, perhaps with others in a dictionary."""
        for value in [keyword.value for keyword in call.keywords if keyword.arg is None]:
            bound = scope.resolve(value.id) if isinstance(value, ast.Name) else None
            assigned = (
                source.values.get((bound, value.id), [])
                if bound and isinstance(value, ast.Name)
                else []
            )
            if any(
                kwargs_name in names_in(node) for node in [value, *(each.node for each in assigned)]
            ):
                return True
        return False

    @property
    def named(self) -> dict[str, list[Scope]]:
        """The functions of the project by their last name."""
        if not hasattr(self, "_functions_by_name"):
            self._functions_by_name: dict[str, list[Scope]] = defaultdict(list)
            for source in self.sources:
                for qualname, scopes in source.functions.items():
                    self._functions_by_name[qualname.rpartition(".")[2]] += scopes
        return self._functions_by_name


def _attribute_classes(class_info: nodes.TypeInfo, name: str) -> list[nodes.TypeInfo]:
    """The classes of which an attribute is, as far as it is annotated."""
    symbol = class_info.get(name)
    node = symbol.node if symbol else None
    if isinstance(node, nodes.Decorator):
        node = node.func if node.func.is_property else None
        mypy_type = (
            node.type.ret_type if node and isinstance(node.type, types.CallableType) else None
        )
    else:
        mypy_type = node.type if isinstance(node, nodes.Var) else None
    infos = [instance_of(each) for each in flat(mypy_type)] if mypy_type else []
    return [class_info for class_info in infos if class_info] if all(infos) else []


def _is_function(mypy_type: types.ProperType) -> bool:
    return isinstance(mypy_type, types.FunctionLike) and not mypy_type.is_type_obj()


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_super(node: ast.expr) -> bool:
    """Whether it is super()."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


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
