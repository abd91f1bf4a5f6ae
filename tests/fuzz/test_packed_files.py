"""Packed input: read to the last byte, or refused with one line; never in part."""

# ruff: noqa: PT017, S311  (either ending is judged; choices, not secrets)

from __future__ import annotations

import gzip
import io
import random
import struct
import zipfile
from collections import Counter

import pyarrow as pa
import pytest

from agedp_data.datasets.filesystem import list_input_files, open_decompressed
from agedp_data.errors import InputError
from tests.fuzz.originals import originals, read_file
from tests.fuzz.test_input_files import in_time

LONDON = originals()["london kaggle"]
DATA = LONDON.data


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def zstandard(data: bytes) -> bytes:
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(data)
    return packed.getvalue().to_pybytes()


def with_fields(archive: bytes, *fields: int) -> bytes:
    """Return a zip whose first member's flags and method are overwritten in both of its headers."""
    packed = bytearray(archive)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        struct.pack_into("<HH", packed, packed.index(mark) + at, *fields)
    return bytes(packed)


HALF = DATA.index(b"\n", len(DATA) // 2) + 1
SOUND = {
    "a.csv.gz": gzip.compress(DATA),
    "b.GZ": gzip.compress(DATA[:HALF]) + gzip.compress(DATA[HALF:]),
    "c.csv.gz": gzip.compress(DATA) + bytes(512),
    "d.csv.zip": zipped({"x.csv": DATA}),
    "e.zip": zipped({"deep/x.csv": DATA, "__MACOSX/x": b"x"}, zipfile.ZIP_STORED),
    "mac.zip": zipped({"x.csv": DATA, "__MACOSX/._x.csv": b"\0x", ".DS_Store": b"\0", "deep/.DS_Store": b"\0"}),
    "windows.zip": zipped({"deep/x.csv": DATA, "deep/Thumbs.db": b"\0", "desktop.ini": b"x"}),
    "f.zip": zipped({"x.csv": DATA}, zipfile.ZIP_LZMA),
    "g.csv.zst": zstandard(DATA),
    "h.zst": zstandard(DATA[:HALF]) + zstandard(DATA[HALF:]),
}
DAMAGED = "the archive is cut off or damaged; fetch it again"
REFUSED = {
    "a.csv.gz": (DATA, DAMAGED),
    "c.gz": (zipped({"x.csv": DATA}), DAMAGED),
    "d.gz": (gzip.compress(DATA) + b"more", DAMAGED),
    "e.gz": (gzip.compress(DATA)[:-9], DAMAGED),
    "f.gz": (gzip.compress(gzip.compress(DATA)), "is binary, not CSV"),
    "g.zip": (zipped({}), "the archive holds 0 files; one is expected"),
    "h.zip": (zipped({"a.csv": DATA, "b.csv": DATA}), "the archive holds 2 files; one is expected"),
    "i.zip": (zipped({"a.zip": zipped({"a.csv": DATA})}), "is binary, not CSV"),
    "j.zip": (with_fields(zipped({"a.csv": DATA}), 1, 8), "the archive is encrypted; extract it first"),
    "deflate64.zip": (
        with_fields(zipped({"a.csv": DATA}), 0, 9),
        r"this kind of zip \(deflate64\?\) cannot be read",
    ),
    "lzma.zip": (with_fields(zipped({"a.csv": DATA}), 0, zipfile.ZIP_LZMA), DAMAGED),
    "crc.gz": (gzip.compress(DATA)[:-8] + bytes(4) + gzip.compress(DATA)[-4:], DAMAGED),
    "m.zip": (zipped({"a.csv": DATA})[:-30], DAMAGED),
    "n.zst": (DATA, DAMAGED),
    "o.zst": (zstandard(DATA)[:-9], DAMAGED),
    "q.csv": (gzip.compress(DATA), "is binary, not CSV"),
    "s.zip": (zipped({"../../a/": b""}), "the archive holds 0 files; one is expected"),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_packed_file_says_what_it_says_unpacked(tmp_path, name):
    (tmp_path / name).write_bytes(SOUND[name])
    found, expected = read_file(tmp_path / name, LONDON, chunk_bytes=300), LONDON.read(DATA)
    assert (found.rows, found.rows_kept, found.readings) == (expected.rows, expected.rows_kept, expected.kept)


@pytest.mark.parametrize("name", REFUSED)
def test_an_archive_that_cannot_be_decompressed_whole_is_refused(tmp_path, name):
    content, message = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"^input 1 of 1: {message}") as caught, in_time():
        read_file(tmp_path / name, LONDON, chunk_bytes=300)
    assert caught.value.private.startswith(f"{tmp_path / name}: ")
    assert caught.value.private.isprintable()


def spoilt(content: bytes, choice: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(choice.choice([1, 1, 2, 8])):
        at = choice.randrange(len(data) + 1)
        match choice.randrange(4):
            case 0 if data:
                data[min(at, len(data) - 1)] ^= 1 << choice.randrange(8)
            case 1:
                del data[at:]
            case 2:
                del data[at : at + choice.randrange(1, 9)]
            case _:
                data[at:at] = choice.randbytes(choice.randrange(1, 9))
    return bytes(data)


@pytest.mark.parametrize("trials", [100, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_spoilt_archive_is_read_whole_or_refused(tmp_path, trials):
    """Without the frames of zstd, which carry no checksum here."""
    choice, met = random.Random(20261121), Counter()
    for _ in range(trials):
        name = choice.choice([name for name in SOUND if not name.endswith(".zst")])
        (tmp_path / name).write_bytes(spoilt(SOUND[name], choice))
        try:
            with in_time(), open_decompressed(list_input_files([str(tmp_path / name)]).sources[0]) as stream:
                found = stream.read()
        except InputError as refusal:
            met["refused"] += 1
            assert refusal.private.isprintable()
            assert len(refusal.private) < 500
            continue
        met["read"] += 1
        # Two members of a gzip file are two files: cut between them it is whole.
        assert found == DATA or (name == "b.GZ" and found in (DATA[:HALF], DATA[HALF:]))
    assert met["refused"] > trials / 3
    assert met["read"] > 0
