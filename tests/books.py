"""The book of a confidential folder as tests look into it and spoil it: with SQLite alone."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any


def contents(confidential: Path, table: str) -> dict[str, bytes]:
    """Return the contents of a table by key."""
    with closing(sqlite3.connect(f"file:{confidential / 'books.sqlite'}?mode=ro", uri=True)) as book:
        rows = book.execute("SELECT key, content FROM row WHERE name = ? ORDER BY key", (table,)).fetchall()
    return {key.decode("utf-8", "surrogatepass"): content for key, content in rows}


def cells(confidential: Path, table: str) -> list[dict[str, Any]]:
    """Return the lines of a table of cells, such as true_means."""
    lines = []
    for key, content in contents(confidential, table).items():
        population, day, series = json.loads(key)
        columns = json.loads(zlib.decompress(content))
        keys = {"population": population, "day": date.fromisoformat(day), "series": series}
        values = zip(*columns.values(), strict=True)
        lines += [{**keys, **dict(zip(columns, line, strict=True))} for line in values]
    return lines


def forget(confidential: Path, *tables: str) -> None:
    """Remove tables as if they had never been written; all without a name."""
    with closing(sqlite3.connect(confidential / "books.sqlite")) as book, book:
        names = tables or [name for (name,) in book.execute("SELECT DISTINCT name FROM row")]
        for name in names:
            assert book.execute("DELETE FROM row WHERE name = ?", (name,)).rowcount, name
            book.execute("DELETE FROM total WHERE name = ?", (name,))


def spoil(confidential: Path, table: str) -> None:
    """Change a byte of the first row of a table."""
    with closing(sqlite3.connect(confidential / "books.sqlite")) as book, book:
        key, content = book.execute("SELECT key, content FROM row WHERE name = ? ORDER BY key", (table,)).fetchone()
        middle = len(content) // 2
        spoiled = content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]
        book.execute("UPDATE row SET content = ? WHERE name = ? AND key = ?", (spoiled, table, key))
