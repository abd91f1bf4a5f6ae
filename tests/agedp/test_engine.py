"""The engine: same results on every scheduler, and nothing of the data in what it says."""

from __future__ import annotations

import gc
import operator
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import pytest

from agedp.compute import engine as engine_module
from agedp.compute.engine import map_items, map_merge, map_reduce, stream_items
from agedp.compute.engine_settings import Engine, TaskFailed
from agedp_data.errors import InputError

THREADS = Engine("threads", 2)
PROCESSES = Engine("processes", 2)  # its interpreters start once, for all tests


@pytest.mark.parametrize("engine", [Engine("synchronous", 1), Engine("threads", 5), PROCESSES])
def test_groups_are_mapped_and_merged_in_order_on_every_scheduler(engine: Engine) -> None:
    groups = [[3, -1, 2], [], [7], list(range(40))]
    merged = map_merge("stage", groups, function=operator.neg, merge=tuple, engine=engine)
    assert merged == [tuple(-item for item in group) for group in groups]
    assert map_items("stage", [1, 2, 3], function=operator.neg, engine=engine) == [-1, -2, -3]
    assert map_merge("stage", [], function=operator.neg, merge=tuple, engine=engine) == []


def _pair(item: int) -> tuple[list[int], int]:
    return [item], 1


def _joined(results: list[tuple[list[int], int]]) -> tuple[list[int], int]:
    """Join lists in order, and count the results that one task receives."""
    return [item for items, _ in results for item in items], max((len(results), *(most for _, most in results)))


@pytest.mark.parametrize("items", [0, 1, 2, 3, 4, 9, 10, 28])
def test_results_are_reduced_in_order_a_few_at_a_time(items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for fan_in in (2, 3, 8):
        monkeypatch.setattr(engine_module, "_FAN_IN", fan_in)
        joined = map_reduce("stage", range(items), function=_pair, combine=_combined, engine=THREADS)
        assert joined == (list(range(items)), min(max(items, 1), fan_in) if items else 0)


def _combined(results: list[tuple[list[int], int]]) -> tuple[list[int], int]:
    return _joined(results) if results else ([], 0)


def test_the_first_failure_in_the_order_of_items_is_raised() -> None:
    def fail(item: int) -> int:
        if item % 2:
            raise InputError(f"input {item}", private=f"MAC{item}.csv")
        return item

    for workers in (1, 8):
        with pytest.raises(InputError, match=r"^input 3$") as caught:
            map_merge("stage", [[0, 2], [4, 3, 5], [1]], function=fail, merge=sum, engine=Engine("threads", workers))
        assert caught.value.private == "MAC3.csv"


def test_both_texts_of_an_error_cross_process_borders() -> None:
    with pytest.raises(InputError) as caught:
        map_items("stage", [InputError("input 1", private="MAC1.csv")], function=_throw, engine=PROCESSES)
    assert (str(caught.value), caught.value.private) == ("input 1", "MAC1.csv")


def test_a_bug_in_a_task_tells_where_it_was_but_none_of_its_values() -> None:
    def stumble(item: str) -> int:
        return int(item)

    with pytest.raises(TaskFailed) as caught:
        map_items("stage", ["MAC000002,0.143"], function=stumble, engine=THREADS)
    text = str(caught.value)
    assert "in stumble" in text
    assert text.endswith("ValueError")
    assert "MAC000002" not in text
    assert caught.value.__context__ is None


def _throw(error: InputError) -> NoReturn:
    raise error


def test_a_bounded_number_of_tasks_is_sent_ahead_of_the_results_that_are_read() -> None:
    begun: list[int] = []
    results = stream_items("stage", range(100), function=begun.append, engine=THREADS, at_once=4)
    for read, _ in enumerate(results, start=1):
        assert len(begun) <= read + 4
    assert sorted(begun) == list(range(100))


def test_no_task_begins_or_runs_after_a_failure() -> None:
    begun: list[int] = []
    may_end = threading.Event()

    def fail(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise InputError("input 0")
        threading.Timer(0.2, may_end.set).start()
        may_end.wait()
        begun.append(-item)

    with pytest.raises(InputError, match=r"^input 0$"):
        map_items("stage", range(1000), function=fail, engine=THREADS)
    ended = list(begun)
    assert len(ended) < 100
    assert sorted(item for item in ended if item > 0) == sorted(-item for item in ended if item < 0)
    assert map_items("stage", [1, 2], function=operator.neg, engine=THREADS) == [-1, -2]
    assert begun == ended


def _die(item: int) -> int:
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_a_worker_process_that_is_killed_is_one_line() -> None:
    engine = Engine("processes", 2)
    with pytest.raises(InputError, match=r"^\[engine\] scheduler: a worker process ended in stage 'read'\."):
        map_items("read", range(50), function=_die, engine=engine)
    assert not engine.pools  # so that the next stage begins with another


def test_no_thread_of_a_pool_outlives_its_run() -> None:
    """Python's exit fails now and then, with a traceback, beside the thread that ends worker processes."""
    engine, before = Engine("processes", 1), set(threading.enumerate())
    assert map_items("stage", [1, 2], function=operator.neg, engine=engine) == [-1, -2]
    begun = {*threading.enumerate()} - before
    del engine
    gc.collect()
    assert begun
    assert begun.isdisjoint(threading.enumerate())


_INTERRUPTED = """
import os, signal, sys, threading, time
from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine

if __name__ == "__main__":
    engine = Engine(sys.argv[1], 2)
    if sys.argv[1] == "processes":
        map_items("start", [1, 2], function=abs, engine=engine)  # perhaps while the second still starts
        print(*engine.pools["processes", 2]._processes, flush=True)
    threading.Timer(0.5, os.killpg, (0, signal.SIGINT)).start()
    try:
        map_items("wait", [0.05] * 1000, function=time.sleep, engine=engine)
    except KeyboardInterrupt:
        print("interrupted", engine.finished["wait"] < 100)
"""


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_an_interrupt_leaves_nothing_running(tmp_path: Path, scheduler: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(_INTERRUPTED)
    done = subprocess.run(
        [sys.executable, script, scheduler], capture_output=True, text=True, timeout=60, check=True,
        start_new_session=True,
    )  # fmt: skip
    *workers, last = done.stdout.splitlines()
    assert (last, done.stderr) == ("interrupted True", "")
    for worker in " ".join(workers).split():
        assert not Path("/proc", worker).exists()
