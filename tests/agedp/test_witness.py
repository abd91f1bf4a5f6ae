"""Snapshot, run, restore, run: with a witness the restored machine is refused before it draws a day again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from agedp import ledger_session
from agedp.ledger_transfer import export_ledger, import_ledger, recover
from agedp.stages.amend import amend
from agedp.stages.plan import forecast_run
from agedp_data import mechanisms
from agedp_data.errors import ContractChanged, LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from agedp_data.ledger.witness import WitnessState
from agedp_data.ledger.witness_address import witness_at
from agedp_data.statement.facts import UNWITNESSED
from tests.agedp.conftest import House
from tests.agedp_data.ledger.witnesses import KINDS, place_of

FIRST, LAST = date(2013, 1, 1), date(2013, 1, 6)
SECOND_NIGHT, THIRD_NIGHT = date(2013, 1, 3), date(2013, 1, 4)


class Draws:
    """A sampler that draws another value each time, and counts."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, values: object, *, sensitivity: int, loss: object) -> np.ndarray:
        self.number += 1
        return np.asarray(values, np.int64) + self.number


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    counted = Draws()
    monkeypatch.setattr(mechanisms, "discrete_laplace", counted)
    return counted


@pytest.fixture
def machine(tmp_path: Path) -> House:
    """A house with readings of six days of three households; nothing is released yet."""
    (tmp_path / "house").mkdir()
    house = House(tmp_path / "house")
    days = [FIRST + timedelta(days=number) for number in range(6)]
    house.fill(days)
    return house


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "london.witness")


def write(machine: House, place: str | None, *, epsilon: str = "0.5") -> None:
    """Write the run file, with a witness at a place or without one."""
    promise = f'notion = "classical"\nepsilon_per_day = {epsilon}\nmax_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
    text = machine.write(FIRST, LAST, promise=promise).read_text()
    if place is not None:
        text = text.replace("[population]", f'witness = "{place}"\n[population]')
    machine.run_file.write_text(text)


def snapshot(machine: House) -> Callable[[], None]:
    """Copy the whole machine; return what puts the copy back."""
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
    with Ledger.open(ledger_url(machine)) as ledger:
        return {row.day: row.values for row in ledger.rows()}


def published(machine: House) -> list[tuple[object, object]]:
    """Return what the release folder holds, by day."""
    folder = machine.release
    folder.verify()
    [table] = folder.averages().values()
    return [(row["day"], row["noisy_sum_wh"]) for row in table.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_machine_is_refused_before_it_draws(
    machine: House, draws: Draws, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = place_of(kind, tmp_path, request)
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
    restore = snapshot(machine)
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
    assert draws.number == drawn
    assert witness_at(place).read() == record
    shutil.copy(newest, machine.folder / "ledger.sqlite")
    machine.run(today=THIRD_NIGHT)
    assert released(machine) == before
    assert draws.number == drawn


def test_without_a_witness_it_draws_again_as_documented(machine: House, draws: Draws) -> None:
    write(machine, None)
    machine.run(today=SECOND_NIGHT)
    restore = snapshot(machine)
    machine.run(today=THIRD_NIGHT)
    first = released(machine)
    restore()
    machine.run(today=THIRD_NIGHT)
    assert released(machine).keys() == first.keys()
    assert released(machine) != first
    assert UNWITNESSED in machine.release.statement["notes"]
    assert "has no witness" in (machine.folder / "release" / "STATEMENT.md").read_text()


def test_with_a_witness_the_statement_tells_of_no_lack(machine: House, place: str) -> None:
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
    statement = machine.release.statement
    assert statement["contract"]["output"] == {"witness": "required"}
    assert UNWITNESSED not in statement["notes"]
    assert place not in "".join(path.read_text("latin-1") for path in (machine.folder / "release").iterdir())


def test_the_record_holds_hashes_and_nothing_else(machine: House, place: str) -> None:
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
    with Ledger.open(ledger_url(machine)) as ledger:
        contract, first, second = ledger.contracts()[0].hash, *(row.hash for row in ledger.rows())
    assert json.loads(Path(place).read_text()) == {
        "schema": "agedp-witness-1", "old": contract, "new": second, "state": "confirmed",
    }  # fmt: skip
    assert first not in Path(place).read_text()  # both days are drawn in one transaction


def test_a_machine_restored_to_its_beginning_is_refused(machine: House, place: str, draws: Draws) -> None:
    write(machine, place)
    restore = snapshot(machine)
    machine.run(today=SECOND_NIGHT)
    restore()
    with pytest.raises(LedgerBehind, match="the ledger is an older copy"):
        machine.run(today=THIRD_NIGHT)
    assert draws.number == 2
    assert not (machine.folder / "ledger.sqlite").exists()


def test_a_ledger_recovered_from_the_newest_folder_goes_on(machine: House, place: str, draws: Draws) -> None:
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
    restore = snapshot(machine)
    machine.run(today=THIRD_NIGHT)
    before, received = released(machine), machine.folder.with_name("received")
    shutil.copytree(machine.folder / "release", received)
    restore()
    lost = machine.folder.with_name("lost.sqlite")
    shutil.move(machine.folder / "ledger.sqlite", lost)
    recover(received, ledger_url(machine), at=THIRD_NIGHT)
    machine.run(today=THIRD_NIGHT)
    assert released(machine) == before
    machine.run(today=date(2013, 1, 5))
    assert dict(released(machine), **before) == released(machine)
    assert len(released(machine)) == draws.number == 4
    shutil.copy(lost, machine.folder / "ledger.sqlite")
    with pytest.raises(LedgerBehind):
        machine.run(today=date(2013, 1, 5))


def test_going_on_without_the_lost_rows_takes_two_amendments(machine: House, place: str, draws: Draws) -> None:
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
    restore = snapshot(machine)
    machine.run(today=THIRD_NIGHT)
    restore()
    write(machine, None)
    with pytest.raises(ContractChanged, match=r"output\.witness"):
        machine.run(today=THIRD_NIGHT)
    amend(machine.context())
    write(machine, place)
    with pytest.raises(LedgerBehind):  # the old record is of no use any more
        amend(machine.context())
    new_place = f"{place}.new"
    write(machine, new_place)
    amend(machine.context())
    machine.run(today=THIRD_NIGHT)
    statement = machine.release.statement
    assert [version["changes"] for version in statement["versions"]] == [
        [], ['output.witness: "required" -> (absent)'], ['output.witness: (absent) -> "required"'],
    ]  # fmt: skip


def test_a_witness_is_added_to_a_running_series_by_an_amendment(machine: House, place: str, draws: Draws) -> None:
    write(machine, None)
    machine.run(today=SECOND_NIGHT)
    write(machine, place)
    with pytest.raises(ContractChanged, match=r"output\.witness"):
        machine.run(today=THIRD_NIGHT)
    assert not Path(place).exists()
    amend(machine.context())
    restore = snapshot(machine)
    machine.run(today=THIRD_NIGHT)
    restore()
    with pytest.raises(LedgerBehind):
        machine.run(today=THIRD_NIGHT)
    assert draws.number == 3


def test_without_the_witness_that_it_names_a_series_is_refused(machine: House, place: str, draws: Draws) -> None:
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
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
    write(machine, None)
    amend(machine.context())
    machine.run(today=date(2013, 1, 5))
    assert UNWITNESSED in machine.release.statement["notes"]


def test_an_amendment_moves_the_record(machine: House, place: str) -> None:
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
    restore = snapshot(machine)
    write(machine, place, epsilon="0.25")
    amend(machine.context())
    restore()
    with pytest.raises(LedgerBehind):
        machine.run(today=THIRD_NIGHT)


def test_a_ledger_that_is_moved_goes_on(machine: House, place: str, draws: Draws) -> None:
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
    rows, moved = machine.folder / "rows.jsonl", machine.folder / "moved.sqlite"
    export_ledger(ledger_url(machine), rows, closed_at=THIRD_NIGHT)
    import_ledger(rows, f"sqlite:///{moved}")
    moved.replace(machine.folder / "ledger.sqlite")
    machine.run(today=THIRD_NIGHT)
    assert draws.number == len(released(machine)) == 3


def test_a_plan_asks_the_witness_and_writes_nothing(machine: House, place: str) -> None:
    write(machine, place)
    forecast_run(machine.session())
    assert not Path(place).exists()
    machine.run(today=SECOND_NIGHT)
    settled = json.loads(Path(place).read_text())
    pending = json.dumps({**settled, "old": settled["new"], "new": "f" * 64, "state": "pending"})
    Path(place).write_text(pending)
    forecast_run(machine.session())
    assert Path(place).read_text() == pending


class Failing:
    """A witness that stops answering before its n-th write, or after it was written."""

    def __init__(self, place: str, *, at: int, written: bool) -> None:
        self._witness, self._remaining, self._written = witness_at(place), at, written
        self.address = place

    def read(self) -> WitnessState | None:
        if self._remaining < 1:
            raise LedgerError("the witness does not answer")
        return self._witness.read()

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        self._remaining -= 1
        if self._remaining < 1:
            if self._written:
                self._witness.compare_and_set(expected, state)
            raise LedgerError("the witness does not answer")
        return self._witness.compare_and_set(expected, state)


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize(("at", "drawn", "again"), [(3, 2, 2), (4, 2, 0)])
def test_a_witness_that_fails_stops_the_run_before_it_publishes(
    machine: House, place: str, draws: Draws, monkeypatch: pytest.MonkeyPatch, at: int, drawn: int, again: int, *,
    written: bool,
) -> None:  # fmt: skip
    write(machine, place)
    with monkeypatch.context() as patch:
        patch.setattr(ledger_session, "witness_at", lambda place: Failing(place, at=at, written=written))
        with pytest.raises(LedgerError, match="does not answer"):
            machine.run(today=SECOND_NIGHT)
    assert draws.number == drawn
    assert not (machine.folder / "release" / "SHA256SUMS").exists()
    committed = released(machine)  # what was committed and not confirmed
    assert len(committed) == (2 if at == 4 else 0)
    machine.run(today=SECOND_NIGHT)
    assert draws.number == drawn + again
    assert dict(released(machine), **committed) == released(machine)
    assert [value for _, value in published(machine)] == [value for (value,) in released(machine).values()]


def test_populations_of_one_ledger_may_have_a_witness_or_none(machine: House, place: str, draws: Draws) -> None:
    write(machine, place)
    machine.run(today=SECOND_NIGHT)
    both = machine.run_file.read_text()
    second = both.replace('name = "homes"', 'name = "others"').replace('"release"', '"release-of-others"')
    second = second.replace('"confidential"', '"confidential-of-others"').replace(f'witness = "{place}"\n', "")
    for text in (second, both, second, both):
        machine.run_file.write_text(text)
        machine.run(today=THIRD_NIGHT)
    assert draws.number == 6
