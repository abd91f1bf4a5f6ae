"""Command lines of every command: arguments and options found by walking the command itself, each sound or wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from agedp_flows.cli.app import app

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
"""What may stand anywhere, whether or not it makes sense there."""

SOUND = {
    "RUN.toml": ("run.toml",), "RUN.toml...": ("run.toml",),
    "RUN.toml|URL": ("run.toml", "sqlite:///out/ledger.sqlite"), "FILES": ("incoming", "incoming/*"),
    "FILE": ("rows.jsonl", "new.jsonl"), "FOLDER": ("out/release",), "DATE": ("2013-02-05", "2026-03-04"),
    "URL": ("sqlite:///out/ledger.sqlite", "sqlite:///new.sqlite"), "SEQ": ("3", "4"),
    "dataset": ("london", "ausgrid"), "folder": ("made",), "households": ("2", "3"), "days": ("2",), "seed": ("1",),
}  # fmt: skip
"""By what stands in the help in place of an argument, or by its name."""

LONG_WORK = {"audit"}
"""Given a sound run file, these work for long: they get wrong ones only."""


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
        wrong = not sound or self.words[-1] in LONG_WORK or chance.random() < 0.5
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


def furnish(folder: Path) -> None:
    """Put things into a folder that are no run files, releases or ledgers."""
    (folder / "empty").touch()
    (folder / "empty-folder").mkdir()
    (folder / "bytes").write_bytes(bytes(range(256)))
    (folder / "text").write_text("version = 1\n")
    (folder / "list.json").write_text("[1, 2]\n")
    (folder / "loop").symlink_to("loop")
    (folder / "closed").mkdir(mode=0)
