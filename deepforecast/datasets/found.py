"""Sets that lie in a folder of parquet files: `<folder>/<set>/train.parquet`, `test.parquet`, perhaps others.

The folder is the one that `DEEPFORECAST_DATA` names, or `../shared/data` beside a checkout of this project, or the cache of
what was downloaded. Another place to look in is one more line of `places`.
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepforecast.datasets import download
from deepforecast.datasets.cards import Card
from deepforecast.datasets.entries import Entry
from deepforecast.datasets.events import name_events_alike
from deepforecast.datasets.found_cards import CARDS, GROUPS
from deepforecast.errors import DataError, ParameterError, format_value

if TYPE_CHECKING:
    import pandas as pd

VARIABLE = "DEEPFORECAST_DATA"
STATICS = {"rossmann": "stores"}  # sets whose static covariates lie in a table of their own


def where() -> list[tuple[str, bool]]:
    """The places where data are looked for, in order, and whether each exists."""
    return [(str(place), place.is_dir()) for place in places()]


def places() -> list[Path]:
    """The folders to look in: the first that holds the file wins."""
    named = os.environ.get(VARIABLE, "").strip()
    checkout = Path(__file__).resolve().parents[2]
    found = [Path(named).expanduser()] if named else []
    if (checkout / "pyproject.toml").is_file():
        found.append(checkout.parent / "shared" / "data")
    return [*found, download.cache()]


def entries() -> list[Entry]:
    """One entry for each set and for each group of one frequency within a set."""
    return [_entry(card, card.name, "") for card in CARDS] + [_entry(card, folder, prefix) for folder, prefix, card in GROUPS]


def _entry(card: Card, folder: str, prefix: str) -> Entry:
    return Entry(
        card,
        read=partial(read, card, folder, prefix),
        there=partial(there, folder),
        obtain=partial(download.obtain, folder, card),
        table=lambda part: _frame([locate(folder, part)], None, prefix),
    )


def there(folder: str) -> bool:
    """Whether the set lies in one of the places."""
    return any((place / folder / "train.parquet").is_file() for place in places())


def locate(folder: str, part: str) -> Path:
    """The path of one file of a set."""
    if not isinstance(part, str) or not re.fullmatch(r"[a-z0-9_]+", part):
        raise ParameterError(f"A table of a dataset is named in lower case, e.g. 'info'; got {format_value(part)!r}.")
    for place in places():
        if (path := place / folder / f"{part}.parquet").is_file():
            return path
    looked = "; ".join(f"{place} ({_state(place, folder, part)})" for place in places())
    raise DataError(
        f"{folder}/{part}.parquet is read from a data folder, and it was not found. Looked in: {looked}. "
        f"Set the environment variable {VARIABLE} to the folder that holds {folder}/."
    )


def read(card: Card, folder: str, prefix: str, split: str | None) -> pd.DataFrame:
    """The rows of a set whose ids begin with `prefix`, with the columns of its card."""
    columns = ["unique_id", "ds", "y", *card.future, *card.past]
    parts = ("train", "test") if split is None else (split,)
    frame = _frame([locate(folder, part) for part in parts], columns, prefix)
    if folder == "m5_ca_1":
        name_events_alike(frame)
    if len(parts) > 1:
        # both files hold the series in the same order: a stable sort puts each series' test after its train rows
        order = frame["unique_id"].cat.codes.to_numpy().argsort(kind="stable")
        frame = frame.take(order).reset_index(drop=True)
    return _with_statics(frame, _frame([locate(folder, STATICS[folder])], None, ""), card) if folder in STATICS else frame


def _state(place: Path, folder: str, part: str) -> str:
    if not place.is_dir():
        return "does not exist"
    return f"has no {folder}/{part}.parquet" if (place / folder).is_dir() else f"has no folder {folder}"


def _frame(paths: list[Path], columns: list[str] | None, prefix: str) -> pd.DataFrame:
    import pyarrow as pa

    tables = [_table(path, columns, prefix) for path in paths]
    table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    if prefix:
        table = table.filter(_begins(table.column("unique_id"), prefix))
    frame: pd.DataFrame = table.to_pandas()
    frame["unique_id"] = frame["unique_id"].cat.remove_unused_categories()
    return frame


def _table(path: Path, columns: list[str] | None, prefix: str) -> Any:
    """The columns of a file; where it says which ids its parts hold, only the parts that may hold ids of the prefix."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if lacking := [name for name in columns or () if name not in file.schema_arrow.names]:
                raise KeyError(f"there is no column {lacking[0]}")
            parts = [part for part in range(file.num_row_groups) if _may_hold(file.metadata.row_group(part), prefix)]
            table = file.read_row_groups(parts, columns=columns)
        return table if pa.types.is_dictionary(table.schema.field("unique_id").type) else _with_coded_ids(table)
    except (pa.ArrowException, OSError, KeyError) as error:
        wanted = f"columns {', '.join(columns)}" if columns else "column unique_id"
        raise DataError(
            f"{path} has to be a parquet file with the {wanted}; reading it failed ({format_value(str(error))}). Copy it anew."
        ) from error


def _may_hold(part: Any, prefix: str) -> bool:
    """Whether a part of a file may hold ids that begin with the prefix, by the least and greatest id it declares."""
    columns = [part.column(number) for number in range(part.num_columns)]
    ids = next((column.statistics for column in columns if column.path_in_schema == "unique_id"), None)
    if not prefix or ids is None or not ids.has_min_max:
        return True
    return bool(ids.min[: len(prefix)] <= prefix <= ids.max[: len(prefix)])


def _with_coded_ids(table: Any) -> Any:
    place = table.schema.get_field_index("unique_id")
    return table.set_column(place, "unique_id", table.column("unique_id").dictionary_encode())


def _begins(ids: Any, prefix: str) -> Any:
    """A mask of the ids that begin with `prefix`: asked once for each id, not for each row."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = [pc.starts_with(chunk.dictionary, prefix).take(chunk.indices) for chunk in ids.chunks]
    return pa.array(np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in chunks]) if chunks else [], pa.bool_())


def _with_statics(frame: pd.DataFrame, statics: pd.DataFrame, card: Card) -> pd.DataFrame:
    """The frame with each series' static values on each of its rows."""
    ids = frame["unique_id"].cat
    row = statics.set_index(statics["unique_id"].astype(object)).index.get_indexer(ids.categories)
    if (row < 0).any():
        lacking = format_value(ids.categories[row < 0][0])
        raise DataError(f"Each series of {card.name} has a row of static values; {lacking!r} has none. Copy the set anew.")
    lines = row[ids.codes.to_numpy()]
    for column in card.static:
        frame[column] = statics[column].take(lines).array
    return frame
