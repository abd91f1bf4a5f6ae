"""NEM12: days of blocks, channels, qualities, damaged records; expectations are counted by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

import aemo_mdff_reader
import numpy as np
import pytest
from pydantic import ValidationError

from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.filesystem import list_input_files, read_lines, split_into_chunks
from agedp_data.datasets.layout import label_of
from agedp_data.datasets.nem12 import Nem12, Nem12Keys
from agedp_data.datasets.validation import ReadingRules, RejectionReason
from agedp_data.errors import InputError

NEM12, RULES = Nem12(), ReadingRules()
JANUARY_8 = 19730 * 48  # half-hours from 1970 to 2024-01-08
HALF_HOURS = [f"{number / 1000:.3f}" for number in range(1, 49)]  # 1 Wh, 2 Wh, ... 48 Wh
HEADER = "100,NEM12,202402010000,MDP1,RETAILER"


def block(household: str = "NMI1", suffix: str = "E1", serial: str = "S1", unit: str = "kWh", minutes: int = 30) -> str:
    return f"200,{household},E1B1Q1,1,{suffix},N1,{serial},{unit},{minutes},"


def day(values: Sequence[str] = HALF_HOURS, on: str = "20240108", after: str = ",A,,,20240109093000,") -> str:
    return f"300,{on},{','.join(values)}{after}"


def parse(*lines: str, rules: ReadingRules = RULES) -> list[ParsedChunk]:
    return list(NEM12.parse_batches(["\n".join([*lines, ""]).encode()], rules))


Kept = dict[tuple[str, int, int], int]


def kept(chunks: Iterable[ParsedChunk]) -> Kept:
    """Return thousandths of a Wh by household, label and half-hours since 1970; each occurs once."""
    found: Kept = {}
    for chunk in chunks:
        of = chunk.records
        for i in np.flatnonzero(of.reason == RejectionReason.KEPT).tolist():
            key = of.ids[of.household[i]], int(of.label[i]), int(of.time[i])
            assert key not in found
            found[key] = int(of.energy_wh[i, 0])
    return found


def energies(chunks: Iterable[ParsedChunk]) -> list[int]:
    """Return the energies of what is kept in watt-hours, in the order of the file."""
    values = list(kept(chunks).values())
    assert all(value % 1000 == 0 for value in values)
    return [value // 1000 for value in values]


def counts(chunks: Iterable[ParsedChunk]) -> dict[str, int]:
    """Return the rows by reason; every row has one."""
    found: Counter[str] = Counter()
    for chunk in chunks:
        assert len(chunk.records.reason) == chunk.rows_read == len(chunk.row)
        found.update(RejectionReason(code).name for code in chunk.records.reason.tolist())
        rejected = ~np.isin(chunk.records.reason, [RejectionReason.KEPT, RejectionReason.CATEGORY])
        assert np.flatnonzero(rejected).tolist() == chunk.rejected_row.tolist()
        assert len(chunk.rejected_text) == len(chunk.rejected_row) == len(chunk.names_half_hour)
    return dict(found)


def texts(chunks: Iterable[ParsedChunk]) -> list[str]:
    return [text for chunk in chunks for text in chunk.rejected_text]


def sound(chunks: Iterable[ParsedChunk]) -> int:
    """Return how many records without readings are noted."""
    return sum(sum(chunk.records.notes.values()) for chunk in chunks)


def test_the_day_ends_at_midnight_of_the_market():
    """Eastern Standard Time is ten hours before UTC, in summer as well: 48 half-hours on the days of clock changes."""
    assert NEM12.day_end(date(2024, 1, 8)).isoformat() == "2024-01-08T14:00:00+00:00"
    assert NEM12.day_end(date(2024, 7, 8)).isoformat() == "2024-07-08T14:00:00+00:00"
    assert NEM12.absent_slots(date(2024, 10, 6)) == NEM12.repeated_slots(date(2024, 4, 7)) == ()


@pytest.mark.parametrize(
    ("minutes", "unit", "cell", "wh"),
    [
        (30, "kWh", "0.143", 143),
        (30, "KWH", " 0.143 ", 143),
        (30, "Wh", "143", 143),
        (30, "MWh", "0.000143", 143),
        (15, "kWh", "0.1", 200),
        (5, "kWh", "0.025", 150),
        (5, "Wh", "0.5", 3),
    ],
)
def test_unit_and_interval_are_those_of_the_block(minutes, unit, cell, wh):
    chunks = parse(block(unit=unit, minutes=minutes), day([cell] * (1440 // minutes)))
    assert energies(chunks) == [wh] * 48


@pytest.mark.parametrize("part", range(6))
def test_a_half_hour_that_lacks_a_part_is_missing(part):
    values = ["0.001"] * 288
    values[12 + part] = ""
    chunks = parse(block(minutes=5), day(values))
    assert counts(chunks) == {"KEPT": 47, "MISSING": 1}
    cells = ",".join(values[12:18])
    assert texts(chunks) == [f"NMI1,E1,20240108,01:00,{cells}"]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("x", "TEXT"), ("0.1 kWh", "TEXT"), ("-0.1", "NEGATIVE"), ("50.001", "ABOVE_BOUND"), ("inf", "NOT_FINITE"),
        ("", "MISSING"), ("Null", "MISSING"),
    ],
)  # fmt: skip
def test_a_bad_cell_rejects_its_own_half_hour(cell, reason):
    chunks = parse(block(), day([*HALF_HOURS[:4], cell, *HALF_HOURS[5:]]), day(on="20240109"))
    assert counts(chunks) == {"KEPT": 95, reason: 1}
    assert texts(chunks) == [f"NMI1,E1,20240108,02:00,{cell}"]
    assert [chunk.names_half_hour.tolist() for chunk in chunks if len(chunk.rejected_row)] == [[True]]


def test_the_bound_of_five_minutes_is_a_sixth_of_that_of_a_half_hour():
    values = ["8.333"] * 144 + ["8.334"] * 144  # 50 kWh / 6 = 8.3333... kWh
    assert counts(parse(block(minutes=5), day(values))) == {"KEPT": 24, "ABOVE_BOUND": 24}


@pytest.mark.parametrize("quality", ["A", "S14", "E52", "F", "V", "", "a"])
def test_every_quality_but_null_is_kept(quality):
    assert counts(parse(block(), day(after=f",{quality},,,,"))) == {"KEPT": 48}


def test_quality_null_is_a_missing_day():
    chunks = parse(block(), day(["0"] * 48, after=",N,,,,"), day(on="20240109"))
    assert counts(chunks) == {"KEPT": 48, "MISSING": 48}
    assert energies(chunks) == list(range(1, 49))


@pytest.mark.parametrize(
    ("minutes", "events", "missing"),
    [
        (30, ["400,1,4,A,,", "400,5,6,N,,", "400,7,48,S14,32,"], [4, 5]),
        (30, ["400,1,48,N12,,"], list(range(48))),
        (5, ["400,1,12,E52,,", "400,13,13,N,,", "400,14,288,A,,"], [2]),  # minutes 60 to 65
        (5, ["400,1,17,A,,", "400,18,19,N,,", "400,20,288,A,,"], [2, 3]),
        (30, [], []),
    ],
)
def test_records_400_tell_which_intervals_of_a_variable_day_are_null(minutes, events, missing):
    values = ["0.012"] * (1440 // minutes)
    chunks = parse(block(minutes=minutes), day(values, after=",V,,,,"), *events, day(values, on="20240109"))
    present = {time - JANUARY_8 for _, _, time in kept(chunks)}
    assert present == set(range(96)) - set(missing)
    assert sound(chunks) == 1 + len(events)


@pytest.mark.parametrize("event", ["400,5,4,N,,", "400,1,49,N,,", "400,x,4,N,,", "400,1", "400,1,4,N\x00,,"])
def test_a_damaged_400_record_rejects_its_day(event):
    """Nobody can tell which of its intervals are missing."""
    chunks = parse(block(), day(on="20240107"), day(after=",V,,,,"), event, day(on="20240109"))
    assert counts(chunks) == {"KEPT": 96, "FIELDS": 48 + ("\x00" not in event)} | (
        {"LINE": 1} if "\x00" in event else {}
    )
    assert texts(chunks)[:2] == [day(after=",V,,,,"), ""]
    assert texts(chunks)[-1] == event


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (day(on="20240231"), "DATE"),
        (day(on="2024-01-08"), "DATE"),
        (day(HALF_HOURS[:-1]), "FIELDS"),
        (day([*HALF_HOURS, "0.049"]), "FIELDS"),
        (day(["0.001"] * 96), "FIELDS"),
        (day(after=",A,,,,,x"), "FIELDS"),
        (day(HALF_HOURS[:9], after=""), "FIELDS"),
        (day([*HALF_HOURS[:-1], "0.0\x0048"]), "LINE"),
        (day([*HALF_HOURS[:-1], "0.0\r48"]), "LINE"),
        (day(['"0.1', *HALF_HOURS[1:]]), "LINE"),
    ],
)
def test_a_bad_day_rejects_its_own_readings(line, reason):
    chunks = parse(block(), day(on="20240107"), line, day(on="20240109"), block("B"), day())
    assert counts(chunks) == {"KEPT": 144, reason: 48}
    assert texts(chunks) == [line, *[""] * 47]
    dated = "20240108" in line
    assert [flag for chunk in chunks for flag in chunk.names_half_hour.tolist()] == [dated] * 48


@pytest.mark.parametrize(
    "line",
    [
        "2x0,B,E1,1,E1,N1,S1,kWh,30,",
        "200,B,E1,1,E1,N1,S1,kWh,10,",
        "200,B,E1,1,E1,N1,S1,kWx,30,",
        "200,,E1,1,E1,N1,S1,kWh,30,",
        "200,B,E1,1,,N1,S1,kWh,30,",
        "200,B,E1",
        "300,B,E1,1,E1,N1,S1,kWh,30,",
        "x",
        "200,B,E1,1,E1,N1,S1,kWh,30\x00,",
        "300,20240109,0.1,200,B,E1,1,E1,N1,S1,kWh,30,",
        "400,1,48,A,,x200,B,E1,1,E1,N1,S1,kWh,30,",
        "500,O,,,200,B,E1,1,E1,N1,S1,kWh,30,",
    ],
)
def test_days_after_a_damaged_200_record_belong_to_nobody_until_the_next(line):
    chunks = parse(block("A"), day(), line, day(on="20240110"), day(on="20240111"), block("C"), day())
    assert {name for name, _, _ in kept(chunks)} == {"A", "C"}
    assert counts(chunks)["KEPT"] == 96
    assert counts(chunks)["HOUSEHOLD"] >= 96
    assert not any(flag for chunk in chunks for flag in chunk.names_half_hour.tolist())


def test_days_before_any_200_record_and_after_900_belong_to_nobody():
    chunks = parse(day(), block(), day(), "900", day(on="20240109"))
    assert counts(chunks) == {"KEPT": 48, "HOUSEHOLD": 96}


ALL = [
    *(line for suffix in ("E1", "E2", "B1", "Q1") for line in (block(suffix=suffix), day())),
    block(suffix="E1", serial="S2"), day(), block(suffix="K1", unit="kVArh", minutes=15), day(["1"] * 96),
]  # fmt: skip


@pytest.mark.parametrize(
    ("suffixes", "labels"),
    [
        (("E*",), ["E1 S1", "E2 S1", "E1 S2"]),
        (("E1",), ["E1 S1", "E1 S2"]),
        (("E2", "E3"), ["E2 S1"]),
        (("B*",), ["B1 S1"]),
        (("K1",), []),  # reactive: no energy
    ],
)
def test_channels_are_chosen_by_suffix_and_told_apart_by_meter(suffixes, labels):
    chunks = parse(*ALL, rules=ReadingRules(layout_keys=Nem12Keys(suffixes=suffixes)))
    assert {label for _, label, _ in kept(chunks)} == {label_of(text) for text in labels}
    assert counts(chunks).get("KEPT", 0) == 48 * len(labels)
    assert counts(chunks)["CATEGORY"] == 48 * (6 - len(labels))
    assert texts(chunks) == []


@pytest.mark.parametrize("suffixes", [("E1", "E1"), ("E*", "B*"), ("e1",), ("E",), ("E**",)])
def test_suffixes_that_do_not_add_up_are_refused(suffixes):
    with pytest.raises(ValidationError):
        Nem12Keys(suffixes=suffixes)


def test_a_channel_that_nobody_asks_for_names_nobody_whatever_its_lines_contain():
    chunks = parse(block("A", suffix="B1"), day(on="x"), day(HALF_HOURS[:5]), day(["x"] * 48))
    assert {name for chunk in chunks for name in chunk.records.ids} == set()
    assert set(counts(chunks)) == {"CATEGORY"}


def test_line_ends_of_windows_and_quoted_cells_are_read_alike():
    lines = [HEADER, block(), day(after=",V,,,,"), "400,1,2,N,,", day(on="20240109"), "900"]
    expected = kept(parse(*lines))
    assert kept(parse(*(f"{line}\r" for line in lines))) == expected
    quoted = [",".join(f'"{cell}"' for cell in line.split(",")) for line in lines]
    assert kept(parse(*quoted)) == expected
    assert kept(NEM12.parse_batches((f"{line}\n".encode() for line in quoted), RULES)) == expected


@pytest.mark.parametrize(
    ("lines", "skipped"),
    [
        ([HEADER, block()], 1),
        (['"100","NEM12","202402010000"'], 1),
        ([block(), day()], 0),
        (["title", "", block()], 0),
    ],
)
def test_a_file_is_recognised_by_its_100_record_or_its_first_200_record(lines, skipped):
    assert NEM12.recognise(lines).lines == skipped


@pytest.mark.parametrize("lines", [[], [""], ["id,at,kwh", "200,2024-01-08 00:30,0.1"], ["100,NEM99,x"]])
def test_another_table_is_no_nem12(lines):
    assert NEM12.recognise(lines) is None


def test_registers_are_refused():
    with pytest.raises(InputError, match="NEM13"):
        NEM12.recognise(["100,NEM13,202402010000,MDP1,RETAILER"])


SOUND = [
    HEADER,
    *(
        line
        for number in range(6)
        for line in (
            block(f"NMI{number}", suffix="B1" if number == 3 else "E1", minutes=15 if number == 2 else 30),
            day(HALF_HOURS * (1 + (number == 2)), after=",V,,,20240109093000,"),
            "400,1,2,A,,",
            "400,3,3,N,,",
            "500,O,S01009,20240109093000,",
            day(HALF_HOURS * (1 + (number == 2)), on="20240109"),
        )
    ),
    "900",
]
DATA = "\n".join([*SOUND, ""]).encode()
FILLERS = [b"\x00", b'"', b"\n", b",", b"x", b"2", b"", b"\r", b"\xff", b"200,", b"\n200,", b"\n300,", b"9" * 70_000]


def damaged(of: random.Random, start: int = 0, stop: int = len(DATA)) -> bytes:
    """Return the file with a few bytes between two positions replaced, removed or inserted."""
    found, end = bytearray(DATA), len(DATA) - stop
    for _ in range(of.randint(1, 6)):
        position = of.randrange(start, len(found) - end)
        found[position : position + of.randint(0, min(3, len(found) - end - position))] = of.choice(FILLERS)
    return bytes(found)


def test_no_bytes_are_a_traceback_and_no_cut_changes_anything(tmp_path):
    """Every row has one reason; all lines are days, rejected, or noted, in whatever batches they are parsed."""
    of = random.Random(12)  # noqa: S311 - made-up files
    for _ in range(30):
        data = damaged(of)
        whole = list(NEM12.parse_batches([data], RULES))
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        rows = sum(counts(whole).values())
        assert (rows - (lines - sound(whole))) % 47 == 0  # a day has 47 rows more than lines
        cuts = [i + 1 for i, byte in enumerate(data) if byte == 10 and of.random() < 0.5]
        batches = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if b > a]
        assert totals(NEM12.parse_batches(batches, RULES)) == totals(whole)
        (tmp_path / "a.csv").write_bytes(data)
        (source,) = list_input_files([str(tmp_path / "a.csv")]).sources
        chunks = split_into_chunks(source, start=0, chunk_bytes=of.choice([1, 500, 5000]), block_start=b"\n200,")
        assert all(data[chunk.start :].startswith(b"200,") for chunk in chunks[1:])
        parts = (NEM12.parse_batches(read_lines(chunk, batch_bytes=700), RULES) for chunk in chunks)
        assert totals(found for part in parts for found in part) == totals(whole)


def totals(chunks: Iterable[ParsedChunk]) -> tuple[list[tuple], list[str], int]:
    """Return all records, the texts of the rejected ones, and the number of noted lines."""
    rows, found, number = [], [], 0
    for chunk in chunks:
        of = chunk.records
        names = np.array([*of.ids, ""], object)[of.household]
        columns = (names, of.label, of.time, of.energy_wh[:, 0], of.reason)
        rows += list(zip(*(column.tolist() for column in columns), strict=True))
        found += chunk.rejected_text
        number += sum(of.notes.values())
    return rows, found, number


def test_no_damage_within_one_block_moves_a_reading_of_another_household():
    """The unit of rejection is a block, from its 200 record to its last line end; losing that loses the next block."""
    of = random.Random(13)  # noqa: S311 - made-up files
    expected = kept(NEM12.parse_batches([DATA], RULES))
    households = {name for name, _, _ in expected}
    start, stop = DATA.index(b"NMI1,") + 4, DATA.index(b"200,NMI2,")  # another id would be another household's block
    for position in {*(of.randrange(start, stop) for _ in range(80)), stop - 1}:
        data = DATA[:position] + bytes([of.randrange(256)]) + DATA[position + 1 :]
        found = {key: wh for key, wh in kept(NEM12.parse_batches([data], RULES)).items() if key[0] in households}
        for name in households - {"NMI1"}:
            before, after = ({key: wh for key, wh in of.items() if key[0] == name} for of in (expected, found))
            assert after == before or (name == "NMI2" and not after)


def test_the_public_reader_reads_the_same(tmp_path: Path):
    of = random.Random(14)  # noqa: S311 - made-up files
    lines, numbers = [HEADER], range(1, 4)
    for number in numbers:
        for suffix, minutes in (("E1", 5 * number), ("E2", 30)):
            if minutes in (5, 15, 30):
                lines.append(block(f"NMI{number:07}", suffix=suffix, minutes=minutes))
                lines += [
                    day([f"{of.random():.3f}" for _ in range(1440 // minutes)], on=f"202401{on:02}") for on in (8, 9)
                ]
    path = tmp_path / "nem12.csv"
    path.write_text("\n".join([*lines, "900", ""]))
    expected: Counter[tuple[str, int, int]] = Counter()
    for reading in aemo_mdff_reader.parse(str(path)):
        at = reading.interval_start
        time = (at.date() - date(1970, 1, 1)).days * 48 + (at.hour * 60 + at.minute) // 30
        expected[reading.nmi, label_of(f"{reading.nmi_suffix} S1"), time] += round(reading.value * 1_000_000)
    assert kept(parse(*lines, "900")) == dict(expected)
