"""Whatever the text of one household's day becomes, the sum of that day moves by at most the clamp, and no other day.

The whole way: files to store to DAYS to the sums that noise is added to. Lines of one household-day are replaced by
text of any kind, in every layout; the sums are compared with those of the sound files.
"""

# ruff: noqa: S311  (choices, not secrets)

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

import pytest

from agedp.compute.engine_settings import Engine
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.datasets.csv_lines import LONGEST_LINE
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.roster import read_roster
from agedp_data.series.mean import Mean
from tests.fuzz.test_input_files import HEADER

HOMES = ("M1", "M2", "M3")
DAYS = tuple(date(2013, 2, 3) + timedelta(days=i) for i in range(3))
CLAMP_WH = 20_000
SERIES = {"mean": Mean(statistic="mean", clamp_kwh=Decimal(20), missing_kwh=Decimal(5))}
NAMED = NamedColumns("id", "at", "iso", "start", "UTC", "UTC", "wh", "Wh", ("",))


def london(home, day):
    ends = [f"{day} {(i + 1) // 2:02d}:{(i + 1) % 2 * 30:02d}:00.0000000" for i in range(47)]
    return [f"{home},Std,{end}, 0.{i:02d} " for i, end in enumerate([*ends, f"{day + timedelta(days=1)} 00:00:00"])]


def long(home, day):
    return [f"{10 * i},{day}T{i // 2:02d}:{i % 2 * 30:02d}Z,{home}" for i in range(48)]


def ausgrid(home, day):
    cells = ",".join(f"0.{i:02d}" for i in range(48))
    return [f"{home},3,2076,{category},{day.day}/{day:%m/%Y},{cells}," for category in ("GC", "CL")]


LAYOUTS = {
    "london": ("LCLid,stdorToU,DateTime,KWH/hh (per half hour) ", london, ReadingRules()),
    "long": ("wh,at,id", long, ReadingRules(columns=NAMED)),
    "ausgrid": (HEADER, ausgrid, ReadingRules()),
}
ODD = [b'"', b'""', b"\x00", b"\x01", b"\t", b"\r", b"\n", b"\x0b", b"\x1a", b"\x1f", b"\x7f", b"\x85", b"\xff", b","]
ODD += [b'\n"', b'",', b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"-", b"x", b"nan"]


def spoilt(lines, way, choice):
    """Return other lines in the place of a day's: odd bytes, open quotes, an endless line, some lines less, or junk."""
    lines, number = list(lines), choice.randrange(len(lines))
    if way == 0:
        for _ in range(choice.choice([1, 3, 30])):
            number = choice.randrange(len(lines))
            at, more = choice.randrange(len(lines[number]) + 1), choice.randrange(2)
            lines[number] = lines[number][:at] + choice.choice(ODD) + lines[number][at + more :]
    elif way == 1:
        for number in choice.sample(range(len(lines)), choice.randrange(1, len(lines) + 1)):
            head, comma, tail = lines[number].rpartition(b",")
            lines[number] = head + comma + b'"' + tail
    elif way == 2:
        lines[number] += choice.choice([b"x", b'"', b"\x00", b",", b" "]) * choice.choice([LONGEST_LINE, 300_000])
    elif way == 3:
        del lines[number:]
    else:
        lines = [b"".join(choice.choices(ODD, k=choice.randrange(40))) for _ in range(choice.randrange(60))]
    return lines


def sums(folder, dataset, rules, data, chunk_bytes):
    """Return the true sums of the days, every row accounted for."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.csv").write_bytes(data)
    (folder / "roster.csv").write_text("household_id,from,to\n" + "".join(f"{home},2010-01-01,\n" for home in HOMES))
    store, engine = Store(folder / "store", dataset, rules), Engine("synchronous", 1, chunk_bytes)
    delivery = ingest(store, [str(folder / "in")], engine=engine, has_begun=True)
    assert delivery.unreadable == ()
    assert delivery.rows_read == data.count(b"\n") - 1 == delivery.rows_kept + sum(delivery.rejected.values())
    roster = read_roster(folder / "roster.csv")
    found = aggregate(store, delivery, roster, days=DAYS, series=SERIES)
    return [int(found[day, "mean"].exact.sum()) for day in DAYS]


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 300), marks=pytest.mark.long)])
@pytest.mark.parametrize("dataset", LAYOUTS)
def test_the_raw_text_of_a_day_moves_its_own_sum_by_at_most_the_clamp(dataset, seeds, tmp_path):
    header, write, rules = LAYOUTS[dataset]
    for seed in seeds:
        choice = random.Random(seed)
        lines = {(home, day): [line.encode() for line in write(home, day)] for home in HOMES for day in DAYS}
        home, day, chunk_bytes = choice.choice(HOMES), choice.choice(DAYS), choice.choice([1000, 2**20])
        found, changed = [], {**lines, (home, day): spoilt(lines[home, day], seed % 5, choice)}
        for name, texts in (("before", lines), ("after", changed)):
            data = b"\n".join([header.encode(), *(line for own in texts.values() for line in own)]) + b"\n"
            found.append(sums(tmp_path / str(seed) / name, dataset, rules, data, chunk_bytes))
        for each, before, after in zip(DAYS, *found, strict=True):
            assert abs(after - before) <= (CLAMP_WH if each == day else 0), (seed, home, day)
