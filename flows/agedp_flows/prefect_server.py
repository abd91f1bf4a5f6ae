"""The Prefect server of a run: the one of PREFECT_API_URL, or one of our own that ends with the run.

Everything that runs flows imports this module, so it is the one that tells a user without Prefect what to install.
Import nothing of Prefect before entering `running_server`: Prefect reads its settings when it is imported. A server of
our own listens on this machine only and requires a password, because anybody who may change a deployment decides what
a scheduled run executes.
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
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import FileKind, read_content
from agedp.run_context import load_run_file
from agedp_data.errors import AgedpError
from agedp_flows import START_SECONDS

_PROCESS_FILE = Path(__file__).with_name("prefect_server_process.py")
SERVED_BY = "AGEDP_SERVED_BY"
"""Environment variable with the process id of `agedp serve`, for the runs that it starts."""

_ANSWER_SECONDS = 10
_PASSWORD = re.compile(r"[!-~]+:[!-~]+")
_SEND_SECONDS = 5
_QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
}
_OWN_FOR_A_RUN = {  # a server that ends with the run needs neither a log nor a user interface
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_UI_ENABLED": "false",
}
_OWN_FOR_SCHEDULES = {  # a killed server loses leases in memory, and its limits stay occupied
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem"
}


class ServerError(AgedpError):
    """No Prefect server could be reached or started."""


def require_prefect() -> None:
    """Raise AgedpError, which names the extra, if Prefect is not installed."""
    if find_spec("prefect") is None:
        raise AgedpError("flows need Prefect, which is not installed; install agedp with its extra prefect")


require_prefect()


@dataclass(frozen=True, slots=True)
class PrefectServer:
    """The address of a server's API, and the file with its password if the server is our own."""

    api: str
    password_file: Path | None = None

    @property
    def pages(self) -> str:
        """The address of its user interface."""
        return os.environ.get("PREFECT_UI_URL") or self.api.removesuffix("/api")


@contextmanager
def running_server(folder: Path, *, schedules: bool = False) -> Iterator[PrefectServer]:
    """Yield the server of PREFECT_API_URL if set, else one of our own with its files in `folder`.

    With `schedules` our own server schedules runs and has a user interface.

    Raises:
        ServerError: the server does not answer, or does not start.
    """
    address = os.environ.get("PREFECT_API_URL")
    own_settings = _OWN_FOR_SCHEDULES if schedules else _OWN_FOR_A_RUN
    for name, value in (_QUIET if address else {**_QUIET, **own_settings}).items():
        os.environ.setdefault(name, value)
    if address:
        _require_answer(address)
        yield PrefectServer(address)
        return
    os.environ.setdefault("PREFECT_HOME", str(folder))
    password_file = atomic_files.make_private(folder) / "password"
    os.environ["PREFECT_API_AUTH_STRING"] = os.environ["PREFECT_SERVER_API_AUTH_STRING"] = _password(password_file)
    child = subprocess.Popen(  # noqa: S603  (our own file, our own interpreter)
        [sys.executable, str(_PROCESS_FILE), *(["schedules"] if schedules else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must not reach the server before this process has sent its last events
    )
    try:
        address = _wait_for_server(child)
        os.environ["PREFECT_API_URL"] = address
        try:
            yield PrefectServer(address, password_file)
        finally:
            _flush_pending()
    finally:
        for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"):
            os.environ.pop(name, None)
        _end_server(child)


def server_for_run_file(run_file: Path) -> AbstractContextManager[PrefectServer]:
    """Yield the server for one run of a run file; our own server has its files in the confidential folder.

    Raises:
        AgedpError: the run file is invalid; or as `running_server`.
    """
    return running_server(Path(load_run_file(run_file).output.confidential) / "prefect")


def _password(file: Path) -> str:
    """Return the server's user and password from the file; create both if the file is missing or invalid."""
    password = read_content(file, _parse_password, FileKind.DERIVED, advice="").value
    if password is None:
        password = f"agedp:{uuid.uuid4().hex}"
        atomic_files.write(file, f"{password}\n".encode())
    return password


def _parse_password(file: Path) -> str:
    password = file.read_text(encoding="ascii").strip()
    if not _PASSWORD.fullmatch(password):
        raise ValueError("it does not contain a user and a password")
    return password


def _require_answer(address: str) -> None:
    """Raise ServerError unless a server answers at an address, with any status."""
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/health", timeout=_ANSWER_SECONDS):  # noqa: S310
            return
    except urllib.error.HTTPError:
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ServerError(
            f"no server answers at PREFECT_API_URL ({type(reason).__name__}); correct it, start that server, or unset "
            "it, and agedp starts its own"
        ) from None


def _flush_pending() -> None:
    """Send Prefect's buffered log lines and events; after the server has ended, Prefect would retry for a minute."""
    if handlers := sys.modules.get("prefect.logging.handlers"):
        handlers.APILogWorker.drain_all(timeout=_SEND_SECONDS)
    if worker := sys.modules.get("prefect.events.worker"):
        worker.EventsWorker.drain_all(timeout=_SEND_SECONDS)


def _wait_for_server(child: subprocess.Popen[bytes]) -> str:
    if child.stdout is None:
        raise ServerError("Prefect's embedded server has no output to read its port from")
    port = child.stdout.readline().strip().decode()
    if port and not port.isdigit():
        raise ServerError(f"{port}. Name a free port, or unset it, and agedp takes one")
    address = f"http://127.0.0.1:{port}/api"
    deadline = time.monotonic() + START_SECONDS
    while port and child.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:  # noqa: S310  (loopback http)
                if answer.status == 200:
                    return address
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise ServerError(
        "Prefect's embedded server did not start; `agedp run` without --flow needs none, PREFECT_API_URL names another"
    )


def _end_server(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(timeout=15)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdout is not None:
        child.stdout.close()
