from __future__ import annotations

from dataclasses import replace

import pytest

from deepforecast import Capabilities, Forecaster, Naive, param


class Narrowing(Forecaster):
    capabilities = Capabilities(future=True, missing=True)

    plain: bool = param(default=False)

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return replace(declared, missing=False) if self.plain else declared


def test_a_class_says_what_it_can_do_and_an_object_may_do_less() -> None:
    assert Narrowing.capabilities.missing
    assert Narrowing().capabilities is Narrowing.capabilities
    assert not Narrowing(plain=True).capabilities.missing
    assert Narrowing(plain=True).capabilities.future


def test_capabilities_are_inherited_until_said_anew() -> None:
    class Heir(Narrowing):
        pass

    class Other(Narrowing):
        capabilities = Capabilities(static=True)

    assert Heir.capabilities == Narrowing.capabilities
    assert Heir(plain=True).capabilities == Capabilities(future=True)
    assert (Other.capabilities.static, Other.capabilities.future) == (True, False)
    assert Forecaster.capabilities == Capabilities()


@pytest.mark.parametrize("role", ["future", "past", "static"])
def test_roles(role: str) -> None:
    assert Capabilities(**{role: True}).can_use(role)
    assert not Naive().capabilities.can_use(role)


def test_capabilities_are_data() -> None:
    with pytest.raises(AttributeError):
        Naive.capabilities.missing = False
    assert len({Capabilities(), Capabilities(), Capabilities(local=False)}) == 2
