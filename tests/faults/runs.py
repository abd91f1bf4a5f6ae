"""The tests' side of `server.py`, orders in and ends out, and where the ledgers of a scene lie."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.command import beside_verdict
from tests.postgresql import ROLE, PostgreSQL

SERVER = Path(__file__).with_name("server.py")


@dataclass(frozen=True)
class End:
    """How a run of the command ended; `passed` names the boundaries that it passed."""

    status: int
    out: str
    err: str
    passed: list[str]

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL

    @property
    def line(self) -> str:
        """The one line on standard error; fails on a traceback or on several lines."""
        [line] = beside_verdict(self.err).splitlines()
        assert line.startswith("agedp: "), self.err
        assert len(line) < 1000, line
        return line


class Runs:
    """A server of runs, ended by `close`."""

    def __init__(self, scratch: Path) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(SERVER), str(scratch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def at_once(self, *orders: dict[str, Any]) -> list[End]:
        """Carry out orders at the same time."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(orders) + "\n")
        self._server.stdin.flush()
        return [End(**end) for end in json.loads(self._server.stdout.readline())]

    def one(self, order: dict[str, Any]) -> End:
        [end] = self.at_once(order)
        return end

    def close(self) -> None:
        self._server.communicate(timeout=30)


class LedgerFiles:
    """Ledgers below a house, kept and restored with it."""

    def __init__(self, house: Path) -> None:
        self._house = house

    def written(self, name: str) -> str:
        """Return the address as the run file has it."""
        return f"sqlite:///{name}"

    def url(self, name: str) -> str:
        return f"sqlite:///{self._house / name}"

    def keep(self) -> None:
        """Keep the ledgers as they are now."""

    def restore(self) -> None:
        """Put back what was kept."""

    def lose(self, name: str) -> None:
        (self._house / name).unlink()


class LedgerServer:
    """Schemas of a database for the trials, and another database that it is copied from."""

    def __init__(self, server: PostgreSQL) -> None:
        self.server = server
        self.live, self.kept = server.database(), ""
        for schema in ("ledger", "new"):
            server.admin(f"CREATE SCHEMA {schema} AUTHORIZATION {ROLE}", database=self.live)

    def written(self, name: str) -> str:
        return self.server.url(self.live, options=f"-csearch_path%3D{Path(name).stem}")

    url = written

    def keep(self) -> None:
        self.kept = self.server.database(like=self.live)

    def restore(self) -> None:
        self.server.drop(self.live)
        self.server.admin(f"CREATE DATABASE {self.live} OWNER {ROLE} TEMPLATE {self.kept}")

    def lose(self, name: str) -> None:
        schema = Path(name).stem
        self.server.admin(
            f"DROP SCHEMA {schema} CASCADE", f"CREATE SCHEMA {schema} AUTHORIZATION {ROLE}", database=self.live
        )

    def cut(self, how: str) -> dict[str, Any]:
        """Return the part of an order that cuts the server's side at a boundary."""
        where = {"host": str(self.server.folder), "port": self.server.port}
        return {"cut": {**where, "database": self.live, "how": how}}
