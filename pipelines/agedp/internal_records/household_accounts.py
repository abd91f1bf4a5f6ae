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

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Final, TypeVar

from agedp.internal_records.household_sums import LargestSums, SharedHouseholds, largest_sums, shared_households
from agedp.internal_records.register_entries import (
    CALIBRATION,
    LEDGER_SOURCE,
    Recorded,
    calibration_charge,
    calibration_source,
    confirm,
    covered_days_in,
    draw_of,
    enter_calibration,
    gaps_of,
    identity_of,
    is_own,
    lineage_of,
)
from agedp.internal_records.register_key import BEGAN, REBUILT, UNKNOWN_POPULATION, RegisterPlace
from agedp.internal_records.register_members import record_roster
from agedp.internal_records.roster_ranges import HouseholdKey, RosterRanges
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.errors import LedgerBehind, LedgerError, Refused
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.ledger.lifecycle import CalibrationDraw, HouseholdAccount
from agedp_data.ledger.register_rows import CountedDraw, Kind, Membership, RegisterRows, RegisterSource
from agedp_data.roster import Roster

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
