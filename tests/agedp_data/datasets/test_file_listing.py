"""Input files by path, glob and URL: listed, hashed, cut and read the same, wherever they lie; never waited for."""

from __future__ import annotations

import gzip
import os
import socket
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import fsspec
import pytest

from agedp_data.datasets import filesystem
from agedp_data.datasets.filesystem import (
    combine_digests,
    file_segments,
    hash_segment,
    list_input_files,
    read_head,
    read_lines,
    split_into_chunks,
)
from agedp_data.errors import InputError

HEADER = b"LCLid,DateTime,KWH/hh (per half hour)\n"
TEXT = HEADER + b"".join(b"MAC%06d,2013-01-01 00:30:00,0.%03d\n" % (i, i * 37 % 1000) for i in range(3000))
CONTENTS = {"block_2.csv": TEXT, "block_10.csv.gz": gzip.compress(TEXT), ".hidden.csv": b"x", "notes.txt": b"x"}


def names(*patterns: object, **keys: object) -> list[str]:
    return [source.name for source in list_input_files([str(pattern) for pattern in patterns], **keys).sources]


def put(location: str, content: bytes) -> None:
    with fsspec.open(location, "wb") as stream:
        stream.write(content)


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.xdist_group("s3"))])
def place(request, tmp_path):
    """A folder by path or URL with CONTENTS in it."""
    if request.param == "local":
        root = str(tmp_path / "incoming")
        Path(root).mkdir()
    else:
        root = f"memory://{tmp_path.name}" if request.param == "memory" else request.getfixturevalue("bucket")
    for name, content in CONTENTS.items():
        put(f"{root}/{name}", content)
    yield root
    if request.param == "memory":
        fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


def test_a_place_is_listed_hashed_cut_and_watched_like_any_other(place, tmp_path):
    for pattern in ("", "/*", "/block_*"):
        assert names(place + pattern) == ["block_2.csv", "block_10.csv.gz"]
    assert filesystem.exists(f"{place}/block_2.csv")
    assert not filesystem.exists(f"{place}/2013-01-01.done")
    plain, packed = list_input_files([place]).sources
    assert [source.size for source in (plain, packed)] == [len(CONTENTS[source.name]) for source in (plain, packed)]
    (tmp_path / "here.csv").write_bytes(TEXT)
    here = list_input_files([str(tmp_path / "here.csv")]).sources[0]
    assert [hash_segment(each) for each in file_segments(plain)] == [hash_segment(each) for each in file_segments(here)]
    chunks = split_into_chunks(plain, start=len(HEADER), chunk_bytes=20_000)
    assert len(chunks) == 6
    for each in (chunks, split_into_chunks(packed, start=len(HEADER), chunk_bytes=20_000)):
        batches = [batch for chunk in each for batch in read_lines(chunk, batch_bytes=7_000)]
        assert len(batches) > 10
        assert b"".join(batches) == TEXT[len(HEADER) :]
        assert all(batch.endswith(b"\n") for batch in batches)
    with pytest.raises(InputError, match="a named file does not exist") as caught:
        names(f"{place}/MAC000002.csv")
    assert "MAC000002" not in str(caught.value)
    assert "MAC000002" in caught.value.private
    plain.check_unchanged()
    put(f"{place}/block_2.csv", TEXT + b"x")
    with pytest.raises(InputError, match="changed while it was read"):
        plain.check_unchanged()


@pytest.mark.parametrize("url", ["memory://me@no-such-inputs/*.csv?sig=aXz", "zip://*.txt::file://me@{}?sig=aXz",
                                 "nowhere://a/b.csv?sig=aXz", "gs://me@bucket/*.csv"])  # fmt: skip
def test_a_url_that_cannot_be_listed_is_one_line_without_user_and_query(url, tmp_path):
    with pytest.raises(InputError, match=r"^\[input\] files: ") as caught:
        names(url.format(tmp_path / "a.zip"))
    assert not any(secret in str(caught.value) + caught.value.private for secret in ("me@", "aXz", "\n"))


@pytest.fixture
def silent():
    """A service that takes every connection and never answers: its address, and the connections."""
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
    for connection in taken:
        connection.close()


@pytest.mark.xdist_group("s3")
@pytest.mark.parametrize(
    ("url", "ask"),
    [
        ("s3://silent/in", filesystem.list_locations),
        ("http://{}/in.csv", filesystem.list_locations),
        ("http://{}/roster.csv", partial(filesystem.read_bytes, label="[population] roster")),
    ],
)
def test_a_silent_service_is_asked_a_few_times_only(url, ask, silent, monkeypatch):
    where, taken = silent
    monkeypatch.setattr(filesystem, "ANSWER_SECONDS", 0.1)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{where}")
    with pytest.raises(InputError, match="cannot be opened"):
        ask(url.format(where))
    assert 1 <= len(taken) <= 5  # not five times by s3fs and five times in each of these by botocore


@pytest.fixture
def folder(tmp_path):
    """A folder with a.csv; everything else is for the test to add."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(TEXT)
    return tmp_path / "in"


def test_what_is_no_input_file_is_passed_over_and_counted(folder):
    for name in ("B.CSV", "c.csv.zst", ".d.csv", "e.txt", "f.csv.part", "README", "x[1].csv", "roster.csv"):
        (folder / name).write_bytes(b"x")
    (folder / "folder.csv").mkdir()
    os.mkfifo(folder / "pipe.csv")
    (folder / "zero.csv").symlink_to("/dev/zero")
    (folder / "homes.csv").symlink_to("roster.csv")
    for pattern in ("", "/*", "/**"):
        excluding = [f"{folder}/x/../roster.csv"]
        listing = list_input_files(
            [f"{folder}{pattern}", f"{folder}/x[1].csv", f"{folder}/roster.csv"], excluding=excluding
        )
        assert [source.name for source in listing.sources] == ["B.CSV", "a.csv", "c.csv.zst", "x[1].csv"]
        assert [source.label for source in listing.sources] == [f"input {i} of 4" for i in range(1, 5)]
        assert listing.ignored == (8 if not pattern else 7)  # a glob passes .d.csv over by itself
    fsspec.filesystem("memory").pipe({f"/passed/{name}.csv": b"x" for name in ("a", "roster")})
    assert names("memory://passed/*.csv", excluding=["memory://passed/roster.csv"]) == ["a.csv"]


def test_links_are_followed_and_circles_of_them_once(folder, tmp_path):
    (folder / "deep").mkdir()
    (folder / "deep" / "b.csv").write_bytes(TEXT)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "c.csv").write_bytes(TEXT)
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    for place in (folder, folder / "deep"):
        for name in ("one", "two", "three"):  # globbing follows them 40 times each: 3^40 ways
            (place / name).symlink_to(folder)
    assert names(f"{folder}/**/*.csv") == ["a.csv", "b.csv", "c.csv"]
    assert names(f"{folder}/**/deep/*.csv") == ["b.csv"]
    assert names(f"{folder}/l[i]nk/c.csv", f"{folder}/link/*") == ["c.csv"]


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [("", "names end in .csv"), ("*.txt", "names end in .csv"), ("e.txt", "names end in .csv"),
     ("*.tsv", "nothing is there by that name"), ("[", r"^\[input\] files: "), ("e.txt/*", r"^\[input\] files: "),
     ("x" * 300 + ".csv", r"^\[input\] files: ")],
)  # fmt: skip
def test_a_pattern_that_names_nothing_usable_is_one_line(tmp_path, pattern, hint):
    (tmp_path / "e.txt").write_bytes(b"x")
    with pytest.raises(InputError, match=hint) as caught:
        names(tmp_path / pattern)
    assert str(tmp_path) not in str(caught.value)
    assert str(tmp_path) in caught.value.private
    assert caught.value.private.isprintable()


@pytest.mark.parametrize("target", ["nowhere.csv", "MAC000002.csv"])
def test_a_link_that_leads_nowhere_is_refused(folder, target):
    (folder / "MAC000002.csv").symlink_to(folder / target)
    with pytest.raises(InputError, match="cannot be opened") as caught:
        names(f"{folder}/*.csv")
    assert "MAC000002" in caught.value.private
    assert "MAC000002" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "message"), [("open", "input 1 of 1: cannot be opened"), ("iterdir", "a named folder cannot be opened")]
)
def test_what_may_not_be_read_is_one_line(folder, monkeypatch, method, message):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, method, refuse)
    with pytest.raises(InputError, match=rf"{message} \(Permission denied\)$"):
        names(folder)


@pytest.mark.parametrize(
    "use",
    [
        lambda source: hash_segment(file_segments(source)[0]),
        read_head,
        lambda source: split_into_chunks(source, start=0, chunk_bytes=1),
        lambda source: source.check_unchanged(),
    ],
)
def test_a_file_that_goes_away_is_an_input_error_wherever_it_is_read(folder, use):
    source = list_input_files([str(folder)]).sources[0]
    (folder / "a.csv").unlink()
    with pytest.raises(InputError, match=r"^input 1 of 1:.* cannot be .* \(No such file or directory\)$"):
        use(source)


def test_a_digest_names_the_bytes(folder, monkeypatch):
    monkeypatch.setattr(filesystem, "SEGMENT_BYTES", 1000)
    texts = [TEXT, TEXT[:-1], TEXT.replace(b"2013", b"2014", 1), TEXT[:1000], TEXT[:1001], b"", TEXT + b'"']
    digests = set()
    for text in texts:
        (folder / "a.csv").write_bytes(text)
        segments = file_segments(list_input_files([str(folder)]).sources[0])
        assert len(segments) == max(1, -(-len(text) // 1000))
        digests.add(combine_digests([hash_segment(segment) for segment in segments]))
    assert len(digests) == len(texts)
