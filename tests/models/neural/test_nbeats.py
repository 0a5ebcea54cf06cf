"""N-BEATS: its stacks are those there are."""

from __future__ import annotations

import pytest

from deepforecast import NBEATS
from deepforecast.datasets import generate
from deepforecast.errors import ParameterError


@pytest.mark.parametrize(("stacks", "said"), [(["trendy"], "got trendy"), (["trend", ""], "got"), ([], "got none")])
def test_an_unknown_stack_is_refused(stacks: list[str], said: str) -> None:
    with pytest.raises(ParameterError, match=f"stacks is a list of generic, trend, season; {said}"):
        NBEATS(3, stacks=stacks, max_steps=2).fit(generate(1, 40))
