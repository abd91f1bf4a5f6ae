"""A cluster gives the same bits; a dead worker costs time; what is wrong is one line."""

from __future__ import annotations

import operator
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import dask
import fsspec
import pytest
from distributed import Client, LocalCluster

from agedp.compute import cluster
from agedp.compute.engine import map_items, map_merge, map_reduce, reuse_freed_memory
from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import read_daily_totals
from agedp.store.month_reader import load_month_readings
from agedp.store.store import Store
from agedp_data.datasets.synthetic import write_london
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import InputError

pytestmark = pytest.mark.xdist_group("cluster")


def disconnect() -> None:
    """Close the clients that `connect` remembers: one that outlives its scheduler logs errors into later tests."""
    cluster.connect.cache_clear()
    for client in list(Client._instances):
        client.close(timeout=5)


@contextmanager
def running(folder: Path, *, workers: int) -> Iterator[LocalCluster]:
    """A scheduler on loopback, and workers as processes of their own, with 1 GB each."""
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0", local_directory=str(folder)
    ) as found:
        yield found
        disconnect()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with one worker, for tests that leave both alive."""
    with running(tmp_path_factory.mktemp("scheduler"), workers=1) as found:
        yield found.scheduler_address


@pytest.fixture
def shared(scheduler: str) -> Iterator[Engine]:
    yield Engine(scheduler)
    disconnect()


def told(folder: Path, engine: Engine, *, buckets: int = 1) -> list[object]:
    store = Store(folder / "store", "london", ReadingRules(), buckets=buckets)
    delivery = ingest(store, [str(folder.parent / "in")], engine=engine)
    found: list[object] = [delivery.rows_read, delivery.rejected]
    for month in delivery.months:
        of = load_month_readings(store, month, delivery.contents)
        found += [of.ids, of.household.tolist(), of.time.tolist(), of.energy_wh.tolist()]
        by_bucket = (read_daily_totals(store, month, delivery.contents, bucket) for bucket in range(buckets))
        totals = [row for table in by_bucket for row in table.to_pylist()]
        found.append(sorted(totals, key=operator.itemgetter("household_id", "day")))  # the parts decide their order
    return found


def test_two_workers_give_the_same_bits_and_one_may_die(tmp_path: Path) -> None:
    write_london(tmp_path / "in", households=4, first_day=date(2012, 12, 28), days=8, seed=3)
    expected = told(tmp_path / "here", Engine("threads", 2, 5_000, 1))
    killed: list[int] = []

    def kill(stage: str, done: int, total: int) -> None:
        if stage == "read" and not killed:
            killed.append(done)
            os.kill(found.workers[0].pid, signal.SIGKILL)

    with running(tmp_path, workers=2) as found:
        engine = Engine(found.scheduler_address, 2, 2_000, 1, progress=kill)
        assert told(tmp_path / "there", engine, buckets=3) == expected
    assert killed


def _negative_once_a_worker_died(item: tuple[int, str]) -> int:
    """Return -number; kill this worker if the file does not exist, which this makes."""
    number, path = item
    if path:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return -number
        os.kill(os.getpid(), signal.SIGKILL)
    return -number


def _kill_worker(_: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


@pytest.mark.parametrize(("workers", "dies"), [(1, False), pytest.param(2, True, marks=pytest.mark.long)])
def test_an_adaptive_cluster_starts_from_no_workers(
    tmp_path: Path, workers: int, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster has workers while it has tasks; one may die, and its tasks are computed again."""
    monkeypatch.setattr(cluster, "_TASKS_SENT", 20)
    monkeypatch.setattr(cluster, "_POLL_S", 0.5)
    items = [(number, str(tmp_path / "dead") if dies and number == 5 else "") for number in range(40)]
    with running(tmp_path, workers=0) as found:
        found.adapt(minimum=0, maximum=workers, interval="100ms")
        engine = Engine(found.scheduler_address, 2)
        cluster.check_shared(tmp_path, engine)
        total = map_reduce("stage", items, function=_negative_once_a_worker_died, combine=sum, engine=engine)
    assert total == -sum(range(40))
    assert (tmp_path / "dead").exists() == dies
    assert list(tmp_path.glob(".probe*")) == []


def test_a_task_that_kills_its_workers_is_one_line(tmp_path: Path) -> None:
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), running(tmp_path, workers=1) as found:
        engine = Engine(found.scheduler_address, 2)
        line = r"^\[engine\] scheduler: workers died repeatedly in the same task of stage 'days' .* lower block_mib$"
        with pytest.raises(InputError, match=line):
            map_items("days", [1], function=_kill_worker, engine=engine)


def test_tasks_are_sent_as_others_finish(shared: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler never has more than the bound, and results keep their order over all groups."""
    monkeypatch.setattr(cluster, "_TASKS_SENT", 20)
    most: list[int] = []

    def count(stage: str, done: int, total: int) -> None:
        if done % 10 == 0:
            most.append(len(cluster.find_client(shared).futures))
        assert total == 120

    groups = [[number, number + 1] for number in range(60)]
    engine = replace(shared, progress=count)
    assert map_merge("stage", groups, function=operator.neg, merge=sum, engine=engine) == [
        -2 * i - 1 for i in range(60)
    ]
    assert 0 < max(most) <= 20


def test_a_worker_that_joins_later_is_checked(tmp_path: Path, shared: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert map_items("negative", [3], function=operator.neg, engine=shared) == [-3]
    settings = cluster.find_client(shared).run(lambda: reuse_freed_memory.cache_info().currsize)
    assert set(settings.values()) == {1}  # of workers that anybody started
    cluster.check_shared(tmp_path, shared)
    with monkeypatch.context() as patch:
        patch.setattr(cluster.Path, "touch", lambda *_, **__: None)
        with pytest.raises(InputError, match=r"a worker does not see \[output\] confidential"):
            map_items("negative", [3], function=operator.neg, engine=shared)
    original = cluster.version
    monkeypatch.setattr(cluster, "version", lambda name: "0.0.1" if name == "numpy" else original(name))
    with pytest.raises(InputError, match=r"numpy is 0\.0\.1 here and .* on a worker"):
        map_items("negative", [3], function=operator.neg, engine=shared)


def test_nobody_at_the_address_and_no_workers_are_one_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_TIMEOUT", 1.0)
    monkeypatch.setattr(cluster, "_NO_WORKERS_S", 1.0)
    monkeypatch.setattr(cluster, "_POLL_S", 0.2)
    monkeypatch.setattr(cluster, "_ATTEMPTS", 1)
    with pytest.raises(InputError, match="no Dask scheduler answers at the address"):
        map_items("negative", [1], function=operator.neg, engine=Engine("tcp://127.0.0.1:9"))
    with running(tmp_path, workers=0) as found, pytest.raises(InputError, match="the cluster has no workers"):
        map_items("negative", [1], function=operator.neg, engine=Engine(found.scheduler_address))


def test_our_own_cluster_talks_to_nobody_else() -> None:
    try:
        assert map_items("negative", [3], function=operator.neg, engine=Engine("local-cluster", 1)) == [-3]
        client = cluster.connect("local-cluster", 1)
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
        assert set(client.run(lambda: reuse_freed_memory.cache_info().currsize).values()) == {1}
    finally:
        client = cluster.connect("local-cluster", 1)
        client.cluster.close()
        client.close()
        cluster.connect.cache_clear()


def test_an_input_file_that_a_worker_does_not_see_is_one_line(tmp_path: Path, shared: Engine) -> None:
    place = f"memory://{tmp_path.name}/MAC000002.csv"
    with fsspec.open(place, "wb") as stream:
        stream.write(b"LCLid,tstp,energy(kWh/hh)\n")
    line = r"^input 1 of 1: .* every worker of the cluster must see the input files"
    with pytest.raises(InputError, match=line) as caught:
        ingest(Store(tmp_path / "store", "london", ReadingRules()), [place], engine=shared)
    assert "MAC000002" not in str(caught.value)
