"""A folder of a stranger: each hostile file is refused in one line with exit status 2, in little memory.

All folders are verified by one process of its own, because the memory of this one is that of other tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp_data.foreign_files import MAX_FILE_BYTES, MAX_LINE_BYTES, MAX_VALUES, read_limited_table
from agedp_data.ledger import ReleaseRecord
from agedp_data.ledger.transfer import format_lines
from tests.agedp.release_folder.resealed import reseal

PACKAGE, ROWS, STATEMENT, SUMS, WORDS = (
    "datapackage.json", "ledger_rows.jsonl", "statement.json", "SHA256SUMS", "STATEMENT.md",
)  # fmt: skip
TABLE = "daily_averages.parquet"
MAX_MEMORY_MB = 300
SMOOTHED = ("deep statement", "deep row", "device", "pipe", "sparse rows", "rows of a bomb")
_VERIFIER = f"""
SMOOTHED = {SMOOTHED}
import json, signal, sys
from pathlib import Path
from tests.command import agedp

def memory_mb():  # of this program; getrusage has that of the process which started it, too
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024

for folder in map(Path, sys.argv[1:]):
    smooth = [["smooth", folder, "--out", folder.parent / "estimates"]] if folder.name in SMOOTHED else []
    for words in [["verify", folder], *smooth]:
        signal.alarm(60)
        ended = agedp(*words)
        print(json.dumps([folder.name, words[0], ended.status, ended.err, memory_mb()]), flush=True)
"""


def text(name, content, *, repack=True):
    """Return what writes a file and makes package and checksums anew."""

    def write(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content((folder / name).read_text()))
        reseal(folder, repack=repack)

    return write


def place(name, make):
    """Return what puts something else in the place of a file, whose checksum is still listed."""

    def put(folder):
        (folder / name).unlink()
        make(folder / name)

    return put


def sparse(size):
    def make(path):
        with path.open("wb") as stream:
            stream.truncate(size)

    return make


def link_to(target):
    return lambda path: path.symlink_to(target)


def outside(path):
    """Put the file itself beside the folder, and a link to it in its place."""
    path.symlink_to(shutil.copy(path.parent.parent / "sound" / path.name, path.parent.parent / f"outside-{path.name}"))


def row_with(**fields):
    """Return what changes the first row, a contract, in its canonical text."""

    def change(rows):
        lines = rows.splitlines()
        row = json.loads(lines[1])
        row["text"] = json.dumps(json.loads(row["text"]) | fields, sort_keys=True, separators=(",", ":"))
        lines[1] = json.dumps(row, sort_keys=True, separators=(",", ":"))
        return "".join(f"{line}\n" for line in lines).encode()

    return change


def table_of(rows, **columns):
    """Return what writes a table whose rows are all its first one, or have other texts."""

    def write(folder):
        first = pq.read_table(folder / TABLE).slice(0, 1)
        repeated = first.take(np.zeros(rows, int))
        for name, value in columns.items():
            codes = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [value])
            repeated = repeated.set_column(repeated.column_names.index(name), name, codes)
        pq.write_table(repeated, folder / TABLE, compression="zstd", store_schema=False)
        reseal(folder)

    return write


def nested(folder):
    pq.write_table(pa.table({"x": pa.array([[0] * 400_000])}), folder / TABLE)
    reseal(folder)


def append(name):
    """Return what lists a further file."""

    def write(folder):
        with (folder / SUMS).open("a") as sums:
            sums.write(f"{'0' * 64}  {name}\n")

    return write


def damaged(problem):
    """Return what is said of a damaged statement: `smooth` reads it before it verifies the folder."""
    return f"statement.json( is missing or damaged|: {problem})"


DEEP = b"[" * 100_000 + b"]" * 100_000
HOSTILE = {
    "deep statement": (text(STATEMENT, DEEP), damaged("it is nested too deeply")),
    "deep package": (text(PACKAGE, DEEP, repack=False), "datapackage.json lacks entries"),
    "deep row": (text(ROWS, lambda rows: rows.encode() + DEEP + b"\n"), "line .* is not a row"),
    "deep contract": (text(ROWS, row_with(promise="[" * 900 + "]" * 900)), "line 2 is not a row"),
    "many values": (text(STATEMENT, b'{"a":[' + b"{}," * 1_300_000 + b"0]}"), damaged("it has too many values")),
    "large number": (text(STATEMENT, b'{"version":1' + b"0" * 5000 + b"}"), damaged("a number has too many digits")),
    "no number": (
        text(STATEMENT, lambda text: text.replace("{", '{"a": NaN,', 1).encode()),
        damaged("a number is not finite"),
    ),
    "infinite": (
        text(STATEMENT, lambda text: text.replace("{", '{"a": 1e999,', 1).encode()),
        damaged("a number is not finite"),
    ),
    "a key twice": (
        text(STATEMENT, lambda text: text.replace("{", '{"title": "x",', 1).encode()),
        damaged("a key is there twice"),
    ),
    "no UTF-8": (text(STATEMENT, b"\xff\xfe{}"), damaged("it is not UTF-8")),
    "no keys": (text(STATEMENT, b"{}"), "statement.json(: the statement is not as agedp| is of a version)"),
    "a long line": (text(ROWS, lambda rows: rows.encode() + b"9" * 2**24 + b"\n"), "ledger_rows.jsonl is missing or"),
    "device": (place("report.html", link_to("/dev/zero")), "report.html is a link"),
    "pipe": (place(STATEMENT, os.mkfifo), "statement.json is a pipe or a device"),
    "folder": (place(PACKAGE, Path.mkdir), "datapackage.json is a folder"),
    "link out": (place(TABLE, outside), "daily_averages.parquet is a link"),
    "sparse rows": (place(ROWS, sparse(200 * 10**9)), "ledger_rows.jsonl has 200,000,000,000 bytes"),
    "sparse sums": (place(SUMS, sparse(5 * 10**9)), "SHA256SUMS has 5,000,000,000 bytes"),
    "sparse words": (place(WORDS, sparse(2**23)), "STATEMENT.md has 8,388,608 bytes"),
    "rows of a bomb": (table_of(3_000_000), "has 3,000,000 rows"),
    "texts of a bomb": (table_of(1_000, group="x" * 1_000_000), "has a text of more than 1,000 bytes"),
    "lists": (nested, "has other columns than a published table"),
    "a name above": (append("../x"), r"SHA256SUMS differs from the published file: '\.\./x' is no plain path"),
    "a name with NUL": (append("a\0b"), r"SHA256SUMS differs from the published file: 'a\\x00b' is no plain path"),
}
"""By what the folder has: what makes it, and what the refusal says."""


@pytest.fixture(scope="module")
def verified(published_twice, tmp_path_factory):
    """Return status, error text and memory of each command on each folder."""
    above = tmp_path_factory.mktemp("hostile")
    shutil.copytree(published_twice.folder / "release", above / "sound")
    for name, (make, _) in HOSTILE.items():
        make(Path(shutil.copytree(above / "sound", above / name)))
    (above / "by a link").symlink_to(above / "sound")
    words = [sys.executable, "-c", _VERIFIER, *(str(above / name) for name in ("sound", "by a link", *HOSTILE))]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    answers = {(name, command): rest for name, command, *rest in map(json.loads, ended.stdout.splitlines())}
    assert ended.returncode == 0, (list(answers)[-1:], ended.stderr[-2000:])
    return answers


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(verified, name):
    for command in ("verify", "smooth") if name in SMOOTHED else ("verify",):
        status, error, memory_mb = verified[name, command]
        assert status == 2, (command, error)
        assert error.count("\n") == 1, error
        assert re.search(HOSTILE[name][1], error), error
        assert memory_mb < MAX_MEMORY_MB


def test_a_sound_folder_may_be_named_by_a_link(verified):
    assert [verified[name, "verify"][0] for name in ("sound", "by a link")] == [0, 0]


def test_ten_years_of_400_groups_of_48_half_hours_are_within_the_limits(tmp_path):
    """The sizes follow from one day; its values have more digits than those of 400 groups of 10,000 households."""
    days, groups = 3653, [f"transformer {number:04}" for number in range(400)]
    cells = tuple(f"{group}/{minute // 60:02}:{minute % 60:02}" for group in groups for minute in range(0, 1440, 30))
    drawn = np.random.default_rng(1).integers(10**8, 10**9, len(cells))
    row = ReleaseRecord(
        "homes", "load", "2013-01-01", 0, "released", cells, tuple(map(int, drawn)), (10**4,) * 400, 2 * 10**4, 4e4,
        "discrete-laplace", 5 * 10**8, "2013-01-02T00:00:00Z", "2013-01-02", "0" * 64, "0" * 64,
        3, "2013-01-02", "0" * 64,
    )  # fmt: skip
    line = format_lines("x", {}, [row]).splitlines(keepends=True)[1]
    assert 8 * len(line) < MAX_LINE_BYTES
    assert 8 * line.count(",") < MAX_VALUES
    assert 2 * days * len(line) < MAX_FILE_BYTES
    numbers = {name: np.random.default_rng(2).random(len(cells)) for name in ("mean_kwh", "low_kwh", "high_kwh")}
    table = pa.table({"group": [cell.partition("/")[0] for cell in cells], "noisy_sum_wh": drawn, **numbers})
    pq.write_table(table, tmp_path / "day.parquet")
    assert 2 * days * (tmp_path / "day.parquet").stat().st_size < MAX_FILE_BYTES
    assert read_limited_table(tmp_path / "day.parquet", "day", max_rows=len(line)).equals(table)
