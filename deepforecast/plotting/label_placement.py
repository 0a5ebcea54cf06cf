"""Placement of labels next to points without overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from deepforecast.plotting.chart import Array

_LETTER, _LINE, _OFFSET = 5.8, 11.0, 6.0  # in points, for letters of size 9


class Spot(NamedTuple):
    """Offset from the point in points, and alignment of the label."""

    dx: float
    dy: float
    horizontal: str
    vertical: str


SPOTS = (
    Spot(_OFFSET, 0, "left", "center"),
    Spot(-_OFFSET, 0, "right", "center"),
    Spot(0, _OFFSET, "center", "bottom"),
    Spot(0, -_OFFSET, "center", "top"),
    Spot(_OFFSET, _OFFSET, "left", "bottom"),
    Spot(-_OFFSET, -_OFFSET, "right", "top"),
    Spot(-_OFFSET, _OFFSET, "right", "bottom"),
    Spot(_OFFSET, -_OFFSET, "left", "top"),
)
Box = tuple[float, float, float, float]  # left, bottom, right, top
_NO_PATH = np.empty((0, 2))


def place_labels(
    points: Array, words: Sequence[str], keep: Sequence[bool], frame: Box, path: Array = _NO_PATH
) -> list[Spot | None]:
    """Position of each label; None if there is no free space.

    Labels to `keep` are always placed, where they overlap least. Labels avoid points, other labels
    and the straight segments of `path`, and stay within `frame`.

    >>> close = np.array([[50.0, 50.0], [58.0, 50.0]])
    >>> [spot.horizontal for spot in place_labels(close, ["left", "right"], [True, True], (0, 0, 100, 100))]
    ['right', 'left']
    """
    obstacles: list[Box] = [(x - 3, y - 3, x + 3, y + 3) for x, y in points]
    segments: list[Box] = [(*np.minimum(start, other), *np.maximum(start, other)) for start, other in pairwise(path)]
    spots: list[Spot | None] = [None] * len(words)
    for index in sorted(range(len(words)), key=lambda index: not keep[index]):
        boxes = {spot: _text_box(points[index], words[index], spot) for spot in SPOTS}

        def covered(spot: Spot, boxes: dict[Spot, Box] = boxes) -> tuple[bool, bool, int]:
            box = boxes[spot]
            line = any(_overlap(box, segment) for segment in segments)
            return not _inside(box, frame), line, sum(_overlap(box, other) for other in obstacles)

        best = min(SPOTS, key=covered)
        if keep[index] or covered(best) == (False, False, 0):
            obstacles.append(boxes[best])
            spots[index] = best
    return spots


def _text_box(point: Array, word: str, spot: Spot) -> Box:
    width = _LETTER * len(word)
    left = point[0] + spot.dx - {"left": 0.0, "right": width, "center": width / 2}[spot.horizontal]
    bottom = point[1] + spot.dy - {"bottom": 0.0, "top": _LINE, "center": _LINE / 2}[spot.vertical]
    return float(left), float(bottom), float(left + width), float(bottom + _LINE)


def _inside(box: Box, frame: Box) -> bool:
    return bool(np.all(np.array(box[:2]) >= frame[:2]) and np.all(np.array(box[2:]) <= frame[2:]))


def _overlap(first: Box, second: Box) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
