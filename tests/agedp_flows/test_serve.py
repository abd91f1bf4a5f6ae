"""`agedp serve`: nights on a cron line as Prefect deployments, and nothing that outlives it."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from agedp.local_files import atomic_files
from agedp_data.errors import RunFileError
from agedp_flows.scheduled_runs import scheduled_runs
from tests.agedp_flows import flow_scripts
from tests.agedp_flows.serving import (
    AGEDP,
    CRON,
    ZONE,
    Serving,
    ask,
    environment,
    live_world,
    processes_of,
    serving,
)
from tests.agedp_flows.worlds import DECLARED, ESTIMATED, make

pytestmark = [pytest.mark.prefect, pytest.mark.xdist_group("served")]  # they share a server, which the last one kills


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(live_world(tmp_path_factory.mktemp("served") / "world")) as found:
        yield found


def test_a_deployment_of_the_population_runs_once_at_a_time_on_the_cron_line(served: Serving) -> None:
    run_file, deployment = str(served.world.folder / "run.toml"), served.deployment()
    assert f"homes: {run_file} at {CRON} ({ZONE})" in served.printed
    assert deployment["name"] == "homes"
    assert deployment["global_concurrency_limit"]["limit"] == 1
    assert deployment["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
    assert deployment["entrypoint"] == "agedp_flows.deployment_entrypoint:release"
    parameters = deployment["parameter_openapi_schema"]
    assert (set(parameters["properties"]), parameters["required"]) == ({"run_file", "as_of"}, ["run_file"])
    assert all(len(key["description"].split()) > 5 for key in parameters["properties"].values())
    assert deployment["parameters"] == {"run_file": run_file}
    first = datetime.fromisoformat(served.wait_for(served.scheduled)[0]["expected_start_time"])
    local = first.astimezone(ZoneInfo(ZONE))
    assert (local.weekday(), local.hour, local.minute) == (6, 1, 30)
    assert first > datetime.now(UTC)


def test_its_server_answers_its_owner_on_this_machine_alone(served: Serving) -> None:
    assert str(served.home / "password") in served.printed
    assert served.password not in served.printed
    for password in ("", "agedp:wrong"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(f"{served.pages}/api/deployments/name/agedp/homes", password=password)
    port = int(served.pages.rpartition(":")[2])
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    listening = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
    assert listening == {f"0100007F:{port:04X}"}  # 127.0.0.1, as the kernel writes it
    settings = served.ask("admin/settings")["server"]
    assert settings["analytics_enabled"] is False
    assert settings["concurrency"]["lease_storage"].endswith(".filesystem")  # or a killed server's slots stay taken
    databases = [path for path in served.home.rglob("*") if path.is_file() and ".db" in path.name]
    assert databases
    private = (*databases, served.home, served.home / "password")
    assert [path.name for path in private if path.stat().st_mode & 0o077] == []


def test_a_population_is_served_once_and_the_line_says_by_whom(served: Serving) -> None:
    folder = served.world.folder
    text = (folder / "run.toml").read_text().replace("out/", "other/").replace('"homes"', '"others"')
    (folder / "other.toml").write_text(text)  # its folder is the one of the server
    for run_files in (["run.toml"], ["other.toml", "run.toml"]):
        done = subprocess.run(
            [AGEDP, "serve", *run_files], cwd=folder, env=environment(), capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), done.stderr
        assert f"end it (`kill {served.process.pid}` on " in done.stderr


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    world = live_world(tmp_path / "world")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for words in (("serve", "run.toml"), ("run", "--flow", "run.toml")):
            done = subprocess.run(
                [AGEDP, *words], cwd=world.folder, env=environment(PREFECT_SERVER_API_PORT=port), capture_output=True,
                text=True, timeout=300, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
            assert (
                f"PREFECT_SERVER_API_PORT = {port}: no server can listen there (Address already in use)" in done.stderr
            )


def test_a_night_releases_leaves_its_artifacts_and_a_failing_one_ends_in_a_line(served: Serving) -> None:
    run, folder = served.run(), served.world.folder
    assert run["state_type"] == "COMPLETED", served.printed
    assert run["name"] == "homes 2013-02-02..2013-02-07"
    assert (folder / "out" / "release" / "SHA256SUMS").exists()
    artifacts = {artifact["key"]: artifact["data"] for artifact in served.ask("artifacts/filter", {})}
    assert set(artifacts) == {
        f"agedp-{kind}-homes" for kind in ("plan", "input", "released-days", "statement", "report")
    }
    assert artifacts["agedp-input-homes"] == 100
    assert f"`{folder / 'out' / 'release'}`" in artifacts["agedp-report-homes"]  # a browser refuses file links
    days = json.loads(artifacts["agedp-released-days-homes"])
    table = pd.read_parquet(folder / "out" / "release" / "daily_averages.parquet")
    planned = json.loads(artifacts["agedp-plan-homes"])
    assert [(day["day"], day["epsilon"]) for day in planned] == [(day["day"], day["epsilon"]) for day in days]
    assert [day["noise sd"] for day in planned] == [f"{sd:.3g} kWh" for sd in table["noise_sd_kwh"]]
    newest = table.iloc[-1]
    assert f"    {newest['day']}  {newest['households']:>10}" in artifacts["agedp-report-homes"]
    assert [day["day"] for day in days] == [f"{day:%Y-%m-%d}" for day in table["day"]]
    for column, title in (("mean_kwh", "mean kWh"), ("noise_sd_kwh", "noise sd kWh")):
        assert [float(day[title]) for day in days] == pytest.approx(
            table[column].tolist(), abs=5.1e-4
        )  # three decimals, ties too
    (folder / "incoming" / "CANARY-flat-7.csv").symlink_to("nowhere.csv")  # what cannot be opened stops any night
    failed = served.run()
    assert failed["state_type"] == "FAILED"
    assert failed["state"]["message"].startswith("InputError: [input] files: a named file cannot be opened")
    assert "CANARY-flat-7.csv" in (folder / "out" / "confidential" / "error.txt").read_text()
    shown = [of["data"] for of in served.ask("artifacts/filter", {}) if of["key"] == "agedp-input-homes"]
    assert shown == [100, 100]  # wherever it stopped
    served.wait_for(lambda: "InputError" in str(served.ask("logs/filter", {"limit": 200})))
    public = served.printed + str(failed) + str(served.ask("logs/filter", {"limit": 200}))
    assert "Traceback" not in public
    assert "CANARY-flat" not in str(failed) + str(served.ask("logs/filter", {"limit": 200}))


def test_flows_are_called_as_functions_on_any_server(served: Serving, tmp_path: Path) -> None:
    """Input that does not answer at first is read again; a calibration and two verifications end as they should."""
    world = make(tmp_path / "world", mode="rehearsal")
    text = (world.folder / "run.toml").read_text()
    (world.folder / "estimated.toml").write_text(text.replace(DECLARED, ESTIMATED).replace("out/", "other/"))
    server = {"PREFECT_API_URL": f"{served.pages}/api", "PREFECT_API_AUTH_STRING": served.password}
    done = subprocess.run(
        [sys.executable, flow_scripts.__file__, "functions", str(world.folder)],
        env=environment(**server, PREFECT_HOME=str(tmp_path / "home")), capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    states = json.loads(done.stdout)
    assert states.pop("tampered").startswith("Failed: InputError: STATEMENT.md")
    assert states.pop("reads") == "3"  # the first one again, and the second run's
    assert states == dict.fromkeys(("release", "calibrate", "audit", "verify", "again"), "Completed: None")
    runs = served.ask("task_runs/filter", {"task_runs": {"name": {"any_": ["ingest"]}}, "limit": 200})
    assert 2 in {run["run_count"] for run in runs}
    assert b"CANARY" not in b"".join(path.read_bytes() for path in served.home.rglob("prefect.db*"))


def test_killed_it_leaves_no_process(served: Serving) -> None:
    """Last of those that share the server."""
    assert processes_of(served.home)
    assert served.end(signal.SIGKILL) == -9
    assert processes_of(served.home, seconds=30) == []


def test_a_run_file_without_its_model_is_served_with_its_calibration(tmp_path: Path) -> None:
    world = live_world(tmp_path / "world")
    estimated = ESTIMATED.replace("2013-02-01, 2013-02-08", "2013-01-01, 2013-02-01")
    world.edit((DECLARED, estimated))
    [night] = scheduled_runs([world.folder / "run.toml"])
    assert night.is_calibrated
    (world.folder / "model").mkdir()
    (world.folder / "model" / "public.json").write_text("{}")
    with pytest.raises(RunFileError, match=r"public\.json"):  # a model that is there is looked at, as by `agedp plan`
        scheduled_runs([world.folder / "run.toml"])


def test_what_cannot_be_served_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = live_world(tmp_path / "world")
    text, cron = (world.folder / "run.toml").read_text(), f'cron = "{CRON}"\nzone = "{ZONE}"\n'
    for name, content in (
        ("same", text.replace("out/", "other/")),
        ("archive", text.replace('mode = "live"', 'mode = "archive"').replace(cron, "")),
        ("no-cron", text.replace(cron, "")),
    ):
        (world.folder / f"{name}.toml").write_text(content)
    for names, message in {
        ("run", "same"): "'homes'",
        ("archive",): 'mode = "archive"',
        ("no-cron",): "cron is missing",
        ("nowhere",): "the file does not exist",
    }.items():
        assert message in world.refuse("serve", *(f"{name}.toml" for name in names), status=2)
    for address in ("http://127.0.0.1:9/api", "nonsense", "http://nowhere.invalid/api"):
        monkeypatch.setenv("PREFECT_API_URL", address)
        for words in (("serve",), ("run", "--flow")):
            assert "PREFECT_API_URL" in world.refuse(*words, "run.toml", status=2)
    assert not (world.folder / "out" / "release").exists()
    world.succeed("run", "run.toml", "--quiet")
    world.edit(("clamp_kwh = 20", "clamp_kwh = 19"))
    assert "clamp_kwh" in world.refuse("serve", "run.toml", status=3)


AT_ONCE = """
import os, signal, sys
from agedp_flows.deployments import serve
serve([], ready=lambda: os.kill(os.getpid(), int(sys.argv[1])))
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.long)])
def test_told_to_end_before_prefect_hears_of_signals_it_ends_in_order(how: signal.Signals, tmp_path: Path) -> None:
    # with no deployments there is nothing to ask of the server
    env = environment(PREFECT_HOME=str(tmp_path), PREFECT_API_URL="http://127.0.0.1:9/api")
    words = [sys.executable, "-c", AT_ONCE, str(int(how))]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_however_it_ends_it_leaves_no_process_and_can_be_served_again(how: signal.Signals, tmp_path: Path) -> None:
    world = live_world(tmp_path / "world")
    with serving(world) as found:
        assert found.end(how) == (-9 if how == signal.SIGKILL else 0)
        assert processes_of(found.home, seconds=30) == []
    with serving(world) as found:
        assert found.deployment()["paused"] is False
        found.wait_for(found.scheduled)


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_ends_with_it_and_the_next_night_is_not_kept_out(how: signal.Signals, tmp_path: Path) -> None:
    """The population's one slot is free again although nobody gave it back."""
    world = live_world(tmp_path / "world")
    store = world.folder / "out" / "confidential" / "store"
    with serving(world) as found:
        store.mkdir(parents=True, mode=0o700)
        with atomic_files.exclusive_lock(store):  # the run waits in its first stage
            run = found.start_run()
            found.wait_for(lambda: found.ask(f"flow_runs/{run}")["state_type"] == "RUNNING")
            time.sleep(2)
            found.end(how)
            assert processes_of(found.home, seconds=30) == []
    with serving(world) as found:
        until = time.monotonic() + 600
        while (last := found.run())["state_type"] == "CANCELLED":
            assert time.monotonic() < until
            time.sleep(15)
        assert last["state_type"] == "COMPLETED"
    with sqlite3.connect(world.folder / "out" / "ledger.sqlite") as ledger:
        assert ledger.execute("SELECT count(*), count(DISTINCT day) FROM release").fetchone() == (6, 6)
