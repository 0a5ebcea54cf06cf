"""Where words beside points can stand without covering a point or each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from deepforecast.plotting.chart import Array

_LETTER, _LINE, _AWAY = 5.8, 11.0, 6.0  # in points, for letters of size 9


class Spot(NamedTuple):
    """An offset from the point in points, and which side of the words is fastened there."""

    right: float
    up: float
    across: str
    upright: str


SPOTS = (
    Spot(_AWAY, 0, "left", "center"),
    Spot(-_AWAY, 0, "right", "center"),
    Spot(0, _AWAY, "center", "bottom"),
    Spot(0, -_AWAY, "center", "top"),
    Spot(_AWAY, _AWAY, "left", "bottom"),
    Spot(-_AWAY, -_AWAY, "right", "top"),
    Spot(-_AWAY, _AWAY, "right", "bottom"),
    Spot(_AWAY, -_AWAY, "left", "top"),
)
Box = tuple[float, float, float, float]  # left, bottom, right, top
_NOWHERE = np.empty((0, 2))


def place(points: Array, words: Sequence[str], keep: Sequence[bool], frame: Box, path: Array = _NOWHERE) -> list[Spot | None]:
    """A spot for each word, None for one that finds no room; a word to `keep` is shown in any case, where it covers least.

    Words cover neither points nor each other nor the straight pieces of `path`, and stay within `frame`.

    >>> close = np.array([[50.0, 50.0], [58.0, 50.0]])
    >>> [spot.across for spot in place(close, ["left", "right"], [True, True], (0, 0, 100, 100))]
    ['right', 'left']
    """
    taken: list[Box] = [(x - 3, y - 3, x + 3, y + 3) for x, y in points]
    pieces: list[Box] = [(*np.minimum(one, other), *np.maximum(one, other)) for one, other in pairwise(path)]
    spots: list[Spot | None] = [None] * len(words)
    for index in sorted(range(len(words)), key=lambda index: not keep[index]):
        boxes = {spot: _box(points[index], words[index], spot) for spot in SPOTS}

        def covered(spot: Spot, boxes: dict[Spot, Box] = boxes) -> tuple[bool, bool, int]:
            box = boxes[spot]
            line = any(_meet(box, piece) for piece in pieces)
            return not _inside(box, frame), line, sum(_meet(box, other) for other in taken)

        best = min(SPOTS, key=covered)
        if keep[index] or covered(best) == (False, False, 0):
            taken.append(boxes[best])
            spots[index] = best
    return spots


def _box(point: Array, word: str, spot: Spot) -> Box:
    wide = _LETTER * len(word)
    left = point[0] + spot.right - {"left": 0.0, "right": wide, "center": wide / 2}[spot.across]
    bottom = point[1] + spot.up - {"bottom": 0.0, "top": _LINE, "center": _LINE / 2}[spot.upright]
    return float(left), float(bottom), float(left + wide), float(bottom + _LINE)


def _inside(box: Box, frame: Box) -> bool:
    return bool(np.all(np.array(box[:2]) >= frame[:2]) and np.all(np.array(box[2:]) <= frame[2:]))


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
