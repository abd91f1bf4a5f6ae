"""Cuts at line ends, whatever the bytes, the packing and the sizes; no line needs more memory than the longest."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from agedp_data.datasets import filesystem
from agedp_data.datasets.filesystem import InputFile, list_input_files, read_lines, split_into_chunks


def source(path: Path, content: bytes) -> InputFile:
    path.write_bytes(gzip.compress(content, 1) if path.name.endswith("gz") else content)
    return list_input_files([str(path)]).sources[0]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_an_endless_line_takes_no_more_memory_than_a_long_one(tmp_path, name):
    file = source(tmp_path / name, b"x,1\n" + b"y" * 30_000_000 + b"\nz,2\n")
    tracemalloc.start()
    chunks = split_into_chunks(file, start=0, chunk_bytes=2**18)
    lines = b"".join(batch for chunk in chunks for batch in read_lines(chunk, batch_bytes=2**18)).splitlines()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(line) > filesystem.LONGEST_LINE for line in lines] == [False, True, False]
    assert lines[::2] == [b"x,1", b"z,2"]
    assert peak < 3_000_000
