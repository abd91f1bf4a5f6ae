"""`agedp ledger amend|export|import|recover` and `agedp verify --ledger` as a user meets them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from agedp_data.ledger import Ledger
from agedp_data.ledger.transfer import export_population, format_export
from tests.agedp_flows.in_process import agedp, refused
from tests.agedp_flows.worlds import DECLARED, World, make

LEDGER = "sqlite:///out/ledger.sqlite"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = make(
        tmp_path_factory.mktemp("w") / "world", seed=1, mode="archive", model=DECLARED, method="total_variation"
    )
    edit(world, "epsilon_total = 2.5", "epsilon_total = 4")
    edit(world, "last_day = 2013-02-07", "last_day = 2013-02-06")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world.folder)
        assert agedp(patch, "run", "run.toml", "--json") == 0
    return world


@pytest.fixture
def world(released: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A released world of five days at 0.5, its last day being edited to come after them."""
    found = World(Path(shutil.copytree(released.folder, tmp_path / "world")))
    monkeypatch.chdir(found.folder)
    edit(found, "last_day = 2013-02-06", "last_day = 2013-02-09")
    return found


def edit(world: World, old: str, new: str) -> None:
    run_file = world.folder / "run.toml"
    assert old in run_file.read_text()
    run_file.write_text(run_file.read_text().replace(old, new))


def contracts(url: str = LEDGER) -> int:
    with Ledger.open(url) as ledger:
        return len(ledger.contracts())


def test_an_amendment_shows_the_difference_and_every_figure_and_asks(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(world, "epsilon_per_day = 0.5", "epsilon_per_day = 0.4")
    capsys.readouterr()
    assert agedp(monkeypatch, "ledger", "amend", "run.toml", answer="n\n") == 0
    shown = capsys.readouterr().out
    for said in (
        'promise.epsilon_per_day: "0.5" -> "0.4"  allowed: tightens the promise',
        'schedule.last_day: "2013-02-06" -> "2013-02-09"  allowed',
        "next unreleased day on (2013-02-07)",
        "epsilon of that day: 0 -> 0.4",
        "last day that can be released: none (the promise lasts longer) -> 2013-02-09 (the promise lasts longer)",
        "not recorded",
    ):
        assert said in shown
    assert contracts() == 1
    assert agedp(monkeypatch, "ledger", "amend", "run.toml") == 0  # nobody there to answer
    assert contracts() == 1
    assert agedp(monkeypatch, "ledger", "amend", "run.toml", answer="y\n") == 0
    assert "recorded" in capsys.readouterr().out
    assert contracts() == 2
    assert agedp(monkeypatch, "ledger", "amend", "run.toml") == 0
    assert "nothing to amend" in capsys.readouterr().out
    assert agedp(monkeypatch, "run", "run.toml", "--json") == 0
    assert [row["epsilon"] for row in json.loads(capsys.readouterr().out)["released"]] == ["0.4", "0.4", "0.4"]


def test_machines_are_told_and_record_only_if_they_say_so(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, recorded in (((), False), (("--yes",), True)):
        capsys.readouterr()
        assert agedp(monkeypatch, "ledger", "amend", "run.toml", "--json", *words) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["recorded"] is recorded
        assert [change["key"] for change in found["changes"]] == ["schedule.last_day"]
        assert (found["after"]["next_day"], found["after"]["last_day"]) == ("2013-02-07", "2013-02-09")
        assert contracts() == 1 + recorded


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("epsilon_total = 4", 'epsilon_total = "unlimited"', "promise.epsilon_total"),
        ("age_days = 1", "age_days = 0", "promise.age_days"),
        ("min_households = 3", "min_households = 2", "population.min_households"),
        ('secret = "day"', 'secret = "half-hour"', "promise.secret"),
    ],
)
def test_what_loosens_the_promise_is_refused_in_one_line(
    old: str, new: str, key: str, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(world, old, new)
    assert key in refused(monkeypatch, capsys, "ledger", "amend", "run.toml", "--yes", status=3)
    assert contracts() == 1


def test_a_folder_is_verified_against_its_ledger(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "verify", "out/release", "--ledger", LEDGER) == 0
    assert "and it equals the ledger" in capsys.readouterr().out
    assert agedp(monkeypatch, "verify", "out/release", "--ledger", LEDGER, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"verified": True, "chain": True, "not_of_the_release": []}
    Ledger.open("sqlite:///other.sqlite", create=True).close()
    words = ("verify", "out/release", "--ledger", "sqlite:///other.sqlite")
    assert "shorter" in refused(monkeypatch, capsys, *words, status=3)
    words = ("verify", "out/release", "--ledger", "sqlite:///none.sqlite")
    assert "none.sqlite' does not exist" in refused(monkeypatch, capsys, *words, status=3)


def test_a_ledger_is_moved_by_a_file(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "ledger", "amend", "run.toml", "--yes") == 0
    assert agedp(monkeypatch, "ledger", "export", "run.toml", "rows.jsonl", "--close") == 0
    assert "closed" in refused(monkeypatch, capsys, "run", "run.toml", status=3)
    assert "exists" in refused(monkeypatch, capsys, "ledger", "export", "run.toml", "rows.jsonl", status=2)
    assert agedp(monkeypatch, "ledger", "import", "rows.jsonl", "--to", "sqlite:///new.sqlite") == 0
    edit(world, "sqlite:///out/ledger.sqlite", "sqlite:///new.sqlite")
    assert agedp(monkeypatch, "run", "run.toml") == 0
    assert agedp(monkeypatch, "ledger", "verify", "run.toml") == 0
    assert agedp(monkeypatch, "verify", "out/release", "--ledger", "sqlite:///new.sqlite") == 0
    assert "rows already" in refused(
        monkeypatch, capsys, "ledger", "import", "rows.jsonl", "--to", "sqlite:///new.sqlite", status=3
    )


def test_statements_are_listed_and_each_is_written_out_again_by_its_number(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sums = Path("out/release/SHA256SUMS")
    before = sums.read_text()
    assert agedp(monkeypatch, "ledger", "amend", "run.toml", "--yes") == 0
    assert agedp(monkeypatch, "run", "run.toml") == 0
    assert sums.read_text() != before
    capsys.readouterr()
    assert agedp(monkeypatch, "ledger", "show", "run.toml", "--statements", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["version"], one["released"], one["last"]) for one in told] == [
        (1, 5, "2013-02-06"),
        (2, 8, "2013-02-09"),
    ]
    assert agedp(monkeypatch, "ledger", "show", "run.toml") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-2:]] == [str(one["seq"]) for one in told]
    assert len([line for line in lines if "released" in line]) == 8
    number = str(told[0]["seq"])
    assert agedp(monkeypatch, "publish", "run.toml", "--statement", number) == 0
    assert sums.read_text() == before
    words = ("publish", "run.toml", "--statement", number, "--as-of", "2026-01-01")
    assert "give one" in refused(monkeypatch, capsys, *words, status=2)
    assert "ledger show" in refused(monkeypatch, capsys, "publish", "run.toml", "--statement", "1", status=2)


def test_what_was_exported_without_closing_is_imported_with_lost_only(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "ledger", "export", "run.toml", "rows.jsonl") == 0
    words = ("ledger", "import", "rows.jsonl", "--to", "sqlite:///new.sqlite")
    assert "--close" in refused(monkeypatch, capsys, *words, status=3)
    assert agedp(monkeypatch, *words, "--lost") == 0
    assert agedp(monkeypatch, "ledger", "verify", "sqlite:///new.sqlite") == 0


def test_a_lost_ledger_is_recovered_from_the_folder(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = world.folder / "out" / "release"
    with Ledger.open(LEDGER) as ledger:
        head = json.loads((release / "statement.json").read_text())["ledger"]["head"]
        (release / "ledger_rows.jsonl").write_text(format_export(export_population(ledger, "homes", head=head)))
        values = [row.values for row in ledger.rows()]
    names = sorted(path.name for path in release.iterdir() if path.name != "SHA256SUMS")
    sums = {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in names}
    (release / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    (world.folder / "out" / "ledger.sqlite").unlink()
    refused(monkeypatch, capsys, "run", "run.toml", status=3)
    assert agedp(monkeypatch, "ledger", "recover", "out/release", "--to", LEDGER) == 0
    assert agedp(monkeypatch, "ledger", "verify", "run.toml") == 0
    assert agedp(monkeypatch, "verify", "out/release", "--ledger", LEDGER) == 0
    assert agedp(monkeypatch, "ledger", "amend", "run.toml", "--yes") == 0
    assert agedp(monkeypatch, "run", "run.toml") == 0
    with Ledger.open(LEDGER) as ledger:
        assert [row.values for row in ledger.rows()[: len(values)]] == values
        assert len(ledger.rows()) == len(values) + 3
