"""`agedp serve` in a process of its own, and what can be asked of its server."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.agedp_flows.worlds import DECLARED, World, make
from tests.source_path import source_path

ROOT = Path(__file__).parents[2]
AGEDP = Path(sys.executable).with_name("agedp")
PATIENCE_SECONDS = 120.0
CRON, ZONE = "30 1 * * 0", "Europe/London"  # an hour that a night in spring does not have


def live_world(folder: Path) -> World:
    """A world of live nights whose folder holds packages of its owner under our names."""
    world = make(folder, seed=1, mode="live", model=DECLARED, method="total_variation")
    run_file = world.folder / "run.toml"
    text = run_file.read_text().replace("epsilon_total = 2.5", "epsilon_total = 3")
    run_file.write_text(text.replace("last_day", f'cron = "{CRON}"\nzone = "{ZONE}"\nlast_day'))
    for name in ("flows", "pipelines"):
        (world.folder / name).mkdir()
        (world.folder / name / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    return world


class Serving:
    """A running `agedp serve`, its output so far, and its server."""

    def __init__(self, process: subprocess.Popen[bytes], world: World, output: Path) -> None:
        self.process, self.world, self._output = process, world, output

    @property
    def said(self) -> str:
        return self._output.read_text()

    @property
    def home(self) -> Path:
        return self.world.folder / "out" / "confidential" / "prefect-served"

    @property
    def pages(self) -> str:
        return next(line for line in self.said.splitlines() if "pages: " in line).split()[2].rstrip(",")

    @property
    def password(self) -> str:
        return (self.home / "password").read_text().strip()

    def ask(self, path: str, told: dict[str, Any] | None = None, *, password: str | None = None) -> Any:
        """Return what the API answers; POST if it is told something."""
        key = base64.b64encode((self.password if password is None else password).encode()).decode()
        headers = {"Authorization": f"Basic {key}", "Content-Type": "application/json"}
        data = None if told is None else json.dumps(told).encode()
        asked = urllib.request.Request(f"{self.pages}/api/{path}", data=data, headers=headers)  # noqa: S310 - loopback
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                # its database is busy: Prefect's own clients ask again too
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > until:
                    raise
                time.sleep(1)

    def deployment(self) -> dict[str, Any]:
        return self.ask("deployments/name/agedp/homes")

    def run(self) -> dict[str, Any]:
        """Have the deployment run now and return the run once it has ended."""
        run = self.ask(f"deployments/{self.deployment()['id']}/create_flow_run", {"state": {"type": "SCHEDULED"}})
        return self.ended(run["id"])

    def ended(self, run: str) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            now = self.ask(f"flow_runs/{run}")
            return now if now["state_type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED") else None

        return wait_for(found, self)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout=PATIENCE_SECONDS)


def wait_for(found: Any, serving: Serving) -> Any:
    until = time.monotonic() + PATIENCE_SECONDS
    while not (answer := found()):
        assert time.monotonic() < until, serving.said
        assert serving.process.poll() is None, serving.said
        time.sleep(0.2)
    return answer


def left(home: Path) -> list[int]:
    """Processes whose Prefect home is this one, or that a server of agedp was told to serve from it."""
    mark, found = f"PREFECT_HOME={home}".encode(), []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def none_left(home: Path, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while left(home) and time.monotonic() < until:
        time.sleep(0.2)
    return not left(home)


@contextmanager
def serving(world: World, **environment: str) -> Iterator[Serving]:
    """Start `agedp serve` in the world's folder and wait until it says that it serves."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
    told = {"PYTHONPATH": source_path()}
    output = world.folder / "said.txt"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [AGEDP, "serve", "run.toml"],
            cwd=world.folder,
            env={**inherited, **told, "PREFECT_RUNNER_POLL_FREQUENCY": "1", **environment},
            stdout=stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    # if the tests are killed themselves, nobody else would end what serves in a session of its own
    guard = subprocess.Popen(
        ["sh", "-c", 'read done || kill -KILL "$1"', "guard", str(process.pid)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    found = Serving(process, world, output)
    try:
        wait_for(lambda: "pages: " in found.said, found)
        yield found
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        guard.communicate(b"done\n")
