"""A folder against its ledger: off the chain, other values, other files, a ledger that ends before the folder does."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import date

import pyarrow.parquet as pq
import pytest

from agedp.ledger_transfer import verify_against
from agedp.release_folder.origin import check_ledger_not_behind, release_origins
from agedp.release_folder.release_folder import AVERAGES, open_release
from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from tests.agedp_data.ledger.texts import ENVELOPE

FIRST = date(2013, 1, 1)


@pytest.fixture
def homes(published_twice, houses, tmp_path):
    """A copy of it to spoil."""
    return houses(shutil.copytree(published_twice.folder, tmp_path / "house"))


def ledger(homes, name="ledger.sqlite", *, create=False):
    return Ledger.open(f"sqlite:///{homes.folder / name}", create=create)


def edit_rows(homes, change):
    path = homes.folder / "release" / AVERAGES
    table = pq.ParquetFile(path).read()
    pq.write_table(type(table).from_pylist(change(table.to_pylist()), schema=table.schema), path)


@pytest.mark.parametrize("folder", ["release", "older"])
def test_a_folder_and_the_one_before_it_lie_on_the_chain(homes, folder):
    with ledger(homes) as known:
        verify_against(open_release(homes.folder / folder), known)
        check_ledger_not_behind(known, release_origins(homes.folder / folder))


@pytest.mark.parametrize("name", ["older.sqlite", "empty.sqlite"])
def test_a_ledger_that_ends_before_the_folder_is_behind(homes, name):
    with ledger(homes, name, create=True) as known:
        with pytest.raises(LedgerBehind, match="shorter than the folder"):
            verify_against(homes.release, known)
        with pytest.raises(LedgerBehind, match="agedp ledger recover"):
            check_ledger_not_behind(known, release_origins(homes.folder / "release"))


def test_another_ledger_is_not_the_chain_of_the_folder(homes):
    with ledger(homes, "other.sqlite", create=True) as other:
        other.register_model(ENVELOPE, at=FIRST)
        with pytest.raises(LedgerError, match="not on the hash chain"):
            verify_against(homes.release, other)


def test_a_ledger_that_went_another_way_since_is_behind(homes):
    with ledger(homes, "older.sqlite") as forked:
        kept = forked.statements()[-1].claim
        for number in range(5):
            said = json.loads(kept) | {"title": f"claim {number}"}
            forked.record(json.dumps(said), population="homes", files={}, software="", at=FIRST)
        with pytest.raises(LedgerBehind):
            verify_against(homes.release, forked)


def test_a_folder_with_another_value_is_found_by_its_day(homes):
    edit_rows(homes, lambda rows: [rows[0], {**rows[1], "noisy_sum_wh": 5}, *rows[2:]])
    with (
        ledger(homes) as known,
        pytest.raises(LedgerError, match=f"different values: {AVERAGES}: 2013-01-02, column noisy_sum_wh: 5 differs"),
    ):
        verify_against(homes.release, known)


@pytest.mark.parametrize("change", [lambda rows: rows[:-1], lambda rows: [*rows, rows[-1]], lambda rows: []])
def test_a_day_that_only_one_of_the_two_has_is_found(homes, change):
    edit_rows(homes, change)
    with ledger(homes) as known, pytest.raises(LedgerError, match=r"different values: .* lacks this row"):
        verify_against(homes.release, known)


def test_files_of_which_the_ledger_keeps_no_statement_are_found(homes):
    sums = homes.folder / "release" / "SHA256SUMS"
    sums.write_text(sums.read_text().replace("0", "1"))
    with ledger(homes) as known, pytest.raises(LedgerError, match="no statement with the files"):
        verify_against(homes.release, known)


def test_a_ledger_edited_behind_its_back_is_not_believed(homes):
    with closing(sqlite3.connect(homes.folder / "ledger.sqlite")) as raw:
        raw.execute("DROP TRIGGER release_update")
        raw.execute("""UPDATE release SET "values" = '[1]' WHERE day = '2013-01-02'""")
        raw.commit()
    with ledger(homes) as known, pytest.raises(LedgerError, match="was changed or damaged"):
        verify_against(homes.release, known)
