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
from pathlib import Path
from typing import Any

import pytest
import typer

from agedp_flows.cli.app import app, main

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
