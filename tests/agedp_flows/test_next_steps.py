"""A first run ends with what to do next: each command that is printed can be copied and works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from agedp_flows.cli.app import app
from tests.agedp_flows.worlds import World, make

STEP = re.compile(r"Next: agedp (.*?)  # \S.*")


@pytest.fixture(scope="module")
def unreleased(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make(tmp_path_factory.mktemp("unreleased") / "my world", mode="archive")


def steps(printed: str) -> list[list[str]]:
    """Return the words of each command that was suggested."""
    lines = [line for line in printed.splitlines() if line.startswith("Next: ")]
    return [shlex.split(found[1]) for line in lines if (found := STEP.fullmatch(line))]


def parse(words: list[str]) -> None:
    """Require that a command line is one of agedp."""
    command = typer.main.get_command(app)
    context = command.make_context("agedp", list(words), resilient_parsing=True)
    name, sub, rest = command.resolve_command(context, list(words))
    while hasattr(sub, "commands"):
        name, sub, rest = sub.resolve_command(sub.make_context(name, list(rest), resilient_parsing=True), list(rest))
    assert sub is not None, f"No such command: {words}"
    sub.make_context(name, list(rest))


def test_each_step_of_a_first_release_works_and_leads_to_the_next(unreleased: World, tmp_path: Path) -> None:
    world = unreleased.copy(tmp_path / "my world")
    planned = steps(world.succeed("plan", "run.toml"))
    assert planned == [["compare", "run.toml"], ["run", "run.toml"]]
    world.succeed(*planned[0])
    printed = world.succeed(*planned[1])
    assert steps(printed) == [["verify", "out/release"]]
    assert "Hand over out/release and nothing else. Confidential: out/confidential" in printed
    assert "The period is complete: 2013-02-07 is its last day." in printed
    assert "STATEMENT.md" in world.succeed(*steps(printed)[0])
    for words in (("run", "run.toml"), ("plan", "run.toml")):  # later ones stay short
        assert steps(world.succeed(*words)) == []


def test_each_step_of_a_sample_an_init_and_a_transfer_works(unreleased: World, tmp_path: Path) -> None:
    world = unreleased.copy(tmp_path / "my world")
    sample = ("sample", "london", "a sample", "--households", "4", "--days", "3")
    printed = world.succeed(*sample)
    assert [words[0] for words in steps(printed)] == ["plan", "run"]
    for words in steps(printed):
        world.succeed(*words)
    assert steps(world.succeed(*sample)) == []
    for options, commands in (((), ["plan"]), (("--notion", "age-dependent"), ["calibrate", "plan"])):
        begun = steps(world.succeed("init", "incoming", "--in", f"own {len(commands)}", *options))
        assert [words[0] for words in begun] == commands
        for words in begun:
            parse(words)
    world.succeed("run", "run.toml", "--quiet")
    exported = steps(world.succeed("ledger", "export", "run.toml", "all rows.jsonl", "--close"))
    assert [words[:2] for words in exported] == [["ledger", "import"]]
    imported = steps(world.succeed(*exported[0]))
    assert imported == [["ledger", "verify", "sqlite:///new/ledger.sqlite"]]
    world.succeed(*imported[0])


def test_the_first_run_of_a_live_series_names_the_next_due_day(tmp_path: Path) -> None:
    world = make(tmp_path / "world", mode="rehearsal")
    printed = world.succeed("run", "run.toml", "--as-of", "2013-02-05")
    [words] = [words for words in steps(printed) if words[0] == "run"]
    assert re.search(r"day 2013-02-\d\d is due on 2013-02-\d\d", printed)
    assert "Rehearsal: hand over nothing." in printed
    assert "1 day released now" in world.succeed(*words)
