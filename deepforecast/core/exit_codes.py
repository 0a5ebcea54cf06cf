"""Descriptions of how a worker process ended."""

from __future__ import annotations

import re

from deepforecast.errors import format_value


def describe_exit(error: Exception) -> str:
    """How a worker process ended, from the exit codes in joblib's error, and what to do, to follow "the worker process"."""
    hint = "Run with n_jobs=1 to see what happens."
    exits = re.findall(r"\b(SIG[A-Z0-9]+|EXIT)\((-?\d+)\)", str(error))  # joblib terminates the other workers by SIGTERM
    name, code = next((exit_code for exit_code in exits if exit_code[0] != "SIGTERM"), exits[0] if exits else ("", ""))
    if name == "SIGKILL":
        return "ended with signal SIGKILL, probably for lack of memory. Use fewer series or a smaller n_jobs."
    if name == "EXIT":
        return f"ended with exit status {code}. {hint}"
    if name:
        return f"ended with signal {name}. {hint}"
    reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0].rstrip('.')}"
    return f"did not return its results: {format_value(reason, 200)}. {hint}"
