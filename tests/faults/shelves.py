"""Where the ledgers of a scene lie: in files of its house, or in schemas of a database that is copied along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.postgresql import ROLE, PostgreSQL


class InFiles:
    """Below the house: kept and restored with it."""

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


class OnServer:
    """A database for the trials, and another one that it is copied from."""

    def __init__(self, server: PostgreSQL) -> None:
        self.server = server
        self.live, self.kept = server.database(), ""
        for schema in ("ledger", "new"):
            server.admin(f"CREATE SCHEMA {schema} AUTHORIZATION {ROLE}", database=self.live)

    def written(self, name: str) -> str:
        return self.server.url(self.live, options=f"-csearch_path%3D{Path(name).stem}")

    def url(self, name: str) -> str:
        return self.written(name)

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
        """Return what an order says that is to lose its server's side at a boundary."""
        where = {"host": str(self.server.folder), "port": self.server.port}
        return {"cut": {**where, "database": self.live, "how": how}}
