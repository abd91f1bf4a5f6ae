"""What must not get out, in every form in which it could: ids, file names, readings, true sums and means."""

from __future__ import annotations

import io
import re
import sqlite3
import struct
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

MARK = b"MARK"  # in every household id, input file name and unreadable row of a marked world
READINGS = {"7.7391", "7.739"}


@dataclass(frozen=True)
class Marks:
    """Texts that stand alone where they stand, and byte strings wherever they stand."""

    numbers: tuple[bytes, ...]
    patterns: tuple[bytes, ...]

    def found_in(self, raw: bytes) -> list[str]:
        """Return what is found, for the message of a failing test."""
        found = [f"mark: {raw[max(0, at - 40) : at + 40]!r}" for at in _places(raw, MARK)]
        found += [f"number {each!r}" for each in self.numbers if _alone(each, raw)]
        return found + [f"bytes {each!r}" for each in self.patterns if each in raw]


def _places(raw: bytes, mark: bytes) -> list[int]:
    return [each.start() for each in re.finditer(re.escape(mark), raw)][:3]


def _alone(number: bytes, raw: bytes) -> bool:
    """Return whether a number stands in a text, not as a part of a hash or of a longer number."""
    return re.search(rb"(?<![0-9A-Za-z.])" + re.escape(number) + rb"(?![0-9A-Za-z])", raw) is not None


def marks_of(confidential: Path) -> Marks:
    """Return the marks of a world that ran: its sums and true means are read where they may lie."""
    sums, means = set[int](), set[float]()
    for name, column in (("sums.parquet", "value"), ("true_means.parquet", "true_mean_kwh")):
        table = pq.ParquetFile(confidential / name).read().to_pylist()
        (sums if column == "value" else means).update(line[column] for line in table)
    assert min(sums) > 10_000
    whole = [str(each) for each in sums] + [f"{each / 1000}" for each in sums]
    parts = [str(each)[:9] for each in means]
    numbers = {*whole, *(str(each) for each in means), *(each for each in parts if len(each) == 9)}
    numbers |= READINGS  # not in whole Wh: four digits stand alone in a UUID now and then
    doubles = [struct.pack(order + "d", each) for each in means for order in "<>"]
    return Marks(
        tuple(sorted(each.encode() for each in numbers)),
        tuple([struct.pack("<q", each) for each in sums] + doubles),
    )


def of_folder(marks: Marks, folder: Path) -> list[str]:
    """Return what is found in the files of a folder, the columns of Parquet files unpacked."""
    found = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        raws = [path.read_bytes(), path.name.encode()]
        if path.suffix == ".parquet":
            raws.append(_columns(path))
        found += [f"{path.name}: {each}" for raw in raws for each in marks.found_in(raw)]
    return found


def _columns(path: Path) -> bytes:
    table = pq.ParquetFile(path).read()
    out = io.BytesIO()
    for row in table.to_pylist():
        out.write(" ".join(map(str, row.values())).encode() + b"\n")
    return out.getvalue() + repr(table.schema.metadata).encode()


def of_database(marks: Marks, path: Path) -> list[str]:
    """Return what is found in a SQLite file: its raw bytes, the pages that are free, its journals, and every cell."""
    raws = [each.read_bytes() for each in path.parent.glob(f"{path.name}*")]
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        cells = [
            cell
            for table in tables
            for row in connection.execute(f'select * from "{table}"')
            for cell in row
            if cell is not None
        ]
    connection.close()
    raws.append("\n".join(map(str, cells)).encode())
    return [each for raw in raws for each in marks.found_in(raw)]
