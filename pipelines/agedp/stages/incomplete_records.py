"""Confidential records of released days that an earlier run left incomplete, or that are damaged.

A run that was interrupted after its draw has published its days, but not recorded their true values or reported their
input. A later run sums these days again, as long as their readings are retained.
"""

from __future__ import annotations

from datetime import date

from agedp.internal_records.cell_tables import COUNTED_STATES, COVERAGE, TRUE_COUNTS, TRUE_MEANS, recorded_days
from agedp.internal_records.internal_paths import InternalPaths
from agedp.ledger_session import LedgerSession
from agedp.local_files.internal_files import FileNotice
from agedp.preflight.preflight_records import check_alerts, count_reported
from agedp_data.ledger import ReleaseRecord


def check_records(paths: InternalPaths) -> tuple[FileNotice, ...]:
    """Rename damaged records of the confidential folder, so that they begin anew, and return the notices about them.

    Raises:
        InputError: the system denies reading or renaming one.
    """
    checks = (
        COVERAGE.check(paths.coverage),
        COUNTED_STATES.check(paths.counted_states),
        TRUE_COUNTS.check(paths.true_counts),
        TRUE_MEANS.check(paths.true_means),
        *check_alerts(paths.folder),
    )
    return tuple(notice for notice in checks if notice is not None)


def unreported_days(session: LedgerSession) -> set[date]:
    """Return released days with retained readings whose input is not reported yet; none if this is not recorded."""
    run = session.run
    number = count_reported(run.paths.folder, population=run.population)
    if number is None:
        return set()
    days = [row.day for row in session.rows if row.state == "released"][number:]
    return {date.fromisoformat(day) for day in days if day[:7] >= run.store.retained_from()}


def unrecorded_days(session: LedgerSession) -> set[date]:
    """Return released days with retained readings but without recorded true values.

    A series that has ended since is left out: the run file does not define it any more.
    """
    run = session.run
    recorded = recorded_days(run.paths.true_means, run.paths.true_counts, run.population)
    missing = {date.fromisoformat(row.day) for row in session.rows if _is_missing(session, row, recorded)}
    return {day for day in missing if f"{day:%Y-%m}" >= run.store.retained_from()}


def _is_missing(session: LedgerSession, row: ReleaseRecord, recorded: set[tuple[str, str]]) -> bool:
    series = session.run.run_file.series.get(row.series)
    if row.state != "released" or series is None or (row.day, row.series) in recorded:
        return False
    return series.holds(row.cells)
