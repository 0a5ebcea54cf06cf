"""Running of checks on models, with a report or as cases for a test runner."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from deepforecast.errors import ParameterError, format_list
from deepforecast.testing.assertions import RuleBroken
from deepforecast.testing.check import Check, checks
from deepforecast.testing.subject import Subject, make_subjects


@dataclass(frozen=True)
class Case:
    """A rule to check on a model; `str(case)` is its id."""

    subject: Subject
    check: Check

    def __str__(self) -> str:
        return f"{self.subject.name}-{self.check.name}"

    @property
    def exemption_reason(self) -> str | None:
        """Why the rule does not apply by the capabilities of the model, or None if it applies."""
        return self.check.exemption_reason(self.subject)

    @property
    def skip_reason(self) -> str | None:
        """Why the rule cannot be checked, or None if it can."""
        return self.check.skip_reason(self.subject)

    @property
    def slow(self) -> bool:
        """Whether the model declares that this rule takes more than two seconds."""
        return self.check.slow is not None and bool(getattr(self.subject.make(), self.check.slow, False))

    def run(self) -> None:
        """Raise `RuleBroken` if the model violates the rule."""
        self.check.run(self.subject)


@dataclass(frozen=True)
class Row:
    """Outcome of a rule on a model."""

    model: str
    rule: str
    outcome: Literal["passed", "failed", "skipped"]
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """Results of a run; `str(report)` is a summary with all failures and reasons for skips."""

    rows: tuple[Row, ...]

    def with_outcome(self, outcome: str) -> list[Row]:
        """Return the rows with an outcome: "passed", "failed" or "skipped"."""
        return [row for row in self.rows if row.outcome == outcome]

    def raise_for_failures(self) -> Report:
        """Raise if any check failed.

        Returns
        -------
        Report
            The report itself.

        Raises
        ------
        RuleBroken
            With all failures.
        """
        failed = self.with_outcome("failed")
        if failed:
            raise RuleBroken(f"{len(failed)} of {len(self.rows)} checks failed:\n" + "\n".join(row.reason for row in failed))
        return self

    def __str__(self) -> str:
        """A line of counts, then each failure, then the reasons of skipped checks with their number."""
        models = list(dict.fromkeys(row.model for row in self.rows))
        counts = ", ".join(f"{len(self.with_outcome(outcome))} {outcome}" for outcome in ("passed", "failed", "skipped"))
        lines = [f"{format_list(models)}: {len(self.rows)} checks, {counts} in {sum(row.seconds for row in self.rows):.1f} s"]
        lines += [f"  failed   {row.reason}" for row in self.with_outcome("failed")]
        reasons = Counter((row.model, row.reason) for row in self.with_outcome("skipped"))
        lines += [f"  skipped  {count:>2} of {model}: {reason}" for (model, reason), count in reasons.items()]
        return "\n".join(lines)


def cases(models: Any = None, *, only: str | Iterable[str] | None = None) -> list[Case]:
    """Return one case per model and rule, e.g. for pytest.

    Parameters
    ----------
    models : class, Forecaster, str or list of these, optional
        Models to check: classes, instances or registered names. Default: all registered models.
    only : str or iterable of str, optional
        Names or themes of the checks. Default: all checks.

    Returns
    -------
    list of Case

    Raises
    ------
    ParameterError
        If `only` contains an unknown check or theme.

    Examples
    --------
    >>> str(cases("Naive", only="fit_twice_gives_the_same")[0])
    'Naive-fit_twice_gives_the_same'
    """
    selected_checks = _select_checks(only)
    return [Case(subject, check) for subject in make_subjects(models) for check in selected_checks]


def representative(cases: Iterable[Case]) -> list[Case]:
    """Select the cases that apply; for rules about code shared by a family, only the first model of each family.

    Parameters
    ----------
    cases : iterable of Case
        Cases to select from.

    Returns
    -------
    list of Case

    Examples
    --------
    >>> [str(case) for case in representative(cases("Naive", only="explanations"))]
    ['Naive-explanations_add_up']
    """
    chosen: dict[tuple[str, str], Case] = {}
    for case in cases:
        if case.exemption_reason is None:
            subject = case.subject
            check = case.check
            chosen.setdefault((check.name, subject.family if check.shared else subject.name), case)
    return list(chosen.values())


def run(models: Any, *, only: str | Iterable[str] | None = None) -> Report:
    """Run the contract checks on one or several models.

    Parameters
    ----------
    models : class, Forecaster, str or list of these
        Models to check: classes, instances or registered names; None: all registered models.
    only : str or iterable of str, optional
        Names or themes of the checks. Default: all checks.

    Returns
    -------
    Report
        One row per model and check; see `Report.raise_for_failures`.

    Examples
    --------
    >>> from deepforecast import Naive
    >>> run(Naive, only="fit_returns_self").rows[0].outcome
    'passed'
    """
    return Report(tuple(_run_case(case) for case in cases(models, only=only)))


def _run_case(case: Case) -> Row:
    """Run one check on one model and time it; only `RuleBroken` counts as a failure, other errors are raised."""
    model = case.subject.name
    name = case.check.name
    reason = case.skip_reason
    if reason is not None:
        return Row(model, name, "skipped", reason)
    begin = time.perf_counter()
    try:
        case.run()
    except RuleBroken as violation:
        return Row(model, name, "failed", str(violation), time.perf_counter() - begin)
    return Row(model, name, "passed", "", time.perf_counter() - begin)


def _select_checks(only: str | Iterable[str] | None) -> list[Check]:
    """The checks with these names or themes; None: all."""
    all_checks = checks()
    if only is None:
        return all_checks
    names = {only} if isinstance(only, str) else set(only)
    unknown = names - {check.name for check in all_checks} - {check.theme for check in all_checks}
    if unknown:
        raise ParameterError(
            f"`only` must contain names of checks or themes, got {format_list(sorted(unknown))}.",
            hint="Use deepforecast.testing.checks() to list them.",
            parameter="only",
        )
    return [check for check in all_checks if check.name in names or check.theme in names]
