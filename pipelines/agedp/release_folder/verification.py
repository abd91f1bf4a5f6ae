"""Checks of a release folder against its own ledger rows: its statement, its tables, its tables by month."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.budget import series_by_contract
from agedp.release_folder.folder_files import ROWS
from agedp.release_folder.partitions import kind_of, release_tables
from agedp.release_folder.result_tables import Partition, read_guarantee
from agedp.release_folder.span_bounds import value_accuracy
from agedp_data.arrays import Floats
from agedp_data.epsilon import ceil_nano, format_epsilon, round_nano
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord, StatementRecord, canonical
from agedp_data.ledger.lifecycle import HouseholdAccount, calibration_draws, charges_of, read_lifecycle_record
from agedp_data.ledger.records import Row
from agedp_data.ledger.transfer import LedgerExport
from agedp_data.messages import escape_text
from agedp_data.notions.publication import Publication
from agedp_data.roster import ALL
from agedp_data.series.result_table import DerivedTable, Noise
from agedp_data.series.series import DERIVED_TABLES
from agedp_data.statement.document import StatedAccount, StatedBound, Statement
from agedp_data.statement.note_texts import odds_factor

# --------------------------------------------------------------------------------------------------
# Comparison of published tables with those that their ledger rows give: column by column, then row by row.
#
# Rows are compared as Python values only if their columns differ in them, and if rows are missing, only those of the
# first such day. So a table of millions of rows is verified in seconds.
# --------------------------------------------------------------------------------------------------

_ROUNDED: Final = ("noise_sd", "noise_sd_kwh")
_TOLERANCE: Final = 1e-9
_ADVICE: Final = "Ask for the release again."


def check_tables(
    stored: Collection[str],
    read: Callable[[str], pa.Table],
    statement: Statement,
    partitions: Sequence[Partition],
) -> None:
    """Check that the tables of a folder are those of its ledger rows.

    Args:
        stored: their paths.
        read: returns a table by its path.
        statement: of the folder.
        partitions: the ledger rows, of the folder's layout.

    Raises:
        InputError: a file, guarantee, row or cell that differs; the message names file, day and column.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    derived = {table.file: table for table in DERIVED_TABLES}
    of_series = [path for path in stored if _table_of(path) not in derived]
    if foreign := [path for path in of_series if kind_of(_table_of(path)) is None]:
        raise InputError(f"{escape_text(min(foreign))}: no table of a release has this name. {_ADVICE}")
    if not of_series:
        raise InputError("the release has no tables of series, from which other tables would be derived")
    noise = Noise(interval_coverage(read(min(of_series))))
    present = {_table_of(path) for path in stored}
    computed = [table for file, table in sorted(derived.items()) if file in present]
    missing = set(stored)
    for path, expected in release_tables(statement, partitions, noise, derived=computed):
        if path not in stored:
            raise InputError(f"{escape_text(path)}: the folder lacks this table. {_ADVICE}")
        missing.discard(path)
        check_table(path, read(path), expected, derived.get(_table_of(path)))
    for path in sorted(missing):
        raise InputError(f"{escape_text(path)}: the ledger lacks this table. {_ADVICE}")


def _table_of(path: str) -> str:
    """Return the name of the table that a path is of, in either layout."""
    return path.partition("/")[0].removesuffix(".parquet")


def interval_coverage(table: pa.Table) -> Decimal:
    """Return the coverage of the intervals of a table, by its guarantee.

    Raises:
        LookupError, TypeError, ValueError, ArithmeticError: the guarantee lacks it.
    """
    return Decimal(read_guarantee(table.schema)["interval"]["coverage"])


def check_table(path: str, table: pa.Table, expected: pa.Table, derived: DerivedTable | None = None) -> None:
    """Check that a table is the expected one; columns that platforms round may differ by 1e-9 of themselves.

    Args:
        path: of its file.
        table: as it is stored.
        expected: that of the ledger rows.
        derived: which derived table it is.

    Raises:
        InputError: a guarantee, row or cell that differs.
        LookupError, TypeError, ValueError: its guarantee lacks entries.
    """
    if derived is not None and derived.has_intervals and interval_coverage(table) != interval_coverage(expected):
        problem = "the interval in its guarantee has another coverage than those of the released values"
        raise InputError(f"{path}: {problem}. {_ADVICE}")
    if derived is not None and derived.kwh_of_wh is not None:
        expected = with_equal_intervals(expected, table, kwh_of_wh=derived.kwh_of_wh(expected))
    rounded = _ROUNDED if derived is None else derived.rounded
    table, expected = _by_day(table), _by_day(expected)
    if table.schema.remove_metadata() == expected.schema.remove_metadata():
        if table.num_rows == expected.num_rows:
            is_different = pa.array(_differing_rows(table, expected, rounded))
            table, expected = table.filter(is_different), expected.filter(is_different)
        elif "day" in expected.column_names:
            day = _first_incomplete_day(table, expected)
            table, expected = (rows.filter(pc.equal(rows["day"], day)) for rows in (table, expected))
    _check_lines(path, table, expected, rounded)


def with_equal_intervals(expected: pa.Table, stored: pa.Table, *, kwh_of_wh: Floats) -> pa.Table:
    """Return the expected table with the stored ends of intervals that differ by a watt-hour or 1e-9 of their length.

    Inversion rounds differently on other platforms, and an end is a whole watt-hour of the sum.

    Args:
        expected: table that the ledger rows give.
        stored: table of a folder.
        kwh_of_wh: what a watt-hour of the sum is in the mean of each expected row [kWh].
    """
    if expected.schema.remove_metadata() != stored.schema.remove_metadata() or expected.num_rows != stored.num_rows:
        return expected
    low_kwh, high_kwh = expected["low_kwh"].to_numpy(), expected["high_kwh"].to_numpy()
    tolerance_kwh = 1.5 * kwh_of_wh + _TOLERANCE * (high_kwh - low_kwh)
    for name, ends_kwh in (("low_kwh", low_kwh), ("high_kwh", high_kwh)):
        stored_kwh = stored[name].to_numpy()
        ends = np.where(np.abs(ends_kwh - stored_kwh) <= tolerance_kwh, stored_kwh, ends_kwh)
        place = expected.schema.get_field_index(name)
        expected = expected.set_column(place, expected.schema.field(place), pa.array(ends))
    return expected


def _by_day(table: pa.Table) -> pa.Table:
    """Return a table of periods with their first day as the day that names its rows in messages."""
    if "day" in table.column_names:
        return table
    columns = [column.with_name("day") if column.name == "first_day" else column for column in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(columns, metadata=table.schema.metadata))


def _first_incomplete_day(table: pa.Table, expected: pa.Table) -> pa.Scalar:
    """Return the first day of which two tables have different numbers of rows."""
    in_table, in_ledger = (
        dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))
        for counts in (pc.value_counts(rows["day"].combine_chunks()) for rows in (table, expected))
    )
    days = (day for day in in_table.keys() | in_ledger.keys() if in_table.get(day, 0) != in_ledger.get(day, 0))
    return pa.scalar(min(days), expected["day"].type)


def _differing_rows(
    table: pa.Table, expected: pa.Table, rounded: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows of two tables with the same columns differ."""
    result = np.zeros(table.num_rows, np.bool_)
    for column in expected.column_names:
        if column in rounded:
            stored, value = table[column].to_numpy(), expected[column].to_numpy()
            result |= ~(np.abs(stored - value) <= _TOLERANCE * np.abs(value))  # of the expected value: it is finite
        else:
            is_equal = pc.fill_null(pc.equal(table[column], expected[column]), False)
            result |= ~is_equal.to_numpy(zero_copy_only=False)
    return result


def _check_lines(name: str, table: pa.Table, expected: pa.Table, rounded: Sequence[str]) -> None:
    guarantee = read_guarantee(table.schema)
    if table.schema.remove_metadata() != expected.schema.remove_metadata():
        raise InputError(f"{name} has other columns than a published table. {_ADVICE}")
    for key, value in read_guarantee(expected.schema).items():
        if _contradict(guarantee[key], value):
            raise InputError(f"{name}: {key} in its guarantee contradicts the statement or the ledger. {_ADVICE}")
    _check_rows(name, table.to_pylist(), expected.to_pylist(), rounded)


def _contradict(stored: object, expected: object) -> bool:
    """Return whether two JSON values differ at a key that both have."""
    if isinstance(stored, dict) and isinstance(expected, dict):
        return any(_contradict(stored[key], expected[key]) for key in stored.keys() & expected.keys())
    return stored != expected


def _check_rows(
    name: str, stored: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]], rounded: Sequence[str]
) -> None:
    if len(stored) != len(expected):
        in_table, in_ledger = Counter(map(_place, stored)), Counter(map(_place, expected))
        place = min([*(in_table - in_ledger), *(in_ledger - in_table)])
        side = "ledger lacks" if in_table[place] > in_ledger[place] else "table lacks"
        raise InputError(f"{name}: {place}: the {side} this row. {_ADVICE}")
    for row, ledger_row in zip(stored, expected, strict=True):
        for column, value in ledger_row.items():
            is_rounded = column in rounded and math.isclose(row[column], value, rel_tol=_TOLERANCE)
            if not is_rounded and row[column] != value:
                difference = f"{escape_text(str(row[column]))} differs from the ledger's {escape_text(str(value))}"
                raise InputError(f"{name}: {_place(ledger_row)}, column {column}: {difference}. {_ADVICE}")


def _place(row: Mapping[str, Any]) -> str:
    """Return day, group, time of day and range of a row, for messages."""
    level = f"{escape_text(row['level'])} " if "level" in row else ""
    group = "" if row["group"] == ALL else f", {level}{escape_text(row['group'])}"
    bins = f", {row['bin_low_kwh']:g} to {row['bin_high_kwh']:g} kWh" if "bin_low_kwh" in row else ""
    layer = f", layer {row['layer']}" if "layer" in row else ""
    clock = f", {row['start_minute'] // 60:02d}:{row['start_minute'] % 60:02d}" if "start_minute" in row else ""
    kind = f", {row['day_kind']}" if "day_kind" in row else ""
    return f"{row['day']}{group}{kind}{clock}{bins}{layer}"


# --------------------------------------------------------------------------------------------------
# A statement against the ledger rows of its folder: contract, days, bounds, account of households, and its words.
# --------------------------------------------------------------------------------------------------

_DIFFERENT: Final = "statement.json and ledger_rows.jsonl contain different days or losses"
_EPSILON_TEXT: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


def check_statement(
    statement: Statement, releases: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> None:
    """Check the days and losses of the statement against the ledger rows of its folder.

    Raises:
        InputError: they differ.
    """
    released = [row for row in releases if row.state == "released"]
    series = series_by_contract(contracts)
    spent = Publication(earlier=series).released_days(released)
    dates = [row.published_on for row in released]
    min_households = statement.contract.population.min_households
    days, published = statement.days, statement.published
    is_consistent = (
        (days.first, days.last, days.released) == (min(spent, default=""), max(spent, default=""), len(spent))
        and set(days.skipped) == {row.day for row in releases} - spent
        and (published.first, published.last) == (min(dates, default=""), max(dates, default=""))
        and statement.version == len(contracts)
        and all(min(row.households) >= min_households for row in released if row.contract == contracts[-1].hash)
    )
    if not is_consistent:
        raise InputError(_DIFFERENT)
    # earlier versions state no errors of values
    if statement.accuracy is not None and statement.accuracy != value_accuracy(released, contracts):
        raise InputError("statement.json and ledger_rows.jsonl contain different errors of the values")


def check_bounds(statement: Statement, rows: Sequence[Row]) -> None:
    """Check that the bounds of a statement agree with each other, with its account of households and with the draws.

    `release_verification` computes the bounds themselves again.

    Raises:
        InputError: the factor or limit of a bound differs from its epsilon, or the account or the draws differ.
    """
    for bound in statement.bounds:
        if not _is_consistent(bound):
            name = escape_text(repr(bound.name))
            raise InputError(f"statement.json: the bound {name}: its factor or limit contradicts its epsilon")
    covers = _account_covers(statement.household_account, statement.unconditional_epsilons)
    if not covers or statement.charges != charges_of(calibration_draws(rows)):
        raise InputError(_DIFFERENT)


def _account_covers(account: StatedAccount | None, stated: Mapping[str, str]) -> bool:
    """Return whether the account of households, if there is one, is not below the losses of this release alone."""
    if account is None:
        return True
    is_stated = f"of a day {account.day}, in all {account.total}" in account.text and account.since in account.text
    covers = all(Decimal(getattr(account, name)) >= Decimal(stated.get(name, "0")) for name in ("day", "total"))
    return is_stated and covers and Decimal(account.day) <= Decimal(account.total)


def check_account(statement: Statement, export: LedgerExport) -> None:
    """Check the account of households in a statement against the newest one in the ledger rows of its folder.

    Raises:
        InputError: they differ.
    """
    records = [read_lifecycle_record(row) for row in export.rows if isinstance(row, StatementRecord)]
    accounts = [record for record in records if isinstance(record, HouseholdAccount)]
    expected = [(format_epsilon(entry.day), format_epsilon(entry.total), entry.since) for entry in accounts[-1:]]
    account = statement.household_account
    if ([] if account is None else [(account.day, account.total, account.since)]) != expected:
        raise InputError("statement.json and ledger_rows.jsonl contain different accounts of households")


def _is_consistent(bound: StatedBound) -> bool:
    """Return whether a bound's factor, if it has one, is e^epsilon, and its limit is at least the bound."""
    if bound.epsilon == "infinite":
        return bound.factor in ("", bound.epsilon) and bound.limit in ("", "unlimited")
    if not _EPSILON_TEXT.fullmatch(bound.epsilon):
        return False
    is_within_limit = bound.limit in ("", "unlimited") or Decimal(bound.limit) >= Decimal(bound.epsilon)
    factors = ("",) if bound.delta is not None else ("", odds_factor(round_nano(Decimal(bound.epsilon))))
    return is_within_limit and bound.factor in factors


def check_words(words: str, statement: Statement) -> None:
    """Check that the text of STATEMENT.md contains the bounds and the account of households.

    Raises:
        InputError: it contains others.
    """
    lines = words.splitlines()
    for bound in statement.bounds:
        start = f"| {bound.name} | {bound.epsilon} | {bound.scope} |"
        if not any(line.startswith(start) for line in lines):
            raise InputError("STATEMENT.md and statement.json contain different bounds")
    if statement.household_account is not None and statement.household_account.text not in lines:
        raise InputError("STATEMENT.md and statement.json contain different accounts of households")


def check_rows(statement: Statement, releases: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> None:
    """Check that ledger rows are of the statement's population and contract, and that each loss follows from its row.

    A loss is that of its row's noise under its contract's sensitivity.

    Raises:
        InputError: they are not; the message names day and series of a row with another loss.
    """
    if {row.population for row in contracts} | {row.population for row in releases} != {statement.population}:
        raise InputError("ledger_rows.jsonl and statement.json are of different populations")
    if not contracts or contracts[-1].promise != canonical(statement.contract.content()):
        raise InputError("ledger_rows.jsonl and statement.json hold different contracts")
    if not {row.contract for row in releases} <= {row.hash for row in contracts}:
        raise InputError("ledger_rows.jsonl lacks a contract that its releases name")
    series = series_by_contract(contracts)
    for row in (row for row in releases if row.state == "released"):
        sensitivity = series[row.contract][row.series].row_sensitivity(date.fromisoformat(row.day))
        loss = ceil_nano(Fraction(sensitivity) / Fraction(row.scale))
        if row.loss != loss:
            difference = f"{format_epsilon(row.loss)} differs from sensitivity / scale, {format_epsilon(loss)}"
            raise InputError(f"{ROWS}: {row.day}, series {escape_text(row.series)}: the loss {difference}. {_ADVICE}")


def check_claims(statement: Statement, export: LedgerExport, *, words: str) -> None:
    """Check that the statement and its words follow from the ledger rows.

    Raises:
        InputError: a value that differs; one line.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    contracts, releases = contracts_and_releases(export)
    check_statement(statement, releases, contracts)
    check_bounds(statement, export.rows)
    check_account(statement, export)
    check_words(words, statement)


def contracts_and_releases(export: LedgerExport) -> tuple[list[ContractRecord], list[ReleaseRecord]]:
    """Return the contracts and the release rows of a folder's ledger rows."""
    contracts = [row for row in export.rows if isinstance(row, ContractRecord)]
    return contracts, [row for row in export.rows if isinstance(row, ReleaseRecord)]
