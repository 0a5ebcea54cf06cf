"""Parsing of timestamps: ISO-8601 or --date-format; ambiguous dates such as 05/01/2024 are never guessed."""

from __future__ import annotations

from typing import Any

from deepforecast.cli.arguments import TextFormat
from deepforecast.cli.numerals import describe_cells
from deepforecast.data.key_columns import TEXT_TIME
from deepforecast.errors import DataError, ParameterError, format_value

DIGITS = r"^-?\d+$"
COMPACT_DATES = {  # integers that are probably dates, not time steps
    "%Y%m%d": r"^(18|19|20|21)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$",
    "%Y%m": r"^(18|19|20|21)\d\d(0[1-9]|1[0-2])$",
}
OFFSET = r"(?P<offset>Z|[+-]\d{2}:?\d{2})$"
INTEGER = "integer"


def parse_timestamps(text: Any, name: str, text_format: TextFormat) -> Any:
    """Parse a column of datetimes or integers."""
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(text)
    is_empty = pc.fill_null(pc.equal(trimmed, ""), True)
    if pc.any(is_empty).as_py():
        raise DataError(
            f"Column {name} must have a timestamp in every row; {describe_cells(is_empty, text)}.",
            hint="Correct or drop these rows.",
        )
    if text_format.date_format == INTEGER or (text_format.date_format is None and _all_match(trimmed, DIGITS)):
        return _parse_integers(trimmed, name, is_requested=text_format.date_format == INTEGER)
    if text_format.date_format is None:
        _require_iso(trimmed, name)
    return _to_time_zone(_parse_datetimes(trimmed, name, text_format), name, text_format)


def _parse_integers(text: Any, name: str, is_requested: bool) -> Any:
    """Integer timestamps. Texts that look like dates, e.g. 20240131, raise `DataError` unless integers
    were requested."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for date_format, pattern in COMPACT_DATES.items():
        if not is_requested and len(text) and _all_match(text, pattern):
            raise DataError(
                f"Column {name} must be unambiguous, but contains integers that look like dates, e.g. "
                f"'{format_value(text[0].as_py())}'.",
                hint=f"Pass --date-format {date_format} for dates or --date-format integer for integers.",
            )
    is_invalid = pc.invert(pc.match_substring_regex(text, DIGITS))
    if pc.any(is_invalid).as_py():
        raise DataError(
            f"Column {name} must contain integers; {describe_cells(is_invalid, text)}.",
            hint="Correct these cells, or pass another --date-format.",
        )
    try:
        return pc.cast(text, pa.int64()).to_pandas()
    except pa.ArrowInvalid as error:
        raise DataError(f"Column {name} must contain 64-bit integers: {format_value(str(error), 120)}") from error


def _require_iso(text: Any, name: str) -> None:
    """Raise `DataError` with a suggested --date-format if a cell is not an ISO-8601 timestamp."""
    import pyarrow.compute as pc

    is_invalid = pc.invert(pc.match_substring_regex(text, TEXT_TIME))
    if not pc.any(is_invalid).as_py():
        return
    first = text[pc.index(is_invalid, True).as_py()].as_py()
    slashed = first.count("/") == 2 and first[:2].strip("/").isdecimal()
    suggestion = (
        "--date-format %d/%m/%Y for day first, --date-format %m/%d/%Y for month first"
        if slashed
        else "e.g. --date-format '%d.%m.%Y'"
    )
    raise DataError(
        f"Column {name} must contain ISO-8601 timestamps (2024-01-31, 2024-01-31T09:00); {describe_cells(is_invalid, text)}.",
        hint=f"Pass the format of the column: {suggestion}.",
    )


def _parse_datetimes(text: Any, name: str, text_format: TextFormat) -> Any:
    """Parse datetimes; in UTC if all have an offset and a time zone is given, for later conversion."""
    import pandas as pd

    offsets = _utc_offsets(text) if text_format.date_format is None or "%z" in text_format.date_format else {""}
    to_be_converted = text_format.time_zone is not None and "" not in offsets
    if len(offsets) > 1 and not to_be_converted:
        raise DataError(
            f"Column {name} cannot mix UTC offsets without a time zone.", hint="Pass one, e.g. --time-zone Europe/Berlin."
        )
    try:
        parsed = pd.to_datetime(text.to_pandas(), format=text_format.date_format or "ISO8601", utc=to_be_converted)
    except (ValueError, OverflowError) as error:
        expected = f"with --date-format {format_value(text_format.date_format)}" if text_format.date_format else "as ISO-8601"
        cause = format_value(str(error).partition(". You might")[0], 160)
        raise DataError(f"Column {name} cannot be parsed {expected}: {cause}") from error
    return pd.Series(parsed, name=name)


def _utc_offsets(text: Any) -> set[str]:
    """Return the UTC offsets that occur; an empty string for none."""
    import pyarrow.compute as pc

    offsets = pc.struct_field(pc.extract_regex(text, OFFSET), "offset")
    return set(pc.unique(pc.fill_null(offsets, "")).to_pylist())


def _to_time_zone(times: Any, name: str, text_format: TextFormat) -> Any:
    """Convert timestamps with an offset to the time zone; localize those without."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    zone = text_format.time_zone
    if zone is None:
        return times
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ParameterError(f"--time-zone must be a name such as Europe/Berlin or UTC, got {format_value(zone)!r}.") from None
    if times.dt.tz is not None:
        return times.dt.tz_convert(zone)
    local = times.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    if local.isna().any():
        first = int(local.isna().argmax())
        raise DataError(
            f"Column {name} cannot contain local times that do not exist or occur twice in {zone}: data row {first + 1} contains "
            f"{times[first]}.",
            hint="Use times with an offset, e.g. 2024-10-27T02:00+01:00.",
        )
    return local


def _all_match(text: Any, pattern: str) -> bool:
    import pyarrow.compute as pc

    return pc.all(pc.match_substring_regex(text, pattern)).as_py() is True
