"""Tables of a release folder, verified: computed again from the ledger rows beside them, and compared cell by cell.

The rows in `ledger_rows.jsonl` are what was drawn; every column of a table follows from them, from the contracts among
them and from the coverage of the intervals. Nothing here needs a ledger, OpenDP, Dask or Prefect.

Decisions:

* A standard deviation may differ by 1e-9 of itself, because platforms round e^x differently. Every other cell is exact.
* A guarantee may lack keys that came later, and have keys that this version does not know; keys of both agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from agedp.budget import series_by_contract
from agedp.release_folder.result_tables import list_published_series, read_guarantee, series_table
from agedp_data.epsilon import ceil_nano, format_epsilon
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.messages import escape_text
from agedp_data.roster import ALL
from agedp_data.statement.document import Statement

_KEY: Final = ("day", "group", "revision", "bin_low_kwh", "bin_high_kwh")
_ROUNDED: Final = ("noise_sd", "noise_sd_kwh")
_TOLERANCE: Final = 1e-9
_ADVICE: Final = "Ask for the release again."


def check_tables(
    tables: Mapping[str, pa.Table],
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
) -> None:
    """Check that tables, by file name, are those of a folder's ledger rows.

    Raises:
        InputError: a file, guarantee, row or cell that differs; the message names file, day and column.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    published = {series.file: series for series in list_published_series(rows, contracts)}
    for name in sorted(published.keys() ^ tables.keys()):
        raise InputError(f"{name}: the {'folder' if name in published else 'ledger'} lacks this table. {_ADVICE}")
    for name, table in tables.items():
        guarantee = read_guarantee(table.schema)
        coverage = Decimal(guarantee["interval"]["coverage"])
        expected = series_table(published[name], statement, rows, contracts, coverage=coverage)
        if table.schema.remove_metadata() != expected.schema.remove_metadata():
            raise InputError(f"{name} has other columns than a published table. {_ADVICE}")
        for key, value in read_guarantee(expected.schema).items():
            if _contradict(guarantee[key], value):
                raise InputError(f"{name}: {key} in its guarantee contradicts the statement or the ledger. {_ADVICE}")
        _check_rows(name, table.to_pylist(), expected.to_pylist())


def _contradict(stored: object, expected: object) -> bool:
    """Return whether two JSON values differ at a key that both have."""
    if isinstance(stored, dict) and isinstance(expected, dict):
        return any(_contradict(stored[key], expected[key]) for key in stored.keys() & expected.keys())
    return stored != expected


def _check_rows(name: str, stored: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> None:
    if len(stored) != len(expected):
        in_table, in_ledger = Counter(map(_place, stored)), Counter(map(_place, expected))
        place = min([*(in_table - in_ledger), *(in_ledger - in_table)])
        side = "ledger lacks" if in_table[place] > in_ledger[place] else "table lacks"
        raise InputError(f"{name}: {place}: the {side} this row. {_ADVICE}")
    for row, ledger_row in zip(stored, expected, strict=True):
        for column, value in ledger_row.items():
            if not _is_same(column, row[column], value):
                difference = f"{escape_text(str(row[column]))} differs from the ledger's {escape_text(str(value))}"
                raise InputError(f"{name}: {_place(ledger_row)}, column {column}: {difference}. {_ADVICE}")


def _place(row: Mapping[str, Any]) -> str:
    """Return day, group and range of a row, for messages."""
    group = "" if row["group"] == ALL else f", {escape_text(row['group'])}"
    bins = f", {row['bin_low_kwh']:g} to {row['bin_high_kwh']:g} kWh" if "bin_low_kwh" in row else ""
    return f"{row['day']}{group}{bins}"


def _is_same(column: str, stored: Any, expected: Any) -> bool:  # noqa: ANN401  (a cell)
    if column in _ROUNDED:
        return math.isclose(stored, expected, rel_tol=_TOLERANCE)
    return bool(stored == expected)


def check_losses(name: str, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> None:
    """Check that the loss of every ledger row in a file follows from its noise and its contract's sensitivity.

    Raises:
        InputError: a row with another loss; the message names file, day and series.
    """
    series = series_by_contract(contracts)
    for row in rows:
        if row.state == "released":
            sensitivity = series[row.contract][row.series].sensitivity("replacement")
            loss = ceil_nano(Fraction(sensitivity) / Fraction(row.scale))
            if row.loss != loss:
                difference = f"{format_epsilon(row.loss)} differs from sensitivity / scale, {format_epsilon(loss)}"
                raise InputError(
                    f"{name}: {row.day}, series {escape_text(row.series)}: the loss {difference}. {_ADVICE}"
                )
