from __future__ import annotations

import inspect
import json
import math
from typing import Any, Literal

import numpy as np
import optuna
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast import Naive, SeasonalNaive
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Param, declared_params, param
from deepforecast.errors import ParameterError, ParameterTypeError
from deepforecast.tuning.space import sample_from


class Example(Forecaster):
    """One parameter of each kind."""

    size: int = param(default=64, at_least=16, at_most=256, low=16, high=256, log=True, help="width")
    rate: float = param(default=0.1, above=0, below=1, low=1e-4, high=0.5, log=True)
    share: float | None = param(default=None, at_least=0, at_most=1)
    depth: Literal[1, 2, 4] = param(default=2, search=(1, 2))
    season: int | Literal["auto"] = param(default="auto", at_least=1)
    attention: Literal["additive", "dot"] | None = param(default="additive", search=(None, "additive"))
    kind: Literal["a", "b"] = param(default="a")
    lags: list[int] | None = param(default=None, at_least=1)
    bounds: tuple[float, float] = param(default=(0.0, 1.0))
    dropout: float = param(default=0.0, at_least=0, below=1, low=0.0, high=0.5, step=0.1, when=lambda held: held["depth"] > 1)
    bias: bool = param(default=True)
    options: dict[str, Any] | None = param(default=None)


def says(wrong: type[Exception], *words: str, **given: Any) -> None:
    with pytest.raises(wrong) as caught:
        Example(**given)
    assert type(caught.value) is wrong
    for word in (*given, *words):
        assert word in str(caught.value)


# -- what a value may be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, 2.5, "5", True, math.nan, [3], None], ids=str)
@pytest.mark.parametrize("model", [Naive, SeasonalNaive, Example])
def test_invalid_horizon_is_refused_on_construction(model: Any, value: Any) -> None:
    if value is None:
        assert model(horizon=None).horizon is None
        return
    with pytest.raises(ParameterError, match=r"`horizon` must be an integer of at least 1"):
        model(horizon=value)
    with pytest.raises(ParameterError, match=r"`horizon` must be an integer of at least 1"):
        model().set_params(horizon=value)


@pytest.mark.parametrize("value", [0, -1, 1.5, "weekly", None], ids=str)
def test_invalid_season_length_is_refused_on_construction(value: Any) -> None:
    with pytest.raises(ParameterError, match="`season_length` must be 'auto' or an integer of at least 1, got"):
        SeasonalNaive(season_length=value)


def test_parameters_out_of_range_are_refused_on_construction() -> None:
    rate = "a finite number above 0 and below 1"
    for value in (0, -1, 1, math.nan, math.inf, -math.inf, np.float32(2)):
        says(ParameterError, rate, rate=value)
    for value in (15, 257, 0, -(10**400), 10**400):
        says(ParameterError, "an integer of at least 16 and at most 256", size=value)
    says(ParameterTypeError, "16.0 (float)", size=16.0)
    says(ParameterTypeError, "'16' (str)", size="16")
    says(ParameterError, "a list of integers of at least 1 or None, got [3, 0]", lags=[3, 0])
    says(ParameterTypeError, "a list of integers of at least 1 or None, got [1, 2.5] (list)", lags=[1, 2.5])
    says(ParameterTypeError, "a tuple of 2 finite numbers", bounds=(1.0, 2.0, 3.0))
    says(ParameterError, "a tuple of 2 finite numbers", bounds=(0.0, math.inf))
    says(ParameterTypeError, "True or False", bias=1)


def test_unknown_parameter_names_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Example has no parameter sise\. Did you mean size\?"):
        Example(sise=3)
    with pytest.raises(ParameterTypeError, match=r"Available: horizon, alias, .*, options\."):
        Example(q=3)
    with pytest.raises(ParameterTypeError, match="no parameter sise"):
        Example().set_params(sise=3)
    with pytest.raises(ParameterTypeError, match="no parameter model__size"):
        Example(model__size=3)


def test_message_of_an_unknown_choice_lists_the_choices() -> None:
    says(ParameterError, "'additive', 'dot' or None, got 'foo'", attention="foo")
    says(ParameterError, "'a' or 'b', got 'c'", kind="c")
    says(ParameterTypeError, "'a' or 'b', got None (NoneType)", kind=None)
    says(ParameterError, "1, 2 or 4, got 3", depth=3)
    says(ParameterTypeError, "1, 2 or 4, got True (bool)", depth=True)
    assert Example(attention=None, depth=np.int64(4), kind="b").attention is None


def test_control_characters_of_a_value_do_not_reach_the_message() -> None:
    for value in ("\x1b[2J\r\n", pd.DataFrame({"\x1b[2J": ["\x1b"]}), ["\x1b"]):
        with pytest.raises(ParameterError) as caught:
            Example(attention=value)
        assert str(caught.value).isprintable()


def test_anything_is_anything() -> None:
    class Free(Forecaster):
        thing: Any = param(default=None)

    value = [math.nan, 10**400, {"a": Naive}]
    assert Free(thing=value).thing is value


def test_a_class_in_place_of_an_object() -> None:
    class Wrapper(Forecaster):
        model: Forecaster = param(kw_only=False, help="whose forecast it is")

    with pytest.raises(
        ParameterTypeError, match=r"`model` must be a Forecaster, got .*Naive.* \(type\)\. Did you mean Naive\(\)\?"
    ):
        Wrapper(Naive)
    with pytest.raises(
        ParameterTypeError, match=r"Wrapper requires `model` \(whose forecast it is\)\. Pass Wrapper\(model=\.\.\.\)"
    ):
        Wrapper()


def outcome(name: str, value: Any) -> Any:
    """What is stored; the value itself where it was refused by the parameter's name."""
    try:
        return getattr(Example(**{name: value}), name)
    except ParameterError as error:
        return value if str(error).startswith(f"`{name}` must be ") else error


@given(st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=3), st.lists(st.integers())))
def test_any_value_is_taken_as_it_is_or_refused_by_name(value: Any) -> None:
    for name in declared_params(Example):
        assert outcome(name, value) is value


# -- the constructor ------------------------------------------------------------------------------------------------------


def test_the_constructor_stores_the_very_objects() -> None:
    lags, options = [1, 7], {"a": [1]}
    model = Example(lags=lags, options=options, size=np.int64(32), bias=np.True_)
    assert model.lags is lags
    assert model.options is options
    assert type(model.size) is np.int64
    assert set(vars(model)) == set(declared_params(Example))


def test_positions() -> None:
    class Wrapper(Forecaster):
        model: Forecaster = param(kw_only=False)
        width: int = param(default=3, kw_only=False)
        other: int = param(default=4)

    inner = Naive()
    assert list(inspect.signature(Wrapper).parameters)[:3] == ["model", "width", "horizon"]
    model = Wrapper(inner, 6)
    assert (model.model is inner, model.width) == (True, 6)
    with pytest.raises(ParameterTypeError, match=r"only model, width by position, got 7\. Use Wrapper\(horizon=7\)"):
        Wrapper(inner, 6, 7)
    with pytest.raises(
        ParameterTypeError, match=r"keyword arguments only, got 12\. Use .*\(horizon=12\) or .*\(season_length=12\)"
    ):
        SeasonalNaive(12)  # type: ignore[call-arg]
    with pytest.raises(ParameterTypeError, match="several values for width"):
        Wrapper(inner, 5, width=5)
    signature = inspect.signature(Wrapper).parameters
    assert [name for name, one in signature.items() if one.kind is one.POSITIONAL_OR_KEYWORD] == ["model", "width"]
    assert signature["model"].default is inspect.Parameter.empty


def test_set_params_changes_all_or_nothing() -> None:
    model = Example(size=32)
    before = model.get_params()
    with pytest.raises(ParameterError, match="rate"):
        model.set_params(size=64, rate=7)
    assert model.get_params() == before
    assert model.set_params(size=64, rate=0.2) is model
    assert (model.size, model.rate) == (64, 0.2)


def test_nested_parameters() -> None:
    class Wrapper(Forecaster):
        model: Forecaster = param()

    inner = SeasonalNaive(season_length=7)
    outer = Wrapper(model=Wrapper(model=inner))
    assert outer.get_params()["model__model__season_length"] == 7
    outer.set_params(model__model__season_length=12, alias="W")
    assert (outer.model.model.season_length, outer.alias, inner.season_length) == (12, "W", 7)
    with pytest.raises(ParameterError, match="season_length"):
        outer.set_params(alias="V", model__model__season_length=0)
    assert outer.alias == "W"
    with pytest.raises(ParameterTypeError, match="Wrapper has no parameter season_length"):
        outer.set_params(model__season_length=3)
    with pytest.raises(ParameterTypeError, match="`alias__size` cannot be set: `alias` must be a model, got W"):
        outer.set_params(alias__size=3)
    copy = outer.clone()
    assert copy == outer
    assert copy.model is not outer.model


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "horizon": st.none() | st.integers(1, 99), "alias": st.none() | st.text(min_size=1), "size": st.integers(16, 256),
        "rate": st.floats(0, 1, exclude_min=True, exclude_max=True), "season": st.just("auto") | st.integers(1, 99),
        "attention": st.sampled_from([None, "additive", "dot"]), "lags": st.none() | st.lists(st.integers(1, 9), max_size=3),
        "bounds": st.tuples(st.floats(-1, 0), st.floats(0, 1)), "bias": st.booleans(),
        "options": st.none() | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    },
)  # fmt: skip


@given(VALUES)
def test_repr_clone_and_get_params_give_an_equal_model(given: dict[str, Any]) -> None:
    model = Example(**given)
    assert eval(repr(model), {"Example": Example}) == model
    assert model.clone() == model
    assert Example(**model.get_params()) == model
    assert Example().set_params(**given) == model
    assert json.loads(json.dumps(model.get_params(), default=list)).keys() == declared_params(Example).keys()


def test_repr_says_what_differs_from_the_defaults() -> None:
    assert repr(Example()) == "Example()"
    assert repr(Example(horizon=3, rate=0.5, alias="it's")) == 'Example(horizon=3, alias="it\'s", rate=0.5)'
    assert repr(Example(bias=np.True_, share=0)) == f"Example(share=0, bias={np.True_!r})"


# -- declarations ---------------------------------------------------------------------------------------------------------


def test_a_subclass_gives_another_default_and_keeps_the_rest() -> None:
    class Weekly(SeasonalNaive):
        horizon: int | None = param(default=7)
        season_length: int | str = param(default=7, help="a week")

    found = declared_params(Weekly)
    assert list(found) == list(declared_params(SeasonalNaive))
    assert (Weekly().horizon, Weekly().season_length, SeasonalNaive().horizon) == (7, 7, None)
    assert Weekly(horizon=3, season_length=12).season_length == 12
    assert (found["horizon"].at_least, found["season_length"].help) == (1, "a week")
    assert repr(Weekly(season_length="auto")) == "Weekly(season_length='auto')"
    with pytest.raises(ParameterError, match="at least 1"):
        Weekly(horizon=0)


def test_a_subclass_searches_elsewhere_or_narrows() -> None:
    class Small(Example):
        size: int = param(default=16, at_most=64, search=(16, 32))
        rate: float = param(default=0.3)

    found = declared_params(Small)
    assert (found["size"].low, found["size"].log, found["size"].search) == (None, False, (16, 32))
    assert (found["size"].at_least, found["size"].at_most) == (16, 64)
    assert (found["rate"].low, found["rate"].high, found["rate"].log) == (1e-4, 0.5, True)
    assert declared_params(Example)["size"].at_most == 256


def test_a_mixin_brings_parameters() -> None:
    class Seeded:
        seed: int = param(default=0, at_least=0)

    class Model(Seeded, Naive):
        width: int = param(default=3)

    class Other(Naive, Seeded):
        pass

    for cls in (Model, Other):
        assert cls().seed == 0
        assert cls(seed=3).get_params()["seed"] == 3
        with pytest.raises(ParameterError, match="seed"):
            cls(seed=-1)


def test_a_declaration_that_would_be_ignored_or_hide_something_is_refused() -> None:
    def body(**held: Any) -> Any:
        annotations = {name: Any for name, value in held.items() if isinstance(value, Param)}
        return lambda: type("Model", (SeasonalNaive,), {"__annotations__": annotations, **held})

    with pytest.raises(
        ParameterTypeError, match=r"Model\.season_length must be declared with param"
    ):
        body(season_length=7)()
    with pytest.raises(ParameterTypeError, match=r"Model\.horizon must be declared with param"):
        body(horizon=property(lambda self: 3))()
    with pytest.raises(ParameterTypeError, match=r"Model\.width must have a type annotation.*width: int = param\(\.\.\.\)"):
        type("Model", (Naive,), {"width": param(default=3)})
    for name in ("fit", "name", "capabilities"):
        with pytest.raises(ParameterTypeError, match=rf"Model\.{name} cannot be a parameter"):
            body(**{name: param(default=3)})()
    for name in ("a__b", "_a", "a_"):
        with pytest.raises(ParameterTypeError, match="underscore"):
            body(**{name: param(default=3)})()


@pytest.mark.parametrize(
    ("annotation", "said", "words"),
    [
        (int, {"default": 0, "at_least": 1}, "`size` must be an integer of at least 1, got 0"),
        (int, {"default": "auto"}, "`size` must be an integer, got 'auto'"),
        (list[int], {"default": [1]}, "the default cannot be a list"),
        (Forecaster, {"default": Naive()}, "the default cannot be a Naive"),
        (int, {"default": 3, "low": 1}, "both `low` and `high`"),
        (int, {"default": 3, "high": 1}, "both `low` and `high`"),
        (int, {"default": 3, "low": 1, "high": 5, "search": [1]}, "cannot be combined"),
        (int, {"default": 3, "low": 5, "high": 1}, "must not exceed `high`"),
        (int, {"default": 3, "low": 0, "high": 5, "log": True}, "above 0 with log=True"),
        (int, {"default": 3, "low": 1, "high": 5, "log": True, "step": 2}, "cannot be used with log=True"),
        (int, {"default": 3, "low": 1, "high": 5, "step": 0}, "`step` must be positive"),
        (int, {"default": 3, "low": 1.5, "high": 5}, "integer `low`"),
        (str, {"default": "a", "low": 1, "high": 5}, "only numeric"),
        (int, {"default": 3, "at_least": 2, "low": 1, "high": 5}, "got 1"),
        (int, {"default": 3, "at_most": 4, "low": 1, "high": 5}, "got 5"),
        (Literal["a", "b"], {"default": "a", "search": ("a", "c")}, "got 'c'"),
    ],
    ids=str,
)
def test_an_unsound_declaration_is_refused_when_the_class_is_made(annotation: Any, said: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        type("Model", (Naive,), {"__annotations__": {"size": annotation}, "size": param(**said)})
    assert words in str(caught.value)
    assert "Model" in str(caught.value)


def test_choices_belong_into_the_annotation() -> None:
    with pytest.raises(
        ParameterTypeError, match=r"Unknown options of `param`: choices.*choices are `Literal` types in the annotation"
    ):
        param(default="a", choices=("a", "b"))


# -- sampling -------------------------------------------------------------------------------------------------------------


def test_every_sampled_configuration_builds() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    params = declared_params(Example)
    defaults = {name: one.default for name, one in params.items()}
    for _ in range(200):
        drawn = sample_from({name: one for name, one in params.items() if one.is_searched}, defaults, study.ask())
        Example(**drawn)
        assert set(drawn) == {"size", "rate", "depth", "attention"} | ({"dropout"} if drawn["depth"] > 1 else set())
        assert type(drawn["size"]) is int
