"""Files -> store: refused with one line, or every row accounted for; the same whatever the blocks and the order."""

from __future__ import annotations

import gzip
import shutil
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.stages import ingest as reading
from agedp.stages.ingest import ingest
from agedp.store import file_identity
from agedp.store.daily_totals import read_daily_totals
from agedp.store.data_quality import find_conflicting_rows
from agedp.store.month_reader import load_month_readings
from agedp.store.store import FileOrder, Store, order_contents
from agedp_data.datasets import filesystem
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import REFUSED_INPUT, InputError, PreflightFailed

HEADER = b"LCLid,DateTime,KWH/hh (per half hour)\n"
ONE = Engine("synchronous", 1)
DUPLICATE, CONFLICT = "exact duplicate", "disagrees with another row about the same reading"
FIELDS, MISSING, TEXT = "wrong number of fields", "no reading (Null or empty)", "text in a number"


def line(household: str, step: int, kwh: str = "0.100") -> bytes:
    """Return the row of the half-hour that ends `step` half-hours after 2013-01-30."""
    return f"{household},{datetime(2013, 1, 30) + timedelta(minutes=30 * step)},{kwh}\n".encode()


def write(folder: Path, **contents: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}.csv").write_bytes(content)
    return folder


def read_all(folder: Path, engine: Engine = ONE, *, has_begun: bool = False) -> tuple[Store, Delivery]:
    store = Store(folder.parent / f"store-{engine.scheduler}-{engine.chunk_bytes}", "london", ReadingRules())
    return store, ingest(store, [str(folder)], engine=engine, has_begun=has_begun)


def told(store: Store, delivery: Delivery) -> dict[tuple[str, int], int]:
    """Return the readings of a delivery: Wh by household and half-hour of the epoch."""
    found: dict[tuple[str, int], int] = {}
    for month in delivery.months:
        of = load_month_readings(store, month, delivery.contents)
        triples = zip(of.household.tolist(), of.time.tolist(), of.energy_wh.tolist(), strict=True)
        found |= {(of.ids[code], time): wh for code, time, wh in triples}
    return found


def quality_of(store: Store) -> list[dict[str, Any]]:
    return pq.read_table(store.folder.parent / "quality.parquet").to_pylist()


REFUSED = {
    "headerless": (line("MAC000002", 1, "0.987"), 'its columns are not those of dataset "london": they lack'),
    "header": (b"LCLid,When,kWh\nMAC000002,x,0.987\n", "its columns are not those of dataset"),
    "us": (HEADER + b"MAC000002,02/28/2013 00:30:00,0.987\nx\n", REFUSED_INPUT),
    "returns": ((HEADER + line("MAC000002", 1)).replace(b"\n", b"\r"), "its lines end in carriage returns alone"),
    "endless": (HEADER.strip() + b" " * 2**17 + b"\n", "its columns are not those of dataset"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x00MAC000002" + HEADER, "is binary, not CSV"),
    "utf16": ((HEADER + line("MAC000002", 1)).decode().encode("utf-16"), "is UTF-16; save it as UTF-8"),
    "utf16le": ((HEADER + line("MAC000002", 1)).decode().encode("utf-16-le"), "is UTF-16; save it as UTF-8"),
    "semicolons": ((HEADER + line("MAC000002", 1)).replace(b",", b";"), "its columns are separated by semicolons"),
    "tabs": ((HEADER + line("MAC000002", 1)).replace(b",", b"\t"), "its columns are separated by tabs"),
    "sep": (
        b"sep=,\n" + HEADER + line("MAC000002", 1) * 4,
        "its first line is sep=, as Excel writes it, and the header is",
    ),
    "before": (
        b"Report\n\n" + HEADER + line("MAC000002", 1) * 4,
        "the header is line 3, after 2 other lines; remove the",
    ),
    "blanks": (b"\n" * 2**16 + HEADER, "its columns are not those of dataset"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_unreadable_file_stops_the_first_run_alone(tmp_path: Path, name: str) -> None:
    content, words = REFUSED[name]
    folder = write(tmp_path / "in", a=HEADER + line("MAC1", 1), **{f"MAC000002-{name}": content})
    with pytest.raises(InputError) as caught:
        read_all(folder)
    assert str(caught.value).startswith(words if name == "us" else f"input 1 of 2: {words}")
    assert "\n" not in caught.value.private
    assert caught.value.private.startswith(f"{folder}/MAC000002-{name}.csv: ")
    assert not any(secret in str(caught.value) for secret in ("MAC000002", "0.987", str(folder)))
    assert b"MAC000002" not in b"".join(path.read_bytes() for path in tmp_path.glob("store*/**/*.*"))
    assert list(tmp_path.glob("store*/files/*")) == []
    store, delivery = read_all(folder, has_begun=True)
    rows = content.count(b"\n") - 1 if name == "us" else 0  # rows without a date are rejected rows
    assert len(delivery.unreadable) == (name != "us")
    assert (delivery.rows_read, delivery.rows_kept) == (1 + rows, 1)
    assert list(told(store, delivery).values()) == [100]
    notes = [row["note"] for row in quality_of(store) if row["note"].startswith("cannot be understood, set apart as a")]
    assert [words in note for note in notes] == [True] * (name != "us")


@pytest.mark.parametrize("stamp", ["2013-01-{}", "{}/01/2013", "2013-01-{} 00:00:00", "2013-01-{} 24:00"])
def test_daily_readings_are_refused_before_a_first_release(tmp_path: Path, stamp: str) -> None:
    """A date alone is a midnight, but a file of midnights alone has no half-hours."""
    rows = b"".join(f"{home},{stamp.format(day)},9.5\n".encode() for home in "AB" for day in range(10, 30))
    folder = write(tmp_path / "in", a=HEADER + rows)
    with pytest.raises(PreflightFailed) as refusal:
        read_all(folder)
    assert "readings are 1440 minutes apart, not 30" in refusal.value.private
    assert read_all(folder, has_begun=True)[1].rows_kept == 40


@pytest.mark.parametrize("cut", [-1, 30])
def test_a_packed_file_that_is_cut_off_waits_for_its_repair(tmp_path: Path, cut: int) -> None:
    folder = write(tmp_path / "in", a=HEADER + line("MAC1", 1))
    packed = gzip.compress(HEADER + b"".join(line("MAC1", i, f"0.{i * 7919 % 1000:03d}") for i in range(2, 2000)))
    (folder / "b.csv.gz").write_bytes(packed[:cut])
    with pytest.raises(InputError, match=r"^input 2 of 2: the archive is cut off or damaged; fetch it again$"):
        read_all(folder)
    assert len(told(*read_all(folder, has_begun=True))) == 1
    (folder / "b.csv.gz").write_bytes(packed)
    assert len(told(*read_all(folder, has_begun=True))) == 1999


@pytest.mark.parametrize("when", ["open_file", "parse_lines", "deduplicate_months"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    folder = write(tmp_path / "in", a=HEADER + line("MAC1", 1))
    module = reading.file_identity if when == "open_file" else reading
    done = getattr(module, when)

    def change(*args: object, **kwargs: object) -> object:
        with (folder / "a.csv").open("ab") as stream:
            stream.write(line("MAC1", 2))
        return done(*args, **kwargs)

    monkeypatch.setattr(module, when, change)
    if when == "deduplicate_months":  # the file was whole in the store by then
        assert read_all(folder)[1].rows_read == 1
        return
    with pytest.raises(InputError, match=r"^input 1 of 1: changed while it was read"):
        read_all(folder)
    assert list(tmp_path.glob("store*/**/*.*")) == []


def test_empty_header_only_and_repeated_files_are_counted(tmp_path: Path) -> None:
    bom = b"\xef\xbb\xbf"
    row = bom + HEADER + line("M", 1)
    contents = {"a": b"", "b": bom, "c": b"\r\n \n", "d": HEADER, "e": HEADER.rstrip(), "f": row, "g": row}
    store, delivery = read_all(write(tmp_path / "in", **contents))
    assert (delivery.files, delivery.rows_read, delivery.rows_kept, delivery.rejected) == (7, 1, 1, {})
    quality = quality_of(store)
    notes = {row["input"][-5:]: row["note"] for row in quality}
    assert notes.pop("g.csv") == "same bytes as an earlier input, ignored"
    assert notes == {f"{name}.csv": "empty" if name in "abc" else "extract" for name in "abcdef"}


def test_duplicates_and_conflicts_are_counted_file_by_file(tmp_path: Path) -> None:
    a = [line("A", 1), line("A", 2), line("A", 2), line("A", 3), line("A", 3, "0.2"), line("A", 4), b"A\n"]
    b = [line("A", 5), line("A", 4, "0.2"), line("A", 1, " 0.1 "), line("B", 1, "Null"), line("B", 2, "x")]
    folder = write(tmp_path / "in", a=HEADER + b"".join(a), b=HEADER + b"".join(b))
    store, delivery = read_all(folder)
    assert (delivery.rows_read, delivery.rows_kept) == (12, 3)
    assert delivery.rejected == {DUPLICATE: 2, CONFLICT: 4, FIELDS: 1, MISSING: 1, TEXT: 1}
    start = (date(2013, 1, 30) - date(1970, 1, 1)).days * 48
    assert told(store, delivery) == {("A", start + slot): 100 for slot in (0, 1, 4)}
    quality = quality_of(store)
    by_file = {name: {r["what"]: r["rows"] for r in quality if r["input"].endswith(f"{name}.csv")} for name in "ab"}
    assert by_file == {
        "a": {"rows read": 7, "kept": 2, DUPLICATE: 1, CONFLICT: 3, FIELDS: 1},
        "b": {"rows read": 5, "kept": 1, DUPLICATE: 1, CONFLICT: 1, MISSING: 1, TEXT: 1},
    }
    late = pq.read_table(store.folder.parent / "quarantine_settled.parquet").to_pylist()
    assert sorted((delivery.contents.index(row["content"]), row["row"], row["reason"]) for row in late) == [
        (0, 2, DUPLICATE), (0, 3, CONFLICT), (0, 4, CONFLICT), (0, 5, CONFLICT), (1, 1, CONFLICT), (1, 2, DUPLICATE)
    ]  # fmt: skip
    texts = pq.read_table(store.folder / "quarantine" / f"{delivery.contents[0]}-0.parquet").to_pylist()
    assert [(row["row"], row["reason"], row["text"]) for row in texts] == [(6, FIELDS, "A")]


def test_a_rejected_row_has_its_number_in_the_file_whatever_its_part(tmp_path: Path) -> None:
    rows = [line("A", 1 + number, "x" if number in (1, 18) else "0.1") for number in range(20)]
    folder = write(tmp_path / "in", a=HEADER + b"".join(rows))
    store, _ = read_all(folder, Engine("synchronous", 1, 64))
    paths = sorted(store.folder.glob("quarantine/month=*/*.parquet"))
    assert len(paths) == 2  # of two parts
    assert [row["row"] for path in paths for row in pq.read_table(path).to_pylist()] == [1, 18]


def test_conflicting_rows_lose_their_own_half_hours_whatever_their_part(tmp_path: Path) -> None:
    rows = [line("A", 1 + number) for number in range(20)] + [line("A", 19, "0.2")]
    folder = write(tmp_path / "in", a=HEADER + b"".join(rows), b=HEADER + line("A", 3, "0.2"))
    store, delivery = read_all(folder, Engine("synchronous", 1, 64))
    assert delivery.rejected == {CONFLICT: 4}
    found = find_conflicting_rows(store, "2013-01", delivery.contents, {"A": 0})
    start = (date(2013, 1, 30) - date(1970, 1, 1)).days * 48
    assert (found.time - start).tolist() == [2, 18]
    assert found.in_one_file.tolist() == [False, True]
    assert find_conflicting_rows(store, "2013-01", delivery.contents, {"B": 0}).time.tolist() == []


def test_a_file_that_comes_again_under_a_later_name_keeps_its_place() -> None:
    store = Store(Path("store"), "london", ReadingRules(), FileOrder("name", keeps_unlisted=True))
    places = [("first", "9.csv", 5), ("corrected", "10.csv", 6), ("first", "11.csv", 7)]
    assert order_contents(places, store.order) == ("first", "corrected")
    assert order_contents(places[1:], store.order) == ("corrected", "first")  # nothing is known of an earlier place


QUIRKS = [line("B", i, f" 0.{i:03d} ") for i in (3, 1, 2, 60, 100)]
QUIRKS += [line("A", 1), line("A", 1), b"x\n", b"caf\xe9,y,z\n"]
QUIRKS += [b'"B,""1""",2013-01-30 00:30:00,1\n', b'"B,""1""",2013-01-30 00:30:00,2\n', line("C", 9, "Null")]


STRAY = [b'Z",2013-01-30 01:00:00,1\n', b'"Z,2013-01-30 01:00:00,1\n', b'Z,"2013-01-30 01:00:00",1"\n', b'"Z" ,"2,\n']


POOL = [*QUIRKS, *STRAY, line("A", 1, "0.2"), line("A", 7, "-1"), line("E", -5000), b"\n"]
POOL += [b"A,2013-02-30 01:00:00,1\n"]
piece = st.sampled_from([b"", b'"', b"\n", b",", b"\xff"])
changes = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), piece), max_size=3)


files_of = st.lists(st.tuples(st.lists(st.sampled_from(POOL), max_size=8), changes), min_size=1, max_size=2)


@given(files_of)
@settings(max_examples=25, deadline=None)
def test_random_files_are_accounted_to_the_row(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[list[bytes], list[tuple[float, int, bytes]]]]
) -> None:
    folder = tmp_path_factory.mktemp("random")
    rows = 0
    contents = set()
    for number, (lines, mutations) in enumerate(found):
        data = b"".join(lines)
        for where, gone, piece in mutations:
            at = int(where * len(data))
            data = data[:at] + piece + data[at + gone :]
        write(folder / "in", **{f"f{number}": HEADER + data})
        if data not in contents:
            rows += data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
        contents.add(data)
    said = []
    for engine in (Engine("synchronous", 1, 1), Engine("threads", 2, 100), Engine("synchronous", 1, 2**20)):
        store, delivery = read_all(folder / "in", engine, has_begun=True)
        assert delivery.rows_read == rows == delivery.rows_kept + sum(delivery.rejected.values())
        said.append((delivery, told(store, delivery)))
        assert len(said[-1][1]) == delivery.rows_kept
    assert said[0] == said[1] == said[2]


def contents_below(folder: Path) -> dict[str, bytes | list[dict[str, object]]]:
    """Return every file below a folder by its name, Parquet files by their rows; a book changes with each run."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "books.sqlite"]
    rows = {path: pq.read_table(path).to_pylist() if path.suffix == ".parquet" else path.read_bytes() for path in paths}
    return {str(path.relative_to(folder)): content for path, content in rows.items()}


@pytest.mark.parametrize("chunk_bytes", [300, 2**24])
def test_a_new_file_hashed_while_it_is_parsed_is_stored_as_any_other(tmp_path, monkeypatch, chunk_bytes) -> None:
    days = [line("MAC000002", step, "0.1" if step % 7 else "Null") for step in range(96)]
    texts = {"a": HEADER + b"".join(days), "b": HEADER + b"".join(days[:40]) + b"MAC000002,never,1\r\n" * 9}
    folder = write(tmp_path / "in", **texts, c=texts["a"])  # equal sizes: hashed first
    engine, stores = Engine("synchronous", 1, chunk_bytes), {}
    monkeypatch.setattr(filesystem, "SEGMENT_BYTES", 700)
    hash_chunk, hashed = file_identity.hash_chunk, []
    monkeypatch.setattr(
        file_identity, "hash_chunk", lambda chunk: hashed.append(chunk.source.name) or hash_chunk(chunk)
    )
    for first in (1, 2**25):
        monkeypatch.setattr(file_identity, "HASHED_FIRST_BYTES", first)
        stores[first] = Store(tmp_path / f"{first}" / "store", "london", ReadingRules())
        delivery = ingest(stores[first], [str(folder)], engine=engine, has_begun=True)
        assert (delivery.files_new, set(hashed)) == (2, {"b.csv"})
        assert ingest(stores[first], [str(folder)], engine=engine).files_new == 0
    assert contents_below(tmp_path / "1") == contents_below(tmp_path / f"{2**25}")
    (folder / "b.csv").rename(folder / "d.csv")  # it may be the stored file that is not listed any more: hashed first
    monkeypatch.setattr(file_identity, "HASHED_FIRST_BYTES", 1)
    monkeypatch.setattr(reading, "parse_lines", None)
    assert ingest(stores[1], [str(folder)], engine=engine, has_begun=True).files_new == 0


def test_parts_that_a_killed_run_left_do_not_count(tmp_path: Path) -> None:
    rows = {("MAC000002", step): 100 + step for step in range(96)}
    lines = [line(home, step, f"{wh / 1000}") for (home, step), wh in rows.items()]
    folder = write(tmp_path / "in", readings=HEADER + b"".join(lines))
    store = Store(tmp_path / "c" / "store", "london", ReadingRules())
    ingest(store, [str(folder)], engine=Engine("synchronous", 1, 256))
    parts = sorted((store.folder / "month=2013-01").glob("*.parquet"))
    stale = {path: path.read_bytes() for path in (*parts, *(store.folder / "part_days").rglob("*.parquet"))}
    next((store.folder / "files").glob("*.json")).unlink()  # as if killed before the file was complete
    shutil.rmtree(store.folder / "days")
    delivery = ingest(store, [str(folder)], engine=ONE)
    left = sorted((store.folder / "month=2013-01").glob("*.parquet"))
    assert len(left) == 1 < len(parts)
    expected = sum_by_day(rows)
    assert totals(store, delivery) == expected
    for path, content in stale.items():  # as a version that did not remove them left them
        if not path.exists():
            path.write_bytes(content)
    assert len(store.month_parts("2013-01", delivery.contents)) == 1
    assert totals(store, delivery) == expected


def sum_by_day(rows: dict[tuple[str, int], int]) -> dict[tuple[str, date], int]:
    """Return Wh by household and day; step 0 ends the last half-hour of the day before."""
    found: dict[tuple[str, date], int] = {}
    for (home, step), wh in rows.items():
        key = home, date(2013, 1, 30) + timedelta(days=(step - 1) // 48)
        found[key] = found.get(key, 0) + wh
    return found


def totals(store: Store, delivery: Delivery) -> dict[tuple[str, date], int]:
    table = read_daily_totals(store, "2013-01", delivery.contents)
    return {(row["household_id"], row["day"]): row["energy_wh"] for row in table.to_pylist()}
