"""The database of the accounts of populations: three small tables beside the ledgers, in a file or on a server.

    population  5812..., release, 2013-01-01 to 2013-03-05, of a day 0.5, in all 32, head 4ab1...
    member      population 5812..., digest d01e..., from 2013-01-01, no end
    file        population 5812..., digest 77aa..., rule 03cd...

Decisions:

* Days are whole numbers, days since 1970-01-01; losses are in nano-epsilon; the id of a population is a random number.
  Digests are keyed (`population_accounts`), and `register_meta` has a check value of the key. Nothing else is stored.
* Nothing is hashed in a chain: the ledgers are the record of the losses. `population_accounts` says why a database that
  was emptied or lowered makes no stated loss smaller.
* Members and files are only added. A charge is never lowered by `save`: its caller takes the larger one.
* A household register of 0.2 is taken over by the first transaction that writes, in one step. Its sources become
  populations, one for each population and ledger: their draws are added up, and calibration draws count with the
  releases. Its tables stay, empty, and its version is 2, so that 0.2 refuses it in one line from then on.
* Connections, retries and error texts are those of the ledger's backends.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import accumulate, islice
from typing import ClassVar, Final, Literal, Self, TypeVar

import sqlalchemy as sa

from agedp_data.errors import LedgerError
from agedp_data.ledger.backends.backend import LedgerDatabase, parse_url, run_transaction
from agedp_data.ledger.backends.postgresql import PostgreSQLDatabase
from agedp_data.ledger.backends.sqlite import SQLiteDatabase

Kind = Literal["release", "rehearsal"]
VERSION: Final = "2"
SUBJECT: Final = "the household register"
_REGISTER_OF_0_2: Final = "1"
_REPAIR: Final = "put back a good copy, or move it away: the accounts then begin anew, and the statements say so"
_BATCH: Final = 2**16
_Result = TypeVar("_Result")

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_METADATA = sa.MetaData()
_META = sa.Table(
    "register_meta",
    _METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
)
_POPULATION = sa.Table(
    "population",
    _METADATA,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    *(sa.Column(name, _NUMBER, nullable=False) for name in ("first_day", "last_day", "charged_day", "charged_total")),
    sa.Column("head", sa.Text, nullable=False),
)
_MEMBER = sa.Table(
    "member",
    _METADATA,
    sa.Column("population", _NUMBER, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    sa.Column("first_day", _NUMBER, primary_key=True, autoincrement=False),
    sa.Column("last_day", _NUMBER),
    sqlite_with_rowid=False,
)
_FILE = sa.Table(
    "file",
    _METADATA,
    *(sa.Column(name, sa.LargeBinary, primary_key=True) for name in ("digest", "rule")),
    sa.Column("population", _NUMBER, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)


@dataclass(frozen=True, slots=True)
class Charges:
    """Losses of one population: the days that they are about, the largest sum about a day, and the sum of all.

    Days are since 1970, losses in nano-epsilon.
    """

    first_day: int
    last_day: int
    charged_day: int
    charged_total: int

    @classmethod
    def of(cls, losses: Iterable[tuple[int, int, int]]) -> Self | None:
        """Return the charges of losses, each with the first and last day that it is about; None without any.

        >>> Charges.of([(1, 1, 5), (2, 2, 5), (2, 8, 3)])
        Charges(first_day=1, last_day=8, charged_day=8, charged_total=13)
        """
        steps, total = Counter[int](), 0
        for first, last, loss in losses:
            steps[first] += loss
            steps[last + 1] -= loss
            total += loss
        if not steps:
            return None
        largest = max(accumulate(loss for _, loss in sorted(steps.items())))
        return cls(min(steps), max(steps) - 1, largest, total)


@dataclass(frozen=True, slots=True)
class AccountedPopulation(Charges):
    """A row of `population`: its charges, a random id, its kind, and the head that finds it in a ledger."""

    id: int
    kind: str
    head: str

    @classmethod
    def charged(cls, charges: Charges, kind: str, head: str) -> Self:
        """Return a new population with these charges, under a random id."""
        days, losses = (charges.first_day, charges.last_day), (charges.charged_day, charges.charged_total)
        return cls(*days, *losses, int.from_bytes(os.urandom(7)), kind, head)

    def with_others(self, sharing: Iterable[AccountedPopulation]) -> tuple[int, int]:
        """Return the largest loss about a day, and in all, of a household that may be in this population and in others.

        About a day those count whose days overlap the ones of this population; or, if that is more, those others whose
        days have one in common.
        """
        charged = [replace(of, charged_day=max(of.charged_day, 0)) for of in sharing]
        beside = [of for of in charged if of.first_day <= self.last_day and self.first_day <= of.last_day]
        apart = Charges.of((of.first_day, of.last_day, of.charged_day) for of in charged)
        day = self.charged_day + sum(of.charged_day for of in beside)
        total = self.charged_total + sum(of.charged_total for of in charged)
        return max(day, 0 if apart is None else apart.charged_day), total


class AccountRows:
    """The rows of the accounts within one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._mark = {"sqlite": "?", "postgresql": "%s"}[connection.dialect.name]

    def populations(self) -> tuple[AccountedPopulation, ...]:
        """Return all populations.

        Raises:
            LedgerError: a row was edited from outside into something that is no charge.
        """
        names = [field.name for field in fields(AccountedPopulation)]
        rows = self._connection.execute(sa.select(*(_POPULATION.c[name] for name in names))).all()
        if not all(
            isinstance(value, str if name in ("kind", "head") else int)
            for row in rows
            for name, value in zip(names, row, strict=True)
        ):
            raise LedgerError(f"{SUBJECT} holds a charge that is no number; {_REPAIR}")
        return tuple(AccountedPopulation(*row) for row in rows)

    def save(self, population: AccountedPopulation) -> None:
        """Store the row of a population, in place of an earlier one."""
        self._connection.execute(_POPULATION.delete().where(_POPULATION.c.id == population.id))
        self._connection.execute(_POPULATION.insert(), asdict(population))

    def add_members(self, population: int, members: Iterable[tuple[bytes, int, int | None]]) -> None:
        """Add households by digest, first day and last day (None: no end), unless they are there."""
        self._add("INSERT INTO member VALUES (?, ?, ?, ?)", ((population, *member) for member in members))

    def add_files(self, population: int, digests: Iterable[bytes], rule: bytes) -> None:
        """Add input files by digest, under the rule that makes household ids of them, unless they are there."""
        self._add("INSERT INTO file VALUES (?, ?, ?)", ((digest, rule, population) for digest in digests))

    def member_rows(self, population: int) -> int:
        """Return the number of rows of `member` of a population."""
        query = sa.select(sa.func.count()).select_from(_MEMBER).where(_MEMBER.c.population == population)
        return int(self._connection.execute(query).scalar_one())

    def sharing(self, population: AccountedPopulation) -> tuple[AccountedPopulation, ...]:
        """Return the other charged populations that share a household with one, on whatever days.

        Those that read one of its input files under another rule for ids count as well.
        """
        own, other = _MEMBER.alias(), _MEMBER.alias()
        number: sa.BindParameter[int] = sa.bindparam("number")
        same = sa.and_(own.c.population == population.id, other.c.population == number, own.c.digest == other.c.digest)
        shares, by_file = sa.select(sa.exists().where(same)), self.sharing_files(population)
        others = (of for of in self.populations() if of.id != population.id and of.charged_total > 0)
        return tuple(
            of for of in others if of.id in by_file or self._connection.execute(shares, {"number": of.id}).scalar_one()
        )

    def sharing_files(self, population: AccountedPopulation) -> set[int]:
        """Return the ids of the populations that read an input file of one under another rule for household ids."""
        own, other = _FILE.alias(), _FILE.alias()
        query = sa.select(other.c.population).where(
            own.c.population == population.id, other.c.digest == own.c.digest, other.c.rule != own.c.rule
        )
        return set(self._connection.execute(query.distinct()).scalars())

    def digests(self, populations: Collection[int]) -> set[bytes]:
        """Return the digests of the households of populations."""
        query = sa.select(_MEMBER.c.digest).where(_MEMBER.c.population.in_(populations))
        return {bytes(digest) for digest in self._connection.execute(query).scalars()}

    def _add(self, insert: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Insert rows by the driver itself, a batch at a time: a million households go through no layer in between."""
        statement, iterator = f"{insert.replace('?', self._mark)} ON CONFLICT DO NOTHING", iter(rows)
        while batch := [*islice(iterator, _BATCH)]:
            self._connection.exec_driver_sql(statement, batch)

    def meta(self) -> dict[str, str]:
        """Return the properties: the version, and a check value of the key."""
        return {row.name: row.content for row in self._connection.execute(sa.select(_META))}

    def take_over(self, seal: Callable[[str, str], str]) -> None:
        """Make populations of the sources of a register of 0.2.

        `seal` returns the head by which a population is found in a ledger that has not been charged here.
        """
        ask = self._connection.exec_driver_sql
        sources: dict[tuple[str, str], dict[int, str]] = {}
        for number, ledger, population, kind in ask("SELECT id, ledger, population, kind FROM source"):
            sources.setdefault((ledger, population), {})[number] = kind
        draws = [*ask("SELECT source, first_day, last_day, loss FROM draw")]
        ranges = [(number, json.loads(text)) for number, text in ask("SELECT id, ranges FROM membership")]
        copy = "INSERT INTO member SELECT ?, digest, ?, ? FROM household WHERE membership = ?"
        for (ledger, name), kinds in sources.items():
            charges = Charges.of((first, last, loss) for source, first, last, loss in draws if source in kinds)
            if charges is None:
                continue
            kind = next((kind for kind in kinds.values() if kind in ("release", "rehearsal")), "calibration")
            population = AccountedPopulation.charged(charges, kind, seal(ledger, name))
            self.save(population)
            for membership, entries in ranges:
                for _, first, last in (entry for entry in entries if entry[0] in kinds):
                    self._add(copy, [(population.id, first, last, membership)])
        for emptied in ("DELETE FROM source", "DELETE FROM draw", "DELETE FROM membership", "DELETE FROM household"):
            ask(emptied)
        self._connection.execute(_META.update().where(_META.c.name == "version").values(content=VERSION))


class _AccountFile(SQLiteDatabase):
    """Accounts in a file of SQLite. Its errors name the file in the private text only: it is confidential."""

    subject, is_named = SUBJECT, False
    explanations: ClassVar[Mapping[str, str]] = {
        **SQLiteDatabase.explanations,
        "SQLITE_NOTADB": f"the file is not a household register; {_REPAIR}",
        "SQLITE_CORRUPT": f"the file is damaged; {_REPAIR}",
        "SQLITE_ERROR": f"its tables are not those of a household register; {_REPAIR}",
        "SQLITE_CONSTRAINT": f"two rows contradict each other; {_REPAIR}",
    }

    def changed_parts(self, connection: sa.Connection) -> tuple[tuple[str, str], ...]:  # noqa: ARG002
        """Return (): accounts have no triggers."""
        return ()


class _AccountServer(PostgreSQLDatabase):
    """Accounts in a schema of PostgreSQL; their writers have a lock of their own, for a ledger may be held open."""

    subject = SUBJECT

    @property
    def lock(self) -> str:
        """The statement that makes a writer wait until the one before it has committed."""
        return "SELECT pg_advisory_lock(hashtextextended('agedp register ' || current_schema(), 0))"

    def changed_parts(self, connection: sa.Connection) -> tuple[tuple[str, str], ...]:  # noqa: ARG002
        """Return (): accounts have no triggers."""
        return ()


class AccountDatabase:
    """The database of accounts at the address of a SQLite file or a PostgreSQL schema.

    Raises:
        LedgerError: an address that cannot be read, or that contains a password.
    """

    def __init__(self, url: str) -> None:
        parts = parse_url(url, f"the address of {SUBJECT}", example="postgresql://host/database")
        is_server = parts.drivername.startswith("postgresql")
        self._database: LedgerDatabase = (_AccountServer if is_server else _AccountFile).of(parts)

    def key_check(self) -> str | None:
        """Return the check value of the key; None where there are no accounts yet: no file, or one without a table.

        Raises:
            LedgerError: the file or schema holds something else, or cannot be asked.
        """
        if not self._database.exists():
            return None
        meta = run_transaction(self._database, self._meta, write=False)
        return None if meta is None else meta.get("check", "")

    def create(self, check: str) -> None:
        """Create the accounts under a key with this check value, unless another process was faster."""
        self._database.ensure_storage(create=True)

        def work(connection: sa.Connection) -> None:
            if self._meta(connection) is None:
                _METADATA.create_all(connection, checkfirst=False)
                connection.execute(
                    _META.insert(), [{"name": "version", "content": VERSION}, {"name": "check", "content": check}]
                )

        run_transaction(self._database, work, write=True, creating=True)

    def read(self, work: Callable[[AccountRows], _Result]) -> _Result | None:
        """Return the result of `work` on one snapshot; None for a register of 0.2 that was not taken over yet."""

        def body(connection: sa.Connection) -> _Result | None:
            meta = self._meta(connection) or {}
            return None if meta.get("version") == _REGISTER_OF_0_2 else work(AccountRows(connection))

        return run_transaction(self._database, body, write=False)

    def write(self, work: Callable[[AccountRows], _Result], *, seal: Callable[[str, str], str]) -> _Result:
        """Return the result of `work` in one write transaction; an exception leaves the accounts unchanged.

        A register of 0.2 is taken over in the same transaction (`AccountRows.take_over`, which explains `seal`).
        """

        def body(connection: sa.Connection) -> _Result:
            rows = AccountRows(connection)
            if (self._meta(connection) or {}).get("version") == _REGISTER_OF_0_2:
                _METADATA.create_all(connection, checkfirst=True)
                try:
                    rows.take_over(seal)
                except (TypeError, ValueError):
                    raise self._database.error_about(f"of agedp 0.2 is damaged; {_REPAIR}") from None
            return work(rows)

        return run_transaction(self._database, body, write=True)

    def _meta(self, connection: sa.Connection) -> dict[str, str] | None:
        """Return the properties of the accounts, or of a register of 0.2; None for a database without a table."""
        tables = set(sa.inspect(connection).get_table_names())
        if not tables:
            return None
        if _META.name not in tables:
            raise self._database.error_about(
                "holds tables of something else; name a file, or a schema, that holds nothing else"
            )
        meta = AccountRows(connection).meta()
        if meta.get("version") not in (VERSION, _REGISTER_OF_0_2):
            raise self._database.error_about("has a form that a newer agedp reads; update agedp")
        return meta
