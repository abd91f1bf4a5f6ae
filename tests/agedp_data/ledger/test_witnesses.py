"""Witnesses: their places, and the protocol, explored in every order of its steps."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest
import s3fs

from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import witness as witness_module
from agedp_data.ledger.records import NO_HASH
from agedp_data.ledger.witness import CommitWitness, FileWitness, WitnessState, witness_at
from tests.agedp_data.ledger.conftest import KINDS, place_of, stored_row

# Every interleaving of runs, deaths and restored snapshots: no day has two published values, no ledger is stuck.

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


# A file, an object and a row keep one record, and replace it only where it is what was expected.

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
