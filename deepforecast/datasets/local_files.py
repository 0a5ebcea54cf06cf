"""Datasets stored as parquet files in data folders.

The folder is given by the environment variable DEEPFORECAST_DATA, `../shared/data` next to a
checkout of this project, or the cache of downloads (see `data_folders`).
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepforecast.datasets import download
from deepforecast.datasets.benchmark_cards import CARDS, GROUPS
from deepforecast.datasets.cards import Card
from deepforecast.datasets.entries import Entry
from deepforecast.datasets.events import align_event_numbers
from deepforecast.errors import DataError, ParameterError, format_value

if TYPE_CHECKING:
    import pandas as pd

FOLDER_VARIABLE = "DEEPFORECAST_DATA"
STATIC_TABLES = {"rossmann": "stores"}  # sets with a separate table of static covariates


def where() -> list[tuple[str, bool]]:
    """Return the folders searched for datasets, in order, and whether each exists.

    Returns
    -------
    list of (str, bool)
        Path and whether it is a folder.
    """
    return [(str(folder), folder.is_dir()) for folder in data_folders()]


def data_folders() -> list[Path]:
    """The folders to search, in order of precedence."""
    configured = os.environ.get(FOLDER_VARIABLE, "").strip()
    checkout = Path(__file__).resolve().parents[2]
    folders = [Path(configured).expanduser()] if configured else []
    if (checkout / "pyproject.toml").is_file():
        folders.append(checkout.parent / "shared" / "data")
    return [*folders, download.cache_folder()]


def entries() -> list[Entry]:
    """The entries of all sets and of their groups of one frequency."""
    return [_make_entry(card, card.name, "") for card in CARDS] + [
        _make_entry(card, folder, prefix) for folder, prefix, card in GROUPS
    ]


def _make_entry(card: Card, folder: str, prefix: str) -> Entry:
    """The entry of a set in `folder`, or of its series whose ids start with `prefix`."""
    return Entry(
        card,
        read=partial(read_set, card, folder, prefix),
        is_available=partial(is_available, folder),
        download=partial(download.download_set, folder, card),
        read_table=lambda table_name: _read_frame([find_table(folder, table_name)], None, prefix),
    )


def is_available(folder: str) -> bool:
    """Whether a data folder contains the set."""
    return any((data_folder / folder / "train.parquet").is_file() for data_folder in data_folders())


def find_table(folder: str, table_name: str) -> Path:
    """The path of a table of a set; raises `DataError` if no data folder has it."""
    if not isinstance(table_name, str) or not re.fullmatch(r"[a-z0-9_]+", table_name):
        raise ParameterError(
            f"`table_name` must consist of lower-case letters, digits and underscores, e.g. 'info', got "
            f"'{format_value(table_name)}'.",
            parameter="table_name",
        )
    for data_folder in data_folders():
        if (path := data_folder / folder / f"{table_name}.parquet").is_file():
            return path
    searched = "; ".join(
        f"{data_folder} ({_describe_folder(data_folder, folder, table_name)})" for data_folder in data_folders()
    )
    raise DataError(
        f"{folder}/{table_name}.parquet was not found. Searched: {searched}.",
        hint=f"Set the environment variable {FOLDER_VARIABLE} to the folder that contains {folder}/.",
    )


def read_set(card: Card, folder: str, prefix: str, split: str | None) -> pd.DataFrame:
    """Read the series of a set whose ids start with `prefix`, with the columns of its card."""
    columns = ["unique_id", "ds", "y", *card.future, *card.past]
    splits = ("train", "test") if split is None else (split,)
    frame = _read_frame([find_table(folder, split_name) for split_name in splits], columns, prefix)
    if folder == "m5_ca_1":
        align_event_numbers(frame)
    if len(splits) > 1:
        # both files have the series in the same order: a stable sort places each series' test rows
        # after its train rows
        order = frame["unique_id"].cat.codes.to_numpy().argsort(kind="stable")
        frame = frame.take(order).reset_index(drop=True)
    if folder not in STATIC_TABLES:
        return frame
    return _add_static(frame, _read_frame([find_table(folder, STATIC_TABLES[folder])], None, ""), card)


def _describe_folder(data_folder: Path, folder: str, table_name: str) -> str:
    if not data_folder.is_dir():
        return "does not exist"
    return f"has no {folder}/{table_name}.parquet" if (data_folder / folder).is_dir() else f"has no folder {folder}"


def _read_frame(paths: list[Path], columns: list[str] | None, prefix: str) -> pd.DataFrame:
    """The rows of all files whose ids start with `prefix`, with categorical ids; `columns` None: all columns."""
    import pyarrow as pa

    tables = [_read_table(path, columns, prefix) for path in paths]
    table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    if prefix:
        table = table.filter(_starts_with(table.column("unique_id"), prefix))
    frame: pd.DataFrame = table.to_pandas()
    frame["unique_id"] = frame["unique_id"].cat.remove_unused_categories()
    return frame


def _read_table(path: Path, columns: list[str] | None, prefix: str) -> Any:
    """Read columns of a file, skipping row groups whose statistics exclude ids with the prefix."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if missing := [name for name in columns or () if name not in file.schema_arrow.names]:
                raise KeyError(f"there is no column {missing[0]}")
            numbers = range(file.num_row_groups)
            row_groups = [number for number in numbers if _may_contain(file.metadata.row_group(number), prefix)]
            table = file.read_row_groups(row_groups, columns=columns)
        return table if pa.types.is_dictionary(table.schema.field("unique_id").type) else _encode_ids(table)
    except (pa.ArrowException, OSError, KeyError) as error:
        expected = f"columns {', '.join(columns)}" if columns else "column unique_id"
        raise DataError(
            f"{path} must be a parquet file with the {expected}, but reading it failed ({format_value(str(error))}).",
            hint="Replace the file by a new copy.",
        ) from error


def _may_contain(row_group: Any, prefix: str) -> bool:
    """Whether a row group may have ids with the prefix, according to its minimum and maximum id."""
    columns = [row_group.column(number) for number in range(row_group.num_columns)]
    ids = next((column.statistics for column in columns if column.path_in_schema == "unique_id"), None)
    if not prefix or ids is None or not ids.has_min_max:
        return True
    return bool(ids.min[: len(prefix)] <= prefix <= ids.max[: len(prefix)])


def _encode_ids(table: Any) -> Any:
    position = table.schema.get_field_index("unique_id")
    return table.set_column(position, "unique_id", table.column("unique_id").dictionary_encode())


def _starts_with(ids: Any, prefix: str) -> Any:
    """A mask of the ids that start with `prefix`, evaluated once per dictionary value."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = [pc.starts_with(chunk.dictionary, prefix).take(chunk.indices) for chunk in ids.chunks]
    return pa.array(np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in chunks]) if chunks else [], pa.bool_())


def _add_static(frame: pd.DataFrame, statics: pd.DataFrame, card: Card) -> pd.DataFrame:
    """Add the static covariates of each series to its rows."""
    ids = frame["unique_id"].cat
    row = statics.set_index(statics["unique_id"].astype(object)).index.get_indexer(ids.categories)
    if (row < 0).any():
        missing_id = format_value(ids.categories[row < 0][0])
        raise DataError(
            f"Each series of {card.name} must have a row of static values, but series '{missing_id}' has none.",
            hint="Replace the set by a new copy.",
        )
    rows = row[ids.codes.to_numpy()]
    for column in card.static:
        frame[column] = statics[column].take(rows).array
    return frame
