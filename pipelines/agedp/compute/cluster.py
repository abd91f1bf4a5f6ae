"""The same tasks on a Dask cluster: one on this machine, or any by its address.

Workers must run the same versions and access the same files as this process: `WorkerCheck` says when that is checked.
If a worker dies its tasks are repeated, if a scheduler restarts the tasks without a result are: tasks write files
atomically and by name, so repeating them does no harm. Keys are "agedp-", a stage name and a running number, so a
dashboard shows `agedp-bounds`. Numbers begin at random: two runs that share a scheduler must not share a key, or one
would receive the results of the other.

Decisions:

* Each result is released when it is read. So scheduler and client hold a few thousand tasks, however many a stage has.
* A cluster without workers is waited for, with a task in its queue: adaptive clusters start workers for tasks only.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from agedp.compute.engine_settings import TASK_PREFIX, Call, Engine, Failure, reuse_freed_memory
from agedp_data.errors import InputError, Unavailable

try:
    from dask import config as dask_config
    from dask.utils import parse_timedelta
    from distributed import Client, Future, LocalCluster, get_worker
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError
except ImportError:
    raise InputError(
        "[engine] scheduler: clusters need Dask's distributed, which is not installed; "
        "install agedp with its extra cluster"
    ) from None

LOCAL_CLUSTER: Final = "local-cluster"
_ATTEMPTS = 3
_TIMEOUT = 20.0
_NO_WORKERS_S = 300.0
_POLL_S = 2.0
_TASKS_SENT = 4096
_LARGE_GRAPH = "1GB"  # tasks carry the counts or readings of their households, each to one worker
_CONNECTION_ERRORS = (CancelledError, FutureCancelledError, CommClosedError, TimeoutError, OSError)

# --------------------------------------------------------------------------------------------------
# What holds for a worker before it runs a task: the versions of this process, and the folder that all machines share.
#
# The workers at the start of a run are asked at once, so that nothing is sent to a cluster that cannot work. A worker
# that joins later, as adaptive clusters add them, is checked by the first task of each stage that it receives: a
# result of other versions, or readings written to a disk of its own, must not become part of a run.
# --------------------------------------------------------------------------------------------------

_PACKAGES: Final = ("agedp", "dask", "distributed", "numpy", "pyarrow")
_PROBE: Final = ".probe-"
_ABANDONED_S: Final = 7 * 24 * 3600
_SHARED: WeakKeyDictionary[Client, Path] = WeakKeyDictionary()
"""The folder that the workers of a client must see."""


@dataclass(frozen=True, slots=True)
class WorkerCheck:
    """What a worker checks before its first task of a stage.

    Attributes:
        versions: the packages of this process with their versions.
        probe: a file in the folder that all share; None before one is named.
        process: machine and number of this process, whose memory is left as it is if its own threads are workers.
    """

    versions: tuple[tuple[str, str], ...]
    probe: Path | None
    process: tuple[str, int]


def installed_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions that must be the same here and on every worker."""
    return tuple((name, version(name)) for name in _PACKAGES)


def _this_process() -> tuple[str, int]:
    return platform.node(), os.getpid()


@contextmanager
def worker_check(folder: Path | None) -> Iterator[WorkerCheck]:
    """Yield what workers check; until the end an empty file exists in the folder that they must see."""
    if folder is None or not folder.is_dir():
        yield WorkerCheck(installed_versions(), None, _this_process())
        return
    for path in folder.glob(f"{_PROBE}*"):  # of processes that were killed
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - _ABANDONED_S:
                path.unlink()
    probe = folder / f"{_PROBE}{os.urandom(8).hex()}"
    probe.touch(mode=0o600)
    try:
        yield WorkerCheck(installed_versions(), probe, _this_process())
    finally:
        probe.unlink(missing_ok=True)


@lru_cache(maxsize=8)
def check_worker(check: WorkerCheck) -> Failure | None:
    """Prepare this worker, and return why it cannot take part in a run; None if it can."""
    if check.process != _this_process():
        reuse_freed_memory()
    for (package, expected), (_, installed) in zip(check.versions, installed_versions(), strict=True):
        if installed != expected:
            problem = f"{package} is {expected} here and {installed} on a worker; install the same versions on both"
            return _failure(problem)
    if check.probe is None or os.path.exists(check.probe):  # noqa: PTH110  (False also where it may not look)
        return None
    return _failure("a worker does not see [output] confidential; it must be a folder that all of them share")


def _failure(problem: str) -> Failure:
    return Failure(InputError(f"[engine] scheduler: {problem}"), "")


def _run_checked(check: WorkerCheck, call: Call) -> Any:  # noqa: ANN401
    """Return the result of a task, or why its worker cannot take part."""
    return check_worker(check) or call()


def _check_workers(client: Client, folder: Path | None) -> None:
    """Raise InputError if a worker cannot take part in a run; wait for one if the cluster has none."""
    if not client.scheduler_info()["workers"]:
        _wait_for_result(client, client.submit(installed_versions, pure=False), "start")
    with worker_check(folder) as check:
        answers = client.run(check_worker, check, on_error="return").values()
    for answer in answers:
        if isinstance(answer, Failure):
            answer.raise_error()
        if answer is not None and not isinstance(answer, OSError):  # of a worker that left meanwhile
            raise InputError(
                f"[engine] scheduler: the workers cannot run agedp {version('agedp')} ({type(answer).__name__}); "
                "install the same version there"
            )


def check_shared(folder: Path, engine: Engine) -> None:
    """Check that every worker can access the confidential folder of this process, also those that join later.

    Raises:
        InputError: a worker cannot read what this process wrote.
    """
    client = find_client(engine)
    _check_workers(client, folder)
    _SHARED[client] = folder


# --------------------------------------------------------------------------------------------------
# Tasks.
# --------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Task:
    """A task with its future, None before it is sent, and the executor that sends it."""

    call: Call
    executor: ClusterExecutor
    future: Any = None

    def result(self) -> Any:  # noqa: ANN401
        """Return its result; see `ClusterExecutor.result`."""
        return self.executor.result(self)


class ClusterExecutor:
    """Runs the tasks of one stage on the cluster of an engine, and sends them again if the cluster is lost."""

    def __init__(self, stage: str, engine: Engine) -> None:
        self.at_once = _TASKS_SENT
        self._stage, self._engine = stage, engine
        self._unread: dict[_Task, None] = {}
        self._unsent: list[_Task] = []
        self._numbers = count(int.from_bytes(os.urandom(6)))
        self._client: Client | None = None
        self._probe = ExitStack()
        self._check: WorkerCheck

    def submit(self, call: Call) -> _Task:
        """Add a task; it is sent with others before the next result is waited for."""
        task = _Task(call, self)
        self._unread[task] = None
        self._unsent.append(task)
        return task

    def result(self, task: _Task) -> Any:  # noqa: ANN401
        """Return the result of a task.

        Raises:
            InputError: the cluster cannot be reached, has no workers or others than this process, or was lost
                repeatedly.
        """
        lost = ""
        for _ in range(_ATTEMPTS):
            client = find_client(self._engine)
            try:
                result = _wait_for_result(client, self._sent(task, client), self._stage)
            except _CONNECTION_ERRORS as error:
                lost = type(error).__name__
                self._lose(client)
            else:
                del self._unread[task]
                return result
        raise Unavailable(
            f"[engine] scheduler: the cluster was lost during stage {self._stage!r} ({lost}), {_ATTEMPTS} times; run "
            "again when it is available"
        )

    def _sent(self, task: _Task, client: Client) -> Any:  # noqa: ANN401  (its future)
        """Return the future of a task, after all tasks were sent that the cluster does not have."""
        if client is not self._client:
            self._client = client
            if self._engine.dashboard is not None and self._engine.scheduler != LOCAL_CLUSTER and client.dashboard_link:
                self._engine.dashboard(str(client.dashboard_link))
            self._check = self._probe.enter_context(worker_check(_SHARED.get(client)))
        if self._unsent:
            keys = [f"{TASK_PREFIX}{self._stage}-{next(self._numbers)}" for _ in self._unsent]
            with dask_config.set({"distributed.admin.large-graph-warning-threshold": _LARGE_GRAPH}):
                run, calls = partial(_run_checked, self._check), [task.call for task in self._unsent]
                futures = client.map(run, calls, key=keys, pure=False, retries=0)
            for unsent, future in zip(self._unsent, futures, strict=True):
                unsent.future = future
            self._unsent = []
        return task.future

    def _lose(self, client: Client) -> None:
        """Forget a cluster that does not answer; what has no result is sent to the next."""
        self._unsent = list(self._unread)
        for task in self._unsent:
            task.future = None
        if isinstance(self._engine.scheduler, str):
            connect.cache_clear()
            with suppress(Exception):
                client.close(timeout=0)

    def stop(self, sent: Sequence[_Task], *, waits: bool) -> None:
        """Cancel the tasks without a result; with `waits` after they are done, since workers end what they began."""
        futures = [task.future for task in sent if task.future is not None]
        with self._probe:
            if self._client is not None and futures:
                for future in futures if waits else []:
                    _wait_for_workers(self._client, future, self._stage)
                self._client.cancel(futures)


def _wait_for_result(client: Client, future: Future[Any], stage: str) -> Any:  # noqa: ANN401  (any result of a stage)
    """Return the result of a task.

    Raises:
        InputError: workers died in it, could not load it, or do not come.
    """
    _wait_for_workers(client, future, stage)
    try:
        return future.result()
    except KilledWorker as error:
        raise InputError(
            f"[engine] scheduler: workers died repeatedly in the same task of stage {stage!r} "
            f"({error.allowed_failures + 1} times). The usual cause is too little memory: give them more, or lower "
            "block_mib"
        ) from None
    except (NoValidWorkerError, NoWorkerError):
        raise _no_workers_error(stage, _patience_s()) from None
    except _CONNECTION_ERRORS:
        raise
    except Exception as error:  # a task never raises; its message may quote arguments
        raise InputError(
            f"[engine] scheduler: scheduler or worker cannot load the tasks of agedp ({type(error).__name__}); install "
            "the same versions there as here"
        ) from None


def _wait_for_workers(client: Client, future: Future[Any], stage: str) -> None:
    """Wait until a task is done, as long as the cluster has workers that take tasks or may start some."""
    last_seen, done = time.monotonic(), threading.Event()
    future.add_done_callback(lambda _: done.set())
    while not done.wait(_POLL_S):
        workers = client.scheduler_info()["workers"].values()
        now, statuses = time.monotonic(), [worker["status"] for worker in workers]
        if "running" in statuses:
            last_seen = now
        elif now - last_seen > _patience_s():
            raise _no_workers_error(stage, _patience_s(), paused=statuses.count("paused"))


def _patience_s() -> float:
    """Return how long a cluster may have no worker that takes tasks [s]; Dask's setting takes precedence."""
    configured = dask_config.get("distributed.scheduler.no-workers-timeout", None)
    return _NO_WORKERS_S if configured is None else float(parse_timedelta(configured))


def _no_workers_error(stage: str, seconds: float, *, paused: int = 0) -> InputError:
    if paused:
        return InputError(
            f"[engine] scheduler: all {paused} workers paused for {seconds:.0f} s in stage {stage!r}, because they use "
            "nearly all of their memory; give them more, or lower block_mib"
        )
    return InputError(
        f"[engine] scheduler: the cluster has no workers; none came within {seconds:.0f} s. Start some, or set Dask's "
        "distributed.scheduler.no-workers-timeout if they need longer"
    )


# --------------------------------------------------------------------------------------------------
# Clients.
# --------------------------------------------------------------------------------------------------


def client_of(scheduler: Any) -> Client | None:  # noqa: ANN401  (dask-jobqueue, dask-gateway, Coiled: all have get_client)
    """Return a client itself, or one of a cluster object; None of anything else."""
    if isinstance(scheduler, Client):
        return scheduler
    is_cluster = hasattr(scheduler, "scheduler_address") or hasattr(scheduler, "get_client")
    return Client(scheduler, set_as_default=False) if is_cluster else None


def is_closed(scheduler: Any) -> bool:  # noqa: ANN401
    """Return whether a scheduler is a client that its owner closed."""
    return isinstance(scheduler, Client) and scheduler.status != "running"


def find_client(engine: Engine) -> Client:
    """Return the client of an engine: that of its caller, or one of its cluster's.

    Raises:
        InputError: as `connect`; or the caller's client is closed.
    """
    if isinstance(engine.scheduler, str):
        return connect(engine.scheduler, engine.workers)
    if is_closed(engine.scheduler):
        raise InputError("[engine] scheduler: the Dask client is closed; make a new one")
    client: Client = engine.scheduler
    _check_once(client)
    return client


@cache
def _check_once(client: Client) -> None:
    _check_outside_worker()
    _check_workers(client, None)


@cache
def connect(scheduler: str, workers: int) -> Client:
    """Return a client of the cluster, one for the process.

    Raises:
        Unavailable: no scheduler answers at the address.
        InputError: its workers run different versions, or this is a worker.
    """
    _check_outside_worker()
    try:
        if scheduler == LOCAL_CLUSTER:
            return Client(_local_cluster(workers), set_as_default=False)
        client = Client(scheduler, timeout=_TIMEOUT, set_as_default=False)
    except TypeError:  # Dask raises it for tls:// without certificates
        raise InputError(
            "[engine] scheduler: a tls:// address needs certificates, and Dask's configuration (distributed.comm.tls) "
            "names none that can be read"
        ) from None
    except (OSError, TimeoutError, ValueError) as error:
        kind = InputError if isinstance(error, ValueError) else Unavailable
        raise kind(
            f"[engine] scheduler: no Dask scheduler answers at the address ({type(error).__name__}); is it running, "
            "and reachable from here?"
        ) from None
    _check_workers(client, None)
    return client


def _local_cluster(workers: int) -> LocalCluster:
    """Start workers on this machine with encrypted connections and without spilling data to a disk."""
    closed: dict[str, Any] = {
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }
    with dask_config.set(closed):
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            protocol="tls://",
            security=True,
            # Dask opens its HTTP server even without a dashboard; port 0: any free port
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        )


def _check_outside_worker() -> None:
    """Raise InputError inside a Dask worker: a client there waits for its own thread."""
    try:
        get_worker()
    except ValueError:
        return
    raise InputError(
        '[engine] scheduler: this is a Dask worker already, and a cluster is used from outside; write "threads"'
    )


def describe_cluster(engine: Engine) -> str:
    """Return the address of an engine's cluster with its workers; only its name if it does not answer any more."""
    try:
        client = find_client(engine)
        threads, address = client.nthreads().values(), client.scheduler_info()["address"]
        return f"Dask cluster {address}, {len(threads)} workers with {sum(threads)} threads"
    except (InputError, *_CONNECTION_ERRORS):
        return "Dask cluster"
