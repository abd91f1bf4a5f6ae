"""End to end, as a user of Prefect: prefect.yaml deployed to a work pool of a local server, replayed by a worker."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.agedp_flows.serving import AGEDP, ask, environment
from tests.source_path import ROOT

pytestmark = [pytest.mark.prefect, pytest.mark.long]

PREFECT = Path(sys.executable).with_name("prefect")
NIGHTS = ["2012-11-24", "2012-11-27", None]  # None: to the end of the period


@dataclass
class Site:
    """A folder with prefect.yaml and synthetic households, and a local Prefect server."""

    folder: Path
    api: str
    env: dict[str, str]
    published: list[list[dict[str, Any]]] = field(default_factory=list)

    def call(self, *words: object) -> str:
        done = subprocess.run(
            [str(word) for word in words], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, flow: str, population: str, *parameters: str) -> None:
        """Have a worker run a deployment to its end."""
        self.call(PREFECT, "deployment", "run", f"{flow}/{population}", *parameters)
        self.call(PREFECT, "worker", "start", "--pool", "agedp", "--run-once")
        newest = ask(f"{self.api}/flow_runs/filter", {"sort": "START_TIME_DESC", "limit": 1})[0]
        assert (newest["state_type"], newest["name"].partition(" 20")[0]) == ("COMPLETED", population), newest["state"]

    def rows(self, run_file: str) -> list[dict[str, Any]]:
        """Return what was released, without what is drawn."""
        rows = json.loads(self.call(AGEDP, "ledger", "show", run_file, "--json"))
        return [{key: row[key] for key in ("day", "published_on", "households", "epsilon", "state")} for row in rows]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The template as it stands, deployed and run night after night by a worker; then the second part of its head."""
    folder = tmp_path_factory.mktemp("site")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    api = f"http://127.0.0.1:{port}/api"
    off = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    made = Site(folder, api, environment(PREFECT_HOME=str(folder / "prefect"), PREFECT_API_URL=api, **off))
    shutil.copy(ROOT / "prefect.yaml", folder)
    with (folder / "server.txt").open("wb") as log:
        server = subprocess.Popen(
            [PREFECT, "server", "start", "--port", port], cwd=folder, env=made.env, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        made.call(AGEDP, "sample", "london", "out/rehearsal", "--households", 20, "--days", 12)
        shutil.copytree(folder / "out" / "rehearsal", folder / "plain")
        _require_answer(made)
        made.call(PREFECT, "work-pool", "create", "agedp", "--type", "process")
        made.call(PREFECT, "--no-prompt", "deploy", "--name", "synthetic-london-households")
        for as_of in NIGHTS:
            parameters = [] if as_of is None else ["--param", f"as_of={as_of}"]
            made.run("agedp", "synthetic-london-households", *parameters)
            made.published.append(made.rows("out/rehearsal/london.toml"))
        head = (folder / "prefect.yaml").read_text().partition("\nname:")[0]
        [command] = re.findall(r"agedp (init .*?--publish-envelope)", re.sub(r"\\\n#", "", head), re.DOTALL)
        made.call(AGEDP, *shlex.split(command))
        made.call(PREFECT, "--no-prompt", "deploy", "--all")
        for flow in ("agedp-calibrate", "agedp"):
            made.run(flow, "synthetic-london")
        yield made
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _require_answer(site: Site) -> None:
    until = time.monotonic() + 120
    while True:
        try:
            return ask(f"{site.api}/health")
        except OSError:
            assert time.monotonic() < until, (site.folder / "server.txt").read_text()
            time.sleep(0.5)


def test_a_calibration_and_the_release_under_its_model_are_run_by_the_worker(site: Site) -> None:
    assert (site.folder / "out/aged/out/confidential/model/public.json").exists()
    assert len(site.rows("out/aged/run.toml")) == 12
    artifacts = {artifact["key"] for artifact in ask(f"{site.api}/artifacts/filter", {})}
    assert {"agedp-spectral-bounds-synthetic-london", "agedp-released-days-synthetic-london"} <= artifacts


def test_the_replay_releases_each_day_when_it_is_due_as_a_plain_run_does(site: Site) -> None:
    site.call(AGEDP, "run", "plain/london.toml")
    assert site.published[-1] == site.rows("plain/london.toml")
    assert len(site.published[-1]) == 12
    for as_of, rows in zip(NIGHTS[:2], site.published, strict=False):
        assert [row for row in site.published[-1] if row["published_on"] <= str(as_of)] == rows
    deployment = ask(f"{site.api}/deployments/name/agedp/synthetic-london-households")
    assert deployment["global_concurrency_limit"]["limit"] == 1


def test_the_server_stores_nothing_of_a_household_or_a_file(site: Site) -> None:
    household = (site.folder / "out/rehearsal/roster.csv").read_text().splitlines()[1].split(",")[0]
    files = [path.name for path in (site.folder / "out/rehearsal/input").iterdir()]
    stored = b"".join(path.read_bytes() for path in (site.folder / "prefect").rglob("prefect.db*"))
    assert b"agedp-statement" in stored
    assert [name for name in (household, *files) if name.encode() in stored] == []
