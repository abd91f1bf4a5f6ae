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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from agedp.compute.engine_settings import TASK_PREFIX, Call, Engine, Failure, reuse_freed_memory
from agedp_data.errors import InputError

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


def installed_versions() -> dict[str, str]:
    """Return the versions that must be the same here and on every worker."""
    return {name: version(name) for name in _PACKAGES}


def check_versions(own_versions: Mapping[str, str], worker_versions: Mapping[str, str]) -> None:
    """Check the versions of a worker.

    Raises:
        InputError: a package has another version there.
    """
    package = next((name for name in own_versions if worker_versions.get(name) != own_versions[name]), None)
    if package is not None:
        raise InputError(
            f"[engine] scheduler: {package} is {own_versions[package]} here and "
            f"{worker_versions.get(package)} on a worker; install the same versions on both"
        )


@dataclass(frozen=True, slots=True)
class WorkerCheck:
    """What a worker checks before its first task of a stage.

    Attributes:
        versions: the packages of this process with their versions.
        probe: a file in the folder that all share; None before one is named.
        process: machine and number of this process, whose memory is left as it is if its own threads are workers.
    """

    versions: tuple[tuple[str, str], ...]
    probe: str | None
    process: tuple[str, int]


def _run_checked(check: WorkerCheck, call: Call) -> Any:  # noqa: ANN401
    """Return the result of a task, or the failed check of its worker."""
    return _check_worker(check) or call()


@lru_cache(maxsize=8)
def _check_worker(check: WorkerCheck) -> Failure | None:
    if check.process != this_process():
        reuse_freed_memory()
    try:
        check_versions(dict(check.versions), installed_versions())
    except InputError as error:
        return Failure(error.with_traceback(None), "")
    if check.probe is None or path_exists(check.probe):
        return None
    return Failure(
        InputError(
            "[engine] scheduler: a worker that joined during the run does not see [output] confidential; it must be a "
            "folder that all of them share"
        ),
        "",
    )


def this_process() -> tuple[str, int]:
    """Return the name of this machine and the number of this process."""
    return platform.node(), os.getpid()


@contextmanager
def probe_file(folder: Path) -> Iterator[str]:
    """Make an empty file that every worker must see; it is removed in the end."""
    for path in folder.glob(f"{_PROBE}*"):  # of processes that were killed
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - _ABANDONED_S:
                path.unlink()
    probe = folder / f"{_PROBE}{os.urandom(8).hex()}"
    probe.touch(mode=0o600)
    try:
        yield str(probe)
    finally:
        with suppress(FileNotFoundError):
            probe.unlink()


def path_exists(path: str) -> bool:
    """Return whether a path exists on this machine."""
    return Path(path).exists()


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
_ADOPTED: WeakValueDictionary[str, Client] = WeakValueDictionary()
_OF_CLUSTERS: list[Client] = []
_SHARED: WeakKeyDictionary[Client, Path] = WeakKeyDictionary()
"""The folder that the workers of a client must see."""
_ATTEMPTS = 3
_TIMEOUT = 20.0
_NO_WORKERS_S = 300.0
_POLL_S = 2.0
_TASKS_SENT = 4096
_LARGE_GRAPH = "1GB"  # tasks carry the counts or readings of their households, each to one worker
_CONNECTION_ERRORS = (CancelledError, FutureCancelledError, CommClosedError, TimeoutError, OSError)


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
        self._check = WorkerCheck((), None, this_process())

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
            client = find_client(self._engine.scheduler, self._engine.workers)
            try:
                result = _wait_for_result(client, self._sent(task, client), self._stage)
            except _CONNECTION_ERRORS as error:
                lost = type(error).__name__
                self._lose(client)
            else:
                del self._unread[task]
                return result
        raise InputError(
            f"[engine] scheduler: the cluster was lost during stage {self._stage!r} ({lost}), {_ATTEMPTS} times; run "
            "again when it is available"
        )

    def _sent(self, task: _Task, client: Client) -> Any:  # noqa: ANN401  (its future)
        """Return the future of a task, after all tasks were sent that the cluster does not have."""
        if client is not self._client:
            self._client = client
            if self._engine.dashboard is not None and self._engine.scheduler != LOCAL_CLUSTER and client.dashboard_link:
                self._engine.dashboard(str(client.dashboard_link))
            self._check = self._probe.enter_context(_worker_check(client))
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
        if self._engine.scheduler not in _ADOPTED:
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


def describe_cluster(engine: Engine) -> str:
    """Return the address of an engine's cluster with its workers; only its name if it does not answer any more."""
    try:
        client = find_client(engine.scheduler, engine.workers)
        threads, address = client.nthreads().values(), client.scheduler_info()["address"]
        return f"Dask cluster {address}, {len(threads)} workers with {sum(threads)} threads"
    except (InputError, *_CONNECTION_ERRORS):
        return "Dask cluster"


@contextmanager
def _worker_check(client: Client) -> Iterator[WorkerCheck]:
    """Return what each worker checks before its first task; the file that it must see exists until the stage ends."""
    versions, folder = tuple(installed_versions().items()), _SHARED.get(client)
    if folder is None or not folder.is_dir():
        yield WorkerCheck(versions, None, this_process())
        return
    with probe_file(folder) as probe:
        yield WorkerCheck(versions, probe, this_process())


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


def adopt(client: Client) -> str:
    """Return the name under which `find_client` returns this client, which its owner closes."""
    name = f"client {client.id}"
    _ADOPTED[name] = client
    return name


def is_closed(scheduler: str) -> bool:
    """Return whether a scheduler is a client of its owner that is closed by now."""
    client = _ADOPTED.get(scheduler)
    return scheduler.startswith("client ") and (client is None or client.status != "running")


def client_of(cluster: Any) -> Client:  # noqa: ANN401  (dask-jobqueue, dask-gateway, Coiled: all have get_client)
    """Return a client of a cluster object, which lasts as long as the process."""
    client = Client(cluster, set_as_default=False)
    _OF_CLUSTERS.append(client)
    return client


def active_client() -> Client | None:
    """Return the client that is active in this thread or process, None if there is none or this is a worker."""
    try:
        client: Client = Client.current(allow_global=True)
    except ValueError:
        return None
    return client


def find_client(scheduler: str, workers: int) -> Client:
    """Return the client of an engine: an adopted one, or one of its cluster's.

    Raises:
        InputError: as `connect`; or an adopted client is closed.
    """
    if is_closed(scheduler):
        raise InputError("[engine] scheduler: the Dask client is closed; open it again")
    client = _ADOPTED.get(scheduler)
    if client is None:
        return connect(scheduler, workers)
    _check_adopted(client)
    return client


@cache
def _check_adopted(client: Client) -> None:
    _check_outside_worker()
    _check_versions(client)


@cache
def connect(scheduler: str, workers: int) -> Client:
    """Return a client of the cluster, one for the process.

    Raises:
        InputError: no scheduler answers at the address, its workers run different versions, or this is a worker.
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
        raise InputError(
            f"[engine] scheduler: no Dask scheduler answers at the address ({type(error).__name__}); is it running, "
            "and reachable from here?"
        ) from None
    _check_versions(client)
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


def _check_versions(client: Client) -> None:
    """Raise InputError if a worker runs different versions from this process, or if the cluster has no workers."""
    if not client.scheduler_info()["workers"]:
        _wait_for_result(client, client.submit(installed_versions, pure=False), "start")
    own_versions = installed_versions()
    for versions in _ask_workers(client, installed_versions):
        if not isinstance(versions, dict):
            raise InputError(
                f"[engine] scheduler: the workers cannot run agedp {own_versions['agedp']} "
                f"({type(versions).__name__}); install the same version there"
            )
        check_versions(own_versions, versions)


def _ask_workers(client: Client, function: Callable[..., Any], *arguments: Any) -> list[Any]:  # noqa: ANN401
    """Return the answers of all workers, or their errors; workers that leave meanwhile are left out."""
    answers = client.run(function, *arguments, on_error="return").values()
    return [answer for answer in answers if not isinstance(answer, OSError) or isinstance(answer, PermissionError)]


def check_shared(folder: Path, engine: Engine) -> None:
    """Check that every worker can access the confidential folder of this process, also those that join later.

    Raises:
        InputError: a worker cannot read what this process wrote.
    """
    client = find_client(engine.scheduler, engine.workers)
    with probe_file(folder) as probe:
        seen = _ask_workers(client, path_exists, probe)
    if not all(is_seen is True for is_seen in seen):
        blind = sum(is_seen is not True for is_seen in seen)
        raise InputError(
            f"[engine] scheduler: {blind} of {len(seen)} workers do not see [output] confidential; it must be a folder "
            "that all of them share"
        )
    _SHARED[client] = folder
