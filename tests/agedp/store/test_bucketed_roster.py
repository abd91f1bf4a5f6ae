"""The roster by bucket: the buckets hold each row once, and a damaged file is written again by the next run."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from agedp.local_files.atomic_files import FolderRemoved
from agedp.store.bucketed_roster import write_bucketed_roster
from agedp.store.store import bucket_numbers
from agedp_data.roster import Roster, RosterRows

FIRST = date(2013, 1, 1)


def roster_of(rows: list[tuple[str, int, int, str]]) -> Roster:
    """Return a roster of (household, first and last day from FIRST on, group)."""
    ids = tuple(sorted({household for household, *_ in rows}))
    start = (FIRST - date(1970, 1, 1)).days
    household, first, last = (np.array(column, np.int64) for column in zip(
        *((ids.index(household), start + first, start + last) for household, first, last, _ in rows), strict=True
    ))  # fmt: skip
    return Roster(RosterRows(ids, household, first, last, {"area": tuple(group for *_, group in rows)}))


def some_rows(count: int) -> list[tuple[str, int, int, str]]:
    draw = np.random.default_rng(4)
    rows = []
    for i in range(count):
        first, length = (int(value) for value in draw.integers(0, 10, 2))
        rows.append((f"household é{i}", first, first + length, "nsw"[i % 3]))
        if i % 4 == 0:
            rows.append((f"household é{i}", first + length + 2, 40, "east"))
    return rows


@pytest.mark.parametrize("damage", ["one bit", "missing"])
def test_a_damaged_bucket_is_written_again_by_the_next_run(tmp_path, damage):
    roster = roster_of(some_rows(5))
    stored = write_bucketed_roster(tmp_path, roster, 2)
    path = stored.folder / "bucket=001.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.unlink()
    if damage == "one bit":
        path.write_bytes(content)
    with pytest.raises(FolderRemoved, match="run again"):
        stored.bucket(1)
    assert set(write_bucketed_roster(tmp_path, roster, 2).bucket(1).ids) == {
        household
        for household, number in zip(roster.rows.ids, bucket_numbers(roster.rows.ids, 2), strict=True)
        if number == 1
    }
