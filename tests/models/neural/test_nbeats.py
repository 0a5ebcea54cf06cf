"""N-BEATS: its stacks are those there are."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast import NBEATS
from deepforecast.datasets import generate
from deepforecast.errors import ParameterError


@pytest.mark.parametrize(("stacks", "said"), [(["trendy"], "got trendy"), (["trend", ""], "got"), ([], "got an empty list")])
def test_an_unknown_stack_is_refused(stacks: list[str], said: str) -> None:
    with pytest.raises(ParameterError, match=f"`stacks` must be a non-empty list of 'generic', 'trend', 'season', {said}"):
        NBEATS(horizon=3, stacks=stacks, max_steps=2).fit(generate(1, 40))


def test_a_stack_of_seasons_repeats_with_the_season() -> None:
    model = NBEATS(horizon=9, stacks=["season"], season_length=4, hidden_sizes=[8], max_steps=2).fit(generate(1, 60))
    parts = model.explain()
    season = parts.loc[parts["component"] == "season", "value"].to_numpy()
    assert len(season) == 9
    assert np.allclose(season[4:], season[:5], atol=1e-5)
    assert np.ptp(season) > 1e-3
