"""Runs of the `agedp` command, each in a fresh fork of a process that has imported everything: `server.py`.

Reads one JSON list of orders a line, starts them all at once, waits for all, and answers with a list of their ends:
exit status (negative: signal), standard output, standard error, boundaries passed. An order may name a boundary or
an instant to be killed at, a limit of file sizes, a user to be, a clock.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parents[2]
_IMPORTED = (
    *("pandas", "pyarrow.parquet", "tests.faults.boundaries", "tests.nights.keyed"),
    *(
        f"agedp_flows.{name}"
        for name in ("cli.app", "text.amendment_text", "text.calibration_text", "text.ledger_text", "text.run_text")
    ),
    *(f"agedp.{name}" for name in ("ledger_transfer", "pipeline", "stages.amend")),
)
"""What a fork finds there already."""
_SYSCALLS = "write,pwrite64,fsync,fdatasync,ftruncate,unlink,rename,renameat,renameat2,openat,open"


def _let_permissions_bind() -> None:
    """Give up every capability: the superuser is then bound by the permissions of files, as anybody is."""
    version_3 = struct.pack("Ii", 0x20080522, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(version_3, struct.pack("6I", 0, 0, 0, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "capset")


def _child(order: dict[str, Any], scratch: Path, streams: tuple[int, int]) -> None:
    """Be the command; never returns."""
    status = 1
    try:
        for stream, place in zip((1, 2), streams, strict=True):
            os.dup2(place, stream)
        _arrange(order, scratch)
        from agedp_flows.cli.app import main
        from tests.nights.keyed import keyed_sampler

        with keyed_sampler(Path(order["journal"])):
            main()
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


def _cut(cut: dict[str, Any]) -> None:
    """End what serves this run's ledger, as an administrator does or as a crash."""
    import psycopg

    said = "SELECT pid FROM pg_stat_activity WHERE application_name = 'agedp' AND datname = %s"
    where = {"host": cut["host"], "port": cut["port"], "user": "admin", "dbname": "postgres"}
    with psycopg.connect(**where, autocommit=True) as connection:
        for (pid,) in connection.execute(said, (cut["database"],)).fetchall():
            if cut["how"] == "terminate":
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            else:
                os.kill(pid, signal.SIGKILL)


def _arrange(order: dict[str, Any], scratch: Path) -> None:
    from agedp_data import clock
    from agedp_data.ledger.backends import postgresql, sqlite
    from tests.faults.boundaries import Boundaries

    os.chdir(order["house"])
    time.sleep(order.get("begins_after", 0))
    if "out" in order:
        os.dup2(os.open(order["out"], os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    moment = datetime.fromisoformat(order["now"])
    clock.now = lambda: moment
    sqlite.BUSY_SECONDS = postgresql.BUSY_SECONDS = order.get("patience", 60.0)
    sys.argv = ["agedp", *order["words"]]
    if "file_bytes" in order:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], order["file_bytes"]))
    if order.get("bound"):
        _let_permissions_bind()
    if order.get("boundaries", True):
        where = {key: order[key] for key in ("kill_at", "like", "pauses") if key in order}
        instead = partial(_cut, order["cut"]) if "cut" in order else None
        Boundaries(Path(order["house"]), scratch / "log", instead=instead, **where).watch()
    if "kill_in_ledger" in order:
        os.kill(os.getpid(), signal.SIGSTOP)


@dataclass
class Run:
    """A run under way: its process, the pipes that its words fit into, and who traces or kills it."""

    child: int
    words: dict[str, int]
    tracer: subprocess.Popen[bytes] | None = None
    timer: threading.Timer | None = None


def _start(order: dict[str, Any], scratch: Path) -> Run:
    scratch.mkdir(parents=True, exist_ok=True)
    pipes = {name: os.pipe() for name in ("out", "err")}
    child = os.fork()
    if not child:
        _child(order, scratch, (pipes["out"][1], pipes["err"][1]))
    for _, write in pipes.values():
        os.close(write)
    run = Run(child, {name: read for name, (read, _) in pipes.items()})
    if "kill_in_ledger" in order:
        run.tracer = _traced(child, order)
    if "kill_after" in order:
        run.timer = threading.Timer(order["kill_after"], os.kill, (child, signal.SIGKILL))
        run.timer.start()
    return run


def _traced(child: int, order: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Let `strace` kill the child at its k-th system call on the ledger or its journal."""
    os.waitpid(child, os.WUNTRACED)
    paths = [word for name in ("", "-journal") for word in ("-P", f"{order['ledger']}{name}")]
    what = ["-e", f"trace={_SYSCALLS}", "-e", f"inject={_SYSCALLS}:signal=KILL:when={order['kill_in_ledger']}"]
    log = order.get("calls", os.devnull)
    tracer = subprocess.Popen(["strace", "-p", str(child), "-o", log, *paths, *what], stderr=subprocess.DEVNULL)
    while "TracerPid:\t0\n" in Path(f"/proc/{child}/status").read_text():
        time.sleep(0.002)
    os.kill(child, signal.SIGCONT)
    return tracer


def _end(run: Run, order: dict[str, Any], scratch: Path) -> dict[str, Any]:
    said = {}
    for name, read in run.words.items():
        with os.fdopen(read, errors="replace") as stream:
            said[name] = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(run.child, 0)[1])
    if run.timer is not None:
        run.timer.cancel()
    if run.tracer is not None:
        run.tracer.wait()
    log = scratch / "log"
    passed = log.read_text().splitlines() if order.get("boundaries", True) and log.exists() else []
    return {"status": status, **said, "passed": passed}


def main() -> None:
    """Serve until standard input ends."""
    sys.path.insert(0, str(_HERE))
    for name in _IMPORTED:
        import_module(name)
    scratch = Path(sys.argv[1])
    for line in sys.stdin:
        orders = json.loads(line)
        places = [scratch / str(number) for number in range(len(orders))]
        started = [_start(order, place) for order, place in zip(orders, places, strict=True)]
        ends = [_end(run, order, place) for run, order, place in zip(started, orders, places, strict=True)]
        sys.stdout.write(json.dumps(ends) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
