"""What must not become public, in every form in which it could: ids, file names, readings, true sums and means."""

from __future__ import annotations

import re
import sqlite3
import struct
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from tests.books import cells

MARK = b"MARK"  # in every household id, input file name and unreadable row of a marked world


@dataclass(frozen=True)
class Marks:
    """Numbers that stand alone in a text, and byte strings anywhere."""

    numbers: tuple[str, ...]
    patterns: tuple[bytes, ...] = ()

    def found_in(self, raw: bytes | str) -> list[str]:
        """Return what is found, for the message of a failing test."""
        raw = raw.encode() if isinstance(raw, str) else raw
        found = [f"mark: {raw[max(0, at.start() - 40) : at.start() + 40]!r}" for at in re.finditer(MARK, raw)][:3]
        # a number alone, not as a part of a hash or of a longer number
        alone = rb"(?<![0-9A-Za-z.])%s(?![0-9A-Za-z])"
        found += [f"number {text}" for text in self.numbers if re.search(alone % re.escape(text.encode()), raw)]
        return found + [f"bytes {pattern!r}" for pattern in self.patterns if pattern in raw]

    def in_folder(self, folder: Path) -> list[str]:
        """Return what is found in the files of a folder, the columns of Parquet files unpacked."""
        found = []
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            raws = [path.read_bytes(), path.name.encode()]
            if path.suffix == ".parquet":
                table = pq.ParquetFile(path).read()
                rows = [" ".join(map(str, row.values())) for row in table.to_pylist()]
                raws.append("\n".join([*rows, repr(table.schema.metadata)]).encode())
            found += [f"{path.name}: {mark}" for raw in raws for mark in self.found_in(raw)]
        return found

    def in_database(self, path: Path) -> list[str]:
        """Return what is found in a SQLite file: its raw bytes, the free pages, its journals, and every cell."""
        raws = [file.read_bytes() for file in path.parent.glob(f"{path.name}*")]
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            tables = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
            rows = [row for (table,) in tables for row in connection.execute(f'select * from "{table}"')]
        connection.close()
        raws.append("\n".join(str(cell) for row in rows for cell in row).encode())
        return [mark for raw in raws for mark in self.found_in(raw)]


READINGS = Marks(("7.7391", "7.739", "7739"))


def marks_of(confidential: Path) -> Marks:
    """Return the marks of a world that ran: its sums and true means are read where they may be."""
    sums = {row["value"] for row in pq.ParquetFile(confidential / "sums.parquet").read().to_pylist()}
    means = {row["true_mean_kwh"] for row in cells(confidential, "true_means")}
    assert min(sums) > 10_000
    texts = {str(value) for each in sums for value in (each, each / 1000)} | {str(mean) for mean in means}
    texts |= {text[:9] for text in map(str, means) if len(text) >= 9}
    texts |= {*READINGS.numbers[:2]}  # not in whole Wh: four digits stand alone in a UUID now and then
    doubles = [struct.pack(order + "d", mean) for mean in means for order in "<>"]
    return Marks(tuple(sorted(texts)), (*(struct.pack("<q", value) for value in sums), *doubles))
