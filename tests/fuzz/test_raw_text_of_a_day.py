"""Whatever the text of one household's day becomes, the sum of that day moves by at most the clamp, and no other day.

The whole way: files to store to DAYS to the sums that noise is added to. Lines of one household-day are replaced by
text of any kind, in every layout; the sums are compared with those of the sound files.
"""

# ruff: noqa: S311  (choices, not secrets)

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from agedp.compute.engine_settings import Engine
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.datasets.csv_lines import LONGEST_LINE
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.roster import read_roster
from agedp_data.series.series import Mean

HOMES = ("M1", "M2", "M3")
DAYS = tuple(date(2013, 2, 3) + timedelta(days=i) for i in range(3))
LABELS = ",".join([*(f"{m // 60}:{m % 60:02d}" for m in range(30, 1440, 30)), "0:00"])
CLAMP_WH = 20_000
SERIES = {"mean": Mean(statistic="mean", clamp_kwh=Decimal(20), missing_kwh=Decimal(5))}
NAMED = NamedColumns("id", "at", "iso", "start", "UTC", "UTC", "wh", "Wh", ("",))


@dataclass(frozen=True)
class Layout:
    """How a dataset writes the lines of one household-day."""

    dataset: str
    header: str
    lines: Callable[[str, date], list[str]]
    rules: ReadingRules = field(default_factory=ReadingRules)


def _london(home: str, day: date) -> list[str]:
    ends = [f"{day} {(i + 1) // 2:02d}:{(i + 1) % 2 * 30:02d}:00.0000000" for i in range(47)]
    return [f"{home},Std,{end}, 0.{i:02d} " for i, end in enumerate([*ends, f"{day + timedelta(days=1)} 00:00:00"])]


def _long(home: str, day: date) -> list[str]:
    return [f"{10 * i},{day}T{i // 2:02d}:{i % 2 * 30:02d}Z,{home}" for i in range(48)]


def _ausgrid(home: str, day: date) -> list[str]:
    cells = ",".join(f"0.{i:02d}" for i in range(48))
    return [f"{home},3,2076,{category},{day.day}/{day:%m/%Y},{cells}," for category in ("GC", "CL")]


LAYOUTS = {
    "london": Layout("london", "LCLid,stdorToU,DateTime,KWH/hh (per half hour) ", _london),
    "long": Layout("long", "wh,at,id", _long, ReadingRules(columns=NAMED)),
    "ausgrid": Layout(
        "ausgrid",
        f"Customer,Generator Capacity,Postcode,Consumption Category,date,{LABELS},Row Quality",
        _ausgrid,
    ),
}
ODD = [b'"', b'""', b"\x00", b"\x01", b"\t", b"\r", b"\n", b"\x0b", b"\x1a", b"\x1f", b"\x7f", b"\x85", b"\xff", b","]
ODD += [b'\n"', b'",', b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"-", b"x", b"nan"]


def _odd_bytes(lines: list[bytes], choice: random.Random) -> None:
    for _ in range(choice.choice([1, 3, 30])):
        number = choice.randrange(len(lines))
        at, more = choice.randrange(len(lines[number]) + 1), choice.randrange(2)
        lines[number] = lines[number][:at] + choice.choice(ODD) + lines[number][at + more :]


def _open_quotes(lines: list[bytes], choice: random.Random) -> None:
    for number in choice.sample(range(len(lines)), choice.randrange(1, len(lines) + 1)):
        head, comma, tail = lines[number].rpartition(b",")
        lines[number] = head + comma + b'"' + tail


def _endless(lines: list[bytes], choice: random.Random) -> None:
    number = choice.randrange(len(lines))
    lines[number] += choice.choice([b"x", b'"', b"\x00", b",", b" "]) * choice.choice([LONGEST_LINE, 300_000])


def _nothing(lines: list[bytes], choice: random.Random) -> None:
    del lines[choice.randrange(len(lines)) :]


def _junk(lines: list[bytes], choice: random.Random) -> None:
    lines[:] = [b"".join(choice.choices(ODD, k=choice.randrange(40))) for _ in range(choice.randrange(60))]


EDITS = (_odd_bytes, _open_quotes, _endless, _nothing, _junk)


def _sums(folder: Path, layout: Layout, data: bytes, block_bytes: int) -> dict[date, int]:
    """The true sums of the days, and every row accounted for."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.csv").write_bytes(data)
    (folder / "roster.csv").write_text("household_id,from,to\n" + "".join(f"{home},2010-01-01,\n" for home in HOMES))
    store = Store(folder / "store", layout.dataset, layout.rules)
    engine = Engine("synchronous", 1, block_bytes)
    delivery = ingest(store, [str(folder / "in")], engine=engine, has_begun=True)
    assert delivery.unreadable == ()
    assert delivery.rows_read == data.count(b"\n") - 1 == delivery.rows_kept + sum(delivery.rejected.values())
    roster, path = read_roster(folder / "roster.csv"), folder / "sums.parquet"
    found = aggregate(store, delivery, roster, days=DAYS, series=SERIES, path=path)
    return {day: found[day, "mean"].sum_wh["all"] for day in DAYS}


def _check(folder: Path, layout: Layout, seed: int) -> None:
    choice = random.Random(seed)
    home, day = choice.choice(HOMES), choice.choice(DAYS)
    households = [(each, date_) for each in HOMES for date_ in DAYS]
    lines = {key: [line.encode() for line in layout.lines(*key)] for key in households}
    block_bytes = choice.choice([1000, 2**20])
    folders = iter((folder / "before", folder / "after"))

    def sums() -> dict[date, int]:
        text = [layout.header.encode(), *(line for key in households for line in lines[key])]
        return _sums(next(folders), layout, b"\n".join(text) + b"\n", block_bytes)

    before = sums()
    EDITS[seed % len(EDITS)](lines[home, day], choice)
    after = sums()
    for each in DAYS:
        assert abs(after[each] - before[each]) <= (CLAMP_WH if each == day else 0), (home, day, lines[home, day])


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 300), marks=pytest.mark.long)])
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_raw_text_of_a_day_moves_its_own_sum_by_at_most_the_clamp(name: str, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        _check(tmp_path / str(seed), LAYOUTS[name], seed)
