"""Mutants follow the names of the code that they change."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import yaml
from sources import FUNCTIONS, Scope, Source, Text
from texts import Plan

Spans = list[tuple[int, int]]
NAME = re.compile(r"(\.\s*)?\b([A-Za-z_]\w*)\b(?=(\s*=(?!=))?)")


def follow(plan: Plan) -> None:
    """Note the edits in all files of mutants, and list the mutants that would not apply any more."""
    for text in plan.texts:
        if text.path.suffix == ".yaml" and "tests/mutants/" in text.path.as_posix():
            for symbol, old, new, label in _edits(text):
                _follow(plan, text, symbol, old, new, label)


def check(plan: Plan) -> None:
    """List the mutants that applied before and do not apply to the changed sources."""
    for text in plan.texts:
        if text.path.suffix != ".yaml" or "tests/mutants/" not in text.path.as_posix():
            continue
        changed_text = Text(text.path, text.changed())
        for (symbol, old, _, label), (_, changed_old, _, _) in zip(
            _edits(text), _edits(changed_text), strict=True
        ):
            source = plan.source_of(symbol.value.partition(":")[0])
            if source is None or not _matches(source, source.text, symbol.value, old.value):
                plan.by_hand["Mutants that do not apply as it is"].append(label)
            else:
                changed = Source(source.path, source.changed(), source.module, source.is_package)
                name = plan.new_qualname(symbol.value).partition(":")[2]
                if len(_matches(changed, changed.text, f":{name}", changed_old.value)) != 1:
                    plan.by_hand["Decide by hand: mutants that would not apply"].append(label)


def _edits(text: Text) -> Iterator[tuple[yaml.ScalarNode, yaml.ScalarNode, yaml.ScalarNode, str]]:
    """Symbol, old and new of each edit on a symbol, as nodes that tell their place, and the mutant's name."""
    document = yaml.compose(text.text, yaml.SafeLoader)
    for mutant in document.value if isinstance(document, yaml.SequenceNode) else ():
        keys = {key.value: value for key, value in mutant.value}
        edits = keys["edits"].value if "edits" in keys else [mutant]
        for edit in edits:
            entry = {key.value: value for key, value in edit.value}
            if {"symbol", "old", "new"} <= set(entry):
                yield (
                    entry["symbol"],
                    entry["old"],
                    entry["new"],
                    f"{text.path.name}: {keys['name'].value}",
                )


def _follow(
    plan: Plan,
    text: Text,
    symbol: yaml.ScalarNode,
    old: yaml.ScalarNode,
    new: yaml.ScalarNode,
    label: str,
) -> None:
    module, _, name = symbol.value.partition(":")
    source = plan.source_of(module)
    matches = _matches(source, source.text, symbol.value, old.value) if source is not None else []
    if source is None or len(matches) != 1:
        return
    learned: dict[tuple[str, str], set[str]] = defaultdict(set)  # within `old`
    around: dict[tuple[str, str], set[str]] = defaultdict(set)  # within the symbol
    spans = symbol_spans(source, name)
    inside = [(first, last) for first, last, _ in matches[0]]
    for each in source.references:
        if any(first <= each.start < last for first, last in spans):
            new_name = source.edits.get(each.start, ("", each.name))[1]
            category = "keyword" if each.category == "pattern" else each.category
            around[category, each.name].add(new_name)
            if any(first <= each.start < last for first, last in inside):
                learned[category, each.name].add(new_name)
    for start, (old_name, new_name) in source.edits.items():
        for first, last, offset in matches[0]:
            if first <= start < last:
                if start + len(old_name) > last:
                    plan.by_hand["Decide by hand: mutants"].append(
                        f"{label}: {old_name} -> {new_name} reaches beyond `old`"
                    )
                else:
                    text.replace(
                        _offset_in_file(text, old, offset + start - first), old_name, new_name
                    )
    scope = _scope(source, spans, name)
    for match in NAME.finditer(new.value):
        word = match.group(2)
        category = "attribute" if match.group(1) else "keyword" if match.group(3) else "name"
        kinds = ("keyword", "name") if category == "keyword" else (category,)
        news = next(
            (
                mapping[possible_category, word]
                for mapping in (learned, around)
                for possible_category in kinds
                if (possible_category, word) in mapping
            ),
            None,
        )
        if news is None:
            news = _elsewhere(plan, source, scope, category, word)
        if len(news) > 1:
            plan.by_hand["Decide by hand: mutants"].append(
                f"{label}: in `new`, {word} becomes {' or '.join(sorted(news))}"
            )
        elif (new_name := next(iter(news), word)) != word:
            text.replace(_offset_in_file(text, new, match.start(2)), word, new_name)


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
    text_before = node.value[:offset]
    line = node.start_mark.line + 1 + text_before.count("\n")  # from 0
    first = next(row for row in text.lines[node.start_mark.line + 1 :] if row.strip())
    indent = len(first) - len(first.lstrip(" ")) - (len(node.value) - len(node.value.lstrip(" ")))
    return int(text.starts[line]) + indent + len(text_before) - (text_before.rfind("\n") + 1)


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


def _matches(source: Source, text: str, symbol: str, old: str) -> list[list[tuple[int, int, int]]]:
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
        while match := pattern.search(text, position, last):
            matches.append([(*match.span(i + 1), offset) for i, offset in enumerate(offsets)])
            position = match.start() + 1
    return matches


def _scope(source: Source, spans: Spans, name: str) -> Scope:
    return next(
        iter([*source.functions.get(name, ()), *source.classes.get(name, ())]), source.scope
    )
