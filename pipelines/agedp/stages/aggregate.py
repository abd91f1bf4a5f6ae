"""READINGS (as DAYS) + roster -> SUMS: one exact integer vector per day and series; `series.series` applies the clamp.

Locality: a household's contribution to a day is a function of its rows of that day and of the run file. A
household-day is usable if at most `max_missing` of its expected readings are missing; then it counts as its daily
total, at most the clamp, never scaled up. Otherwise it counts as the public `missing_wh`.

If a series counts states, each half-hour with a reading, or the daily total (depending on the model's `step`), counts
as the representative value of its state, before the clamp; missing readings count as above. A missing reading is not a
state: it is assumed to be independent of the chain.

A run that was interrupted after its draw has published its days, but not recorded their true values or reported their
input. A later run sums these days again, as long as their readings are retained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from agedp.internal_records.cell_tables import COUNTED_STATES, COVERAGE, TRUE_COUNTS, TRUE_MEANS, recorded_days
from agedp.ledger_session import LedgerSession
from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileNotice, InternalPaths
from agedp.preflight.alerts import check_alerts, count_reported
from agedp.stage_values import DailySum, DailySums, Delivery, DueDays
from agedp.stages.ingest import reread_damaged
from agedp.store.daily_totals import MonthMatrix, compute_state_days, load_month_matrix
from agedp.store.store import Store
from agedp_data import table_schemas
from agedp_data.datasets.layout import Layout, expected_readings
from agedp_data.errors import InputError
from agedp_data.ledger import ReleaseRecord
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import Roster
from agedp_data.series.series import AnySeries


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


def aggregate_days(session: LedgerSession, due_days: DueDays, delivery: Delivery) -> DailySums:
    """Stage 3: sum the due days, and days of earlier runs that are not recorded yet; the caller has locked the store.

    Raises:
        InputError: readings of a day were removed from the store, or a damaged record cannot be renamed.
    """
    notices = check_records(session.run.paths)
    return replace(sum_days(session, due_days, delivery), notices=notices)


def sum_days(session: LedgerSession, due_days: DueDays, delivery: Delivery) -> DailySums:
    """Return the sums of the due days and of days that an earlier run left incomplete.

    Raises:
        InputError: readings of a day were removed from the store.
    """
    session = session.opened()
    return reread_damaged(session, delivery, partial(_sum_days, session, due_days))


def _sum_days(session: LedgerSession, due_days: DueDays, delivery: Delivery) -> DailySums:
    # another run may have released a due day, and deleted its readings, while this one waited
    run, recorded = session.run, {(row.day, row.series) for row in session.rows}
    due = {
        due_day.day
        for due_day in due_days.due
        if any((str(due_day.day), name) not in recorded for name in due_day.series)
    }
    unreported = unreported_days(session)
    days = sorted(due | unrecorded_days(session) | unreported)
    series, states = run.run_file.series, run.run_file.counted_states
    compute_state_days(run.store, delivery, days, states, engine=run.engine)
    by_day = aggregate(run.store, delivery, run.roster, days=days, series=series, path=run.paths.sums, states=states)
    drawn = tuple(due_day.day for due_day in due_days.due if due_day.is_drawn and due_day.day in due)
    is_first = not session.released_days
    examines_all = is_first or count_reported(run.paths.folder, population=run.population) == 0
    return DailySums(by_day, delivery, drawn, tuple(sorted({*drawn, *unreported})), examines_all, is_first)


def aggregate(
    store: Store,
    delivery: Delivery,
    roster: Roster,
    *,
    days: Sequence[date],
    series: Mapping[str, AnySeries],
    path: Path,
    states: RepresentativeValues | None = None,
) -> dict[tuple[date, str], DailySum]:
    """Return the SUMS of these days by day and series, and write a confidential copy.

    The release uses the returned value, never the file, which another run may have written. `states` are those that
    series count.

    Raises:
        InputError: readings of a day were removed from the store.
    """
    if days and f"{days[0]:%Y-%m}" < store.retained_from():
        raise InputError(
            f"{days[0]} is due, but readings before {store.retained_from()} were deleted ([engine] keep_days); name "
            "another confidential folder to read them again"
        )
    sums: dict[tuple[date, str], DailySum] = {}
    for month in sorted({f"{day:%Y-%m}" for day in days}):
        matrix = load_month_matrix(store, delivery, roster, month, states=states)
        for day in (day for day in days if f"{day:%Y-%m}" == month):
            sums |= {
                (day, name): _daily_sum(day_series, roster, day, store.layout, matrix)
                for name, day_series in series.items()
            }
    atomic_files.write_table(path, table_schemas.table_from_rows(table_schemas.SUMS, [*_table_rows(sums)]))
    return sums


def _daily_sum(series: AnySeries, roster: Roster, day: date, layout: Layout, matrix: MonthMatrix) -> DailySum:
    daily_sum = DailySum(series, {}, {}, {}, {})
    energy, read_energy, readings = (
        values[:, day.day - 1] for values in (matrix.energy_of(series), matrix.energy_wh, matrix.readings)
    )
    for group, members in roster.members(day, series.by).items():
        usable = readings[members] >= max(1, expected_readings(layout, day) - series.max_missing)
        counted = series.clamp_energy(energy[members], usable)
        daily_sum.exact[group] = series.exact(counted)
        daily_sum.households[group], daily_sum.usable[group] = len(members), int(usable.sum())
        daily_sum.clamped[group] = int((usable & (energy[members] > series.clamp_wh)).sum())
        if series.values == "states":
            daily_sum.states_wh[group] = int(counted.sum())
            daily_sum.readings_wh[group] = int(series.clamp_energy(read_energy[members], usable).sum())
    return daily_sum


def _table_rows(sums: Mapping[tuple[date, str], DailySum]) -> Iterator[dict[str, Any]]:
    for (day, name), daily_sum in sums.items():
        for group, exact in daily_sum.exact.items():
            counts = {"households": daily_sum.households, "usable": daily_sum.usable, "clamped": daily_sum.clamped}
            of_group = {"day": day, "series": name, **{count: number[group] for count, number in counts.items()}}
            for cell, value in zip(daily_sum.series.cells(group), exact, strict=True):
                yield {**of_group, "cell": cell, "value": value}


def days_between(first: date, last: date) -> tuple[date, ...]:
    """Return the days of a period, both ends included."""
    return tuple(first + timedelta(days=i) for i in range((last - first).days + 1))
