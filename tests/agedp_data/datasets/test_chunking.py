"""Cuts at line ends, whatever the bytes, the packing and the sizes; no line needs more memory than the longest."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.datasets import chunking
from agedp_data.datasets.chunking import read_lines, split_into_chunks
from agedp_data.datasets.file_listing import InputFile, list_input_files


def source(path: Path, content: bytes) -> InputFile:
    path.write_bytes(content)
    (listed,) = list_input_files([str(path)]).sources
    return listed


@given(
    st.lists(st.sampled_from([b"a", b",", b'"', b"\n", b"\r\n", b"\r", b'"x\ny"', b"\x00"]), max_size=24),
    st.integers(1, 9),
    st.integers(1, 6),
)
@settings(max_examples=100, deadline=None)
def test_blocks_are_the_file_cut_at_line_ends_whatever_the_bytes(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], at_a_time: int, block_bytes: int
) -> None:
    data = b"".join(pieces)
    for name, content in (("a.csv", data), ("a.csv.gz", gzip.compress(data))):
        file = source(tmp_path_factory.mktemp("cut") / name, content)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chunking, "_WINDOW", at_a_time)
            blocks = split_into_chunks(file, start=0, chunk_bytes=block_bytes)
            stretches = [stretch for block in blocks for stretch in read_lines(block, batch_bytes=at_a_time)]
        assert b"".join(stretches) == data
        assert all(stretch.endswith(b"\n") for stretch in stretches[:-1])
        assert all(block.start == 0 or data[block.start - 1 : block.start] == b"\n" for block in blocks)
        assert [block.number for block in blocks] == list(range(len(blocks)))


def test_a_file_is_cut_at_every_line_end_that_is_far_enough(tmp_path: Path) -> None:
    file = source(tmp_path / "a.csv", b'head\n12\n3"5\r\n6\n7890\n1')
    for least, starts in ((1, [5, 8, 13, 15, 20]), (4, [5, 13, 20]), (10**6, [5])):
        blocks = split_into_chunks(file, start=5, chunk_bytes=least)
        assert [block.start for block in blocks] == starts
        assert [block.stop for block in blocks] == [*starts[1:], 21]


def lines_of(data: bytes) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in data.removesuffix(b"\n").split(b"\n")] if data else []


LIMIT = 10
LENGTHS = st.lists(st.integers(0, 3 * LIMIT) | st.sampled_from([LIMIT - 1, LIMIT, LIMIT + 1, 100]), max_size=6)


@given(LENGTHS, st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_a_line_that_is_too_long_comes_cut_off_and_is_still_too_long(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], end: bytes, ends: bool, at_a_time: int, least: int
) -> None:
    lines = [bytes([65 + i]) * length for i, length in enumerate(lengths)]
    data = end.join(lines) + (end if ends and lines else b"")
    for name, content in (("a.csv", data), ("a.csv.gz", gzip.compress(data))):
        file = source(tmp_path_factory.mktemp("cut") / name, content)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chunking, "_MAX_LINE_BYTES", LIMIT + 2)
            blocks = split_into_chunks(file, start=0, chunk_bytes=least)
            stretches = [stretch for block in blocks for stretch in read_lines(block, batch_bytes=at_a_time)]
        handed, expected = lines_of(b"".join(stretches)), lines_of(data)
        assert len(handed) == len(expected)
        for line, whole in zip(handed, expected, strict=True):
            assert whole.startswith(line)
            assert line == whole if len(whole) <= LIMIT else len(line) > LIMIT


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_an_endless_line_takes_no_more_memory_than_a_long_one(tmp_path: Path, name: str) -> None:
    data = b"x,1\n" + b"y" * 30_000_000 + b"\nz,2\n"
    file = source(tmp_path / name, gzip.compress(data, 1) if name.endswith("gz") else data)
    del data
    tracemalloc.start()
    lines = b"".join(
        s for block in split_into_chunks(file, start=0, chunk_bytes=2**18) for s in read_lines(block, batch_bytes=2**18)
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(line) > chunking.LONGEST_LINE for line in lines.splitlines()] == [False, True, False]
    assert lines.splitlines()[::2] == [b"x,1", b"z,2"]
    assert peak < 3_000_000
