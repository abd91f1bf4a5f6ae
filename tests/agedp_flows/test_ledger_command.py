"""`agedp ledger amend|export|import|recover` and `agedp verify --ledger` as a user meets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agedp_data.ledger import Ledger
from tests.agedp_flows.worlds import World, make

OUT = "sqlite:///out/ledger.sqlite"
NEW = "sqlite:///new.sqlite"
AMEND = ("ledger", "amend", "run.toml")
IMPORT = ("ledger", "import", "rows.jsonl", "--to", NEW)
VERIFY = ("verify", "out/release", "--ledger")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = make(tmp_path_factory.mktemp("published") / "world", mode="archive", total="4")
    world.edit(("last_day = 2013-02-07", "last_day = 2013-02-06"))
    world.succeed("run", "run.toml")
    world.edit(("last_day = 2013-02-06", "last_day = 2013-02-09"))
    return world


@pytest.fixture
def world(published: World, tmp_path: Path) -> World:
    """Five days released at 0.5; the last day was then edited to come after them."""
    return published.copy(tmp_path / "world")


def contracts(world: World) -> int:
    with Ledger.open(f"sqlite:///{world.folder}/out/ledger.sqlite") as ledger:
        return len(ledger.contracts())


def test_an_amendment_shows_difference_and_bounds_and_asks(world: World) -> None:
    amendment = world.load(*AMEND)
    assert (amendment["recorded"], [change["key"] for change in amendment["changes"]]) == (False, ["schedule.last_day"])
    assert (amendment["after"]["next_day"], amendment["after"]["last_day"]) == ("2013-02-07", "2013-02-09")
    world.edit(("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"))
    shown = world.succeed(*AMEND, answer="n\n")
    for line in (
        'promise.epsilon_per_day "0.5" "0.4" allowed: tightens the promise',
        'schedule.last_day "2013-02-06" "2013-02-09" allowed',
        "next unreleased day on (2013-02-07)",
        "epsilon of that day 0 0.4",
        "last day that can be released none (the promise lasts longer) 2013-02-09 (the promise lasts longer)",
        "not recorded",
    ):
        assert line in " ".join(shown.split())
    world.succeed(*AMEND)  # nobody answers
    assert contracts(world) == 1
    assert "recorded" in world.succeed(*AMEND, answer="y\n")
    assert contracts(world) == 2
    assert "nothing to amend" in world.succeed(*AMEND)
    assert [row["epsilon"] for row in world.load("run", "run.toml")["released"]] == ["0.4", "0.4", "0.4"]


def test_a_folder_is_verified_against_its_ledger(world: World) -> None:
    assert "and equals the ledger" in world.succeed(*VERIFY, OUT)
    found = world.load(*VERIFY, OUT)
    assert {key: found[key] for key in ("verified", "chain", "not_of_the_release")} == {
        "verified": True, "chain": True, "not_of_the_release": []
    }  # fmt: skip
    Ledger.open(f"sqlite:///{world.folder}/other.sqlite", create=True).close()
    assert "shorter" in world.refuse(*VERIFY, "sqlite:///other.sqlite", status=3)
    assert "none.sqlite' does not exist" in world.refuse(*VERIFY, "sqlite:///none.sqlite", status=3)
    assert "--ledger: the ledger address cannot be read; write " in world.refuse(*VERIFY, "out/ledger", status=2)
    assert "--ledger: no ledger on 'mysql'" in world.refuse(*VERIFY, "mysql://h/d", status=2)


def test_a_ledger_is_moved_by_a_file(world: World) -> None:
    world.succeed(*AMEND, "--yes")
    world.succeed("ledger", "export", "run.toml", "rows.jsonl")
    assert "--close" in world.refuse(*IMPORT, status=3)
    (world.folder / "rows.jsonl").unlink()
    world.succeed("ledger", "export", "run.toml", "rows.jsonl", "--close")
    assert "closed" in world.refuse("run", "run.toml", status=3)
    assert "exists" in world.refuse("ledger", "export", "run.toml", "rows.jsonl", status=2)
    world.succeed(*IMPORT)
    assert "rows already" in world.refuse(*IMPORT, status=3)
    world.edit((OUT, NEW))
    world.succeed("run", "run.toml")
    world.succeed("ledger", "verify", "run.toml")
    world.succeed(*VERIFY, NEW)


def test_each_statement_is_written_again_by_its_number(world: World) -> None:
    sums = world.folder / "out/release/SHA256SUMS"
    before = sums.read_text()
    world.succeed(*AMEND, "--yes")
    world.succeed("run", "run.toml")
    assert sums.read_text() != before
    statements = world.load("ledger", "show", "run.toml", "--statements")
    assert [(row["version"], row["released"], row["last"]) for row in statements] == [
        (1, 5, "2013-02-06"), (2, 8, "2013-02-09"),
    ]  # fmt: skip
    lines = world.succeed("ledger", "show", "run.toml").splitlines()
    assert [line.split()[0] for line in lines[-2:]] == [str(row["seq"]) for row in statements]
    assert len([line for line in lines if "released" in line]) == 8
    words = ("publish", "run.toml", "--statement")
    world.succeed(*words, str(statements[0]["seq"]))
    assert sums.read_text() == before
    assert "give one" in world.refuse(*words, "3", "--as-of", "2026-01-01", status=2)
    assert "ledger show" in world.refuse(*words, "1", status=2)


def test_accounts_of_households_are_for_the_terminal_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = world.succeed("ledger", "households", "run.toml")
    assert shown.startswith("Accounts of populations (confidential)\n")
    assert (
        "Largest loss about all days of a household: 2.5\nThis population alone: 0.5 about a day, 2.5 in all" in shown
    )
    assert world.agedp("ledger", "households", "run.toml", "--json").status == 2
    refused = world.refuse("ledger", "households", "run.toml", "--rebuild", status=2)
    assert "agedp ledger households --rebuild is withdrawn, 0.2 had it" in refused
    (world.folder / "out" / "confidential" / "household_register.sqlite").unlink()
    assert "do not know this one yet" in world.refuse("ledger", "households", "run.toml", status=3)
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", "of a flow run")
    assert "not in Prefect" in world.refuse("ledger", "households", "run.toml", status=3)
