"""A file that expands to more than the memory is one line and exit status 2, and nothing is drawn."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.stages import ingest
from agedp_data.datasets import filesystem
from tests.command import agedp

HEADER = b"LCLid,tstp,energy(kWh/hh)\n"
ROWS = b"".join(
    b"MAC%06d,2013-01-01 %02d:%02d:00,0.1\n" % (home, minute // 60, minute % 60)
    for home in range(3)
    for minute in range(0, 24 * 60, 30)
)


def write(folder: Path, kind: str) -> Path:
    path = folder / f"a.{kind}"
    if kind == "csv":
        path.write_bytes(HEADER + ROWS)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(HEADER + ROWS))
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", HEADER + ROWS)
    else:
        rows = [row.split(b",") for row in ROWS.splitlines()]
        names = HEADER.decode().strip().split(",")
        pq.write_table(pa.table({name: [row[i].decode() for row in rows] for i, name in enumerate(names)}), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "zip", "parquet"])
def test_a_memory_error_while_a_file_is_read_is_one_line_that_names_it(tmp_path, monkeypatch, kind):
    path = write(tmp_path, kind)

    def exhausted(*_, **__):
        raise pa.ArrowMemoryError("malloc of size 99999999999 failed")

    monkeypatch.setattr(filesystem, "_read_stream", exhausted)
    monkeypatch.setattr(filesystem, "_read_seekable", exhausted)
    monkeypatch.setattr(ingest.parquet_parsing.pq.ParquetFile, "iter_batches", exhausted)
    ended = agedp("init", path.name, "--in", "begun", folder=tmp_path)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1), ended.err
    assert path.name in ended.err
    assert "needs more memory than this process can have" in ended.err
    assert not (tmp_path / "begun" / "run.toml").exists()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv.gz", "parquet"])
def test_a_real_bomb_under_a_limit_of_memory_is_one_line(tmp_path, kind):
    path = write(tmp_path, kind)
    if kind == "parquet":
        text = "x" * 450_000_000
        columns = pq.read_table(path).slice(0, 1).to_pydict() | {"LCLid": [text]}
        pq.write_table(pa.table(columns), path, compression="zstd")
    else:
        path.write_bytes(gzip.compress(HEADER + ROWS + b"\n" * 60_000_000, 1))
    assert path.stat().st_size < 2_000_000
    code = "import sys; from agedp_flows.cli.app import main; sys.argv[0] = 'agedp'; main()"
    limit = 1_300_000_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    ended = subprocess.run(
        [sys.executable, "-c", code, "init", path.name, "--in", "begun"],
        cwd=tmp_path, capture_output=True, text=True, preexec_fn=limited, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr[-2000:]
    assert ended.stderr.startswith("agedp: ")
    assert ended.stderr.count("\n") == 1


def test_a_memory_error_of_any_other_step_is_one_line(tmp_path, monkeypatch):
    def exhausted(*_, **__):
        raise MemoryError

    for name in ("write_part", "deduplicate_months"):
        with monkeypatch.context() as patch:
            patch.setattr(ingest, name, exhausted)
            ended = agedp("init", write(tmp_path, "csv").name, "--in", name, folder=tmp_path)
        assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1), ended.err
        assert "more memory than the process can have" in ended.err
