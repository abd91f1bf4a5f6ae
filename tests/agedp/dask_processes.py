"""A Dask scheduler and workers as processes of their own, started and ended by the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path


class Processes:
    """A scheduler and workers as processes of their own, on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        self.running.append(process)
        return process

    def scheduler(self, port: int = 0) -> subprocess.Popen[bytes]:
        told = self.folder / "scheduler.json"
        told.unlink(missing_ok=True)
        process = self.start(
            "dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--no-dashboard",
            "--scheduler-file",
            str(told),
        )
        deadline = time.monotonic() + 60
        while not (told.exists() and told.read_bytes().endswith(b"}")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.address = str(json.loads(told.read_bytes())["address"])
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        return self.start(
            "dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--local-directory", str(self.folder), "--host", "127.0.0.1",
        )  # fmt: skip

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
