"""Shapes in the signatures of `nn` are checked in all tests of the package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.nn.shapes import checked_shapes


@pytest.fixture(scope="module", autouse=True)
def shapes_are_checked(request: pytest.FixtureRequest) -> Iterator[None]:
    with checked_shapes(request.module):
        yield
