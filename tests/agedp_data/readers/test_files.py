"""Files as bytes: listing, packing, damage, and cuts that never split a row."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.errors import InputError
from agedp_data.readers import files
from agedp_data.readers.files import Source, content_id, cut, list_sources, read_bytes

TEXT = b"LCLid,DateTime,KWH/hh (per half hour)\n" + b"".join(
    b"MAC%06d,2013-01-01 00:30:00,0.%03d\n" % (i, i * 37 % 1000) for i in range(3000)
)


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def with_fields(archive: bytes, *, flags: int | None = None, method: int | None = None) -> bytes:
    """Return a zip whose first member's flags or method are overwritten in both of its headers."""
    found = bytearray(archive)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = found.index(mark) + at
        if flags is not None:
            struct.pack_into("<H", found, place, flags)
        if method is not None:
            struct.pack_into("<H", found, place + 2, method)
    return bytes(found)


def source(path: Path, content: bytes) -> Source:
    path.write_bytes(content)
    (found,) = list_sources([str(path)]).sources
    return found


PACKED = {
    "one.csv": TEXT,
    "one.csv.gz": gzip.compress(TEXT),
    "one.csv.zip": zipped(("one.csv", TEXT)),
    "stored.zip": zipped(("one.csv", TEXT), method=zipfile.ZIP_STORED),
    "mac.zip": zipped(("one.csv", TEXT), ("__MACOSX/._one.csv", b"x")),
    "one.csv.zst": pa.compress(TEXT, "zstd", asbytes=True),
    "ONE.CSV.GZ": gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]),
}


@pytest.mark.parametrize("name", PACKED)
def test_any_range_of_a_file_is_the_same_however_it_is_packed(tmp_path: Path, name: str) -> None:
    one = source(tmp_path / name, PACKED[name])
    for start, stop in ((0, None), (0, 10), (38, None), (38, 70), (50_000, 60_000), (0, 10**9)):
        assert read_bytes(one, start, stop) == TEXT[start:stop]


def test_a_content_id_is_the_sha_256_of_the_bytes_as_they_lie_there(tmp_path: Path) -> None:
    one = source(tmp_path / "a.csv.gz", gzip.compress(b"abc"))
    assert content_id(one) == hashlib.sha256((tmp_path / "a.csv.gz").read_bytes()).hexdigest()


CUT_OFF = "the archive is cut off or damaged; fetch it again"
DAMAGED = {
    "cut.csv.gz": (PACKED["one.csv.gz"][:-9], CUT_OFF),
    "short.csv.gz": (PACKED["one.csv.gz"][:2000], CUT_OFF),
    "nothing.csv.gz": (b"", CUT_OFF),
    "crc.csv.gz": (PACKED["one.csv.gz"][:-8] + b"\0\0\0\0" + PACKED["one.csv.gz"][-4:], CUT_OFF),
    "text.csv.gz": (TEXT, CUT_OFF),
    "cut.csv.zip": (PACKED["one.csv.zip"][:-30], CUT_OFF),
    "text.zip": (TEXT, CUT_OFF),
    "nothing.zip": (b"", CUT_OFF),
    "cut.csv.zst": (PACKED["one.csv.zst"][:-20], CUT_OFF),
    "text.zst": (TEXT, CUT_OFF),
    "nothing.zst": (b"", CUT_OFF),
    "lzma.zip": (
        with_fields(zipped(("one.csv", TEXT), method=zipfile.ZIP_DEFLATED), method=zipfile.ZIP_LZMA),
        CUT_OFF,
    ),
    "deflate64.zip": (with_fields(PACKED["one.csv.zip"], method=9), "this kind of zip (deflate64?) cannot be read"),
    "encrypted.zip": (with_fields(PACKED["one.csv.zip"], flags=1), "the archive is encrypted; unpack it first"),
    "two.zip": (zipped(("a.csv", TEXT), ("b.csv", TEXT)), "the archive holds 2 files; one is expected"),
    "none.zip": (zipped(), "the archive holds 0 files; one is expected"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_or_unreadable_archive_is_one_line_that_names_the_file_in_private_only(
    tmp_path: Path, name: str
) -> None:
    content, words = DAMAGED[name]
    one = source(tmp_path / name, content)
    with pytest.raises(InputError) as caught:
        read_bytes(one)
    assert str(caught.value).startswith(f"input 1 of 1: {words}")
    assert caught.value.private.startswith(f"{tmp_path / name}: {words}")
    assert "\n" not in caught.value.private


def test_chunk_files_are_ordered_numerically(tmp_path: Path) -> None:
    for number in (10, 2, 0, 100, 1):
        (tmp_path / f"LCL-June2015v2_{number}.csv").write_bytes(b"x")
    names = [one.path.stem for one in list_sources([str(tmp_path)]).sources]
    assert names == [f"LCL-June2015v2_{number}" for number in (0, 1, 2, 10, 100)]


def test_hidden_files_and_unknown_extensions_are_passed_over_and_counted(tmp_path: Path) -> None:
    for name in ("a.csv", "B.CSV", "c.csv.zst", ".d.csv", "e.txt", "f.csv.part", "README"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.csv").mkdir()
    listing = list_sources([str(tmp_path)])
    assert [one.path.name for one in listing.sources] == ["B.CSV", "a.csv", "c.csv.zst"]
    assert [one.label for one in listing.sources] == ["input 1 of 3", "input 2 of 3", "input 3 of 3"]
    assert listing.ignored == 4


def test_a_file_named_by_two_patterns_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_bytes(b"x")
    patterns = [str(tmp_path / "a[1].csv"), str(tmp_path / "*.csv"), str(tmp_path)]
    assert [one.path.name for one in list_sources(patterns).sources] == ["a[1].csv"]


@pytest.mark.parametrize("pattern", ["", "*.csv", "e.txt"])
def test_a_folder_without_usable_files_is_stopped(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "e.txt").write_bytes(b"x")
    with pytest.raises(InputError, match="no usable input file") as caught:
        list_sources([str(tmp_path / pattern)])
    assert str(tmp_path) not in str(caught.value)
    assert str(tmp_path) in caught.value.private


def test_a_named_file_that_does_not_exist_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist") as caught:
        list_sources([str(tmp_path / "MAC000002.csv")])
    assert "MAC000002" not in str(caught.value)
    assert "MAC000002" in caught.value.private


def test_a_file_without_permission_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "MAC000002.csv").write_bytes(b"x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"^input 1 of 1: cannot be opened \(Permission denied\)$") as caught:
        list_sources([str(tmp_path)])
    assert "MAC000002" in caught.value.private


def test_a_folder_without_permission_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError, match=r"a named folder cannot be opened \(Permission denied\)$"):
        list_sources([str(tmp_path)])


@pytest.mark.parametrize("use", [content_id, read_bytes, lambda one: cut(one, start=0, block_bytes=1)])
def test_a_file_that_goes_away_is_an_input_error_wherever_it_is_read(tmp_path: Path, use: object) -> None:
    one = source(tmp_path / "MAC000002.csv", TEXT)
    one.path.unlink()
    with pytest.raises(InputError, match=r"^input 1 of 1: cannot be read \(No such file or directory\)$"):
        use(one)  # type: ignore[operator]


def test_a_longer_a_newer_and_a_missing_file_are_no_longer_what_was_listed(tmp_path: Path) -> None:
    one = source(tmp_path / "a.csv", TEXT)
    one.check_unchanged()
    os.utime(one.path, ns=(one.modified_ns, one.modified_ns + 1))
    with pytest.raises(InputError, match="changed while it was read"):
        one.check_unchanged()
    one.path.write_bytes(TEXT + b"x")
    os.utime(one.path, ns=(one.modified_ns, one.modified_ns))
    with pytest.raises(InputError, match="changed while it was read"):
        one.check_unchanged()
    one.path.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        one.check_unchanged()


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
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], chunk: int, block_bytes: int
) -> None:
    data = b"".join(pieces)
    one = source(tmp_path_factory.mktemp("cut") / "a.csv", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_CHUNK", chunk)
        blocks = cut(one, start=0, block_bytes=block_bytes)
    assert b"".join(read_bytes(one, block.start, block.stop) for block in blocks) == data
    assert {block.start for block in blocks} <= row_starts(data)
    assert [block.number for block in blocks] == list(range(len(blocks)))


def test_a_file_without_quotes_is_cut_at_every_line_end_that_is_far_enough(tmp_path: Path) -> None:
    one = source(tmp_path / "a.csv", b"head\n12\n345\r\n6\n7890\n1")
    for least, starts in ((1, [5, 8, 13, 15, 20]), (4, [5, 13, 20]), (10**6, [5])):
        blocks = cut(one, start=5, block_bytes=least)
        assert [block.start for block in blocks] == starts
        assert [block.stop for block in blocks] == [*starts[1:], 21]


def test_a_file_with_quoted_fields_is_still_cut_between_its_rows(tmp_path: Path) -> None:
    one = source(tmp_path / "a.csv", b'"a\n""b",1\nc,2\n"d",3\n')
    assert [(b.start, b.stop) for b in cut(one, start=0, block_bytes=1)] == [(0, 10), (10, 14), (14, 20)]
