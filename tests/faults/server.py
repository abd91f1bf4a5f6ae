"""Runs of the `agedp` command, each in a fresh fork of a process that has imported everything: `server.py SCRATCH`.

Reads one JSON list of orders a line, starts them all at once, waits for all, and answers with a list of their ends:
exit status (negative: signal), standard output, standard error, boundaries passed. An order may name a boundary or
an instant to be killed at, a limit of file sizes, a user to be, a clock. `server.py --order ORDER` is one run that is
no fork, as Prefect's flow needs.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
import threading
import time
import traceback
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

_TEXTS = ("cli.app", "text.calibration_text", "text.ledger_text", "text.plan_text", "text.run_text")
_STAGES = ("ledger_transfer", "pipeline", "stages.amend")
_IMPORTED = (
    *("pandas", "pyarrow.parquet", "tests.faults.boundaries", "tests.nights.keyed"),
    *(f"agedp_flows.{name}" for name in _TEXTS),
    *(f"agedp.{name}" for name in _STAGES),
)
"""What a fork finds there already."""


def _let_permissions_bind() -> None:
    """Give up every capability: the superuser is then bound by the permissions of files, as anybody is."""
    version_3 = struct.pack("Ii", 0x20080522, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(version_3, struct.pack("6I", 0, 0, 0, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "capset")


def _cut(cut: dict[str, Any]) -> None:
    """End what serves this run's ledger, as an administrator does or as a crash."""
    import psycopg

    served = "SELECT pid FROM pg_stat_activity WHERE application_name = 'agedp' AND datname = %s"
    where = {"host": cut["host"], "port": cut["port"], "user": "admin", "dbname": "postgres"}
    with psycopg.connect(**where, autocommit=True) as connection:
        for (pid,) in connection.execute(served, (cut["database"],)).fetchall():
            if cut["how"] == "terminate":
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            else:
                os.kill(pid, signal.SIGKILL)


def _be(order: dict[str, Any], log: Path) -> None:
    """Be the command under the faults of an order."""
    from agedp_data import clock
    from agedp_data.ledger.backends import backend, postgresql, sqlite
    from agedp_flows.cli.app import main
    from tests.faults.boundaries import Boundaries, die
    from tests.faults.inside_sqlite import INSIDE, watch_sqlite
    from tests.nights.keyed import keyed_sampler

    os.chdir(order["house"])
    time.sleep(order.get("begins_after", 0))
    if "out" in order:
        os.dup2(os.open(order["out"], os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    moment = datetime.fromisoformat(order["now"])
    clock.now = lambda: moment
    sqlite.BUSY_SECONDS = postgresql.BUSY_SECONDS = patience = order.get("patience", 60.0)
    backend.PAUSES = tuple(pause * patience / 60 for pause in backend.PAUSES)  # type: ignore[assignment]
    sys.argv = ["agedp", *order["words"]]
    if "file_bytes" in order:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], order["file_bytes"]))
    if order.get("bound"):
        _let_permissions_bind()
    if order.get("boundaries", True):
        where = {key: order[key] for key in ("kill_at", "like") if key in order}
        then = partial(_cut, order["cut"]) if "cut" in order else die
        if "pauses" in order:
            then = partial(time.sleep, order["pauses"])
        boundaries = Boundaries(Path(order["house"]), log, then=then, **where)
        boundaries.watch()
        if order.get("like") == INSIDE:
            watch_sqlite(boundaries.passes)
    with keyed_sampler(Path(order["journal"])):
        main()


def _child(order: dict[str, Any], log: Path, streams: dict[int, int]) -> None:
    """Be the command in a fork; never returns."""
    status = 1
    try:
        for stream, pipe in streams.items():
            os.dup2(pipe, stream)
        _be(order, log)
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 1
    os._exit(status)


def _start(order: dict[str, Any], log: Path) -> tuple[int, tuple[int, int], threading.Timer]:
    """Return the process, the pipes that it prints to, and who kills it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    out, err = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        _child(order, log, {1: out[1], 2: err[1]})
    os.close(out[1])
    os.close(err[1])
    timer = threading.Timer(order.get("kill_after", 3600), os.kill, (child, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    return child, (out[0], err[0]), timer


def _end(child: int, pipes: tuple[int, int], timer: threading.Timer, log: Path | None) -> dict[str, Any]:
    texts = []
    for pipe in pipes:
        with os.fdopen(pipe, errors="replace") as stream:
            texts.append(stream.read())
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    timer.cancel()
    passed = log.read_text().splitlines() if log is not None and log.exists() else []
    return {"status": status, "out": texts[0], "err": texts[1], "passed": passed}


def main() -> None:
    """Serve until standard input ends."""
    for name in _IMPORTED:
        import_module(name)
    for line in sys.stdin:
        orders = json.loads(line)
        logs = [Path(sys.argv[1]) / str(number) / "log" for number in range(len(orders))]
        started = [_start(order, log) for order, log in zip(orders, logs, strict=True)]
        watched = [log if order.get("boundaries", True) else None for order, log in zip(orders, logs, strict=True)]
        ends = [_end(*run, log) for run, log in zip(started, watched, strict=True)]
        sys.stdout.write(json.dumps(ends) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    if sys.argv[1] == "--order":
        only = json.loads(sys.argv[2])
        _be(only, Path(only["log"]))
    else:
        main()
