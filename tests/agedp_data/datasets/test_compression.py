"""Packed files: the same bytes whatever the packing, and one line for what cannot be unpacked."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from agedp_data.datasets.compression import open_decompressed
from agedp_data.datasets.file_listing import InputFile, list_input_files
from agedp_data.errors import InputError

TEXT = b"LCLid,DateTime,KWH/hh (per half hour)\n" + b"".join(
    b"MAC%06d,2013-01-01 00:30:00,0.%03d\n" % (i, i * 37 % 1000) for i in range(3000)
)


def source(path: Path, content: bytes) -> InputFile:
    path.write_bytes(content)
    (found,) = list_input_files([str(path)]).sources
    return found


def whole(one: InputFile) -> bytes:
    with open_decompressed(one) as stream:
        return stream.read()


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
def test_a_file_is_the_same_however_it_is_packed(tmp_path: Path, name: str) -> None:
    with open_decompressed(source(tmp_path / name, PACKED[name])) as stream:
        assert stream.read(38) == TEXT[:38]
        assert stream.read() == TEXT[38:]


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
    "encrypted.zip": (with_fields(PACKED["one.csv.zip"], flags=1), "the archive is encrypted; extract it first"),
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
        whole(one)
    assert str(caught.value).startswith(f"input 1 of 1: {words}")
    assert caught.value.private.startswith(f"{tmp_path / name}: {words}")
    assert "\n" not in caught.value.private
