"""A confidential table or JSON object with one changed bit is refused, wherever the bit lies."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import checked_json, read_checked_json
from agedp.release_folder.folder_writer import write_release_files
from agedp_data import table_schemas

DAYS = table_schemas.table_from_columns(
    table_schemas.DAYS,
    household_id=pa.array(["A", "A", "B"]).dictionary_encode(),
    day=[15765, 15766, 15765],
    energy_wh=[9600, 9700, 120],
    readings=[48, 48, 46],
)


def changed(content: bytes):
    """Yield the content with one bit changed, in each third byte."""
    for place in range(0, len(content), 3):
        bit = 1 << random.Random(place).randrange(8)  # noqa: S311
        yield content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]


def test_a_table_with_a_changed_bit_is_damaged(tmp_path):
    path = tmp_path / "days.parquet"
    pq.write_table(DAYS, path)  # a table of an earlier version has no checksum
    assert atomic_files.read_table(path, table_schemas.DAYS).equals(DAYS)
    atomic_files.write_table(path, DAYS)
    assert pq.read_table(path).equals(DAYS)  # any reader of Parquet reads it
    read = 0
    for content in changed(path.read_bytes()):
        path.write_bytes(content)
        try:
            assert atomic_files.read_table(path, table_schemas.DAYS).equals(DAYS)
            read += 1  # the bit lies in the mark of the checksum
        except atomic_files.DamagedFile:
            continue
    assert read <= 4


def test_a_row_group_with_a_changed_bit_is_damaged_and_the_others_are_read(tmp_path):
    path, tables = tmp_path / "days.parquet", {"2013-03": DAYS, "2013-04": DAYS.slice(1), "2013-05": DAYS.slice(2)}
    writer = atomic_files.GroupWriter(table_schemas.DAYS)
    for name, table in tables.items():
        writer.add(name, table)
    sound = writer.content()
    path.write_bytes(sound)
    assert pq.read_table(path).equals(pa.concat_tables(tables.values()))  # any reader of Parquet reads it
    assert pq.ParquetFile(path).num_row_groups == len(atomic_files.group_names(path)) == 3
    for content in (*changed(sound), *(sound[:length] for length in range(0, len(sound), 7))):
        path.write_bytes(content)
        damaged = 0
        for name, table in tables.items():
            try:
                assert atomic_files.read_table(path, table_schemas.DAYS, group=name).equals(table)
            except atomic_files.DamagedFile:
                damaged += 1
        assert damaged in (1, 3)  # of the footer all, of a row group itself


def test_an_object_with_a_changed_bit_is_no_object_that_was_written():
    record = {"name": "a.csv", "digest": "0f", "parts": [{"kept": 144, "months": {"2013-03": [144, 9, 9]}}]}
    content = checked_json(record)
    assert read_checked_json(content) == record
    assert read_checked_json(b'{"name": "a.csv"}') == {"name": "a.csv"}
    for wrong in changed(content):
        try:
            assert not read_checked_json(wrong).keys() <= record.keys()  # an unknown key is refused by a manifest
        except ValueError:
            continue


def test_checksums_are_written_after_the_files_that_they_are_of(tmp_path, monkeypatch):
    written = []
    write = atomic_files.write
    monkeypatch.setattr(
        atomic_files,
        "write",
        lambda path, *args, **keywords: (written.append(path.name), write(path, *args, **keywords)),
    )
    write_release_files(tmp_path, {"a.parquet": b"1", "statement.json": b"2"})
    assert written == ["a.parquet", "statement.json", "SHA256SUMS"]
