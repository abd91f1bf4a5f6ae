"""COUNTED STATES -> means by states compared with means by readings, for the confidential report. Confidential."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agedp_data.pictures.page import paragraph, table
from agedp_data.pictures.scales import format_number
from pipelines.notes.counted_states import COUNTED_STATES
from pipelines.work import Work

_STATES_NOTE = (
    "Where states are counted, a published mean is off by this beside its noise, and no published interval covers it. "
    "It is after the clamp and the rule for missing days, which both take part in."
)


def state_parts(work: Work) -> Iterator[str]:
    """Yield the table of means by states and by readings, for each series that counts states."""
    table_rows = [
        table_row
        for table_row in COUNTED_STATES.read(work.counted_states)
        if table_row["population"] == work.population
    ]
    if not table_rows:
        return
    by_cell: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for table_row in table_rows:
        by_cell.setdefault((table_row["series"], table_row["cell"]), []).append(table_row)
    columns = (
        "series, cell",
        "days",
        "by readings",
        "by states",
        "difference",
        "smallest",
        "largest",
        "root mean square",
    )
    caption = "Means of days by their readings and by their states, kWh a home; states less readings, by day"
    yield table(caption, columns, [(", ".join(key), *_row(cell_rows)) for key, cell_rows in by_cell.items()])
    yield paragraph(_STATES_NOTE, "soft")


def _row(lines: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    differences = [line["states_kwh"] - line["readings_kwh"] for line in lines]
    mean_by_readings, mean_by_states = (
        sum(line[name] for line in lines) / len(lines) for name in ("readings_kwh", "states_kwh")
    )
    rms = math.sqrt(sum(difference**2 for difference in differences) / len(differences))
    return (
        f"{len(lines):,}",
        *map(
            format_number,
            (
                mean_by_readings,
                mean_by_states,
                sum(differences) / len(differences),
                min(differences),
                max(differences),
                rms,
            ),
        ),
    )
