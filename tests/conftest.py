"""What all tests share: hypothesis without chance, matplotlib without a screen, and the benchmark data where there are any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from deepforecast.core.threads import PASSIVE

os.environ["MPLBACKEND"] = "Agg"  # before matplotlib is first imported, and for child processes too
os.environ.pop("COLUMNS", None)  # set by pytest's workers: tables are as wide as where there is no terminal

# Idle threads of libraries that modules of tests import sleep, as where the package loads them: those that spin cost minutes.
os.environ.update(PASSIVE)


def pytest_collection_finish() -> None:
    """Tests find the environment without it."""
    for name in PASSIVE:
        os.environ.pop(name, None)


settings.register_profile("deterministic", derandomize=True, deadline=None, database=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of benchmark data: DEEPFORECAST_DATA, or shared/data beside the checkout."""
    named = os.environ.get("DEEPFORECAST_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no benchmark data: {'DEEPFORECAST_DATA' if named else '../shared/data'} is not a folder")
    return folder
