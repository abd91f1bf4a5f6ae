"""Cuts at line ends, whatever the bytes, the packing and the sizes; no line needs more memory than the longest."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.datasets import filesystem
from agedp_data.datasets.filesystem import InputFile, list_input_files, read_lines, split_into_chunks


def source(path: Path, content: bytes) -> InputFile:
    path.write_bytes(gzip.compress(content, 1) if path.name.endswith("gz") else content)
    return list_input_files([str(path)]).sources[0]


def test_a_file_is_cut_at_every_line_end_that_is_far_enough(tmp_path):
    file = source(tmp_path / "a.csv", b'head\n12\n3"5\r\n6\n7890\n1')
    for least, starts in ((1, [5, 8, 13, 15, 20]), (4, [5, 13, 20]), (10**6, [5])):
        chunks = split_into_chunks(file, start=5, chunk_bytes=least)
        assert [chunk.start for chunk in chunks] == starts
        assert [chunk.stop for chunk in chunks] == [*starts[1:], 21]


LIMIT = 10
PIECES = st.sampled_from([b"a", b",", b'"', b"\n", b"\r\n", b"\r", b"\x00", b"b" * 9, b"c" * LIMIT, b"d" * 25])


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@given(pieces=st.lists(PIECES, max_size=24), batch=st.integers(1, 40), least=st.integers(1, 40), short=st.booleans())
@settings(max_examples=60)
def test_chunks_are_the_file_cut_at_line_ends_and_long_lines_stay_long(
    tmp_path_factory, name, pieces, batch, least, short
):
    data = b"".join(pieces)
    file = source(tmp_path_factory.mktemp("cut") / name, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filesystem, *(("_MAX_LINE_BYTES", LIMIT + 2) if short else ("_WINDOW", batch)))
        chunks = split_into_chunks(file, start=0, chunk_bytes=least)
        batches = [found for chunk in chunks for found in read_lines(chunk, batch_bytes=batch)]
    assert all(found.endswith(b"\n") for found in batches[:-1])
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
    assert short or all(data[: chunk.start][-1:] in (b"", b"\n") for chunk in chunks)
    assert short or b"".join(batches) == data
    lines, expected = (
        [line.removesuffix(b"\r") for line in text.removesuffix(b"\n").split(b"\n")] if text else []
        for text in (b"".join(batches), data)
    )
    assert len(lines) == len(expected)
    for line, whole in zip(lines, expected, strict=True):
        assert line == whole or (len(line) > LIMIT and line[:LIMIT] == whole[:LIMIT])
        assert line == whole or len(whole) > LIMIT


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
