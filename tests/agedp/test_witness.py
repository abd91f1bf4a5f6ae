"""Snapshot, run, restore, run: with a witness the restored machine is refused before it draws a day again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from agedp.ledger_transfer import recover
from agedp.stages.amend import amend
from agedp_data import mechanisms
from agedp_data.errors import ContractChanged, LedgerBehind, LedgerError
from agedp_data.ledger.witness import witness_at
from agedp_data.statement.note_texts import NOTES
from tests.agedp.conftest import House
from tests.agedp_data.ledger.conftest import KINDS, place_of

FIRST = date(2013, 1, 1)
SECOND_NIGHT, THIRD_NIGHT, FOURTH_NIGHT = (date(2013, 1, day) for day in (3, 4, 5))


class Draws:
    """A sampler that draws another value each time, and counts."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, values: object, *, sensitivity: int, loss: object) -> np.ndarray:
        self.number += 1
        return np.asarray(values, np.int64) + self.number


@pytest.fixture(autouse=True)
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    counted = Draws()
    monkeypatch.setattr(mechanisms, "discrete_laplace", counted)
    return counted


@pytest.fixture
def machine(tmp_path: Path) -> House:
    """A house with readings of four days of three households; nothing is released yet."""
    (tmp_path / "house").mkdir()
    house = House(tmp_path / "house")
    house.fill([FIRST + timedelta(days=number) for number in range(4)])
    return house


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "london.witness")


def write(machine: House, place: str | None) -> None:
    """Write the run file, with a witness at a place or without one."""
    machine.write(FIRST, date(2013, 1, 6))
    if place is not None:
        machine.edit(("[population]", f'witness = "{place}"\n[population]'))


def begin(machine: House, place: str | None) -> Callable[[], None]:
    """Release two days; return what puts the whole machine back as it is then."""
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
    return snapshot(machine)


def snapshot(machine: House) -> Callable[[], None]:
    copy = machine.folder.with_name("snapshot")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(machine.folder, copy)

    def restore() -> None:
        shutil.rmtree(machine.folder)
        shutil.copytree(copy, machine.folder)

    return restore


def ledger_url(machine: House) -> str:
    return f"sqlite:///{machine.folder / 'ledger.sqlite'}"


def released(machine: House) -> dict[str, tuple[int, ...]]:
    """Return what the ledger holds, by day."""
    return {row.day: row.values for row in machine.rows()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_machine_is_refused_before_it_draws(
    machine: House, draws: Draws, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = place_of(kind, tmp_path, request)
    restore = begin(machine, place)
    machine.run(today=THIRD_NIGHT)
    newest, record = machine.folder.with_name("newest.sqlite"), witness_at(place).read()
    shutil.copy(machine.folder / "ledger.sqlite", newest)
    before, drawn = released(machine), draws.number
    restore()
    assert len(released(machine)) == len(before) - 1
    with pytest.raises(LedgerBehind, match="the ledger is an older copy") as error:
        machine.run(today=THIRD_NIGHT)
    assert error.value.exit_status == 3
    assert place not in str(error.value)
    assert witness_at(place).read() == record
    shutil.copy(newest, machine.folder / "ledger.sqlite")
    machine.run(today=THIRD_NIGHT)
    assert released(machine) == before
    assert draws.number == drawn


def test_the_record_holds_hashes_and_the_release_no_place(machine: House, place: str) -> None:
    begin(machine, place)
    with machine.ledger() as ledger:
        second, account = ledger.rows()[-1].hash, ledger.content_head()
    assert json.loads(Path(place).read_text()) == {
        "schema": "agedp-witness-1", "old": second, "new": account, "state": "confirmed",
    }  # fmt: skip
    statement = machine.release.statement
    assert statement["contract"]["output"] == {"witness": "required"}
    assert NOTES.unwitnessed not in statement["notes"]
    assert place not in "".join(path.read_text("latin-1") for path in (machine.folder / "release").iterdir())


def test_a_ledger_recovered_from_the_newest_folder_goes_on(machine: House, place: str, draws: Draws) -> None:
    restore = begin(machine, place)
    machine.run(today=THIRD_NIGHT)
    before, received = released(machine), machine.folder.with_name("received")
    shutil.copytree(machine.folder / "release", received)
    restore()
    lost = machine.folder.with_name("lost.sqlite")
    shutil.move(machine.folder / "ledger.sqlite", lost)
    recover(received, ledger_url(machine), at=THIRD_NIGHT)
    machine.run(today=FOURTH_NIGHT)
    assert released(machine) | before == released(machine)
    assert len(released(machine)) == draws.number == 4
    shutil.copy(lost, machine.folder / "ledger.sqlite")
    with pytest.raises(LedgerBehind):
        machine.run(today=FOURTH_NIGHT)


def test_going_on_without_the_lost_rows_takes_two_amendments(machine: House, place: str) -> None:
    restore = begin(machine, place)
    machine.run(today=THIRD_NIGHT)
    restore()
    write(machine, None)
    with pytest.raises(ContractChanged, match=r"output\.witness"):
        machine.run(today=THIRD_NIGHT)
    amend(machine.context())
    write(machine, place)
    with pytest.raises(LedgerBehind):  # the old record is of no use any more
        amend(machine.context())
    write(machine, f"{place}.new")
    amend(machine.context())
    restore = snapshot(machine)
    machine.run(today=THIRD_NIGHT)
    assert [version["changes"] for version in machine.release.statement["versions"]] == [
        [], ['output.witness: "required" -> (absent)'], ['output.witness: (absent) -> "required"'],
    ]  # fmt: skip
    restore()
    with pytest.raises(LedgerBehind):  # from the amendment on the witness holds
        machine.run(today=THIRD_NIGHT)


def test_without_the_witness_that_it_names_a_series_is_refused(machine: House, place: str, draws: Draws) -> None:
    begin(machine, place)
    write(machine, None)
    with pytest.raises(ContractChanged, match=r"output\.witness"):
        machine.run(today=THIRD_NIGHT)
    write(machine, f"{place}.elsewhere")
    with pytest.raises(LedgerError, match="the contract requires a witness"):
        machine.run(today=THIRD_NIGHT)
    assert draws.number == 2
    shutil.copy(place, f"{place}.elsewhere")  # a record may be moved
    machine.run(today=THIRD_NIGHT)
    assert draws.number == 3
