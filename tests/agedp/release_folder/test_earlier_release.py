"""A folder that agedp 0.1.0 published before there was a list of files: it is read, recovered from and gone on from.

`earlier_release/` holds its very bytes: three days of three made-up homes, epsilon 0.5 a day.
"""

from __future__ import annotations

import hashlib
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from agedp.ledger_transfer import recover, verify_against
from agedp.release_folder.release_folder import open_release
from agedp.stages.publish import write_folder_of_statement
from agedp_data.errors import InputError
from agedp_data.statement.markdown import markdown
from tests.agedp.release_folder.resealed import reseal

EARLIER = Path(__file__).with_name("earlier_release")
FIRST = date(2013, 1, 1)


@pytest.fixture
def homes(house):
    """Its folder and readings, and a ledger recovered from it."""
    readings = {(home, FIRST + timedelta(days=i), slot): 200 for home in "ABC" for i in range(4) for slot in range(48)}
    house.london(readings)
    house.roster([(home, FIRST, None) for home in "ABC"])
    house.write(FIRST, FIRST + timedelta(days=3))
    shutil.copytree(EARLIER, house.folder / "release")
    recover(house.folder / "release", f"sqlite:///{house.folder / 'ledger.sqlite'}", at=date(2013, 1, 5))
    return house


def test_it_is_as_it_was_published_and_verifies():
    earlier = open_release(EARLIER)
    earlier.verify()
    assert earlier.statement["schema"] == "agedp-statement-1"
    listed = (line.split("  ") for line in (EARLIER / "SHA256SUMS").read_text().splitlines())
    for digest, name in listed:
        assert hashlib.sha256((EARLIER / name).read_bytes()).hexdigest() == digest


def test_its_words_can_be_said_anew_without_what_it_did_not_say():
    words = markdown(open_release(EARLIER).read_statement())
    assert "| total | 1.5 | all published days of one household | always |" in words
    assert "second population" not in words
    assert "How long the promise lasts" not in words


def test_a_change_to_it_is_found_as_ever(tmp_path):
    folder = shutil.copytree(EARLIER, tmp_path / "release")
    told = folder / "statement.json"
    told.write_text(told.read_text().replace('"1.5"', '"1.4"'))
    reseal(folder)
    with pytest.raises(InputError):
        open_release(folder).verify()


def test_it_lies_on_the_chain_of_the_ledger_recovered_from_it(homes):
    with homes.ledger() as ledger:
        verify_against(homes.release, ledger)


def test_the_next_run_goes_on_from_it_and_draws_no_day_again(homes):
    before = homes.release.table()
    homes.run(today=date(2013, 1, 6))
    release = homes.release
    release.verify()
    after = release.table()
    assert after.head(len(before)).to_dict("list") == before.to_dict("list")
    assert len(after) == len(before) + 1
    assert release.statement["schema"] == "agedp-statement-2"
    assert "datapackage.json" in release.checksums


def test_as_it_stood_its_figures_and_statement_are_the_same_in_the_files_of_today(homes):
    homes.run(today=date(2013, 1, 6))
    session = homes.session(today=date(2013, 1, 7))
    ledger = session.open_ledger
    earliest = ledger.statements("homes")[0]
    assert not write_folder_of_statement(session, earliest.seq)  # other bytes, and it says so
    release = homes.release
    release.verify()
    earlier = open_release(EARLIER)
    assert release.statement == earlier.statement
    assert release.table().to_dict("list") == earlier.table().to_dict("list")
    assert "datapackage.json" in release.checksums
