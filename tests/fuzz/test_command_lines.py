"""Whatever stands on a command line, the command ends with a result or with one line that says what is wrong.

Command lines of every command: arguments and options are found by walking the command itself, each sound or wrong.
"""

from __future__ import annotations

import io
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

import agedp.release_folder.release_folder
from agedp_flows.cli.app import app, main
from tests.agedp_flows.worlds import DECLARED, make
from tests.command import agedp as agedp_here

WRONG = (
    "", "-", "--", "nowhere.toml", "run.tmol", "nowhere/run.toml", "run.toml/more", "incoming", "out/release", "/", ".",
    "empty", "bytes", "text", "list.json", "loop", "closed", "closed/run.toml", "/dev/null", "/proc/self/mem",
    "x" * 300, "x/" * 2000 + "x", "a\nb", "\udc80", "\u202eoverride", "~nobody/x", "*", "[", "**/*", "{day}", "%s",
    "$HOME", "http://127.0.0.1:9/x", "s3://", "file://", "memory://nothing", "sqlite://", "sqlite:///", "sqlite:///incoming",
    "sqlite:///text", "sqlite:///nowhere/x/y.sqlite", "sqlite:////proc/1/x.sqlite", "sqlite:///run.toml?x=1",
    "mysql://h/d", "postgresql://", "postgresql://u:secret@h/d", "0", "-1", "1e9", "nan", "99999999999999999999",
    "2013-02-30", "20130101", "0001-01-01", "9999-12-31", "2013-01-01T00:00", "now", "london", "paris", "--json",
    "--nope", "-x", "--help=1", "@",
)  # fmt: skip

SOUND = {
    "RUN.toml": ("run.toml",), "RUN.toml...": ("run.toml",),
    "RUN.toml|URL": ("run.toml", "sqlite:///out/ledger.sqlite"), "FILES": ("incoming", "incoming/*"),
    "FILE": ("rows.jsonl", "new.jsonl"), "FOLDER": ("out/release",), "DATE": ("2013-02-05", "2026-03-04"),
    "URL": ("sqlite:///out/ledger.sqlite", "sqlite:///new.sqlite"), "SEQ": ("3", "4"),
    "dataset": ("london", "ausgrid"), "folder": ("made",), "households": ("2", "3"), "days": ("2",), "seed": ("1",),
}  # fmt: skip

SOUND_HERE = {
    "sample": "london sound --households 2 --days 2", "init": "incoming --in empty-folder",
    "sanitise": "incoming --out new --notion classical --epsilon-per-day 0.5 --max-day-epsilon 0.5 --epsilon-total 5 "
    "--clamp-kwh 20 --min-households 2",
    "plan": "run.toml", "run": "run.toml", "publish": "run.toml",
    "verify": "out/release --ledger sqlite:///out/ledger.sqlite", "ledger show": "run.toml",
    "ledger verify": "sqlite:///out/ledger.sqlite", "ledger amend": "run.toml",
    "ledger export": "run.toml sound.jsonl", "ledger import": "rows.jsonl --to sqlite:///sound.sqlite --lost",
    "ledger recover": "out/release --to sqlite:///sound.sqlite", "ledger upgrade": "run.toml",
}  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command by its words, with its arguments and options."""

    words: tuple[str, ...]
    parameters: tuple[Any, ...]

    def line(self, chance: random.Random) -> list[str]:
        """Return a command line, each part of it sound or wrong."""
        given = [word for one in self.parameters for word in self._given(one, chance)]
        if chance.random() < 0.15:
            given.insert(chance.randint(0, len(given)), chance.choice(WRONG))
        return [*self.words, *given]

    def _given(self, one: Any, chance: random.Random) -> list[str]:
        option = one.param_type_name == "option"
        if chance.random() < (0.6 if option else 0.04):
            return []
        words = [chance.choice(one.opts)] if option else []
        if option and one.is_flag:
            return words
        if option and chance.random() < 0.05:
            return words  # its value is forgotten
        sound = SOUND.get((one.metavar or "").rstrip(), SOUND.get(one.name, ()))
        wrong = not sound or self.words[-1] == "audit" or chance.random() < 0.5
        return [*words, chance.choice(WRONG if wrong else sound)]


def commands() -> Iterator[Command]:
    """Every command there is."""
    yield from _below(typer.main.get_command(app), ())


def _below(group: Any, words: tuple[str, ...]) -> Iterator[Command]:
    for name, one in sorted(group.commands.items()):
        if hasattr(one, "commands"):
            yield from _below(one, (*words, name))
        else:
            yield Command((*words, name), tuple(each for each in one.params if each.name != "help"))


COMMANDS = {" ".join(one.words): one for one in commands()}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with a release, its ledger, its exported rows, and much that is none of these."""
    made = make(tmp_path_factory.mktemp("lines") / "world", seed=1, mode="archive", model=DECLARED, method="tight")
    folder = made.folder
    text = (folder / "run.toml").read_text().replace('"tight"', '"total_variation"')
    (folder / "run.toml").write_text(text.replace("epsilon_total = 2.5", "epsilon_total = 3"))
    for words in (("run", "run.toml"), ("ledger", "export", "run.toml", "rows.jsonl")):
        assert agedp_here(*words, folder=folder).status == 0
    (folder / "empty").touch()
    (folder / "empty-folder").mkdir()
    (folder / "bytes").write_bytes(bytes(range(256)))
    (folder / "text").write_text("version = 1\n")
    (folder / "list.json").write_text("[1, 2]\n")
    (folder / "loop").symlink_to("loop")
    (folder / "closed").mkdir(mode=0)
    return folder


class TooLong(BaseException):
    """It waits for something that never comes; no error of the system, which the command would report in one line."""


def too_long(*_: object) -> None:
    raise TooLong


@pytest.fixture
def status_of(world, tmp_path, capsys, monkeypatch):
    """Return what runs a command line, requires a result, the help, or one line, and returns the exit status."""
    monkeypatch.chdir(Path(shutil.copytree(world, tmp_path / "world", symlinks=True)))
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
@pytest.mark.parametrize("name", COMMANDS)
def test_every_wrong_thing_in_every_place_ends_in_one_line(name, number, status_of):
    if name in SOUND_HERE and number > 3:
        assert status_of([*name.split(), *SOUND_HERE[name].split()]) == 0
    chance = random.Random(f"20261121 {name}")  # noqa: S311 - words, no secrets
    met = [status_of(COMMANDS[name].line(chance)) for _ in range(number)]
    assert number < 100 or (2 in met and (0 not in met or name in SOUND_HERE))


def test_a_wrong_thing_in_place_of_a_command_is_one_line(status_of):
    for wrong in WRONG[::6]:
        assert status_of([wrong]) == 2
        assert status_of(["ledger", wrong]) == 2


def test_every_command_is_among_them_and_a_traceback_is_noticed(status_of, monkeypatch):
    assert set(COMMANDS) - set(SOUND_HERE) == {"audit", "calibrate", "demo", "serve"}

    def boom(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(agedp.release_folder.release_folder, "open_release", boom)
    with pytest.raises(pytest.fail.Exception, match="a bug"):
        status_of(["verify", "out/release"])
