from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

from deepforecast.core import encoding
from deepforecast.core.encoding import FORMAT_VERSION, MAGIC, MAX_MANIFEST
from deepforecast.core.encoding import read_archive as read
from deepforecast.core.encoding import write_archive as write
from deepforecast.errors import ModelFileError, ParameterTypeError, SaveError

DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (2, 1, 3, 1)]

numbers = st.integers(-(10**90), 10**90) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
manifests = st.dictionaries(st.text(), values, max_size=5)
shapes = numpy_strategies.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
any_array = st.sampled_from([order + name for name in DTYPES for order in "<>"]).flatmap(
    lambda dtype: numpy_strategies.arrays(np.dtype(dtype), shapes)
)
names = st.text().filter(lambda name: name != "__metadata__")


def assert_same(found: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> None:
    assert found.keys() == given.keys()
    for name, array in given.items():
        native = array.astype(array.dtype.newbyteorder("="))
        assert found[name].dtype == native.dtype
        assert found[name].dtype.isnative
        assert found[name].shape == native.shape
        assert found[name].tobytes() == native.tobytes()  # bit for bit, payload of NaN and sign of zero included


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_shape_comes_back(tmp_path: Path, dtype: str) -> None:
    bits = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 256, 1_000, dtype=np.uint8)
    arrays = {str(shape): bits.view(dtype)[: math.prod(shape)].reshape(shape) for shape in SHAPES}
    write(tmp_path / "m", {}, arrays)
    assert_same(read(tmp_path / "m")[1], arrays)


@given(manifest=manifests, arrays=st.dictionaries(names, any_array, max_size=4))
def test_any_content_comes_back(tmp_path_factory: pytest.TempPathFactory, manifest: Any, arrays: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any-content"
    write(path, manifest, arrays)
    found = read(path)
    assert found[0] == manifest
    assert json.dumps(found[0], sort_keys=True) == json.dumps(manifest, sort_keys=True)  # True is not 1, -0.0 is not 0.0
    assert_same(found[1], arrays)


def test_no_content_comes_back(tmp_path: Path) -> None:
    write(tmp_path / "m", {}, {})
    assert read(tmp_path / "m") == ({}, {})


def test_arrays_that_lie_oddly_in_memory_come_back(tmp_path: Path) -> None:
    grid = np.arange(60.0).reshape(6, 10)
    fixed = np.arange(3)
    fixed.flags.writeable = False
    mapped = np.memmap(tmp_path / "mapped", dtype="f4", mode="w+", shape=(4,))
    arrays = {
        "strided": grid[::2, ::-3],
        "transposed": grid.T,
        "broadcast": np.broadcast_to(np.float32(2), (3, 4)),
        "unaligned": np.frombuffer(bytes(range(17)), np.uint8)[1:].view("f8"),
        "big endian": grid.astype(">f8")[:, 1],
        "read-only": fixed,
        "mapped": mapped,
    }
    write(tmp_path / "m", {}, arrays)
    assert_same(read(tmp_path / "m")[1], arrays)


def test_arrays_read_are_writable_and_aligned(tmp_path: Path) -> None:
    write(tmp_path / "m", {}, {"odd": np.ones(3, "i1"), "a": np.ones(5), "scalar": np.array(1.5), "empty": np.ones((0, 2))})
    for array in read(tmp_path / "m")[1].values():
        assert array.flags.writeable
        assert array.flags.aligned
        assert array.flags.c_contiguous


def test_caller_keeps_his_content(tmp_path: Path) -> None:
    manifest, arrays = {"b": [1], "a": {}}, {"x": np.arange(3, dtype=">i4")}
    write(tmp_path / "m", manifest, arrays)
    assert (manifest, list(manifest)) == ({"b": [1], "a": {}}, ["b", "a"])
    assert arrays["x"].dtype == ">i4"


def test_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    keys = [f"k{i}" for i in range(50)]
    for name, order in (("a", keys), ("b", keys[::-1])):
        write(tmp_path / name, {k: {k: 1, "z": 2.5} for k in order}, {k: np.full(3, keys.index(k), "f4") for k in order})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_same_bytes_in_every_process(tmp_path: Path, run_child: Callable[..., str]) -> None:
    code = """if True:
        import sys, numpy as np
        from deepforecast.core.encoding import write_archive as write
        names = set("abcdefghijklmnop")
        write(sys.argv[1], {name: 1 for name in names}, {name: np.ones(2) for name in names})
    """
    for seed in "12":
        run_child(code, tmp_path / seed, PYTHONHASHSEED=seed)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_layout_is_the_documented_one(tmp_path: Path, sealed: Callable[..., bytes]) -> None:
    header = b'{"x":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}}'.ljust(56)
    block = struct.pack("<Q", len(header)) + header + struct.pack("<hh", 1, -2)
    expected = sealed(b'{"a":"\\u00e9","b":[1.5,null,true]}', block)
    write(tmp_path / "m", {"b": [1.5, None, True], "a": "é"}, {"x": np.array([1, -2], "i2")})
    assert (tmp_path / "m").read_bytes() == expected
    assert expected.startswith(MAGIC + struct.pack("<I", FORMAT_VERSION))


def test_block_is_read_by_safetensors_and_the_other_way_round(tmp_path: Path, sealed: Callable[..., bytes]) -> None:
    arrays = {"x": np.arange(6.0).reshape(2, 3), "é\n": np.array([True, False]), "s": np.array(3, "u2")}
    write(tmp_path / "m", {}, arrays)
    assert_same(safetensors.numpy.load((tmp_path / "m").read_bytes()[52 + len("{}") :]), arrays)
    (tmp_path / "n").write_bytes(sealed(b"{}", safetensors.numpy.save(arrays)))
    assert_same(read(tmp_path / "n")[1], arrays)


UNSTORABLE: dict[str, tuple[Any, Any, str]] = {
    "NaN": ({"a": math.nan}, {}, "JSON"),
    "infinity": ({"a": [math.inf]}, {}, "JSON"),
    "object": ({"a": object()}, {}, "JSON"),
    "numpy integer": ({"a": np.int64(1)}, {}, "JSON"),
    "number as key": ({1: "a"}, {}, "use string keys"),
    "mixed keys": ({1: "a", "b": 2}, {}, "JSON"),
    "tuple": ({"a": (1, 2)}, {}, "lists, not tuples"),
    "surrogate pair": ({"a": "\ud83d\ude00"}, {}, "changes when it is written"),
    "nested 200 deep": ({"a": json.loads("[" * 200 + "]" * 200)}, {}, "deep"),
    "over a megabyte": ({"a": "x" * MAX_MANIFEST}, {}, "1,000,000"),
    "object array": ({}, {"a": np.array([None])}, "object"),
    "text array": ({}, {"a": np.array(["x"])}, "<U1"),
    "time array": ({}, {"a": np.array(["2024-01-01"], "M8[D]")}, "datetime64"),
    "complex array": ({}, {"a": np.ones(2, "c16")}, "complex128"),
    "record array": ({}, {"a": np.zeros(2, [("x", "f8")])}, "dtype"),
    "masked array": ({}, {"a": np.ma.array([1.0], mask=[True])}, "MaskedArray"),
    "list for an array": ({}, {"a": [1.0]}, "list"),
    "number as name": ({}, {1: np.ones(1)}, "named"),
    "reserved name": ({}, {"__metadata__": np.ones(1)}, "__metadata__"),
    "lone surrogate as name": ({}, {"\ud800": np.ones(1)}, "surrogates"),
    "too many arrays": ({}, {f"a{i}": np.ones(0) for i in range(10_001)}, "10,001"),
    "header too long": ({}, {"a" * 1_000_000: np.ones(1)}, "1,000,000"),
}


@pytest.mark.parametrize("case", UNSTORABLE)
def test_content_that_would_not_come_back_is_refused(tmp_path: Path, case: str) -> None:
    manifest, arrays, says = UNSTORABLE[case]
    write(tmp_path / "m", {"old": 1}, {})
    with pytest.raises(SaveError, match=says) as caught:
        write(tmp_path / "m", manifest, arrays)
    assert str(tmp_path / "m") in str(caught.value)
    assert read(tmp_path / "m") == ({"old": 1}, {})
    assert os.listdir(tmp_path) == ["m"]


def test_deep_manifest_that_json_itself_cannot_write_is_refused(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(SaveError, match="JSON"):
        write(tmp_path / "m", {"a": deep}, {})


@pytest.mark.parametrize("kind", [str, Path, os.fsencode])
def test_paths_of_every_kind(tmp_path: Path, kind: Callable[[Path], Any]) -> None:
    write(kind(tmp_path / "日本 \x1b[1m"), {"a": 1}, {})
    assert read(kind(tmp_path / "日本 \x1b[1m")) == ({"a": 1}, {})


@pytest.mark.parametrize("path", [None, 3, ["m"]])
def test_a_path_of_the_wrong_type_is_refused(path: Any) -> None:
    with pytest.raises(ParameterTypeError, match="path"):
        write(path, {}, {})
    with pytest.raises(ParameterTypeError, match="path"):
        read(path)


def test_an_empty_path_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SaveError, match=r"^`path` must be the name of a file, got ''\. Pass a name such as 'model\.dfc'\.$"):
        write("", {}, {})
    with pytest.raises(ModelFileError, match=r"^`path` must be the name of a file, got ''"):
        read("")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 300])
def test_a_path_that_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SaveError, match="cannot be saved"):
        write(path, {}, {})
    with pytest.raises(ModelFileError, match="cannot be read"):
        read(path)
    assert os.listdir(tmp_path) == []


def test_a_missing_file_is_named_and_escaped(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="There is no file at") as caught:
        read(tmp_path / "\x1b[2J\n")
    assert f"{tmp_path}{os.sep}\\x1b[2J\\n" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_failed_save_says_which_system_error_it_was(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match="Is a directory") as caught:
        write(tmp_path, {}, {})
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value.__cause__, IsADirectoryError)
    assert caught.value.errno == caught.value.__cause__.errno


def test_a_file_is_read_through_a_link(tmp_path: Path) -> None:
    write(tmp_path / "m", {"a": 1}, {})
    (tmp_path / "link").symlink_to("m")
    assert read(tmp_path / "link")[0] == {"a": 1}


@pytest.mark.parametrize("alter", ["altered", "shortened"])
def test_a_file_that_changes_between_its_two_readings_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alter: str
) -> None:
    write(tmp_path / "m", {}, {"x": np.ones(1_000_000)})

    def digest_then_alter(*arguments: Any) -> Any:
        digest = file_digest(*arguments)
        with open(tmp_path / "m", "r+b") as file:
            file.seek(-1, os.SEEK_END)
            if alter == "altered":
                file.write(b"\0")
            else:
                file.truncate()
        return digest

    monkeypatch.setattr(encoding, "file_digest", digest_then_alter)
    with pytest.raises(ModelFileError, match="checksum"):
        read(tmp_path / "m")
