"""Input files: which ones, in what order, and what tells that one has changed."""

from __future__ import annotations

import os
from pathlib import Path

import fsspec
import pytest

from agedp_data.datasets import file_listing
from agedp_data.datasets.chunking import split_into_chunks
from agedp_data.datasets.file_listing import (
    InputFile,
    combine_digests,
    file_segments,
    hash_segment,
    list_input_files,
    read_head,
)
from agedp_data.errors import InputError

TEXT = b"LCLid,DateTime,KWH/hh (per half hour)\n" + b"".join(
    b"MAC%06d,2013-01-01 00:30:00,0.%03d\n" % (i, i * 37 % 1000) for i in range(3000)
)


def source(path: Path, content: bytes) -> InputFile:
    path.write_bytes(content)
    (found,) = list_input_files([str(path)]).sources
    return found


@pytest.mark.parametrize("at", ["memory://me@no-such-inputs/*.csv?sig=aXz", "zip://*.txt::file://me@{}?sig=aXz"])
def test_a_url_that_finds_nothing_is_told_without_user_and_query(at: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        list_input_files([at.format(tmp_path / "a.zip")])
    assert not any(secret in str(caught.value) + caught.value.private for secret in ("me@", "aXz"))


def test_hidden_files_and_unknown_extensions_are_passed_over_and_counted(tmp_path: Path) -> None:
    for name in ("a.csv", "B.CSV", "c.csv.zst", ".d.csv", "e.txt", "f.csv.part", "README"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.csv").mkdir()
    listing = list_input_files([str(tmp_path)])
    assert [one.name for one in listing.sources] == ["B.CSV", "a.csv", "c.csv.zst"]
    assert [one.label for one in listing.sources] == ["input 1 of 3", "input 2 of 3", "input 3 of 3"]
    assert listing.ignored == 4


def test_a_file_named_by_two_patterns_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_bytes(b"x")
    patterns = [str(tmp_path / "a[1].csv"), str(tmp_path / "*.csv"), str(tmp_path)]
    assert [one.name for one in list_input_files(patterns).sources] == ["a[1].csv"]


def test_files_that_are_something_else_are_passed_over_and_counted_however_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.csv", "roster.csv"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "homes.csv").symlink_to("roster.csv")
    monkeypatch.chdir(tmp_path)
    listing = list_input_files(
        ["*.csv", str(tmp_path / "roster.csv")], excluding=[str(tmp_path / "a" / ".." / "roster.csv")]
    )
    assert ([one.name for one in listing.sources], listing.ignored) == (["a.csv"], 3)


def test_a_file_at_a_url_is_passed_over_however_its_file_system_writes_it() -> None:
    fsspec.filesystem("memory").pipe({f"/passed/{name}.csv": b"x" for name in ("a", "roster")})
    listing = list_input_files(["memory://passed/*.csv"], excluding=["memory://passed/roster.csv"])
    assert ([one.name for one in listing.sources], listing.ignored) == (["a.csv"], 1)


@pytest.mark.parametrize(
    ("pattern", "hint"), [("*.txt", "names end in .csv"), ("*.tsv", "nothing is there by that name")]
)
def test_a_glob_that_finds_nothing_and_one_that_finds_other_files_are_told_apart(
    tmp_path: Path, pattern: str, hint: str
) -> None:
    (tmp_path / "e.txt").write_bytes(b"x")
    with pytest.raises(InputError, match=hint) as caught:
        list_input_files([str(tmp_path / pattern)])
    assert hint in caught.value.private


@pytest.mark.parametrize("pattern", ["", "*.csv", "e.txt"])
def test_a_folder_without_usable_files_is_stopped(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "e.txt").write_bytes(b"x")
    with pytest.raises(InputError, match="no usable input file") as caught:
        list_input_files([str(tmp_path / pattern)])
    assert str(tmp_path) not in str(caught.value)
    assert str(tmp_path) in caught.value.private


def test_a_file_without_permission_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "MAC000002.csv").write_bytes(b"x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"^input 1 of 1: cannot be opened \(Permission denied\)$") as caught:
        list_input_files([str(tmp_path)])
    assert "MAC000002" in caught.value.private


def test_a_folder_without_permission_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError, match=r"a named folder cannot be opened \(Permission denied\)$"):
        list_input_files([str(tmp_path)])


@pytest.mark.parametrize(
    "use",
    [
        lambda one: hash_segment(file_segments(one)[0]),
        read_head,
        lambda one: split_into_chunks(one, start=0, chunk_bytes=1),
    ],
)
def test_a_file_that_goes_away_is_an_input_error_wherever_it_is_read(tmp_path: Path, use: object) -> None:
    one = source(tmp_path / "MAC000002.csv", TEXT)
    (tmp_path / "MAC000002.csv").unlink()
    with pytest.raises(InputError, match=r"^input 1 of 1:.* cannot be .* \(No such file or directory\)$"):
        use(one)  # type: ignore[operator]


def test_a_longer_a_newer_another_and_a_missing_file_are_no_longer_what_was_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"

    def replaced_unseen() -> None:
        (tmp_path / "b").write_bytes(TEXT.upper())
        os.utime(tmp_path / "b", ns=(0, path.stat().st_mtime_ns))
        (tmp_path / "b").replace(path)

    touches = [
        lambda: os.utime(path, ns=(0, path.stat().st_mtime_ns + 1)),
        lambda: path.write_bytes(TEXT + b"x"),
        replaced_unseen,
    ]
    for touch in touches:
        one = source(path, TEXT)
        one.check_unchanged()
        touch()
        with pytest.raises(InputError, match="changed while it was read"):
            one.check_unchanged()
    one = source(path, TEXT)
    path.unlink()
    with pytest.raises(InputError, match="cannot be opened"):
        one.check_unchanged()


def test_a_digest_names_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_listing, "SEGMENT_BYTES", 1000)
    texts = [TEXT, TEXT[:-1], TEXT.replace(b"2013", b"2014", 1), TEXT[:1000], TEXT[:1001], b"", TEXT + b'"']
    found = []
    for i, text in enumerate(texts):
        stretches = file_segments(source(tmp_path / f"{i}.csv", text))
        assert len(stretches) == max(1, -(-len(text) // 1000))
        found.append(combine_digests([hash_segment(one) for one in stretches]))
    assert len(set(found)) == len(texts)
