"""Loading what is damaged, foreign or newer (as far as the file alone is concerned)."""

from __future__ import annotations

import io
import json
import os
import random
import socket
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from deepforecast.core.encoding import read_archive as read
from deepforecast.core.encoding import write_archive as write
from deepforecast.errors import ModelFileError

RunChild = Callable[..., str]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A whole model file of a few hundred bytes."""
    arrays = {"weights": np.linspace(0, 1, 20), "flags": np.array([True, False]), "ids": np.arange(5, dtype="i4")}
    write(tmp_path / "small", {"model": "Naive", "numbers": [1, 2.5, None, True], "text": "é"}, arrays)
    return tmp_path / "small"


@pytest.mark.parametrize("size", [20, 100_000])
def test_truncated_file_is_refused(tmp_path: Path, size: int) -> None:
    write(tmp_path / "m", {"model": "Naive"}, {"a": np.arange(size), "b": np.ones(3)})
    whole = (tmp_path / "m").read_bytes()
    for part in range(64):
        (tmp_path / "m").write_bytes(whole[: len(whole) * part // 64])
        start = time.process_time()
        with pytest.raises(ModelFileError, match="cannot be read") as caught:
            read(tmp_path / "m")
        assert str(tmp_path / "m") in str(caught.value)
        assert time.process_time() - start < 1
    (tmp_path / "m").write_bytes(whole)
    assert read(tmp_path / "m")[0] == {"model": "Naive"}


def test_trailing_bytes_are_refused(small: Path) -> None:
    with open(small, "ab") as file:
        file.write(b"\0")
    with pytest.raises(ModelFileError, match="checksum"):
        read(small)


def flipped(whole: bytes, bit: int) -> bytes:
    return whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :]


def judge_flips(path: Path, whole: bytes, bits: list[int]) -> None:
    for bit in bits:
        path.write_bytes(flipped(whole, bit))
        with pytest.raises(ModelFileError, match="cannot be read") as caught:
            read(path)
        assert str(path) in str(caught.value), bit


@pytest.mark.slow
def test_every_flipped_bit_of_a_small_file_is_refused(small: Path) -> None:
    whole = small.read_bytes()
    assert 400 < len(whole) < 800
    judge_flips(small, whole, list(range(8 * len(whole))))


def test_2000_flipped_bits_of_a_larger_file_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "m", {"model": "Naive"}, {"a": np.random.default_rng(0).normal(size=5_000)})
    whole = (tmp_path / "m").read_bytes()
    judge_flips(tmp_path / "m", whole, random.Random(0).sample(range(8 * len(whole)), 2_000))


def png() -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89\0\0\0\0IEND\xaeB`\x82"


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"\x80\x02}q\x00." * 50)
    return file.getvalue()


FOREIGN = {
    "png": png(),
    "zip": zipped("data.csv"),
    "torch zip": zipped("archive/data.pkl"),
    "safetensors": struct.pack("<Q", 2) + b"{}",
    "empty": b"",
    "text": b"unique_id,ds,y\n",
    "magic alone": b"\x89DFC\r\n\x1a\n",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_file_of_another_format_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / kind).write_bytes(FOREIGN[kind])
    with pytest.raises(ModelFileError, match="cannot be read") as caught:
        read(tmp_path / kind)
    assert str(tmp_path / kind) in str(caught.value)


READ_FRUGALLY = """
    results = []
    for path in sys.argv[1:]:
        start = time.process_time()
        try:
            results.append(str(read(path)))
        except ModelFileError as error:
            results.append(str(error))
        assert time.process_time() - start < 10, path
    print(json.dumps([results, peak()]))
"""


def test_path_that_is_not_a_regular_file_is_refused(tmp_path: Path, child: RunChild) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    paths = [str(tmp_path / "fifo"), str(tmp_path / "link"), str(tmp_path), "/dev/zero", "/dev/null", str(tmp_path / "socket")]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(paths[-1])
        results, memory = json.loads(child(READ_FRUGALLY, *paths, timeout=240))
    for path, result in zip(paths, results, strict=True):
        assert path in result
        assert ("the path is a folder, not a file" if path == str(tmp_path) else "it is not a regular file") in result
    assert memory < 200


def test_device_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(ModelFileError, match="/dev/zero cannot be read: it is not a regular file"):
        read("/dev/zero")


def test_path_replaced_by_a_fifo_after_the_check_is_refused(tmp_path: Path, child: RunChild) -> None:
    write(tmp_path / "m", {}, {})
    code = """
        look = os.stat
        def look_then_swap(path, **options):
            status = look(path, **options)
            os.unlink(path)
            os.mkfifo(path)
            return status
        os.stat = look_then_swap
        try:
            read(sys.argv[1])
        except ModelFileError as error:
            print(error)
    """
    assert "it is not a regular file" in child(code, tmp_path / "m", timeout=240)


@pytest.mark.slow
def test_sparse_file_of_4_gigabytes_is_refused(tmp_path: Path, child: RunChild, sealed: Callable[..., bytes]) -> None:
    size, large = 4 * 2**30, 2**30  # the last one is read to its end, as only its checksum is wrong
    header = json.dumps({"a": {"dtype": "U8", "shape": [large], "data_offsets": [0, large]}}).encode()
    starts = {
        "nothing": (b"", "not a model file"),
        "magic": (b"\x89DFC\r\n\x1a\n\2\0\0\0", "format of the file"),
        "long manifest": (sealed(b"", b"", manifest_length=size - 1_000), "the manifest must have at most"),
        "long header": (sealed(b"{}", struct.pack("<Q", size - 1_000)), "header of the arrays must have at most"),
        "well-formed": (sealed(b"{}", struct.pack("<Q", len(header)) + header), "checksum"),
    }
    for name, (start, _) in starts.items():
        with open(tmp_path / name, "wb") as file:
            file.write(start)
            file.truncate(large + len(start) if name == "well-formed" else size)
    results, memory = json.loads(child(READ_FRUGALLY, *(tmp_path / name for name in starts), timeout=240))
    for (name, (_, says)), result in zip(starts.items(), results, strict=True):
        assert str(tmp_path / name) in result
        assert says in result
    assert memory < 200


@pytest.mark.parametrize("intact", [True, False])
def test_newer_format_is_refused_as_newer(tmp_path: Path, sealed: Callable[..., bytes], intact: bool) -> None:
    (tmp_path / "m").write_bytes(sealed(b"{}", struct.pack("<Q", 2) + b"{}", version=4) + (b"" if intact else b"more"))
    with pytest.raises(ModelFileError, match=r"format of the file must be 3, the latest .* got 4"):
        read(tmp_path / "m")


@pytest.mark.parametrize("version", [0, 1])
def test_older_format_is_refused_with_both_versions(tmp_path: Path, sealed: Callable[..., bytes], version: int) -> None:
    (tmp_path / "m").write_bytes(sealed(b"{}", struct.pack("<Q", 2) + b"{}", version=version))
    with pytest.raises(ModelFileError, match=f"format of the file must be 3, the only .* got {version}"):
        read(tmp_path / "m")


def test_current_format_is_read(tmp_path: Path, sealed: Callable[..., bytes]) -> None:
    (tmp_path / "m").write_bytes(sealed(b"{}", struct.pack("<Q", 2) + b"{}", version=3))
    assert read(tmp_path / "m") == ({}, {})
