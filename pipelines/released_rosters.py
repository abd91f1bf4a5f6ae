"""Who was counted on the days that are released: a roster may change for later days only.

    <confidential>/released_rosters.parquet     day, the group columns in use, a digest of who was in which group

Without the table (another machine, a restored backup) the number of households is compared with the ledger's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from agedp_data import tables
from agedp_data.errors import Refused
from agedp_data.ledger import Release
from agedp_data.roster import ALL, Roster
from pipelines import folders


def require_unchanged(path: Path, roster: Roster, rows: Sequence[Release]) -> None:
    """Compare the roster with that of every released day.

    Raises:
        Refused: the first released day on which it counts other households.
    """
    known = {line["day"]: line for line in folders.read_table(path).to_pylist()} if path.exists() else {}
    for row in rows:
        day = date.fromisoformat(row.day)
        if row.state != "released":
            continue
        if day in known:
            columns = json.loads(known[day]["columns"])
            same = set(columns) <= set(roster.groups) and _digest(roster, day, columns) == known[day]["digest"]
        else:
            same = row.cells != (ALL,) or row.households == (roster.households(day),)
        if not same:
            raise Refused(
                f"the roster counts other households on {row.day}, a day that is released; "
                "rows may be added or ended for later days only"
            )


def remember(path: Path, roster: Roster, rows: Iterable[Release], columns: Sequence[str]) -> None:
    """Keep who was counted on the days of these rows."""
    known = {line["day"]: line for line in folders.read_table(path).to_pylist()} if path.exists() else {}
    days = {date.fromisoformat(row.day) for row in rows if row.state == "released"} - set(known)
    if not days:
        return
    for day in days:
        known[day] = {"day": day, "columns": json.dumps(columns), "digest": _digest(roster, day, columns)}
    ordered = [known[day] for day in sorted(known)]
    names = tables.RELEASED_ROSTERS.names
    lines = {name: [line[name] for line in ordered] for name in names}
    folders.write_table(path, tables.columns(tables.RELEASED_ROSTERS, **lines))


def _digest(roster: Roster, day: date, columns: Sequence[str]) -> str:
    members = sorted(
        [roster.ids[roster.household[i]], *(roster.groups[column][i] for column in columns)]
        for i in roster.on(day).nonzero()[0]
    )
    return hashlib.sha256(json.dumps(members).encode()).hexdigest()
