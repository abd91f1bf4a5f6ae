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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agedp_flows.worlds import World, make
from tests.source_path import source_path

AGEDP = Path(sys.executable).with_name("agedp")
PATIENCE_SECONDS = 120.0
CRON, ZONE = "30 1 * * 0", "Europe/London"  # an hour that a night in spring does not have
ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process without any setting of Prefect's but those named."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
    return {**inherited, "PYTHONPATH": source_path(), **more}


def live_world(folder: Path) -> World:
    """A world of live nights whose folder contains packages of its owner under our names."""
    world = make(folder, mode="live")
    world.edit(("last_day", f'cron = "{CRON}"\nzone = "{ZONE}"\nlast_day'))
    for name in ("flows", "pipelines"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    return world


def ask(address: str, body: dict[str, Any] | None = None, *, password: str = "") -> Any:
    """Return what a Prefect API answers; POST if there is a body."""
    key = base64.b64encode(password.encode()).decode()
    headers = {"Content-Type": "application/json", **({"Authorization": f"Basic {key}"} if password else {})}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data=data, headers=headers)  # noqa: S310 - loopback
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            # its database is busy: Prefect's own clients ask again too
            if error.code != 503 or time.monotonic() > until:
                raise
            time.sleep(1)


@dataclass(frozen=True)
class Serving:
    """A running `agedp serve` and its server."""

    process: subprocess.Popen[bytes]
    world: World

    @property
    def printed(self) -> str:
        return (self.world.folder / "printed.txt").read_text()

    @property
    def home(self) -> Path:
        return self.world.folder / "out" / "confidential" / "prefect-served"

    @property
    def pages(self) -> str:
        return next(line for line in self.printed.splitlines() if "pages: " in line).split()[2].rstrip(",")

    @property
    def password(self) -> str:
        return (self.home / "password").read_text().strip()

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return ask(f"{self.pages}/api/{path}", body, password=self.password)

    def deployment(self) -> dict[str, Any]:
        return self.ask("deployments/name/agedp/homes")

    def start_run(self) -> str:
        """Have the deployment run now; return the id of the run."""
        path = f"deployments/{self.deployment()['id']}/create_flow_run"
        return self.ask(path, {"state": {"type": "SCHEDULED"}})["id"]

    def run(self) -> dict[str, Any]:
        """Have the deployment run now and return the run once it has ended."""
        run = self.start_run()
        self.wait_for(lambda: self.ask(f"flow_runs/{run}")["state_type"] in ENDED)
        return self.ask(f"flow_runs/{run}")

    def scheduled(self) -> list[dict[str, Any]]:
        """Return the runs that the schedule asks for, the next one first."""
        asked = {"deployments": {"id": {"any_": [self.deployment()["id"]]}}, "sort": "EXPECTED_START_TIME_ASC"}
        return [run for run in self.ask("flow_runs/filter", asked) if run["auto_scheduled"]]

    def wait_for(self, condition: Any) -> Any:
        until = time.monotonic() + PATIENCE_SECONDS
        while not (answer := condition()):
            assert time.monotonic() < until, self.printed
            assert self.process.poll() is None, self.printed
            time.sleep(0.2)
        return answer

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout=PATIENCE_SECONDS)


def processes_of(home: Path, *, seconds: float = 0) -> list[int]:
    """Return the processes whose Prefect home is this one, given some seconds to end."""
    until = time.monotonic() + seconds
    while (alive := [int(entry.name) for entry in Path("/proc").iterdir() if _is_of(entry, home)]) and (
        time.monotonic() < until
    ):
        time.sleep(0.2)
    return alive


def _is_of(process: Path, home: Path) -> bool:
    try:
        return process.name.isdigit() and f"PREFECT_HOME={home}".encode() in (process / "environ").read_bytes()
    except OSError:
        return False


@contextmanager
def serving(world: World) -> Iterator[Serving]:
    """Start `agedp serve` in the world's folder and wait until it prints that it serves."""
    with (world.folder / "printed.txt").open("wb") as stream:
        process = subprocess.Popen(
            [AGEDP, "serve", "run.toml"], cwd=world.folder, env=environment(PREFECT_RUNNER_POLL_FREQUENCY="1"),
            stdout=stream, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    # if the tests are killed themselves, nobody else would end what serves in a session of its own
    script = ["sh", "-c", 'read done || kill -KILL "$1"', "guard", str(process.pid)]
    guard = subprocess.Popen(script, stdin=subprocess.PIPE, start_new_session=True)
    served = Serving(process, world)
    try:
        served.wait_for(lambda: "pages: " in served.printed)
        yield served
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        guard.communicate(b"done\n")
