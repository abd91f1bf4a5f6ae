"""The Prefect server that a run talks to: the one of PREFECT_API_URL, or one of our own that ends with the run.

Import nothing of Prefect before `served` is entered: Prefect reads its settings when it is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agedp_data.errors import AgedpError

_START_SECONDS = 120
_SEND_SECONDS = 5
_QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
}
_OURS = {  # nobody reads the log of a server that ends with the run, nor opens its pages
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_UI_ENABLED": "false",
}


class ServerError(AgedpError):
    """No Prefect server could be reached or started."""


@contextmanager
def served(home: Path) -> Iterator[str]:
    """Yield the address of the API: PREFECT_API_URL if set, else a server of our own with its files in `home`.

    Raises:
        ServerError: the server does not start.
    """
    address = os.environ.get("PREFECT_API_URL")
    for name, value in (_QUIET if address else {**_QUIET, **_OURS}).items():
        os.environ.setdefault(name, value)
    if address:
        yield address
        return
    os.environ.setdefault("PREFECT_HOME", str(home))
    child = subprocess.Popen(  # noqa: S603  (our own file, our own interpreter)
        [sys.executable, str(Path(__file__).with_name("embedded.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = _wait(child)
        os.environ["PREFECT_API_URL"] = address
        try:
            yield address
        finally:
            _send_what_waits()
    finally:
        os.environ.pop("PREFECT_API_URL", None)
        _end(child)


def _send_what_waits() -> None:
    """Have Prefect send the log lines and events that it holds back: without a server it tries in vain for a minute."""
    if handlers := sys.modules.get("prefect.logging.handlers"):
        handlers.APILogWorker.drain_all(timeout=_SEND_SECONDS)
    if worker := sys.modules.get("prefect.events.worker"):
        worker.EventsWorker.drain_all(timeout=_SEND_SECONDS)


def _wait(child: subprocess.Popen[bytes]) -> str:
    if child.stdout is None:
        raise ServerError("Prefect's embedded server has no output to read its port from")
    port = child.stdout.readline().strip().decode()
    address = f"http://127.0.0.1:{port}/api"
    until = time.monotonic() + _START_SECONDS
    while port and child.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:  # noqa: S310  (loopback http)
                if answer.status == 200:
                    return address
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise ServerError(
        "Prefect's embedded server did not start; `agedp run` without --flow needs none, PREFECT_API_URL names another"
    )


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(timeout=15)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdout is not None:
        child.stdout.close()
