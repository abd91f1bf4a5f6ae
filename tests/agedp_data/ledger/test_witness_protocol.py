"""Every interleaving of runs, deaths and restored snapshots: no day has two published values, no ledger is stuck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger.records import NO_HASH
from agedp_data.ledger.witness import CommitWitness, WitnessState
from tests.agedp_data.ledger.protocol_model import BEGUN, CONTRACT, Model, Rows, World, world_of

RECORD = WitnessState(NO_HASH, CONTRACT, "confirmed")
ONE_LEDGER = world_of(BEGUN, runs=(0, 0), record=RECORD)
TWO_COPIES = world_of(BEGUN, BEGUN, runs=(0, 1), record=RECORD)
EMPTY = world_of((), runs=(0,), record=None)
MODEL = Model(attempts=2)


@pytest.fixture(scope="module")
def of_one_ledger() -> list[World]:
    """Every world of two runs at a time, each begun twice, on one ledger that may be restored from a snapshot."""
    return list(Model(attempts=2, restores=1).explore(ONE_LEDGER))


@pytest.fixture(scope="module")
def of_two_copies() -> list[World]:
    """Every world of one run on each of two copies, each begun twice."""
    return list(MODEL.explore(TWO_COPIES))


def has_two_values(world: World) -> bool:
    return len(world.published) > 1


def test_no_day_has_two_values_though_a_ledger_is_restored(of_one_ledger: list[World]) -> None:
    assert any(world.restored and world.published for world in of_one_ledger)
    assert not any(has_two_values(world) for world in of_one_ledger)


def test_no_day_has_two_values_though_two_copies_run(of_two_copies: list[World]) -> None:
    assert any(world.published for world in of_two_copies)
    assert not any(has_two_values(world) for world in of_two_copies)


@pytest.mark.long
def test_no_day_has_two_values_though_copies_are_restored() -> None:
    assert not any(has_two_values(world) for world in Model(attempts=2, restores=1).explore(TWO_COPIES))


def test_no_day_has_two_values_though_all_is_restored() -> None:
    assert not any(has_two_values(world) for world in Model(attempts=3, restores=2).explore(EMPTY))


@pytest.mark.parametrize(
    ("start", "model"),
    [
        (TWO_COPIES, Model(attempts=1, witnessed=False)),
        (ONE_LEDGER, Model(attempts=2, restores=1, witnessed=False)),
        (TWO_COPIES, Model(attempts=1, careless=True)),
    ],
)
def test_the_check_fails_without_a_witness_that_compares(start: World, model: Model) -> None:
    assert any(has_two_values(world) for world in model.explore(start))


def test_runs_of_one_ledger_are_never_refused(of_one_ledger: list[World]) -> None:
    never_restored = [world for world in of_one_ledger if not world.restored]
    assert not any(world.refused for world in never_restored)
    require_going_on(never_restored)


def test_runs_from_an_empty_ledger_are_never_refused() -> None:
    worlds = list(Model(attempts=3).explore(EMPTY))
    assert not any(world.refused for world in worlds)
    require_going_on(worlds)


def require_going_on(worlds: list[World]) -> None:
    """Require that one more run, undisturbed, publishes."""
    for world in {world.at_rest for world in worlds}:
        after = MODEL.undisturbed(world, 0)
        assert len(after.published) == 1
        assert not after.refused


def test_of_two_copies_one_is_never_refused_for_good(of_two_copies: list[World]) -> None:
    for world in {world.at_rest for world in of_two_copies}:
        ends = [MODEL.undisturbed(world, copy) for copy in (0, 1)]
        assert not all(after.refused for after in ends)
        assert not any(has_two_values(after) for after in ends)


def test_a_restored_ledger_is_refused_before_it_draws(of_one_ledger: list[World]) -> None:
    worlds = {world.at_rest for world in of_one_ledger}
    restored = [world for world in worlds if world.published and world.copies == (BEGUN,)]
    assert restored
    for world in restored:
        after = MODEL.undisturbed(world, 0)
        assert after.refused
        assert (after.copies, after.record, after.published) == (world.copies, world.record, world.published)


@dataclass
class InMemory:
    """A record that nothing else can change."""

    record: WitnessState | None
    address: str = "in memory"

    def read(self) -> WitnessState | None:
        return self.record

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        matches = self.record == expected
        self.record = state if matches else self.record
        return matches


def confirm(record: WitnessState | None) -> None:
    """Confirm the commit from a to b in a ledger that holds a, b and c, beside a record."""
    CommitWitness(InMemory(record), population="homes").confirm(
        WitnessState("a", "b", "pending"), lambda: Rows(("a", "b", "c"))
    )


@pytest.mark.parametrize("record", [("a", "b", "pending"), ("a", "b", "confirmed"), ("b", "c", "pending")])
def test_another_run_of_one_ledger_may_confirm_a_commit(record: tuple[Any, ...]) -> None:
    confirm(WitnessState(*record))


@pytest.mark.parametrize("record", [("a", "x", "pending"), ("a", "x", "confirmed"), ("", "a", "confirmed")])
def test_a_commit_that_was_overtaken_is_not_confirmed(record: tuple[Any, ...]) -> None:
    with pytest.raises(LedgerBehind, match="another copy of this ledger"):
        confirm(WitnessState(*record))


def test_a_commit_without_a_record_is_not_confirmed() -> None:
    with pytest.raises(LedgerError, match="has no record"):
        confirm(None)


def test_a_ledger_that_holds_the_pending_head_alone_goes_on() -> None:
    """So one that was recovered for one population of several: it lacks the rows of the others."""
    witness = InMemory(WitnessState("of others", "b", "pending"))
    assert CommitWitness(witness, population="homes").confirm_head(Rows(("a", "b"))) == witness.record
    assert witness.record == WitnessState("of others", "b", "confirmed")
