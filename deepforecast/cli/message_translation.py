"""Translation of Python arguments in messages to options: `missing='ffill'` becomes `--missing ffill`.

Arguments are translated if the command has an option for them, or if every model has the parameter, so that
`deepforecast fit` has the option. All other text is left unchanged.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

OPTION_NAMES = {
    "n_windows": "--windows", "step_size": "--step", "frame": "--data", "static": "--static-data", "future": "--future-data",
    "columns": "--future, --past and --static",
}  # fmt: skip
IN_FIT = " (in deepforecast fit)"
VALUE = r"'[^']*'|\"[^\"]*\"|\.\.\.|-?\d+(?:\.\d+)?|\[[\d., ]+\]|True|False|"
ASSIGNMENT = re.compile(rf"(?<![\w.{{-])([a-z]+(?:_[a-z]+)*)=({VALUE})(?![\w(\[{{])")
PHRASES = (
    (r"(?:(?<=Pass )|(?<=Set )|(?<=Use ))`([a-z_]+)`", r"\1="),
    (r"columns=\{'id': '([^']*)'\}", r"--id \1"),
    (r"\bcheck\(frame, freq='?(\w+)'?\)", r"deepforecast check with --freq \1"),
    (r"\b(check|compare)\((?:frame)?\)", r"deepforecast \1"),
    (r"\bscore\(board\.forecasts, metrics='(\w+)', train=frame, reference='(\w+)'\)",
     r"deepforecast cross-validate with --metrics \1 --reference \2"),
    (r"^`(n_windows|step_size)`(?= must be at least)", r"\1="),
    (r"\boptions=TuningOptions\(space=\{[^}]*\}\)", "--space FILE"),
    (r"\bmodel\.save\(path\)", "deepforecast fit with --save FILE"),
    (r"\bmodel\.future_frame\(horizon\)", "--future-template FILE"),
    (r"\ba model whose capabilities\.(future|past|static) is true", r"one of deepforecast models with \1 covariates"),
    (r"\ba model whose capabilities\.(\w+) is '?(\w+)'?", r"one whose \1 is \2 in deepforecast models --json"),
    (rf"\b(?:predict|options=(?:BacktestOptions|TuningOptions))\(([a-z_]+=(?:{VALUE}))\)", r"\1"),
    (r"\b[A-Z]\w*\(([a-z_]+=\.\.\.)\)", r"\1"),
)  # fmt: skip
WRAPPED_MODEL = re.compile(r"\b([A-Z]\w*)\(model((?:, (?:or )?[a-z_]+=[^,()]+)*)\)")  # e.g. `Conformal(model, pool=True)`
USER_NAMES = re.compile(r"\b(?:series|column|columns) [^.;:()]*$")  # user-defined names may follow
OTHER_CHOICES = re.compile(r"((?:, '\w+')*)( or '\w+')")  # further choices after a translated one


class MessageTranslator:
    """Translator of messages for one command with its options."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = dict(options or {})

    def __call__(self, text: str) -> str:
        """Return `text` with Python arguments replaced by options.

        Examples
        --------
        >>> parser = argparse.ArgumentParser()
        >>> _ = parser.add_argument("--missing"), parser.add_argument("--horizon", metavar="STEPS", type=int)
        >>> translate = MessageTranslator(parser._option_string_actions)
        >>> translate("Pass missing='ffill' or 'zero', fit Naive(horizon=3), or predict(horizon=...).")
        'Pass --missing ffill or zero, fit Naive(horizon=3), or --horizon STEPS.'
        """
        if not self.options:
            return text
        for pattern, replacement in PHRASES:
            text = re.sub(pattern, partial(self._translate_phrase, replacement), text)
        text = WRAPPED_MODEL.sub(self._translate_wrapped, text)
        translated = ""
        position = 0
        for match in ASSIGNMENT.finditer(text):
            preceding = text[: match.start()]
            if match.start() < position or USER_NAMES.search(preceding) or _is_inside_call(preceding):
                continue
            option = self._to_option(match[1], match[2])
            suffix = ""
            if option is None:
                option, suffix = self._common_option(match[1], match[2])
            if option is None:
                continue
            translated = translated + text[position : match.start()] + option
            position = match.end()
            choices = OTHER_CHOICES.match(text, position)
            if choices and match[2].startswith("'"):
                translated = translated + choices[0].replace("'", "")
                position = choices.end()
            translated += suffix
        return translated + text[position:]

    def _translate_phrase(self, replacement: str, match: re.Match[str]) -> str:
        """Expand the replacement of a phrase, unless it uses an option that the command does not have."""
        words = match.expand(replacement)
        inner = ASSIGNMENT.fullmatch(words)
        is_unavailable = words.startswith("--") and words.split()[0] not in self.options
        if inner is not None and self._to_option(inner[1], inner[2]) is None:
            is_unavailable = self._common_option(inner[1], inner[2])[0] is None
        return match[0] if is_unavailable else words

    def _translate_wrapped(self, match: re.Match[str]) -> str:
        """Translate a wrapped model to `--set`, or to its options; unchanged for commands with `--models`."""
        if "--models" in self.options:
            return match[0]
        assignments = [(assignment[1], assignment[2]) for assignment in ASSIGNMENT.finditer(match[2])]
        if assignments and None not in [self._to_option(*assignment) for assignment in assignments]:
            return match[2].removeprefix(", ")  # __call__ translates these to options
        flags = ASSIGNMENT.sub(
            lambda assignment: f"--{assignment[1].replace('_', '-')} {assignment[2]}".removesuffix(" True"), match[2]
        )
        words = f"--model {match[1]} --set model=NAME" + flags.replace(", ", " with ", 1)
        return words + ("" if "--set" in self.options else IN_FIT)

    def _to_option(self, name: str, value: str) -> str | None:
        """Return the option for `name=value`, or None if the command has none."""
        if name == "model":  # the parameter of a wrapper, not the option --model
            return "--set model=NAME" if "--set" in self.options else None
        direct_option = f"--{name.replace('_', '-')}"
        option = direct_option if "_" in name and direct_option in self.options else OPTION_NAMES.get(name, direct_option)
        action = self.options.get(option.partition(",")[0])
        if action is None:
            return None
        if isinstance(action, argparse.BooleanOptionalAction) and value in ("True", "False"):
            return option if value == "True" else f"--no-{option[2:]}"
        word = value.strip("'\"")
        if word == "...":
            word = str(action.metavar or "...")
        return f"{option} {_format_list(word)}".rstrip()

    def _common_option(self, name: str, value: str) -> tuple[str | None, str]:
        """Return the translation of a parameter common to all models, and its suffix."""
        from deepforecast.core.forecaster import Forecaster
        from deepforecast.core.params import declared_params

        if name not in declared_params(Forecaster):
            return None, ""
        word = value.strip("'\"") or "..."
        return (f"MODEL:{name}={word}", "") if "--models" in self.options else (f"--{name.replace('_', '-')} {word}", IN_FIT)


def _format_list(word: str) -> str:
    return word[1:-1].replace(",", "") if word.startswith("[") else word


def _is_inside_call(preceding: str) -> bool:
    """Whether the text ends inside the parentheses of a call, e.g. `Conformal(model, `."""
    depth = 0
    for position in range(len(preceding) - 1, -1, -1):
        depth += (preceding[position] == ")") - (preceding[position] == "(")
        if depth < 0:
            return position > 0 and (preceding[position - 1].isalnum() or preceding[position - 1] == "_")
    return False
