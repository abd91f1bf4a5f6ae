"""The command as a user meets it: exit statuses, one line for what can be mended, what to do next."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
import typer

from agedp_data.datasets.synthetic import write_london
from agedp_flows.cli.app import app
from tests.agedp_flows.worlds import World, make
from tests.command import CommandFolder, beside_verdict
from tests.source_path import source_path

# The command as a user meets it: exit statuses, one line for what can be mended, heavy imports only where needed.


@pytest.fixture(scope="module")
def unreleased(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make(tmp_path_factory.mktemp("unreleased") / "world", mode="archive")


@pytest.fixture(scope="module")
def published(unreleased: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = unreleased.copy(tmp_path_factory.mktemp("published") / "world")
    world.succeed("run", "run.toml", "--quiet")
    return world


@pytest.fixture
def world(unreleased: World, tmp_path: Path) -> World:
    """A world of six due days."""
    return unreleased.copy(tmp_path / "world")


@pytest.fixture
def released(published: World, tmp_path: Path) -> World:
    """A world whose six days are released."""
    return published.copy(tmp_path / "world")


def python(*words: str, folder: Path) -> str:
    """Run Python in a process of its own and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": source_path()}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    heavy = "{'pandas', 'pyarrow', 'prefect', 'dask', 'opendp', 'scipy', 'numpy', 'sqlalchemy', 'pydantic', 'jinja2'}"
    code = (
        "import sys; sys.argv = ['agedp', '--help']\nfrom agedp_flows.cli.app import main\n"
        f"try:\n    main()\nexcept SystemExit: pass\nprint('heavy:', sorted({heavy} & set(sys.modules)))"
    )
    assert python("-c", code, folder=tmp_path).splitlines()[-1] == "heavy: []"


def test_importing_the_api_imports_nothing_heavy(tmp_path: Path) -> None:
    names = "{name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names"
    code = f"import sys; before = set(sys.modules); import agedp; print({names})"
    assert python("-c", code, folder=tmp_path) == "{'agedp'}\n"


HEAVY = (
    "prefect", "distributed", "dask", "opendp", "scipy", "matplotlib", "holidays", "fsspec", "rich.console",
    "agedp.calibration_pipeline", "agedp.reports.confidential_report", "agedp.setup.init_run_file",
    "agedp.smoothed_estimates", "agedp_flows.demonstration", "agedp_data.audit", "agedp_data.datasets.synthetic",
    "agedp_data.accounting.discount_optimiser", "agedp_flows.release_flow",
)  # fmt: skip
"""Modules that a night with nothing due must not import: each costs more than all it does, or none of them is asked."""


def test_a_night_with_nothing_due_imports_nothing_heavy(released: World) -> None:
    code = (
        "import pathlib, sys, time; sys.argv = ['agedp', 'run', '--quiet', 'run.toml']\n"
        "from agedp_flows.__main__ import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        "memory = pathlib.Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        "print(f'{time.process_time():.2f} s of CPU, {memory} KiB')\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    python("-c", code, folder=released.folder)  # the report of the copy is written again
    usage, heavy = python("-c", code, folder=released.folder).splitlines()
    print(usage)
    assert heavy == "[]"


def test_verifying_needs_no_engine_sampler_or_page(released: World) -> None:
    code = (
        "import sys; sys.argv = ['agedp', 'verify', 'out/release']\n"
        "sys.modules |= dict.fromkeys(['prefect', 'dask', 'opendp', 'jinja2', 'markdown_it'])\n"
        "from agedp_flows.__main__ import main; main()"
    )
    assert "Traceback" not in python("-c", code, folder=released.folder)


def test_a_run_releases_once_and_a_second_changes_nothing(world: World) -> None:
    ahead = world.load("plan", "run.toml")
    assert (ahead["last_possible_day"], ahead["ended_by_promise"]) == ("2013-02-07", False)  # the end of the period
    first = world.load("run", "run.toml")
    assert [row["day"] for row in first["released"]] == [f"2013-02-0{day}" for day in range(2, 8)]
    published = world.published()
    assert world.load("run", "run.toml")["released"] == []
    assert world.published() == published
    planned = world.succeed("plan", "run.toml")
    assert "the series has ended: last released day 2013-02-07; its period ended with 2013-02-07" in planned
    world.edit(("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"))
    for verb in ("run", "plan"):
        assert 'promise.epsilon_per_day: "0.5" -> "0.4"' in world.refuse(verb, "run.toml", status=3)
    assert world.published() == published


def test_a_promise_that_ends_publishes_the_days_before(world: World) -> None:
    world.edit(("epsilon_total = 3", "epsilon_total = 1.2"))
    assert "last possible day 2013-02-03" in world.succeed("plan", "run.toml")
    ahead = world.load("plan", "run.toml")
    assert (ahead["last_possible_day"], ahead["ended_by_promise"]) == ("2013-02-03", True)
    ended = world.agedp("run", "run.toml")
    assert (ended.status, "2 days released now" in ended.out) == (3, True)
    assert ended.err.splitlines()[-1].startswith("agedp: 2013-02-04: ")
    assert "2013-02-04" in world.refuse("run", "run.toml", status=3)  # nothing more is released
    assert (
        "the series has ended: last released day 2013-02-03; 2013-02-04: the promise permits no further release: 1 is "
        "spent, epsilon_total = 1.2"
    ) in world.succeed("plan", "run.toml")
    plan = world.load("plan", "run.toml")
    assert (plan["last_possible_day"], "epsilon_total = 1.2" in plan["ended"]) == ("2013-02-03", True)
    statement = (world.folder / "out" / "release" / "STATEMENT.md").read_text()
    assert "The promise ended with 2013-02-03: the remaining budget permits no further release." in statement
    world.succeed("verify", "out/release")


@pytest.mark.parametrize(
    "words",
    [
        ("init", "incoming/*.csv", "--clamp-kwh", "10", "--clamp-kwh", "40"),
        ("sanitise", "incoming/*.csv", "--out", "new", "--share", "0.7", "--share=0.3"),
        ("compare", "run.toml", "--risk", "1", "--risk", "2"),
        ("ledger", "import", "rows.jsonl", "--to", "one", "--to", "two"),
    ],
    ids=lambda words: words[0],
)
def test_an_option_with_a_value_is_given_once(words: tuple[str, ...], world: World) -> None:
    flag = words[-1].partition("=")[0] if "=" in words[-1] else words[-2]
    expected = f"agedp: {flag} is given 2 times; give it once, the values of a list with commas between them"
    assert expected in world.refuse(*words, status=2)


def test_verify_names_further_files_and_refuses_a_url(released: World) -> None:
    (released.folder / "out" / "release" / "notes.txt").write_text("my own")
    lines = ["out/release: verified. What was compared follows from its ledger rows"]
    lines += ["not part of the release, and not checked: notes.txt"]
    assert released.succeed("verify", "out/release").splitlines()[:4:3] == lines
    assert released.load("verify", "out/release")["not_of_the_release"] == ["notes.txt"]
    for words in (("verify",), ("ledger", "recover", "--to", "sqlite:///new.sqlite")):
        line = released.refuse(*words, "s3://me@meters/release?sig=aXz", status=2)
        assert "s3://meters/release is a URL; download" in line


def test_rehearsals_alone_have_as_of_and_a_ledger_of_their_own(released: World) -> None:
    assert "--as-of" in released.refuse("run", "run.toml", "--as-of", "2013-02-05", status=2)
    released.edit(
        ('mode = "archive"', 'mode = "rehearsal"'), ('name = "homes"', 'name = "others"'), ('"out/release"', '"out/2"')
    )
    assert "ledger of its own" in released.refuse("run", "run.toml", status=3)


def test_a_misspelt_name_is_one_line_with_the_nearest(unreleased: World) -> None:
    for words, nearest in (
        ("rnu run.toml", "'run'"),
        ("ledger shwo run.toml", "'show'"),
        ("run run.toml --jsno", "--json"),
        ("run rnu.toml", "'run.toml'"),
        ("verify inccoming", "'incoming'"),
        ("ledger import rooster.csv --to sqlite:///new.sqlite", "'roster.csv'"),
        ("sample londn made", "'london'"),
    ):
        line = unreleased.refuse(*words.split(), status=2)
        assert nearest in line.removeprefix(words)
        assert "mean" in line or "Possible" in line


def test_every_command_has_json_and_a_quiet_form(world: World) -> None:
    course = (
        "sample london made-{} --households 2 --days 2",
        "init incoming --in own-{}",
        "run run.toml",
        "publish run.toml",
        "verify out/release",
        "ledger verify run.toml",
        "ledger export run.toml rows-{}.jsonl",
        "ledger import rows-{}.jsonl --to sqlite:///new-{}.sqlite --lost",
        "ledger recover out/release --to sqlite:///again-{}.sqlite",
    )
    for number, option in enumerate(("--json", "--quiet")):
        (world.folder / f"own-{number}").mkdir()
        for words in course:
            ended = world.agedp(*(word.format(number) for word in words.split()), option)
            shown = ended.err.splitlines() if (number, words) == (0, "run run.toml") else []  # before its first draw
            assert (ended.status, ended.err) == (0, "".join(f"{line}\n" for line in shown)), words
            assert beside_verdict("\n".join(shown)) == ""
            assert isinstance(json.loads(ended.out), dict) if option == "--json" else ended.out == ""
    for words in ("plan", "status", "ledger show", "ledger amend"):
        world.load(*words.split(), "run.toml")


def test_packages_of_a_project_are_never_taken_for_ours(tmp_path: Path) -> None:
    """Python puts the current folder first under -m, and Prefect the working directory wherever it loads a flow."""
    for name in ("flows", "pipelines"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWNER = 'the project'\n")
    load = "from prefect.flows import load_flow_from_entrypoint as load\nimport agedp, flows, pipelines\n"
    load += "flow = load('agedp_flows.release_flow:release', use_placeholder_flow=False)\n"
    load += "print(flow.name, flows.OWNER, pipelines.OWNER)"
    assert python("-c", load, folder=tmp_path).strip() == "agedp the project the project"
    assert python("-m", "agedp_flows", "--version", folder=tmp_path).startswith("agedp 0.")


def test_a_terminal_alone_shows_bars_which_name_no_household_or_file(world: World) -> None:
    shown, out, status = at_a_terminal(world, "run", "run.toml")
    assert (status, "released now" in out) == (0, True)
    stages = ("hashing files", "opening files", "reading", "summing days")
    assert [stage for stage in stages if stage not in shown] == []
    done, total = re.findall(r"reading .*?(\d+)/(\d+)", shown)[-1]
    assert done == total != "0"
    names = [path.name for path in (world.folder / "incoming").iterdir()]
    assert [name for name in ("CANARY", *names) if name in shown] == []
    for words, terminal, prints in ((("--json",), True, True), (("--quiet",), True, False), ((), False, True)):
        shown, out, status = at_a_terminal(world, "run", "run.toml", *words, terminal=terminal)
        assert (shown, status, bool(out)) == ("", 0, prints), words


def at_a_terminal(world: World, *words: str, terminal: bool = True) -> tuple[str, str, int]:
    """Run the command; return what the terminal on its standard error showed, its standard output and exit status."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "agedp_flows.cli.app", *words], cwd=world.folder, stdout=subprocess.PIPE,
        stderr=theirs if terminal else subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "120"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while terminal and (read := os.read(ours, 65536)):
            shown += read
    except OSError:  # what Linux answers when the other end is closed
        pass
    out, err = child.communicate(timeout=120)
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", (shown + (err or b"")).decode()), out.decode(), child.returncode


# A first run ends with what to do next: each command that is printed can be copied and works.

STEP = re.compile(r"Next: agedp (.*?)  # \S.*")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> World:
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


def test_each_step_of_a_first_release_works_and_leads_to_the_next(fresh: World, tmp_path: Path) -> None:
    world = fresh.copy(tmp_path / "my world")
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


def test_each_step_of_a_sample_an_init_and_a_transfer_works(fresh: World, tmp_path: Path) -> None:
    world = fresh.copy(tmp_path / "my world")
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


# `agedp init` and `agedp sanitise` as a user meets them: what they print, and what they refuse in one line.

COMMON = ("--max-day-epsilon", "1", "--epsilon-total", "4", "--clamp-kwh", "20", "--min-households", "2")
SANITISE = (*COMMON, "--notion", "classical", "--epsilon-per-day", "0.5", "--out", "open", "--accept", "useless")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files") / "SECRET-in"
    write_london(folder, households=4, first_day=date(2013, 1, 1), days=4, seed=3)
    return folder


@pytest.fixture
def here(tmp_path: Path) -> CommandFolder:
    return CommandFolder(tmp_path)


def test_sanitise_prints_what_run_prints_and_names_no_input_file(files: Path, here: CommandFolder) -> None:
    shown = here.succeed("sanitise", files, *SANITISE)
    assert "4 days released now" in shown
    assert "release folder: open\nrun file, ledger and confidential folder: open-confidential (keep it)\n" in shown
    assert "0 days released now" in here.succeed("run", "open-confidential/run.toml")  # the same file and ledger
    assert here.succeed("sanitise", files, *SANITISE, "--quiet") == ""
    unquoted = sorted(files.iterdir())  # as a shell expands FOLDER/*
    done, begun = here.succeed("sanitise", *unquoted, *SANITISE, "--json"), here.succeed("init", files, "--json")
    assert (json.loads(done)["released"], json.loads(done)["folder"]) == ([], "open")
    assert json.loads(begun)["to_decide"][0] == "[population] min_households"
    assert "SECRET" not in begun + done
    here.succeed("verify", "open")
    line = here.refuse("sanitise", files, *SANITISE, "--level", "0.9", status=3)
    assert "--level was not given and is 0.9" in line


def test_several_group_columns_are_given_as_a_list(files: Path, here: CommandFolder) -> None:
    first = sorted(files.glob("*"))[0].read_text().splitlines()[1].split(",")[0]
    roster = f"household_id,from,to,feeder,area\n{first},2013-01-01,,F1,north\n"
    (here.folder / "roster.csv").write_text(roster)
    line = here.refuse("init", files, "--by", "feeder,region", status=2)
    assert "--by region: roster.csv has no such column" in line
    shown = here.succeed("init", files, "--by", "feeder,area")
    assert 'by        = ["feeder", "area"]' in (here.folder / "run.toml").read_text()
    assert "roster.csv: kept as it is" in shown
    assert (here.folder / "roster.csv").read_text() == roster
