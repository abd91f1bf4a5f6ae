"""Cuts that never split a row, whatever the quotes, the packing and the sizes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.readers import cutting
from agedp_data.readers.cutting import cut, rows
from agedp_data.readers.files import Source, list_sources


def source(path: Path, content: bytes) -> Source:
    path.write_bytes(content)
    (found,) = list_sources([str(path)]).sources
    return found


def row_starts(data: bytes) -> set[int]:
    """Return where rows begin, by RFC 4180: a quote counts as the first byte of a field, until it is closed."""
    starts, at, quoted, fresh = {0}, 0, False, True
    while at < len(data):
        byte = data[at : at + 1]
        if quoted and byte == b'"':
            if data[at + 1 : at + 2] == b'"':
                at += 1
            else:
                quoted, fresh = False, False
        elif not quoted and byte == b'"' and fresh:
            quoted = True
        elif not quoted:
            fresh = byte in b",\r\n"
            if byte in b"\r\n":
                starts.add(at + 1)
        at += 1
    return starts


@given(
    st.lists(st.sampled_from([b"a", b",", b'"', b'""', b"\n", b"\r\n", b"\r", b'"x\ny"', b',"', b'",']), max_size=24),
    st.integers(1, 9),
    st.integers(1, 6),
)
@settings(max_examples=300, deadline=None)
def test_blocks_are_the_file_cut_where_rows_begin_whatever_the_quotes(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], at_a_time: int, block_bytes: int
) -> None:
    data = b"".join(pieces)
    for name, content in (("a.csv", data), ("a.csv.gz", gzip.compress(data))):
        one = source(tmp_path_factory.mktemp("cut") / name, content)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cutting, "_WINDOW", at_a_time)
            blocks = cut(one, start=0, block_bytes=block_bytes, quoted=b'"' in data)
            stretches = [
                stretch for block in blocks for stretch in rows(block, at_a_time=at_a_time, quoted=b'"' in data)
            ]
        assert b"".join(stretches) == data
        starts = {sum(map(len, stretches[:i])) for i in range(len(stretches))}
        assert starts | {block.start for block in blocks} <= row_starts(data)
        assert [block.number for block in blocks] == list(range(len(blocks)))


def test_a_file_without_quotes_is_cut_at_every_line_end_that_is_far_enough(tmp_path: Path) -> None:
    one = source(tmp_path / "a.csv", b"head\n12\n345\r\n6\n7890\n1")
    for least, starts in ((1, [5, 8, 13, 15, 20]), (4, [5, 13, 20]), (10**6, [5])):
        blocks = cut(one, start=5, block_bytes=least, quoted=False)
        assert [block.start for block in blocks] == starts
        assert [block.stop for block in blocks] == [*starts[1:], 21]


def test_a_file_with_quoted_fields_is_still_cut_between_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = source(tmp_path / "a.csv", b'"a\n""b",1\nc,2\n"d",3\n')
    monkeypatch.setattr(cutting, "_WINDOW", 1)
    assert [(b.start, b.stop) for b in cut(one, start=0, block_bytes=1, quoted=True)] == [(0, 10), (10, 14), (14, 20)]
