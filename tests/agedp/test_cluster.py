"""A cluster gives the same bits; a dead worker or a restarted scheduler costs time; what is wrong is one line."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import dask
import fsspec
import pytest
from distributed import Client

from agedp.compute import cluster
from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import read_daily_totals
from agedp.store.month_reader import load_month_readings
from agedp.store.store import Store
from agedp_data.datasets.synthetic import write_london
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import InputError
from tests.agedp.dask_processes import Processes

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    yield found
    cluster.connect.cache_clear()
    found.stop()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with one worker, for tests that leave both alive."""
    found = Processes(tmp_path_factory.mktemp("scheduler"))
    found.scheduler()
    found.worker()
    yield found.address
    found.stop()


@pytest.fixture
def shared(scheduler: str) -> Iterator[Engine]:
    yield Engine(scheduler)
    cluster.connect.cache_clear()


def told(folder: Path, engine: Engine) -> list[object]:
    store = Store(folder / "store", "london", ReadingRules())
    delivery = ingest(store, [str(folder.parent / "in")], engine=engine)
    found: list[object] = [delivery.rows_read, delivery.rejected]
    for month in delivery.months:
        of = load_month_readings(store, month, delivery.contents)
        found += [of.household.tolist(), of.time.tolist(), of.energy_wh.tolist()]
        found.append(read_daily_totals(store, month, delivery.contents).to_pylist())
    return found


def test_two_workers_of_another_process_give_the_same_bits_and_one_may_die(
    tmp_path: Path, processes: Processes
) -> None:
    write_london(tmp_path / "in", households=5, first_day=date(2012, 12, 25), days=12, seed=3)
    expected = told(tmp_path / "here", Engine("threads", 2, 5_000, 1))
    processes.scheduler()
    victim = processes.worker()
    processes.worker()
    assert told(tmp_path / "there", Engine(processes.address, 2, 5_000, 1)) == expected
    killed: list[int] = []

    def kill(stage: str, done: int, total: int) -> None:
        if stage == "read" and not killed:
            killed.append(done)
            victim.send_signal(signal.SIGKILL)

    assert told(tmp_path / "again", Engine(processes.address, 2, 2_000, 1, progress=kill)) == expected
    assert killed


def slow(number: int) -> int:
    time.sleep(0.3)
    return number * number


def test_a_scheduler_that_is_restarted_costs_the_stage_alone(processes: Processes) -> None:
    first = processes.scheduler()
    port = int(processes.address.rpartition(":")[2])
    worker = processes.worker()
    restarted: list[int] = []

    def restart(stage: str, done: int, total: int) -> None:
        if done == 2 and not restarted:
            restarted.append(done)
            for process in (first, worker):
                process.kill()
                process.wait()
            processes.scheduler(port)
            processes.worker()

    engine = Engine(processes.address, 1, progress=restart)
    assert map_items("slow", range(6), function=slow, engine=engine) == [0, 1, 4, 9, 16, 25]
    assert restarted


def test_nobody_at_the_address_and_no_workers_are_one_line_each(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_TIMEOUT", 1.0)
    monkeypatch.setattr(cluster, "_ATTEMPTS", 1)
    with pytest.raises(InputError, match="no Dask scheduler answers at the address"):
        map_items("slow", [1], function=slow, engine=Engine("tcp://127.0.0.1:9"))
    processes.scheduler()
    with pytest.raises(InputError, match="the cluster has no workers"):
        map_items("slow", [1], function=slow, engine=Engine(processes.address))


def test_other_versions_on_a_worker_are_refused(shared: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert map_items("slow", [3], function=slow, engine=shared) == [9]
    cluster.connect.cache_clear()
    original = cluster.version
    monkeypatch.setattr(cluster, "version", lambda name: "0.0.1" if name == "pyarrow" else original(name))
    with pytest.raises(InputError, match=r"pyarrow is 0\.0\.1 here and .* on a worker"):
        map_items("slow", [3], function=slow, engine=shared)


def test_a_folder_that_workers_do_not_see_is_refused(
    tmp_path: Path, shared: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.check_shared(tmp_path, shared)
    assert list(tmp_path.glob(".probe*")) == []
    monkeypatch.setattr(Path, "touch", lambda *_, **__: None)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    with pytest.raises(InputError, match=r"1 of 1 workers do not see \[output\] confidential"):
        cluster.check_shared(tmp_path, shared)


def test_a_cluster_of_our_own_gives_the_same_bits_and_talks_to_nobody_else(tmp_path: Path) -> None:
    write_london(tmp_path / "in", households=3, first_day=date(2012, 12, 20), days=20, seed=3)
    expected = told(tmp_path / "here", Engine("threads", 2, 5_000, 1))
    taken = socket.socket()
    with suppress(OSError):  # Dask's own port, taken by another of its schedulers
        taken.bind(("127.0.0.1", 8787))
        taken.listen()
    try:
        assert told(tmp_path / "there", Engine("local-cluster", 2, 5_000, 1)) == expected
        client = cluster.connect("local-cluster", 2)
        assert cluster.connect.cache_info().currsize == 1
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        with pytest.raises(InputError, match="needs certificates"):  # nor does anybody else have them
            cluster.connect(client.scheduler.address, 2)
        pages = [urlsplit(client.cluster.dashboard_link).port]
        pages += [one["services"]["dashboard"] for one in client.scheduler_info()["workers"].values()]
        for port in pages:
            asked = HTTPConnection("127.0.0.1", port, timeout=5)
            asked.request("GET", "/info/main/workers.html")
            assert asked.getresponse().status == 404
            asked.close()
        spilled = client.run(lambda: dask.config.get("distributed.worker.memory.spill"))
        assert set(spilled.values()) == {False}
    finally:
        taken.close()
        client = cluster.connect("local-cluster", 2)
        client.cluster.close()
        client.close()
        cluster.connect.cache_clear()


def test_an_input_file_that_a_worker_does_not_see_is_one_line(tmp_path: Path, shared: Engine) -> None:
    place = f"memory://{tmp_path.name}/MAC000002.csv"
    with fsspec.open(place, "wb") as stream:
        stream.write(b"LCLid,tstp,energy(kWh/hh)\n")
    with pytest.raises(
        InputError, match=r"^input 1 of 1: .* every worker of the cluster must see the input files"
    ) as caught:
        ingest(Store(tmp_path / "store", "london", ReadingRules()), [place], engine=shared)
    assert "MAC000002" not in str(caught.value)


def nested(address: str) -> str:
    with pytest.raises(InputError, match="this is a Dask worker already"):
        map_items("slow", [1], function=slow, engine=Engine(address))
    return "refused"


def test_a_worker_opens_no_client_of_its_own(shared: Engine) -> None:
    assert map_items("nested", [shared.scheduler], function=nested, engine=shared) == ["refused"]


def test_the_address_of_the_dashboard_is_reported_if_it_has_one(
    scheduler: str, shared: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    links: list[str] = []
    engine = Engine(scheduler, dashboard=links.append)
    for link in (None, "http://127.0.0.1:8787/status"):
        monkeypatch.setattr(Client, "dashboard_link", link)
        assert map_items("slow", [2], function=slow, engine=engine) == [4]
    assert links == ["http://127.0.0.1:8787/status"]
