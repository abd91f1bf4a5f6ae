"""Ledger rows -> draws of the household register: which source they are of, and which draw a row is.

A draw is identified by the hash of its row; a row of a recovered ledger by the hash that it had in the oldest ledger
that contained it. A calibration draw has no row of its own in every ledger that uses its model: it is one draw wherever
population, period, query and answer are the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

from agedp.internal_records.register_key import REBUILT
from agedp.internal_records.register_members import record_roster
from agedp.internal_records.roster_ranges import HouseholdKey, RosterRanges
from agedp_data.datasets.timestamps import day_number
from agedp_data.ledger import Ledger, canonical
from agedp_data.ledger.lifecycle import CalibrationDraw
from agedp_data.ledger.register_rows import CountedDraw, RegisterRows, RegisterSource
from agedp_data.ledger.release_headers import AnyRelease
from agedp_data.notions.publication import Publication
from agedp_data.roster import Roster

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
