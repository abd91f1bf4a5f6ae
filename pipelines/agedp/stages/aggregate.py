"""READINGS (as DAYS) + roster -> SUMS: one exact integer vector per day and series; `series.series` applies the clamp.

Locality: a household's contribution to a day is a function of its rows of that day and of the run file. A
household-day is usable if at most `max_missing` of its expected readings are missing; then it counts as its daily
total, at most the clamp, never scaled up. Otherwise it counts as the public `missing_wh`.

If a series counts states, each half-hour with a reading, or the daily total (depending on the model's `step`), counts
as the representative value of its state, before the clamp; missing readings count as above. A missing reading is not a
state: it is assumed to be independent of the chain.

A rehearsal on synthetic households sums these instead (`synthetic_days`), by the same rules.

A run that was interrupted after its draw has published its days, but not recorded their true values or reported their
input. A later run sums these days again, as long as their readings are retained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path

import pyarrow as pa

from agedp.budget import days_of_rows, single_rows
from agedp.compute.engine import map_reduce
from agedp.compute.engine_settings import Engine
from agedp.internal_records import bookkeeping
from agedp.ledger_session import LedgerSession
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import FileNotice
from agedp.preflight.alerts import check_alerts, count_reported
from agedp.run_context import RunContext
from agedp.stage_values import COUNTS, DailySum, DailySums, Delivery, DueDays
from agedp.stages.ingest import reread_damaged
from agedp.store import bucketed_roster
from agedp.store.daily_totals import MonthMatrix, compute_state_days, load_month_matrix
from agedp.store.half_hour_sums import sum_half_hours
from agedp.store.store import Store, read_retained_from, size_notice
from agedp_data import table_schemas
from agedp_data.config import RunFile
from agedp_data.datasets.layout import Layout
from agedp_data.errors import InputError
from agedp_data.ledger import ReleaseRecord
from agedp_data.ledger.records import AnyRelease, ReleaseHeader
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import Roster, RosterCounts
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import days_of


def check_records(run: RunContext) -> tuple[FileNotice, ...]:
    """Let damaged records of the confidential folder begin anew, and return the notices about them.

    Raises:
        InputError: the system denies reading or renaming one.
    """
    checks = run.books.check(), *check_alerts(run.paths.folder)
    return tuple(notice for notice in checks if notice is not None)


def _unrecorded_rows(session: LedgerSession, rows: Sequence[ReleaseHeader]) -> list[ReleaseRecord]:
    """Return released rows with retained readings but without recorded true values.

    A series that has ended since is left out: the run file does not define it any more.
    """
    run = session.run
    with_true_values = bookkeeping.recorded_days(run.books, run.population)
    are_all_true = all(series.true_values for series in run.run_file.series.values())
    counted = set() if are_all_true else bookkeeping.COVERAGE.recorded(run.books, run.population)
    recorded = {
        name: with_true_values if series.true_values else counted for name, series in run.run_file.series.items()
    }
    missing = [
        row
        for row in rows
        if row.state == "released" and row.series in recorded and (row.day, row.series) not in recorded[row.series]
    ]
    retained_from = read_retained_from(run.store.folder)
    retained = [row for row in missing if f"{_covered_days(session, row)[0]:%Y-%m}" >= retained_from]
    complete = session.open_ledger.rows_of(retained) if retained else ()
    return [row for row in complete if run.run_file.series[row.series].holds(row.cells)]


def _covered_days(session: LedgerSession, row: AnyRelease) -> tuple[date, ...]:
    series = session.run.run_file.series[row.series]
    return days_of(*series.covered_days(date.fromisoformat(row.day)))


def aggregate_days(session: LedgerSession, due_days: DueDays, delivery: Delivery) -> DailySums:
    """Stage 3: sum the due days, and days of earlier runs that are not recorded yet; the caller has locked the store.

    Raises:
        InputError: readings of a day were removed from the store, or a damaged record cannot be renamed.
    """
    run = session.run
    notices = check_records(run)
    if run.run_file.schedule.reads_input:
        too_large = size_notice(run.store.folder, run.store.buckets, run.roster.counts.size)
        notices += (too_large,) if too_large is not None else ()
    return replace(sum_days(session, due_days, delivery), notices=notices + delivery.warnings)


def sum_days(session: LedgerSession, due_days: DueDays, delivery: Delivery) -> DailySums:
    """Return the sums of the due days and of days that an earlier run left incomplete.

    Raises:
        InputError: readings of a day were removed from the store.
    """
    session = session.opened()
    return reread_damaged(session, delivery, partial(_sum_days, session, due_days))


def _sum_days(session: LedgerSession, due_days: DueDays, delivery: Delivery) -> DailySums:
    # another run may have released a due day, and deleted its readings, while this one waited; it may also release and
    # report at this moment: everything below is decided by one reading of the ledger, and a later one of the count
    run, rows = session.run, session.history.rows
    reported = count_reported(run.paths.folder, population=run.population)
    recorded, released = {(row.day, row.series) for row in rows}, [row for row in rows if row.state == "released"]
    undrawn = [of for of in due_days.due if any((str(of.day), name) not in recorded for name in of.series)]
    due = {due_day.day for due_day in undrawn}
    unreported = set[date]()  # released days with retained readings whose input is not reported yet
    if reported is not None:
        later, retained_from = [row.day for row in released[reported:]], read_retained_from(run.store.folder)
        unreported = {date.fromisoformat(day) for day in later if day[:7] >= retained_from}
    unrecorded = _unrecorded_rows(session, rows)
    single_days = due | {date.fromisoformat(row.day) for row in unrecorded} | unreported
    series, states = run.run_file.series, run.run_file.counted_states
    of_periods = {(day, row.series) for row in unrecorded for day in _covered_days(session, row)}
    wanted = days_of_rows(undrawn, series) | of_periods | single_rows(series, single_days)
    days = sorted({day for day, _ in wanted} | single_days)
    if run.run_file.schedule.reads_input:
        compute_state_days(run.store, delivery, days, states, engine=run.engine)
        summed = partial(aggregate, run.store, delivery, run.roster, series=series, states=states, engine=run.engine)
        by_day = summed(days=days, wanted=wanted)
    else:
        by_day = aggregate_synthetic(run.run_file, run.roster.counts, days=days, wanted=wanted)
    by_day = sum_periods(by_day, series, single_days)
    write_sums(run.paths.sums, by_day)
    drawn = tuple(due_day.day for due_day in due_days.due if due_day.is_drawn and due_day.day in due)
    examines_all = not released or reported == 0
    return DailySums(by_day, delivery, drawn, tuple(sorted({*drawn, *unreported})), examines_all, not released)


def aggregate(  # noqa: PLR0913 -- what is summed, of whom, and how
    store: Store,
    delivery: Delivery,
    roster: Roster,
    *,
    days: Sequence[date],
    series: Mapping[str, AnySeries],
    states: RepresentativeValues | None = None,
    engine: Engine | None = None,
    wanted: Collection[tuple[date, str]] | None = None,
) -> bucketed_roster.Sums:
    """Return the SUMS of these days by day and series.

    `states` are those that series count; `engine` says how months and household buckets are summed. `wanted`
    are the days and series of the sums, by default every series on every day.

    Raises:
        InputError: readings of a day were removed from the store.
    """
    if days and f"{days[0]:%Y-%m}" < (retained_from := read_retained_from(store.folder)):
        raise InputError(
            f"{days[0]} is due, but readings before {retained_from} were deleted ([engine] keep_days); name another "
            "confidential folder to read them again"
        )
    wanted = {(day, name) for day in days for name in series} if wanted is None else frozenset(wanted)
    if states is None and any(series[name].counts_states for _, name in wanted):
        raise ValueError("a series counts states, but no states are given")
    bucketed, engine = (
        bucketed_roster.write_bucketed_roster(store.folder.parent, roster, store.buckets),
        engine or Engine(),
    )
    totals, profiles = _by_resolution(series)
    function = partial(_sum_bucket, store=store, delivery=delivery, roster=bucketed, series=totals, states=states)
    items = list(product(bucketed_roster.days_by_month(_days_of(totals, wanted)), range(store.buckets)))
    sums = map_reduce("sums", items, function=function, combine=bucketed_roster.add_sums, engine=engine)
    sums |= sum_half_hours(
        store, delivery, bucketed, days=_days_of(profiles, wanted), series=profiles, states=states, engine=engine
    )
    return _in_order(sums, days, totals, wanted) | _in_order(sums, days, profiles, wanted)


def _by_resolution(series: Mapping[str, AnySeries]) -> tuple[dict[str, AnySeries], dict[str, AnySeries]]:
    """Return the series of daily totals, and those of half-hours."""
    totals = {name: of for name, of in series.items() if not of.reads_half_hours}
    return totals, {name: of for name, of in series.items() if of.reads_half_hours}


def _in_order(
    sums: bucketed_roster.Sums, days: Sequence[date], series: Iterable[str], wanted: Collection[tuple[date, str]]
) -> bucketed_roster.Sums:
    return {key: sums[key] for key in product(days, series) if key in wanted}


def _days_of(series: Collection[str], wanted: Iterable[tuple[date, str]]) -> list[date]:
    return sorted({day for day, name in wanted if name in series})


def _sum_bucket(
    month_bucket: tuple[Sequence[date], int],
    *,
    store: Store,
    delivery: Delivery,
    roster: bucketed_roster.BucketedRoster,
    series: Mapping[str, AnySeries],
    states: RepresentativeValues | None,
) -> bucketed_roster.Sums:
    """Return the sums of the households of one bucket on some days of one month: the unit of work."""
    days, bucket = month_bucket
    of_bucket = roster.bucket(bucket)
    matrix = load_month_matrix(store, delivery, of_bucket, f"{days[0]:%Y-%m}", bucket=bucket, states=states, days=days)
    return _sum_matrix(matrix, days, series, store.layout, of_bucket.members)


def _sum_matrix(
    matrix: MonthMatrix,
    days: Sequence[date],
    series: Mapping[str, AnySeries],
    layout: Layout,
    members: bucketed_roster.Members,
) -> bucketed_roster.Sums:
    households = len(matrix.readings)
    blocks = matrix.blocks(days)
    return bucketed_roster.sum_household_days(
        blocks, days, households=households, members=members, layout=layout, series=series
    )


def aggregate_synthetic(
    run: RunFile, roster: RosterCounts, *, days: Sequence[date], wanted: Collection[tuple[date, str]] | None = None
) -> bucketed_roster.Sums:
    """Return the SUMS of synthetic households on these days by day and series; `wanted` as in `aggregate`."""
    from agedp.stages.synthetic_days import sum_synthetic_half_hours, synthetic_members, synthetic_month  # noqa: PLC0415  (for rehearsals)

    members, layout = partial(synthetic_members, roster), run.input.layout
    totals, profiles = _by_resolution(run.series)
    wanted = {(day, name) for day in days for name in run.series} if wanted is None else wanted
    sums: bucketed_roster.Sums = {}
    for month_days in bucketed_roster.days_by_month(_days_of(totals, wanted)):
        sums |= _sum_matrix(synthetic_month(run, roster, month_days), month_days, totals, layout, members)
    sums |= sum_synthetic_half_hours(run, roster, days=_days_of(profiles, wanted), series=profiles)
    return _in_order(sums, days, totals, wanted) | _in_order(sums, days, profiles, wanted)


def write_sums(path: Path, sums: Mapping[tuple[date, str], DailySum]) -> None:
    """Write a confidential copy of the SUMS; a release uses the values in memory, never this file."""
    tables = [_sums_table(day, name, daily_sum) for (day, name), daily_sum in sums.items()]
    atomic_files.write_table(path, pa.concat_tables([table_schemas.SUMS.empty_table(), *tables]))


def _sums_table(day: date, name: str, daily_sum: DailySum) -> pa.Table:
    """Return the rows of one day and series, by columns: a profile has thousands."""
    number, counts = daily_sum.exact.size, daily_sum.counts.repeat(daily_sum.exact.shape[1], axis=0)
    return table_schemas.table_from_columns(
        table_schemas.SUMS,
        day=[day] * number,
        series=[name] * number,
        cell=daily_sum.series.write_cells(daily_sum.cells),
        **{count: counts[:, i] for i, count in enumerate(COUNTS[:3])},
        value=daily_sum.exact.ravel(),
    )


def sum_periods(
    by_day: Mapping[tuple[date, str], DailySum], series: Mapping[str, AnySeries], single_days: Collection[date]
) -> dict[tuple[date, str], DailySum]:
    """Return the sums of rows: of single days as they are, of periods added over their days.

    Days that are summed for a period alone have no sum of their own. A period of which a day is missing has no sum.
    """
    sums = {
        (day, name): daily_sum
        for (day, name), daily_sum in by_day.items()
        if day in single_days and not series[name].covers_periods
    }
    lasts = {(series[name].covered_days(day)[1], name) for day, name in by_day if series[name].covers_periods}
    for last, name in sorted(lasts):
        days = days_of(*series[name].covered_days(last))
        if all((day, name) in by_day for day in days):
            sums[last, name] = DailySum.of_period({day: by_day[day, name] for day in days})
    return sums
