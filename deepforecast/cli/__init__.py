"""The command line `deepforecast`: every command is a thin shell around the function of the same name.

Results go to standard output, warnings and errors (a line each) to standard error. Exit codes: 0 well; 1 something was found
(errors in the data, a model that failed, a package missing); 2 wrong use, bad data or a file that cannot be read or written;
3 a fault of the library itself; 130 interrupted; 141 the reader of the output went away.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; `arguments` are those of the process if not given.

    >>> main(["--version"])
    deepforecast 0.1.0
    0
    """
    from deepforecast.cli.program import run

    return run(arguments)
