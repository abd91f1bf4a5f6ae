"""COUNTED STATES -> what counting states instead of readings does to a mean, for the confidential report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agedp_data.pictures.page import paragraph, table
from agedp_data.pictures.scales import plain
from pipelines.notes.counted_states import COUNTED_STATES
from pipelines.work import Work

_STATES_NOTE = (
    "Where states are counted, a published mean is off by this beside its noise, and no published interval covers it. "
    "It is after the clamp and the rule for missing days, which both take part in."
)


def state_parts(work: Work) -> Iterator[str]:
    """Yield for each series that counts states how far its means are from those of the readings."""
    lines = [line for line in COUNTED_STATES.read(work.counted_states) if line["population"] == work.population]
    if not lines:
        return
    by_cell: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for line in lines:
        by_cell.setdefault((line["series"], line["cell"]), []).append(line)
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
    yield table(caption, columns, [(", ".join(key), *_row(own)) for key, own in by_cell.items()])
    yield paragraph(_STATES_NOTE, "soft")


def _row(lines: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    off = [line["states_kwh"] - line["readings_kwh"] for line in lines]
    read, counted = (sum(line[name] for line in lines) / len(lines) for name in ("readings_kwh", "states_kwh"))
    rms = math.sqrt(sum(one**2 for one in off) / len(off))
    return (f"{len(lines):,}", *map(plain, (read, counted, sum(off) / len(off), min(off), max(off), rms)))
