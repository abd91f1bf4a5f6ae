"""A PostgreSQL server of our own in a temporary folder: started, broken and ended by the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_GUARD = """
import signal, subprocess, sys
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, user=sys.argv[1] or None)
sys.stdin.read()
server.send_signal(signal.SIGQUIT)
server.wait()
"""
"""Ends the server when whoever started it is gone, however that happened."""

ROLE, PASSWORD = "agedp", "made-up-secret"


def binaries() -> Path | None:
    """Return the folder of the newest server's programs, None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    named = shutil.which("initdb")
    return found[-1].parent if found else Path(named).parent if named else None


def _user() -> str | None:
    """Return whom the server runs as: it refuses to be the superuser's."""
    if os.geteuid():
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class PostgreSQL:
    """One server, on a socket in its folder (everybody is trusted) and on loopback (by password)."""

    def __init__(self, programs: Path, disk: Path | None = None) -> None:
        memory = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a crash syncs the whole disk
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=disk or memory))
        self.data = self.folder / "data"
        self.user = _user()
        if self.user:
            shutil.chown(self.folder, self.user)
        self.folder.chmod(0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        words = (
            "-D",
            str(self.data),
            "-U",
            "admin",
            "-E",
            "UTF8",
            "--locale=C",
            "--auth=trust",
            "-N",
            "--wal-segsize=1",
        )
        order = [programs / "initdb", *words]
        done = subprocess.run(order, user=self.user, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (self.data / "pg_hba.conf").write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        self.programs = programs
        self._guard: subprocess.Popen[bytes] | None = None
        self._made = 0
        self.start()
        self.admin(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")

    def start(self) -> None:
        words = ["-D", str(self.data), "-k", str(self.folder), "-h", "127.0.0.1", "-p", str(self.port)]
        words += ["-c", "recovery_init_sync_method=syncfs"]  # or a crash costs a sync of every file
        order = [sys.executable, "-c", _GUARD, self.user or "", str(self.programs / "postgres"), *words]
        with (self.folder / "log").open("ab") as log:
            self._guard = subprocess.Popen(order, cwd=self.folder, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self.wait()

    def wait(self) -> None:
        """Wait until the server answers."""
        until = time.monotonic() + 120
        while True:
            try:
                self.admin("SELECT 1")
                return
            except Exception:
                if time.monotonic() > until:
                    raise AssertionError((self.folder / "log").read_text()[-2000:]) from None
                time.sleep(0.05)

    def stop(self) -> None:
        """End the server as a crash does: connections are cut, and nothing more goes to the disk."""
        assert self._guard is not None
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(timeout=60)
        self._guard = None

    def close(self) -> None:
        if self._guard is not None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connection(self, database: str = "postgres", role: str = "admin") -> Any:
        import psycopg

        return psycopg.connect(host=str(self.folder), port=self.port, user=role, dbname=database, autocommit=True)

    def admin(self, *statements: str, database: str = "postgres") -> list[Any]:
        """Carry out statements as the superuser; return the rows of the last one."""
        with self.connection(database) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return list(cursor.fetchall()) if cursor.description else []

    def database(self, like: str = "template1") -> str:
        """Make a database that the role owns, empty or a copy; return its name."""
        self._made += 1
        name = f"ledger_{self._made}"
        self.admin(f"CREATE DATABASE {name} OWNER {ROLE} TEMPLATE {like}")
        return name

    def drop(self, name: str) -> None:
        self.admin(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def url(self, database: str, **more: str) -> str:
        """Return the address of a ledger, over the socket."""
        query = "&".join(f"{key}={value}" for key, value in {"host": self.folder, "port": self.port, **more}.items())
        return f"postgresql+psycopg://{ROLE}@/{database}?{query}"

    def url_over_tcp(self, database: str) -> str:
        """Return the address of a ledger on loopback, where a password is asked for."""
        return f"postgresql+psycopg://{ROLE}@127.0.0.1:{self.port}/{database}"

    def backends(self, database: str) -> list[int]:
        listed = "SELECT pid FROM pg_stat_activity WHERE application_name = 'agedp' AND datname = '" + database + "'"
        return [pid for (pid,) in self.admin(listed)]

    def kill(self, database: str) -> None:
        """Kill -9 what serves a run: the server ends all other connections too and recovers from its log."""
        for pid in self.backends(database):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
