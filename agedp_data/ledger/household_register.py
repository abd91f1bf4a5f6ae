"""The household register: what every release cost whom, by digests of households, in a database beside the ledgers.

    source       1  ledger 9f3c...  population london  kind release   newest 2013-03-05
    draw         source 1, 2013-03-05, series daily_mean, row 4ab1...: 0.5
    membership   7  [[1, 2013-01-01, null]]: in source 1 from this day on     5,566 households
    household    digest d01e...: membership 7

A source is one population in one ledger. A draw is one release of readings; its `identity` is the hash of its row in
the ledger, "" while it is charged and not known to be drawn. A membership is what some households have in common: in
which sources they are, from which day to which, null for an open end. An open range lasts until the newest day of its
source, so that a night on which the roster did not change adds draws and nothing else.

Decisions:

* Days are whole numbers, days since 1970-01-01. Losses are in nano-epsilon.
* The database holds keyed digests, never ids. `register_meta` has a check value of the key, so that two machines with
  different keys cannot fill one register.
* Nothing here is hashed in a chain: the ledgers are the record of the losses, and a lost register is filled from them.
* Connections, retries and error texts are those of the ledger's backends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Self, TypeVar

import sqlalchemy as sa

from agedp_data.errors import LedgerError
from agedp_data.ledger.backends.backend import LedgerDatabase, parse_url, run_transaction
from agedp_data.ledger.backends.postgresql import PostgreSQLDatabase
from agedp_data.ledger.backends.sqlite import SQLiteDatabase

# --------------------------------------------------------------------------------------------------
# Rows of the household register: sources, draws, memberships and households, as its database stores them.
#
# Days are whole numbers, days since 1970-01-01. Losses are in nano-epsilon. `household_register` has the idea and an
# example.
# --------------------------------------------------------------------------------------------------

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
METADATA = sa.MetaData()
META = sa.Table(
    "register_meta",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
)
_SOURCE = sa.Table(
    "source",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("ledger", "population", "kind", "roster")),
    *(sa.Column(name, _NUMBER, nullable=False) for name in ("newest", "through")),
    sa.UniqueConstraint("ledger", "population", "kind"),
)
_DRAW = sa.Table(
    "draw",
    METADATA,
    *(sa.Column(name, _NUMBER, nullable=False) for name in ("source", "first_day", "last_day")),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("series", "identity")),
    sa.Column("loss", _NUMBER, nullable=False),
    sa.PrimaryKeyConstraint("source", "first_day", "last_day", "series", "identity"),
)
_MEMBERSHIP = sa.Table(
    "membership",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
    sa.Column("ranges", sa.Text, nullable=False),
    sa.Column("households", _NUMBER, nullable=False),
)
_HOUSEHOLD = sa.Table(
    "household",
    METADATA,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    sa.Column("membership", _NUMBER, nullable=False),
    sqlite_with_rowid=False,
)

_INSERT_HOUSEHOLD: Final = {
    "sqlite": "INSERT INTO household (digest, membership) VALUES (?, ?)",
    "postgresql": "INSERT INTO household (digest, membership) VALUES (%s, %s)",
}
"""A statement of each driver: a million households go through no layer in between."""

DIGEST_BYTES: Final = 32
FIRST_BYTES: Final = 256
"""Households are read by ranges of the first byte of their digest."""
Kind = Literal["release", "rehearsal"]
MemberRange = tuple[int, int, int | None]
"""Source, first day, last day; None while the household is on the roster of the source's newest day."""
Ranges = tuple[MemberRange, ...]


@dataclass(frozen=True, slots=True)
class RegisterSource:
    """One population in one ledger, or the calibration draws of a population about one period.

    `newest` is the last day whose members are known, -1 without one; `roster` a keyed digest of the members that were
    compared last, through the day `through`.
    """

    id: int
    ledger: str
    population: str
    kind: str
    roster: str = ""
    newest: int = -1
    through: int = -1


@dataclass(frozen=True, slots=True)
class CountedDraw:
    """One draw: days of the data, its series or query, the hash of its row ("" before it is known), and its loss."""

    source: int
    first_day: int
    last_day: int
    series: str
    identity: str
    loss: int


@dataclass(frozen=True, slots=True)
class Membership:
    """What some households have in common: their ranges of days in every source, and how many households they are."""

    id: int
    ranges: Ranges
    households: int


class RegisterRows:
    """The rows of a register within one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def meta(self) -> dict[str, str]:
        """Return the properties of the register: its version, a check value of its key, since when it counts."""
        return {row.name: row.content for row in self._connection.execute(sa.select(META))}

    def set_meta(self, name: str, content: str) -> None:
        """Store a property, in place of an earlier one of this name."""
        self._connection.execute(META.delete().where(META.c.name == name))
        self._connection.execute(META.insert().values(name=name, content=content))

    def sources(self) -> tuple[RegisterSource, ...]:
        """Return all sources, in the order in which they were added."""
        rows = self._connection.execute(sa.select(_SOURCE).order_by(_SOURCE.c.id)).mappings()
        return tuple(RegisterSource(**row) for row in rows)

    def source(self, ledger: str, population: str, kind: str) -> RegisterSource:
        """Return the source of a population in a ledger, added if it is new."""
        sources = self.sources()
        for source in sources:
            if (source.ledger, source.population, source.kind) == (ledger, population, kind):
                return source
        added = RegisterSource(max((source.id for source in sources), default=0) + 1, ledger, population, kind)
        self._connection.execute(_SOURCE.insert(), _fields(added))
        return added

    def update_source(self, source: RegisterSource) -> None:
        """Store the members' digest and the newest day of a source."""
        self._connection.execute(_SOURCE.update().where(_SOURCE.c.id == source.id), _fields(source))

    def draws(self, sources: Iterable[int] | None = None) -> tuple[CountedDraw, ...]:
        """Return the draws of some sources, or of all."""
        query = sa.select(_DRAW) if sources is None else sa.select(_DRAW).where(_DRAW.c.source.in_(list(sources)))
        return tuple(CountedDraw(*row) for row in self._connection.execute(query))

    def replace_draws(self, *, without: Iterable[CountedDraw], new: Iterable[CountedDraw]) -> None:
        """Remove draws and add others; a draw is identified by all its fields but the loss."""
        keys = list(_DRAW.primary_key)
        matching = _DRAW.delete()
        for column in keys:
            matching = matching.where(column == sa.bindparam(f"old_{column.name}"))
        removed = [{f"old_{column.name}": getattr(draw, column.name) for column in keys} for draw in without]
        added = [_fields(draw) for draw in new]
        if removed:
            self._connection.execute(matching, removed)
        if added:
            self._connection.execute(_DRAW.insert(), added)

    def memberships(self) -> dict[int, Membership]:
        """Return the memberships that at least one household has, by id."""
        rows = self._connection.execute(sa.select(_MEMBERSHIP).where(_MEMBERSHIP.c.households > 0))
        return {number: Membership(number, parse_ranges(text), households) for number, text, households in rows}

    def households(self, first: int = 0, stop: int = FIRST_BYTES) -> dict[bytes, int]:
        """Return the membership of households by digest, those whose first byte is from `first` to before `stop`."""
        query = sa.select(_HOUSEHOLD)
        if first > 0:
            query = query.where(_HOUSEHOLD.c.digest >= bytes([first]))
        if stop < FIRST_BYTES:
            query = query.where(_HOUSEHOLD.c.digest < bytes([stop]))
        return {bytes(digest): membership for digest, membership in self._connection.execute(query)}

    def replace_memberships(self, memberships: Iterable[Membership]) -> None:
        """Store the memberships that are in use."""
        self._connection.execute(_MEMBERSHIP.delete())
        rows = [
            {"id": entry.id, "ranges": format_ranges(entry.ranges), "households": entry.households}
            for entry in memberships
        ]
        if rows:
            self._connection.execute(_MEMBERSHIP.insert(), rows)

    def move_households(self, *, added: Mapping[bytes, int], moved: Mapping[bytes, int]) -> None:
        """Store households that are new, and those whose membership is another, by digest."""
        if added:  # in the order of the digests, which is that of the table
            insert = _INSERT_HOUSEHOLD[self._connection.dialect.name]
            self._connection.exec_driver_sql(insert, [(key, added[key]) for key in sorted(added)])
        if moved:
            statement = _HOUSEHOLD.update().where(_HOUSEHOLD.c.digest == sa.bindparam("moved"))
            self._connection.execute(statement, [{"moved": key, "membership": moved[key]} for key in sorted(moved)])


def format_ranges(ranges: Ranges) -> str:
    """Return ranges as the text of a membership.

    >>> format_ranges(((1, 15706, None),))
    '[[1,15706,null]]'
    """
    return json.dumps(ranges, separators=(",", ":"))


def parse_ranges(text: str) -> Ranges:
    """Return the ranges of a membership's text.

    >>> parse_ranges("[[1,15706,null]]")
    ((1, 15706, None),)
    """
    return tuple((source, first, last) for source, first, last in json.loads(text))


def _fields(row: RegisterSource | CountedDraw) -> dict[str, int | str]:
    return {name: getattr(row, name) for name in row.__slots__}


# --------------------------------------------------------------------------------------------------
# The register.
# --------------------------------------------------------------------------------------------------

VERSION: Final = "1"
_SUBJECT: Final = "the household register"
_REPAIR: Final = "put back a good copy, or fill it anew (`agedp ledger households RUN.toml --rebuild`)"
_Result = TypeVar("_Result")


class _RegisterFile(SQLiteDatabase):
    """A register in a file of SQLite. Its errors name the file in the private text only: it is confidential."""

    explanations: ClassVar[Mapping[str, str]] = {
        **SQLiteDatabase.explanations,
        "SQLITE_NOTADB": f"the file is not a household register; {_REPAIR}",
        "SQLITE_CORRUPT": f"the file is damaged; {_REPAIR}",
        "SQLITE_ERROR": f"its tables are not those of a household register; {_REPAIR}",
        "SQLITE_CONSTRAINT": f"two rows contradict each other; {_REPAIR}",
    }

    def exists(self) -> bool:
        """Return whether the file exists.

        Raises:
            LedgerError: the path is a folder, or cannot be checked.
        """
        try:
            return super().exists()
        except LedgerError as error:
            problem = f"{_SUBJECT} cannot be used; check its path and permissions"
            raise LedgerError(problem, private=error.private) from None

    def error_about(self, text: str) -> LedgerError:
        """Return an error about this register."""
        return LedgerError(f"{_SUBJECT} {text}", private=f"{_SUBJECT} {str(self.path)!r} {text}")

    def _error(self, text: str) -> LedgerError:
        return LedgerError(f"{_SUBJECT}: {text}", private=f"{_SUBJECT} {str(self.path)!r}: {text}")

    def changed_parts(self, connection: sa.Connection) -> tuple[tuple[str, str], ...]:  # noqa: ARG002
        """Return (): a register has no triggers."""
        return ()

    def require_writable(self, connection: sa.Connection) -> None:
        """Make SQLite take its write lock, which BEGIN IMMEDIATE leaves out for a read-only file."""
        connection.execute(META.delete().where(sa.false()))


class _RegisterServer(PostgreSQLDatabase):
    """A register in a schema of PostgreSQL; its writers have a lock of their own, for a ledger may be held open."""

    subject = _SUBJECT

    @property
    def lock(self) -> str:
        """The statement that makes a writer wait until the one before it has committed."""
        return "SELECT pg_advisory_lock(hashtextextended('agedp register ' || current_schema(), 0))"

    def changed_parts(self, connection: sa.Connection) -> tuple[tuple[str, str], ...]:  # noqa: ARG002
        """Return (): a register has no triggers."""
        return ()


def _database_at(url: str) -> LedgerDatabase:
    parts = parse_url(url, f"the address of {_SUBJECT}", example="postgresql://host/database")
    if parts.drivername.startswith("postgresql"):
        return _RegisterServer.of(parts)
    return _RegisterFile.of(parts)


class HouseholdRegister:
    """The database of a register, at a SQLite file or a PostgreSQL schema."""

    def __init__(self, url: str) -> None:
        self._database = _database_at(url)

    def exists(self) -> bool:
        """Return whether the register exists; an empty file or schema is none.

        Raises:
            LedgerError: the file or schema holds something else, or cannot be asked.
        """
        return self._database.exists() and run_transaction(self._database, self._is_register, write=False)

    def _is_register(self, connection: sa.Connection) -> bool:
        tables = set(sa.inspect(connection).get_table_names())
        if not tables:
            return False
        if not set(METADATA.tables) <= tables:
            raise self._database.error_about(
                "holds tables of something else; name a file, or a schema, that holds nothing else"
            )
        version = RegisterRows(connection).meta().get("version")
        if version != VERSION:
            raise self._database.error_about("has a form that a newer agedp reads; update agedp")
        return True

    def create(self, properties: Mapping[str, str]) -> None:
        """Create the register with these properties, unless another process was faster."""
        self._database.ensure_storage(create=True)

        def work(connection: sa.Connection) -> None:
            if not self._is_register(connection):
                METADATA.create_all(connection, checkfirst=False)
                rows = {"version": VERSION, **properties}
                connection.execute(META.insert(), [{"name": name, "content": rows[name]} for name in rows])

        run_transaction(self._database, work, write=True, creating=True)

    def read(self, work: Callable[[RegisterRows], _Result]) -> _Result:
        """Return the result of `work` on one snapshot of the rows."""
        return run_transaction(self._database, lambda connection: work(RegisterRows(connection)), write=False)

    def write(self, work: Callable[[RegisterRows], _Result]) -> _Result:
        """Return the result of `work` in one write transaction; an exception leaves the register unchanged."""

        def body(connection: sa.Connection) -> _Result:
            if isinstance(self._database, _RegisterFile):
                self._database.require_writable(connection)
            return work(RegisterRows(connection))

        return run_transaction(self._database, body, write=True)

    def close(self) -> None:
        """Close the connection."""
        self._database.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(LedgerError):
            self.close()
