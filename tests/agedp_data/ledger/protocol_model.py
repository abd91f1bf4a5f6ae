"""A model checker for the witness: every interleaving of the steps of runs, deaths and restored snapshots.

The protocol is the product's (`CommitWitness`); record and ledgers are values. Each access to one of them is one step.
A run is a function of the answers to its steps so far, so that a state of the world is a value: it is explored once,
whatever way leads to it. To take a step, the run is begun anew with the answers that it had, up to its next question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from agedp_data.errors import LedgerError
from agedp_data.ledger.records import NO_HASH
from agedp_data.ledger.witness import CommitWitness, WitnessState

DAY = "day"
CONTRACT = "contract"
BEGUN = (CONTRACT,)
"""A ledger with a contract that names a witness, and no release."""


@dataclass(frozen=True)
class Rows:
    """The rows of one copy of the ledger, named by their hashes; a release is (day, what was drawn)."""

    hashes: tuple[Any, ...]

    @property
    def content_head(self) -> Any:
        return self.hashes[-1] if self.hashes else NO_HASH

    def row_number(self, head: Any) -> int | None:
        return self.hashes.index(head) + 1 if head in self.hashes else None

    def promise_to(self, population: str) -> str | None:
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


class Question(Exception):
    """The next step of a run."""


@dataclass
class Steps:
    """The side of the world that a run sees: answers from before, then the next question."""

    answers: tuple[Any, ...]
    address: str = "here"
    count: int = field(default=0)

    def ask(self, *question: Any) -> Any:
        self.count += 1
        if self.count > len(self.answers):
            raise Question(*question)
        return self.answers[self.count - 1]

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
    after = rows if drawn is None or any(row[0] == DAY for row in rows.hashes) else Rows((*rows.hashes, (DAY, drawn)))
    pending = None
    if witness and after != rows:
        pending = witness.announce(record, old=rows.content_head, new=after.content_head)
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
            for after in self._successors(world, start):
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)

    def _successors(self, world: World, start: World) -> Iterator[World]:
        for number, run in enumerate(world.runs):
            if run.alive:
                after = self.step(world, number)
                yield from () if after is None else (after,)
                yield self._ended(world, number)  # killed
            elif run.attempt < self.attempts - 1:
                yield _with_run(world, number, Run(run.copy, run.attempt + 1))
        if world.restored < self.restores:
            for copy, snapshot in enumerate(start.copies):
                if not any(run.alive and run.copy == copy for run in world.runs):
                    copies = _with(world.copies, copy, snapshot)
                    yield replace(world, copies=copies, restored=world.restored + 1)

    def step(self, world: World, number: int) -> World | None:
        """Return the world after the next step of a run, None while it waits for a lock."""
        run = world.runs[number]
        try:
            _program(Steps(run.answers), (number, run.attempt), witnessed=self.witnessed)
        except LedgerError:
            return replace(self._ended(world, number), refused=True)
        except Question as question:
            return self._answered(world, number, *question.args)
        return self._ended(world, number)

    def _answered(self, world: World, number: int, question: str, *given: Any) -> World | None:
        run, copy = world.runs[number], world.runs[number].copy
        answer: Any = None
        match question:
            case "read":
                answer = world.record
            case "set":
                answer = self.careless or world.record == given[0]
                world = replace(world, record=given[1]) if answer else world
            case "rows":
                answer = world.copies[copy]
            case "begin":
                if world.locked[copy] is not None:
                    return None
                answer = world.copies[copy]
                world = replace(world, locked=_with(world.locked, copy, number))
            case "commit":
                world = replace(
                    world, copies=_with(world.copies, copy, given[0]), locked=_with(world.locked, copy, None)
                )
            case "publish":
                released = frozenset(row for row in world.copies[copy] if row[0] == DAY)
                world = replace(world, published=world.published | released)
        return _with_run(world, number, replace(run, answers=(*run.answers, answer)))

    def _ended(self, world: World, number: int) -> World:
        """Return the world after a run ended in whatever way; its lock goes with it."""
        run = world.runs[number]
        locked = tuple(None if holder == number else holder for holder in world.locked)
        return _with_run(replace(world, locked=locked), number, replace(run, alive=False, answers=()))

    def undisturbed(self, world: World, copy: int) -> World:
        """Return the world after all runs died and one more came to its end on a copy."""
        world = replace(world, runs=(Run(copy, attempt=99),), locked=(None,) * len(world.copies))
        while world.runs[0].alive:
            after = self.step(world, 0)
            assert after is not None
            world = after
        return world


def _with(values: tuple[Any, ...], number: int, value: Any) -> tuple[Any, ...]:
    return (*values[:number], value, *values[number + 1 :])


def _with_run(world: World, number: int, run: Run) -> World:
    return replace(world, runs=_with(world.runs, number, run))


def world_of(*copies: tuple[Any, ...], runs: tuple[int, ...], record: WitnessState | None) -> World:
    """Return a world with these copies of the ledger, and one run on each copy that is named."""
    return World(record, copies, tuple(Run(copy) for copy in runs), (None,) * len(copies))
