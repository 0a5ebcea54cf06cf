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
from deepforecast.cli.message_translation import MessageTranslator
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.output_files import refuse_overwritten_inputs
from deepforecast.cli.parser import Parser
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
SUCCESS, USER_ERROR, INTERNAL_ERROR, INTERRUPTED, BROKEN_PIPE = 0, 2, 3, 130, 141
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
    words = list(sys.argv[1:] if arguments is None else arguments)
    translator = MessageTranslator()
    streams.reserve_descriptors()
    try:
        with print_warnings(translator):
            status = run_command(words, translator)
        streams.flush()
    except BrokenPipeError:
        return BROKEN_PIPE
    except KeyboardInterrupt:
        streams.print_note("interrupted")
        return INTERRUPTED
    except SystemExit as leaving:  # argparse after --help
        return leaving.code if isinstance(leaving.code, int) else SUCCESS
    except Exception as error:  # the one place where everything ends: a line for the user, an exit code for the shell
        return report_error(error, words, translator)
    finally:
        streams.discard_unwritten()
    return status


def run_command(words: Sequence[str], translator: MessageTranslator) -> int:
    """Find the command and run it; `translator` learns its options."""
    if not words or words[0].startswith("-"):
        return _run_without_command(words)
    name, command_arguments = words[0].replace("_", "-"), words[1:]
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=2, cutoff=0.6)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"There is {format_list(COMMANDS, max_shown=len(COMMANDS))}."
        raise ParameterError(f"There is no command {format_value(words[0])!r}. {hint} See deepforecast --help.")
    module: Any = import_module(f"deepforecast.cli.{name.replace('-', '_')}")
    parser = Parser(f"deepforecast {name}", module.USAGE, module.__doc__ or "", module.EPILOG)
    module.add_arguments(parser, command_arguments)
    common = parser.add_argument_group("for every command")
    common.add_argument("-h", "--help", action="help", help="show this and leave")
    common.add_argument("--json", action="store_true", help="print the result, or the error, as one JSON object")
    common.add_argument("--traceback", action="store_true", help="show where an error comes from")
    values = parser.parse(command_arguments)
    values.worded, translator.options = translator, parser.options
    refuse_overwritten_inputs(parser, values)
    with hide_progress() if values.json else nullcontext():
        outcome: Outcome = module.run(values)
    print_outcome(outcome, values.json)
    return outcome.status


def print_outcome(outcome: Outcome, as_json: bool) -> None:
    """Print what a command found."""
    if as_json:
        from deepforecast.cli.json_output import json_text

        streams.write_result((json_text(outcome.facts) + "\n").encode())
    elif outcome.data:
        streams.write_result(outcome.data)
    elif outcome.text:
        streams.print_text(outcome.text)


def report_error(error: BaseException, words: Sequence[str], translator: MessageTranslator) -> int:
    """Say what went wrong, as asked for: a line, a JSON object, a traceback."""
    is_expected = isinstance(error, DeepForecastError | OSError | MemoryError)
    message = translator(error_message(error))
    if "--traceback" in words:
        streams.print_notes([format_value(line, 1000) for line in "".join(traceback.format_exception(error)).splitlines()])
    elif not is_expected:
        message += " (a fault of deepforecast itself: please report it with the output of --traceback)"
    if "--json" not in words or not _print_json_error(type(error).__name__, message):
        streams.print_note(message, "error")
    return USER_ERROR if is_expected else INTERNAL_ERROR


def error_message(error: BaseException) -> str:
    """What an error says, in one line."""
    if isinstance(error, OSError) and not isinstance(error, DeepForecastError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Give fewer series or rows at a time."
    return str(error) if isinstance(error, DeepForecastError) else f"{type(error).__name__}: {error}"


@contextmanager
def print_warnings(translator: MessageTranslator) -> Iterator[None]:
    """Show each warning once, as one line on standard error."""
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *positional: Any, **keywords: Any) -> None:
        from_library = issubclass(category, DataWarning | TrainingWarning)
        text = translator(str(message)) if from_library else f"{category.__name__}: {message}"
        if text not in printed:
            printed.add(text)
            streams.print_note(text, "warning")

    with warnings.catch_warnings():
        for category in () if sys.warnoptions else (DataWarning, TrainingWarning):  # unless the user filters (python -W)
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


def _run_without_command(words: Sequence[str]) -> int:
    """`deepforecast --help`, `--version`, or nothing at all."""
    if words and words[0] not in ("-h", "--help", "--version"):
        raise ParameterError(f"Options come after the command; {format_value(words[0])!r} stands before it. See deepforecast --help.")
    parser = Parser("deepforecast", "COMMAND ...", "Time-series forecasting: every method in the same few words.", EPILOG)
    commands = parser.add_argument_group("commands")
    for name, what in COMMANDS.items():
        commands.add_argument(name, help=what, nargs="?")
    parser.add_argument("-h", "--help", action="store_true", help="show this and leave")
    parser.add_argument("--version", action="store_true", help="show the version and leave")
    values = parser.parse(words)
    if values.version:
        from deepforecast import __version__

        streams.print_text(f"deepforecast {__version__}")
        return SUCCESS
    streams.print_text(parser.format_help().rstrip())
    return SUCCESS if values.help else USER_ERROR


def _print_json_error(error_type: str, message: str) -> bool:
    """Print the error on standard output, where the result would have been; false where that cannot be written to."""
    from deepforecast.cli.json_output import json_text

    try:
        streams.flush()  # of what was written before the error
        streams.write_result((json_text({"error": {"type": error_type, "message": message}}) + "\n").encode())
    except OSError:
        return False
    return True
