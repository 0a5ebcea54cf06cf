"""Command lines to values."""

from __future__ import annotations

import pytest

from deepforecast.cli.parser import Parser, parse_number, replace_underscores
from deepforecast.errors import ParameterError


def parser() -> Parser:
    made = Parser("deepforecast x", "DATA", "A `name`\n  indented")
    made.add_argument("data", metavar="DATA")
    made.add_argument("--level", type=parse_number, nargs="+")
    made.add_argument("--decimal")
    return made


def test_numbers_stay_whole_where_written_so() -> None:
    assert [parse_number("80"), parse_number("99.5"), parse_number("-1e-3")] == [80, 99.5, -0.001]
    assert type(parse_number("80")) is int


def test_underscores_in_values_stay() -> None:
    assert replace_underscores("--season_length=a_b") == "--season-length=a_b"
    assert replace_underscores("a_b") == "a_b"


def test_names_are_not_guessed_from_their_beginning() -> None:
    with pytest.raises(ParameterError, match=r"no option --lev\. Did you mean --level"):
        parser().parse(["d", "--lev", "80"])


def test_a_dash_alone_is_a_value_and_what_follows_two_dashes_too() -> None:
    assert parser().parse(["-"]).data == "-"
    assert parser().parse(["--", "--level"]).data == "--level"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], r"required: DATA \(DATA must come first"),
        (["--level", "80", "d"], "--level: must be a number, got 'd'"),
        (["d", "--level"], "--level: expected at least one argument"),
        (["d", "-x"], "takes no argument '-x'"),
        (["d", "--data", "e"], "no option --data"),
    ],
)
def test_wrong_lines_are_refused(arguments: list[str], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        parser().parse(arguments)


def test_help_folds_and_drops_backticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = parser().format_help()
    assert "A name\n  indented" in text
    assert "usage: deepforecast x DATA" in text
