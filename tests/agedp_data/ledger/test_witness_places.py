"""A file, an object and a row keep one record, and replace it only where it is what was expected."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
import s3fs

from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import witness as witness_module
from agedp_data.ledger.witness import FileWitness, WitnessState, witness_at
from tests.agedp_data.ledger.witnesses import KINDS, place_of, stored_row

FIRST = WitnessState("0" * 64, "a" * 64, "pending")
SECOND = WitnessState("0" * 64, "a" * 64, "confirmed")
THIRD = WitnessState("a" * 64, "b" * 64, "pending")


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_replaced_only_where_it_is_as_expected(kind, tmp_path, request):
    place = place_of(kind, tmp_path, request)
    witness = witness_at(place)
    assert witness.read() is None
    assert not witness.compare_and_set(FIRST, SECOND)
    assert witness.read() is None
    assert witness.compare_and_set(None, FIRST)
    assert not witness.compare_and_set(None, SECOND)
    assert not witness.compare_and_set(SECOND, THIRD)
    assert witness_at(place).read() == FIRST
    assert witness.compare_and_set(FIRST, SECOND)
    assert witness.compare_and_set(SECOND, THIRD)
    assert witness_at(place).read() == THIRD
    if kind == "file":
        witness.path.write_bytes(b'{"schema":"agedp-witness-2"}')
    else:
        s3fs.S3FileSystem().pipe_file(place, b"\xff\x00")
    with pytest.raises(LedgerError, match="holds no record that this agedp understands"):
        witness.read()


def test_a_row_of_an_earlier_version_is_replaced_only_where_it_is_as_expected(postgresql):
    """A role needs no right to make tables: it updates the record that 0.2 wrote, and begins none."""
    database = stored_row(postgresql, ("london", FIRST))
    place = f"{postgresql.url(database)}#london"
    witness = witness_at(place)
    assert not witness.compare_and_set(None, SECOND)
    assert not witness.compare_and_set(SECOND, THIRD)
    assert witness.read() == FIRST
    assert witness.compare_and_set(FIRST, SECOND)
    assert witness_at(place).compare_and_set(SECOND, THIRD)
    assert witness.read() == THIRD
    postgresql.admin("UPDATE agedp_witness SET state = '[[]'", database=database)
    with pytest.raises(LedgerError, match="holds no record that this agedp understands"):
        witness.read()
    postgresql.admin("DROP TABLE agedp_witness", database=database)
    with pytest.raises(LedgerError, match="its table agedp_witness is missing"):
        witness.read()


@pytest.mark.parametrize("kind", [*KINDS, "row"])
def test_of_many_who_write_at_once_one_succeeds(kind, tmp_path, request):
    if kind == "row":
        server = request.getfixturevalue("postgresql")
        place = f"{server.url(stored_row(server, ('london', FIRST)))}#london"
    else:
        place = place_of(kind, tmp_path, request)
    states = [WitnessState("a" * 64, f"{number:064d}", "pending") for number in range(8)]
    for expected in (FIRST,) if kind == "row" else (None, FIRST):
        with ThreadPoolExecutor(4) as pool:
            stored = list(pool.map(lambda state, old=expected: witness_at(place).compare_and_set(old, state), states))
        assert stored.count(True) == 1
        written = states[stored.index(True)]
        assert witness_at(place).read() == written
        witness_at(place).compare_and_set(written, FIRST)


def test_rows_of_two_names_in_one_database_are_two_records(postgresql):
    url = postgresql.url(stored_row(postgresql, ("london", FIRST), ("sydney", SECOND), ("ledger", SECOND)))
    assert witness_at(url).compare_and_set(SECOND, THIRD)
    assert witness_at(f"{url}#paris").read() is None
    assert [witness_at(url + name).read() for name in ("#london", "#sydney", "#ledger")] == [FIRST, SECOND, THIRD]


def test_a_file_is_its_owners_alone_and_leaves_no_litter(tmp_path):
    witness = FileWitness(tmp_path / "london.witness")
    (tmp_path / ".london.witness.new").write_text("left by a run that was killed")
    witness.compare_and_set(None, FIRST)
    witness.compare_and_set(FIRST, SECOND)
    assert stat.S_IMODE(witness.path.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == [".london.witness.lock", "london.witness"]


def test_a_lock_that_is_not_released_ends_the_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(witness_module, "LOCK_SECONDS", 0.05)
    held, waiting = FileWitness(tmp_path / "w"), FileWitness(tmp_path / "w")
    with held._exclusive_lock(), pytest.raises(LedgerError, match="held by another process"):
        waiting.compare_and_set(None, FIRST)


def test_places_that_do_not_answer_are_refused_in_one_line(postgresql, bucket, tmp_path):
    (tmp_path / "w").mkdir()
    places = [str(tmp_path / "w"), str(tmp_path / "unmounted" / "w"), postgresql.url("no_such_database")]
    for place in (*places, "s3://no-such-bucket/w"):
        witness = witness_at(place)
        with pytest.raises(LedgerError) as error:
            witness.compare_and_set(SECOND if place.startswith("postgresql") else None, FIRST)
        assert (isinstance(error.value, LedgerBehind), error.value.exit_status) == (False, 3)
        for part in ("\n", str(tmp_path), witness.address):
            assert part not in str(error.value)
    with pytest.raises(LedgerError, match="does not exist"):
        witness_at(places[1]).read()
    assert not (tmp_path / "unmounted").exists()


class Careless:
    """A file system whose writes know no conditions, as those of some object stores."""

    def __init__(self, system: s3fs.S3FileSystem) -> None:
        self._system = system

    def __getattr__(self, name: str) -> object:
        return getattr(self._system, name)

    def pipe_file(self, path: str, content: bytes, **conditions: str) -> None:
        self._system.pipe_file(path, content)


def test_a_store_that_ignores_conditions_is_refused(bucket, monkeypatch):
    monkeypatch.setattr(witness_module, "system_at", lambda url: (Careless(s3fs.S3FileSystem()), url))
    with pytest.raises(LedgerError, match="ignores If-Match and If-None-Match"):
        witness_at(f"{bucket}/ignores/witness.json").compare_and_set(None, FIRST)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me:secret@host/database", "password"),
        ("postgresql://host/database?password=secret", "password"),
        ("postgresql://host", "names no database"),
    ],
)
def test_an_address_with_a_password_is_refused_unquoted(url, message):
    with pytest.raises(LedgerError, match=message) as error:
        witness_at(url)
    assert "secret" not in f"{error.value}{error.value.private}"
