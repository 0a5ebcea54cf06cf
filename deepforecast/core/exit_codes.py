"""How a worker process ended."""

from __future__ import annotations

import re

from deepforecast.errors import shown


def ending(error: Exception) -> str:
    """How a worker process ended, by the exit codes in joblib's error, and what to do."""
    look = "Run with workers=1 to see what happens there."
    ends = re.findall(r"\b(SIG[A-Z0-9]+|EXIT)\((-?\d+)\)", str(error))  # joblib ends the other workers by SIGTERM
    name, code = next((end for end in ends if end[0] != "SIGTERM"), ends[0] if ends else ("", ""))
    if name == "SIGKILL":
        return "ended with signal SIGKILL, probably for lack of memory. Use fewer series or fewer workers."
    if name == "EXIT":
        return f"ended with exit status {code}. {look}"
    if name:
        return f"ended with signal {name}. {look}"
    reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0].rstrip('.')}"
    return f"did not return its results: {shown(reason, 200)}. {look}"
