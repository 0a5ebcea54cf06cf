"""Download of datasets to the user's cache: files are converted, verified and stored as parquet.

The cache (`cache_folder()`) is created with the first download. It has the layout of a data folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deepforecast.datasets.cards import Card
from deepforecast.datasets.content_hash import content_hash
from deepforecast.datasets.sources import SOURCES, Source
from deepforecast.datasets.transfer import fetch
from deepforecast.errors import DataError, SaveError, format_value, warn

if TYPE_CHECKING:
    import pandas as pd

CACHE_VARIABLE, OFFLINE_VARIABLE = "DEEPFORECAST_CACHE", "DEEPFORECAST_OFFLINE"
PERMISSIVE_LICENCES = ("MIT",)  # licences without restrictions, for which no warning is needed
MAIN_TABLE = "train"  # the table whose file marks a set as available: written last


def cache_folder() -> Path:
    """The folder of downloads: DEEPFORECAST_CACHE, or the cache folder of the system."""
    if configured := os.environ.get(CACHE_VARIABLE, "").strip():
        return Path(configured).expanduser() / "data"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "deepforecast" / "data"


def download_set(folder: str, card: Card) -> None:
    """Download a set, convert and verify it, and write its tables to the cache."""
    source = SOURCES[folder]
    if os.environ.get(OFFLINE_VARIABLE, "").strip() not in ("", "0"):
        raise DataError(
            f"Dataset {folder} is not on this machine and cannot be downloaded while the environment "
            f"variable {OFFLINE_VARIABLE} is set. Unset it, or set DEEPFORECAST_DATA to a folder "
            f"that contains {folder}/."
        )
    if not card.licence.startswith(PERMISSIVE_LICENCES):
        warn(f"Downloading {folder} from {urlsplit(source.files[0].address).netloc}. Licence: {card.licence}.")
    set_folder = cache_folder() / folder
    raw, files = set_folder / "raw", {}
    for number, remote in enumerate(source.files, 1):
        progress = f" ({number} of {len(source.files)})" if len(source.files) > 1 else ""
        files[remote.name] = fetch(remote, raw / remote.name, f"{folder}: {remote.name}{progress}")
    frames = _convert_files(folder, source, files)
    for table_name in sorted(frames, key=lambda table_name: table_name == MAIN_TABLE):
        _write_table(frames[table_name], set_folder / f"{table_name}.parquet")
    with contextlib.suppress(OSError):  # another process may still use it; leftovers are harmless
        shutil.rmtree(raw)


def _convert_files(folder: str, source: Source, files: dict[str, Path]) -> dict[str, pd.DataFrame]:
    """The tables by name; raises `DataError` if the files cannot be read or hashes differ from the catalogue."""
    paths = ", ".join(str(path) for path in files.values())
    try:
        frames = source.make(files)
    except (ValueError, KeyError, IndexError, StopIteration, OSError, UnicodeError) as error:
        raise DataError(
            f"The files of {folder} must have the expected format, but {paths} could not be read "
            f"({type(error).__name__}: {format_value(str(error))}). The public copy has changed or "
            "is damaged: delete the files and load again."
        ) from error
    for table_name, expected in source.hashes.items():
        if (actual := content_hash(frames[table_name])) != expected:
            raise DataError(
                f"The rows of {folder}, table {table_name!r}, must have the hash {expected}, but those "
                f"of {paths} have {actual} and were discarded. The public copy has changed or is "
                "damaged: delete the files and load again."
            )
    return frames


def _write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        frame.to_parquet(temporary, index=False, compression="zstd")
        os.replace(temporary, path)
    except OSError as error:
        raise SaveError(
            f"{path} cannot be written ({format_value(str(error))}).",
            hint=f"Free disk space, or set the environment variable {CACHE_VARIABLE} to another folder.",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
