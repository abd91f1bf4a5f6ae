"""A night as a utility has it: meters' files and the release on S3, the ledger on PostgreSQL, Dask by its address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from distributed import Client

from agedp.compute import cluster
from agedp.ledger_transfer import verify_against
from agedp.release_folder.release_folder import ReleaseFolder
from agedp_data.datasets.synthetic import write_london
from agedp_data.ledger import Ledger
from tests.agedp.dask_processes import Processes
from tests.postgresql import PASSWORD, PostgreSQL
from tests.source_path import source_path

pytestmark = pytest.mark.xdist_group("cluster")
ROOT = Path(__file__).parents[2]
RUN = """version = 1
[input]
dataset = "london"
files = ["{incoming}/*.csv"]
corrections = "set-aside"
preflight = "report"
[output]
release = "{release}"
confidential = "confidential"
ledger = "{ledger}"
[population]
name = "homes"
roster = "roster.csv"
min_households = 3
[schedule]
mode = "live"
first_day = {first}
wait_for = "{incoming}/{{day}}.done"
[series.daily_mean]
statistic = "mean"
clamp_kwh = 30
[promise]
notion = "classical"
age_days = 1
epsilon_per_day = 0.5
max_day_epsilon = 0.5
epsilon_total = 50
[engine]
block_mib = 1
{engine}
"""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    yield found
    cluster.connect.cache_clear()
    found.stop()


def agedp(house: Path, *words: str, **environment: str) -> str:
    """Run the command in a process of its own; return what it says."""
    done = subprocess.run(
        [sys.executable, "-c", "from agedp_flows.cli.app import main; main()", *words],
        cwd=house,
        env={**os.environ, "PYTHONPATH": source_path(), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tasks_done(address: str) -> int:
    """Return how many tasks the workers have finished so far."""

    def finished(dask_scheduler: Any) -> int:
        return sum(1 for one in dask_scheduler.transition_log if one[2] == "memory")

    with Client(address, set_as_default=False) as client:
        return int(client.run_on_scheduler(finished))


def true_means(house: Path) -> list[dict[str, Any]]:
    found = pq.read_table(house / "confidential" / "true_means.parquet")
    return found.drop_columns(["released_mean_kwh"]).to_pylist()


def test_every_half_hour_of_a_night_goes_from_s3_over_two_workers_to_the_ledger_and_back_to_s3(
    tmp_path: Path, bucket: str, postgresql: PostgreSQL, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = 3
    first = datetime.now(UTC).date() - timedelta(days=days + 2)
    write_london(tmp_path / "made", households=6, first_day=first, days=days + 1, seed=4)
    there = fsspec.filesystem("s3")
    incoming, release = f"{bucket}/far/incoming", f"{bucket}/far/release"
    files = sorted((tmp_path / "made").iterdir())
    for path in files:
        there.pipe_file(f"{incoming}/{path.name}", path.read_bytes())
    for number in range(days):
        there.pipe_file(f"{incoming}/{first + timedelta(days=number)}.done", b"")
    (tmp_path / "pgpass").write_text(f"127.0.0.1:{postgresql.port}:*:*:{PASSWORD}\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    processes.scheduler()
    processes.worker()
    processes.worker()

    far, near = tmp_path / "far", tmp_path / "near"
    ledger = postgresql.url_over_tcp(postgresql.database())
    places = {
        far: {"incoming": incoming, "release": release, "ledger": ledger, "engine": ""},
        near: {
            "incoming": tmp_path / "made", "release": "release", "ledger": "sqlite:///l.sqlite",
            "engine": 'scheduler = "threads"',
        },
    }  # fmt: skip
    homes = sorted({line.partition(",")[0] for path in files for line in path.read_text().splitlines()[1:]})
    for house, said in places.items():
        house.mkdir()
        (house / "run.toml").write_text(RUN.format(first=first, **said))
        (house / "roster.csv").write_text(
            "\n".join(["household_id,from,to", *(f"{home},{first},," for home in homes)]).replace(",,", ",") + "\n"
        )
    for number in range(days):
        (tmp_path / "made" / f"{first + timedelta(days=number)}.done").touch()

    before = tasks_done(processes.address)
    said = json.loads(agedp(far, "run", "run.toml", "--json", DASK_SCHEDULER_ADDRESS=processes.address))
    assert [one["day"] for one in said["released"]] == [str(first + timedelta(days=n)) for n in range(days)]
    assert said["folder"] == release
    assert tasks_done(processes.address) > before
    agedp(near, "run", "run.toml")
    assert true_means(far) == true_means(near)

    received = tmp_path / "received"
    there.get(f"{release}/", str(received), recursive=True)
    folder = ReleaseFolder(received)
    folder.verify()
    with Ledger.open(ledger) as kept:
        assert kept.verify() == ()
        assert len(kept.rows("homes")) == days
        verify_against(folder, kept)
