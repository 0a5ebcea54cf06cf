from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, Optional, TypeVar, Union

import numpy as np
import pytest

from deepforecast.core.params import is_choice, is_instance, resolve_annotation, type_name, union_members
from deepforecast.errors import ParameterTypeError

YES = [
    (3, int), (np.int8(3), int), (np.uint64(3), int), (10**400, int),
    (3, float), (2.5, float), (np.float32(2.5), float), (Fraction(1, 2), float), (float("nan"), float),
    (True, bool), (np.True_, bool), ("a", str), (np.str_("a"), str), (None, type(None)),
    pytest.param(object(), Any, id="object-Any"),
    ([], list), ((1, 2), list[int]), ([1, "a"], list[int | str]), ([[1], [2]], list[list[int]]), ([1], Sequence[int]),
    ((1, 2.5), tuple[int, float]), ([1, 2.5], tuple[int, float]), ((), tuple[int, ...]), ((1, 2, 3), tuple[int, ...]),
    ({"a": 1}, dict[str, int]), ({}, dict[str, int]), ({"a": None}, Mapping[str, int | None]), ({1: 2}, dict),
    (len, Callable), (len, Callable[[int], int]), (int, type), (bool, type[int]), ("a", Literal["a", "b"]), (1, Literal[1]),
]  # fmt: skip
NO = [
    (True, int), (2.0, int), ("3", int), (None, int), (np.float64(3), int), (np.True_, int),
    (True, float), ("2.5", float), (1j, float), (Decimal("2.5"), float), (None, float),
    (1, bool), (0, bool), ("True", bool), (b"a", str), (1, str), (0, type(None)), (False, type(None)),
    ("ab", list), ([1.5], list[int]), ([1, None], list[int]), ([True], list[int]), ([["a"]], list[list[int]]),
    ("ab", Sequence[str]),
    ((1,), tuple[int, float]), ((1, 2, 3), tuple[int, float]), (("a",), tuple[int, ...]), ({1, 2}, list[int]),
    ({"a": "b"}, dict[str, int]), ({1: 1}, dict[str, int]), ([("a", 1)], dict), (3, Callable), (str, type[int]), (3, type),
    ("c", Literal["a", "b"]), (True, Literal[1]), (1, Literal[True]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind"), YES, ids=str)
def test_what_is_of_a_kind(value: Any, kind: Any) -> None:
    assert is_instance(value, kind)


@pytest.mark.parametrize(("value", "kind"), NO, ids=str)
def test_what_is_not(value: Any, kind: Any) -> None:
    assert not is_instance(value, kind)


def test_unions_are_taken_apart_in_every_spelling() -> None:
    wanted = (int, str, type(None))
    for union in (int | str | None, Union[int, str, None], Optional[Union[int, str]], Annotated[int | str | None, "unit"]):  # noqa: UP007, UP045
        assert union_members(union) == wanted
    assert union_members(None) == (type(None),)
    assert union_members(list[int]) == (list[int],)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (int, "an integer above 0"),
        (float, "a finite number above 0"), (str, "a string"), (bool, "True or False"), (type(None), "None"),
        (list[int], "a list of integers above 0"), (list, "a list"), (tuple[float, ...], "a tuple of finite numbers above 0"),
        (tuple[float, float], "a tuple of 2 finite numbers above 0"), (list[str], "a list of strings"),
        (list[int | str], "a list of integers or strings"),
        (list[Any], "a list"), (dict[str, int], "a dict"), (Literal["a", None], "'a' or None"),
        (np.ndarray, "a ndarray"), (Callable[[int], int], "a function"),
    ],
    ids=str,
)  # fmt: skip
def test_names_of_kinds(kind: Any, name: str) -> None:
    assert type_name(kind, " above 0") == name


def test_choices_of_different_types_are_different() -> None:
    assert [one for one in (1, 1.0, True) if is_choice(one, (1,))] == [1]
    assert is_choice(True, (True,))
    assert not is_choice(1, (True,))
    assert is_choice(None, ("a", None))
    assert is_choice(np.str_("a"), ("a",))


class Known:
    pass


def test_annotations_are_understood_in_the_module_of_the_class() -> None:
    assert resolve_annotation("int | None", Known, "size") == int | None
    assert resolve_annotation("Known", Known, "size") is Known
    assert resolve_annotation("Literal['a']", Known, "size") == typing.Literal["a"]


@pytest.mark.parametrize("annotation", ["Unheard", "int |", "np.nothing", TypeVar("T"), 3, "3"])
def test_annotations_that_say_nothing_are_refused_where_they_stand(annotation: Any) -> None:
    with pytest.raises(ParameterTypeError, match=r"Known\.size"):
        resolve_annotation(annotation, Known, "size")
