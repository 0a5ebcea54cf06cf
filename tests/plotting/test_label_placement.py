"""Words beside points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.plotting.label_placement import _overlap, _text_box, place_labels

FRAME = (0.0, 0.0, 600.0, 300.0)
POINTS = st.lists(st.tuples(st.floats(0, 600), st.floats(0, 300)), min_size=1, max_size=25)


@given(POINTS)
def test_words_cover_neither_each_other_nor_a_point_and_stay_inside(points: list[tuple[float, float]]) -> None:
    array = np.array(points)
    words = [f"word {at}" for at in range(len(points))]
    spots = place_labels(array, words, [False] * len(words), FRAME)
    boxes = [(at, _text_box(array[at], words[at], spot)) for at, spot in enumerate(spots) if spot]
    for at, box in boxes:
        assert not any(_overlap(box, other) for index, other in boxes if index != at)
        assert not any(box[0] < x < box[2] and box[1] < y < box[3] for x, y in points)
        assert box[0] >= FRAME[0]
        assert box[3] <= FRAME[3]


def test_a_word_to_keep_is_shown_where_there_is_no_room() -> None:
    crowd = np.array([[300.0 + dx, 150.0 + dy] for dx in range(-40, 41, 4) for dy in range(-40, 41, 4)])
    words = ["word"] * len(crowd)
    middle = int(np.argmin(np.abs(crowd - [300, 150]).sum(axis=1)))
    keep = [at == middle for at in range(len(crowd))]
    assert place_labels(crowd, words, [False] * len(crowd), FRAME)[middle] is None
    assert place_labels(crowd, words, keep, FRAME)[middle] is not None


@pytest.mark.parametrize(("path", "across"), [(None, "left"), ([[100.0, 100.0], [200.0, 100.0]], "right")])
def test_a_line_is_not_covered(path: list[list[float]] | None, across: str) -> None:
    free = np.empty((0, 2)) if path is None else np.array(path)
    (spot,) = place_labels(np.array([[100.0, 100.0]]), ["word"], [True], FRAME, free)
    assert spot is not None
    assert spot.horizontal == across
