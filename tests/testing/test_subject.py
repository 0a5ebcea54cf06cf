from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deepforecast import Capabilities, Conformal, Naive, SeasonalNaive
from deepforecast.core.params import param
from deepforecast.errors import ParameterError
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import make_subjects
from tests.testing.toys import Last, Needy


class Sized(Last):
    learning_example = {"size": 50}  # noqa: RUF012

    size: int = param(default=10, at_least=1, help="of nothing")

    @classmethod
    def examples(cls) -> list[dict[str, int]]:
        return [{"size": 2}, {"size": 3}]


def test_a_class_is_checked_with_its_examples() -> None:
    first, second = make_subjects(Sized)
    assert (first.name, second.name) == ("Sized", "Sized.1")
    assert (first.make().size, second.make().size, second.make().horizon) == (2, 3, HORIZON)
    assert second.make_for_effects().size == 50
    assert second.make_for_effects(size=4).size == 4
    assert second.make(size=5, alias="x") == Sized(horizon=HORIZON, size=5, alias="x")


def test_an_object_is_checked_with_its_own_parameters() -> None:
    (subject,) = make_subjects(SeasonalNaive(season_length=7, horizon=9, alias="weekly"))
    assert subject.name == "weekly"
    assert subject.make() == SeasonalNaive(season_length=7, horizon=HORIZON, alias="weekly")


def test_a_wrapper_gets_a_simple_model_of_its_own() -> None:
    subject, pooled = make_subjects("Conformal")
    assert subject.make() == Conformal(SeasonalNaive(), horizon=HORIZON)
    assert pooled.make() == Conformal(SeasonalNaive(), horizon=HORIZON, pool=True)
    assert subject.make().model is not subject.make().model


def test_what_nobody_can_guess_is_asked_for() -> None:
    with pytest.raises(ParameterError, match=r"Needy must have a class method examples\(\) with a value of table"):
        make_subjects(Needy)
    assert make_subjects(Needy(table={"a": 1}))[0].make() == Needy(table={"a": 1}, horizon=HORIZON)


@pytest.mark.parametrize("model", [int, 3, object()])
def test_what_is_no_model_is_refused(model: object) -> None:
    with pytest.raises(ParameterError, match="`models` must contain Forecasters"):
        make_subjects(model)


def test_fits_are_shared_and_copies_are_not() -> None:
    (subject,) = make_subjects(Naive)
    assert subject.fitted() is subject.fitted()
    copy = subject.fitted_copy()
    assert copy == subject.fitted()
    assert copy.state_ is not subject.fitted().state_


@pytest.mark.parametrize(
    ("declared", "local", "scale", "shift"),
    [
        (1e-9, True, 1e-9, 1e-9),
        (1e-6, True, 1e-6, 1e-6),  # exponential smoothing
        (1e-3, True, 1e-3, 1e-4),  # ARIMA
        (5e-3, False, 5e-3, 1e-3),  # networks
        (1e-6, False, 1e-6, 1e-6),  # regressions
        (0.5, True, 1e-3, 1e-4),
        (0.5, False, 5e-3, 1e-3),
    ],
)
def test_precision_is_as_declared_within_its_limits(declared: float, local: bool, scale: float, shift: float) -> None:
    class Exact(Last):
        capabilities = Capabilities(precision=declared, local=local)

    (subject,) = make_subjects(Exact)
    assert (subject.precision, subject.shift_precision) == (scale, shift)


@pytest.mark.parametrize(
    ("domain", "taken"),
    [("real", [True, True, True]), ("nonnegative", [True, True, False]), ("positive", [True, False, False])],
)
def test_values_are_taken_or_not(domain: Any, taken: list[bool]) -> None:
    class Bounded(Last):
        capabilities = Capabilities(domain=domain)

    (subject,) = make_subjects(Bounded)
    assert [subject.accepts(values) for values in ([1.0, np.nan], [1.0, 0.0], [1.0, -1.0])] == taken


def test_fits_of_different_data_are_kept_apart() -> None:
    (subject,) = make_subjects(Naive)
    ends = [subject.fitted(rows).state_.series.last.tolist() for rows in (0, 5, 0)]
    assert ends[0] == ends[2] != ends[1]
    assert len(subject.fitted_on_series("s1").state_.series) == 1
    assert subject.fitted_on_series("s1").predict().unique_id.tolist() == ["s1"] * HORIZON
    assert subject.calibrated().state_.calibration is not None
    assert subject.calibrated() == subject.make(intervals="conformal")
    assert subject.fitted().state_.calibration is None
