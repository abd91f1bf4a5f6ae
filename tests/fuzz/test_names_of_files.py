"""What a glob may meet in a folder: read once, passed over and counted, or refused with one line; never waited for."""

# ruff: noqa: PT017  (either ending is judged)

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.datasets.file_listing import list_input_files, natural_sort_key
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import InputError
from tests.fuzz.originals import originals
from tests.fuzz.test_input_files import in_time

DATA = originals()["london kaggle"].data
ONE = Engine("synchronous", 1)


def names(*patterns: str) -> list[str]:
    with in_time(10):
        return [one.name for one in list_input_files(patterns).sources]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(DATA)
    return tmp_path / "in"


def test_links_that_lead_round_in_circles_are_followed_once(folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "b.csv").write_bytes(DATA)
    for place in (folder, folder / "deep"):
        for name in ("one", "two", "three"):  # globbing follows them 40 times each: 3^40 ways
            (place / name).symlink_to(folder)
    assert names(f"{folder}/**/*.csv") == ["a.csv", "b.csv"]
    assert names(f"{folder}/**") == ["a.csv", "b.csv"]
    assert names(f"{folder}/**/deep/*.csv") == ["b.csv"]


def test_a_link_to_a_folder_elsewhere_is_followed(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "c.csv").write_bytes(DATA)
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    assert names(f"{folder}/**/*.csv") == ["a.csv", "c.csv"]
    assert names(f"{folder}/*/*.csv", f"{folder}/l[i]nk/c.csv") == ["c.csv"]


@pytest.mark.parametrize("pattern", ["{}", "{}/*", "{}/**", "{}/*.csv"])
def test_pipes_devices_and_folders_are_passed_over_and_counted(folder, pattern):
    os.mkfifo(folder / "pipe.csv")
    (folder / "zero.csv").symlink_to("/dev/zero")
    (folder / "folder.csv").mkdir()
    with in_time(10):
        listing = list_input_files([pattern.format(folder)])
    assert [one.name for one in listing.sources] == ["a.csv"]
    assert listing.ignored == 2


@pytest.mark.parametrize("target", ["nowhere.csv", "loop.csv"])
def test_a_link_that_leads_nowhere_is_no_file_that_was_read(folder, target):
    (folder / "loop.csv").symlink_to(folder / target)
    with pytest.raises(InputError, match="cannot be opened") as caught:
        list_input_files([f"{folder}/*.csv"])
    assert "loop.csv" in caught.value.private
    assert "loop.csv" not in str(caught.value)


@pytest.mark.parametrize(
    "pattern", ["*.parquet", "nothing*", "none.csv", "[", "a.csv/*", "", "**/*.zip", "x" * 300 + ".csv"]
)
def test_a_pattern_that_names_nothing_usable_is_one_line(folder, pattern):
    if not pattern:
        (folder / "a.csv").unlink()
    with pytest.raises(InputError) as caught:
        list_input_files([f"{folder}/{pattern}"])
    assert caught.value.private.isprintable()


def test_one_file_by_several_names_is_read_once(folder, tmp_path):
    (folder / "b.csv").symlink_to(folder / "a.csv")
    (folder / "c.csv").hardlink_to(folder / "a.csv")
    store = Store(tmp_path / "store", "london", ReadingRules())
    patterns = [str(folder), f"{folder}/*", f"{folder}/a.csv", f"{folder}/../in/a.csv", f"{folder}//a.csv"]
    delivery = ingest(store, patterns, engine=ONE)
    assert len(delivery.contents) == 1
    assert delivery.rows_read == originals()["london kaggle"].read(DATA).rows


@pytest.mark.parametrize(
    "name",
    [
        b"two\nlines.csv", b"\xff\xfe.csv", b"\xe2\x80\xae.csv", b"[a].csv", b"{day}.csv", b"3\xc2\xb24.csv", b" .csv",
        b"'\".csv",
    ],
)  # fmt: skip
@pytest.mark.parametrize("content", [DATA, b"\x00", b"wrong,header\n"])
def test_a_file_of_any_name_is_read_or_refused_in_one_line(folder, tmp_path, name, content):
    Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(content)
    (folder / "a.csv").unlink()
    store = Store(tmp_path / "store", "london", ReadingRules())
    try:
        delivery = ingest(store, [str(folder)], engine=ONE)
    except InputError as refusal:
        assert content != DATA
        assert refusal.private.isprintable()
        assert os.fsdecode(name) not in str(refusal)
        return
    assert content == DATA
    assert delivery.rows_read == originals()["london kaggle"].read(DATA).rows


@settings(max_examples=200, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.text(alphabet=st.characters(exclude_characters="/\0"), min_size=1, max_size=8), max_size=6))
def test_names_of_any_letters_have_an_order_and_keep_their_letters(found):
    for name, key in zip(found, map(natural_sort_key, found), strict=True):
        assert "".join(part for _, _, part in key) == name
    assert sorted(sorted(found, key=natural_sort_key)) == sorted(found)
