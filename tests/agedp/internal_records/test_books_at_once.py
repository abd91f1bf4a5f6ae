"""Runs at once share the book of a confidential folder: nothing written is lost, nothing sound is taken for damage."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from agedp.local_files import books
from agedp.local_files.books import Books
from tests.books import contents, spoil

TABLE = "released_rosters"
WRITER = """
import sys
import time
from pathlib import Path
from agedp.local_files.books import Books
for number in range(100):
    Books(Path(sys.argv[1])).put("released_rosters", {f"{sys.argv[2]} {number}": b"content"})
    time.sleep(0.002)
"""


@pytest.fixture
def book(tmp_path) -> Books:
    book = Books(tmp_path / "books.sqlite")
    book.put(TABLE, {"first": b"content"})
    return book


def test_what_two_processes_write_while_a_third_reads_and_checks_is_sound_and_complete(book, tmp_path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(book.path), name]) for name in ("a", "b")]
    numbers = []
    while any(writer.poll() is None for writer in writers):
        numbers.append(len(book.rows(TABLE)))
        assert book.check() is None
    assert [writer.returncode for writer in writers] == [0, 0]
    assert numbers == sorted(numbers)
    assert len(contents(tmp_path, TABLE)) == 201


def test_a_writer_that_waited_while_a_damaged_book_was_made_anew_writes_into_the_new_one(book, tmp_path, monkeypatch):
    book.put("report", {"page": b"content of a page"})
    spoil(tmp_path, "report")
    writer, keep = threading.Thread(target=book.put, args=(TABLE, {"second": b"content"})), books._keep

    def keep_while_another_waits(*paths):
        writer.start()
        time.sleep(0.3)
        assert writer.is_alive()
        keep(*paths)

    monkeypatch.setattr(books, "_keep", keep_while_another_waits)
    assert book.check() is not None
    writer.join()
    assert (contents(tmp_path, TABLE).keys(), contents(tmp_path, "report")) == ({"first", "second"}, {})
    assert book.check() is None


def test_reading_the_book_does_not_end_the_lock_of_a_writer_in_the_same_process(book):
    with book.writing() as tables:
        tables.put(TABLE, {"second": b"content"})
        reader = threading.Thread(target=book.rows, args=(TABLE,))
        reader.start()
        reader.join()
        other = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
        command = [sys.executable, "-c", other, str(book.path)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "database is locked" in found.stderr
    with closing(sqlite3.connect(book.path, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
