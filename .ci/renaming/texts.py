"""Edits of text: strings, comments, pages; and whether all edits together leave the meaning as it was."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from edits import Edits
from meaning import prefixes
from sources import FUNCTIONS, Reference, Scope, Source, Text, module_of
from values import Expression, called_name

ACCESSING = ("getattr", "setattr", "hasattr", "delattr", "object")  # patch.object too
REGISTERING = ("register_buffer", "register_parameter")  # of torch.nn.Module


class Plan(Edits):
    """All edits for a table, what is wrong with it, and what a person has to decide."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._uses: dict[Source, dict[int, tuple[str, Any]]] = {}
        self._spans: dict[Source, list[tuple[int, int, Scope]]] = {}

    def edit_strings(self) -> None:
        """Note the edits in strings that are one name."""
        for source in self.sources:
            for constant, scope in source.strings:
                self._string(source, constant, scope)

    def _string(self, source: Source, node: ast.Constant, scope: Scope) -> None:
        """A string that is one name: an entry of `__all__`, an argument of setattr, a type written as text."""
        purpose, about = self.uses(source).get(id(node), ("", None))
        start, name = source.start(node), node.value
        if purpose == "type":
            self._type_in_quotes(source, node, scope)
        elif name not in self.owners:
            return
        elif (new := self._new_string(source, node, scope, purpose, about)) != name:
            source.replace(source.text.index(name, start), name, new)
        elif purpose == "attribute" or source.text.find(name, start) in source.edits:
            pass  # decided already
        elif source.path.suffix == ".py" and self.spoken_of(source, name, of_classes=True):
            owner = "a parameter" if name in self.parameters else "an attribute"
            self.note(f"Decide by hand: strings equal to the name of {owner}", source, start, name)

    def _type_in_quotes(self, source: Source, node: ast.Constant, scope: Scope) -> None:
        start = source.start(node)
        for match in re.finditer(r"[A-Za-z_]\w*", source.text[start : source.end(node)]):
            if scope.resolve(match.group()) is source.scope:
                new = self.new_global(source.module, match.group())
                source.replace(start + match.start(), match.group(), new)

    def _new_string(
        self, source: Source, node: ast.Constant, scope: Scope, purpose: str, about: Any
    ) -> str:
        """What a string becomes, by what it is for."""
        name = str(node.value)
        if purpose == "export":
            return self.new_global(source.module, name)
        if purpose == "slot":
            return self.new_member(self.info_of.get(scope), name) or name
        if purpose == "lazy":  # the name in the module that the dictionary gives for it
            package = source.module.partition(".")[0]
            modules = [about, f"{source.module}.{about}", f"{package}.{about}"]
            module = next((each for each in modules if each in self.modules), "")
            return self.new_global(module, name) if module else name
        if purpose != "attribute":
            return name
        target = self.entity(source, about, scope)
        if target is not None and not target[1] and target[0] in self.modules:
            return self.new_global(target[0], name)
        if name not in self.members:
            return name
        news, remark = self.attribute(Expression(source, about, scope), name)
        if remark:
            heading = "Decide by hand: names of attributes in strings"
            self.note(heading, source, source.start(node), f"{name}: {remark}")
        return (len(news) == 1 and news.pop()) or name

    def uses(self, source: Source) -> dict[int, tuple[str, Any]]:
        """What strings are for: the node's id -> purpose, and what it is about."""
        if source not in self._uses:
            purposes: dict[int, tuple[str, Any]] = {}
            for node in ast.walk(source.tree):
                for piece, purpose, about in _purposes(node):
                    for each in ast.walk(piece):
                        if isinstance(each, ast.Constant) and isinstance(each.value, str):
                            purposes[id(each)] = (purpose, about)
            for node in ast.walk(source.tree):
                if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
                    for each in ast.walk(node.slice):
                        purposes.pop(id(each), None)
            self._uses[source] = purposes
        return self._uses[source]

    def edit_texts(self) -> None:
        """Names of modules with dots, paths of files and names between backticks, in comments, strings and other files."""
        moved = {
            self.path_of(old): self.path_of(self.new_module(old))
            for old in self.modules
            if self.new_module(old) != old
        }
        self.moved_paths = {
            old: new for old, new in moved.items() if old is not None and new is not None
        }
        for text in self.texts:
            self._mentions(text, 0, text.text)
            if text.path.suffix == ".md":
                for match in re.finditer(r"`(\w+)(?:=[^`]*|\(\))?`", text.text):
                    if match.start(1) not in text.edits and self.spoken_of(text, match.group(1)):
                        self._note_text(
                            "Decide by hand: names in pages", text, match.start(1), match.group(1)
                        )
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
                text,
                first + match.start(1),
                match.group(1),
                self.moved_paths.get(match.group(1), match.group(1)),
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
        if old != new and not any(
            start <= edit_start < start + len(old) for edit_start in text.edits
        ):
            text.replace(start, old, new)

    @property
    def _dotted(self) -> re.Pattern[str]:
        if not hasattr(self, "_dotted_pattern"):
            sources = [source for source in self.sources if source.host is None]
            tops = {source.module.partition(".")[0] for source in sources}
            tops |= {
                source.path.relative_to(self.root).parts[0].removesuffix(".py")
                for source in sources
            }
            short = {old.partition(".")[2] for old in self.table.modules if old.count(".") > 1}
            alternatives = [
                rf"{re.escape(top)}(?:\.\w+)+(?::[A-Za-z_][\w.]*)?" for top in sorted(tops)
            ]
            quoted = [rf"(?<=[\"'`]){re.escape(name)}(?=[\"'`])" for name in sorted(short)]
            self._dotted_pattern = re.compile(
                r"(?<![\w./-])(?:" + "|".join([*alternatives, *quoted]) + ")"
            )
            self._path = re.compile(r"(?<![\w.-])((?:[\w-]+/)+[\w-]+\.py)\b((?:::\w+)*)")
            self._short = short
        return self._dotted_pattern

    def new_qualname(self, dotted: str) -> str:
        """What a name with dots, and perhaps a colon after the module, becomes."""
        if dotted in self._short:
            top = next(
                old.partition(".")[0]
                for old in self.table.modules
                if old.partition(".")[2] == dotted
            )
            new = self.new_module(f"{top}.{dotted}")
            return new.removeprefix(f"{top}.")
        head, colon, tail = dotted.partition(":")
        if (short := self.import_name(head)) != head and short in self.modules:
            return head.removesuffix(short) + self.new_qualname(short + colon + tail)
        module = next((prefix for prefix in prefixes(head) if prefix in self.modules), None)
        if module is None:
            return dotted
        names = [*head.removeprefix(module).strip(".").split("."), *tail.split(".")]
        names = [name for name in names if name]
        news = []
        module_place: tuple[str, str] | None = (module, "")
        scope: Scope | None = None
        for name in names:
            if scope is not None:
                news.append(self.new_member(self.info_of.get(scope), name) or name)
                scope = None
            elif module_place is not None:
                news.append(self.new_global(module_place[0], name))
                target = self.canonical(module_place[0], name)
                scope = next(iter(self.scopes(*target, "classes")), None)
                module_place = None
            else:
                news.append(name)
        separator = ":" if colon else "."
        n_attributes = len(names) - len([n for n in tail.split(".") if n])
        return ".".join([self.new_module(module), *news[:n_attributes]]) + (
            separator + ".".join(news[n_attributes:]) if colon else ""
        )

    def _backticks(self, source: Source, first: int, piece: str, line: int) -> None:
        """Names between backticks, as they are to be understood at this line."""
        for match in re.finditer(r"`([A-Za-z_]\w*)((?:\.\w+)*)[^`\n]*`", piece):
            name, start = match.group(1), first + match.start(1)
            scope = self._innermost(source, line)
            bound = scope.resolve(name)
            members = [o for o in scope.chain if o.category == "class"]
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
                class_info = (
                    self.info_of.get(classes[0])
                    if classes
                    else self.info_of.get(members[0])
                    if members and name == "self"
                    else None
                )
                start_of_attribute = start + len(name) + 1
                self._replace_mention(
                    source,
                    start_of_attribute,
                    attribute,
                    self.new_member(class_info, attribute) or attribute,
                )
        if piece[:1] != "#":
            for match in re.finditer(r"\b(\w+)=|`(\w+)`", piece):
                name = match.group(1) or match.group(2)
                start = first + match.start()
                if (
                    name in self.parameters
                    and self.spoken_of(source, name)
                    and not any(
                        start <= start_of_attribute <= start + 1
                        for start_of_attribute in source.edits
                    )
                ):
                    self.note("Decide by hand: parameters named in text", source, start, name)

    def _innermost(self, source: Source, line: int) -> Scope:
        if source not in self._spans:
            scopes = [
                s
                for group in (source.classes, source.functions)
                for same_name in group.values()
                for s in same_name
            ]
            spans = [
                (getattr(scope.node, "lineno", 0), getattr(scope.node, "end_lineno", 0), scope)
                for scope in scopes
            ]
            self._spans[source] = sorted(spans, key=lambda span: span[1] - span[0])
        return next(
            (scope for first, last, scope in self._spans[source] if first <= line <= last),
            source.scope,
        )

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
                changed = Source(source.path, text, source.module, source.is_package)
            except (SyntaxError, ValueError) as error:
                self.errors.append(f"{where}: {error}")
                continue
            before_index = {scope: i for i, scope in enumerate(source.scopes)}
            after_index = {scope: i for i, scope in enumerate(changed.scopes)}
            meant: dict[tuple[int, str], tuple[int, str]] = {}
            origin: dict[tuple[int, str], tuple[int, str]] = {}
            reported = set()
            pairs = zip(
                (each for each in source.references if each.category == "name"),
                (each for each in changed.references if each.category == "name"),
                strict=True,
            )
            for old, new in pairs:
                old_scope, new_scope = old.scope.resolve(old.name), new.scope.resolve(new.name)
                old_key = (before_index[old_scope] if old_scope else -1, old.name)
                new_key = (after_index[new_scope] if new_scope else -1, new.name)
                same = meant.setdefault(old_key, new_key) == new_key and old_key[0] == new_key[0]
                first_key = origin.setdefault(new_key, old_key)
                if (same and first_key == old_key) or (old.name, new.name) in reported:
                    continue
                reported.add((old.name, new.name))
                scope_name = f"{new_scope.qualname or 'the module'}" if new_scope else "builtins"
                found_at = f"{source.module}:{old.scope.qualname}: {source.lines[source.line_of(old.start) - 1].strip()!r}"
                if same:
                    self.errors.append(
                        f"{first_key[1]} and {old.name} would both be {new.name} in {scope_name} ({found_at})"
                    )
                elif old.name == new.name:
                    self.errors.append(
                        f"{old.name} would be that of {scope_name}, which has become {new.name} ({found_at})"
                    )
                else:
                    self.errors.append(
                        f"{old.name} cannot become {new.name}, which is that of {scope_name} ({found_at})"
                    )


def _purposes(node: ast.AST) -> Iterable[tuple[ast.AST, str, Any]]:
    """Pieces of code in which strings are names, what for, and what they are about."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {getattr(each, "id", "") for each in targets}
        if "__all__" in names:
            yield node.value, "export", None
        if names & {"__slots__", "__match_args__"}:
            yield node.value, "slot", None
    if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
        yield node.annotation, "type", None
    if isinstance(node, FUNCTIONS) and node.returns is not None:
        yield node.returns, "type", None
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield key, "lazy", value.value
    if isinstance(node, ast.Call) and node.args:
        called = called_name(node)
        if called == "cast":
            yield node.args[0], "type", None
        if called in ("TypeVar", "ParamSpec", "NewType", "NamedTuple", "namedtuple"):
            yield node.args[0], "export", None
        if called == "TypeVar":
            yield from ((keyword.value, "type", None) for keyword in node.keywords)
        if called in REGISTERING and isinstance(node.func, ast.Attribute):
            yield node.args[0], "attribute", node.func.value
        if called in ACCESSING and len(node.args) > 1:
            yield node.args[1], "attribute", node.args[0]
