"""Files by path and by URL: listed, hashed, cut and read the same, wherever they lie."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import fsspec
import pytest

from agedp_data.datasets import filesystem
from agedp_data.datasets.chunking import read_lines, split_into_chunks
from agedp_data.datasets.file_listing import combine_digests, file_segments, hash_segment, list_input_files
from agedp_data.errors import InputError

HEADER = b"LCLid,DateTime,KWH/hh (per half hour)\n"
TEXT = HEADER + b"".join(b"MAC%06d,2013-01-01 00:30:00,0.%03d\n" % (i, i * 37 % 1000) for i in range(3000))
CONTENTS = {"block_2.csv": TEXT, "block_10.csv.gz": gzip.compress(TEXT), ".hidden.csv": b"x", "notes.txt": b"x"}


@dataclass(frozen=True)
class Place:
    """A folder by path or URL with CONTENTS in it."""

    root: str

    def put(self, name: str, content: bytes) -> None:
        with fsspec.open(f"{self.root}/{name}", "wb") as stream:
            stream.write(content)


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.xdist_group("s3"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "local":
        found = Place(str(tmp_path / "incoming"))
        (tmp_path / "incoming").mkdir()
    elif request.param == "memory":
        found = Place(f"memory://{tmp_path.name}")
    else:
        found = Place(request.getfixturevalue("bucket"))
    for name, content in CONTENTS.items():
        found.put(name, content)
    yield found
    if request.param == "memory":
        fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


@pytest.mark.parametrize("pattern", ["", "/*", "/block_*"])
def test_folders_and_globs_are_listed_in_numeric_order_wherever_they_lie(place: Place, pattern: str) -> None:
    listing = list_input_files([place.root + pattern])
    assert [one.name for one in listing.sources] == ["block_2.csv", "block_10.csv.gz"]
    assert [one.size for one in listing.sources] == [len(CONTENTS[one.name]) for one in listing.sources]


def test_a_file_has_the_same_digest_and_the_same_rows_wherever_it_lies(place: Place, tmp_path: Path) -> None:
    (tmp_path / "here.csv").write_bytes(TEXT)
    (here,) = list_input_files([str(tmp_path / "here.csv")]).sources
    plain, packed = list_input_files([place.root]).sources
    assert combine_digests([hash_segment(one) for one in file_segments(plain)]) == combine_digests(
        [hash_segment(file_segments(here)[0])]
    )
    start = len(HEADER)
    blocks = split_into_chunks(plain, start=start, chunk_bytes=20_000)
    assert len(blocks) == 6
    for one in (blocks, split_into_chunks(packed, start=start, chunk_bytes=20_000)):
        found = [data for block in one for data in read_lines(block, batch_bytes=7_000)]
        assert len(found) > 10
        assert b"".join(found) == TEXT[start:]
        assert all(data.endswith(b"\n") for data in found)


def test_a_file_that_is_overwritten_is_no_longer_what_was_listed(place: Place) -> None:
    one = list_input_files([f"{place.root}/block_2.csv"]).sources[0]
    one.check_unchanged()
    place.put("block_2.csv", TEXT + b"x")
    with pytest.raises(InputError, match="changed while it was read"):
        one.check_unchanged()


def test_markers_are_seen_wherever_they_lie(place: Place) -> None:
    assert filesystem.exists(f"{place.root}/block_2.csv")
    assert not filesystem.exists(f"{place.root}/2013-01-01.done")


def test_a_name_that_is_not_there_is_one_line_that_names_it_in_private_only(place: Place) -> None:
    with pytest.raises(InputError, match="a named file does not exist") as caught:
        list_input_files([f"{place.root}/MAC000002.csv"])
    assert "MAC000002" not in str(caught.value)
    assert "MAC000002" in caught.value.private


@pytest.mark.xdist_group("s3")
def test_a_bucket_that_does_not_answer_is_one_line(bucket: str) -> None:
    with pytest.raises(InputError, match=r"^\[input\] files: a named (URL|file) ") as caught:
        list_input_files([bucket.replace("meters", "no-such-bucket") + "/a.csv"])
    assert "no-such-bucket" not in str(caught.value)


@pytest.mark.parametrize("url", ["nowhere://a/b.csv", "gs://bucket/*.csv"])
def test_a_protocol_that_nobody_speaks_here_is_one_line(url: str) -> None:
    with pytest.raises(InputError, match=r"^\[input\] files: a named URL") as caught:
        list_input_files([url])
    assert "\n" not in caught.value.private


@pytest.fixture
def silent() -> Iterator[tuple[str, list[socket.socket]]]:
    """A service that takes every connection and never says a word."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listening.accept()[0])

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", taken
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()
    for one in taken:
        one.close()


@pytest.mark.xdist_group("s3")
@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("s3://silent/in", filesystem.list_locations),
        ("http://{}/in.csv", filesystem.list_locations),
        ("http://{}/roster.csv", partial(filesystem.read_bytes, label="[population] roster")),
    ],
)
def test_a_service_that_is_silent_is_asked_a_few_times_and_told_in_one_line(
    url: str, asked: Callable[[str], object], silent: tuple[str, list[socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, taken = silent
    monkeypatch.setattr(filesystem, "ANSWER_SECONDS", 0.1)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{where}")
    with pytest.raises(InputError, match="cannot be opened"):
        asked(url.format(where))
    assert 1 <= len(taken) <= 5  # not five times by s3fs and five times in each of these by botocore
