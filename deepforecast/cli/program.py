"""Entry point of the command line: runs a command and reports its errors and warnings in one line each."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from deepforecast.cli import streams
from deepforecast.cli.arguments import DATA_HINTS
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.output_files import refuse_overwritten_inputs
from deepforecast.cli.parser import Parser
from deepforecast.core.monitor import hide_progress
from deepforecast.errors import (
    DataError,
    DataWarning,
    DeepForecastError,
    ParameterError,
    TrainingWarning,
    format_list,
    format_value,
)

COMMANDS = {
    "check": "check a data file: gaps, duplicates, frequency, missing values",
    "fit": "fit one model to a data file and save it",
    "predict": "forecast with a saved model",
    "cross-validate": "evaluate models by rolling cross-validation",
    "compare": "rank several models on one data file, with a report and a plot",
    "tune": "tune the hyperparameters of a model on one data file",
    "benchmark": "run a benchmark suite, or audit it for leakage",
    "models": "list the models, or describe some of them",
    "doctor": "show versions, GPUs, threads and folders of this installation",
    "demo": "check, compare, forecast and plot included data",
}
SUCCESS = 0
USER_ERROR = 2
INTERNAL_ERROR = 3
INTERRUPTED = 130
BROKEN_PIPE = 141
EPILOG = """\
deepforecast COMMAND --help shows the options of a command. First steps:
  deepforecast demo
  deepforecast check sales.csv
  deepforecast compare sales.csv --models SeasonalNaive AutoETS AutoTheta --horizon 14 --level 80 --report report.html
  deepforecast fit sales.csv --model SeasonalNaive --horizon 14 --save model.dfc
  deepforecast predict model.dfc --level 80 95 --output forecast.csv

exit codes:
    0  success
    1  problem found: errors in the data, a failed model, a missing package
    2  wrong usage, invalid data, or a file that cannot be read or written
    3  internal error of the library
  130  interrupted
  141  broken pipe"""


OPTION_NAMES = {"frame": "data", "static": "static-data", "future": "future-data"}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options: dict[str, Any] = {}  # those of the command, once it is known
    streams.reserve_descriptors()
    try:
        with print_warnings():
            status = run_command(words, options)
        streams.flush()
    except BrokenPipeError:
        return BROKEN_PIPE
    except KeyboardInterrupt:
        streams.print_note("interrupted")
        return INTERRUPTED
    except SystemExit as leaving:  # argparse after --help
        return leaving.code if isinstance(leaving.code, int) else SUCCESS
    except Exception as error:  # report any error in one line
        return report_error(error, words, options)
    finally:
        streams.discard_unwritten()
    return status


def run_command(words: Sequence[str], options: dict[str, Any]) -> int:
    """Run the command in `words`; its options are added to `options`."""
    if not words or words[0].startswith("-"):
        return _run_without_command(words)
    name = words[0].replace("_", "-")
    command_arguments = words[1:]
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=2, cutoff=0.6)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Available: {format_list(COMMANDS, max_shown=len(COMMANDS))}."
        raise ParameterError(f"Unknown command {format_value(words[0])!r}.", hint=f"{hint} See deepforecast --help.")
    module: Any = import_module(f"deepforecast.cli.{name.replace('-', '_')}")
    parser = Parser(f"deepforecast {name}", module.USAGE, module.__doc__ or "", module.EPILOG)
    module.add_arguments(parser, command_arguments)
    common = parser.add_argument_group("general options")
    common.add_argument("-h", "--help", action="help", help="show this help and exit")
    common.add_argument("--json", action="store_true", help="print the result or the error as JSON")
    common.add_argument("--traceback", action="store_true", help="show the traceback of an error")
    values = parser.parse(command_arguments)
    options.update(parser.options)
    refuse_overwritten_inputs(parser, values)
    with hide_progress() if values.json else nullcontext():
        outcome: Outcome = module.run(values)
    print_outcome(outcome, values.json)
    return outcome.status


def print_outcome(outcome: Outcome, as_json: bool) -> None:
    """Print the result of a command."""
    if as_json:
        from deepforecast.cli.json_output import json_text

        streams.write_result((json_text(outcome.facts) + "\n").encode())
    elif outcome.data:
        streams.write_result(outcome.data)
    elif outcome.text:
        streams.print_text(outcome.text)


def report_error(error: BaseException, words: Sequence[str], options: Collection[str]) -> int:
    """Print an error as one line, as JSON or with its traceback; return the exit code."""
    is_expected = isinstance(error, DeepForecastError | OSError | MemoryError)
    if isinstance(error, DataError):
        error.hint = DATA_HINTS.get(error.problem, error.hint)
    message = error_message(error) + _option_note(error, options)
    if "--traceback" in words:
        streams.print_notes([format_value(line, 1000) for line in "".join(traceback.format_exception(error)).splitlines()])
    elif not is_expected:
        message += " (internal error of deepforecast: please report it with the output of --traceback)"
    if "--json" not in words or not _print_json_error(error, message):
        streams.print_note(message, "error")
    return USER_ERROR if is_expected else INTERNAL_ERROR


def error_message(error: BaseException) -> str:
    """Return the message of an error."""
    if isinstance(error, OSError) and not isinstance(error, DeepForecastError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, MemoryError):
        return "Not enough memory. Pass fewer series or rows at a time."
    return str(error) if isinstance(error, DeepForecastError) else f"{type(error).__name__}: {error}"


def _option_note(error: BaseException, options: Collection[str]) -> str:
    """The option that sets the parameter of an error, if the command has it."""
    parameter = getattr(error, "parameter", None) or ""
    option = f"--{OPTION_NAMES.get(parameter, parameter.replace('_', '-'))}"
    return f" (option {option})" if option in options else ""


@contextmanager
def print_warnings() -> Iterator[None]:
    """Show each warning once, as one line on standard error."""
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *positional: Any, **keywords: Any) -> None:
        """Print a warning once."""
        from_library = issubclass(category, DataWarning | TrainingWarning)
        text = str(message) if from_library else f"{category.__name__}: {message}"
        if text not in printed:
            printed.add(text)
            streams.print_note(text, "warning")

    with warnings.catch_warnings():
        for category in () if sys.warnoptions else (DataWarning, TrainingWarning):  # unless filtered by the user (python -W)
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


def _run_without_command(words: Sequence[str]) -> int:
    """Run `deepforecast` with `--help`, `--version` or no arguments."""
    if words and words[0] not in ("-h", "--help", "--version"):
        raise ParameterError(
            f"Options must come after the command, got {format_value(words[0])!r} before it. See deepforecast --help."
        )
    parser = Parser(
        "deepforecast",
        "COMMAND ...",
        "Time-series forecasting with statistical, machine learning and deep learning models.",
        EPILOG,
    )
    commands = parser.add_argument_group("commands")
    for name, what in COMMANDS.items():
        commands.add_argument(name, help=what, nargs="?")
    parser.add_argument("-h", "--help", action="store_true", help="show this help and exit")
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    values = parser.parse(words)
    if values.version:
        from deepforecast import __version__

        streams.print_text(f"deepforecast {__version__}")
        return SUCCESS
    streams.print_text(parser.format_help().rstrip())
    return SUCCESS if values.help else USER_ERROR


def _print_json_error(error: BaseException, message: str) -> bool:
    """Print an error as JSON to standard output; False if that cannot be written."""
    from deepforecast.cli.json_output import json_text

    content: dict[str, Any] = {"type": type(error).__name__, "message": message}
    if isinstance(error, DeepForecastError):
        content |= {"hint": error.hint, "parameter": error.parameter, "series": list(error.series)}
    try:
        streams.flush()  # output written before the error
        streams.write_result((json_text({"error": content}) + "\n").encode())
    except OSError:
        return False
    return True
