"""Populations that agedp 0.1 and 0.2 began go on: each fixture verifies, runs on, is amended, recovered, published.

What the earlier version itself published on the nights to come was recorded by it, with noise that series, day and
cell decide. One fixture of 0.1 of each notion lives through these nights in every test run, and one of 0.2 through the
first of them in a moved ledger; the others are behind `long`.
"""

from __future__ import annotations

import json
import math
import shutil
import tomllib
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agedp.ledger_session import LedgerSession
from agedp.ledger_transfer import export_ledger, import_ledger, recover, verify_against
from agedp.release_verification import open_release
from agedp.stages.publish import publish_release, write_folder_of_statement
from agedp_data.accounting.temporal_allocation import temporal_allocation
from agedp_data.config import contract_part
from agedp_data.config.contract import comparable
from agedp_data.ledger import Ledger, StatementRecord, canonical
from agedp_data.model import Model
from tests.command import agedp
from tests.compatibility.fixtures import (
    NAMES,
    NAMES_OF_0_2,
    WITNESS_FILE,
    RunningPopulation,
    standing_clock,
    unpack,
)
from tests.nights.keyed import JOURNAL, draws
from tests.nights.promises import Kernel
from tests.postgresql import ROLE, PostgreSQL

NOTIONS = ("age-dependent", "classical", "discounted", "neighbourhood", "temporal", "w-event")
ALWAYS = {"classical-rehearsal", "discounted-archive", "temporal-live"}
"""One of each mode: groups, a series that ends, an estimated model. The others run with the long tests."""
OF_0_2 = (
    "age-dependent-private", "classical-levels", "discounted-profile", "neighbourhood-layers", "shared-households",
    "temporal-memory", "w-event-delta-monthly", "witness-row",
)  # fmt: skip
"""One of each notion, with what 0.1 lacks; a private model has private quantiles, a witness is a row in PostgreSQL."""
MOVED_ALWAYS = {*ALWAYS, "0.2/classical-levels"}
_CLAIMS = ("schema", "population", "days", "published", "rehearsal")
"""What a statement contains beside its bounds that must be the same; its sentences may be written anew."""
_BOUND = ("name", "kind", "limit")
_VALUE = ("epsilon", "factor")
_WIDTHS = ("epsilon", "noise_sd", "noise_sd_kwh", "low_kwh", "high_kwh")
"""Columns of a table that follow from the loss of a day."""


def _behind_long(always: set[str]) -> Any:
    """Return a parameter of all fixtures; those that are not named run with the long tests."""
    names = (*NAMES, *NAMES_OF_0_2)
    marked = [pytest.param(name, marks=() if name in always else pytest.mark.long) for name in names]
    return pytest.mark.parametrize("name", marked)


most_behind_long = _behind_long(ALWAYS)


@pytest.fixture
def population(name: str, tmp_path: Path) -> RunningPopulation:
    """A population as the earlier version left it, in a folder of the test's own."""
    return unpack(name, tmp_path / name)


def test_there_is_a_fixture_of_each_notion_in_each_mode() -> None:
    assert set(NAMES) == {f"{notion}-{mode}" for notion in NOTIONS for mode in ("archive", "live", "rehearsal")}
    assert set(NAMES_OF_0_2) == {f"0.2/{name}" for name in OF_0_2}


@most_behind_long
def test_the_same_contract_export_and_folder_are_written(population: RunningPopulation) -> None:
    """A later version may write sentences and pages anew, never what a stored statement says or a table contains."""
    night, copy = population.last_night, population.folder / "copy.sqlite"
    require_sound(population, population.ledger)
    shutil.copy(population.folder / "out" / "ledger.sqlite", copy)
    for name, closed_at in (("export", None), ("closed", night)):
        export_ledger(f"sqlite:///{copy}", population.folder / "again.jsonl", closed_at=closed_at)
        assert (population.folder / "again.jsonl").read_bytes() == (population.folder / f"{name}.jsonl").read_bytes()
        (population.folder / "again.jsonl").unlink()
    with Ledger.open(population.ledger) as ledger:
        stored_contract = ledger.contracts(population.population)[-1].promise
        statement = ledger.statements(population.population)[-1]
    session = LedgerSession.open(population.begin(now=night))
    written = contract_part(session.run.run_file, model=session.model.id if session.model else None)
    if population.is_of_first_version:
        schedule = {key: value for key, value in written["schedule"].items() if key != "zone_changes"}
        written = {**{key: written[key] for key in written if key not in ("form", "needs")}, "schedule": schedule}
    assert canonical(written) == stored_contract
    paths = [population.release / "statement.json", *population.release.rglob("ledger_rows.jsonl")]
    stored = {path: path.read_bytes() for path in paths}
    tables, metadata = population.tables(), population.metadata()
    shutil.rmtree(population.release)
    with standing_clock(night):
        publish_release(LedgerSession.open(population.begin(now=night)))
    require_sound(population, population.ledger)
    require_same_tables(population.tables(), tables)
    write_folder_of_statement(LedgerSession.open(population.begin(now=night)), statement.seq)
    open_release(population.release).verify()
    require_same_tables(population.tables(), tables)
    assert {path: path.read_bytes() for path in stored} == stored
    written_metadata = population.metadata()
    for name, keys in metadata.items():
        assert {key: written_metadata[name].get(key) for key in keys} == keys


@most_behind_long
def test_closed_and_recovered_ledgers_are_imported(population: RunningPopulation) -> None:
    """The marks of closing, of recovery and of a takeover are rows of a form of their own."""
    rows = population.rows()
    for export, lost_at in (("closed", None), ("recovered", population.last_night)):
        moved = f"sqlite:///{population.folder / export}.sqlite"
        import_ledger(population.folder / f"{export}.jsonl", moved, lost_at=lost_at)
        require_sound(population, moved)
        assert population.rows(moved) == rows
        with Ledger.open(moved) as ledger:
            assert (ledger.recovery() is not None, ledger.is_taken_over()) == (lost_at is not None, lost_at is not None)


@most_behind_long
def test_the_commands_read_it_and_nights_publish_the_same_values(
    population: RunningPopulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_of = ("--as-of", str(population.last_night)) if population.facts["mode"] == "rehearsal" else ()
    monkeypatch.chdir(population.folder)
    with standing_clock(population.last_night):
        for words in (
            ("verify", "out/release", "--ledger", "sqlite:///out/ledger.sqlite"),
            ("ledger", "verify", "run.toml"),
            ("ledger", "show", "run.toml"),
            ("plan", "run.toml", *as_of),
        ):
            status, out, err = agedp(*words)
            assert (status, err, bool(out)) == (0, "", True), words
    before, expected = population.rows(), population.stored("expected")
    assert [population.ending(now=night) for night in population.following] == expected["endings"]
    assert len(expected["endings"]) == (10 if population.is_of_first_version else 5)
    require_same(population, expected, before)
    require_sound(population, population.ledger)
    fresh = [row for row in population.rows()[len(before) :] if row["state"] == "released"]
    assert draws(population.folder / JOURNAL) == {(row["series"], row["day"]): 1 for row in fresh}


@most_behind_long
def test_an_amendment_is_recorded_and_has_the_same_effect(population: RunningPopulation) -> None:
    expected, before = population.stored("amended"), population.rows()
    nights = population.following[: len(expected["endings"])]
    with Ledger.open(population.ledger) as ledger:
        contracts = ledger.contracts(population.population)
    amended = population.amend(now=nights[0])
    assert [population.ending(now=night) for night in nights] == expected["endings"]
    require_same(population, expected, before)
    with Ledger.open(population.ledger) as ledger:
        assert ledger.contracts(population.population) == (*contracts, amended)


@_behind_long(MOVED_ALWAYS)
@pytest.mark.parametrize("way", ["import", "recover"])
def test_a_moved_ledger_goes_on(population: RunningPopulation, way: str) -> None:
    """Deliveries that were read may be cleared away: the day that is due next is in the store."""
    (population.folder / "moved").mkdir()
    moved = f"sqlite:///{population.folder / 'moved' / 'ledger.sqlite'}"
    night, rows = population.following[0], population.rows()
    if way == "import":
        import_ledger(population.folder / "export.jsonl", moved, lost_at=population.last_night)
        (population.folder / "out" / "ledger.sqlite").unlink()
    else:
        (population.folder / "out" / "ledger.sqlite").unlink()
        assert recover(population.release, moved, at=population.last_night) == len(rows)
    require_sound(population, moved)
    assert population.rows(moved) == rows
    if population.facts["mode"] != "archive":
        for path in (population.folder / "incoming").glob("*.csv"):
            path.unlink()
    population.edit("sqlite:///out/ledger.sqlite", moved)
    expected = population.stored("expected")
    assert population.ending(now=night) == expected["endings"][0]
    due = [row for row in expected["rows"] if row["published_on"] <= str(night)]
    assert population.rows(moved)[: len(rows)] == rows
    require_same_rows(population, population.rows(moved), due)
    require_sound(population, moved)


@pytest.mark.long
def test_two_populations_that_share_households_go_on(tmp_path: Path) -> None:
    """Each account counts the releases of both, through the register that 0.2 began."""
    first = unpack("0.2/shared-households", tmp_path / "shared")
    populations = (first, replace(first, part="second"))
    before = [population.rows() for population in populations]
    assert {population.ending(now=night) for night in first.following for population in populations} == {""}
    for population, rows in zip(populations, before, strict=True):
        expected = population.stored("expected")
        require_same(population, expected, rows)
        require_sound(population, population.ledger)
        account, earlier = (
            {key: statement["household_account"][key] for key in ("day", "total")}
            for statement in (open_release(population.release).statement, expected["statement"])
        )
        assert account == earlier


def test_a_witness_in_a_table_goes_on_and_refuses_an_older_copy(tmp_path: Path, postgresql: PostgreSQL) -> None:
    population = unpack("0.2/witness-row", tmp_path / "population")
    before, database = population.rows(), postgresql.database()
    state = (population.folder / WITNESS_FILE).read_text()
    postgresql.admin(
        "CREATE TABLE agedp_witness (name text PRIMARY KEY, state text NOT NULL)",
        f"ALTER TABLE agedp_witness OWNER TO {ROLE}",
        f"INSERT INTO agedp_witness VALUES ('london', '{state}')",
        database=database,
    )
    population.edit(WITNESS_FILE, f"{postgresql.url(database)}#london")
    shutil.copytree(population.folder / "out", population.folder / "older")
    assert {population.ending(now=night) for night in population.following} == {""}
    require_same(population, population.stored("expected"), before)
    [(confirmed,)] = postgresql.admin("SELECT state FROM agedp_witness", database=database)
    with Ledger.open(population.ledger) as ledger:
        newest = [row for row in ledger.all_rows() if not (isinstance(row, StatementRecord) and row.population)][-1]
    assert (json.loads(confirmed)["new"], json.loads(confirmed)["state"]) == (newest.hash, "confirmed")
    shutil.rmtree(population.folder / "out")
    (population.folder / "older").rename(population.folder / "out")
    assert population.ending(now=population.following[-1]) == "LedgerBehind"


def require_sound(population: RunningPopulation, ledger: str) -> None:
    """Check a ledger and the release folder as `agedp verify FOLDER --ledger URL` and `agedp ledger verify` do."""
    folder = open_release(population.release)
    folder.verify()
    with Ledger.open(ledger) as opened:
        assert opened.verify() == ()
        verify_against(folder, opened)


def require_same(population: RunningPopulation, expected: dict[str, Any], before: list[dict[str, Any]]) -> None:
    """Compare rows, tables and statement with those of the earlier version; the rows of before stand first."""
    rows, statement = population.rows(), open_release(population.release).statement
    assert rows[: len(before)] == before
    require_same_rows(population, rows, expected["rows"])
    require_same_tables(population.tables(), expected["tables"], widths_from=population.replanned_from)
    assert {key: statement[key] for key in _CLAIMS} == {key: expected["statement"][key] for key in _CLAIMS}
    contract, earlier_contract = comparable(statement["contract"], expected["statement"]["contract"])
    for terms in (contract, earlier_contract):
        if "hash" in terms.get("model", {}):
            terms["model"] = {**terms["model"], "hash": population.model_form(terms["model"]["hash"])}
    assert contract == earlier_contract
    are_same = [row["loss"] for row in rows] == [row["loss"] for row in expected["rows"]]
    keys = (*_BOUND, *_VALUE) if are_same else _BOUND
    bounds, earlier_bounds = (
        {tuple(bound[key] for key in keys): bound["epsilon"] for bound in either["figures"]}
        for either in (statement, expected["statement"])
    )
    assert earlier_bounds.keys() <= bounds.keys()
    if not are_same:
        [total] = [float(bound["epsilon"]) for bound in statement["figures"] if bound["name"] == "total"]
        assert total >= sum(int(row["loss"]) for row in rows) / 10**9
        for bound, epsilon in earlier_bounds.items():
            assert float(bounds[bound]) <= float(bound[2] or "inf"), bound
            assert population.replanned_from or is_close(float(bounds[bound]), float(epsilon)), bound
    assert statement["ending"].get("last_day") == expected["statement"]["ending"].get("last_day")


def require_same_rows(
    population: RunningPopulation, rows: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    """Compare release rows: everything exactly but the loss and the scale, which a solver may have found."""
    first = population.replanned_from
    for row, earlier in zip(rows, expected, strict=True):
        assert {**row, "loss": 0, "scale": 0} == {**earlier, "loss": 0, "scale": 0}
        # the scale of Laplace noise is sensitivity/loss, whatever the loss
        assert is_close(row["scale"] * row["loss"], earlier["scale"] * earlier["loss"]), (row["day"], row["scale"])
        if first is None or row["day"] < first:
            assert is_close(float(row["loss"]), float(earlier["loss"])), (row["day"], row["loss"], earlier["loss"])
    if first is not None:
        require_as_useful(population, day_losses(rows), day_losses(expected))


def require_as_useful(population: RunningPopulation, losses: dict[date, float], earlier: dict[date, float]) -> None:
    """Check another plan by the recursion of a two-state chain, and its noise beside that of the earlier version.

    The rest of a plan that was begun otherwise is lowered, all days alike: up to 2 % more noise than the earlier rest.
    """
    promise = tomllib.loads(population.run_file.read_text())
    stay = float((population.folder / promise["model"]["kernel"]).read_text().split(",")[0])
    alpha = Decimal(str(promise["promise"]["alpha"]))
    assert Kernel(stay).leakage(losses) <= alpha
    noise, noise_before = (sum(1 / loss for loss in each.values()) for each in (losses, earlier))
    assert noise <= 1.02 * noise_before
    if len(losses) == promise["promise"]["horizon_days"]:
        day_cap = int(Decimal(str(promise["promise"]["max_day_epsilon"])) * 10**9)
        with Ledger.open(population.ledger) as ledger:
            bound = Model.from_text(ledger.models()[-1].envelope).leakage_bound
        plan = temporal_allocation(bound, int(alpha * 10**9), len(losses), "best", day_cap)
        assert sum(10**9 / loss for loss in plan) < noise_before


def day_losses(rows: list[dict[str, Any]]) -> dict[date, float]:
    """Return the loss of each day, that of all its series."""
    days = sorted({row["day"] for row in rows})
    return {date.fromisoformat(day): sum(row["loss"] for row in rows if row["day"] == day) / 10**9 for day in days}


def require_same_tables(
    tables: dict[str, list[dict[str, Any]]],
    expected: dict[str, list[dict[str, Any]]],
    *,
    widths_from: str | None = None,
) -> None:
    """Compare published tables: a later version may add columns and tables, never change those there were.

    From the day `widths_from` on, what follows from the loss of a day may differ.
    """
    for name, rows in expected.items():
        for row, earlier in zip(tables[name], rows, strict=True):
            free = _WIDTHS if widths_from is not None and row["day"] >= widths_from else ()
            differing = {key for key, value in earlier.items() if key not in free and not is_close(row[key], value)}
            assert not differing, (name, earlier["day"], differing)


def is_close(value: Any, expected: Any) -> bool:
    """Compare whole numbers and text exactly; floats, and losses, to what processors and solvers leave open."""
    if isinstance(expected, float) or (isinstance(expected, int) and isinstance(value, float)):
        return math.isclose(value, expected, rel_tol=1e-7, abs_tol=1e-9)
    return bool(value == expected)
