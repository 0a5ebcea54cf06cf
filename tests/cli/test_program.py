"""Commands are found, and whatever they raise becomes a line and an exit code."""

from __future__ import annotations

import json
import warnings

import pytest

from deepforecast.cli import check as check_command
from deepforecast.cli.program import COMMANDS, error_message
from deepforecast.cli.program import run as run_program
from deepforecast.errors import DataWarning


def test_help_lists_every_command(run) -> None:
    ran = run("--help")
    assert ran.status == 0
    assert all(f"\n  {name} " in ran.out for name in COMMANDS)
    assert "130  interrupted" in ran.out


def test_without_a_command_the_help_is_shown_and_the_use_was_wrong(run) -> None:
    ran = run()
    assert (ran.status, ran.err) == (2, "")
    assert "commands:" in ran.out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example(run, name: str) -> None:
    ran = run(name, "--help")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith(f"usage: deepforecast {name} ")
    assert "--json" in ran.out
    assert f"\n  deepforecast {name}" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek"], "Unknown command 'chek'. Did you mean check?"),
        (["cross-valdate", "x"], "Did you mean cross-validate?"),
        (["--jsn"], "Options must come after the command, got '--jsn' before it"),
        (["-x", "check", "sales.csv"], "Options must come after the command"),
        (["check"], "required: DATA"),
        (["check", "sales.csv", "--frq", "D"], "deepforecast check has no option --frq. Did you mean --freq?"),
        (["check", "sales.csv", "other.csv"], "takes no argument 'other.csv'"),
        (["check", "sales.csv", "--decimal", ";"], "--decimal: invalid choice"),
        (["check", "--future", "promo", "sales.csv"], "must come first"),
        (["check", "sales.csv", "--id"], "--id: expected one argument"),
        (["\x1b[31mcheck"], "Unknown command '\\\\x1b[31mcheck'"),
        (["check", "sales.csv", "--\x07"], "no option --\\x07"),
    ],
)
def test_wrong_use_is_refused_in_a_line(run, arguments: list[str], said: str) -> None:
    assert said in run(*arguments).refusal()


def test_underscores_in_options_are_forgiven(run) -> None:
    assert run("check", "sales.csv", "--date_format=%Y-%m-%d").status == 0
    assert run("cross_validate", "--help").status == 0


def test_an_error_as_json_is_one_object(run) -> None:
    ran = run("check", "nowhere.csv", "--json")
    assert (ran.status, ran.err) == (2, "")
    message = "nowhere.csv cannot be read: No such file or directory."
    assert ran.facts == {"error": {"type": "DataError", "message": message, "hint": "", "parameter": None, "series": []}}


def test_a_traceback_is_shown_when_asked_for(run) -> None:
    ran = run("check", "nowhere.csv", "--traceback")
    assert ran.status == 2
    assert "Traceback (most recent call last):" in ran.err
    assert ran.err.splitlines()[-1] == "error: nowhere.csv cannot be read: No such file or directory."


def raising(error: BaseException):
    def run(values: object) -> object:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ZeroDivisionError("a\nb\x1b[2J"), 3, r"error: ZeroDivisionError: a b\x1b[2J (internal error of deepforecast"),
        (PermissionError(13, "Permission denied", "x.csv"), 2, "error: x.csv: Permission denied"),
        (MemoryError(), 2, "error: Not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
)
def test_whatever_a_command_raises_has_its_exit_code(run, monkeypatch, error: BaseException, status: int, said: str) -> None:
    monkeypatch.setattr(check_command, "run", raising(error))
    ran = run("check", "sales.csv")
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith(said)
    assert ran.err.count("\n") == bool(said)


def test_warnings_are_a_line_each_and_said_once(run, monkeypatch) -> None:
    def warn(values: object) -> object:
        for _ in range(2):
            warnings.warn("first\nand \x1b[31mred", DataWarning, stacklevel=1)
        warnings.warn("second", DataWarning, stacklevel=1)
        return check_command.Outcome({}, "done")

    monkeypatch.setattr(check_command, "run", warn)
    before = list(warnings.filters)
    ran = run("check", "sales.csv")
    assert ran.err.splitlines() == ["warning: first and \\x1b[31mred", "warning: second"]
    assert ran.out == "done\n"
    assert warnings.filters == before


def test_arguments_are_those_of_the_process(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["deepforecast", "--version"])
    assert run_program() == 0
    assert capsys.readouterr().out.startswith("deepforecast 0.")


def test_an_error_of_the_system_without_a_file_is_said() -> None:
    assert error_message(OSError(28, "No space left on device")) == "No space left on device"
    assert error_message(OSError("plain")) == "OSError: plain"


def test_json_stays_json_beside_warnings(run, folder) -> None:
    (folder / "more.csv").write_text("ds,y,z\n2024-01-01,1,2\n2024-01-02,2,2\n2024-01-03,3,2\n")
    ran = run("check", "more.csv", "--json")
    assert json.loads(ran.out)["summary"]["rows"] == 3
    assert ran.err == "warning: Columns without a role are left out: z. Declare them with --future, --past, --static or --weight.\n"
