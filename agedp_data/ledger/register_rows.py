"""Rows of the household register: sources, draws, memberships and households, as its database stores them.

Days are whole numbers, days since 1970-01-01. Losses are in nano-epsilon. `household_register` has the idea and an
example.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    select,
)

_NUMBER = BigInteger().with_variant(Integer(), "sqlite")
METADATA = MetaData()
META = Table("register_meta", METADATA, Column("name", Text, primary_key=True), Column("content", Text, nullable=False))
_SOURCE = Table(
    "source",
    METADATA,
    Column("id", _NUMBER, primary_key=True, autoincrement=False),
    *(Column(name, Text, nullable=False) for name in ("ledger", "population", "kind", "roster")),
    *(Column(name, _NUMBER, nullable=False) for name in ("newest", "through")),
    UniqueConstraint("ledger", "population", "kind"),
)
_DRAW = Table(
    "draw",
    METADATA,
    *(Column(name, _NUMBER, nullable=False) for name in ("source", "first_day", "last_day")),
    *(Column(name, Text, nullable=False) for name in ("series", "identity")),
    Column("loss", _NUMBER, nullable=False),
    PrimaryKeyConstraint("source", "first_day", "last_day", "series", "identity"),
)
_MEMBERSHIP = Table(
    "membership",
    METADATA,
    Column("id", _NUMBER, primary_key=True, autoincrement=False),
    Column("ranges", Text, nullable=False),
    Column("households", _NUMBER, nullable=False),
)
_HOUSEHOLD = Table(
    "household",
    METADATA,
    Column("digest", LargeBinary, primary_key=True),
    Column("membership", _NUMBER, nullable=False),
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

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def meta(self) -> dict[str, str]:
        """Return the properties of the register: its version, a check value of its key, since when it counts."""
        return {row.name: row.content for row in self._connection.execute(select(META))}

    def set_meta(self, name: str, content: str) -> None:
        """Store a property, in place of an earlier one of this name."""
        self._connection.execute(META.delete().where(META.c.name == name))
        self._connection.execute(META.insert().values(name=name, content=content))

    def sources(self) -> tuple[RegisterSource, ...]:
        """Return all sources, in the order in which they were added."""
        rows = self._connection.execute(select(_SOURCE).order_by(_SOURCE.c.id)).mappings()
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
        query = select(_DRAW) if sources is None else select(_DRAW).where(_DRAW.c.source.in_(list(sources)))
        return tuple(CountedDraw(*row) for row in self._connection.execute(query))

    def replace_draws(self, *, without: Iterable[CountedDraw], new: Iterable[CountedDraw]) -> None:
        """Remove draws and add others; a draw is identified by all its fields but the loss."""
        keys = list(_DRAW.primary_key)
        matching = _DRAW.delete()
        for column in keys:
            matching = matching.where(column == bindparam(f"old_{column.name}"))
        removed = [{f"old_{column.name}": getattr(draw, column.name) for column in keys} for draw in without]
        added = [_fields(draw) for draw in new]
        if removed:
            self._connection.execute(matching, removed)
        if added:
            self._connection.execute(_DRAW.insert(), added)

    def memberships(self) -> dict[int, Membership]:
        """Return the memberships that at least one household has, by id."""
        rows = self._connection.execute(select(_MEMBERSHIP).where(_MEMBERSHIP.c.households > 0))
        return {number: Membership(number, parse_ranges(text), households) for number, text, households in rows}

    def households(self, first: int = 0, stop: int = FIRST_BYTES) -> dict[bytes, int]:
        """Return the membership of households by digest, those whose first byte is from `first` to before `stop`."""
        query = select(_HOUSEHOLD)
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
            statement = _HOUSEHOLD.update().where(_HOUSEHOLD.c.digest == bindparam("moved"))
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
