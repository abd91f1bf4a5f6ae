"""Accounts of populations: what every population that shares a household may have lost, charged before it is drawn.

    charge -> draws, in one transaction of the ledger -> the account, a row of the ledger -> statement

A stated loss of a household is that of its own population plus that of EVERY population that ever shares a household
with it, each once. In all: whatever the days. About a day: all of them too, unless their days are disjoint. Whoever
joined, left or came back, no household has lost more: each population that counts it is in the sum, with all it drew.

Decisions:

* Charge first. One transaction enters the members of the roster that a run is about to count, the files that it read,
  and the charge: what the ledger has recorded and what is about to be drawn, never below what stands there. If that
  cannot be written, nothing is drawn. A killed run leaves the charge, and the next one computes the same one: nothing
  has to be confirmed. A ledger draws at most 32 days in a transaction, and each of these is charged inside it.
* Pure losses only. Aged, temporal, discounted and sustained-change bounds are never added up over populations (leakage
  is not subadditive: for a chain with rows (.5, 0) and a loss of 1 from each of two populations on one day, the truth
  about the next day is 1.434 and the sum 1.240), and neither are figures at a delta.
* A ledger row first. An account is published only as the row of the ledger that recorded it, with the part of its own
  population. The newest row is a floor of every later one: its other part is added to what the population has lost by
  then. So no file can lower a stated loss: neither an emptied, nor a lowered, nor a lost one. Writing a folder,
  verifying and recovering do not open the accounts.
* What a ledger has recorded of others, and new accounts do not know, is entered as a population of the kind "earlier"
  that shares all households. Others that run again are then counted twice: never too little. For the same reason a
  calibration draw counts in each ledger that has adopted it.
* A population is found again by its head, the hash of its newest row when it was charged, which must be a row of the
  population in the ledger, or in one that the ledger was recovered from. A copy of a ledger that went its own way, or a
  rehearsal that is begun anew, is another population, and each counts. One limit: where a first run is killed and its
  ledger removed, a second one with the same contract on the same date continues with the charge of the first.
* A household is a keyed digest of its id. Two populations that read one same file under different rules for ids count
  as sharing all households, because their digests cannot be compared.
* `since` is the date of the population's first account, so that what a release says does not depend on what others have
  entered. A gap that a row has recorded stays.
* Place: the one that [output] household_register names; else where the population began (its confidential folder, or
  the place that `household_register.place` there names); else one per user, in the folder of user data of the XDG
  specification, if that is the user's own, writable and permanent; else in the confidential folder. A folder that
  XDG_DATA_HOME names counts as permanent, one below HOME unless it is on a file system of a container or in memory.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import DamagedFile, FileKind, checked_json, read_checked_json, read_content
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.errors import LedgerError, Refused
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord, StatementRecord
from agedp_data.ledger.account_database import SUBJECT, AccountDatabase, AccountedPopulation, AccountRows, Charges, Kind
from agedp_data.ledger.lifecycle import (
    LEDGER_POPULATION,
    CalibrationDraw,
    HouseholdAccount,
    PopulationAccount,
    read_lifecycle_record,
)
from agedp_data.ledger.records import AnyRelease
from agedp_data.notions.publication import Publication
from agedp_data.roster import Roster, TextColumn, as_strings

BEGAN_ANEW: Final = "rebuilt"
REHEARSALS, RELEASES = "rehearsals", "releases"
"""What an account may lack: all that lost accounts knew, earlier rehearsals, earlier releases."""
Recorded = tuple[str, str, bool]
"""Population and ledger of released days in the roster history, and whether the ledger is a rehearsal's."""
Planned = ReleaseRecord | CalibrationDraw
_Result = TypeVar("_Result")

_EARLIER: Final = "earlier"
_ALWAYS: Final = (0, 10**7)
_BATCH: Final = 2**16
_LOST_REGISTER: Final = (
    "the household register that agedp 0.2 kept of this population is not there; nothing was drawn. Put back "
    "household_register.sqlite and household_register.key; without a copy, fill it again with agedp 0.2 (`agedp ledger "
    "households RUN.toml --rebuild`), and run again"
)
_ELSEWHERE: Final = (
    "[output] household_register names accounts that do not know this population, which began in others; nothing was "
    "drawn. Remove the key, or move household_register.sqlite and household_register.key there"
)


def own_charges(ledger: Ledger, population: str, planned: Iterable[Planned] = ()) -> Charges | None:
    """Return the pure losses of a population in a ledger, with planned releases and draws; None for none."""
    released = (row for row in ledger.history(population) if row.state == "released")
    return Charges.of(_losses(ledger, population, [*released, *ledger.calibration_draws(population), *planned]))


def _losses(
    ledger: Ledger, population: str, counted: Iterable[AnyRelease | CalibrationDraw]
) -> Iterator[tuple[int, int, int]]:
    """Yield first day, last day and loss of releases and calibration draws."""
    series = {contract.hash: contract.terms.series for contract in ledger.contracts(population)}
    covered = Publication(earlier=series).covered_days
    for entry in counted:
        days = (entry.first_day, entry.last_day) if isinstance(entry, CalibrationDraw) else covered(entry)
        first, last = map(_number, days)
        yield first, last, entry.loss


@lru_cache(maxsize=2**14)
def _number(day: str) -> int:
    """Return the number of a day from its ISO text; every transaction asks for those of the whole history."""
    return day_number(date.fromisoformat(day))


def recorded_account(ledger: Ledger, population: str) -> HouseholdAccount | None:
    """Return the newest account of a population in its ledger, with what was recorded since; None without one.

    It opens no accounts: what others have lost is as the row has it.
    """
    newest, own = ledger.household_account(population), own_charges(ledger, population)
    if newest is None or own is None:
        return newest
    day, total = newest.day, newest.total
    if isinstance(newest, PopulationAccount):
        day, total = newest.own_day, newest.own_total
    if own.charged_day <= day and own.charged_total <= total:
        return newest
    return _raised(newest, own, *_others(newest, own))


def _others(account: HouseholdAccount, own: Charges) -> tuple[int, int]:
    """Return what an account has of other populations, about a day and in all; `own` counts for one of 0.2."""
    if isinstance(account, PopulationAccount):
        return account.day - account.own_day, account.total - account.own_total
    return max(account.day - own.charged_day, 0), max(account.total - own.charged_total, 0)


def _raised(account: HouseholdAccount, own: Charges, others_day: int, others_total: int) -> PopulationAccount:
    """Return an account after `account`, and no figure of it below that one."""
    own_day, own_total = own.charged_day, own.charged_total
    if isinstance(account, PopulationAccount):
        own_day, own_total = max(own_day, account.own_day), max(own_total, account.own_total)
    own_total = max(own_total, own_day)
    day = max(own_day + others_day, account.day)
    total = max(own_total + others_total, account.total, day)
    return PopulationAccount(account.population, day, total, account.since, account.gaps, own_day, own_total)


@dataclass(frozen=True, slots=True)
class AccountOverview:
    """What the accounts know of a population (confidential): its own row, and those that share a household with it.

    `account` is what would be stated now.
    """

    own: AccountedPopulation
    sharing: tuple[AccountedPopulation, ...]
    account: PopulationAccount


@dataclass(frozen=True, slots=True)
class PopulationAccounts:
    """The accounts as a run of one population uses them.

    Attributes:
        place: where the database and its key are.
        population: name of the population.
        kind: "release", or "rehearsal" (over readings).
        roster: its roster.
        refuses_shared: whether a household that is counted elsewhere too stops a release.
        today: ISO date of the run.
        files: returns the digests of the input files that it has read.
        id_rule: what makes household ids of these files, as a text.
    """

    place: AccountsPlace
    population: str
    kind: Kind
    roster: Roster
    refuses_shared: bool
    today: str
    files: Callable[[], Collection[str]]
    id_rule: str

    def check_place(self, ledger: Ledger) -> None:
        """Check that a population that began elsewhere is known where [output] household_register is.

        Raises:
            LedgerError: it is not, although the accounts in which it began are not gone.
        """
        has_account = ledger.household_account(self.population) is not None
        if self.place.is_moved and has_account and self.overview(ledger) is None:
            raise LedgerError(_ELSEWHERE)

    def charge(self, planned: Sequence[Planned], ledger: Ledger) -> None:
        """Enter members, files and charge before releases or calibration draws are drawn, in one transaction.

        Args:
            planned: what is about to be drawn, without values.
            ledger: the ledger, within the transaction that draws.

        Raises:
            LedgerError: the accounts cannot be written, their key is lost, or a register of 0.2 is.
            Refused: [population] shared_households is "refuse", and a household on the roster is counted elsewhere.
        """
        if planned:
            self._write(lambda rows, key: self._enter(rows, key, ledger, planned))

    def account(self, ledger: Ledger, recorded: Collection[Recorded] = ()) -> PopulationAccount | None:
        """Return the account of the population with all rows of its ledger; None before a loss.

        Args:
            ledger: the ledger, with all rows that are about to be published.
            recorded: released days of all series in the roster history.

        Raises:
            LedgerError: as `charge`.
        """

        def work(rows: AccountRows, key: HouseholdKey) -> PopulationAccount | None:
            own = self._enter(rows, key, ledger, ())
            return None if own is None else self._overview(rows, key, ledger, own, recorded).account

        return self._write(work)

    def overview(self, ledger: Ledger) -> AccountOverview | None:
        """Return what the accounts know of the population now, and write nothing; None where they do not know it.

        Raises:
            LedgerError: the accounts or their key cannot be read.
        """
        database, key = self.place.open()
        if key is None:
            return None

        def work(rows: AccountRows) -> AccountOverview | None:
            own = self._find(rows, key, ledger, self.population)
            return None if own is None else self._overview(rows, key, ledger, own, ())

        return database.read(work)

    def counted_elsewhere(self, ledger: Ledger | None) -> tuple[AccountedPopulation, ...]:
        """Return the other populations that count a household of the roster, before a first release; writes nothing.

        Those that share a file under another rule for ids are known once the files are read.

        Raises:
            LedgerError: the accounts or their key cannot be read.
        """
        database, key = self.place.open()
        if key is None:
            return ()

        def work(rows: AccountRows) -> tuple[AccountedPopulation, ...]:
            households = set(key.households(self.roster.rows.ids))
            own = None if ledger is None else self._find(rows, key, ledger, self.population)
            others = (of for of in rows.populations() if of.charged_total > 0 and (own is None or of.id != own.id))
            return tuple(of for of in others if not households.isdisjoint(rows.digests([of.id])))

        return database.read(work) or ()

    def _write(self, work: Callable[[AccountRows, HouseholdKey], _Result]) -> _Result:
        database, key = self.place.open_or_create()
        return database.write(lambda rows: work(rows, key), seal=key.seal)

    def _find(
        self, rows: AccountRows, key: HouseholdKey, ledger: Ledger, population: str
    ) -> AccountedPopulation | None:
        """Return the row of a population of this ledger: its head is one of its rows there, or a seal."""
        own = {row.seq for row in _rows_of(ledger, population)}
        recovery = ledger.recovery()
        earlier = [] if recovery is None else [recovery.ledger, *(lost.ledger for lost in recovery.earlier_ledgers)]
        seals = {key.seal(name, population) for name in (ledger.id, *earlier)}
        found = (entry for entry in rows.populations() if entry.head in seals or ledger.row_number(entry.head) in own)
        return next(found, None)

    def _enter(
        self, rows: AccountRows, key: HouseholdKey, ledger: Ledger, planned: Sequence[Planned]
    ) -> AccountedPopulation | None:
        """Enter what the ledger has recorded and what is planned; return the population's row, None for no loss."""
        charges = own_charges(ledger, self.population, planned)
        if charges is None:
            return None
        found = self._find(rows, key, ledger, self.population)
        heads = {row.seq: row.hash for row in _rows_of(ledger, self.population)}
        head = heads[max(heads)] if heads else key.seal(ledger.id, self.population)
        own = AccountedPopulation.charged(charges, self.kind, head)
        after = None
        if found is not None:
            after = self._entered_through(rows, ledger, found, planned)
            own = replace(
                own,
                id=found.id,
                first_day=min(own.first_day, found.first_day),
                last_day=max(own.last_day, found.last_day),
                charged_day=max(own.charged_day, found.charged_day),
                charged_total=max(own.charged_total, found.charged_total),
            )
        self._add_members(rows, key, own, after)
        if found is None:
            self._enter_earlier(rows, key, ledger, own)
        rows.add_files(own.id, [key.file(digest) for digest in sorted(self.files())], key.file(self.id_rule))
        if own != found:  # a night without a change writes nothing
            rows.save(own)
        if self.refuses_shared and planned:
            self._check_not_shared(rows, key, own, _losses(ledger, self.population, planned))
        return own

    def _enter_earlier(self, rows: AccountRows, key: HouseholdKey, ledger: Ledger, own: AccountedPopulation) -> None:
        """Enter what the ledger has recorded of others, where accounts that began anew do not know the population."""
        newest = ledger.household_account(self.population)
        if newest is None:
            return
        if not isinstance(newest, PopulationAccount):
            raise LedgerError(_LOST_REGISTER)
        day, total = _others(newest, own)
        if total > 0:
            earlier = AccountedPopulation.charged(Charges(*_ALWAYS, day, total), _EARLIER, f"{own.id} {self.today}")
            self._add_members(rows, key, replace(own, id=earlier.id), None)
            rows.save(earlier)

    def _entered_through(
        self, rows: AccountRows, ledger: Ledger, found: AccountedPopulation, planned: Sequence[Planned]
    ) -> int | None:
        """Return the day through which the roster was entered before, and cannot have changed; None to enter all of it.

        It is the newest day that was released when the population was charged last, if all that is new is about later
        days. A population that lost members is entered anew.
        """
        number = ledger.row_number(found.head)
        released = [row for row in ledger.history(self.population) if row.state == "released"]
        before = [row for row in released if number is not None and row.seq <= number]
        if (
            not before
            or ledger.calibration_draws(self.population)
            or any(isinstance(of, CalibrationDraw) for of in planned)
        ):
            return None
        through = max(last for _, last, _ in _losses(ledger, self.population, before))
        later = [row for row in released if row.seq > (number or 0)]
        first = min(
            (first for first, _, _ in _losses(ledger, self.population, [*later, *planned])), default=through + 1
        )
        is_complete = rows.member_rows(found.id) >= self.roster.counts.households(date_of_day(through))
        return through if first > through and is_complete else None

    def _add_members(self, rows: AccountRows, key: HouseholdKey, own: AccountedPopulation, after: int | None) -> None:
        """Enter the roster rows that touch the days of a population; those that begin after the day `after` alone."""
        if after is not None and after >= own.last_day:
            return
        roster, first, last = self.roster.rows, self.roster.rows.first, self.roster.rows.last
        is_new = (first <= own.last_day) & (last >= own.first_day) & (first > (-1 if after is None else after))
        chosen = np.flatnonzero(is_new)
        for start in range(0, len(chosen), _BATCH):
            part = chosen[start : start + _BATCH]
            ids = TextColumn(as_strings(roster.ids).take(pa.array(roster.household[part])))
            ends = (end if end < own.last_day else None for end in last[part].tolist())
            rows.add_members(own.id, sorted(zip(key.households(ids), first[part].tolist(), ends, strict=True)))

    def _overview(
        self,
        rows: AccountRows,
        key: HouseholdKey,
        ledger: Ledger,
        own: AccountedPopulation,
        recorded: Collection[Recorded],
    ) -> AccountOverview:
        sharing, newest = rows.sharing(own), ledger.household_account(self.population)
        day, total = own.with_others(sharing)
        day, total = day - own.charged_day, total - own.charged_total
        if isinstance(newest, PopulationAccount):
            recorded_day, recorded_total = _others(newest, own)
            day, total = max(day, recorded_day), max(total, recorded_total)
        floor = HouseholdAccount(self.population, 0, 0, self.today) if newest is None else newest
        anew = [entry.head.partition(" ")[2] for entry in rows.populations() if entry.head.startswith(f"{own.id} ")]
        gaps = [*floor.gaps, *([BEGAN_ANEW] if anew else []), *self._gaps(rows, key, ledger, recorded)]
        account = replace(
            _raised(floor, own, day, total), since=max([floor.since, *anew]), gaps=tuple(dict.fromkeys(gaps))
        )
        return AccountOverview(own, sharing, account)

    def _gaps(
        self, rows: AccountRows, key: HouseholdKey, ledger: Ledger, recorded: Collection[Recorded]
    ) -> Iterator[str]:
        """Yield what the accounts are known to lack: populations of this ledger, and what 0.1 did not count."""
        if ledger.household_account(self.population) is None and ledger.first_statement(self.population) is not None:
            others = [of for of in recorded if of[:2] != (self.population, ledger.id)]
            yield from (REHEARSALS for _, _, is_rehearsal in others if is_rehearsal)
            yield from (RELEASES for _, _, is_rehearsal in others if not is_rehearsal)
        for name in {row.population for row in ledger.history() if row.loss} - {self.population}:
            if self._find(rows, key, ledger, name) is None:
                yield RELEASES

    def _check_not_shared(
        self, rows: AccountRows, key: HouseholdKey, own: AccountedPopulation, losses: Iterable[tuple[int, int, int]]
    ) -> None:
        """Refuse the first planned day with a household on the roster that another population counts."""
        sharing = rows.sharing(own)
        if not sharing:
            return
        by_file = rows.sharing_files(own) & {entry.id for entry in sharing}
        roster, digests = self.roster.rows, rows.digests([entry.id for entry in sharing])
        counted = np.fromiter((digest in digests for digest in key.households(roster.ids)), bool)
        for day in sorted({day for first, last, _ in losses for day in range(first, last + 1)}):
            households = len(np.unique(roster.household[roster.on(date_of_day(day)) & counted[roster.household]]))
            if households or by_file:
                text = (
                    f'[population] shared_households = "refuse": on {date_of_day(day)} households are on the roster '
                    "that another population, ledger or rehearsal over readings counts too; nothing was drawn for "
                    "this day. End their rows in the roster before that day"
                )
                raise Refused(text, private=f"{text}. Households on the roster: {households}")


# --------------------------------------------------------------------------------------------------
# The key and the place of the accounts.
#
#     household_register.key       32 random bytes of the system, for its owner only
#     household_register.sqlite    the accounts, unless [output] household_register names another place
#     household_register.place     in a confidential folder: where its population began, if not there
#
# The key is beside a file of SQLite, or in each confidential folder that uses a server, which never sees it. A run that
# is killed in between leaves a key without accounts, which the next run makes.
# --------------------------------------------------------------------------------------------------

_KEY_BYTES: Final = 32
_KEY_FILE: Final = "household_register.key"
_ACCOUNT_FILE: Final = "household_register.sqlite"
_PLACE_FILE: Final = "household_register.place"
_FILE_URL: Final = "sqlite:///"
_NOT_PERMANENT: Final = ("tmpfs", "ramfs", "overlay", "aufs", "devtmpfs")
_HASH_BLOCK: Final = hashlib.sha256().block_size
_COPY: Final = (
    f"nothing was drawn; put back a copy of {_KEY_FILE}, from a backup or from another confidential folder that uses "
    f"the register. Without one, move {_ACCOUNT_FILE} away: the accounts begin anew, and the statements say so"
)


@dataclass(frozen=True, slots=True)
class HouseholdKey:
    """The secret key of the accounts' digests, 32 bytes."""

    secret: bytes

    @property
    def check(self) -> str:
        """A value by which two keys are compared; the key does not follow from it."""
        return self._digest(b"check").hex()

    def seal(self, ledger: str, population: str) -> str:
        """Return the head of a population that has no row in its ledger yet, or that is taken over from 0.2."""
        return self._digest(b"population:" + json.dumps([ledger, population]).encode()).hex()

    def file(self, text: str) -> bytes:
        """Return the digest of an input file, by that of its bytes, or of a rule for ids."""
        return self._digest(b"file:" + text.encode())

    def households(self, household_ids: Iterable[str]) -> list[bytes]:
        """Return the digest of each household, HMAC-SHA-256 of its id, in half the time of the standard library.

        RFC 2104 for a key that is not longer than a block: H(key ^ opad, H(key ^ ipad, text)).
        """
        padded, digest = self.secret.ljust(_HASH_BLOCK, b"\0"), hashlib.sha256
        inner, outer = bytes(byte ^ 0x36 for byte in padded) + b"household:", bytes(byte ^ 0x5C for byte in padded)
        return [digest(outer + digest(inner + name.encode()).digest()).digest() for name in household_ids]

    def _digest(self, message: bytes) -> bytes:
        return hmac.digest(self.secret, message, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class AccountsPlace:
    """Where a run finds the accounts and their key.

    Attributes:
        url: the address of the database.
        key_path: the file of the key.
        noted: the file of the confidential folder that names the place, where it is the user's; None elsewhere.
        is_moved: whether the run file names it, although the confidential folder has accounts, or names their place.
    """

    url: str
    key_path: Path
    noted: Path | None = None
    is_moved: bool = False

    @classmethod
    def of(cls, confidential: Path, url: str | None) -> AccountsPlace:
        """Return the place of a population's accounts; `url` is that of [output] household_register."""
        key, noted = confidential / _KEY_FILE, confidential / _PLACE_FILE
        if url is not None:
            is_beside = url.startswith(_FILE_URL) and not atomic_files.path_exists(key)
            is_moved = any(map(atomic_files.path_exists, (confidential / _ACCOUNT_FILE, noted)))
            folder = Path(url.removeprefix(_FILE_URL)).parent
            return cls(url, folder / _KEY_FILE if is_beside else key, is_moved=is_moved)
        if atomic_files.path_exists(key) or atomic_files.path_exists(confidential / _ACCOUNT_FILE):
            folder = confidential
        else:
            began = read_content(noted, _folder_in, FileKind.SOURCE, advice="put back a copy of it").value
            folder = began or _user_folder() or confidential
        address = f"{_FILE_URL}{(folder / _ACCOUNT_FILE).absolute()}"
        return cls(address, folder / _KEY_FILE, None if folder == confidential else noted)

    def open(self) -> tuple[AccountDatabase, HouseholdKey | None]:
        """Return the database and its key; None while there are no accounts.

        Raises:
            LedgerError: the key is lost, or is that of other accounts; the accounts cannot be read.
            DamagedFile: the key is damaged.
        """
        database, key = AccountDatabase(self.url), self._read_key()
        check = database.key_check()
        if check is not None and key is None:
            raise LedgerError(f"the key of {SUBJECT} is not there; {_COPY}")
        if check is not None and key is not None and check != key.check:
            raise LedgerError(f"{SUBJECT} was filled with another key; {_COPY}")
        return database, None if check is None else key

    def open_or_create(self) -> tuple[AccountDatabase, HouseholdKey]:
        """Return the database and its key, both made if there are none.

        Raises:
            LedgerError: as `open`, or they cannot be made.
            DamagedFile: the key is damaged.
        """
        folder, (database, key) = self.key_path.parent, self.open()
        if self.noted is not None and not atomic_files.path_exists(self.noted):
            atomic_files.write(self.noted, checked_json({"folder": str(folder)}))
        if key is not None:
            return database, key
        if self.noted is not None or not atomic_files.path_exists(folder):
            atomic_files.make_private(folder)
        with atomic_files.exclusive_lock(folder):
            key = self._read_key() or HouseholdKey(os.urandom(_KEY_BYTES))
            if not atomic_files.path_exists(self.key_path):
                atomic_files.write(self.key_path, key.secret)
            database.create(key.check)
        _, key = self.open()  # another machine may have been faster, with another key
        if key is None:
            raise LedgerError(f"{SUBJECT} cannot be made; {_COPY}")
        return database, key

    def _read_key(self) -> HouseholdKey | None:
        if not atomic_files.path_exists(self.key_path):
            return None
        try:
            secret = self.key_path.read_bytes()
        except OSError as error:
            raise atomic_files.unreadable_error(self.key_path, error.errno) from None
        if len(secret) != _KEY_BYTES:
            raise DamagedFile(f"{_KEY_FILE} is damaged; {_COPY}")
        return HouseholdKey(secret)


def _folder_in(path: Path) -> Path:
    return Path(read_checked_json(path.read_bytes())["folder"])


def _user_folder() -> Path | None:
    """Return the folder of agedp in the user's data, None if it is not the user's own, writable and permanent."""
    named, home = os.environ.get("XDG_DATA_HOME", ""), os.environ.get("HOME", "")
    base = Path(named) if Path(named).is_absolute() else Path(home, ".local", "share")
    folder = base / "agedp"
    existing = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
    is_of_home = base != Path(named) and (home in ("", "/") or not Path(home).is_dir() or not _is_permanent(Path(home)))
    if is_of_home or existing == Path("/") or not existing.is_dir():
        return None
    status = existing.stat()
    is_own = status.st_uid == os.geteuid() and status.st_mode & 0o200
    return folder if is_own and os.access(existing, os.W_OK | os.X_OK) else None


def _is_permanent(folder: Path) -> bool:
    """Return whether a folder outlives the machine's next start, as far as its file system tells."""
    kinds = {"": ""}
    with suppress(OSError):
        kinds |= {line.split()[1]: line.split()[2] for line in Path("/proc/self/mounts").read_text().splitlines()}
    resolved = folder.resolve()
    mount = max((point for point in kinds if point and resolved.is_relative_to(point)), key=len, default="")
    return kinds[mount] not in _NOT_PERMANENT


def _rows_of(ledger: Ledger, population: str) -> list[ContractRecord | StatementRecord | AnyRelease]:
    """Return the contracts, releases and calibration draws of a population in a ledger."""
    rows: list[ContractRecord | StatementRecord | AnyRelease] = [
        *ledger.contracts(population),
        *ledger.history(population),
    ]
    if ledger.calibration_draws(population):
        records = ((row, read_lifecycle_record(row)) for row in ledger.statements(LEDGER_POPULATION))
        rows += [row for row, of in records if isinstance(of, CalibrationDraw) and of.population == population]
    return rows
