"""The Prefect server that a run talks to: the one of PREFECT_API_URL, or one of our own that ends with the run.

Import nothing of Prefect before `served` is entered: Prefect reads its settings when it is imported. A server of our
own listens on this machine only and asks everybody for a password: whoever may change a deployment says what a
scheduled run executes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agedp_data.errors import AgedpError
from flows import START_SECONDS
from pipelines import folders
from pipelines.internal_files import FileKind, read_content
from pipelines.work import load_run_file

SERVED_BY = "AGEDP_SERVED_BY"
"""Names the process of `agedp serve` to the runs that it starts."""

_ANSWER_SECONDS = 10
_PASSWORD = re.compile(r"[!-~]+:[!-~]+")
_SEND_SECONDS = 5
_QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
}
_OURS_FOR_A_RUN = {  # nobody reads the log of a server that ends with the run, nor opens its pages
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_UI_ENABLED": "false",
}
_OURS_FOR_SCHEDULES = {  # leases in memory would outlive a server that was killed as a limit that is never free again
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
}


class ServerError(AgedpError):
    """No Prefect server could be reached or started."""


@dataclass(frozen=True, slots=True)
class PrefectServer:
    """A server by the address of its API; where its password stands if it is our own."""

    api: str
    password_file: Path | None = None

    @property
    def pages(self) -> str:
        """Return the address of its pages."""
        return os.environ.get("PREFECT_UI_URL") or self.api.removesuffix("/api")


@contextmanager
def served(home: Path, *, schedules: bool = False) -> Iterator[PrefectServer]:
    """Yield the server of PREFECT_API_URL if set, else one of our own with its files in `home`.

    With `schedules` it is one that schedules runs and has pages.

    Raises:
        ServerError: it does not answer, or does not start.
    """
    address = os.environ.get("PREFECT_API_URL")
    ours = _OURS_FOR_SCHEDULES if schedules else _OURS_FOR_A_RUN
    for name, value in (_QUIET if address else {**_QUIET, **ours}).items():
        os.environ.setdefault(name, value)
    if address:
        _require_answer(address)
        yield PrefectServer(address)
        return
    os.environ.setdefault("PREFECT_HOME", str(home))
    password_file = folders.make_private(home) / "password"
    os.environ["PREFECT_API_AUTH_STRING"] = os.environ["PREFECT_SERVER_API_AUTH_STRING"] = _password(password_file)
    child = subprocess.Popen(  # noqa: S603  (our own file, our own interpreter)
        [sys.executable, str(Path(__file__).with_name("embedded.py")), *(["schedules"] if schedules else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us; it ends when we have said what there is to say
    )
    try:
        address = _wait(child)
        os.environ["PREFECT_API_URL"] = address
        try:
            yield PrefectServer(address, password_file)
        finally:
            _send_what_waits()
    finally:
        for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"):
            os.environ.pop(name, None)
        _end(child)


@contextmanager
def served_beside(run_file: Path) -> Iterator[PrefectServer]:
    """Yield the server for one run of a run file: one of our own has its files in the confidential folder.

    Raises:
        AgedpError: the run file; or as `served`.
    """
    with served(Path(load_run_file(run_file).output.confidential) / "prefect") as server:
        yield server


def _password(file: Path) -> str:
    """Return the server's user and password, the same for as long as the file is there and sound."""
    password = read_content(file, _parse_password, FileKind.DERIVED, advice="").value
    if password is None:
        password = f"agedp:{uuid.uuid4().hex}"
        folders.write(file, f"{password}\n".encode())
    return password


def _parse_password(file: Path) -> str:
    password = file.read_text(encoding="ascii").strip()
    if not _PASSWORD.fullmatch(password):
        raise ValueError("it is no user and password")
    return password


def _require_answer(address: str) -> None:
    """Raise ServerError unless somebody answers at an address, whatever the answer is."""
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/health", timeout=_ANSWER_SECONDS):  # noqa: S310
            return
    except urllib.error.HTTPError:
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ServerError(
            f"nobody answers at PREFECT_API_URL ({type(reason).__name__}); correct it, start that server, or unset it "
            "for one of agedp's own"
        ) from None


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
    until = time.monotonic() + START_SECONDS
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
