"""Checks run on models: one after the other with a report, or as cases for a test runner."""

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
    """One rule on one model; `str(case)` is its id."""

    subject: Subject
    check: Check

    def __str__(self) -> str:
        return f"{self.subject.name}-{self.check.name}"

    @property
    def exemption_reason(self) -> str | None:
        """Why the rule does not apply, by what the model declares, or None if it does."""
        return self.check.exemption_reason(self.subject)

    @property
    def skip_reason(self) -> str | None:
        """Why the rule cannot be checked, or None if it can."""
        return self.check.skip_reason(self.subject)

    @property
    def slow(self) -> bool:
        """Whether the model declares that this rule takes it over two seconds."""
        return self.check.slow is not None and bool(getattr(self.subject.make(), self.check.slow, False))

    def run(self) -> None:
        """Raise `RuleBroken` unless the model keeps the rule."""
        self.check.run(self.subject)


@dataclass(frozen=True)
class Row:
    """What came of one rule on one model."""

    model: str
    rule: str
    outcome: Literal["passed", "failed", "skipped"]
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """The rows of a run; prints as a summary with every failure and every reason for a skip."""

    rows: tuple[Row, ...]

    def with_outcome(self, outcome: str) -> list[Row]:
        """The rows with an outcome: passed, failed or skipped."""
        return [row for row in self.rows if row.outcome == outcome]

    def raise_for_failures(self) -> Report:
        """Raise `RuleBroken` with every failure; give the report itself if there is none."""
        failed = self.with_outcome("failed")
        if failed:
            raise RuleBroken(f"{len(failed)} of {len(self.rows)} checks failed:\n" + "\n".join(row.reason for row in failed))
        return self

    def __str__(self) -> str:
        models = list(dict.fromkeys(row.model for row in self.rows))
        counts = ", ".join(f"{len(self.with_outcome(outcome))} {outcome}" for outcome in ("passed", "failed", "skipped"))
        lines = [f"{format_list(models)}: {len(self.rows)} checks, {counts} in {sum(row.seconds for row in self.rows):.1f} s"]
        lines += [f"  failed   {row.reason}" for row in self.with_outcome("failed")]
        reasons = Counter((row.model, row.reason) for row in self.with_outcome("skipped"))
        lines += [f"  skipped  {count:>2} of {model}: {reason}" for (model, reason), count in reasons.items()]
        return "\n".join(lines)


def cases(models: Any = None, *, only: str | Iterable[str] | None = None) -> list[Case]:
    """Every check on every model: classes, objects or names; all registered models if none are given.

    >>> str(cases("Naive", only="fit_twice_gives_the_same")[0])
    'Naive-fit_twice_gives_the_same'
    """
    selected_checks = _select_checks(only)
    return [Case(subject, check) for subject in make_subjects(models) for check in selected_checks]


def representative(cases: Iterable[Case]) -> list[Case]:
    """The cases that apply; of a rule about code that a family of models shares, the first of each family.

    >>> [str(case) for case in representative(cases("Naive", only="explanations"))]
    ['Naive-explanations_add_up']
    """
    chosen: dict[tuple[str, str], Case] = {}
    for case in cases:
        if case.exemption_reason is None:
            subject, check = case.subject, case.check
            chosen.setdefault((check.name, subject.family if check.shared else subject.name), case)
    return list(chosen.values())


def run(models: Any, *, only: str | Iterable[str] | None = None) -> Report:
    """Run the checks (or `only` those of these names or themes) on a model class or object, or on several.

    >>> from deepforecast import Naive
    >>> run(Naive, only="fit_returns_self").rows[0].outcome
    'passed'
    """
    return Report(tuple(_run_case(case) for case in cases(models, only=only)))


def _run_case(case: Case) -> Row:
    model, name = case.subject.name, case.check.name
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
    all_checks = checks()
    if only is None:
        return all_checks
    names = {only} if isinstance(only, str) else set(only)
    unknown = names - {check.name for check in all_checks} - {check.theme for check in all_checks}
    if unknown:
        raise ParameterError(f"There is no check or theme {format_list(sorted(unknown))}. See deepforecast.testing.checks().")
    return [check for check in all_checks if check.name in names or check.theme in names]
