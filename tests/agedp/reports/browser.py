"""Headless Chromium over its DevTools pipe: what a page asks for, what it complains of, how it is laid out."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_SECONDS = 60.0


class Browser:
    """One tab; every event that the browser told of is kept in `events`."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._left, self._number = write, read, b"", 0
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.tab(f"{domain}.enable")

    def ask(self, method: str, *, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self._write, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, told["error"]
                return told["result"]
            self.events.append(told)

    def tab(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.ask(method, session=self._session, **parameters)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser ended"
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def look(self, page: Path | str, *, width: int, dark: bool = False, media: str = "screen") -> None:
        """Open a page, by path or address, in a window of this width and wait until it stands."""
        self._open("about:blank")  # what the page before asks for in another window or scheme is not asked by this one
        self.tab("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tab("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._open(page if isinstance(page, str) else page.resolve().as_uri())

    def _open(self, url: str) -> None:
        self.events.clear()
        self.tab("Page.navigate", url=url)
        self.wait_for(lambda told: told.get("method") == "Page.loadEventFired")

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not any(wanted(told) for told in self.events):
            assert time.monotonic() < end, "the page never stood"
            self.tab("Runtime.evaluate", expression="1")

    def run(self, script: str) -> Any:
        """Return what a script comes to on the page."""
        found = self.tab("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    @property
    def requests(self) -> list[str]:
        """Return every address that was asked for since the page was opened."""
        asked = [told["params"] for told in self.events if told.get("method") == "Network.requestWillBeSent"]
        return [each["request"]["url"] for each in asked]

    @property
    def complaints(self) -> list[str]:
        """Return what the console said since the page was opened."""
        said = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [json.dumps(told["params"]) for told in self.events if told.get("method") in said]

    def picture(self, path: Path) -> None:
        """Write the whole page as a picture."""
        shot = self.tab("Page.captureScreenshot", captureBeyondViewport=True, format="png", clip=self._whole())
        path.write_bytes(base64.b64decode(shot["data"]))

    def _whole(self) -> dict[str, float]:
        size = self.tab("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser of one's own, with its profile in `folder`, and end it."""
    assert CHROMIUM is not None
    to_browser, from_browser = os.pipe(), os.pipe()
    words = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--remote-debugging-pipe", f"--user-data-dir={folder}", "--no-first-run", "--disable-background-networking",
    ]  # fmt: skip
    script = f'exec "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
    running = subprocess.Popen(
        ["/bin/bash", "-c", script, "chromium", *words],
        pass_fds=(to_browser[0], from_browser[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        yield Browser(to_browser[1], from_browser[0])
    finally:
        os.close(to_browser[1])  # the browser ends when nobody speaks to it any more
        os.close(from_browser[0])
        try:
            running.wait(timeout=10)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
