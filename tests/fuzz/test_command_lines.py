"""Whatever stands on a command line, the command ends with a result or with one line that says what is wrong."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer

from agedp.setup.run_file_options import OPTIONS, SERIES, SEVERAL, Key, notion_options
from agedp_data import clock
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.notions import NOTIONS
from agedp_data.series.series import BY_NAME
from agedp_flows.cli.app import app, main
from tests.command import Ended, agedp, beside_verdict
from tests.fuzz.run_files import keys, toml_value
from tests.fuzz.test_run_files import JARGON

# Whatever stands on a command line, the command ends with a result or with one line that says what is wrong.

WRONG = (
    "", "-", "--", "nowhere.toml", "run.tmol", "nowhere/run.toml", "run.toml/more", "input", "release", "/", ".",
    "empty", "bytes", "text", "list.json", "loop", "closed", "closed/run.toml", "/dev/null", "/proc/self/mem",
    "x" * 300, "x/" * 2000 + "x", "a\nb", "\udc80", "\u202eoverride", "~nobody/x", "*", "[", "**/*", "{day}", "%s",
    "$HOME", "http://127.0.0.1:9/x", "s3://", "file://", "memory://nothing", "sqlite://", "sqlite:///", "sqlite:///input",
    "sqlite:///text", "sqlite:///nowhere/x/y.sqlite", "sqlite:////proc/1/x.sqlite", "sqlite:///run.toml?x=1",
    "mysql://h/d", "postgresql://", "postgresql://u:secret@h/d", "0", "-1", "1e9", "nan", "99999999999999999999",
    "2013-02-30", "20130101", "0001-01-01", "9999-12-31", "2013-01-01T00:00", "now", "london", "paris", "--json",
    "--nope", "-x", "--help=1", "@",
)  # fmt: skip
SOUND = {
    "RUN.toml": ("run.toml",), "RUN.toml...": ("run.toml",), "RUN.toml|URL": ("run.toml", "sqlite:///ledger.sqlite"),
    "FILES": ("input", "input/*"), "FILE": ("rows.jsonl", "new.jsonl"), "FOLDER": ("release",),
    "DATE": ("2013-02-05", "2026-03-04"), "URL": ("sqlite:///ledger.sqlite", "sqlite:///new.sqlite"), "SEQ": ("3", "4"),
    "dataset": ("london", "ausgrid"), "folder": ("made",), "households": ("2", "3"), "days": ("2",), "seed": ("1",),
}  # fmt: skip


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the words of every command below a group, with its arguments and options."""
    for name, one in sorted(group.commands.items()):
        if hasattr(one, "commands"):
            yield from commands(one, (*words, name))
        else:
            yield (*words, name), [each for each in one.params if each.name != "help"]


COMMANDS = dict(commands(typer.main.get_command(app)))


def words_for(one: Any, chance: random.Random, *, sound: bool) -> list[str]:
    """Return an argument or option, or nothing; its value is sound or wrong, or forgotten."""
    option = one.param_type_name == "option"
    if chance.random() < (0.6 if option else 0.04):
        return []
    words = [chance.choice(one.opts)] if option else []
    if option and (one.is_flag or chance.random() < 0.05):
        return words
    values = SOUND.get((one.metavar or "").rstrip(), SOUND.get(one.name, ()))
    return [*words, chance.choice(values if values and sound and chance.random() < 0.5 else WRONG)]


def line_of(name: tuple[str, ...], chance: random.Random) -> list[str]:
    sound = name != ("audit",)  # which would work for long
    line = [word for one in COMMANDS[name] for word in words_for(one, chance, sound=sound)]
    if chance.random() < 0.15:
        line.insert(chance.randint(0, len(line)), chance.choice(WRONG))
    return [*name, *line]


class TooLong(BaseException):
    """It waits for something that never comes; no error of the system, which the command would report in one line."""


def too_long(*_: object) -> None:
    raise TooLong


@pytest.fixture
def status_of(lived, tmp_path, capsys, monkeypatch):
    """Return what runs a command line, requires a result, the help, or one line, and returns the exit status."""
    folder = Path(shutil.copytree(lived, tmp_path / "world"))
    (folder / "empty").touch()
    (folder / "bytes").write_bytes(bytes(range(256)))
    (folder / "text").write_text("version = 1\n")
    (folder / "list.json").write_text("[1, 2]\n")
    (folder / "loop").symlink_to("loop")
    (folder / "closed").mkdir(mode=0)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    before = signal.signal(signal.SIGALRM, too_long)

    def run(line: list[str]) -> int:
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        monkeypatch.setattr(sys, "argv", ["agedp", *line])
        signal.alarm(60)
        try:
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException:
            pytest.fail(f"agedp {line}\n{traceback.format_exc()}")
        finally:
            signal.alarm(0)
        errors = capsys.readouterr().err
        assert status in (0, 2, 3), (line, errors)
        assert not status or (errors.startswith("agedp: ") and errors.endswith("\n")), (line, errors)
        assert not status or (errors[:-1].isprintable() and "secret" not in errors), (line, errors)
        return status

    yield run
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("number", [2, pytest.param(150, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_wrong_thing_in_every_place_ends_in_one_line(name, number, status_of):
    chance = random.Random(f"20261121 {' '.join(name)}")  # noqa: S311 - words, no secrets
    met = [status_of(line_of(name, chance)) for _ in range(number)]
    assert number < 100 or 2 in met


def test_a_wrong_thing_in_place_of_a_command_is_one_line(status_of):
    for wrong in WRONG[::6]:
        assert status_of([wrong]) == 2
        assert status_of(["ledger", wrong]) == 2


# Every option and key, in every mode and with every statistic: it works through the plan, or one line says what to
# do.

MODES = ("archive", "live", "rehearsal")
ACCEPTED = ("--accept", "useless", "--accept", "no-credit", "--accept", "total")
KERNEL = ("--kernel", "kernel.csv", "--basis", "made up")
COLUMNS = ("--zone", "UTC", "--day-zone", "UTC", "--stamp", "end", "--unit", "kWh")
HOMES, DAYS = 4, 8
OPTION_OF = {option.key: option for option in (*OPTIONS, *notion_options())}
HELPS = re.compile(
    r"\b(give|write|remove|must|lower|takes?|name|correct|shorten|add|declare|publish|mount|did you mean|known are"
    r"|goes with)\b",
    re.I,
)


def sound_values() -> dict[Key, dict[str, Any]]:
    """Return the sound values of each key by the choice of its table, such as the notion; keys of a series alike."""
    values: dict[Key, dict[str, Any]] = {}
    for key in keys():
        table = SERIES if key.path[:1] == ("series",) else ".".join(key.path)
        if table and key.key not in ("quantiles", "memory"):
            values.setdefault((table, key.key), {})[key.choice] = key.value
    return values


VALUES = sound_values()


@dataclass(frozen=True)
class Case:
    """An option or key with a value, beside what decides all others."""

    key: Key
    mode: str
    statistic: str

    def __str__(self) -> str:
        return f"{self.key[0]}.{self.key[1]}-{self.mode}-{self.statistic}"

    @property
    def names(self) -> tuple[str, ...]:
        option = OPTION_OF.get(self.key)
        return (self.key[1], *(() if option is None else (option.flag, self.flag_name)))

    @property
    def flag_name(self) -> str:
        return OPTION_OF[self.key].flag.removeprefix("--")

    def words(self) -> tuple[str, list[str]]:
        """Return the files of the case, and its options: the one of the key, and those that decide the others."""
        chance = random.Random(str(self))  # noqa: S311 - choices, no secrets
        by_choice = VALUES.get(self.key, {"": "week"})
        notions = [notion for notion in NOTIONS if self.key[0] != "promise" or notion.name in by_choice]
        notion = chance.choice(notions)
        of_table = {"promise": notion.name, SERIES: self.statistic, "schedule": self.mode, "input": "london"}
        choice = of_table.get(self.key[0], "")
        value = by_choice[choice if choice in by_choice else chance.choice(sorted(by_choice))]
        files = next((name for name in ("ausgrid", "long") if self.key[0] == "input" and {*by_choice} == {name}), "")
        files = "long" if self.key[0] == "input.columns" else files or "london"
        own = words_of(self.key, value)
        typed = [
            word
            for key in notion.TEXT.typed
            for word in words_of(("promise", key), VALUES["promise", key][notion.name])
        ]
        decided = ["--notion", notion.name, "--epsilon", "1", *typed, *ACCEPTED, "--mode", self.mode]
        decided += ["--statistic", self.statistic, *(KERNEL if notion.needs_model else ())]
        decided += ["--rehearsal-on", "synthetic"] if self.mode == "rehearsal" else []
        decided += COLUMNS if files == "long" else ()
        return files, [*without(decided, own[0]), *own]


def words_of(key: Key, value: Any) -> list[str]:
    """Return the words of a command line that give a key this value, by its option or by --set."""
    option = OPTION_OF.get(key)
    if option is None:
        return ["--set", f"{key[0]}.{key[1]}={toml_value(value)}"]
    if option.form in ("flag", "switch"):
        return [option.flag]
    if isinstance(value, dict):
        return [word for name, text in value.items() for word in (option.flag, f"{name}={text}")]
    if isinstance(value, list) and option.form in SEVERAL:
        return [word for part in value for word in (option.flag, str(part))]
    return [option.flag, ",".join(map(str, value)) if isinstance(value, list) else str(value)]


def without(words: list[str], flag: str) -> list[str]:
    """Return the words without an option and its value."""
    pairs = zip(words[::2], words[1::2], strict=True)
    return [word for pair in pairs if pair[0] != flag or flag == "--set" for word in pair]


CASES = [
    Case(key, mode, statistic)
    for key in dict.fromkeys([*OPTION_OF, *VALUES])
    for mode in MODES
    for statistic in BY_NAME
]
CHOSEN = random.Random("20261129").sample(CASES, 30)  # noqa: S311
RELEASED = CHOSEN[::4]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of three layouts that ended some days ago, and the files that keys name."""
    folder = tmp_path_factory.mktemp("options")
    period: dict[str, Any] = {"first_day": clock.today() - timedelta(days=DAYS + 7), "days": DAYS, "seed": 3}
    for name, write in (("london", write_london), ("ausgrid", write_ausgrid)):
        (folder / name).mkdir()
        write(folder / name, households=HOMES, **period)
    (folder / "long").mkdir()
    begin = period["first_day"]
    rows = [
        f"m{home},{begin + timedelta(days=step // 48)} {step % 48 // 2:02d}:{step % 2 * 30:02d},0.{100 + step % 89}"
        for home in range(HOMES)
        for step in range(1, 48 * DAYS)
    ]
    (folder / "long" / "meters.csv").write_text("\n".join(["meter,read,kwh", *rows]) + "\n")
    (folder / "kernel.csv").write_text("0.6,0.4\n0.4,0.6\n")
    (folder / "forgetting.csv").write_text("age_days,total_variation\n1,0.5\n7,0.1\n")
    (folder / "family.csv").write_text("age_days,quick,slow\n1,0.1,0.5\n7,0.01,0.1\n")
    (folder / "meters.csv").write_text(f"meter,household,from,to\nMAC900001,h1,{begin},\n")
    return folder


def checked(case: Case, ended: Ended, *, names_key: bool = True) -> bool:
    """Require success, or a refusal in one line that names the key and what to do; return whether it succeeded."""
    assert ended.status in (0, 2, 3), (case.words(), ended)
    if ended.status == 0:
        return True
    errors = [line for line in beside_verdict(ended.err).splitlines() if not line.startswith("agedp: warning")]
    [line] = errors
    assert line.startswith("agedp: "), line
    assert line.isprintable(), line
    assert not JARGON.search(line), line
    assert HELPS.search(line), line
    table = [f"[{case.key[0]}]"]  # or another key of the same table, where one needs the other
    table += [option.flag for option in OPTIONS if option.key[0] == case.key[0] == "input.columns"]
    assert not names_key or any(name in line for name in (*case.names, *table)), (case.words(), line)
    return False


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in CHOSEN else pytest.mark.long) for case in CASES], ids=str
)
def test_an_option_works_or_is_refused_in_one_line(case, world, tmp_path, monkeypatch):
    monkeypatch.chdir(world)
    files, words = case.words()
    begun = agedp("init", files, "--in", tmp_path, "--json", *words)
    if not checked(case, begun) or json.loads(begun.out)["to_decide"]:
        return
    run_file = tmp_path / "run.toml"
    if 'source = "estimated"' in run_file.read_text() and not checked(case, agedp("calibrate", run_file, "--quiet")):
        return
    if checked(case, agedp("plan", run_file, "--json")) and case in RELEASED:
        checked(case, agedp("run", run_file, "--quiet"), names_key=False)  # the judge's public text names no key
