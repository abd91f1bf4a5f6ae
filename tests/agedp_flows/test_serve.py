"""`agedp serve`: nights on a cron line as Prefect deployments, and nothing that outlives it."""

from __future__ import annotations

import json
import os
import signal
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

from agedp_data.errors import RunFileError
from agedp_flows.scheduled_runs import scheduled_runs
from tests.agedp_flows.serving import CRON, ZONE, Serving, left, live_world, none_left, serving, wait_for
from tests.agedp_flows.worlds import DECLARED, ESTIMATED, World, make
from tests.source_path import source_path

pytestmark = [pytest.mark.prefect, pytest.mark.xdist_group("served")]  # they share a server, which the last one kills


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(live_world(tmp_path_factory.mktemp("served") / "world")) as found:
        yield found


def test_it_says_what_is_served_when_and_where_the_pages_are(served: Serving) -> None:
    assert f"homes: {served.world.folder}/run.toml at {CRON} ({ZONE})" in served.said
    assert str(served.home / "password") in served.said
    assert served.password not in served.said


def test_a_deployment_is_named_after_its_population_and_runs_once_at_a_time(served: Serving) -> None:
    found = served.deployment()
    assert found["name"] == "homes"
    assert found["global_concurrency_limit"]["limit"] == 1
    assert found["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
    assert found["entrypoint"] == "agedp_flows.deployment_entrypoint:release"


def test_its_parameters_are_the_run_file_and_a_date_each_with_words(served: Serving) -> None:
    found = served.deployment()
    keys = found["parameter_openapi_schema"]["properties"]
    assert set(keys) == {"run_file", "as_of"}
    assert found["parameter_openapi_schema"]["required"] == ["run_file"]
    assert all(len(each["description"].split()) > 5 for each in keys.values())
    assert found["parameters"] == {"run_file": str(served.world.folder / "run.toml")}


def test_a_night_is_when_the_clock_on_the_wall_says(served: Serving) -> None:
    [schedule] = served.deployment()["schedules"]
    assert (schedule["schedule"]["cron"], schedule["schedule"]["timezone"]) == (CRON, ZONE)
    asked = {"deployments": {"id": {"any_": [served.deployment()["id"]]}}, "sort": "EXPECTED_START_TIME_ASC"}
    runs = wait_for(lambda: served.ask("flow_runs/filter", asked), served)
    first = datetime.fromisoformat(next(run["expected_start_time"] for run in runs if run["auto_scheduled"]))
    local = first.astimezone(ZoneInfo(ZONE))
    assert (local.weekday(), local.hour, local.minute) == (6, 1, 30)
    assert first > datetime.now(UTC)


def test_nobody_without_the_password_is_heard(served: Serving) -> None:
    for password in ("", "agedp:wrong"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            served.ask("deployments/name/agedp/homes", password=password)
    assert (served.home / "password").stat().st_mode & 0o077 == 0


def test_its_server_hears_this_machine_only_and_tells_nobody_of_it(served: Serving) -> None:
    port = int(served.pages.rpartition(":")[2])
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    listening = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
    assert listening == {f"0100007F:{port:04X}"}  # 127.0.0.1, as the kernel writes it
    told = served.ask("admin/settings")["server"]
    assert told["analytics_enabled"] is False
    assert told["concurrency"]["lease_storage"].endswith(".filesystem")  # or a killed server's slots stay taken


def test_what_its_server_keeps_is_for_its_owner_alone(served: Serving) -> None:
    kept = [path for path in served.home.rglob("*") if path.is_file() and ".db" in path.name]
    assert kept
    assert [path.name for path in (*kept, served.home) if path.stat().st_mode & 0o077] == []


def test_a_second_one_of_the_same_folder_is_refused_in_one_line(served: Serving) -> None:
    told = {**os.environ, "PYTHONPATH": source_path()}
    folder, words = served.world.folder, [sys.executable, "-P", "-c", "from agedp_flows.cli.app import main; main()"]
    done = subprocess.run(
        [*words, "serve", "run.toml"], cwd=folder, env=told, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), done.stderr
    assert done.stderr.startswith("agedp: ")


def test_a_night_releases_leaves_its_artifacts_and_a_failing_one_ends_in_a_line(served: Serving) -> None:
    run = served.run()
    assert run["state_type"] == "COMPLETED", served.said
    assert run["name"] == datetime.now(UTC).date().isoformat()
    folder = served.world.folder
    assert (folder / "out" / "release" / "SHA256SUMS").exists()
    artifacts = {each["key"]: each for each in served.ask("artifacts/filter", {})}
    assert set(artifacts) == {f"agedp-{kind}-homes" for kind in ("plan", "released-days", "statement", "report")}
    assert f"`{folder / 'out' / 'release'}`" in artifacts["agedp-report-homes"]["data"]  # a browser refuses file links
    assert "2013-02-07" in artifacts["agedp-plan-homes"]["data"]
    days = json.loads(artifacts["agedp-released-days-homes"]["data"])
    table = pd.read_parquet(folder / "out" / "release" / "daily_averages.parquet")
    assert [day["day"] for day in days] == [f"{day:%Y-%m-%d}" for day in table["day"]]
    assert [float(day["mean kWh"]) for day in days] == pytest.approx(table["mean_kwh"].tolist(), abs=5e-4)
    assert [float(day["noise sd kWh"]) for day in days] == pytest.approx(table["noise_sd_kwh"].tolist(), abs=5e-4)
    (folder / "incoming" / "CANARY-flat-7.csv").symlink_to("nowhere.csv")  # what cannot be opened stops any night
    failed = served.run()
    assert failed["state_type"] == "FAILED"
    assert failed["state"]["message"].startswith("InputError: [input] files: a named file cannot be opened")
    assert "CANARY" not in failed["state"]["message"]
    assert "CANARY-flat-7.csv" in (folder / "out" / "confidential" / "error.txt").read_text()
    assert "Traceback" not in served.said
    logs = wait_for(lambda: (said := str(served.ask("logs/filter", {"limit": 200}))) * ("InputError" in said), served)
    assert not [word for word in ("CANARY", "Traceback") if word in logs]


def test_flows_are_called_as_functions_on_any_server(served: Serving, tmp_path: Path) -> None:
    """Input that does not answer at first is read again; a calibration and two verifications end as they should."""
    world = make(tmp_path / "world", seed=1, mode="rehearsal", model=DECLARED, method="total_variation")
    text = (world.folder / "run.toml").read_text().replace("epsilon_total = 2.5", "epsilon_total = 3")
    (world.folder / "run.toml").write_text(text)
    (world.folder / "estimated.toml").write_text(text.replace(DECLARED, ESTIMATED).replace("out/", "other/"))
    server = {"PREFECT_API_URL": f"{served.pages}/api", "PREFECT_API_AUTH_STRING": served.password}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("flow_script.py")), str(world.folder)],
        env={**os.environ, **server, "PYTHONPATH": source_path(), "PREFECT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    states = json.loads(done.stdout)
    assert states.pop("tampered").startswith("Failed: InputError: STATEMENT.md")
    assert states.pop("reads") == "3"  # the first one again, and the second run's
    assert states == dict.fromkeys(("release", "calibrate", "audit", "verify", "again"), "Completed: None")
    runs = served.ask("task_runs/filter", {"task_runs": {"name": {"any_": ["ingest"]}}, "limit": 200})
    assert 2 in {run["run_count"] for run in runs}
    stored = b"".join(path.read_bytes() for path in served.home.rglob("prefect.db*"))
    assert b"CANARY" not in stored


def test_a_run_file_without_its_model_is_served_with_its_calibration(tmp_path: Path) -> None:
    world = live_world(tmp_path / "world")
    text = (world.folder / "run.toml").read_text()
    estimated = ESTIMATED.replace("2013-02-01, 2013-02-08", "2013-01-01, 2013-02-01")
    (world.folder / "estimated.toml").write_text(text.replace(DECLARED, estimated))
    [night] = scheduled_runs([world.folder / "estimated.toml"])
    assert night.is_calibrated
    (world.folder / "model").mkdir()
    (world.folder / "model" / "public.json").write_text("{}")
    with pytest.raises(RunFileError, match=r"public\.json"):  # a model that is there is looked at, as by `agedp plan`
        scheduled_runs([world.folder / "estimated.toml"])


def test_what_cannot_be_served_is_refused_before_anything_starts(tmp_path: Path) -> None:
    world = live_world(tmp_path / "world")
    text = (world.folder / "run.toml").read_text()
    other = text.replace("out/", "other/")
    (world.folder / "same.toml").write_text(other)
    (world.folder / "archive.toml").write_text(
        text.replace('mode = "live"', 'mode = "archive"').replace(f'cron = "{CRON}"\nzone = "{ZONE}"\n', "")
    )
    (world.folder / "no-cron.toml").write_text(text.replace(f'cron = "{CRON}"\nzone = "{ZONE}"\n', ""))
    for words, said in {
        ("run.toml", "same.toml"): "'homes'",
        ("archive.toml",): 'mode = "archive"',
        ("no-cron.toml",): "cron is missing",
        ("nowhere.toml",): "the file does not exist",
    }.items():
        assert said in world.refuse("serve", *words, status=2)
    world.succeed("run", "run.toml", "--quiet")
    (world.folder / "run.toml").write_text(text.replace("clamp_kwh = 20", "clamp_kwh = 19"))
    assert "clamp_kwh" in world.refuse("serve", "run.toml", status=3)


@pytest.mark.parametrize("words", [("serve",), ("run", "--flow")])
def test_a_server_that_does_not_answer_is_one_line(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = live_world(tmp_path / "world")
    for address in ("http://127.0.0.1:9/api", "nonsense", "http://nowhere.invalid/api"):
        monkeypatch.setenv("PREFECT_API_URL", address)
        assert "PREFECT_API_URL" in world.refuse(*words, "run.toml", status=2)
    assert not (world.folder / "out" / "release").exists()


def ended_by(world: World, how: signal.Signals) -> int:
    with serving(world) as found:
        home = found.home
        assert left(home)
        status = found.end(how)
    assert none_left(home, 30), left(home)
    return status


def test_killed_it_leaves_no_process(served: Serving) -> None:
    """Last of those that share the server."""
    assert left(served.home)
    assert served.end(signal.SIGKILL) == -9
    assert none_left(served.home, 30), left(served.home)


TOLD_AT_ONCE = """
import os, signal, sys
from agedp_flows.deployments import serve
serve([], ready=lambda: os.kill(os.getpid(), int(sys.argv[1])))
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_before_prefect_hears_of_signals_it_ends_in_order(how: signal.Signals, tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9/api"  # with no deployments there is nothing to ask
    told = {"PYTHONPATH": source_path(), "PREFECT_HOME": str(tmp_path), "PREFECT_API_URL": nobody}
    words = [sys.executable, "-c", TOLD_AT_ONCE, str(int(how))]
    done = subprocess.run(words, env=told, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_however_it_is_told_to_end_it_leaves_no_process(how: signal.Signals, tmp_path: Path) -> None:
    world = live_world(tmp_path / "world")
    status = ended_by(world, how)
    assert status == (-9 if how == signal.SIGKILL else 0)
    with serving(world) as found:  # served again its nights go on
        assert found.deployment()["paused"] is False
        asked = {"deployments": {"id": {"any_": [found.deployment()["id"]]}}}
        wait_for(lambda: any(run["auto_scheduled"] for run in found.ask("flow_runs/filter", asked)), found)


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_ends_with_it_and_the_next_night_is_not_kept_out(how: signal.Signals, tmp_path: Path) -> None:
    """The population's one slot is free again although nobody gave it back."""
    world = live_world(tmp_path / "world")
    lock = Path(world.folder / "out" / "confidential" / "store")
    with serving(world) as found:
        lock.mkdir(parents=True, mode=0o700)
        with held(lock):  # the run waits in its first stage
            asked = {"state": {"type": "SCHEDULED"}}
            run = found.ask(f"deployments/{found.deployment()['id']}/create_flow_run", asked)
            wait_for(lambda: found.ask(f"flow_runs/{run['id']}")["state_type"] == "RUNNING", found)
            time.sleep(2)
            found.end(how)
            assert none_left(found.home, 30), left(found.home)
    with serving(world) as found:
        until = time.monotonic() + 600
        while (last := found.run())["state_type"] == "CANCELLED":
            assert time.monotonic() < until
            time.sleep(15)
        assert last["state_type"] == "COMPLETED"
    with sqlite3.connect(world.folder / "out" / "ledger.sqlite") as ledger:
        assert ledger.execute("SELECT count(*), count(DISTINCT day) FROM release").fetchone() == (6, 6)


def held(folder: Path):
    from agedp.local_files import locks

    return locks.exclusive_lock(folder)
