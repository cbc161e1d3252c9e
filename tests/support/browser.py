"""A headless Chromium, driven by its DevTools protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Page:
    """A page of the browser."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._numbers = socket, count(1)
        self.errors: list[str] = []
        """What the page wrote to its console, and its errors."""

    def send(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=30))
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(str(message["params"]["exceptionDetails"]))
            if message.get("method") == "Log.entryAdded":
                self.errors.append(message["params"]["entry"]["text"])
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression of JavaScript."""
        result = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, script: str, seconds: float = 20) -> Any:
        """Wait until an expression is true; return its value."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(script)):
            assert time.monotonic() < end, f"{script} is not true: {self.errors}"
            time.sleep(0.05)
        return value

    def screenshot(self, file: Path) -> None:
        """Write a picture of the page."""
        file.write_bytes(b64decode(self.send("Page.captureScreenshot")["data"]))


@contextmanager
def opened(url: str) -> Iterator[Page]:
    """Open a page in a browser of its own."""
    from websockets.sync.client import connect

    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options += ["--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            [CHROMIUM, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            known = Path(profile) / "DevToolsActivePort"
            end = time.monotonic() + 60
            while not known.exists() or len(known.read_text().splitlines()) < 2:
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
            port = known.read_text().splitlines()[0]
            with connect(_target(port), max_size=1 << 26) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Log"):
                    page.send(f"{domain}.enable")
                page.send("Page.navigate", url=url)
                page.until("document.readyState === 'complete' && location.href !== 'about:blank'")
                yield page
        finally:
            process.terminate()
            process.wait(30)


def _target(port: str) -> str:
    """Return the URL of the DevTools protocol of the first page."""
    from urllib.request import urlopen

    with urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
        pages = [each for each in json.load(answer) if each["type"] == "page"]
    url: str = pages[0]["webSocketDebuggerUrl"]
    return url
