"""From a command line to an exit code: the command is found, run, and whatever it raises said in one line."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from deepforecast.cli import streams
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser
from deepforecast.cli.wording import Wording
from deepforecast.cli.writing import refuse_overwritten_inputs
from deepforecast.core.progress import hide_progress
from deepforecast.errors import DataWarning, DeepForecastError, ParameterError, TrainingWarning, format_list, format_value

COMMANDS = {
    "check": "look a data file over: gaps, duplicates, frequency, missing values",
    "fit": "fit one model to a data file and save it",
    "predict": "forecast with a saved model",
    "cross-validate": "forecast the past from its own past, and score the forecasts",
    "compare": "rank several models on one data file, with a report and a plot",
    "tune": "search for the hyperparameters of a model on one data file",
    "benchmark": "run a suite of benchmarks, each job in a process of its own, or audit it for leaks",
    "models": "list the models, or describe some of them",
    "doctor": "say what this installation has and how it is set up",
    "demo": "see it work: check, compare, forecast and plot data that ships with the library",
}
WELL, BAD, FAULT, INTERRUPTED, NO_READER = 0, 2, 3, 130, 141
EPILOG = """\
deepforecast COMMAND --help says more. A first round:
  deepforecast demo
  deepforecast check sales.csv
  deepforecast compare sales.csv --models SeasonalNaive AutoETS AutoTheta --horizon 14 --level 80 --report report.html
  deepforecast fit sales.csv --model SeasonalNaive --horizon 14 --save model.dfc
  deepforecast predict model.dfc --level 80 95 --output forecast.csv

exit codes:
    0  well
    1  something was found: errors in the data, a model that failed, a package that is missing
    2  wrong use, bad data, or a file that cannot be read or written
    3  a fault of the library itself
  130  interrupted
  141  the reader of the output went away"""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    worded = Wording()
    streams.prepare()
    try:
        with spoken_warnings(worded):
            status = command(given, worded)
        streams.flush()
    except BrokenPipeError:
        return NO_READER
    except KeyboardInterrupt:
        streams.note("interrupted")
        return INTERRUPTED
    except SystemExit as left:  # argparse after --help
        return left.code if isinstance(left.code, int) else WELL
    except Exception as error:  # the one place where everything ends: a line for the user, an exit code for the shell
        return failed(error, given, worded)
    finally:
        streams.settle()
    return status


def command(given: Sequence[str], worded: Wording) -> int:
    """Find the command and run it; `worded` learns its options."""
    if not given or given[0].startswith("-"):
        return _without_command(given)
    name, rest = given[0].replace("_", "-"), given[1:]
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=2, cutoff=0.6)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"There is {format_list(COMMANDS, max_shown=len(COMMANDS))}."
        raise ParameterError(f"There is no command {format_value(given[0])!r}. {hint} See deepforecast --help.")
    module: Any = import_module(f"deepforecast.cli.{name.replace('-', '_')}")
    parser = Parser(f"deepforecast {name}", module.USAGE, module.__doc__ or "", module.EPILOG)
    module.add_arguments(parser, rest)
    every = parser.add_argument_group("for every command")
    every.add_argument("-h", "--help", action="help", help="show this and leave")
    every.add_argument("--json", action="store_true", help="print the result, or the error, as one JSON object")
    every.add_argument("--traceback", action="store_true", help="show where an error comes from")
    values = parser.parse(rest)
    values.worded, worded.options = worded, parser.options
    refuse_overwritten_inputs(parser, values)
    with hide_progress() if values.json else nullcontext():
        outcome: Outcome = module.run(values)
    present(outcome, values.json)
    return outcome.status


def present(outcome: Outcome, as_json: bool) -> None:
    """Print what a command found."""
    if as_json:
        from deepforecast.cli.plain import json_text

        streams.deliver((json_text(outcome.facts) + "\n").encode())
    elif outcome.data:
        streams.deliver(outcome.data)
    elif outcome.text:
        streams.say(outcome.text)


def failed(error: BaseException, given: Sequence[str], worded: Wording) -> int:
    """Say what went wrong, as asked for: a line, a JSON object, a traceback."""
    own = isinstance(error, DeepForecastError | OSError | MemoryError)
    message = worded(message_of(error))
    if "--traceback" in given:
        streams.notes([format_value(line, 1000) for line in "".join(traceback.format_exception(error)).splitlines()])
    elif not own:
        message += " (a fault of deepforecast itself: please report it with the output of --traceback)"
    if "--json" not in given or not _said_as_json(type(error).__name__, message):
        streams.note(message, "error")
    return BAD if own else FAULT


def message_of(error: BaseException) -> str:
    """What an error says, in one line."""
    if isinstance(error, OSError) and not isinstance(error, DeepForecastError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Give fewer series or rows at a time."
    return str(error) if isinstance(error, DeepForecastError) else f"{type(error).__name__}: {error}"


@contextmanager
def spoken_warnings(worded: Wording) -> Iterator[None]:
    """Show each warning once, as one line on standard error."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        own = issubclass(category, DataWarning | TrainingWarning)
        text = worded(str(message)) if own else f"{category.__name__}: {message}"
        if text not in said:
            said.add(text)
            streams.note(text, "warning")

    with warnings.catch_warnings():
        for category in () if sys.warnoptions else (DataWarning, TrainingWarning):  # unless the user filters (python -W)
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


def _without_command(given: Sequence[str]) -> int:
    """`deepforecast --help`, `--version`, or nothing at all."""
    if given and given[0] not in ("-h", "--help", "--version"):
        raise ParameterError(f"Options come after the command; {format_value(given[0])!r} stands before it. See deepforecast --help.")
    parser = Parser("deepforecast", "COMMAND ...", "Time-series forecasting: every method in the same few words.", EPILOG)
    listed = parser.add_argument_group("commands")
    for name, what in COMMANDS.items():
        listed.add_argument(name, help=what, nargs="?")
    parser.add_argument("-h", "--help", action="store_true", help="show this and leave")
    parser.add_argument("--version", action="store_true", help="show the version and leave")
    values = parser.parse(given)
    if values.version:
        from deepforecast import __version__

        streams.say(f"deepforecast {__version__}")
        return WELL
    streams.say(parser.format_help().rstrip())
    return WELL if values.help else BAD


def _said_as_json(kind: str, message: str) -> bool:
    """Print the error on standard output, where the result would have been; false where that cannot be written to."""
    from deepforecast.cli.plain import json_text

    try:
        streams.flush()  # of what was written before the error
        streams.deliver((json_text({"error": {"type": kind, "message": message}}) + "\n").encode())
    except OSError:
        return False
    return True
