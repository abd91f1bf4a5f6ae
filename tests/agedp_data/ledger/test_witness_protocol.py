"""Every interleaving of runs, deaths and restored snapshots: no day has two published values, no ledger is stuck.

The protocol is the product's (`CommitWitness`); record and ledgers are values. Each access to one of them is one step.
A run is a function of the answers to its steps so far, so that a state of the world is a value: it is explored once,
whatever way leads to it. To take a step, the run is begun anew with the answers that it had, up to its next question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger.records import NO_HASH
from agedp_data.ledger.witness import CommitWitness, WitnessState

DAY, CONTRACT = "day", "contract"
BEGUN = (CONTRACT,)
"""A ledger with a contract that names a witness, and no release."""


@dataclass(frozen=True)
class Rows:
    """The rows of one copy of the ledger, named by their hashes; a release is (day, what was drawn)."""

    hashes: tuple[Any, ...]

    @property
    def content_head(self):
        return self.hashes[-1] if self.hashes else NO_HASH

    def row_number(self, head):
        return self.hashes.index(head) + 1 if head in self.hashes else None

    def promise_to(self, population):
        return '{"output":{"witness":"required"}}' if self.hashes else None


@dataclass(frozen=True)
class Run:
    """A run under way on one copy: the answers that it had so far; `alive` unless it ended."""

    copy: int
    attempt: int = 0
    answers: tuple[Any, ...] = ()
    alive: bool = True


@dataclass(frozen=True)
class World:
    """Everything that a step can change."""

    record: WitnessState | None
    copies: tuple[tuple[Any, ...], ...]
    runs: tuple[Run, ...]
    locked: tuple[int | None, ...]
    published: frozenset[Any] = frozenset()
    restored: int = 0
    refused: bool = False

    @property
    def at_rest(self) -> World:
        """The same world after every run died."""
        return replace(self, runs=(), locked=(None,) * len(self.copies), restored=0, refused=False)

    def with_run(self, number: int, run: Run) -> World:
        return replace(self, runs=_with(self.runs, number, run))


def _with(values: tuple[Any, ...], number: int, value: Any) -> tuple[Any, ...]:
    return (*values[:number], value, *values[number + 1 :])


class Question(Exception):
    """The next step of a run."""


class Steps:
    """The side of the world that a run sees: answers from before, then the next question."""

    address = "here"

    def __init__(self, answers: tuple[Any, ...]) -> None:
        self._answers = iter(answers)

    def ask(self, *question: Any) -> Any:
        for answer in self._answers:
            return answer
        raise Question(*question)

    def read(self) -> WitnessState | None:
        return self.ask("read")

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        return self.ask("set", expected, state)

    def rows(self) -> Rows:
        return Rows(self.ask("rows"))


def _transaction(steps: Steps, witness: CommitWitness | None, drawn: Any) -> None:
    """What `Ledger.in_one_transaction` does: lock, settle, draw unless drawn, announce, commit, confirm."""
    rows = Rows(steps.ask("begin"))
    record = witness.confirm_head(rows) if witness else None
    if drawn is None or any(row[0] == DAY for row in rows.hashes):
        steps.ask("commit", rows.hashes)
        return
    after = Rows((*rows.hashes, (DAY, drawn)))
    pending = witness.announce(record, old=rows.content_head, new=after.content_head) if witness else None
    steps.ask("commit", after.hashes)
    if witness and pending:
        witness.confirm(pending, steps.rows)


def _program(steps: Steps, drawn: Any, *, witnessed: bool) -> None:
    """A run: look, draw, state, publish."""
    witness = CommitWitness(steps, population="homes") if witnessed else None
    if witness:
        witness.check(steps.rows)
    _transaction(steps, witness, drawn)
    _transaction(steps, witness, None)
    steps.ask("publish")


@dataclass(frozen=True)
class Model:
    """What may happen: how often a run is begun on each copy, and how often a snapshot is put back."""

    attempts: int
    restores: int = 0
    witnessed: bool = True
    careless: bool = False
    """Whether the place of the record ignores what it is told to compare with, as a bad object store."""

    def explore(self, start: World) -> Iterator[World]:
        """Yield every world that can come about."""
        seen, waiting = {start}, [start]
        while waiting:
            world = waiting.pop()
            yield world
            new = set(self._successors(world, start)) - seen
            seen |= new
            waiting += new

    def _successors(self, world: World, start: World) -> Iterator[World]:
        for number, run in enumerate(world.runs):
            if run.alive:
                after = self.step(world, number)
                yield from () if after is None else (after,)
                yield _ended(world, number)  # killed
            elif run.attempt < self.attempts - 1:
                yield world.with_run(number, Run(run.copy, run.attempt + 1))
        if world.restored < self.restores:
            for copy, snapshot in enumerate(start.copies):
                if not any(run.alive and run.copy == copy for run in world.runs):
                    yield replace(world, copies=_with(world.copies, copy, snapshot), restored=world.restored + 1)

    def step(self, world: World, number: int) -> World | None:
        """Return the world after the next step of a run, None while it waits for a lock."""
        run = world.runs[number]
        try:
            _program(Steps(run.answers), (number, run.attempt), witnessed=self.witnessed)
        except LedgerError:
            return replace(_ended(world, number), refused=True)
        except Question as question:
            return self._answered(world, number, *question.args)
        return _ended(world, number)

    def _answered(self, world: World, number: int, question: str, *given: Any) -> World | None:
        run, copy = world.runs[number], world.runs[number].copy
        answer: Any = world.copies[copy]
        match question:
            case "read":
                answer = world.record
            case "set":
                answer = self.careless or world.record == given[0]
                world = replace(world, record=given[1]) if answer else world
            case "begin":
                if world.locked[copy] is not None:
                    return None
                world = replace(world, locked=_with(world.locked, copy, number))
            case "commit":
                copies, locked = _with(world.copies, copy, given[0]), _with(world.locked, copy, None)
                world = replace(world, copies=copies, locked=locked)
            case "publish":
                released = frozenset(row for row in world.copies[copy] if row[0] == DAY)
                world = replace(world, published=world.published | released)
        return world.with_run(number, replace(run, answers=(*run.answers, answer)))

    def undisturbed(self, world: World, copy: int) -> World:
        """Return the world after all runs died and one more came to its end on a copy."""
        world = replace(world, runs=(Run(copy, attempt=99),), locked=(None,) * len(world.copies))
        while world.runs[0].alive:
            after = self.step(world, 0)
            assert after is not None
            world = after
        return world


def _ended(world: World, number: int) -> World:
    """Return the world after a run ended in whatever way; its lock goes with it."""
    locked = tuple(None if holder == number else holder for holder in world.locked)
    return replace(world, locked=locked).with_run(number, replace(world.runs[number], alive=False, answers=()))


RECORD = WitnessState(NO_HASH, CONTRACT, "confirmed")
ONE_LEDGER = World(RECORD, (BEGUN,), (Run(0), Run(0)), (None,))
TWO_COPIES = World(RECORD, (BEGUN, BEGUN), (Run(0), Run(1)), (None, None))
EMPTY = World(None, ((),), (Run(0),), (None,))
MODEL = Model(attempts=2)


def has_two_values(world: World) -> bool:
    return len(world.published) > 1


def require_going_on(worlds: list[World]) -> None:
    """Require that no run was refused, and that one more, undisturbed, publishes."""
    assert not any(world.refused for world in worlds)
    for world in {world.at_rest for world in worlds}:
        after = MODEL.undisturbed(world, 0)
        assert (len(after.published), after.refused) == (1, False)


def test_runs_of_one_ledger_that_may_be_restored() -> None:
    """Two runs at a time, each begun twice: one value, none refused but where it was restored, before it draws."""
    worlds = list(Model(attempts=2, restores=1).explore(ONE_LEDGER))
    assert any(world.restored and world.published for world in worlds)
    assert not any(has_two_values(world) for world in worlds)
    require_going_on([world for world in worlds if not world.restored])
    restored = [world for world in {world.at_rest for world in worlds} if world.published and world.copies == (BEGUN,)]
    assert restored
    for world in restored:
        after = MODEL.undisturbed(world, 0)
        assert after.refused
        assert (after.copies, after.record, after.published) == (world.copies, world.record, world.published)


def test_of_two_copies_one_publishes_and_one_is_never_refused() -> None:
    worlds = list(MODEL.explore(TWO_COPIES))
    assert any(world.published for world in worlds)
    for world in {world.at_rest for world in worlds}:
        ends = [MODEL.undisturbed(world, copy) for copy in (0, 1)]
        assert not all(after.refused for after in ends)
        assert not any(has_two_values(after) for after in [world, *ends])


@pytest.mark.long
def test_no_day_has_two_values_though_copies_are_restored() -> None:
    assert not any(has_two_values(world) for world in Model(attempts=2, restores=1).explore(TWO_COPIES))


def test_a_ledger_from_its_first_row_on() -> None:
    assert not any(has_two_values(world) for world in Model(attempts=3, restores=2).explore(EMPTY))
    require_going_on(list(Model(attempts=3).explore(EMPTY)))


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


class InMemory:
    """A record that nothing else can change."""

    address = "in memory"

    def __init__(self, record: WitnessState | None) -> None:
        self.record = record

    def read(self) -> WitnessState | None:
        return self.record

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        matches = self.record == expected
        self.record = state if matches else self.record
        return matches


@pytest.mark.parametrize(
    ("record", "error"),
    [
        *((record, None) for record in (("a", "b", "pending"), ("a", "b", "confirmed"), ("b", "c", "pending"))),
        *((("a", new, state), LedgerBehind) for new, state in (("x", "pending"), ("x", "confirmed"))),
        (("", "a", "confirmed"), LedgerBehind),
        (None, LedgerError),
    ],
)  # fmt: skip
def test_only_a_run_of_the_same_ledger_may_confirm_a_commit(record: Any, error: Any) -> None:
    """The commit from a to b, in a ledger that holds a, b and c, beside a record."""
    witness = CommitWitness(InMemory(WitnessState(*record) if record else None), population="homes")
    rows = Rows(("a", "b", "c"))
    if error is None:
        witness.confirm(WitnessState("a", "b", "pending"), lambda: rows)
    else:
        with pytest.raises(error, match=r"another copy of this ledger|has no record"):
            witness.confirm(WitnessState("a", "b", "pending"), lambda: rows)


def test_a_ledger_that_holds_the_pending_head_alone_goes_on() -> None:
    """So one that was recovered for one population of several: it lacks the rows of the others."""
    witness = InMemory(WitnessState("of others", "b", "pending"))
    assert CommitWitness(witness, population="homes").confirm_head(Rows(("a", "b"))) == witness.record
    assert witness.record == WitnessState("of others", "b", "confirmed")
