"""Files made to do harm. Their checksum is true, so only the strict reading stands in the way.

All are read in one child process under an audit hook; the only event allowed is opening the file itself for reading.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import sqlite3
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pytest

Sealed = Callable[..., bytes]
NO_ARRAYS = struct.pack("<Q", 8) + b"{}      "
ANSI = "\x1b[2J\x1b]0;owned\x07\r\n\u202e\x00"


class Evil:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch harmed",)


def block(header: str | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    text = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: object = "U8", shape: object = (1,), offsets: object = (0, 1), name: str = "a", **more: object) -> str:
    return json.dumps(name) + ":" + json.dumps({"dtype": dtype, "shape": shape, "data_offsets": offsets, **more})


def declared(*entries: str, data: bytes = b"x") -> bytes:
    """The arrays' part of a file, from the entries of its header and the bytes after it."""
    return block("{" + ",".join(entries) + "}", data)


# What other libraries write, laid down as the whole file, as the manifest and as the arrays.


def pickled(protocol: int) -> bytes:
    return pickle.dumps(Evil(), protocol)


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def tarred(members: dict[str, bytes], links: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, target in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return file.getvalue()


def dumped(dump: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    dump(file)
    return file.getvalue()


def study_database() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table trial_system_attributes (trial_id, key, value_json)")
    connection.execute("insert into trial_system_attributes values (1, 'cma:optimizer', ?)", (pickled(2).hex(),))
    connection.commit()
    return connection.serialize()


OBJECTS = np.array([Evil()], dtype=object)
FOREIGN: dict[str, Callable[[], bytes]] = {
    "pickle_0": lambda: pickled(0),
    "pickle_2": lambda: pickled(2),
    "pickle_5": lambda: pickled(5),
    "torch_zip": lambda: zipped({"archive/data.pkl": pickled(2), "archive/version": b"3\n", "archive/data/0": bytes(64)}),
    "torch_tar": lambda: tarred({"storages": pickled(2), "tensors": pickled(2), "pickle": pickled(2)}, {}),
    "joblib": lambda: dumped(lambda file: joblib.dump(Evil(), file)),
    "joblib_compressed": lambda: dumped(lambda file: joblib.dump(Evil(), file, compress=3)),
    "npy": lambda: dumped(lambda file: np.save(file, OBJECTS, allow_pickle=True)),
    "npz": lambda: dumped(lambda file: np.savez(file, a=OBJECTS)),
    "zip_paths": lambda: zipped({"../harmed": b"x", "/tmp/harmed": b"x", "..\\harmed": b"x"}),
    "links": lambda: tarred({"a/harmed": b"x"}, {"a": "/tmp", "b": "../..", "c": "/etc/passwd"}),
    "gzip_bomb": lambda: gzip.compress(bytes(100_000_000), mtime=0),
    "study_database": study_database,
}
MISSING_ROWS: dict[str, Callable[[Sealed, bytes], bytes]] = {
    "as_file": lambda sealed, data: data,
    "as_manifest": lambda sealed, data: sealed(data, NO_ARRAYS),
    "as_arrays": lambda sealed, data: sealed(b"{}", data),
}


# Files of our own format that say too much. A case is what the file holds, and a piece of the reason for refusing it.


class Case(NamedTuple):
    says: str
    manifest: bytes = b"{}"
    arrays: bytes = NO_ARRAYS
    manifest_length: int | None = None


MANY = [entry(shape=[0], offsets=[0, 0], name=str(number)) for number in range(10_001)]
REFUSED: dict[str, Case] = {
    "dtype_is_a_path": Case("the arrays are invalid", arrays=declared(entry("os.system"))),
    "key_in_header": Case("must have exactly", arrays=declared(entry(_target_="os.system"))),
    "metadata": Case("__metadata__", arrays=block('{"__metadata__":{"format":"os.system"}}')),
    "metadata_as_array": Case("__metadata__", arrays=declared(entry(name="__metadata__"))),
    "manifest_length_2_63": Case("the manifest must have at most 1,000,000 bytes", manifest_length=2**63),
    "manifest_length_2_64": Case("the manifest must have at most 1,000,000 bytes", manifest_length=2**64 - 1),
    "manifest_length_one_more": Case("Expecting value", arrays=b"", manifest_length=3),
    "manifest_to_the_end": Case("Extra data", manifest_length=2 + len(NO_ARRAYS)),
    "manifest_over_its_limit": Case("1,000,000", manifest=b"{" + b" " * 1_000_000 + b"}"),
    "header_length_2_63": Case("at most 1,000,000 bytes", arrays=block("{}", length=2**63)),
    "header_length_one_more": Case("the arrays are invalid", arrays=block("{}", length=3)),
    "no_header_length": Case("Expecting value", arrays=bytes(3)),
    "million_entries": Case("1,000,000", arrays=declared(*(f'"{number}":0' for number in range(1_000_000)))),
    "too_many_entries": Case("got 10,001", arrays=declared(*MANY, data=b"")),
    "deep_list": Case("levels deep, got 100,000", b"[" * 100_000 + b"]" * 100_000),
    "deep_object": Case("levels deep, got 100,000", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "deep_unclosed": Case("levels deep, got 900,000", b"[" * 900_000),
    "deep_after_text": Case("levels deep, got 100,001", b'["\\"]",' + b"[" * 100_000 + b"]" * 100_001),
    "deep_header": Case("levels deep, got 100,000", arrays=block("[" * 100_000 + "]" * 100_000)),
    "key_twice": Case("is repeated", b'{"a":1,"a":1}'),
    "escaped_key_twice": Case("is repeated", b'{"a":1,"\\u0061":2}'),
    "nested_key_twice": Case("is repeated", b'{"x":[{"a":1,"b":2,"a":3}]}'),
    "array_twice": Case("is repeated", arrays=declared(entry(), entry())),
    "field_twice": Case("is repeated", arrays=declared(entry()[:-1] + ',"dtype":"U8"}')),
    "nan": Case("NaN", b'{"a":NaN}'),
    "infinity": Case("Infinity", b'{"a":Infinity}'),
    "minus_infinity": Case("-Infinity", b'{"a":-Infinity}'),
    "1e400": Case("1e400", b'{"a":1e400}'),
    "minus_1e400": Case("-1e400", b'{"a":[-1e400]}'),
    "long_integer": Case("5000 digits", b'{"a":' + b"9" * 5_000 + b"}"),
    "shape_nan": Case("NaN", arrays=declared(entry(shape=[float("nan")]))),
    "shape_1e400": Case("1e400", arrays=declared(entry(shape=[777]).replace("777", "1e400"))),
    "shape_float": Case("the arrays are invalid", arrays=declared(entry(shape=[1.0]))),
    "shape_bool": Case("the arrays are invalid", arrays=declared(entry(shape=[True]))),
    "shape_negative": Case("the arrays are invalid", arrays=declared(entry(shape=[-1, -1]))),
    "shape_number": Case("the arrays are invalid", arrays=declared(entry(shape=1))),
    "shape_65_dimensions": Case("the arrays are invalid", arrays=declared(entry(shape=[1] * 65))),
    "product_2_64": Case("the arrays are invalid", arrays=declared(entry(shape=[2**32, 2**32], offsets=[0, 0]), data=b"")),
    "product_2_64_of_F64": Case("the arrays are invalid", arrays=declared(entry("F64", [2**61], [0, 0]), data=b"")),
    "product_hidden_by_0": Case("the arrays are invalid", arrays=declared(entry(shape=[2**63, 0], offsets=[0, 0]), data=b"")),
    "product_2_40": Case("the arrays are invalid", arrays=declared(entry(shape=[2**20, 2**20]))),
    "all_declared_2_40": Case("the arrays are invalid", arrays=declared(entry(shape=[2**40], offsets=[0, 2**40]))),
    "arrays_overlap": Case("the arrays are invalid", arrays=declared(entry(), entry(name="b"))),
    "gap_between_arrays": Case("the arrays are invalid", arrays=declared(entry(), entry(offsets=[2, 3], name="b"), data=b"xyz")),
    "first_array_starts_late": Case("the arrays are invalid", arrays=declared(entry(offsets=[1, 2]), data=b"xy")),
    "array_past_the_end": Case("the arrays are invalid", arrays=declared(entry(), data=b"")),
    "bytes_left_over": Case("the arrays are invalid", arrays=declared(entry(), data=b"xy")),
    "bytes_without_arrays": Case("the arrays are invalid", arrays=NO_ARRAYS + b"x"),
    "offsets_backwards": Case("the arrays are invalid", arrays=declared(entry(offsets=[1, 0]))),
    "offsets_negative": Case("the arrays are invalid", arrays=declared(entry(offsets=[-1, 0]))),
    "three_offsets": Case("the arrays are invalid", arrays=declared(entry(offsets=[0, 1, 2]))),
    "dtype_O": Case("the arrays are invalid", arrays=declared(entry("O", offsets=[0, 8]), data=bytes(8))),
    "dtype_array_protocol": Case("the arrays are invalid", arrays=declared(entry("|O8", offsets=[0, 8]), data=bytes(8))),
    "dtype_void": Case("the arrays are invalid", arrays=declared(entry("V1"))),
    "dtype_bfloat": Case("the arrays are invalid", arrays=declared(entry("BF16", offsets=[0, 2]), data=b"xy")),
    "dtype_record": Case("the arrays are invalid", arrays=declared(entry([["a", "O"]], offsets=[0, 8]), data=bytes(8))),
    "dtype_null": Case("the arrays are invalid", arrays=declared(entry(None))),
    "bool_of_2": Case("the bool array", arrays=declared(entry("BOOL"), data=b"\x02")),
    "control_characters_in_array_name": Case("the arrays are invalid", arrays=declared(entry("O", name=ANSI))),
    "control_characters_in_dtype": Case("the arrays are invalid", arrays=declared(entry(ANSI))),
    "control_characters_in_key_twice": Case("is repeated", f"{{{json.dumps(ANSI)}:1,{json.dumps(ANSI)}:2}}".encode()),
    "utf16": Case("utf-8", '{"a":1}'.encode("utf-16")),
    "invalid_utf8": Case("utf-8", b'{"a":"\xff"}'),
    "byte_order_mark": Case("BOM", b"\xef\xbb\xbf{}"),
    "manifest_is_a_list": Case("not a JSON object", b"[]"),
    "manifest_is_nothing": Case("Expecting value", b""),
    "header_is_a_list": Case("not a JSON object", arrays=block("[]")),
    "header_entry_is_a_list": Case("must have exactly", arrays=block('{"a":["U8",[0],[0,0]]}')),
}

# Data that somebody else's loader would act on. Here it is data, and comes back as such.
HARMLESS: dict[str, Any] = {
    "every_text_a_path": {"os.system": "os.system", "builtins.eval": ["subprocess.Popen", "os:system", "{0.__class__}"]},
    "instantiator_key": {"_instantiator": "os.system", "_target_": "os.system", "_args_": ["touch harmed"]},
    "class_key": {"__class__": "os.system", "__reduce__": ["os.system", ["touch harmed"]], "__proto__": {}},
    "py_object_key": {"py/object": "os.system", "py/reduce": [{"py/function": "os.system"}, {"py/tuple": ["touch harmed"]}]},
    "control_characters": {ANSI: [ANSI]},
    "storage_url": {"storage": "sqlite:////tmp/harmed.db", "url": "http://127.0.0.1:9/", "include": "../../etc/passwd"},
}
HARMLESS_NAMES = ["../harmed", "/tmp/harmed", "os.system", ANSI, ""]


def corpus(sealed: Sealed) -> dict[str, bytes]:
    """Every file by its name."""
    entries = [entry(offsets=[place, place + 1], name=name) for place, name in enumerate(HARMLESS_NAMES)]
    arrays = declared(*entries, data=bytes(len(entries)))
    return {
        **{f"{name}_{place}": put(sealed, made()) for name, made in FOREIGN.items() for place, put in MISSING_ROWS.items()},
        **{name: sealed(case.manifest, case.arrays, manifest_length=case.manifest_length) for name, case in REFUSED.items()},
        **{name: sealed(json.dumps(manifest).encode(), arrays) for name, manifest in HARMLESS.items()},
    }


# Modules that the control cases need are loaded first; reading has to do with what `import bundle` brings.
CODE = """
import pickle, socket, subprocess

watched, events = None, []

def hook(event, args):
    if watched is None:
        return
    if event == "open" and os.fsdecode(args[0]) == watched and not args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return
    events.append(event)
    raise RuntimeError(f"forbidden: {event}")

def observed(path, act):
    global watched
    events.clear()
    found, start, watched = {"error": None}, time.process_time(), path
    try:
        found["data"] = act()
    except BaseException as error:
        watched = None
        found["error"], found["says"] = type(error).__name__, str(error)
    watched = None
    return {**found, "events": events.copy(), "seconds": time.process_time() - start}

def plain(path):
    manifest, arrays = read(path)
    return [manifest, sorted(arrays)]

def control(path):
    return {
        "pickle.find_class": lambda: pickle.loads(open(path, "rb").read()),
        "import": lambda: __import__("wave"),
        "exec": lambda: exec(code),
        "compile": lambda: compile("1", "x", "eval"),
        "os.system": lambda: os.system("touch harmed"),
        "subprocess.Popen": lambda: subprocess.Popen(["touch", "harmed"]),
        "socket.connect": lambda: connection.connect(("127.0.0.1", 9)),
        "open": lambda: open(path, "r+b"),
        "open ": lambda: open("/etc/passwd", "rb"),
    }

os.chdir(sys.argv[1])
code, connection = compile("1", "x", "exec"), socket.socket()
files = sorted(os.listdir("files"))
sys.addaudithook(hook)
read_files = {name: observed(f"files/{name}", lambda: plain(f"files/{name}")) for name in files}
evil = "files/pickle_2_as_file"
controls = {name: observed(evil, act) for name, act in control(evil).items()}
print(json.dumps({"files": read_files, "controls": controls, "memory": peak()}))
"""


class Outcome(NamedTuple):
    files: dict[str, dict[str, Any]]
    controls: dict[str, dict[str, Any]]
    memory: float
    left: list[str]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, sealed: Sealed, child: Callable[..., str]) -> Outcome:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "files").mkdir()
    for name, data in corpus(sealed).items():
        (folder / "files" / name).write_bytes(data)
    printed = child(CODE, folder)
    left = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.parent != folder / "files"]
    return Outcome(**json.loads(printed), left=left)


def refused(outcome: Outcome, name: str) -> str:
    found = outcome.files[name]
    assert found["events"] == []
    assert found["error"] == "ModelFileError", found
    assert f"files/{name}" in found["says"]
    assert found["says"].isprintable()
    assert found["seconds"] < 10
    return found["says"]


@pytest.mark.parametrize("place", MISSING_ROWS)
@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_content_is_refused(outcome: Outcome, name: str, place: str) -> None:
    says = refused(outcome, f"{name}_{place}")
    assert ("it is not a model file of deepforecast" in says) == (place == "as_file")


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_file_of_our_own_format_is_refused(outcome: Outcome, name: str) -> None:
    assert REFUSED[name].says in refused(outcome, name)


@pytest.mark.parametrize("name", HARMLESS)
def test_text_that_names_code_or_places_stays_text(outcome: Outcome, name: str) -> None:
    found = outcome.files[name]
    assert found["events"] == []
    assert found["error"] is None, found
    assert found["data"] == [HARMLESS[name], sorted(HARMLESS_NAMES)]


def test_hostile_files_write_nothing_and_take_little_memory(outcome: Outcome) -> None:
    assert outcome.left == ["files"]
    assert outcome.memory < 200


def test_the_hook_sees_what_it_has_to(outcome: Outcome) -> None:
    for name, found in outcome.controls.items():
        assert found["events"], name
        assert found["error"] == "RuntimeError"
        assert name.strip() in found["events"]


def test_control_characters_of_the_path_are_escaped(tmp_path: Path) -> None:
    from deepforecast.core.encoding import read_archive as read
    from deepforecast.errors import ModelFileError

    path = tmp_path / ANSI.replace("\x00", "").replace("/", "")
    path.write_bytes(b"x")
    with pytest.raises(ModelFileError) as caught:
        read(path)
    assert str(caught.value).isprintable()
    assert "\\x1b[2J" in str(caught.value)
