"""The engine: same results on every scheduler, and nothing of the data in what it says."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import NoReturn

import pytest
from dask.callbacks import Callback

from agedp.compute.engine import map_items, map_merge, map_reduce, reuse_freed_memory
from agedp.compute.engine_settings import Engine, TaskFailed
from agedp_data.errors import InputError

THREADS = Engine("threads", 2)


@pytest.mark.parametrize("engine", [Engine("synchronous", 1), Engine("threads", 5), Engine("processes", 2)])
def test_groups_are_mapped_and_merged_in_order_on_every_scheduler(engine: Engine) -> None:
    groups = [[3, -1, 2], [], [7], list(range(40))]
    merged = map_merge("stage", groups, function=operator.neg, merge=tuple, engine=engine)
    assert merged == [tuple(-item for item in group) for group in groups]
    assert map_items("stage", [1, 2, 3], function=operator.neg, engine=engine) == [-1, -2, -3]
    assert map_merge("stage", [], function=operator.neg, merge=tuple, engine=engine) == []


def _settings_made(_: int) -> int:
    return reuse_freed_memory.cache_info().currsize


def test_only_worker_processes_of_our_own_retain_freed_memory() -> None:
    reuse_freed_memory.cache_clear()
    found = [
        map_items("settings", [1, 2], function=_settings_made, engine=Engine(name, 2))
        for name in ("threads", "processes")
    ]
    assert found == [[0, 0], [1, 1]]


def _pair(item: int) -> tuple[list[int], int]:
    return [item], 1


def _joined(results: list[tuple[list[int], int]]) -> tuple[list[int], int]:
    """Join lists in order, and count the results that one task receives."""
    return [item for items, _ in results for item in items], max((len(results), *(most for _, most in results)))


@pytest.mark.parametrize("items", [0, 1, 2, 3, 4, 9, 10, 28])
def test_results_are_reduced_in_order_a_few_at_a_time(items: int) -> None:
    for fan_in in (2, 3, 8):
        joined = map_reduce("stage", range(items), function=_pair, combine=_combined, engine=THREADS, fan_in=fan_in)
        assert joined == (list(range(items)), min(max(items, 1), fan_in) if items else 0)


def _combined(results: list[tuple[list[int], int]]) -> tuple[list[int], int]:
    return _joined(results) if results else ([], 0)


def test_a_reduction_raises_the_first_failure_in_the_order_of_items() -> None:
    def fail(item: int) -> tuple[list[int], int]:
        if item in (11, 17):
            raise InputError(f"input {item}")
        return _pair(item)

    with pytest.raises(InputError, match=r"^input 11$"):
        map_reduce("stage", range(30), function=fail, combine=_combined, engine=THREADS, fan_in=3)


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
    engine = Engine("processes", 1)
    with pytest.raises(InputError) as caught:
        map_items("stage", [InputError("input 1", private="MAC1.csv")], function=_throw, engine=engine)
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


def test_task_keys_are_a_stage_name_and_a_running_number() -> None:
    seen: list[str] = []
    with Callback(pretask=lambda key, *_: seen.append(key)):
        map_merge(
            "read", [["MAC1", "MAC2"], ["MAC3"]], function=str.lower, merge="".join, engine=Engine("synchronous", 1)
        )
    assert sorted(seen) == [f"agedp-read-{number}" for number in (1, 2, 3, 4, 5)]


def _throw(error: InputError) -> NoReturn:
    raise error


@pytest.mark.parametrize("engine", [Engine("synchronous", 1), THREADS])
def test_one_item_has_the_progress_and_errors_of_many(engine: Engine) -> None:
    counted: list[tuple[str, int, int]] = []
    watched = replace(engine, progress=lambda *counts: counted.append(counts))
    assert map_merge("stage", [[3]], function=operator.neg, merge=tuple, engine=watched) == [(-3,)]
    assert map_reduce("stage", [3], function=operator.neg, combine=sum, engine=watched) == -3
    assert counted == [("stage", 1, 2), ("stage", 2, 2)] * 2
    with pytest.raises(TaskFailed) as failed:
        map_items("stage", ["home A"], function=operator.neg, engine=engine)
    assert "home A" not in str(failed.value)
