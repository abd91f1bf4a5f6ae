"""Packed input: read to the last byte, or refused with one line; never in part."""

# ruff: noqa: PT017, S311  (either ending is judged; choices, not secrets)

from __future__ import annotations

import gzip
import io
import random
import struct
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agedp_data.datasets import file_listing
from agedp_data.datasets.compression import open_decompressed
from agedp_data.errors import InputError
from tests.fuzz.originals import originals
from tests.fuzz.parsing import found_in
from tests.fuzz.test_input_files import in_time

DATA = originals()["london kaggle"].data
RULES = originals()["london kaggle"].rules


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


def with_fields(archive: bytes, *, flags: int | None = None, method: int | None = None) -> bytes:
    """Return a zip whose first member's flags or method are overwritten in both of its headers."""
    packed = bytearray(archive)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = packed.index(mark) + at
        if flags is not None:
            struct.pack_into("<H", packed, place, flags)
        if method is not None:
            struct.pack_into("<H", packed, place + 2, method)
    return bytes(packed)


HALF = DATA.index(b"\n", len(DATA) // 2) + 1
SOUND = {
    "a.csv.gz": gzip.compress(DATA),
    "b.GZ": gzip.compress(DATA[:HALF]) + gzip.compress(DATA[HALF:]),
    "c.csv.gz": gzip.compress(DATA) + bytes(512),
    "d.csv.zip": zipped({"x.csv": DATA}),
    "e.zip": zipped({"deep/x.csv": DATA, "__MACOSX/x": b"x"}, zipfile.ZIP_STORED),
    "f.zip": zipped({"x.csv": DATA}, zipfile.ZIP_LZMA),
    "g.csv.zst": zstandard(DATA),
    "h.zst": zstandard(DATA[:HALF]) + zstandard(DATA[HALF:]),
}
DAMAGED = "the archive is cut off or damaged; fetch it again"
REFUSED = {
    "a.csv.gz": (DATA, DAMAGED),
    "b.gz": (b"", DAMAGED),
    "c.gz": (zipped({"x.csv": DATA}), DAMAGED),
    "d.gz": (gzip.compress(DATA) + b"more", DAMAGED),
    "e.gz": (gzip.compress(DATA)[:-9], DAMAGED),
    "f.gz": (gzip.compress(gzip.compress(DATA)), "is binary, not CSV"),
    "g.zip": (zipped({}), "the archive holds 0 files; one is expected"),
    "h.zip": (zipped({"a.csv": DATA, "b.csv": DATA}), "the archive holds 2 files; one is expected"),
    "i.zip": (zipped({"a.zip": zipped({"a.csv": DATA})}), "is binary, not CSV"),
    "j.zip": (with_fields(zipped({"a.csv": DATA}), flags=1), "the archive is encrypted; extract it first"),
    "deflate64.zip": (
        with_fields(zipped({"a.csv": DATA}), method=9),
        r"this kind of zip \(deflate64\?\) cannot be read",
    ),
    "lzma.zip": (with_fields(zipped({"a.csv": DATA}), method=zipfile.ZIP_LZMA), DAMAGED),
    "crc.gz": (gzip.compress(DATA)[:-8] + bytes(4) + gzip.compress(DATA)[-4:], DAMAGED),
    "k.zip": (gzip.compress(DATA), DAMAGED),
    "l.zip": (b"", DAMAGED),
    "m.zip": (zipped({"a.csv": DATA})[:-30], DAMAGED),
    "n.zst": (DATA, DAMAGED),
    "o.zst": (zstandard(DATA)[:-9], DAMAGED),
    "p.zst": (zstandard(DATA)[:12], DAMAGED),
    "q.csv": (gzip.compress(DATA), "is binary, not CSV"),
    "r.csv": (zipped({"a.csv": DATA}), "is binary, not CSV"),
    "s.zip": (zipped({"../../a/": b""}), "the archive holds 0 files; one is expected"),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_packed_file_says_what_it_says_unpacked(tmp_path, name):
    (tmp_path / name).write_bytes(SOUND[name])
    found = found_in(tmp_path / name, "london", RULES, block_bytes=300)
    expected = originals()["london kaggle"].read(DATA)
    assert (found.rows, found.rows_kept, found.kept) == (expected.rows, expected.rows_kept, expected.kept)


@pytest.mark.parametrize("name", REFUSED)
def test_an_archive_that_cannot_be_unpacked_whole_is_refused(tmp_path, name):
    content, message = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"^input 1 of 1: {message}") as caught, in_time():
        found_in(tmp_path / name, "london", RULES, block_bytes=300)
    assert caught.value.private.startswith(f"{tmp_path / name}: ")
    assert caught.value.private.isprintable()


def _spoilt(content: bytes, choice: random.Random) -> bytes:
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


def _fuzzed(folder: Path, examples: int) -> None:
    met = {"read": 0, "refused": 0}
    # A frame of zstd carries no checksum here: what is spoilt inside it may be read, and is judged as any table is.
    checked = sorted(name for name in SOUND if not name.endswith(".zst"))

    @settings(
        max_examples=examples,
        derandomize=examples < 1000,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(name=st.sampled_from([*checked, "g.csv.zst"]), seed=st.integers(0, 2**32))
    def example(name: str, seed: int) -> None:
        path = folder / name
        path.write_bytes(_spoilt(SOUND[name], random.Random(seed)))
        try:
            with in_time(), open_decompressed(file_listing.list_input_files([str(path)]).sources[0]) as stream:
                found = stream.read()
        except InputError as refusal:
            met["refused"] += 1
            assert refusal.private.isprintable()
            assert len(refusal.private) < 500
            return
        met["read"] += 1
        # Two members of a gzip file are two files: cut between them it is whole.
        assert found == DATA or (name == "b.GZ" and found in (DATA[:HALF], DATA[HALF:])) or name.endswith(".zst")
        if name.endswith(".zst"):
            assert len(found) >= len(DATA) // 2

    example()
    assert met["refused"] > examples / 3 > 0
    assert met["read"] > 0


@pytest.mark.parametrize("examples", [150, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_spoilt_archive_is_read_whole_or_refused(tmp_path, examples):
    _fuzzed(tmp_path, examples)
