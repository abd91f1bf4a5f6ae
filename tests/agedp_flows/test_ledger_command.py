"""`agedp ledger amend|export|import|recover` and `agedp verify --ledger` as a user meets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agedp_data.ledger import Ledger
from tests.agedp_flows.worlds import DECLARED, World, make

OUT = "sqlite:///out/ledger.sqlite"
NEW = "sqlite:///new.sqlite"
VERIFY = ("verify", "out/release", "--ledger")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("published") / "world"
    world = make(folder, seed=1, mode="archive", model=DECLARED, method="total_variation")
    world.edit(("epsilon_total = 2.5", "epsilon_total = 4"), ("last_day = 2013-02-07", "last_day = 2013-02-06"))
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
    world.edit(("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"))
    amend = ("ledger", "amend", "run.toml")
    shown = world.succeed(*amend, answer="n\n")
    for line in (
        'promise.epsilon_per_day: "0.5" -> "0.4"  allowed: tightens the promise',
        'schedule.last_day: "2013-02-06" -> "2013-02-09"  allowed',
        "next unreleased day on (2013-02-07)",
        "epsilon of that day: 0 -> 0.4",
        "last day that can be released: none (the promise lasts longer) -> 2013-02-09 (the promise lasts longer)",
        "not recorded",
    ):
        assert line in shown
    world.succeed(*amend)  # nobody answers
    assert contracts(world) == 1
    assert "recorded" in world.succeed(*amend, answer="y\n")
    assert contracts(world) == 2
    assert "nothing to amend" in world.succeed(*amend)
    assert [row["epsilon"] for row in world.load("run", "run.toml")["released"]] == ["0.4", "0.4", "0.4"]


def test_json_records_an_amendment_only_with_yes(world: World) -> None:
    for words, recorded in (((), False), (("--yes",), True)):
        amendment = world.load("ledger", "amend", "run.toml", *words)
        assert amendment["recorded"] is recorded
        assert [change["key"] for change in amendment["changes"]] == ["schedule.last_day"]
        assert (amendment["after"]["next_day"], amendment["after"]["last_day"]) == ("2013-02-07", "2013-02-09")
        assert contracts(world) == 1 + recorded


def test_what_loosens_the_promise_is_refused_in_one_line(world: World) -> None:
    for old, new, key in (
        ("epsilon_total = 4", 'epsilon_total = "unlimited"', "promise.epsilon_total"),
        ("age_days = 1", "age_days = 0", "promise.age_days"),
        ("min_households = 3", "min_households = 2", "population.min_households"),
        ('secret = "day"', 'secret = "half-hour"', "promise.secret"),
    ):
        world.edit((old, new))
        assert key in world.refuse("ledger", "amend", "run.toml", "--yes", status=3)
        world.edit((new, old))
    assert contracts(world) == 1


def test_a_folder_is_verified_against_its_ledger(world: World) -> None:
    assert "and it equals the ledger" in world.succeed(*VERIFY, OUT)
    assert world.load(*VERIFY, OUT) == {"verified": True, "chain": True, "not_of_the_release": []}
    Ledger.open(f"sqlite:///{world.folder}/other.sqlite", create=True).close()
    assert "shorter" in world.refuse(*VERIFY, "sqlite:///other.sqlite", status=3)
    assert "none.sqlite' does not exist" in world.refuse(*VERIFY, "sqlite:///none.sqlite", status=3)


def test_a_ledger_is_moved_by_a_file(world: World) -> None:
    world.succeed("ledger", "amend", "run.toml", "--yes")
    world.succeed("ledger", "export", "run.toml", "rows.jsonl", "--close")
    assert "closed" in world.refuse("run", "run.toml", status=3)
    assert "exists" in world.refuse("ledger", "export", "run.toml", "rows.jsonl", status=2)
    world.succeed("ledger", "import", "rows.jsonl", "--to", NEW)
    world.edit((OUT, NEW))
    world.succeed("run", "run.toml")
    world.succeed("ledger", "verify", "run.toml")
    world.succeed(*VERIFY, NEW)
    assert "rows already" in world.refuse("ledger", "import", "rows.jsonl", "--to", NEW, status=3)


def test_each_statement_is_written_again_by_its_number(world: World) -> None:
    sums = world.folder / "out/release/SHA256SUMS"
    before = sums.read_text()
    world.succeed("ledger", "amend", "run.toml", "--yes")
    world.succeed("run", "run.toml")
    assert sums.read_text() != before
    statements = world.load("ledger", "show", "run.toml", "--statements")
    assert [(one["version"], one["released"], one["last"]) for one in statements] == [
        (1, 5, "2013-02-06"), (2, 8, "2013-02-09"),
    ]  # fmt: skip
    lines = world.succeed("ledger", "show", "run.toml").splitlines()
    assert [line.split()[0] for line in lines[-2:]] == [str(one["seq"]) for one in statements]
    assert len([line for line in lines if "released" in line]) == 8
    words = ("publish", "run.toml", "--statement")
    world.succeed(*words, str(statements[0]["seq"]))
    assert sums.read_text() == before
    assert "give one" in world.refuse(*words, "3", "--as-of", "2026-01-01", status=2)
    assert "ledger show" in world.refuse(*words, "1", status=2)


def test_an_export_without_closing_is_imported_with_lost_only(world: World) -> None:
    world.succeed("ledger", "export", "run.toml", "rows.jsonl")
    words = ("ledger", "import", "rows.jsonl", "--to", NEW)
    assert "--close" in world.refuse(*words, status=3)
    world.succeed(*words, "--lost")
    world.succeed("ledger", "verify", NEW)


def test_a_lost_ledger_is_recovered_from_the_folder(world: World) -> None:
    """That it goes on without a second draw: tests/agedp/release_folder/test_ledger_moves.py."""
    (world.folder / "out" / "ledger.sqlite").unlink()
    world.refuse("run", "run.toml", status=3)
    world.succeed("ledger", "recover", "out/release", "--to", OUT)
    world.succeed("ledger", "verify", "run.toml")
    world.succeed(*VERIFY, OUT)
    world.succeed("ledger", "amend", "run.toml", "--yes")
    assert len(world.load("run", "run.toml")["released"]) == 3
