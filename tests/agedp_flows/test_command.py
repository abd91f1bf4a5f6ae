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

from tests.agedp_flows.in_process import agedp, refused
from tests.agedp_flows.worlds import DECLARED, World, make
from tests.source_path import source_path


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = make(tmp_path / "world", seed=1, mode="archive", model=DECLARED, method="total_variation")
    run_file = made.folder / "run.toml"
    run_file.write_text(run_file.read_text().replace("epsilon_total = 2.5", "epsilon_total = 3"))
    monkeypatch.chdir(made.folder)
    return made


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['agedp', '--help']\n"
        "from agedp_flows.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "heavy = {'pandas', 'pyarrow', 'prefect', 'dask', 'opendp', 'scipy', 'numpy', 'sqlalchemy', 'pydantic'}\n"
        "heavy |= {'jinja2'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.splitlines()[-1] == "heavy: []"


def test_verifying_needs_no_engine_sampler_or_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert agedp(monkeypatch, "run", "run.toml", "--quiet") == 0
    code = (
        "import sys; sys.argv = ['agedp', 'verify', 'out/release']\n"
        "sys.modules |= dict.fromkeys(['prefect', 'dask', 'opendp', 'jinja2', 'markdown_it'])\n"
        "from agedp_flows.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_releases_once_and_a_second_run_changes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "run", "run.toml", "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert [each["day"] for each in first["released"]] == [f"2013-02-0{day}" for day in range(2, 8)]
    published = world.published()
    assert agedp(monkeypatch, "run", "run.toml", "--json") == 0
    assert json.loads(capsys.readouterr().out)["released"] == []
    assert world.published() == published
    assert agedp(monkeypatch, "verify", "out/release") == 0
    assert agedp(monkeypatch, "ledger", "verify", "run.toml") == 0
    assert agedp(monkeypatch, "ledger", "show", "run.toml", "--json") == 0


def test_behind_the_last_day_of_the_period_a_plan_says_that_it_is_over(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "run", "run.toml", "--quiet") == 0
    assert agedp(monkeypatch, "plan", "run.toml") == 0
    said = capsys.readouterr().out
    assert "the series has ended: last released day 2013-02-07; its period ended with 2013-02-07" in said
    assert "last possible day" not in said
    words = (world.folder / "out" / "release" / "STATEMENT.md").read_text()
    assert "The period ended with 2013-02-07, and the promise lasted until then." in words


def test_a_changed_promise_is_refused_key_by_key(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "run", "run.toml") == 0
    published = world.published()
    run_file = world.folder / "run.toml"
    run_file.write_text(run_file.read_text().replace("epsilon_per_day = 0.5", "epsilon_per_day = 0.4"))
    for words in (("run", "run.toml"), ("plan", "run.toml")):
        line = refused(monkeypatch, capsys, *words, status=3)
        assert 'promise.epsilon_per_day: "0.5" -> "0.4"' in line
    assert world.published() == published


def test_a_promise_that_ends_keeps_and_publishes_the_days_before(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_file = world.folder / "run.toml"
    run_file.write_text(run_file.read_text().replace("epsilon_total = 3", "epsilon_total = 1.2"))
    assert agedp(monkeypatch, "plan", "run.toml") == 0
    assert "last possible day 2013-02-03" in capsys.readouterr().out
    assert agedp(monkeypatch, "run", "run.toml") == 3
    said = capsys.readouterr()
    assert "2 days released now" in said.out
    assert said.err.startswith("agedp: 2013-02-04: ")
    assert "2013-02-04" in refused(monkeypatch, capsys, "run", "run.toml", status=3)  # nothing more is released
    assert agedp(monkeypatch, "plan", "run.toml") == 0
    assert (
        "the series has ended: last released day 2013-02-03; 2013-02-04: the promise permits no further release: 1 is "
        "spent, epsilon_total = 1.2"
    ) in capsys.readouterr().out
    assert agedp(monkeypatch, "plan", "run.toml", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["last_possible_day"] == "2013-02-03"
    assert "epsilon_total = 1.2" in found["ended"]
    words = (world.folder / "out" / "release" / "STATEMENT.md").read_text()
    assert "The promise ended with 2013-02-03: the remaining budget permits no further release." in words
    assert agedp(monkeypatch, "verify", "out/release") == 0
    assert agedp(monkeypatch, "ledger", "show", "run.toml", "--json") == 0


def test_amounts_are_told_without_an_exponent(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_file = world.folder / "run.toml"
    text = run_file.read_text()
    tiny = re.sub(r"(epsilon_per_day|max_day_epsilon|epsilon_total) = [0-9.]+", r"\1 = 1e-9", text)
    assert tiny.count("1e-9") == 3
    run_file.write_text(tiny)
    assert agedp(monkeypatch, "plan", "run.toml") == 0
    said = capsys.readouterr().out
    assert "0 spent, these releases add 0.000000001; epsilon_total = 0.000000001" in said
    assert "0.000000001 is spent, epsilon_total = 0.000000001; nothing was drawn" in said
    assert re.findall(r"\d[eE]-\d+", said) == []
    run_file.write_text(tiny.replace("epsilon_per_day = 1e-9", "epsilon_per_day = 2e-9"))
    assert "epsilon_per_day = 0.000000002" in refused(monkeypatch, capsys, "plan", "run.toml", status=2)


BAD_RUN_FILES = {
    "an unknown key names the nearest": ("min_households", "min_housholds", "min_households"),
    "a missing key is named": ("clamp_kwh = 20\n", "", "clamp_kwh"),
    "a negative loss": ("epsilon_per_day = 0.5", "epsilon_per_day = -0.5", "epsilon_per_day"),
    "a key of another notion": ('secret = "day"', 'secret = "day"\nspend = "even"', "spend"),
    "a notion that comes later": ('"age-dependent"', '"neighbourhood"', "[promise]"),
    "no toml": ("[series.daily_mean]", "[series.daily_mean", "line"),
    "a ledger with a password": (
        "sqlite:///out/ledger.sqlite",
        "postgresql+psycopg://agedp:secret@db/agedp",
        "password",
    ),
    "a distribution of one bin": ('statistic = "mean"', 'statistic = "distribution"\nbins_kwh = [0, 20]', "one bin"),
    "a period that ends before it begins": ("last_day = 2013-02-07", "last_day = 2013-01-07", "last_day"),
}


@pytest.mark.parametrize("case", BAD_RUN_FILES)
def test_a_bad_run_file_is_one_line_and_releases_nothing(
    case: str, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, said = BAD_RUN_FILES[case]
    run_file = world.folder / "run.toml"
    assert old in run_file.read_text()
    run_file.write_text(run_file.read_text().replace(old, new))
    line = refused(monkeypatch, capsys, "run", "run.toml", status=2)
    assert said in line
    assert "secret@" not in line
    assert not (world.folder / "out" / "release").exists()
    assert not (world.folder / "out" / "ledger.sqlite").exists()


BAD_FILES = {
    "an unknown header": (b"LCLid,when,how much\nA,2013-02-02 00:30:00,1\n", "when,how much"),
    "a binary file": (b"LCLid\x00\x01\x02", "binary"),
    "UTF-16": ("LCLid,tstp,energy(kWh/hh)\n".encode("utf-16"), "UTF-16"),
    "US dates": (b"LCLid,tstp,energy(kWh/hh)\nA,02/25/2013 00:30:00,1\n", "date format"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_input_file_is_one_line_and_releases_nothing(
    case: str, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content, said = BAD_FILES[case]
    (world.folder / "incoming" / "zz-9.csv").write_bytes(content)
    line = refused(monkeypatch, capsys, "run", "run.toml", status=2)
    assert said in line
    assert "zz-9.csv" in line
    assert not (world.folder / "out" / "release").exists()
    (world.folder / "incoming" / "zz-9.csv").unlink()
    assert agedp(monkeypatch, "run", "run.toml") == 0  # nothing was lost


def test_a_cut_off_archive_is_one_line(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = gzip.compress(b"LCLid,tstp,energy(kWh/hh)\n" + b"A,2013-02-02 00:30:00,1\n" * 1000)
    (world.folder / "incoming" / "zz-9.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert "cut off" in refused(monkeypatch, capsys, "run", "run.toml", status=2)


def test_a_missing_file_and_a_missing_folder_are_one_line(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nowhere.toml" in refused(monkeypatch, capsys, "run", "nowhere.toml", status=2)
    assert "nowhere" in refused(monkeypatch, capsys, "verify", "nowhere", status=2)
    (world.folder / "roster.csv").write_text("household_id,from,to\nA,2013-02-30,\n")
    assert "line 2" in refused(monkeypatch, capsys, "run", "run.toml", status=2)


def test_what_lies_beside_a_release_is_named_to_its_recipient_and_a_url_is_told_as_one(world, monkeypatch, capsys):
    assert agedp(monkeypatch, "run", "run.toml", "--quiet") == 0
    (world.folder / "out" / "release" / "notes.txt").write_text("my own")
    capsys.readouterr()
    assert agedp(monkeypatch, "verify", "out/release") == 0
    assert (
        capsys.readouterr().out
        == "out/release: as it was published\nnot part of the release, and not checked: notes.txt\n"
    )
    assert agedp(monkeypatch, "verify", "out/release", "--json") == 0
    assert json.loads(capsys.readouterr().out)["not_of_the_release"] == ["notes.txt"]
    for words in (("verify",), ("ledger", "recover", "--to", "sqlite:///new.sqlite")):
        told = refused(monkeypatch, capsys, *words, "s3://me@meters/release?sig=aXz", status=2)
        assert "s3://meters/release is a URL; download" in told


def test_as_of_goes_with_rehearsals_only(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--as-of" in refused(monkeypatch, capsys, "run", "run.toml", "--as-of", "2013-02-05", status=2)


def test_a_rehearsal_wants_a_ledger_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agedp(monkeypatch, "run", "run.toml") == 0
    text = (world.folder / "run.toml").read_text()
    text = text.replace('mode = "archive"', 'mode = "rehearsal"').replace('name = "homes"', 'name = "others"')
    text = text.replace('"out/release"', '"out/others"')
    (world.folder / "other.toml").write_text(text)
    assert "ledger of its own" in refused(monkeypatch, capsys, "run", "other.toml", status=3)


@pytest.mark.parametrize(
    ("words", "meant"),
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
def test_a_misspelt_name_is_one_line_that_names_the_nearest(
    words: tuple[str, ...],
    meant: str,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = refused(monkeypatch, capsys, *words, status=2)
    assert meant in line.removeprefix(" ".join(words))
    assert "mean" in line or "Possible" in line


def test_a_misspelt_roster_names_the_nearest_to_the_house_only(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from agedp_data.errors import InputError
    from agedp_data.roster import read_roster

    (world.folder / "roster.csv").rename(world.folder / "roster-CANARY.csv")
    assert "'roster-CANARY.csv'" in refused(monkeypatch, capsys, "plan", "run.toml", status=2)
    with pytest.raises(InputError) as caught:
        read_roster(world.folder / "roster.csv")
    assert "CANARY" not in str(caught.value)


def helps() -> dict[str, str]:
    """The help of every command, by its words."""
    from typer.main import get_command

    from agedp_flows.cli.app import app

    group = get_command(app)
    below = {f"ledger {name}": one for name, one in group.commands["ledger"].commands.items()}
    every = {name: one for name, one in group.commands.items() if name != "ledger"} | below
    return {name: one.help for name, one in every.items()} | {"": str(group.epilog), "ledger": str(group.epilog)}


def test_every_command_has_an_example_that_its_own_options_understand() -> None:
    from typer.main import get_command

    from agedp_flows.cli.app import app

    for name, said in helps().items():
        if name in ("", "ledger"):
            continue
        examples = said.replace("\\\n", " ").split("Example: ")[1:]
        assert examples
        for example in examples:
            words = shlex.split(example.partition("\n\n")[0])
            assert words[: len(name.split()) + 1] == ["agedp", *name.split()]
            group, context = get_command(app), None
            for word in name.split():
                context, group = group, group.commands[word]
            del context
            with group.make_context(name, words[1 + len(name.split()) :]) as parsed:
                assert parsed.params


def test_the_exit_statuses_are_in_the_help() -> None:
    for name in ("", "ledger"):
        assert all(f" {status} " in f" {helps()[name]}".replace(":", " ") for status in (0, 1, 2, 3))


def test_machines_get_json_from_every_command_and_quiet_ones_say_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    to = "sqlite:///new-{}.sqlite"
    course = [
        ("sample", "london", "made-{}", "--households", "2", "--days", "2"),
        ("init", "incoming", "--in", "own-{}"),
        ("run", "run.toml"),
        ("publish", "run.toml"),
        ("verify", "out/release"),
        ("ledger", "verify", "run.toml"),
        ("ledger", "export", "run.toml", "rows-{}.jsonl"),
        ("ledger", "import", "rows-{}.jsonl", "--to", to, "--lost"),
        ("ledger", "recover", "out/release", "--to", "sqlite:///again-{}.sqlite"),
    ]
    for number, option in enumerate(("--json", "--quiet")):
        for words in course:
            (world.folder / f"own-{number}").mkdir(exist_ok=True)
            capsys.readouterr()
            assert agedp(monkeypatch, *(word.format(number) for word in words), option) == 0
            said = capsys.readouterr()
            assert said.err == ""
            assert isinstance(json.loads(said.out), dict) if option == "--json" else said.out == ""
    for words in (("plan", "run.toml"), ("ledger", "show", "run.toml"), ("ledger", "amend", "run.toml")):
        capsys.readouterr()
        assert agedp(monkeypatch, *words, "--json") == 0
        json.loads(capsys.readouterr().out)


def test_completion_knows_the_commands(world: World) -> None:

    told = {"_AGEDP_COMPLETE": "complete_bash", "COMP_WORDS": "agedp ledger ", "COMP_CWORD": "2"}
    found = subprocess.run(
        [sys.executable, "-c", "from agedp_flows.cli.app import main; main()"],
        env={**os.environ, **told, "PYTHONPATH": source_path()},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert set(found.stdout.split()) >= {"show", "verify", "amend", "export", "import", "recover"}


@pytest.mark.parametrize("name", ["flows", "pipelines"])
def test_folders_of_a_project_are_never_taken_for_ours(name: str, tmp_path: Path) -> None:
    """Python puts the current folder first under -m, and Prefect the working directory wherever it loads a flow."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("OWNER = 'the project'\n")
    load = "from prefect.flows import load_flow_from_entrypoint as load\n"
    load += f"import agedp, {name}\n"
    load += "flow = load('agedp_flows.release_flow:release', use_placeholder_flow=False)\n"
    load += f"print(flow.name, {name}.OWNER)"
    outputs = []
    for words in (("-c", load), ("-m", "agedp_flows", "--version")):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": source_path()},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.strip())
    assert outputs[0] == "agedp the project"
    assert outputs[1].startswith("agedp 0.")
