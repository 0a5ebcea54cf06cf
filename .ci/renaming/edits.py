"""Edits of code: names, attributes, keywords and imports, and what pytest takes from the names of arguments."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable

from meaning import argument_names, is_test, sees, takes_any_keyword
from sources import Reference, Scope, Source, from_module
from values import Expression, Target, Values, called_name

FORWARDING = {"partial", "submit", "map", "run", "apply", "delayed", "replace", "given", "example"}


class Edits(Values):
    """The edits of code."""

    def edit(self) -> None:
        """Note the edits in all sources."""
        self._double_starred()
        for source in self.sources:
            for each in source.references:
                if each.category == "name":
                    source.replace(each.start, each.name, self.new_name(source, each))
                elif each.category == "attribute":
                    self._attribute(source, each)
                elif isinstance(each.call, ast.Call):
                    self._keyword(source, each, each.call)
                elif isinstance(each.call, ast.MatchClass):
                    target = self.entity(source, each.call.cls, each.scope)
                    infos = (
                        [self.info_of.get(scope) for scope in self.scopes(*target, "classes")]
                        if target
                        else []
                    )
                    source.replace(
                        each.start,
                        each.name,
                        (infos and self.new_member(infos[0], each.name)) or each.name,
                    )
            for node, scope in source.imports:
                self._import(source, node, scope)

    def _attribute(self, source: Source, each: Reference) -> None:
        assert isinstance(each.node, ast.Attribute)
        owner = self.entity(source, each.node.value, each.scope)
        if owner is not None and not owner[1] and owner[0].partition(".")[0] in self.packages:
            if f"{owner[0]}.{each.name}" in self.modules and each.name not in self._names(owner[0]):
                new = self.new_module(f"{owner[0]}.{each.name}").rpartition(".")[2]
            else:
                new = self.new_global(owner[0], each.name)
            source.replace(each.start, each.name, new)
        elif each.name in self.members and not (
            owner is not None and owner[0].partition(".")[0] not in self.packages
        ):
            news, remark = self.attribute(
                Expression(source, each.node.value, each.scope), each.name
            )
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
                self.note(
                    "Decide by hand: attributes", source, each.start, f"{each.name}: {remark}"
                )

    def _keyword(self, source: Source, each: Reference, call: ast.Call) -> None:
        name = each.name
        if each.start in source.edits or not self._may_be_renamed(name):
            return
        expression, called = Expression(source, call, each.scope), called_name(call)
        news, targets, unclear = self._new_keywords(expression, call, name)
        if unclear and not news - {None}:
            if targets is None:
                news |= self._by_name(source, each, call, called)
            elif targets == [None] and called not in ("dict", "update", "SimpleNamespace"):
                pass  # another package has its own names
            elif self.spoken_of(source, name) and not self._declared(expression, call, name):
                self.note("Decide by hand: keywords that are passed on", source, each.start, name)
        if len(news) == 1 and (new := news.pop()) is not None:
            source.replace(each.start, name, new)
        elif len(news) > 1:
            remark = f"{name}: what is called differs"
            self.note("Decide by hand: keywords", source, each.start, remark)

    def _may_be_renamed(self, name: str) -> bool:
        return name in self.members or name in self.renamed_arguments

    def _new_keywords(
        self, expression: Expression, call: ast.Call, name: str
    ) -> tuple[set[str | None], list[Target] | None, bool]:
        """What a keyword becomes, what is called, and whether something may be called that is not known."""
        targets = self.targets(expression.with_node(call.func))
        news: set[str | None] = set()
        unclear = targets is None
        for target in targets or ():
            new_names = self.keyword_of(target, name, expression)
            news |= new_names
            is_open = target is None or (isinstance(target, Scope) and takes_any_keyword(target))
            unclear = unclear or (is_open and not new_names)
        if unclear and not news - {None}:
            certain = self._forwarded(expression, name, call, called_name(call))
            if certain is not None:
                return news | {certain}, targets, False
        return news, targets, unclear

    def _double_starred(self) -> None:
        """Keys of dictionaries that calls take by ** are keywords too."""
        news: dict[tuple[Source, int, str], set[str | None]] = defaultdict(set)
        for source in self.sources:
            for call, scope in source.calls:
                for value in [keyword.value for keyword in call.keywords if keyword.arg is None]:
                    expression = Expression(source, call, scope)
                    for home, start, name in self._keys(expression.with_node(value)):
                        if self._may_be_renamed(name):
                            keywords = self._new_keywords(expression, call, name)[0]
                            news[home, start, name] |= keywords
        for (home, start, name), names in news.items():
            new = next(iter(names)) if len(names) == 1 else None
            if new is not None:
                home.replace(start, name, new)
                self.note("Renamed keys of dictionaries that are passed by **", home, start, name)

    def _keys(self, expression: Expression, depth: int = 0) -> Iterable[tuple[Source, int, str]]:
        """Where the keys of a dictionary that is written out stand, and what they are."""
        node, source = expression.node, expression.source
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    yield from self._keys(expression.with_node(value), depth + 1)
                elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                    start = source.text.find(key.value, source.start(key), source.end(key))
                    yield source, start, key.value
        elif isinstance(node, ast.Call) and called_name(node) == "dict":
            for keyword in node.keywords:
                if keyword.arg is None:
                    yield from self._keys(expression.with_node(keyword.value), depth + 1)
                else:
                    yield source, source.start(keyword), keyword.arg
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            yield from self._keys(expression.with_node(node.left), depth + 1)
            yield from self._keys(expression.with_node(node.right), depth + 1)
        elif isinstance(node, ast.Name | ast.Subscript) and depth < 6:
            for assigned in self.values_of(expression):
                yield from self._keys(assigned, depth + 1)

    def _declared(self, expression: Expression, call: ast.Call, name: str) -> bool:
        """Whether the receiver of the call has an attribute of that name, which then is the one that stays."""
        infos = (
            self.classes_of(expression.with_node(call.func.value))
            if isinstance(call.func, ast.Attribute)
            else []
        )
        return bool(infos) and all(class_info.get(name) for class_info in infos)

    def _forwarded(
        self, expression: Expression, name: str, call: ast.Call, called: str
    ) -> str | None:
        """The new keyword where a function or object is the first argument, or the receiver takes any keyword."""
        if isinstance(call.func, ast.Attribute):
            news = {
                self.new_member(class_info, name)
                for class_info in self.classes_of(expression.with_node(call.func.value))
            }
            if len(news) == 1 and None not in news:
                return news.pop()
        if called not in FORWARDING:
            return None
        if not call.args:
            return self._decorated(expression.source, name, call)
        news = {
            self.new_member(class_info, name)
            for class_info in self.classes_of(expression.with_node(call.args[0]))
        }
        for target in self.targets(expression.with_node(call.args[0])) or ():
            news |= self.keyword_of(target, name)
        news.discard(None)
        return news.pop() if len(news) == 1 else None

    def _decorated(self, source: Source, name: str, call: ast.Call) -> str | None:
        """The new keyword of a decorator, such as hypothesis.given, that names an argument of the function."""
        functions = (scope for scopes in source.functions.values() for scope in scopes)
        decorated = [
            scope for scope in functions if call in getattr(scope.node, "decorator_list", ())
        ]
        return self.new_argument(decorated[0], name) if decorated else None

    def _by_name(
        self, source: Source, each: Reference, call: ast.Call, called: str
    ) -> set[str | None]:
        """What the keyword becomes if everything of that name in the project takes it and renames it alike."""
        candidates = [
            scope for scope in self.named.get(called, ()) if each.name in argument_names(scope)
        ]
        news = {self.new_argument(scope, each.name) for scope in candidates}
        if len(news) == 1 and None not in news:
            heading = "Renamed by the name of what is called, whose type is not known"
            self.note(heading, source, each.start, f"{each.name} -> {next(iter(news))}")
            return news
        if news - {None} or (
            not candidates
            and not isinstance(call.func, ast.Attribute)
            and self.spoken_of(source, each.name)
        ):
            self.note(
                "Decide by hand: keywords",
                source,
                each.start,
                f"{each.name}: what is called is not known",
            )
        return set()

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
            if alias.asname == alias.name:  # `as` only says that it is exported
                source.replace(source.end(alias) - len(alias.name), alias.name, new)
        if len(parents) > 1:
            self.note(
                "Split this import by hand: its modules part",
                source,
                start,
                " and ".join(sorted(parents)),
            )
        elif parents and (parent := parents.pop()) != module:
            if node.level:
                dots = "." * node.level + (node.module or "")
                source.replace(source.text.index(dots, start), dots, parent)
            else:
                source.replace(source.text.index(module, start), module, parent)

    # -- tests ------------------------------------------------------------------------------------------------------------

    def follow_fixtures(self) -> None:
        """An argument of a test follows the fixture of its name; a parametrized one is renamed in `parametrize` too."""
        functions = list(self._functions())
        for source, scope, decorators in functions:
            if "fixture" in decorators:
                self.fixtures[scope.qualname].append(source)
        for source, scope, decorators in functions:
            if not (
                scope.qualname.rpartition(".")[2].startswith("test") or "fixture" in decorators
            ):
                continue
            parametrized = self._parametrized(source, scope)
            for name in argument_names(scope) - set(parametrized):
                homes = [home for home in self.fixtures.get(name, ()) if sees(source, home)]
                home = next(
                    (each for each in homes if each is source), homes[-1] if homes else None
                )
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
            if source.host is None and is_test(source.module):
                for scope in (each for scopes in source.functions.values() for each in scopes):
                    decorators = getattr(scope.node, "decorator_list", [])
                    yield source, scope, " ".join(ast.unparse(each) for each in decorators)

    def _parametrized(self, source: Source, scope: Scope) -> dict[str, list[int]]:
        """The names that `parametrize` gives to a test, and where they stand."""
        starts: dict[str, list[int]] = defaultdict(list)
        for outer in scope.chain:
            for decorator in getattr(outer.node, "decorator_list", []):
                calls = [
                    each for each in ast.walk(decorator) if isinstance(each, ast.Call) and each.args
                ]
                for call in (
                    each for each in calls if ast.unparse(each.func).endswith("parametrize")
                ):
                    for each in ast.walk(call.args[0]):
                        if isinstance(each, ast.Constant) and isinstance(each.value, str):
                            start, end = source.start(each), source.end(each)
                            for match in re.finditer(r"\w+", source.text[start:end]):
                                starts[match.group()].append(start + match.start())
        return starts
