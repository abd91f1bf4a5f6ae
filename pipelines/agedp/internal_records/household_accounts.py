"""One account per household: rosters and ledger rows -> the household register -> the largest sums over households.

A release is charged before its draw, inside the transaction of the ledger that draws it, and confirmed by the hash of
its row before it is published. So a run that is killed in between leaves a charge that counts until the same ledger
draws the day. Nothing here depends on a reading.

Decisions:

* A draw is identified by the hash of its row. Rehearsals with the same contract have ledgers with the same first row;
  their rows differ, and each of them counts. The rows of a moved ledger keep their hashes; those of a recovered ledger
  count by the hashes that they had in the lost one, so that they count once, and rows that only the lost ledger had
  stay charged.
* The source of a recovered ledger is that of the lost one.
* Rosters of released days cannot change: ranges of households only grow, by days and by households. Two ledgers of one
  source with different rosters therefore count the households of both.
* The account that is published is at least that of a household which was on the roster of every released day. For a
  population that shares no household it equals the bounds `day` and `total`, whoever joined or left.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from agedp.internal_records.register_members import (
    BEGAN,
    REBUILT,
    UNKNOWN_POPULATION,
    HouseholdKey,
    RegisterPlace,
    RosterRanges,
    record_roster,
)
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.errors import LedgerBehind, LedgerError, Refused
from agedp_data.ledger import Ledger, ReleaseRecord, canonical
from agedp_data.ledger.household_register import CountedDraw, Kind, Membership, RegisterRows, RegisterSource
from agedp_data.ledger.lifecycle import CalibrationDraw, HouseholdAccount
from agedp_data.ledger.records import AnyRelease
from agedp_data.notions.publication import Publication
from agedp_data.roster import Roster

# --------------------------------------------------------------------------------------------------
# Memberships and draws of the household register -> the largest sums over households.
#
# .. math:: \varepsilon_h(d) = \sum_{k :\, h \in R_k,\ d \in k} \varepsilon_k, \qquad
#           \max_h \max_d \varepsilon_h(d), \qquad \max_h \sum_{k :\, h \in R_k} \varepsilon_k
#
# k are the draws, d in k the days of the data that draw k is about, R_k the households on its roster. A draw about one
# day counts for the households on the roster of that day; a calibration draw counts once in the total, and on every
# day of its period. Households with the same membership have the same sums, so each membership is computed once.
# --------------------------------------------------------------------------------------------------

_INT64_SAFE = 2**62


@dataclass(frozen=True, slots=True)
class LargestSums:
    """The largest loss of a household about one day, and in all [nano-epsilon]; not of one household in general."""

    day: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class SharedHouseholds:
    """How many households of a population are counted elsewhere too (confidential).

    `by_source` has (population, kind, households) for each other source, `households` all of them, each once.
    """

    households: int
    by_source: tuple[tuple[str, str, int], ...]


def largest_sums(
    memberships: Iterable[Membership],
    draws: Sequence[CountedDraw],
    sources: Mapping[int, RegisterSource],
    *,
    of: Collection[int] | None = None,
) -> LargestSums:
    """Return the largest sums over the households that are in a source of `of`, or over all households.

    Args:
        memberships: those that at least one household has.
        draws: the draws of all sources.
        sources: every source by id; open ranges end with its newest day.
        of: ids of sources; None for all households.
    """
    if not draws:
        return LargestSums()
    first = min(draw.first_day for draw in draws)
    losses = _SourceLosses(draws, first, max(draw.last_day for draw in draws) + 1 - first)
    day, total = 0, 0
    for membership in memberships:
        if of is not None and all(source not in of for source, _, _ in membership.ranges):
            continue
        spans = [
            (source, max(begin - first, 0), (sources[source].newest if end is None else end) + 1 - first)
            for source, begin, end in membership.ranges
            if source in losses.by_day
        ]
        spans = [(source, begin, end) for source, begin, end in spans if end > begin]
        total = max(total, sum(losses.total(*span) for span in spans))
        if sum(losses.largest[source] for source, _, _ in spans) > day:
            day = max(day, losses.largest_day(spans))
    return LargestSums(day, total)


class _SourceLosses:
    """Losses by source and day: `by_day` about each day; sums of the draws that begin, and that end, before a day.

    A draw about several days counts once for a household that was on the roster on one of them.
    """

    def __init__(self, draws: Sequence[CountedDraw], first: int, days: int) -> None:
        kind = np.int64 if sum(draw.loss for draw in draws) < _INT64_SAFE else object
        self.by_day: dict[int, NDArray[np.int64]] = {}
        begun: dict[int, NDArray[np.int64]] = {}
        ended: dict[int, NDArray[np.int64]] = {}
        for draw in draws:
            if draw.source not in self.by_day:
                self.by_day[draw.source] = np.zeros(days, kind)
                begun[draw.source], ended[draw.source] = np.zeros(days + 1, kind), np.zeros(days + 1, kind)
            self.by_day[draw.source][draw.first_day - first : draw.last_day + 1 - first] += draw.loss
            begun[draw.source][draw.first_day - first + 1] += draw.loss
            ended[draw.source][draw.last_day - first + 1] += draw.loss
        self._begun, self._ended = (
            {source: np.cumsum(losses) for source, losses in sums.items()} for sums in (begun, ended)
        )
        self.largest = {source: int(losses.max()) for source, losses in self.by_day.items()}
        self._days = days

    def total(self, source: int, begin: int, end: int) -> int:
        """Return the sum of the draws of a source that touch a range of days, `end` not included."""
        begun, ended = self._begun[source], self._ended[source]
        return int(begun[min(end, self._days)] - ended[min(begin, self._days)])

    def largest_day(self, spans: Sequence[tuple[int, int, int]]) -> int:
        """Return the largest sum about one day over ranges of several sources."""
        if len(spans) == 1:
            [(source, begin, end)] = spans
            return int(self.by_day[source][begin:end].max(initial=0))
        by_day = np.zeros_like(self.by_day[spans[0][0]])
        for source, begin, end in spans:
            by_day[begin:end] += self.by_day[source][begin:end]
        return int(by_day.max(initial=0))


def shared_households(
    memberships: Iterable[Membership],
    sources: Mapping[int, RegisterSource],
    *,
    of: int,
    elsewhere: Collection[int],
    day: int | None = None,
) -> SharedHouseholds:
    """Return how many households of a source are counted in other sources as well.

    Args:
        memberships: those that at least one household has.
        sources: every source by id.
        of: the source whose households are counted.
        elsewhere: the sources with which they are compared.
        day: only households that are in `of` on this day; None for all.
    """
    counts: dict[int, int] = {}
    households = 0
    for membership in memberships:
        spans = [
            (begin, sources[of].newest if end is None else end)
            for source, begin, end in membership.ranges
            if source == of
        ]
        shared = {source for source, _, _ in membership.ranges if source in elsewhere}
        is_counted = any(day is None or begin <= day <= end for begin, end in spans)
        if is_counted and shared:
            households += membership.households
            for source in shared:
                counts[source] = counts.get(source, 0) + membership.households
    by_source = ((sources[source].population, sources[source].kind, counts[source]) for source in sorted(counts))
    return SharedHouseholds(households, tuple(by_source))


# --------------------------------------------------------------------------------------------------
# Ledger rows -> draws of the household register: which source they are of, and which draw a row is.
#
# A draw is identified by the hash of its row; a row of a recovered ledger by the hash that it had in the oldest ledger
# that contained it. A calibration draw has no row of its own in every ledger that uses its model: it is one draw
# wherever population, period, query and answer are the same.
# --------------------------------------------------------------------------------------------------

CALIBRATION: Final = "calibration"
LEDGER_SOURCE: Final = "ledger "
"""Prefix of the property that names the source of a recovered ledger."""
REHEARSALS, RELEASES, REBUILT_GAP = "rehearsals", "releases", "rebuilt"
"""What an account may lack: earlier rehearsals, earlier releases, all that a lost register knew."""

Lineage = tuple[tuple[str, tuple[str, ...]], ...]
Recorded = tuple[str, str, bool]
"""Population and ledger of released days in the roster history, and whether the ledger is a rehearsal's."""


def gaps_of(rows: RegisterRows, recorded: Collection[Recorded]) -> tuple[str, ...]:
    """Return what the register is known to lack."""
    meta = rows.meta()
    registered = {(source.population, source.ledger) for source in rows.sources()}
    missing = [
        rehearsal
        for population, ledger, rehearsal in recorded
        if (population, meta.get(f"{LEDGER_SOURCE}{ledger}", ledger)) not in registered
    ]
    gaps = {REBUILT_GAP: bool(meta[REBUILT]), REHEARSALS: any(missing), RELEASES: not all(missing)}
    return tuple(gap for gap, applies in gaps.items() if applies)


def is_own(entry: RegisterSource, source: RegisterSource) -> bool:
    """Return whether a source is this one, or a calibration of the same population."""
    return entry.id == source.id or (entry.population == source.population and entry.kind.startswith(CALIBRATION))


def lineage_of(ledger: Ledger) -> Lineage:
    """Return the ledgers that this one continues, oldest first, each with the hashes of its rows; itself last.

    The n-th hash is that of row n + 1 of this ledger, "" for a row that the earlier ledger did not contain.
    """
    recovery = ledger.recovery()
    if recovery is None:
        return ((ledger.id, ()),)
    earlier = [(lost.ledger, lost.hashes) for lost in recovery.earlier_ledgers]
    return (*earlier, (recovery.ledger, recovery.hashes), (ledger.id, ()))


def identity_of(row: AnyRelease, lineage: Lineage) -> str:
    """Return the hash of a row in the oldest ledger that contained it."""
    for _, hashes in lineage:
        number = row.seq - 2  # the first row of a recovered ledger is its recovery record
        if 0 <= number < len(hashes) and hashes[number]:
            return hashes[number]
    return row.hash


CoveredDays = Callable[[AnyRelease], tuple[str, str]]
"""First and last day that a release covers, ISO text."""


def covered_days_in(ledger: Ledger, population: str) -> CoveredDays:
    """Return the function that gives the days of the population's releases, by their contracts."""
    series = {contract.hash: contract.terms.series for contract in ledger.contracts(population)}
    return Publication(earlier=series).covered_days


def draw_of(source: RegisterSource, row: AnyRelease, identity: str, covered: CoveredDays) -> CountedDraw:
    """Return the draw of a release: about the days that it covers, and named by the last of them."""
    first, last = (day_number(date.fromisoformat(day)) for day in covered(row))
    return CountedDraw(source.id, first, last, row.series, identity, row.loss)


def calibration_charge(source: RegisterSource, draw: CalibrationDraw, identity: str) -> CountedDraw:
    """Return a calibration draw as the register counts it."""
    first, last = (day_number(date.fromisoformat(day)) for day in (draw.first_day, draw.last_day))
    return CountedDraw(source.id, first, last, _query_digest(draw), identity, draw.loss)


def calibration_kind(draw: CalibrationDraw) -> str:
    """Return the kind of the source of a calibration draw: one source for each period."""
    return f"{CALIBRATION} {draw.first_day} to {draw.last_day}"


def _query_digest(draw: CalibrationDraw) -> str:
    return hashlib.sha256(draw.query.encode()).hexdigest()


def confirm(rows: RegisterRows, source: RegisterSource, released: Sequence[CountedDraw]) -> None:
    """Add the draws that the register does not know, each in place of its charge.

    Two ledgers with the same contract, date and noisy values have equal rows. A ledger charges a day before it draws
    it and never again, so a charge beside a stored row of the same day and series is of another ledger's draw.
    """
    stored = rows.draws([source.id])
    hashes = Counter(draw.identity.partition(" ")[0] for draw in stored)
    charged = {(draw.last_day, draw.series) for draw in stored if not draw.identity}
    new = [draw for draw in released if not hashes[draw.identity]]
    repeated = [
        replace(draw, identity=f"{draw.identity} {hashes[draw.identity] + 1}")
        for draw in released
        if hashes[draw.identity] and (draw.last_day, draw.series) in charged
    ]
    rows.replace_draws(without=[replace(draw, identity="") for draw in (*new, *repeated)], new=[*new, *repeated])


def enter_calibration(
    rows: RegisterRows,
    key: HouseholdKey,
    root: str,
    draw: CalibrationDraw,
    roster: Roster,
    *,
    cache: Path | None = None,
) -> None:
    """Enter a calibration draw of a ledger, unless the register has the same draw of some ledger.

    A ledger that has charged a draw has drawn it, although another one may have drawn the same answer.
    """
    kind, value = calibration_kind(draw), canonical(list(draw.value))
    same = {
        entry.id: entry.ledger for entry in rows.sources() if (entry.population, entry.kind) == (draw.population, kind)
    }
    answers = [entry for entry in rows.draws(same) if entry.series == _query_digest(draw)]
    is_charged = any(not entry.identity and same[entry.source] == root for entry in answers)
    equal = sum(entry.identity.partition(" ")[0] == value for entry in answers)
    if equal and not is_charged:
        return
    identity = f"{value} {equal + 1}" if equal else value
    charge = calibration_charge(calibration_source(rows, key, root, draw, roster, cache=cache), draw, identity)
    rows.replace_draws(without=[replace(charge, identity="")], new=[charge])


def calibration_source(
    rows: RegisterRows,
    key: HouseholdKey,
    root: str,
    draw: CalibrationDraw,
    roster: Roster,
    *,
    cache: Path | None = None,
) -> RegisterSource:
    """Return the source of a calibration draw, with the households that were on the roster in its period."""
    source = rows.source(root, draw.population, calibration_kind(draw))
    first, last = (day_number(date.fromisoformat(day)) for day in (draw.first_day, draw.last_day))
    return record_roster(rows, key, source, RosterRanges.of(roster, first, last, cache=cache), period=(first, last))


RELEASE: Final = "release"

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class HouseholdAccounts:
    """The accounts of the households of one population in one ledger.

    Attributes:
        place: where the register and its key are.
        population: name of the population.
        kind: "release", or "rehearsal" (over readings).
        refuses_shared: whether a household that is counted elsewhere too stops a release.
        today: ISO date from which on a new register counts.
    """

    place: RegisterPlace
    population: str
    kind: Kind
    refuses_shared: bool
    today: str

    def check(self, ledger: Ledger | None, *, recorded: Callable[[], Collection[str]] = tuple) -> None:
        """Check, before anything is drawn, that register and key are there and that the ledger has all known days.

        Args:
            ledger: the ledger; None before its first release.
            recorded: returns the ISO days of which other records tell that they were released to the population; asked
                only while the register does not know the population.

        Raises:
            LedgerError: the register or its key is lost, or the register began anew.
            LedgerBehind: a day was released to the population that the ledger lacks.
        """
        expected = ledger is not None and ledger.household_account(self.population) is not None
        days = set() if ledger is None else {row.day for row in ledger.history(self.population)}
        sources, draws = tuple[RegisterSource, ...](), tuple[CountedDraw, ...]()
        if self.place.exists(expected=expected):
            sources, draws = self._read(lambda rows: (rows.sources(), rows.draws()))
        same = {source.id: source for source in sources if source.population == self.population}
        if expected and ledger is not None and self._source(sources, ledger) is None:
            raise LedgerError(UNKNOWN_POPULATION)
        beyond = {
            _iso(draw.last_day)
            for draw in draws
            if draw.identity and draw.source in same and same[draw.source].kind == RELEASE
        } - days
        if all(source.kind.startswith(CALIBRATION) for source in same.values()):
            beyond |= set(recorded()) - days
        if beyond and self.kind == RELEASE:
            raise self._behind(min(beyond))

    def prepare(self, ledger: Ledger, roster: Roster, days: Iterable[date]) -> None:
        """Create the register if there is none, enter the rows of the ledger, and the households through these days.

        Call it before the first draw.

        Raises:
            Refused: as `charge`; nothing is entered, so that the roster of a day that was refused can be corrected.
        """
        key = self.place.ensure(today=self.today)
        due = [day_number(day) for day in days]

        def work(rows: RegisterRows) -> None:
            source = self._enter(rows, key, ledger, roster, due)
            if self.refuses_shared:
                self._check_not_shared(rows, source, due)

        self._write(work)

    def charge(self, releases: Sequence[ReleaseRecord], ledger: Ledger) -> None:
        """Charge releases before they are drawn, in one transaction of the register; repeated calls charge once.

        Raises:
            LedgerBehind: another ledger has released one of these days to the population.
            Refused: [population] shared_households is "refuse", and a household on the roster is counted elsewhere.
        """
        if not releases:
            return

        def work(rows: RegisterRows) -> None:
            source = rows.source(lineage_of(ledger)[0][0], self.population, self.kind)
            sources, draws = {entry.id: entry for entry in rows.sources()}, rows.draws()
            self._check_not_drawn(releases, sources, draws)
            covered = covered_days_in(ledger, self.population)
            charges = [draw_of(source, release, "", covered) for release in releases]
            if self.refuses_shared:
                days = (range(charge.first_day, charge.last_day + 1) for charge in charges)
                self._check_not_shared(rows, source, chain.from_iterable(days))
            rows.replace_draws(without=charges, new=charges)

        self._write(work)

    def charge_calibration(self, draw: CalibrationDraw, ledger: Ledger, roster: Roster) -> None:
        """Charge a calibration draw before it is drawn, to the households on the roster in its period.

        Args:
            draw: the planned draw; its value is not read.
            ledger: the ledger that stores it, within the transaction that draws it.
            roster: the roster.
        """
        key = self.place.ensure(today=self.today)

        def work(rows: RegisterRows) -> None:
            source = calibration_source(rows, key, lineage_of(ledger)[0][0], draw, roster, cache=self.place.cache)
            planned = calibration_charge(source, draw, "")
            rows.replace_draws(without=[planned], new=[planned])

        self._write(work)

    def account(self, ledger: Ledger, roster: Roster, recorded: Collection[Recorded] = ()) -> HouseholdAccount:
        """Enter the rows of the ledger and return the account of the population.

        Args:
            ledger: the ledger, with all rows that are about to be published.
            roster: the roster.
            recorded: released days of other series in the roster history.
        """
        key = self.place.ensure(today=self.today)

        def work(rows: RegisterRows) -> HouseholdAccount:
            source = self._enter(rows, key, ledger, roster, ())
            overview = self._overview(rows, source)
            return HouseholdAccount(
                self.population,
                max(overview.largest.day, overview.constant.day),
                max(overview.largest.total, overview.constant.total),
                since=overview.since,
                gaps=gaps_of(rows, recorded),
            )

        return self._write(work)

    def overview(self, ledger: Ledger) -> AccountOverview:
        """Return the sums of the population and its shared households, as the register knows them now; writes nothing.

        Raises:
            LedgerError: there is no register yet, or it is lost.
        """
        if not self.place.exists(expected=ledger.household_account(self.population) is not None):
            raise LedgerError("the household register does not exist yet; the first release makes it")

        def work(rows: RegisterRows) -> AccountOverview:
            source = self._source(rows.sources(), ledger)
            if source is None:
                raise LedgerError("the household register does not know this population; run `agedp run` first")
            return self._overview(rows, source)

        return self._read(work)

    def rebuild(self, ledger: Ledger, roster: Roster) -> None:
        """Fill a lost register, or one that began anew, from the rows of the ledger and the roster, and mark it.

        Raises:
            LedgerError: the register knows the population, or belongs to another key.
        """
        with self.place.register() as register:
            exists = register.exists()
        if exists and self._source(self._read(RegisterRows.sources), ledger) is not None:
            raise LedgerError(
                "the household register is there and knows this population; only a lost one is filled again"
            )
        key = self.place.ensure(today=self.today, rebuilding=not exists)

        def work(rows: RegisterRows) -> None:
            rows.set_meta(REBUILT, self.today)
            self._enter(rows, key, ledger, roster, ())

        self._write(work)

    def _source(self, sources: Iterable[RegisterSource], ledger: Ledger) -> RegisterSource | None:
        """Return the source of the population in a ledger; None if the register does not know it."""
        root = lineage_of(ledger)[0][0]
        names = root, self.population, self.kind
        return next((entry for entry in sources if (entry.ledger, entry.population, entry.kind) == names), None)

    def _overview(self, rows: RegisterRows, source: RegisterSource) -> AccountOverview:
        sources, draws, memberships = {entry.id: entry for entry in rows.sources()}, rows.draws(), rows.memberships()
        own_sources = {entry.id for entry in sources.values() if is_own(entry, source)}
        own_draws = [draw for draw in draws if draw.source in own_sources]
        first = min((draw.first_day for draw in own_draws), default=0)
        always = Membership(0, tuple((number, first, _DISTANT_DAY) for number in sorted(own_sources)), 1)
        meta = rows.meta()
        return AccountOverview(
            largest_sums(memberships.values(), draws, sources, of=own_sources),
            largest_sums([always], own_draws, sources),
            self._shared(rows, source, [None])[0],
            sum(
                entry.households
                for entry in memberships.values()
                if any(number in own_sources for number, _, _ in entry.ranges)
            ),
            meta[REBUILT] or meta[BEGAN],
            bool(meta[REBUILT]),
        )

    def _enter(
        self, rows: RegisterRows, key: HouseholdKey, ledger: Ledger, roster: Roster, due: Sequence[int]
    ) -> RegisterSource:
        """Enter the rows of the ledger and its households, through the newest released or due day."""
        lineage = lineage_of(ledger)
        root = lineage[0][0]
        if ledger.id != root:
            rows.set_meta(f"{LEDGER_SOURCE}{ledger.id}", root)
        source = rows.source(root, self.population, self.kind)
        for draw in ledger.calibration_draws(self.population):
            enter_calibration(rows, key, root, draw, roster, cache=self.place.cache)
        released = [row for row in ledger.history(self.population) if row.state == "released"]
        covered = covered_days_in(ledger, self.population)
        confirm(rows, source, [draw_of(source, row, identity_of(row, lineage), covered) for row in released])
        drawn = [day_number(date.fromisoformat(row.day)) for row in released]
        newest = max([*drawn, *due], default=None)
        if newest is not None:
            stored = (draw.first_day for draw in rows.draws([source.id]))
            ranges = RosterRanges.of(roster, min([*stored, *due]), newest, cache=self.place.cache)
            source = record_roster(rows, key, source, ranges)
        return source

    def _shared(self, rows: RegisterRows, source: RegisterSource, days: Sequence[int | None]) -> list[SharedHouseholds]:
        """Return the households of each of these days that are counted elsewhere too; for None those of all days."""
        sources, counted = {entry.id: entry for entry in rows.sources()}, {draw.source for draw in rows.draws()}
        elsewhere = {number for number, entry in sources.items() if number in counted and not is_own(entry, source)}
        memberships = rows.memberships().values()
        return [shared_households(memberships, sources, of=source.id, elsewhere=elsewhere, day=day) for day in days]

    def _check_not_drawn(
        self, releases: Sequence[ReleaseRecord], sources: Mapping[int, RegisterSource], draws: Iterable[CountedDraw]
    ) -> None:
        """Refuse a day that the register knows as released to this population: the ledger that draws it lacks it."""
        drawn_before = {
            (_iso(draw.last_day), draw.series)
            for draw in draws
            if draw.identity
            and (sources[draw.source].population, sources[draw.source].kind) == (self.population, self.kind)
        }
        drawn = [release.day for release in releases if (release.day, release.series) in drawn_before]
        if drawn and self.kind == RELEASE:
            raise self._behind(min(drawn))
        if drawn and self.refuses_shared:
            raise Refused(
                f"{min(drawn)}: the days of {self.population!r} were rehearsed on readings in another ledger, and "
                '[population] shared_households = "refuse" permits no second draw about a household. Continue with '
                "that ledger, or rehearse on synthetic households; nothing was drawn"
            )

    def _check_not_shared(self, rows: RegisterRows, source: RegisterSource, due: Iterable[int]) -> None:
        days = sorted(set(due))
        for day, shared in zip(days, self._shared(rows, source, days), strict=True):
            if shared.households:
                raise shared_error(date_of_day(day), shared)

    def _behind(self, day: str) -> LedgerBehind:
        return LedgerBehind(
            f"{day} of {self.population!r} was released from another ledger, or a newer copy of this one. Put that "
            "ledger back, or import or recover it. To start anew, name another population: its losses are counted for "
            "the same households"
        )

    def _read(self, work: Callable[[RegisterRows], _Result]) -> _Result:
        with self.place.register() as register:
            return register.read(work)

    def _write(self, work: Callable[[RegisterRows], _Result]) -> _Result:
        with self.place.register() as register:
            return register.write(work)


@dataclass(frozen=True, slots=True)
class AccountOverview:
    """What the register knows about a population (confidential).

    Attributes:
        largest: the largest sums over its households.
        constant: the sums of a household that was on the roster of every day, and in no other source.
        shared: its households that are counted elsewhere too.
        households: the number of its households.
        since: ISO date from which on the register counts.
        is_rebuilt: whether it was lost and filled again on that date.
    """

    largest: LargestSums
    constant: LargestSums
    shared: SharedHouseholds
    households: int
    since: str
    is_rebuilt: bool


_DISTANT_DAY: Final = 10**6


def shared_error(day: date, shared: SharedHouseholds) -> Refused:
    """Return the refusal of a day whose roster has households that are counted elsewhere too."""
    text = (
        f'[population] shared_households = "refuse": on {day} households are on the roster that another population, '
        "ledger or rehearsal over readings counts too; nothing was drawn for this day. End their rows in the roster "
        "before that day"
    )
    listed = ", ".join(f"{number} in {population!r} ({kind})" for population, kind, number in shared.by_source)
    return Refused(text, private=f"{text}. Households on the roster: {shared.households} ({listed})")


def _iso(day: int) -> str:
    return date_of_day(day).isoformat()
