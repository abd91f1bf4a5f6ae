"""Populations that agedp 0.1 began go on: each fixture verifies, runs on, is amended, recovered, imported, published.

What 0.1 itself published on the nights to come was recorded by 0.1, with noise that series, day and cell decide. One
fixture of each notion lives through these nights in every test run, the others behind `long`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agedp.ledger_session import LedgerSession
from agedp.ledger_transfer import export_ledger, import_ledger, recover, verify_against
from agedp.release_folder.release_folder import open_release
from agedp.stages.publish import publish_release, write_folder_of_statement
from agedp_data.config import contract_part
from agedp_data.config.contract_values import comparable
from agedp_data.ledger import Ledger, canonical
from tests.command import agedp
from tests.compatibility.fixtures import (
    AMENDED_NIGHTS,
    FIXTURES,
    Fixture,
    RunningPopulation,
    recorded_metadata,
    recorded_rows,
    recorded_tables,
    standing_clock,
)
from tests.nights.keyed import JOURNAL, draws

NOTIONS = ("age-dependent", "classical", "discounted", "neighbourhood", "temporal", "w-event")
MODES = ("archive", "live", "rehearsal")
ALWAYS = {
    "age-dependent-live", "classical-rehearsal", "discounted-archive", "neighbourhood-rehearsal", "temporal-live",
    "w-event-rehearsal",
}  # fmt: skip
"""One of each notion; every mode and layout, an amended, an ended and an estimated one are among them."""
MOVED_NIGHTS = 1
"""For how many nights a ledger that was moved or recovered goes on."""
_CLAIMS = ("schema", "population", "days", "published", "rehearsal")
"""What a statement contains beside its bounds that must be the same; its sentences may be written anew."""
_BOUND = ("name", "kind", "epsilon", "limit", "factor")


def _most_behind_long(*modes: str) -> pytest.MarkDecorator:
    """Return the fixtures of some modes as parameters, those that take part in every test run without `long`."""
    return pytest.mark.parametrize(
        "fixture",
        [
            pytest.param(fixture, marks=() if fixture.name in ALWAYS else pytest.mark.long, id=fixture.name)
            for fixture in FIXTURES
            if fixture.name.endswith(modes)
        ],
    )


every = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
most_behind_long = _most_behind_long(*MODES)


@dataclass(frozen=True)
class Continued:
    """A population after the nights to come, and how each of them ended."""

    population: RunningPopulation
    endings: list[str]
    rows_before: list[dict[str, Any]]


@pytest.fixture
def population(fixture: Fixture, tmp_path: Path) -> RunningPopulation:
    """A population as 0.1 left it, in a folder of the test's own."""
    return fixture.unpack(tmp_path / fixture.name)


@pytest.fixture
def continued(population: RunningPopulation) -> Continued:
    """A population that has lived through all nights to come."""
    before = recorded_rows(population.ledger, population.population)
    return Continued(population, [population.ending(now=night) for night in population.following], before)


def test_there_is_a_fixture_of_each_notion_in_each_mode() -> None:
    assert {fixture.name for fixture in FIXTURES} == {f"{notion}-{mode}" for notion in NOTIONS for mode in MODES}
    assert {name.rpartition("-")[0] for name in ALWAYS} == set(NOTIONS)


@every
def test_ledger_and_release_folder_verify(population: RunningPopulation) -> None:
    require_sound(population, population.ledger)


@every
def test_the_contract_is_the_same_text_but_for_its_form_and_clock_changes(population: RunningPopulation) -> None:
    with Ledger.open(population.ledger) as ledger:
        stored = ledger.contracts(population.population)[-1].promise
    session = LedgerSession.open(population.begin(now=population.begun[-1]))
    written = contract_part(session.run.run_file, model=session.model.id if session.model else None)
    schedule = {key: each for key, each in written["schedule"].items() if key != "zone_changes"}
    kept = {key: each for key, each in written.items() if key not in ("form", "needs")}
    assert canonical({**kept, "schedule": schedule}) == stored


@most_behind_long
def test_ten_nights_publish_the_same_values(continued: Continued) -> None:
    population, expected = continued.population, continued.population.expected
    recorded = population.recorded()
    assert len(population.following) == 10
    assert continued.endings == expected["endings"]
    assert recorded["rows"][: len(continued.rows_before)] == continued.rows_before
    require_same_rows(recorded["rows"], expected["rows"])
    require_same_tables(recorded["tables"], expected["tables"])
    require_same_bounds(recorded["statement"], expected["statement"])
    require_sound(population, population.ledger)
    fresh = [row for row in recorded["rows"][len(continued.rows_before) :] if row["state"] == "released"]
    assert draws(population.folder / JOURNAL) == {(row["series"], row["day"]): 1 for row in fresh}


@most_behind_long
def test_an_amendment_is_recorded_and_has_the_same_effect(population: RunningPopulation) -> None:
    nights, expected = population.following[:AMENDED_NIGHTS], population.expected_amended
    before = recorded_rows(population.ledger, population.population)
    with Ledger.open(population.ledger) as ledger:
        contracts = ledger.contracts(population.population)
    amended = population.amend(*population.amendment, now=nights[0])
    assert [population.ending(now=night) for night in nights] == expected["endings"]
    recorded = population.recorded()
    assert recorded["rows"][: len(before)] == before
    require_same_rows(recorded["rows"], expected["rows"])
    require_same_tables(recorded["tables"], expected["tables"])
    require_same_bounds(recorded["statement"], expected["statement"])
    with Ledger.open(population.ledger) as ledger:
        assert ledger.contracts(population.population) == (*contracts, amended)


@every
def test_an_export_is_the_same_file(population: RunningPopulation) -> None:
    again = population.folder / "again.jsonl"
    export_ledger(population.ledger, again)
    assert again.read_bytes() == population.export.read_bytes()


@most_behind_long
def test_an_imported_ledger_goes_on(population: RunningPopulation) -> None:
    moved = f"sqlite:///{population.folder / 'moved.sqlite'}"
    import_ledger(population.export, moved, lost_at=population.begun[-1])
    require_sound(population, moved)
    assert recorded_rows(moved, population.population) == recorded_rows(population.ledger, population.population)
    require_goes_on(population, moved)


@every
def test_closed_and_recovered_ledgers_are_imported(population: RunningPopulation) -> None:
    """The marks of closing, of recovery and of a takeover are rows of a form of their own."""
    rows = recorded_rows(population.ledger, population.population)
    for export, lost_at in ((population.closed_export, None), (population.recovered_export, population.begun[-1])):
        moved = f"sqlite:///{population.folder / export.stem}.sqlite"
        import_ledger(export, moved, lost_at=lost_at)
        require_sound(population, moved)
        assert recorded_rows(moved, population.population) == rows
        with Ledger.open(moved) as ledger:
            assert (ledger.recovery() is not None, ledger.is_taken_over()) == (lost_at is not None, lost_at is not None)


@every
def test_closing_writes_the_same_file(population: RunningPopulation) -> None:
    closed = population.folder / "again.jsonl"
    export_ledger(population.ledger, closed, closed_at=population.begun[-1])
    assert closed.read_bytes() == population.closed_export.read_bytes()


@most_behind_long
def test_a_recovered_ledger_goes_on(population: RunningPopulation) -> None:
    restored = f"sqlite:///{population.folder / 'restored.sqlite'}"
    rows = recorded_rows(population.ledger, population.population)
    (population.folder / "out" / "ledger.sqlite").unlink()
    assert recover(population.release, restored, at=population.begun[-1]) == len(rows)
    require_sound(population, restored)
    assert recorded_rows(restored, population.population) == rows
    require_goes_on(population, restored)


@_most_behind_long("live", "rehearsal")
def test_readings_of_the_earlier_store_count(population: RunningPopulation) -> None:
    """Deliveries may be cleared away once they are read: the day that is due next was delivered to 0.1."""
    for path in (population.folder / "incoming").glob("*.csv"):
        path.unlink()
    night = population.following[0]
    assert population.ending(now=night) == population.expected["endings"][0]
    rows = recorded_rows(population.ledger, population.population)
    expected = [row for row in population.expected["rows"] if row["published_on"] <= str(night)]
    assert len(rows) > len([row for row in rows if row["published_on"] < str(night)])
    require_same_rows(rows, expected)


@most_behind_long
def test_the_commands_read_it(population: RunningPopulation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(population.folder)
    as_of = ("--as-of", str(population.begun[-1])) if population.mode == "rehearsal" else ()
    with standing_clock(population.begun[-1]):
        for words in (
            ("verify", "out/release", "--ledger", "sqlite:///out/ledger.sqlite"),
            ("ledger", "verify", "run.toml"),
            ("ledger", "show", "run.toml"),
            ("plan", "run.toml", *as_of),
        ):
            status, out, err = agedp(*words)
            assert (status, err) == (0, ""), (words, err)
            assert out


@every
def test_the_same_is_published_again(population: RunningPopulation) -> None:
    """A later version may write sentences and pages anew, never what a stored statement says or a table contains."""
    night = population.begun[-1]
    with Ledger.open(population.ledger) as ledger:
        statement = ledger.statements(population.population)[-1]
    stored = {name: (population.release / name).read_bytes() for name in ("statement.json", "ledger_rows.jsonl")}
    tables, metadata = recorded_tables(population.release), recorded_metadata(population.release)
    for path in population.release.iterdir():
        path.unlink()
    with standing_clock(night):
        publish_release(LedgerSession.open(population.begin(now=night)))
    require_sound(population, population.ledger)
    require_same_tables(recorded_tables(population.release), tables)
    with Ledger.open(population.ledger) as ledger:
        write_folder_of_statement(LedgerSession.open(population.begin(now=night)), statement.seq)
    open_release(population.release).verify()
    require_same_tables(recorded_tables(population.release), tables)
    assert {name: (population.release / name).read_bytes() for name in stored} == stored
    for name, keys in recorded_metadata(population.release).items():
        assert {key: keys.get(key) for key in metadata[name]} == metadata[name]


def require_sound(population: RunningPopulation, ledger: str) -> None:
    """Check a ledger and the release folder as `agedp verify FOLDER --ledger URL` and `agedp ledger verify` do."""
    folder = open_release(population.release)
    folder.verify()
    with Ledger.open(ledger) as opened:
        assert opened.verify() == ()
        verify_against(folder, opened)


def require_goes_on(population: RunningPopulation, ledger: str) -> None:
    """Check that a ledger that was moved publishes on the next nights what the ledger of 0.1 would have."""
    nights = population.following[:MOVED_NIGHTS]
    population.move_to(ledger)
    assert [population.ending(now=night) for night in nights] == population.expected["endings"][:MOVED_NIGHTS]
    expected = [row for row in population.expected["rows"] if row["published_on"] <= str(nights[-1])]
    require_same_rows(recorded_rows(ledger, population.population), expected)
    require_sound(population, ledger)


def require_same_rows(recorded: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Compare release rows: everything exactly but the loss and the scale, which a solver may have found."""
    assert [_without_amounts(row) for row in recorded] == [_without_amounts(row) for row in expected]
    for row, other in zip(recorded, expected, strict=True):
        assert _is_close(float(row["loss"]), float(other["loss"])), (row["day"], row["loss"], other["loss"])
        assert _is_close(row["scale"], other["scale"]), (row["day"], row["scale"], other["scale"])


def require_same_tables(recorded: dict[str, list[dict[str, Any]]], expected: dict[str, list[dict[str, Any]]]) -> None:
    """Compare published tables: a later version may add columns and tables, never change those there were."""
    for name, rows in expected.items():
        assert len(recorded[name]) == len(rows)
        for row, other in zip(recorded[name], rows, strict=True):
            differing = {column for column, value in other.items() if not _is_close(row[column], value)}
            assert not differing, (name, other["day"], differing)


def require_same_bounds(recorded: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare the bounds of two statements, and what they are about."""
    assert {key: recorded[key] for key in _CLAIMS} == {key: expected[key] for key in _CLAIMS}
    contract, contract_of_0_1 = comparable(recorded["contract"], expected["contract"])
    assert contract == contract_of_0_1
    bounds, before = (
        {tuple(figure[key] for key in _BOUND) for figure in statement["figures"]} for statement in (recorded, expected)
    )
    assert before <= bounds
    assert recorded["ending"].get("last_day") == expected["ending"].get("last_day")


def _without_amounts(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in {"loss", "scale"}}


def _is_close(value: Any, expected: Any) -> bool:
    """Compare whole numbers and text exactly; floats, and losses, to what processors and solvers leave open."""
    if isinstance(expected, float) or (isinstance(expected, int) and isinstance(value, float)):
        return math.isclose(value, expected, rel_tol=1e-7, abs_tol=1e-9)
    return bool(value == expected)
