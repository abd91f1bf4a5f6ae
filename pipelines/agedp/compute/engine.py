"""Map and merge: one interface to threads, processes and, with `cluster`, to Dask.

`stream_items` runs one function on every item of a stage and yields the results in the order of the items; everything
else is made of it. The results do not depend on the scheduler, the number of workers or the order in which tasks
finish. A task never raises: it returns its error, so that no scheduler logs its arguments, and the first failure in
the order of the items is raised here.

Decisions:

* An executor has two methods: `submit` returns what has a `result`, `stop` ends what is not needed any more. Threads
  and processes are pools of `concurrent.futures`, one for all stages of a run; only `cluster` imports Dask.
* Tasks are sent as results are read, so pools, schedulers and this process hold a bounded number of them. After a
  failure no further task begins, and none is left running that could write a file.
* Few and small results are merged here. A group of one item, such as a small file, is merged by its task.
* Work on households goes in blocks of them (`household_blocks`): 40 households are two tasks, 5,000 are 64.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import site
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from agedp.compute.engine_settings import (
    NO_MEMORY,
    SHOWN_PROGRESS,
    TASK_PREFIX,
    Call,
    Engine,
    Failure,
    reuse_freed_memory,
)
from agedp_data.config.loading import read_scheduler
from agedp_data.errors import AgedpError, InputError

LOCAL_SCHEDULERS = ("threads", "processes", "synchronous")
BLOCK_HOUSEHOLDS = (32, 128)
"""The fewest households of a block, below which a task costs more than it does, and the most."""
BLOCKS_AT_ONCE = 128
"""How many blocks of households are sent at once: each task carries what it works on."""
_BLOCKS = 64
_FAN_IN = 8
_TASKS_PER_WORKER = 16


def household_blocks(households: int) -> list[slice]:
    """Return this many households in blocks of nearly equal size, one for each task of a stage.

    A function of their number alone, so that no result depends on scheduler or workers.

    >>> household_blocks(40), len(household_blocks(5000)), len(household_blocks(100_000))
    ([slice(0, 20, None), slice(20, 40, None)], 64, 782)
    """
    fewest, most = BLOCK_HOUSEHOLDS
    size = min(max(-(-households // _BLOCKS), fewest), most)
    number = -(-households // size)
    ends = [households * i // number for i in range(number + 1)] if number else [0]
    return [slice(start, end) for start, end in pairwise(ends)]


def choose_scheduler(scheduler: Any) -> Any:  # noqa: ANN401
    """Return the scheduler of an engine: a name, or the client that is given or that a cluster object has.

    Raises:
        RunFileError: none of these.
    """
    if not isinstance(scheduler, str) and sys.modules.get("distributed"):
        from agedp.compute.cluster import client_of  # noqa: PLC0415

        return client_of(scheduler) or read_scheduler(scheduler)
    return read_scheduler(scheduler)


def default_scheduler() -> Any:  # noqa: ANN401
    """Return the active client, or the scheduler of Dask's configuration or of DASK_SCHEDULER_ADDRESS.

    "threads" if there is none.
    """
    if sys.modules.get("distributed"):  # no client can be active otherwise
        from distributed import Client  # noqa: PLC0415

        with suppress(ValueError):  # there is none, or this is a worker
            return Client.current(allow_global=True)
    if not _may_be_configured():
        return "threads"
    try:
        from dask import config as dask_config  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError:  # the address is refused by the name of the extra
        return os.environ.get("DASK_SCHEDULER_ADDRESS", "threads")
    address = dask_config.get("scheduler-address", None)
    chosen = address or dask_config.get("scheduler", None)
    return str(chosen) if address or chosen in LOCAL_SCHEDULERS else "threads"


def _may_be_configured() -> bool:
    """Return whether Dask may have a configuration: in this process, its environment or one of Dask's folders."""
    if "dask" in sys.modules or any(name.startswith("DASK_") for name in os.environ):
        return True
    folders = [Path(prefix, "etc", "dask") for prefix in ("/", sys.prefix, *site.PREFIXES)]
    return any(folder.exists() for folder in (*folders, Path("~/.config/dask").expanduser()))


def check_shared(folder: Path, engine: Engine) -> None:
    """Check that workers can access a folder; on this machine they always can.

    Raises:
        InputError: as `cluster.check_shared`.
    """
    if engine.scheduler not in LOCAL_SCHEDULERS:
        from agedp.compute.cluster import check_shared as shared  # noqa: PLC0415  (an extra, and slow to import)

        shared(folder, engine)


@contextmanager
def explain_worker_errors(engine: Engine) -> Iterator[None]:
    """Add a hint to the error about an input file that exists here but that a remote worker cannot read."""
    try:
        yield
    except InputError as error:
        if engine.scheduler in LOCAL_SCHEDULERS or str(error).startswith("[engine]"):
            raise
        hint = "every worker of the cluster must see the input files under the same names"
        raise InputError(f"{error}; {hint}", private=f"{error.private}; {hint}") from None


# --------------------------------------------------------------------------------------------------
# Executors.
# --------------------------------------------------------------------------------------------------


class Pool:
    """Runs tasks on the threads or processes of an engine, or in the calling thread.

    Attributes:
        at_once: how many tasks are sent whose results are not read yet, unless the stage wants fewer.
        submit: sends a task.
    """

    def __init__(self, engine: Engine, kind: str) -> None:
        if (kind, engine.workers) not in engine.pools:  # it ends with the run
            engine.pools[kind, engine.workers] = _POOLS[kind](engine.workers)
        self.at_once = 1 if kind == "synchronous" else _TASKS_PER_WORKER * engine.workers
        self.submit: Callable[[Call], futures.Future[Any]] = engine.pools[kind, engine.workers].submit

    def stop(self, sent: Iterable[futures.Future[Any]], *, waits: bool) -> None:  # noqa: ARG002  (always)
        """End tasks whose results are not needed: what did not begin is cancelled, what did is waited for."""
        futures.wait([task for task in sent if not task.cancel()])


class _CallingThread(futures.Executor):
    def __init__(self, _: int) -> None:
        super().__init__()

    def submit(self, call: Call, /, *_: Any, **__: Any) -> futures.Future[Any]:  # noqa: ANN401
        task: futures.Future[Any] = futures.Future()
        task.set_result(call())
        return task


class _Processes(futures.ProcessPoolExecutor):
    """Processes that end with this one, which alone is told of an interrupt."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers, multiprocessing.get_context("spawn"), _begin_worker)

    def submit(self, call: Call, /, *_: Any, **__: Any) -> futures.Future[Any]:  # noqa: ANN401
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a process that is started inherits it
        try:
            return super().submit(call)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)

    def __del__(self) -> None:
        """Wait for the end of the processes: a run that exits meanwhile may print a traceback of Python 3.11's own."""
        manager: object = self._executor_manager_thread
        if threading.current_thread() is not manager:  # it may be the last that knows this pool
            self.shutdown()


_POOLS: Mapping[str, Callable[[int], futures.Executor]] = {
    "synchronous": _CallingThread,
    "threads": futures.ThreadPoolExecutor,
    "processes": _Processes,
}


def _executor(stage: str, engine: Engine, items: int) -> Any:  # noqa: ANN401  (a Pool, or the same on a cluster)
    if engine.scheduler in LOCAL_SCHEDULERS:
        is_one = items == 1 and engine.scheduler == "threads"  # worth no thread
        return Pool(engine, "synchronous" if is_one else engine.scheduler)
    from agedp.compute.cluster import ClusterExecutor  # noqa: PLC0415  (an extra, and slow to import)

    return ClusterExecutor(stage, engine)


def _begin_worker() -> None:
    """Prepare a worker process of our own, which ends with its run: it would wait for its next task for ever."""
    reuse_freed_memory()
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


# --------------------------------------------------------------------------------------------------
# Stages.
# --------------------------------------------------------------------------------------------------


def stream_items(
    stage: str, items: Sequence[Any], *, function: Callable[[Any], Any], engine: Engine, at_once: int | None = None
) -> Generator[Any]:
    """Yield function(item) for each item, in order: a task of the engine for each.

    Args:
        stage: stage name for the keys of the tasks, the progress callback and errors.
        items: the arguments.
        function: the work on one item.
        engine: scheduler and workers.
        at_once: bounds the tasks whose results are not read yet, if they need much memory.

    Raises:
        AgedpError: the first error of a task in the order of the items; or workers were lost.
        TaskFailed: a bug in a task.
    """
    if not items:
        return
    engine.tasks[stage] += len(items)
    executor = _executor(stage, engine, len(items))
    most, calls = min(at_once or executor.at_once, executor.at_once), (partial(_run, function, item) for item in items)
    sent: deque[Any] = deque()
    waits = True
    try:
        while True:
            if (room := most - len(sent)) * 4 >= most:
                sent.extend(executor.submit(call) for call in islice(calls, room))
            if not sent:
                return
            waits = False  # if this process is interrupted, or its workers are lost
            result = sent[0].result()
            waits = True
            sent.popleft()
            _raise_failure(result)
            engine.finished[stage] += 1
            if (progress := engine.progress or SHOWN_PROGRESS.get()) is not None:
                progress(stage, engine.finished[stage], engine.tasks[stage])
            yield result
    except futures.BrokenExecutor:
        engine.pools.clear()
        raise InputError(
            f"[engine] scheduler: a worker process ended in stage {stage!r}. The usual cause is too little memory: "
            "lower workers or block_mib. (In a script, processes need `if __name__ == '__main__':`.)"
        ) from None
    finally:
        executor.stop(sent, waits=waits)


def map_items(
    stage: str, items: Sequence[Any], *, function: Callable[[Any], Any], engine: Engine, at_once: int | None = None
) -> list[Any]:
    """Return [function(item) for item in items], computed by the engine as `stream_items` does."""
    return list(stream_items(stage, items, function=function, engine=engine, at_once=at_once))


def map_merge(
    stage: str,
    groups: Sequence[Sequence[Any]],
    *,
    function: Callable[[Any], Any],
    merge: Callable[[list[Any]], Any],
    engine: Engine,
) -> list[Any]:
    """Return [merge([function(item) for item in group]) for group in groups], computed by the engine.

    The task of a group's only item merges it too; other groups are merged here as soon as their results are known.
    """
    items = [(item, merge if len(group) == 1 else None) for group in groups for item in group]
    run, merged = partial(_run_and_merge, function=function), []
    with closing(stream_items(stage, items, function=run, engine=engine)) as results:
        for group in groups:
            parts = list(islice(results, len(group)))
            merged.append(parts[0] if len(group) == 1 else _raise_failure(_run(merge, parts)))
    return merged


def map_reduce(
    stage: str,
    items: Sequence[Any],
    *,
    function: Callable[[Any], Any],
    combine: Callable[[list[Any]], Any],
    engine: Engine,
) -> Any:  # noqa: ANN401  (any result of a stage)
    """Return the combined results of function(item), computed by the engine and combined here, eight at a time.

    Args:
        stage: stage name for the keys of the tasks and the progress callback.
        items: the arguments, in order.
        function: the work on one item.
        combine: combines some results, at least one unless there are no items, into one of the same form. It must be
            associative; results keep the order of their items.
        engine: scheduler and workers.
    """
    combined: list[Any] = []
    with closing(stream_items(stage, items, function=function, engine=engine)) as results:
        while parts := list(islice(results, _FAN_IN - len(combined))):
            combined = [_raise_failure(_run(combine, combined + parts))]
    return combined[0] if combined else combine([])


def _run_and_merge(item: tuple[Any, Callable[[list[Any]], Any] | None], *, function: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    argument, merge = item
    return function(argument) if merge is None else merge([function(argument)])


def _run(function: Callable[[Any], Any], argument: Any) -> Any:  # noqa: ANN401
    """Return function(argument), or its error as a value."""
    try:
        return function(argument)
    except AgedpError as error:
        return Failure(error.with_traceback(None), "")
    except MemoryError:
        return Failure(InputError(NO_MEMORY), "")
    except Exception as error:
        # without the message: messages of Arrow quote rows
        return Failure(None, "".join([*traceback.format_tb(error.__traceback__), type(error).__name__]))


def _raise_failure(result: Any) -> Any:  # noqa: ANN401
    """Return a result; raise the error of one that failed."""
    if isinstance(result, Failure):
        result.raise_error()
    return result


def reopened(engine: Engine) -> Engine:
    """Return an engine, on threads of this process if the client that it used is closed."""
    if engine.scheduler in LOCAL_SCHEDULERS:
        return engine
    from agedp.compute.cluster import is_closed  # noqa: PLC0415  (an extra, and slow to import)

    return replace(engine, scheduler="threads") if is_closed(engine.scheduler) else engine


def task_summary(engine: Engine) -> str:
    """Return the number of tasks by stage and the scheduler of an engine, "" before any task; confidential.

    >>> ran = Engine("threads", 2)
    >>> map_items("bounds", [1, 4], function=abs, engine=ran), task_summary(ran)
    ([1, 4], 'Tasks: 2 agedp-bounds. Scheduler: threads, 2 workers.')
    """
    if not engine.tasks:
        return ""
    scheduler = f"{engine.scheduler}, {engine.workers} workers"
    if engine.scheduler not in LOCAL_SCHEDULERS:
        from agedp.compute.cluster import describe_cluster  # noqa: PLC0415  (an extra, and slow to import)

        scheduler = describe_cluster(engine)
    stages = ", ".join(f"{number:,} {TASK_PREFIX}{stage}" for stage, number in engine.tasks.items())
    return f"Tasks: {stages}. Scheduler: {scheduler}."
