"""End to end, as a user of Prefect: prefect.yaml deployed to a work pool of a local server, London replayed by a
worker, and Prefect's pages looked at.
"""

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
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.agedp.reports.browser import CHROMIUM, Browser, browser
from tests.agedp_flows.serving import AGEDP, ROOT
from tests.source_path import source_path

pytestmark = [pytest.mark.prefect, pytest.mark.long]

PREFECT = Path(sys.executable).with_name("prefect")
NIGHTS = ["2012-11-24", "2012-11-27", None]  # None: to the end of the period


@dataclass
class Site:
    """A folder with prefect.yaml and synthetic households, and a local Prefect server."""

    folder: Path
    port: int
    environment: dict[str, str]
    runs: list[str] = field(default_factory=list)
    published: list[list[dict[str, Any]]] = field(default_factory=list)

    def call(self, *words: object) -> str:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, path: str, told: dict[str, Any] | None = None) -> Any:
        data = None if told is None else json.dumps(told).encode()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/{path}", data=data, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read())

    def rows(self, run_file: str) -> list[dict[str, Any]]:
        """What was released, without what is drawn."""
        rows = json.loads(self.call(AGEDP, "ledger", "show", run_file, "--json"))
        return [{key: each[key] for key in ("day", "published_on", "households", "epsilon", "state")} for each in rows]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The template as it stands, deployed and run night after night by a worker."""
    folder, port = tmp_path_factory.mktemp("site"), free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")} | {
        "PYTHONPATH": source_path(),
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    shutil.copy(ROOT / "prefect.yaml", folder)
    found = Site(folder, port, environment)
    with (folder / "server.txt").open("wb") as log:
        server = subprocess.Popen(
            [PREFECT, "server", "start", "--port", str(port)],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _replay(found)
        yield found
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _replay(site: Site) -> None:
    site.call(AGEDP, "sample", "london", "out/rehearsal", "--households", 20, "--days", 12)
    shutil.copytree(site.folder / "out" / "rehearsal", site.folder / "plain")
    until = time.monotonic() + 120
    while True:
        try:
            site.ask("health")
            break
        except OSError:
            assert time.monotonic() < until, (site.folder / "server.txt").read_text()
            time.sleep(0.5)
    site.call(PREFECT, "work-pool", "create", "agedp", "--type", "process")
    site.call(PREFECT, "--no-prompt", "deploy", "--name", "synthetic-london-households")
    for as_of in NIGHTS:
        told = [] if as_of is None else ["--param", f"as_of={as_of}"]
        site.call(PREFECT, "deployment", "run", "agedp/synthetic-london-households", *told)
        site.call(PREFECT, "worker", "start", "--pool", "agedp", "--run-once")
        newest = site.ask("flow_runs/filter", {"sort": "START_TIME_DESC", "limit": 1})[0]
        assert newest["state_type"] == "COMPLETED", newest["state"]
        site.runs.append(newest["id"])
        site.published.append(site.rows("out/rehearsal/london.toml"))
    _calibrate(site)


def _calibrate(site: Site) -> None:
    """Follow the second part of the template's head: a run file with an estimated model."""
    head = (site.folder / "prefect.yaml").read_text().partition("\nname:")[0]
    command = re.search(r"agedp (init .*?--publish-envelope)", re.sub(r"\\\n#", "", head), re.DOTALL)
    assert command is not None
    site.call(AGEDP, *shlex.split(command[1]))
    site.call(PREFECT, "--no-prompt", "deploy", "--all")
    for flow in ("agedp-calibrate", "agedp"):
        site.call(PREFECT, "deployment", "run", f"{flow}/synthetic-london")
        site.call(PREFECT, "worker", "start", "--pool", "agedp", "--run-once")
        newest = site.ask("flow_runs/filter", {"sort": "START_TIME_DESC", "limit": 1})[0]
        assert (newest["state_type"], newest["name"][:2]) == ("COMPLETED", "20"), newest["state"]


def test_a_calibration_and_the_release_under_its_model_are_run_by_the_worker(site: Site) -> None:
    assert (site.folder / "out/aged/out/confidential/model/public.json").exists()
    assert len(site.rows("out/aged/run.toml")) == 12
    artifacts = {each["key"] for each in site.ask("artifacts/filter", {})}
    assert {"agedp-spectral-bounds-synthetic-london", "agedp-released-days-synthetic-london"} <= artifacts


def test_the_replay_releases_each_day_when_it_is_due_as_a_plain_run_does(site: Site) -> None:
    site.call(AGEDP, "run", "plain/london.toml")
    assert site.published[-1] == site.rows("plain/london.toml")
    assert len(site.published[-1]) == 12
    for as_of, rows in zip(NIGHTS[:2], site.published, strict=False):
        assert [row for row in site.published[-1] if row["published_on"] <= str(as_of)] == rows
    site.call(
        AGEDP, "verify", "out/rehearsal/release", "--ledger", f"sqlite:///{site.folder}/out/rehearsal/ledger.sqlite"
    )


def test_the_deployment_runs_once_at_a_time_and_its_parameters_have_words(site: Site) -> None:
    found = site.ask("deployments/name/agedp/synthetic-london-households")
    assert found["global_concurrency_limit"]["limit"] == 1
    keys = found["parameter_openapi_schema"]["properties"]
    assert {name: len(each["description"].split()) > 5 for name, each in keys.items()} == {
        "run_file": True, "as_of": True,
    }  # fmt: skip


def settled(tab: Browser, address: str, wanted: str) -> str:
    """Open a page and return its words once the wanted ones stand there."""
    tab.look(address, width=1400)
    return waited(tab, wanted)


def clicked(tab: Browser, label: str, wanted: str) -> str:
    """Open the part of a page that a label names."""
    waited(tab, label)
    parts = "[...document.querySelectorAll('*')]"  # the innermost of those that say it is the last
    tab.run(f"{parts}.filter(e => e.textContent.trim() == '{label}').pop().click()")
    return waited(tab, wanted)


def waited(tab: Browser, wanted: str) -> str:
    until = time.monotonic() + 60
    while wanted not in (said := str(tab.run("document.body.innerText"))):
        assert time.monotonic() < until, said
        time.sleep(0.3)
    return said


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium to look at pages with (Debian package chromium)")
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def test_prefects_pages_of_a_finished_run_show_stages_plan_statement_and_report(site: Site, tab: Browser) -> None:
    pages = f"http://127.0.0.1:{site.port}"
    said = settled(tab, f"{pages}/runs/flow-run/{site.runs[-1]}", "synthetic-london-households")
    assert "Completed" in said
    clicked(tab, "Artifacts", "agedp-report-synthetic-london-households")
    tab.picture(site.folder / "run.png")
    plan = settled(tab, f"{pages}/artifacts/key/agedp-plan-synthetic-london-households", "Due days")
    assert "agedp-plan" in plan
    statement = settled(tab, f"{pages}/artifacts/key/agedp-statement-synthetic-london-households", "Privacy statement")
    assert "agedp-statement" in statement
    deployment = site.ask("deployments/name/agedp/synthetic-london-households")["id"]
    settled(tab, f"{pages}/deployments/deployment/{deployment}", "synthetic-london-households")
    clicked(tab, "Parameters", "out/rehearsal/london.toml")
    tab.picture(site.folder / "deployment.png")
    form = settled(tab, f"{pages}/deployments/deployment/{deployment}/run", "Path of the run file")
    assert "run_file" in form
    tab.picture(site.folder / "form.png")


def test_the_server_was_told_nothing_of_a_household_or_a_file(site: Site) -> None:
    homes = (site.folder / "out/rehearsal/roster.csv").read_text().splitlines()[1].split(",")[0]
    files = [path.name for path in (site.folder / "out/rehearsal/input").iterdir()]
    told = b"".join(path.read_bytes() for path in (site.folder / "prefect").rglob("prefect.db*"))
    assert b"agedp-statement" in told
    assert [name for name in (homes, *files) if name.encode() in told] == []
