"""Argument parser with one-line errors and suggestions for unknown options."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from deepforecast.cli import streams
from deepforecast.errors import ParameterError, format_value


class Parser(argparse.ArgumentParser):
    """Argument parser that raises ParameterError instead of printing the usage and exiting."""

    def __init__(self, prog: str, usage: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=prog,
            usage=f"{prog} {usage}",
            description=description,
            epilog=epilog or None,
            formatter_class=lambda prog: Formatter(prog, max_help_position=28),
            allow_abbrev=False,
            add_help=False,
        )
        self.subject = prog
        self.missing_option = ""
        self.set_only: list[str] = []  # parameters without an option of their own
        self.inputs: list[argparse.Action] = []
        self.targets: list[argparse.Action] = []

    def add_inputs(self, *actions: argparse.Action) -> None:
        """Declare options whose values are files that the command reads."""
        self.inputs += actions

    def add_targets(self, *actions: argparse.Action) -> None:
        """Declare options whose values are files that the command writes."""
        self.targets += actions

    def error(self, message: str) -> NoReturn:
        """Raise a ParameterError."""
        if "arguments are required: DATA" in message:
            message += " (DATA must come first, since an option that takes a list consumes all values after it)"
        raise ParameterError(f"{message}. See {self.prog} --help.")

    def print_help(self, file: Any = None) -> None:
        """Print the help to standard output."""
        streams.print_text(self.format_help().rstrip())

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse a command line; unknown options are reported first, since they usually cause the other errors."""
        normalized = [replace_underscores(argument) for argument in arguments]
        for argument in normalized:
            name = argument.partition("=")[0]
            if name == "--":
                break
            if name.startswith("--") and name not in self.options:
                raise ParameterError(self._unknown_option(name))
        values, unknown = self.parse_known_args(normalized)
        if unknown:
            raise ParameterError(f"{self.prog} takes no argument {format_value(unknown[0])!r}. See {self.prog} --help.")
        return values

    @property
    def options(self) -> dict[str, Any]:
        """All options by name."""
        return dict(self._option_string_actions)

    def _unknown_option(self, name: str) -> str:
        """The message for an unknown option, with similar options or the way to set it by --set."""
        if name in self.set_only:
            parameter = name[2:].replace("-", "_")
            return f"{self.subject} has no option {name}. Use --set NAME=VALUE, here --set {parameter}=VALUE."
        near = get_close_matches(name, self.options, n=2, cutoff=0.7)
        if self.missing_option and not near:
            return (
                f"{self.missing_option}; {self.subject} itself has no option {format_value(name)}. See {self.subject} --help."
            )
        hint = f"Did you mean {' or '.join(near)}?" if near else f"See {self.prog} --help."
        return f"{self.subject} has no option {format_value(name)}. {hint}"


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help formatter that keeps the lines of descriptions and wraps each to the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap each line of a help text separately, keep its indentation and drop backticks."""
        lines = []
        for line in text.replace("`", "").splitlines():
            start = " " * (len(line) - len(line.lstrip()))
            hanging = indent + start + "  " * bool(start)
            lines.append(textwrap.fill(line, width, initial_indent=indent, subsequent_indent=hanging, break_on_hyphens=False))
        return "\n".join(lines)


def replace_underscores(argument: str) -> str:
    """Return `--season_length=7` as `--season-length=7`."""
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else argument


def parse_number(text: str) -> int | float:
    """Parse an integer or a float."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got '{text}'") from None
