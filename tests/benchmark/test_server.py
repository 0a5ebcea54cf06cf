from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from deepforecast.benchmark.server import RequestReader


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_a_request_in_two_parts_is_one(pipe: tuple[int, int]) -> None:
    requests = RequestReader(pipe[0])
    os.write(pipe[1], b'{"run": "a"}\n{"run": "b"}\n{"ru')
    assert requests.read_available(None, 1.0) == [{"run": "a"}, {"run": "b"}]
    assert requests.read_available(None, 0.0) == []
    os.write(pipe[1], b'n": "c"}\n')
    assert requests.read_available(None, 1.0) == [{"run": "c"}]


def test_what_came_before_the_end_is_still_there(pipe: tuple[int, int]) -> None:
    requests = RequestReader(pipe[0])
    os.write(pipe[1], b'{"run": "a"}\n')
    assert requests.read_first() == {"run": "a"}


def test_the_end_of_the_input_is_noticed() -> None:
    reading, writing = os.pipe()
    requests = RequestReader(reading)
    os.close(writing)
    assert requests.read_first() is None
    assert not requests.is_open
    os.close(reading)


def test_a_wake_up_is_no_request(pipe: tuple[int, int]) -> None:
    wake, woken = os.pipe()
    os.write(woken, b"x")
    requests = RequestReader(pipe[0])
    assert requests.read_available(wake, 5.0) == []
    assert requests.is_open
    os.close(wake)
    os.close(woken)
