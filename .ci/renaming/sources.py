"""Python files as names in scopes: where each name stands and which definition it refers to."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path

SEARCH_PATHS = (
    "tutorials/site",
    "benchmarks/peers",
    "benchmarks",
    "tutorials",
    "docs",
)  # folders that are on sys.path
TEXTS = (".md", ".toml", ".yaml", ".yml", ".html", ".js", ".txt", "")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Origin = (
    tuple[str, str] | None
)  # ("module", name in module), ("module", "") for a module, None for a definition


@dataclass(eq=False)
class Scope:
    """The names bound in a module, class, function, lambda or comprehension."""

    category: str  # module, class, function (lambdas too), block (comprehensions)
    node: ast.AST
    parent: Scope | None
    names: dict[str, list[Origin]] = field(default_factory=dict)
    elsewhere: dict[str, Scope] = field(default_factory=dict)  # declared global or nonlocal

    @cached_property
    def qualname(self) -> str:
        """Names of the enclosing classes and functions and its own, with dots; lambdas and blocks add nothing."""
        outer = self.parent.qualname if self.parent else ""
        own_name = getattr(self.node, "name", "") if self.category in ("class", "function") else ""
        return f"{outer}.{own_name}".strip(".") if own_name else outer

    @cached_property
    def chain(self) -> list[Scope]:
        """The scope and those around it, from the inside out."""
        return [self, *(self.parent.chain if self.parent else [])]

    def resolve(self, name: str) -> Scope | None:
        """The scope whose binding the name refers to here; None for a builtin."""
        for scope in self.chain:
            if scope.category == "class" and scope is not self:
                continue
            if name in scope.elsewhere:
                return scope.elsewhere[name]
            if name in scope.names:
                return scope
        return None

    def bind(self, name: str, origin: Origin = None) -> None:
        """Note that the name is bound here."""
        target = self.elsewhere.get(name, self)
        origins = target.names.setdefault(name, [])
        if origin not in origins:
            origins.append(origin)


@dataclass(eq=False)
class Reference:
    """A name in the text: `category` is name, attribute, keyword or pattern (a keyword in a class pattern)."""

    category: str
    name: str
    start: int
    scope: Scope
    node: ast.AST  # the Name, Attribute, keyword, ... that it stands in
    call: ast.Call | ast.MatchClass | None = None


@dataclass(eq=False)
class Value:
    """An expression that is assigned to a name, or of which an element is."""

    node: ast.expr
    scope: Scope
    path: tuple[int, ...] = ()  # element of the element ...
    loops: bool = False  # the elements one after the other


@dataclass(eq=False)
class Text:
    """A file, and the edits that are to be made in it: place -> old and new."""

    path: Path
    text: str
    edits: dict[int, tuple[str, str]] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        self.lines = self.text.split("\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def line_of(self, start: int) -> int:
        """The line (from 1) of a place in the text."""
        return bisect_right(self.starts, start)

    def replace(self, start: int, old: str, new: str) -> None:
        """Note that a piece of the text is to be replaced."""
        if old == new:
            return
        where = f"{self.path}:{self.line_of(start)}"
        if self.text[start : start + len(old)] != old:
            raise ValueError(f"{where}: {old} expected, {self.text[start : start + 40]!r} there")
        if self.edits.setdefault(start, (old, new)) != (old, new):
            raise ValueError(f"{where}: {old} becomes both {self.edits[start][1]} and {new}")

    def changed(self) -> str:
        """The text with its edits."""
        return apply(self.text, self.edits)


@dataclass(eq=False)
class Source(Text):
    """One file of Python, or the examples in a docstring or page, whose lines are those of the file they stand in."""

    module: str
    is_package: bool = False
    host: Text | None = None  # the file in which these examples stand
    shifts: dict[int, int] = field(
        default_factory=dict
    )  # line -> how many columns further right it is there
    scopes: list[Scope] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    functions: dict[str, list[Scope]] = field(default_factory=dict)
    classes: dict[str, list[Scope]] = field(default_factory=dict)
    imports: list[tuple[ast.Import | ast.ImportFrom, Scope]] = field(default_factory=list)
    strings: list[tuple[ast.Constant, Scope]] = field(default_factory=list)
    calls: list[tuple[ast.Call, Scope]] = field(default_factory=list)
    values: dict[tuple[Scope, str], list[Value]] = field(
        default_factory=dict
    )  # what is assigned to a name
    returned: dict[Scope, list[tuple[ast.expr, Scope]]] = field(
        default_factory=dict
    )  # what a function returns or yields

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tree = ast.parse(self.text)
        self.scope = self.new_scope("module", self.tree, None)
        _Visitor(self).visit_all(self.tree.body, self.scope)

    def new_scope(self, category: str, node: ast.AST, parent: Scope | None) -> Scope:
        """A scope of this source."""
        self.scopes.append(Scope(category, node, parent))
        return self.scopes[-1]

    def offset(self, line: int, column: int) -> int:
        """The place in the text of a line (from 1) and a column in bytes, as `ast` counts them."""
        text = self.lines[line - 1]
        return self.starts[line - 1] + (
            column if text.isascii() else len(text.encode()[:column].decode())
        )

    def start(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias) -> int:
        """Where a node begins."""
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias) -> int:
        """Where a node ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.end_lineno, node.end_col_offset)

    def replace(self, start: int, old: str, new: str) -> None:
        """The same; in examples, in the file they stand in."""
        super().replace(start, old, new)
        line = self.line_of(start)
        if self.host is not None and line in self.shifts:
            self.host.replace(
                self.host.starts[line - 1] + start - self.starts[line - 1] + self.shifts[line],
                old,
                new,
            )

    @cached_property
    def scope_of(self) -> dict[ast.AST, Scope]:
        """The scope that a node opens."""
        return {scope.node: scope for scope in self.scopes}

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        """Comments and strings."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [token for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING)]


def apply(text: str, edits: dict[int, tuple[str, str]], first: int = 0) -> str:
    """The text with edits: place (counted from `first`) -> old and new."""
    pieces, end = [], 0
    for start, (old, new) in sorted(edits.items()):
        if start - first < end:
            raise ValueError(f"two edits overlap at {old}")
        pieces += [text[end : start - first], new]
        end = start - first + len(old)
    return "".join([*pieces, text[end:]])


class _Visitor:
    """Fills a source with its scopes and references."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def visit_all(self, nodes: list[ast.stmt] | list[ast.expr], scope: Scope) -> None:
        for node in nodes:
            self.visit(node, scope)

    def add(
        self,
        category: str,
        name: str,
        start: int,
        scope: Scope,
        node: ast.AST,
        call: ast.Call | ast.MatchClass | None = None,
    ) -> None:
        self.source.references.append(Reference(category, name, start, scope, node, call))

    def search(self, pattern: str, start: int) -> int:
        """Where the group of the pattern begins, from `start` on."""
        match = re.compile(pattern, re.DOTALL).search(self.source.text, start)
        assert match, pattern
        return match.start(1)

    def visit(self, node: ast.AST, scope: Scope) -> None:
        method = getattr(self, f"visit_{type(node).__name__}", None)
        if method is not None:
            method(node, scope)
        else:
            self.children(node, scope)

    def children(self, node: ast.AST, scope: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            self.visit(child, scope)

    def visit_FunctionDef(self, node: Function, scope: Scope) -> None:
        scope.bind(node.name)
        self.add(
            "name", node.name, self.search(r"\bdef\s+(\w+)", self.source.start(node)), scope, node
        )
        self.visit_all(node.decorator_list, scope)
        if node.returns is not None:
            self.visit(node.returns, scope)
        inner = self.function(node, node.args, scope)
        self.source.functions.setdefault(inner.qualname, []).append(inner)
        self.visit_all(node.body, inner)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda, scope: Scope) -> None:
        self.visit(node.body, self.function(node, node.args, scope))

    def function(self, node: ast.AST, args: ast.arguments, scope: Scope) -> Scope:
        inner = self.source.new_scope("function", node, scope)
        self.visit_all(
            [*args.defaults, *(default for default in args.kw_defaults if default is not None)],
            scope,
        )
        for arg in arguments(args):
            inner.bind(arg.arg)
            self.add("name", arg.arg, self.source.start(arg), inner, arg)
            if arg.annotation is not None:
                self.visit(arg.annotation, scope)
        return inner

    def visit_ClassDef(self, node: ast.ClassDef, scope: Scope) -> None:
        scope.bind(node.name)
        self.add(
            "name", node.name, self.search(r"\bclass\s+(\w+)", self.source.start(node)), scope, node
        )
        self.visit_all(node.decorator_list, scope)
        self.visit_all(node.bases, scope)
        self.visit_all([keyword.value for keyword in node.keywords], scope)
        inner = self.source.new_scope("class", node, scope)
        self.source.classes.setdefault(inner.qualname, []).append(inner)
        self.visit_all(node.body, inner)

    def visit_ListComp(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope
    ) -> None:
        inner = self.source.new_scope("block", node, scope)
        for number, loop in enumerate(node.generators):
            self.visit(loop.iter, inner if number else scope)
            self.visit(loop.target, inner)
            self.assign(
                loop.target, Value(loop.iter, inner if number else scope, loops=True), inner
            )
            self.visit_all(loop.ifs, inner)
        self.visit_all(
            [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], inner
        )

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Note what the names of a target are."""
        if isinstance(target, ast.Name):
            bound = scope.elsewhere.get(target.id, scope)
            self.source.values.setdefault((bound, target.id), []).append(value)
        elif isinstance(target, ast.Tuple | ast.List) and not any(
            isinstance(child, ast.Starred) for child in target.elts
        ):
            for i, element in enumerate(target.elts):
                self.assign(
                    element, Value(value.node, value.scope, (*value.path, i), value.loops), scope
                )

    def visit_Assign(self, node: ast.Assign, scope: Scope) -> None:
        self.children(node, scope)
        for target in node.targets:
            self.assign(target, Value(node.value, scope), scope)

    def visit_AnnAssign(self, node: ast.AnnAssign, scope: Scope) -> None:
        self.children(node, scope)
        if node.value is not None:
            self.assign(node.target, Value(node.value, scope), scope)

    def visit_For(self, node: ast.For, scope: Scope) -> None:
        self.children(node, scope)
        self.assign(node.target, Value(node.iter, scope, loops=True), scope)

    def visit_Return(self, node: ast.Return | ast.Yield, scope: Scope) -> None:
        self.children(node, scope)
        function = next((each for each in scope.chain if each.category == "function"), None)
        if node.value is not None and function is not None:
            self.source.returned.setdefault(function, []).append((node.value, scope))

    visit_Yield = visit_Return

    def visit_NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> None:
        target = next(outer for outer in scope.chain if outer.category != "block")
        if target is not scope:  # the comprehension sees it as a name of the scope around it
            target.bind(node.target.id)
            self.add("name", node.target.id, self.source.start(node.target), scope, node.target)
        else:
            self.visit(node.target, scope)
        self.assign(node.target, Value(node.value, scope), target)
        self.visit(node.value, scope)

    def visit_Name(self, node: ast.Name, scope: Scope) -> None:
        if not isinstance(node.ctx, ast.Load):
            scope.bind(node.id)
        self.add("name", node.id, self.source.start(node), scope, node)

    def visit_Attribute(self, node: ast.Attribute, scope: Scope) -> None:
        self.visit(node.value, scope)
        self.add("attribute", node.attr, self.source.end(node) - len(node.attr), scope, node)

    def visit_Call(self, node: ast.Call, scope: Scope) -> None:
        self.source.calls.append((node, scope))
        self.visit(node.func, scope)
        self.visit_all(node.args, scope)
        for keyword in node.keywords:
            if keyword.arg is not None:
                self.add("keyword", keyword.arg, self.source.start(keyword), scope, keyword, node)
            self.visit(keyword.value, scope)

    def visit_MatchClass(self, node: ast.MatchClass, scope: Scope) -> None:
        self.visit(node.cls, scope)
        for pattern in node.patterns:
            self.visit(pattern, scope)
        for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
            text_before = self.source.text[: self.source.offset(pattern.lineno, pattern.col_offset)]
            self.add("pattern", name, text_before.rindex(name), scope, node, node)
            self.visit(pattern, scope)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        if isinstance(node, ast.MatchAs) and node.pattern is not None:
            self.visit(node.pattern, scope)
        if node.name is not None:
            scope.bind(node.name)
            self.add(
                "name",
                node.name,
                self.source.offset(node.end_lineno, node.end_col_offset) - len(node.name),
                scope,
                node,
            )

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping, scope: Scope) -> None:
        self.children(node, scope)
        if node.rest is not None:
            scope.bind(node.rest)
            end = self.source.offset(node.end_lineno, node.end_col_offset)
            self.add("name", node.rest, self.source.text.rindex(node.rest, 0, end), scope, node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.type is not None:
            self.visit(node.type, scope)
        if node.name is not None and node.type is not None:
            scope.bind(node.name)
            self.add(
                "name",
                node.name,
                self.search(r"\bas\s+(\w+)", self.source.end(node.type)),
                scope,
                node,
            )
        self.visit_all(node.body, scope)

    def visit_Global(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            target: Scope | None = self.source.scope
            if isinstance(node, ast.Nonlocal):
                outer = [each for each in scope.chain[1:] if each.category == "function"]
                target = next((each for each in outer if name in each.names), outer[0])
            assert target is not None
            target.names.setdefault(name, [])
            scope.elsewhere[name] = target
            self.add(
                "name", name, self.search(rf"\b({name})\b", self.source.start(node)), scope, node
            )

    visit_Nonlocal = visit_Global

    def visit_Import(self, node: ast.Import, scope: Scope) -> None:
        self.source.imports.append((node, scope))
        for alias in node.names:
            scope.bind(
                alias.asname or alias.name.partition(".")[0],
                (alias.name if alias.asname else alias.name.partition(".")[0], ""),
            )

    def visit_ImportFrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        self.source.imports.append((node, scope))
        for alias in node.names:
            scope.bind(alias.asname or alias.name, (from_module(self.source, node), alias.name))

    def visit_Constant(self, node: ast.Constant, scope: Scope) -> None:
        if isinstance(node.value, str):
            self.source.strings.append((node, scope))


def arguments(args: ast.arguments) -> list[ast.arg]:
    """All arguments, in the order of the text."""
    several = [args.vararg] if args.vararg else []
    return [
        *args.posonlyargs,
        *args.args,
        *several,
        *args.kwonlyargs,
        *([args.kwarg] if args.kwarg else []),
    ]


def from_module(source: Source, node: ast.ImportFrom) -> str:
    """The full name of the module that `from ... import` names."""
    if not node.level:
        return node.module or ""
    names = source.module.split(".")
    names = names[: len(names) - node.level + source.is_package]
    return ".".join([*names, *([node.module] if node.module else [])])


def read_project(root: Path) -> tuple[list[Source], list[Text]]:
    """The Python files of a project with the examples in docstrings and pages, and its other texts; as git knows them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    sources: list[Source] = []
    texts: list[Text] = []
    for name in sorted(filter(None, listed.split("\0"))):
        path = root / name
        if (
            not path.is_file()
            or path.is_symlink()
            or name.startswith(".ci/")
            or path.suffix not in (".py", ".pyi", *TEXTS)
        ):
            continue
        text = path.read_bytes().decode()
        if path.suffix in (".py", ".pyi"):
            sources.append(Source(path, text, module_of(name), is_package=path.stem == "__init__"))
        else:
            texts.append(Text(path, text))
    examples = [
        each for source in sources if source.path.suffix == ".py" for each in in_docstrings(source)
    ]
    pages = [each for text in texts if text.path.suffix == ".md" for each in in_page(text)]
    return [*sources, *examples, *pages], texts


def in_docstrings(source: Source) -> Iterator[Source]:
    """The examples of each docstring."""
    names = [name for name in source.scope.names if name.isidentifier()]
    number = 0
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) or not node.body:
            continue
        text = node.body[0]
        if not (
            isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            continue
        lines = [""] * (text.end_lineno or 0)
        shifts = {}
        for line in range(text.lineno, (text.end_lineno or 0) + 1):
            if match := re.match(r"\s*(>>>|\.\.\.) ", source.lines[line - 1]):
                lines[line - 1] = source.lines[line - 1][match.end() :]
                shifts[line] = match.end()
        if shifts and 1 not in shifts:
            lines[0] = (
                f"from {source.module} import {', '.join(names)}"
                if names and source.module.replace(".", "").isidentifier()
                else ""
            )
            number += 1
            yield from _example(
                source, "\n".join(lines), f"{source.module}__example{number}", shifts
            )


def in_page(page: Text) -> Iterator[Source]:
    """The examples of a page of Markdown."""
    lines = [""] * len(page.lines)
    inside = False
    for number, line in enumerate(page.lines):
        if line.startswith("```"):
            inside = not inside and line.strip() in ("```python", "```py")
        elif inside:
            lines[number] = line
    if any(lines):
        module = "page_" + re.sub(r"\W", "_", page.path.as_posix())
        yield from _example(
            page, "\n".join(lines), module, dict.fromkeys(range(1, len(lines) + 1), 0)
        )


def _example(host: Text, text: str, module: str, shifts: dict[int, int]) -> Iterator[Source]:
    try:
        yield Source(host.path, text, module, host=host, shifts=shifts)
    except SyntaxError:
        return


def module_of(name: str) -> str:
    """The name by which a file is imported."""
    for folder in SEARCH_PATHS:
        if name.startswith(f"{folder}/"):
            name = name.removeprefix(f"{folder}/")
            break
    return name.rpartition(".")[0].replace("/", ".").removesuffix(".__init__")
