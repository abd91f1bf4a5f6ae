"""Synthetic households in the publishers' formats, with the publishers' defects, and their roster.

For tests, for `agedp sample` and for `agedp audit`. Every delivery comes with a `DeliveryAccount` of its exact
contents. The same arguments and seed give the same bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from agedp_data.datasets.synthetic.ausgrid import write_ausgrid
from agedp_data.datasets.synthetic.households import DeliveryAccount
from agedp_data.datasets.synthetic.london import write_london
from agedp_data.errors import RunFileError

__all__ = ["DeliveryAccount", "write_ausgrid", "write_london", "write_roster"]


def write_roster(
    path: Path, *, household_ids: Sequence[str], first_day: date, groups: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Write `household_id,from,to[,group columns]`: all households from one day on, with no end.

    `groups` gives one value per household for each group column.

    Raises:
        RunFileError: the number of values of a group column differs from the number of households.
    """
    columns = dict(groups or {})
    for name, values in columns.items():
        if len(values) != len(household_ids):
            raise RunFileError(f"group column {name!r} has {len(values)} values for {len(household_ids)} households")
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["household_id", "from", "to", *columns])
        for household, *values in zip(household_ids, *columns.values(), strict=True):
            writer.writerow([household, first_day.isoformat(), "", *values])
