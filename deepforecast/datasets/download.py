"""Getting a set from its public home into the user's cache: files, rows, their hash, and only then the set's own files.

The cache is a folder of the user's (`cache()`), made when the first set is downloaded. A set lies in it as in a data folder,
one parquet file a part.
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
from deepforecast.datasets.content import content
from deepforecast.datasets.fetch import fetch
from deepforecast.datasets.homes import HOMES, Home
from deepforecast.errors import DataError, SaveError, format_value, warn

if TYPE_CHECKING:
    import pandas as pd

CACHE, OFFLINE = "DEEPFORECAST_CACHE", "DEEPFORECAST_OFFLINE"
FREE = ("MIT",)  # licences under which data may be used for anything: of these nothing has to be said
MAIN = "train"  # the part whose file says that a set is there: written last


def cache() -> Path:
    """The folder of downloaded sets: that of DEEPFORECAST_CACHE, or the system's usual place for caches."""
    if named := os.environ.get(CACHE, "").strip():
        return Path(named).expanduser() / "data"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "deepforecast" / "data"


def obtain(folder: str, card: Card) -> None:
    """Download the set, make its rows, compare them with their hash, and put its files into the cache."""
    home = HOMES[folder]
    if os.environ.get(OFFLINE, "").strip() not in ("", "0"):
        raise DataError(
            f"{folder} is not on this machine, and nothing is downloaded while the environment variable {OFFLINE} is set. "
            f"Unset it, or set DEEPFORECAST_DATA to a folder that holds {folder}/."
        )
    if not card.licence.startswith(FREE):
        warn(f"{folder} is downloaded from {urlsplit(home.files[0].address).netloc}. Its licence: {card.licence}.")
    place = cache() / folder
    raw, files = place / "raw", {}
    for number, remote in enumerate(home.files, 1):
        count = f" ({number} of {len(home.files)})" if len(home.files) > 1 else ""
        files[remote.name] = fetch(remote, raw / remote.name, f"{folder}: {remote.name}{count}")
    frames = _made(folder, home, files)
    for part in sorted(frames, key=lambda part: part == MAIN):
        _keep(frames[part], place / f"{part}.parquet")
    with contextlib.suppress(OSError):  # another process may still be at it; what is left harms nothing
        shutil.rmtree(raw)


def _made(folder: str, home: Home, files: dict[str, Path]) -> dict[str, pd.DataFrame]:
    """The frames by part; rows other than the catalogue's are not kept."""
    where = ", ".join(str(path) for path in files.values())
    try:
        frames = home.make(files)
    except (ValueError, KeyError, IndexError, StopIteration, OSError, UnicodeError) as error:
        raise DataError(
            f"{folder} is made of files of a known form; {where} could not be read so ({type(error).__name__}: "
            f"{format_value(str(error))}). The public copy has changed, or is damaged: delete it and load again."
        ) from error
    for part, wanted in home.content.items():
        if (found := content(frames[part])) != wanted:
            raise DataError(
                f"The rows of {folder}, part {part!r}, have to have the hash {wanted}; those made of {where} have {found} and "
                f"are not kept. The public copy has changed, or is damaged: delete it and load again."
            )
    return frames


def _keep(frame: pd.DataFrame, path: Path) -> None:
    """Write a part, whole or not at all."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        frame.to_parquet(new, index=False, compression="zstd")
        os.replace(new, path)
    except OSError as error:
        raise SaveError(
            f"Downloads are kept in a folder that can be written to; {path} cannot be written ({format_value(str(error))}). "
            f"Make room, or name another folder by the environment variable {CACHE}."
        ) from error
    finally:
        new.unlink(missing_ok=True)
