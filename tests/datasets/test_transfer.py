from __future__ import annotations

import hashlib
import io
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deepforecast.datasets import transfer as module
from deepforecast.datasets.transfer import Remote, fetch
from deepforecast.errors import DataError, SaveError
from tests.clock import Clock

BODY = bytes(range(256)) * 1024
SHA256 = hashlib.sha256(BODY).hexdigest()


class Server(ThreadingHTTPServer):
    """A server on loopback that answers as the test tells it, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []
        self.faults: list[str] = []  # one for each request, then none
        self.ranges = True
        self.left = threading.Event()  # ends a transfer that stalls

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the tests."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.csv"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.headers.get("Range"))
        fault = self.server.faults.pop(0) if self.server.faults else ""
        if fault.isdigit():
            self.send_error(int(fault))
            return
        begin = 0
        if (asked := self.headers.get("Range")) and self.server.ranges:
            begin = int(asked.removeprefix("bytes=").rstrip("-"))
            if begin >= len(BODY):
                self.send_error(416)
                return
        body = b"x" * len(BODY) if fault == "other" else BODY[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(BODY) - 1}/{len(BODY)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self._send(body, fault)

    def _send(self, body: bytes, fault: str) -> None:
        if fault == "stall":
            self.wfile.write(body[:1000])
            self.wfile.flush()
            self.server.left.wait(60)  # type: ignore[attr-defined]
        elif fault == "drip":
            for place in range(0, 40):
                self.wfile.write(body[place : place + 1])
                self.wfile.flush()
        else:
            self.wfile.write(body[: len(body) // 2] if fault == "truncated" else body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(module, "RETRY_PAUSE", 0.0)
    found = Server()
    thread = threading.Thread(target=found.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def _remote(server: Server, sha256: str | None = SHA256) -> Remote:
    return Remote("file.csv", server.address, sha256)


def _left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"file.csv.lock"}


def test_a_file_arrives_whole_once_and_without_a_word(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "deep" / "file.csv"
    assert fetch(_remote(server), path).read_bytes() == BODY
    fetch(_remote(server), path)
    assert server.asked == [None]
    assert _left(path.parent) == {"file.csv"}
    assert capsys.readouterr() == ("", "")


def test_a_transfer_cut_short_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.faults = ["truncated", "truncated"]
    assert fetch(_remote(server), tmp_path / "file.csv").read_bytes() == BODY
    half = len(BODY) // 2
    assert server.asked == [None, f"bytes={half}-", f"bytes={half + half // 2}-"]


def test_what_an_earlier_call_received_is_used(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.csv.part").write_bytes(BODY[:5000])
    assert fetch(_remote(server), tmp_path / "file.csv").read_bytes() == BODY
    assert server.asked == ["bytes=5000-"]


def test_a_server_without_ranges_sends_all_again(server: Server, tmp_path: Path) -> None:
    server.ranges, server.faults = False, ["truncated"]
    assert fetch(_remote(server), tmp_path / "file.csv").read_bytes() == BODY
    assert len(server.asked) == 2


def test_a_part_of_another_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.csv.part").write_bytes(BODY + b"more")
    assert fetch(_remote(server), tmp_path / "file.csv").read_bytes() == BODY
    assert server.asked == [f"bytes={len(BODY) + 4}-", None]


def test_a_wrong_hash_keeps_nothing_and_says_both(server: Server, tmp_path: Path) -> None:
    server.faults = ["other"]
    with pytest.raises(
        DataError, match=rf"must have the SHA-256 {SHA256}, but the download has [0-9a-f]{{64}} and was deleted"
    ):
        fetch(_remote(server), tmp_path / "file.csv")
    assert _left(tmp_path) == set()
    assert fetch(_remote(server), tmp_path / "file.csv").read_bytes() == BODY


def test_a_file_put_there_by_hand_is_taken_if_its_hash_is_right(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(BODY)
    assert fetch(_remote(server), path) == path
    path.write_bytes(b"of another version")
    with pytest.raises(DataError, match=rf"{re.escape(str(path))} \(placed by hand .* SHA-256 {SHA256}"):
        fetch(_remote(server), path)
    assert path.read_bytes() == b"of another version"
    assert server.asked == []


@pytest.mark.parametrize("code", ["404", "403"])
def test_what_is_not_there_is_asked_for_once(server: Server, tmp_path: Path, code: str) -> None:
    server.faults = [code]
    path = tmp_path / "file.csv"
    with pytest.raises(
        DataError, match=rf"from {server.address}: .*answered {code} .*\(attempts: 1\).*save the file as {re.escape(str(path))}"
    ):
        fetch(_remote(server), path)
    assert len(server.asked) == 1


def test_a_server_in_trouble_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.faults = ["503", "502"]
    assert fetch(_remote(server), tmp_path / "file.csv").read_bytes() == BODY
    server.faults = ["503"] * 9
    with pytest.raises(DataError, match=r"answered 503 .*\(attempts: 4\)"):
        fetch(_remote(server), tmp_path / "other.csv")


@pytest.mark.parametrize(("fault", "option", "value"), [("stall", "TIMEOUT", 4.0), ("drip", "SPEED_WINDOW", 0.1)])
def test_a_slow_server_is_left_and_asked_to_go_on(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, option: str, value: float
) -> None:
    server.faults = [fault]
    with monkeypatch.context() as patch:
        for name, changed in ((option, value), ("BLOCK_SIZE", 1), ("MAX_TRIES", 1)):
            patch.setattr(module, name, changed)
        patch.setattr(module, "time", SimpleNamespace(monotonic=Clock(step=0.02).now))
        with pytest.raises(DataError, match=r"no data for 4 seconds|slower than 1024 bytes per second"):
            fetch(_remote(server), tmp_path / "file.csv")
    server.left.set()
    received = (tmp_path / "file.csv.part").stat().st_size
    assert fetch(_remote(server), tmp_path / "file.csv").read_bytes() == BODY
    assert server.asked[-1] == f"bytes={received}-"
    assert received > 0


def test_offline_is_said_at_once_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_PAUSE", 60.0)
    path = tmp_path / "file.csv"
    remote = Remote("file.csv", "http://127.0.0.1:9/file.csv", SHA256)
    with pytest.raises(
        DataError, match=rf"no connection \(.*\); is this machine offline.*save the file as {re.escape(str(path))}"
    ):
        fetch(remote, path)


def test_more_than_any_set_has_is_not_taken(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    with pytest.raises(DataError, match="exceeds 1,000 bytes"):
        fetch(_remote(server), tmp_path / "file.csv")


def test_a_folder_that_cannot_be_made_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SaveError, match=r"cannot be written .*DEEPFORECAST_CACHE"):
        fetch(_remote(server), tmp_path / "file" / "file.csv")


def test_two_at_once_download_once(server: Server, tmp_path: Path) -> None:
    threads = [threading.Thread(target=fetch, args=(_remote(server), tmp_path / "file.csv")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "file.csv").read_bytes() == BODY
    assert server.asked == [None]


def test_a_bar_in_a_terminal_alone(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    fetch(_remote(server), tmp_path / "file.csv", "m4: file.csv (1 of 2)")
    assert "m4: file.csv (1 of 2)" in sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "262k" in sys.stderr.getvalue()  # type: ignore[attr-defined]
