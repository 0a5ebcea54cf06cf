from __future__ import annotations

import pytest

from deepforecast import Conformal, Naive, SeasonalNaive
from deepforecast.core.params import param
from deepforecast.errors import ParameterError
from deepforecast.testing.subject import subjects
from deepforecast.testing.worlds import HORIZON
from tests.testing.toys import Last, Needy


class Sized(Last):
    learning_example = {"size": 50}  # noqa: RUF012

    size: int = param(10, at_least=1, help="of nothing")

    @classmethod
    def examples(cls) -> list[dict[str, int]]:
        return [{"size": 2}, {"size": 3}]


def test_a_class_is_checked_with_its_examples() -> None:
    first, second = subjects(Sized)
    assert (first.name, second.name) == ("Sized", "Sized.1")
    assert (first.make().size, second.make().size, second.make().horizon) == (2, 3, HORIZON)
    assert second.learned().size == 50
    assert second.learned(size=4).size == 4
    assert second.make(size=5, alias="x") == Sized(horizon=HORIZON, size=5, alias="x")


def test_an_object_is_checked_with_its_own_parameters() -> None:
    (subject,) = subjects(SeasonalNaive(season_length=7, horizon=9, alias="weekly"))
    assert subject.name == "weekly"
    assert subject.make() == SeasonalNaive(season_length=7, horizon=HORIZON, alias="weekly")


def test_a_wrapper_gets_a_simple_model_of_its_own() -> None:
    (subject,) = subjects("Conformal")
    assert subject.make() == Conformal(SeasonalNaive(), horizon=HORIZON)
    assert subject.make().model is not subject.make().model


def test_what_nobody_can_guess_is_asked_for() -> None:
    with pytest.raises(ParameterError, match=r"Needy needs table: its class method examples\(\) says"):
        subjects(Needy)
    assert subjects(Needy(table={"a": 1}))[0].make() == Needy(table={"a": 1}, horizon=HORIZON)


@pytest.mark.parametrize("model", [int, 3, object()])
def test_what_is_no_model_is_refused(model: object) -> None:
    with pytest.raises(ParameterError, match="A model is a Forecaster"):
        subjects(model)


def test_fits_are_shared_and_copies_are_not() -> None:
    (subject,) = subjects(Naive)
    assert subject.fitted() is subject.fitted()
    copy = subject.fitted_copy()
    assert copy == subject.fitted()
    assert copy.state_ is not subject.fitted().state_


def test_precision_is_that_of_the_family_unless_declared() -> None:
    assert subjects("Naive")[0].precision == 1e-6
