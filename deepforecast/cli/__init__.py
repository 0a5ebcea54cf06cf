"""The command line `deepforecast`: each command is a thin wrapper around the function of the same name.

Results go to standard output, warnings and errors (one line each) to standard error. Exit codes: 0 success; 1 a problem
was found (errors in the data, a failed model, a missing package); 2 wrong usage, invalid data or a file that cannot be
read or written; 3 an internal error; 130 interrupted; 141 broken pipe.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line without the program name; by default that of the process.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> main(["--version"])
    deepforecast 0.1.0
    0
    """
    from deepforecast.cli.program import run

    return run(arguments)
