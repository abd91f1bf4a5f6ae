"""Mean by states against mean by readings, per released day. Confidential.

    <confidential>/counted_states.parquet    `tables.COUNTED_STATES`, a row for each released day, series and group

Every published value contains the difference, and no interval covers it. Its size depends on the readings, so
the statement names it without its size.
"""

from __future__ import annotations

from collections.abc import Iterator

from agedp_data import tables
from agedp_data.ledger import ReleaseRecord
from pipelines.aggregate import DailySum
from pipelines.notes.cell_notes import CellTable, TableRow


def _state_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    for group, states_wh in daily_sum.states_wh.items():
        if set(daily_sum.series.cells(group)) <= set(row.cells):  # small groups are not released
            households = daily_sum.households[group]
            means = {"readings_kwh": daily_sum.readings_wh[group], "states_kwh": states_wh}
            kwh = {name: wh / (1000.0 * households) for name, wh in means.items()}
            yield {"cell": group, "households": households, **kwh}


COUNTED_STATES = CellTable(
    tables.COUNTED_STATES,
    "put back a copy of counted_states.parquet, or remove it: later runs note the days that they release",
    _state_rows,
)
