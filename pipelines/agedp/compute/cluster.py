"""The same tasks on a Dask cluster: one on this machine, or any by its address.

Workers must run the same versions and access the same files as this process: both are checked before any task is sent,
so that an error is one line. If a worker dies its tasks are repeated, if a scheduler restarts the stage is: tasks write
files atomically and by name, so repeating them does no harm. Task numbers begin at random: two runs that share a
scheduler must not share a task key, or one would receive the results of the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from agedp.compute.engine_settings import Engine
from agedp_data.errors import InputError

try:
    from dask import config as dask_config
    from distributed import Client, LocalCluster, get_worker
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker
except ImportError:
    raise InputError(
        "[engine] scheduler: clusters need Dask's distributed, which is not installed; "
        "install agedp with its extra cluster"
    ) from None

LOCAL_CLUSTER = "local-cluster"
_ADOPTED: WeakValueDictionary[str, Client] = WeakValueDictionary()
_OF_CLUSTERS: list[Client] = []
_ATTEMPTS = 3
_TIMEOUT = 20.0
_VERSIONS = ("agedp", "dask", "distributed", "numpy", "pyarrow")
_CONNECTION_ERRORS = (CancelledError, FutureCancelledError, CommClosedError, TimeoutError, OSError)


def run_on_cluster(tasks: Callable[[int], Sequence[Any]], *, stage: str, engine: Engine) -> list[Any]:
    """Return the results of tasks, in order.

    Args:
        tasks: returns the tasks, numbered from its argument on.
        stage: stage name for the progress callback.
        engine: scheduler, workers and callbacks.

    Raises:
        InputError: the cluster cannot be reached, runs different versions, or lost the tasks repeatedly.
    """
    for attempt in range(_ATTEMPTS):
        client = find_client(engine.scheduler, engine.workers)
        if engine.dashboard is not None and engine.scheduler != LOCAL_CLUSTER and client.dashboard_link:
            engine.dashboard(str(client.dashboard_link))
        try:
            return _gather_results(client, tasks(int.from_bytes(os.urandom(6))), stage=stage, engine=engine)
        except KilledWorker:
            raise InputError(
                f"[engine] scheduler: workers died repeatedly in the same task of stage {stage!r}. "
                "The usual cause is too little memory: give them more, or lower block_mib"
            ) from None
        except _CONNECTION_ERRORS as error:
            if engine.scheduler not in _ADOPTED:
                connect.cache_clear()
                with suppress(Exception):
                    client.close(timeout=0)
            if attempt == _ATTEMPTS - 1:
                raise InputError(
                    f"[engine] scheduler: the cluster was lost during stage {stage!r} ({type(error).__name__}), "
                    f"{_ATTEMPTS} times; run again when it is available"
                ) from None
    raise RuntimeError("unreachable")


def _gather_results(client: Client, tasks: Sequence[Any], *, stage: str, engine: Engine) -> list[Any]:
    futures = client.compute(list(tasks), retries=0)
    try:
        for done, future in enumerate(futures, 1):
            future.result()
            if engine.progress is not None:
                engine.progress(stage, done, len(futures))
        return [future.result() for future in futures]
    finally:
        client.cancel(futures)


def adopt(client: Client) -> str:
    """Return the name under which `find_client` returns this client, which its owner closes."""
    name = f"client {client.id}"
    _ADOPTED[name] = client
    return name


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
    client = _ADOPTED.get(scheduler)
    if client is None or client.status != "running":
        if scheduler.startswith("client "):
            raise InputError("[engine] scheduler: the Dask client is closed; open it again")
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
    """Raise InputError if a worker runs different versions from this process."""
    own_versions = {name: version(name) for name in _VERSIONS}
    try:
        client.wait_for_workers(1, timeout=_TIMEOUT)
    except TimeoutError:
        raise InputError("[engine] scheduler: the cluster has no workers; start some") from None
    versions_by_worker = client.run(_versions, on_error="return")
    for worker_versions in versions_by_worker.values():
        if not isinstance(worker_versions, dict):
            raise InputError(
                f"[engine] scheduler: the workers cannot run agedp {own_versions['agedp']} "
                f"({type(worker_versions).__name__}); install the same version there"
            )
        package = next((name for name in own_versions if worker_versions.get(name) != own_versions[name]), None)
        if package is not None:
            raise InputError(
                f"[engine] scheduler: {package} is {own_versions[package]} here and "
                f"{worker_versions.get(package)} on a worker; install the same versions on both"
            )


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _VERSIONS}


def check_shared(folder: Path, engine: Engine) -> None:
    """Check that every worker can access the confidential folder of this process.

    Raises:
        InputError: a worker cannot read what this process wrote.
    """
    client = find_client(engine.scheduler, engine.workers)
    probe = folder / f".probe-{os.urandom(8).hex()}"
    probe.touch(mode=0o600)
    try:
        seen = client.run(_path_exists, str(probe), on_error="return")
    finally:
        probe.unlink()
    if not all(is_seen is True for is_seen in seen.values()):
        blind = sum(is_seen is not True for is_seen in seen.values())
        raise InputError(
            f"[engine] scheduler: {blind} of {len(seen)} workers do not see [output] confidential; it must be a folder "
            "that all of them share"
        )


def _path_exists(path: str) -> bool:
    return Path(path).exists()
