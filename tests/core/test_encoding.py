from __future__ import annotations

import time
from contextlib import suppress

import pytest

from deepforecast.core.encoding import MAX_DEPTH, decode_json, encode_json


def test_brackets_in_text_are_not_depth() -> None:
    text = "[{" * 1_000 + '\\" \\\\'
    assert decode_json(encode_json({"a": text, text: [text]})) == {"a": text, text: [text]}


def test_depth_up_to_the_limit_is_read() -> None:
    decode_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    decode_json(b"[" + b"[[]]," * 1_000 + b"0]")
    with pytest.raises(ValueError, match=f"levels deep, got {MAX_DEPTH + 1}"):
        decode_json(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))


@pytest.mark.parametrize("start", [b'["\\",', b'["],["]', b'[""]]]]]', b"]]]]]]]]]", b'["a\\\\",'])
def test_depth_cannot_be_hidden_before_the_parser_sees_it(start: bytes) -> None:
    with pytest.raises(ValueError):  # never RecursionError
        decode_json(start + b"[" * 100_000)


@pytest.mark.parametrize("piece", [b'"', b'\\"', b"\\", b'"\\', b"[", b'{"":', b"1", b"0.1e", b'"\\ud800'])
def test_a_megabyte_of_anything_is_judged_quickly(piece: bytes) -> None:
    start = time.process_time()
    for data in (piece * (1_000_000 // len(piece)), b'"' + piece * (1_000_000 // len(piece)), b"-1." + b"1" * 999_990):
        with suppress(ValueError):  # and no other error
            decode_json(data)
    assert time.process_time() - start < 3


@pytest.mark.parametrize("data", ["{}".encode("utf-16"), b"\xef\xbb\xbf{}", b'"\xff"', b'"\xed\xa0\x80"', b"", b"{} {}"])
def test_only_plain_utf8_json_is_read(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_json(data)


def test_numbers_are_kept_exactly() -> None:
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 2**64, -(10**98), True, 1, 1.0]
    assert list(map(repr, decode_json(encode_json(numbers)))) == list(map(repr, numbers))
