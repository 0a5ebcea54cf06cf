"""Mutants follow the names of the code that they change."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import yaml
from sources import FUNCTIONS, Scope, Source, Text
from texts import Plan

Spans = list[tuple[int, int]]
Match = list[tuple[int, int, int]]  # for each line: start and end in the source, start in `old`
NAME = re.compile(r"(\.\s*)?\b([A-Za-z_]\w*)\b(?=(\s*=(?!=))?)")


@dataclass
class Edit:
    """One edit of a mutant: nodes of YAML, which tell where they stand."""

    text: Text
    symbol: yaml.ScalarNode
    old: yaml.ScalarNode
    new: yaml.ScalarNode
    label: str


def follow(plan: Plan) -> None:
    """Note the edits in all files of mutants."""
    for text in _files(plan):
        for edit in _edits(text):
            source = plan.source_of(edit.symbol.value.partition(":")[0])
            matches = _matches(source, edit.symbol.value, edit.old.value) if source else []
            if source is not None and len(matches) == 1:
                _follow_old(plan, source, edit, matches[0])
                _follow_new(plan, source, edit, matches[0])


def check(plan: Plan) -> None:
    """List the mutants that applied before and do not apply to the changed sources."""
    for text in _files(plan):
        changed_text = Text(text.path, text.changed())
        for edit, changed_edit in zip(_edits(text), _edits(changed_text), strict=True):
            source = plan.source_of(edit.symbol.value.partition(":")[0])
            if source is None or not _matches(source, edit.symbol.value, edit.old.value):
                plan.by_hand["Mutants that do not apply as it is"].append(edit.label)
                continue
            changed = Source(source.path, source.changed(), source.module, source.is_package)
            symbol = plan.new_qualname(edit.symbol.value)
            if len(_matches(changed, symbol, changed_edit.old.value)) != 1:
                plan.by_hand["Decide by hand: mutants that would not apply"].append(edit.label)


def _files(plan: Plan) -> list[Text]:
    paths = plan.root / "tests" / "mutants"
    return [
        text for text in plan.texts if text.path.parent == paths and text.path.suffix == ".yaml"
    ]


def _edits(text: Text) -> Iterator[Edit]:
    """The edits of symbols in a file."""
    document = yaml.compose(text.text, yaml.SafeLoader)
    for mutant in document.value if isinstance(document, yaml.SequenceNode) else ():
        keys = {key.value: value for key, value in mutant.value}
        label = f"{text.path.name}: {keys['name'].value}"
        for edit in keys["edits"].value if "edits" in keys else [mutant]:
            entry = {key.value: value for key, value in edit.value}
            if {"symbol", "old", "new"} <= set(entry):
                yield Edit(text, entry["symbol"], entry["old"], entry["new"], label)


def _follow_old(plan: Plan, source: Source, edit: Edit, match: Match) -> None:
    """`old` is a piece of the source, and has the edits of that."""
    for start, (name, new_name) in source.edits.items():
        for first, last, offset in match:
            if first <= start < last:
                _replace(plan, edit, edit.old, offset + start - first, name, new_name)


def _follow_new(plan: Plan, source: Source, edit: Edit, match: Match) -> None:
    """Names in `new` become what they become in `old`, else in the symbol, else anywhere."""
    qualname = edit.symbol.value.partition(":")[2]
    spans = symbol_spans(source, qualname)
    mappings = [
        _learned(source, [(first, last) for first, last, _ in match]),
        _learned(source, spans),
    ]
    symbols = [*source.functions.get(qualname, ()), *source.classes.get(qualname, ())]
    scope = symbols[0] if symbols else source.scope
    for match_ in NAME.finditer(edit.new.value):
        dot, name, equals = match_.groups()
        category = "attribute" if dot else "keyword" if equals else "name"
        keys = [(category, name), *([("name", name)] if equals and not dot else [])]
        learned = [mapping[key] for mapping in mappings for key in keys if key in mapping]
        news = learned[0] if learned else _elsewhere(plan, source, scope, category, name)
        if len(news) > 1:
            line = f"{edit.label}: in `new`, {name} becomes {' or '.join(sorted(news))}"
            plan.by_hand["Decide by hand: mutants"].append(line)
        elif (new_name := next(iter(news), name)) != name:
            _replace(plan, edit, edit.new, match_.start(2), name, new_name)


def _learned(source: Source, spans: Spans) -> dict[tuple[str, str], set[str]]:
    """What the names in some pieces of a source become."""
    mapping: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in source.references:
        if any(first <= each.start < last for first, last in spans):
            category = "keyword" if each.category == "pattern" else each.category
            mapping[category, each.name].add(source.edits.get(each.start, ("", each.name))[1])
    return mapping


def _replace(
    plan: Plan, edit: Edit, node: yaml.ScalarNode, offset: int, name: str, new_name: str
) -> None:
    start = _offset_in_file(edit.text, node, offset)
    if edit.text.text[start : start + len(name)] == name:
        edit.text.replace(start, name, new_name)
    else:  # quotes that YAML escapes, or an end within the name
        plan.by_hand["Decide by hand: mutants"].append(f"{edit.label}: {name} -> {new_name}")


def _elsewhere(plan: Plan, source: Source, scope: Scope, category: str, word: str) -> set[str]:
    """What a name that the symbol does not have becomes."""
    if category == "attribute":
        return {
            plan.new_member(class_info, word) or word for class_info in plan.definers.get(word, ())
        }
    bound = scope.resolve(word)
    if bound is not None and bound.category == "module":
        return {plan.new_global(source.module, word)}
    if category == "keyword":
        members = {
            plan.new_member(class_info, word) or word for class_info in plan.definers.get(word, ())
        }
        return members if len(members) == 1 else {word}
    return {word}


def _offset_in_file(text: Text, node: yaml.ScalarNode, offset: int) -> int:
    """Where in the file a character of a scalar is."""
    start = int(node.start_mark.index)
    if node.style is None:
        return start + offset
    if node.style in ("'", '"'):
        return start + 1 + offset
    text_before = str(node.value)[:offset]
    line = int(node.start_mark.line) + 1 + text_before.count("\n")  # from 0
    first = next(row for row in text.lines[node.start_mark.line + 1 :] if row.strip())
    value = str(node.value)
    indent = len(first) - len(first.lstrip(" ")) - (len(value) - len(value.lstrip(" ")))
    start = text.starts[line]
    return start + indent + len(text_before) - (text_before.rfind("\n") + 1)


def symbol_spans(source: Source, name: str) -> Spans:
    """Where a symbol is defined, decorators included; no name: all code outside of functions and classes."""
    if name:
        scopes = [*source.functions.get(name, ()), *source.classes.get(name, ())]
    else:
        scopes = [
            each
            for group in (source.functions, source.classes)
            for symbol_scopes in group.values()
            for each in symbol_scopes
        ]
        scopes = [each for each in scopes if each.parent is source.scope]
    spans = []
    for each in scopes:
        assert isinstance(each.node, (*FUNCTIONS, ast.ClassDef))
        first = min(
            [each.node.lineno, *(decorator.lineno for decorator in each.node.decorator_list)]
        )
        spans.append((source.starts[first - 1], source.starts[each.node.end_lineno or first]))
    if name:
        return spans
    edges = [0, *(edge for span in sorted(spans) for edge in span), len(source.text)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _matches(source: Source, symbol: str, old: str) -> list[Match]:
    """Where `old` is: for each match, of each of its lines, the start and end in the source and the start in `old`."""
    lines = old.split("\n")
    pattern = re.compile(r"\n[ ]*".join(f"({re.escape(line.lstrip(' '))})" for line in lines))
    offsets = [
        sum(len(line) + 1 for line in lines[:i]) + len(lines[i]) - len(lines[i].lstrip(" "))
        for i in range(len(lines))
    ]
    matches = []
    for first, last in symbol_spans(source, symbol.partition(":")[2]):
        position = first
        while match := pattern.search(source.text, position, last):
            matches.append([(*match.span(i + 1), offset) for i, offset in enumerate(offsets)])
            position = match.start() + 1
    return matches
