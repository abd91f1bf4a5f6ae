"""A folder against its ledger: off the chain, other values, other files, a ledger that ends before the folder does."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import date, timedelta

import pyarrow.parquet as pq
import pytest

from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from pipelines.compare import Sign, require_not_behind, require_same, signs_in, told, verify_against
from pipelines.received import AVERAGES, open_release

FIRST = date(2013, 1, 1)


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory):
    """Three homes, three of five days released, in a ledger of which a copy was kept after the second."""
    house = houses(tmp_path_factory.mktemp("house"))
    house.london(
        {(home, FIRST + timedelta(days=i), slot): 200 for home in "ABC" for i in range(5) for slot in range(48)}
    )
    house.roster([(home, FIRST, None) for home in "ABC"])
    house.write(FIRST, FIRST + timedelta(days=4))
    house.run(today=date(2013, 1, 3))
    shutil.copy(house.folder / "ledger.sqlite", house.folder / "older.sqlite")
    shutil.copytree(house.folder / "release", house.folder / "older")
    house.run(today=date(2013, 1, 4))
    return house


@pytest.fixture
def homes(made, houses, tmp_path):
    """A copy of it to spoil."""
    return houses(shutil.copytree(made.folder, tmp_path / "house"))


def ledger(homes, name="ledger.sqlite", *, create=False):
    return Ledger.open(f"sqlite:///{homes.folder / name}", create=create)


@pytest.mark.parametrize("folder", ["release", "older"])
def test_a_folder_and_the_one_before_it_lie_on_the_chain(homes, folder):
    with ledger(homes) as known:
        verify_against(open_release(homes.folder / folder), known)
        require_not_behind(known, signs_in(homes.folder / folder))


@pytest.mark.parametrize("name", ["older.sqlite", "empty.sqlite"])
def test_a_ledger_that_ends_before_the_folder_is_behind(homes, name):
    with ledger(homes, name, create=True) as known:
        with pytest.raises(LedgerBehind, match="shorter than the folder"):
            verify_against(open_release(homes.folder / "release"), known)
        with pytest.raises(LedgerBehind, match="agedp ledger recover"):
            require_not_behind(known, signs_in(homes.folder / "release"))


def test_another_ledger_is_not_the_chain_of_the_folder(homes):
    with ledger(homes, "other.sqlite", create=True) as other:
        other.adopt("{}", at=FIRST)
        with pytest.raises(LedgerError, match="not on the chain"):
            verify_against(open_release(homes.folder / "release"), other)


def test_a_ledger_that_went_another_way_since_is_behind(homes):
    with ledger(homes, "older.sqlite") as forked:
        for number in range(5):
            forked.record(f"claim {number}", population="homes", files={}, software="", at=FIRST)
        with pytest.raises(LedgerBehind):
            verify_against(open_release(homes.folder / "release"), forked)


def test_no_folder_is_behind_nothing_and_each_file_of_a_folder_tells_its_origin(homes):
    release = homes.folder / "release"
    head = open_release(release).statement["ledger"]["head"]
    assert signs_in(homes.folder / "nowhere") == frozenset()
    kept = {path.name: path.read_bytes() for path in release.iterdir()}
    for spared in ("statement.json", "ledger_rows.jsonl", AVERAGES):
        for name in {"statement.json", "ledger_rows.jsonl", AVERAGES} - {spared}:
            (release / name).write_bytes(kept[name][: len(kept[name]) // 2] if name == AVERAGES else b"{")
        assert signs_in(release) == {Sign("homes", head)}, spared
        for name, content in kept.items():
            (release / name).write_bytes(content)
    with ledger(homes, "older.sqlite") as older, ledger(homes) as whole:
        (release / "statement.json").unlink()
        with pytest.raises(LedgerBehind):
            require_not_behind(older, signs_in(release))
        shutil.copy(homes.folder / "older" / AVERAGES, release / AVERAGES)  # cut off: an older file beside newer ones
        assert len(signs_in(release)) == 2
        require_not_behind(whole, signs_in(release))


def test_a_folder_with_another_value_is_found_by_its_day(homes):
    path = homes.folder / "release" / AVERAGES
    table = pq.ParquetFile(path).read()
    rows = table.to_pylist()
    rows[1]["noisy_sum_wh"] += 1
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), path)
    with ledger(homes) as known, pytest.raises(LedgerError, match="other values than the ledger of 2013-01-02"):
        verify_against(open_release(homes.folder / "release"), known)


@pytest.mark.parametrize("change", [lambda said: said[:-1], lambda said: [*said, said[-1]], lambda said: []])
def test_a_day_that_only_one_of_the_two_has_is_found(homes, change):
    said = told(open_release(homes.folder / "release"))
    require_same(said, said[::-1])
    with pytest.raises(LedgerError, match="other values"):
        require_same(said, change(said))
    with pytest.raises(LedgerError, match="other values"):
        require_same(change(said), said)


def test_files_of_which_the_ledger_keeps_no_statement_are_found(homes):
    sums = homes.folder / "release" / "SHA256SUMS"
    sums.write_text(sums.read_text().replace("0", "1"))
    with ledger(homes) as known, pytest.raises(LedgerError, match="no statement with the files"):
        verify_against(open_release(homes.folder / "release"), known)


def test_a_ledger_edited_behind_its_back_is_not_believed(homes):
    with closing(sqlite3.connect(homes.folder / "ledger.sqlite")) as raw:
        raw.execute("DROP TRIGGER release_update")
        raw.execute("""UPDATE release SET "values" = '[1]' WHERE day = '2013-01-02'""")
        raw.commit()
    with ledger(homes) as known, pytest.raises(LedgerError, match="was changed or damaged"):
        verify_against(open_release(homes.folder / "release"), known)
