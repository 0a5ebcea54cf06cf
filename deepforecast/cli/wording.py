"""What the library says in the words of Python, in those of a command line: `missing='ffill'` as `--missing ffill`.

Only what the command has an option for is said so; the rest stays as it is, for it may be said of Python too.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

NAMES = {
    "n_windows": "--windows", "step_size": "--step", "frame": "--data", "static": "--static-data", "future": "--future-data",
    "columns": "--future, --past and --static",
}  # fmt: skip
PHRASES = (
    (r"columns=\{'id': '([^']*)'\}", r"--id \1"),
    (r"check\(frame, freq='?(\w+)'?\)", r"deepforecast check with --freq \1"),
    (r"check\(frame\)", r"deepforecast check"),
    (r"\b(?:predict|options=Backtest)\(([a-z_]+=(?:'[^']*'|[\w.]+))\)", r"\1"),
    (r"\b[A-Z]\w*\(([a-z_]+=\.\.\.)\)", r"\1"),
)
SAID = re.compile(r"(?<![\w.{-])([a-z]+(?:_[a-z]+)*)=('[^']*'|\"[^\"]*\"|\.\.\.|-?\d+(?:\.\d+)?|True|False|)(?![\w(\[{])")
NAMED = re.compile(r"\b(?:series|column|columns) [^.;:()]*$")  # names of the user's may follow, whatever they look like
OTHERS = re.compile(r"((?:, '\w+')*)( or '\w+')")  # of a list of choices, the first of which was translated


class Wording:
    """The words of one command, by its options."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = dict(options or {})

    def __call__(self, text: str) -> str:
        """The text with its ways out as options.

        >>> parser = argparse.ArgumentParser()
        >>> _ = parser.add_argument("--missing"), parser.add_argument("--horizon", metavar="STEPS", type=int)
        >>> worded = Wording(parser._option_string_actions)
        >>> worded("Say missing='ffill' or 'zero', fit Naive(horizon=3), or predict(horizon=...).")
        'Say --missing ffill or zero, fit Naive(horizon=3), or --horizon STEPS.'
        """
        if not self.options:
            return text
        for written, said in PHRASES:
            text = re.sub(written, partial(self._phrase, said), text)
        done, at = "", 0
        for found in SAID.finditer(text):
            before = text[: found.start()]
            if found.start() < at or NAMED.search(before) or _inside_a_call(before):
                continue
            option = self._option(found[1], found[2])
            if option is None:
                continue
            done, at = done + text[at : found.start()] + option, found.end()
            others = OTHERS.match(text, at)
            if others and found[2].startswith("'"):
                done, at = done + others[0].replace("'", ""), others.end()
        return done + text[at:]

    def _phrase(self, said: str, found: re.Match[str]) -> str:
        """A phrase in other words, if these hold nothing that the command has no option for."""
        words = found.expand(said)
        inner = SAID.fullmatch(words)
        return found[0] if inner is not None and self._option(inner[1], inner[2]) is None else words

    def _option(self, name: str, value: str) -> str | None:
        """`name=value` as an option, or None where the command has none for it."""
        if name == "model":  # a parameter of a model that wraps another; the option of this name says which model
            return "--set model=NAME" if "--set" in self.options else None
        option = NAMES.get(name, f"--{name.replace('_', '-')}")
        action = self.options.get(option.partition(",")[0])
        if action is None:
            return None
        if isinstance(action, argparse.BooleanOptionalAction) and value in ("True", "False"):
            return option if value == "True" else f"--no-{option[2:]}"
        word = value.strip("'\"")
        if word == "...":
            word = str(action.metavar or "...")
        return f"{option} {word}".rstrip()


def _inside_a_call(before: str) -> bool:
    """Whether the end of this text stands inside the brackets of a call, as `Conformal(model, `."""
    depth = 0
    for at in range(len(before) - 1, -1, -1):
        depth += (before[at] == ")") - (before[at] == "(")
        if depth < 0:
            return at > 0 and (before[at - 1].isalnum() or before[at - 1] == "_")
    return False
