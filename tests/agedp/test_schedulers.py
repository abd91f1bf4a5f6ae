"""Which scheduler a run uses, what is tried before anything is sent to it, and what is missing in one line."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import NoReturn

import dask
import fsspec
import pytest

from agedp.compute import cluster
from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.run_context import RunContext, engine_for
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.datasets import filesystem
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import InputError, RunFileError
from tests.exact_sums import sum_wh

D = date(2013, 1, 1)
REHEARSED = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'
ADDRESS = "tcp://scheduler.internal:8786"


def scheduler_of(house, text: str, chosen: str | None = None) -> str:
    house.roster([("A", D, None), ("B", D, None)])
    return engine_for(RunContext.load(house.write(D, D, rest=text)).run_file, chosen).scheduler


def test_a_callers_choice_goes_before_run_file_and_dask(house):
    told = dask.config.collect_env({"DASK_SCHEDULER_ADDRESS": ADDRESS})
    written = '[engine]\nscheduler = "threads"\n'
    assert scheduler_of(house, "") == "threads"
    for said, used in (("processes", "processes"), ("x", "threads")):
        with dask.config.set({"scheduler": said}):
            assert scheduler_of(house, "") == used
    with dask.config.set(told):
        assert scheduler_of(house, "") == ADDRESS
        assert scheduler_of(house, "[engine]\nworkers = 3\n") == ADDRESS
        assert scheduler_of(house, written) == "threads"
        assert scheduler_of(house, written, "processes") == "processes"


@pytest.mark.parametrize(
    "scheduler",
    ["local-cluster", ADDRESS, "tls://10.0.0.1:8786", "tcp://[::1]:8786", "wss://a:1", "ucx://a:1"],
)
def test_every_scheduler_can_be_written(house, scheduler):
    assert scheduler_of(house, f'[engine]\nscheduler = "{scheduler}"\n') == scheduler


@pytest.mark.parametrize(
    "scheduler", ["tcp://x", "ftp://x:1", "tcp://me:secret@x:1", "tcp://x:1/a", "x:1", "synchronous", ""]
)
def test_what_is_no_scheduler_is_refused(house, scheduler):
    with pytest.raises(RunFileError, match=r"\[engine\] scheduler"):
        scheduler_of(house, f'[engine]\nscheduler = "{scheduler}"\n')


def test_nothing_is_sent_to_workers_that_share_no_folder(tmp_path, monkeypatch):
    def refuse(folder: Path, engine: Engine) -> NoReturn:
        assert (folder, engine.scheduler) == (tmp_path / "store", ADDRESS)
        raise InputError("workers do not see it")

    monkeypatch.setattr(cluster, "check_shared", refuse)
    monkeypatch.setattr(cluster.ClusterExecutor, "submit", lambda *_: pytest.fail("something was sent"))
    (tmp_path / "a.csv").write_text("LCLid,tstp,energy(kWh/hh)\n")
    with pytest.raises(InputError, match="workers do not see it"):
        ingest(Store(tmp_path / "store", "london", ReadingRules()), [str(tmp_path / "a.csv")], engine=Engine(ADDRESS))


def test_without_the_extra_a_cluster_is_one_line(monkeypatch):
    monkeypatch.delitem(sys.modules, "agedp.compute.cluster", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"which is not installed; install agedp with its extra cluster$"):
        map_items("stage", [1], function=abs, engine=Engine("local-cluster"))


def test_without_the_extra_an_s3_address_is_one_line(monkeypatch):
    for name in [name for name in sys.modules if name == "s3fs" or name.startswith("s3fs.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    for protocol in ("s3", "s3a"):  # known to this process if another test has used it
        monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, protocol, raising=False)
    with pytest.raises(InputError, match=r"install agedp with its extra s3") as caught:
        filesystem.list_locations("s3://meters/incoming/MAC000002.csv")
    assert "MAC000002" not in str(caught.value)
    assert "\n" not in caught.value.private


@pytest.mark.parametrize("where", ["memory", pytest.param("s3", marks=pytest.mark.xdist_group("s3"))])
def test_files_and_markers_elsewhere_are_read_and_waited_for(house, where, request):
    root = f"{request.getfixturevalue('bucket')}/nights" if where == "s3" else f"memory://{house.folder.name}"
    house.fill([D], households="AB", wh=100)
    with fsspec.open(f"{root}/in/a.csv", "wb") as stream:
        stream.write((house.folder / "input" / "a.csv").read_bytes())
    house.write(D, date(2013, 1, 3), mode="rehearsal", promise=REHEARSED)
    marker = f'wait_for = "{root}/{{day}}.done"\n[series.'
    house.edit(('"input/*.csv"', f'"{root}/in/*.csv"'), ("[series.", marker))
    waiting = house.run(as_of=date(2013, 1, 3))
    assert ([row.day for row in waiting.released], waiting.due_days.waiting[0]) == ([], D)
    with fsspec.open(f"{root}/{D}.done", "wb"):
        pass
    done = house.run(as_of=date(2013, 1, 3))
    assert [row.day for row in done.released] == [D.isoformat()]
    assert sum_wh(done.checked.sums.by_day[D, "daily_mean"]) == {"all": 48 * 200}
