"""A headless Chromium, spoken to through chromedriver in the plain HTTP of the WebDriver standard: no package is needed."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

QUIET = (
    "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
    "disable-component-update", "disable-sync", "hide-scrollbars",
)  # fmt: skip
BINARIES = ("chromium", "chromium-browser", "google-chrome")


def missing() -> str:
    """What is not installed that a browser needs; empty if all is there."""
    lacking = [] if any(map(shutil.which, BINARIES)) else ["chromium"]
    return " and ".join(lacking + ([] if shutil.which("chromedriver") else ["chromedriver"]))


class Browser:
    """One window of a browser with a profile of its own, which is gone afterwards."""

    def __init__(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        self.shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.dark = dark

    def __enter__(self) -> Self:
        self.profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        told = (re.search(r"started successfully on port (\d+)", line) for line in self.driver.stdout or ())
        port = next(found[1] for found in told if found)
        self.address = f"http://127.0.0.1:{port}/session"
        binary = next(found for name in BINARIES if (found := shutil.which(name)))
        options = {"binary": binary, "args": [*(f"--{one}" for one in QUIET), f"--user-data-dir={self.profile.name}"]}
        able = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.address += f"/{self._ask('POST', '', {'capabilities': {'alwaysMatch': able}})['sessionId']}"
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}
        self.command("Emulation.setDeviceMetricsOverride", self.shape)
        self.command("Emulation.setEmulatedMedia", {"features": [scheme]})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ask("DELETE", "")
        self.driver.terminate()
        self.driver.communicate(timeout=20)  # closes its pipe too
        self.profile.cleanup()

    def open(self, page: Path) -> None:
        """Show a file, as a reader does who has no server."""
        self._ask("POST", "/url", {"url": page.resolve().as_uri()})

    def run(self, script: str) -> Any:
        """The value that a piece of JavaScript returns."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": []})

    def type(self, text: str, pause: int = 100) -> None:
        """Press and release the key of each character, with `pause` milliseconds after it, in whatever has the focus."""
        keys = [
            {"type": kind, **detail}
            for character in text
            for kind, detail in (
                ("keyDown", {"value": character}), ("keyUp", {"value": character}), ("pause", {"duration": pause})
            )
        ]  # fmt: skip
        self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})

    def complaints(self) -> list[str]:
        """What the console has said since it was last asked, but for what is only told."""
        said = self._ask("POST", "/se/log", {"type": "browser"})
        return [one["message"] for one in said if one["level"] in ("SEVERE", "WARNING")]

    def picture(self, path: Path) -> None:
        """What is seen, as a PNG."""
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))

    def command(self, name: str, given: dict[str, Any]) -> Any:
        """A command of the browser's own protocol."""
        return self._ask("POST", "/goog/cdp/execute", {"cmd": name, "params": given})

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]
