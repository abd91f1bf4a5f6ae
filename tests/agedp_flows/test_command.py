"""The command as a user meets it: exit statuses, one line for what can be mended, heavy imports only where needed."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from agedp_data.errors import InputError
from agedp_data.roster import read_roster
from agedp_flows.cli.app import app
from tests.agedp_flows.worlds import DECLARED, World, make
from tests.source_path import source_path


@pytest.fixture(scope="module")
def unreleased(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("unreleased") / "world"
    world = make(folder, seed=1, mode="archive", model=DECLARED, method="total_variation")
    world.edit(("epsilon_total = 2.5", "epsilon_total = 3"))
    return world


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


def python(*words: str, folder: Path | None = None, **environment: str) -> str:
    """Run Python in a process of its own and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": source_path(), **environment}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'pandas', 'pyarrow', 'prefect', 'dask', 'opendp', 'scipy', 'numpy', 'sqlalchemy', 'pydantic', 'jinja2'}"
    code = (
        "import sys; sys.argv = ['agedp', '--help']\nfrom agedp_flows.cli.app import main\n"
        f"try:\n    main()\nexcept SystemExit: pass\nprint('heavy:', sorted({heavy} & set(sys.modules)))"
    )
    assert python("-c", code).splitlines()[-1] == "heavy: []"


def test_verifying_needs_no_engine_sampler_or_page(released: World) -> None:
    code = (
        "import sys; sys.argv = ['agedp', 'verify', 'out/release']\n"
        "sys.modules |= dict.fromkeys(['prefect', 'dask', 'opendp', 'jinja2', 'markdown_it'])\n"
        "from agedp_flows.__main__ import main; main()"
    )
    assert "Traceback" not in python("-c", code, folder=released.folder)


def test_a_run_releases_once_and_a_second_changes_nothing(world: World) -> None:
    first = world.load("run", "run.toml")
    assert [each["day"] for each in first["released"]] == [f"2013-02-0{day}" for day in range(2, 8)]
    published = world.published()
    assert world.load("run", "run.toml")["released"] == []
    assert world.published() == published
    for words in (("verify", "out/release"), ("ledger", "verify", "run.toml"), ("ledger", "show", "run.toml")):
        world.succeed(*words)


def test_after_the_last_day_a_plan_reports_the_end(released: World) -> None:
    planned = released.succeed("plan", "run.toml")
    assert "the series has ended: last released day 2013-02-07; its period ended with 2013-02-07" in planned
    assert "last possible day" not in planned
    statement = (released.folder / "out" / "release" / "STATEMENT.md").read_text()
    assert "The period ended with 2013-02-07, and the promise lasted until then." in statement


def test_a_changed_promise_is_refused_key_by_key(released: World) -> None:
    published = released.published()
    released.edit(("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"))
    for verb in ("run", "plan"):
        assert 'promise.epsilon_per_day: "0.5" -> "0.4"' in released.refuse(verb, "run.toml", status=3)
    assert released.published() == published


def test_a_promise_that_ends_publishes_the_days_before(world: World) -> None:
    world.edit(("epsilon_total = 3", "epsilon_total = 1.2"))
    assert "last possible day 2013-02-03" in world.succeed("plan", "run.toml")
    ended = world.agedp("run", "run.toml")
    assert (ended.status, "2 days released now" in ended.out) == (3, True)
    assert ended.err.startswith("agedp: 2013-02-04: ")
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


def test_losses_are_printed_without_an_exponent(world: World) -> None:
    text = (world.folder / "run.toml").read_text()
    tiny, number = re.subn(r"(epsilon_per_day|max_day_epsilon|epsilon_total) = [0-9.]+", r"\1 = 1e-9", text)
    assert number == 3
    (world.folder / "run.toml").write_text(tiny)
    planned = world.succeed("plan", "run.toml")
    assert "0 spent, these releases add 0.000000001; epsilon_total = 0.000000001" in planned
    assert "0.000000001 is spent, epsilon_total = 0.000000001; nothing was drawn" in planned
    assert re.findall(r"\d[eE]-\d+", planned) == []
    world.edit(("epsilon_per_day = 1e-9", "epsilon_per_day = 2e-9"))
    assert "epsilon_per_day = 0.000000002" in world.refuse("plan", "run.toml", status=2)


BAD_RUN_FILES = {
    "an unknown key": ("min_households", "min_housholds", "min_households"),
    "a missing key": ("clamp_kwh = 20\n", "", "clamp_kwh"),
    "a negative loss": ("epsilon_per_day = 0.5", "epsilon_per_day = -0.5", "epsilon_per_day"),
    "a key of another notion": ('secret = "day"', 'secret = "day"\nspend = "even"', "spend"),
    "another notion": ('"age-dependent"', '"neighbourhood"', "[promise]"),
    "no toml": ("[series.daily_mean]", "[series.daily_mean", "line"),
    "a password": ("sqlite:///out/ledger.sqlite", "postgresql+psycopg://agedp:secret@db/agedp", "password"),
    "one bin": ('statistic = "mean"', 'statistic = "distribution"\nbins_kwh = [0, 20]', "one bin"),
    "a period that ends before it begins": ("last_day = 2013-02-07", "last_day = 2013-01-07", "last_day"),
}


@pytest.mark.parametrize("case", BAD_RUN_FILES)
def test_a_bad_run_file_is_one_line_and_releases_nothing(case: str, world: World) -> None:
    old, new, message = BAD_RUN_FILES[case]
    world.edit((old, new))
    line = world.refuse("run", "run.toml", status=2)
    assert message in line
    assert "secret@" not in line
    assert not (world.folder / "out" / "release").exists()
    assert not (world.folder / "out" / "ledger.sqlite").exists()


def test_bad_input_files_are_one_line_and_release_nothing(world: World) -> None:
    """The messages for each kind of file are those of tests/agedp/test_ingest.py."""
    packed = gzip.compress(b"LCLid,tstp,energy(kWh/hh)\n" + b"A,2013-02-02 00:30:00,1\n" * 1000)
    for name, content, message in (
        ("zz-9.csv", b"LCLid,when,how much\nA,2013-02-02 00:30:00,1\n", "when,how much"),
        ("zz-9.csv", b"LCLid,tstp,energy(kWh/hh)\nA,02/25/2013 00:30:00,1\n", "date format"),
        ("zz-9.csv.gz", packed[: len(packed) // 2], "cut off"),
    ):
        path = world.folder / "incoming" / name
        path.write_bytes(content)
        line = world.refuse("run", "run.toml", status=2)
        assert message in line
        assert name in line
        assert not (world.folder / "out" / "release").exists()
        path.unlink()
    world.succeed("run", "run.toml")  # nothing was lost


def test_a_missing_file_and_a_missing_folder_are_one_line(world: World) -> None:
    assert "nowhere.toml" in world.refuse("run", "nowhere.toml", status=2)
    assert "nowhere" in world.refuse("verify", "nowhere", status=2)
    (world.folder / "roster.csv").write_text("household_id,from,to\nA,2013-02-30,\n")
    assert "line 2" in world.refuse("run", "run.toml", status=2)


def test_verify_names_further_files_and_refuses_a_url(released: World) -> None:
    (released.folder / "out" / "release" / "notes.txt").write_text("my own")
    lines = ["out/release: as it was published", "not part of the release, and not checked: notes.txt"]
    assert released.succeed("verify", "out/release").splitlines() == lines
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


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (("rnu", "run.toml"), "'run'"),
        (("ledger", "shwo", "run.toml"), "'show'"),
        (("run", "run.toml", "--jsno"), "--json"),
        (("run", "rnu.toml"), "'run.toml'"),
        (("verify", "inccoming"), "'incoming'"),
        (("ledger", "import", "rooster.csv", "--to", "sqlite:///new.sqlite"), "'roster.csv'"),
        (("sample", "londn", "made"), "'london'"),
    ],
)
def test_a_misspelt_name_is_one_line_with_the_nearest(words: tuple[str, ...], nearest: str, unreleased: World) -> None:
    line = unreleased.refuse(*words, status=2)
    assert nearest in line.removeprefix(" ".join(words))
    assert "mean" in line or "Possible" in line


def test_a_misspelt_roster_is_named_on_the_terminal_only(world: World) -> None:
    (world.folder / "roster.csv").rename(world.folder / "roster-CANARY.csv")
    assert "'roster-CANARY.csv'" in world.refuse("plan", "run.toml", status=2)
    with pytest.raises(InputError) as caught:
        read_roster(world.folder / "roster.csv")
    assert "CANARY" not in str(caught.value)


def helps() -> dict[str, str]:
    """The help of every command, by its words."""
    group = get_command(app)
    below = {f"ledger {name}": one for name, one in group.commands["ledger"].commands.items()}
    every = {name: one for name, one in group.commands.items() if name != "ledger"} | below
    return {name: one.help for name, one in every.items()}


def test_every_example_in_the_help_is_understood_by_its_command() -> None:
    for name, text in helps().items():
        examples = text.replace("\\\n", " ").split("Example: ")[1:]
        assert examples
        for example in examples:
            words, command = shlex.split(example.partition("\n\n")[0]), get_command(app)
            assert words[: len(name.split()) + 1] == ["agedp", *name.split()]
            for word in name.split():
                command = command.commands[word]
            with command.make_context(name, words[1 + len(name.split()) :]) as parsed:
                assert parsed.params


def test_the_exit_statuses_are_in_the_help() -> None:
    assert all(f" {status} " in f" {get_command(app).epilog}".replace(":", " ") for status in (0, 1, 2, 3))


def test_every_command_has_json_and_a_quiet_form(world: World) -> None:
    course = [
        ("sample", "london", "made-{}", "--households", "2", "--days", "2"),
        ("init", "incoming", "--in", "own-{}"),
        ("run", "run.toml"),
        ("publish", "run.toml"),
        ("verify", "out/release"),
        ("ledger", "verify", "run.toml"),
        ("ledger", "export", "run.toml", "rows-{}.jsonl"),
        ("ledger", "import", "rows-{}.jsonl", "--to", "sqlite:///new-{}.sqlite", "--lost"),
        ("ledger", "recover", "out/release", "--to", "sqlite:///again-{}.sqlite"),
    ]
    for number, option in enumerate(("--json", "--quiet")):
        (world.folder / f"own-{number}").mkdir()
        for words in course:
            ended = world.agedp(*(word.format(number) for word in words), option)
            assert (ended.status, ended.err) == (0, ""), words
            assert isinstance(json.loads(ended.out), dict) if option == "--json" else ended.out == ""
    for words in (("plan", "run.toml"), ("ledger", "show", "run.toml"), ("ledger", "amend", "run.toml")):
        world.load(*words)


def test_completion_knows_the_commands() -> None:
    asked = {"_AGEDP_COMPLETE": "complete_bash", "COMP_WORDS": "agedp ledger ", "COMP_CWORD": "2"}
    printed = python("-c", "from agedp_flows.cli.app import main; main()", **asked)
    assert set(printed.split()) >= {"show", "verify", "amend", "export", "import", "recover"}


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
