"""The fenced blocks of a page, and whoever does what a page tells its reader to do.

A block is marked behind its language. `sh run` is run by bash in the page's folder, `sh fails=3` must end with that,
`python run` goes on where the page's last one ended, `toml file=run.toml` is written into the folder. `text says` holds
lines that the block before it printed, in this order, "..." being whatever; in `text alike` their numbers are free, for
noise is drawn anew. A block that is marked `long` besides is left to `make long`. `text demo` is the README's screen.

`agedp` itself is called in this process where a line of a block is nothing but that: a second less each time.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agedp_flows.cli import app

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(?P<tick>`{3,})(?P<language>\w*)(?P<marks>[^\n]*)\n(?P<text>.*?)^(?P=tick)$", re.M | re.S)
_PLAIN_CALL = re.compile(r"agedp( ('[^']*'|[^\s'|<>&;$*\"()]+))+")
CONTINUED = re.compile(r" *\\\n\s*")
_ANY = r"-?[0-9][0-9,.]*(e[-+]?[0-9]+)?"
_CELL = re.compile(r"[0-9]*\.?[0-9][0-9,.]*(?<![,.])")
_NUMBER = re.compile(r"(\\-)?[0-9]([0-9,]|\\\.)*(e(\\-)?[0-9]+)?")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    line: int
    language: str
    marks: str
    text: str

    @property
    def file(self) -> str:
        """Return the file that it is, "" if it is none."""
        return next((mark[5:] for mark in self.marks.split() if mark.startswith("file=")), "")

    @property
    def is_long(self) -> bool:
        """Return whether only `make long` runs it."""
        return "long" in self.marks.split()

    @property
    def status(self) -> int | None:
        """Return with which status it must end, None if it is not to be run."""
        ends = [int(mark[6:]) for mark in self.marks.split() if mark.startswith("fails=")]
        return ends[0] if ends else 0 if "run" in self.marks.split() else None


def pages() -> list[Path]:
    """Return every page that somebody reads: those of the site and those beside the code."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "data").glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for found in _FENCE.finditer(text):
        yield Block(text.count("\n", 0, found.start()) + 1, found["language"], found["marks"], found["text"])


class Reader:
    """Somebody who does in a folder of his own, block by block, what a page tells him to."""

    def __init__(self, folder: Path, monkeypatch: Any) -> None:
        self._folder, self._patch = folder, monkeypatch
        self._known: dict[str, Any] = {}
        self._printed = ""
        monkeypatch.chdir(folder)

    def follow(self, text: str, *, with_long: bool = False) -> None:
        """Go through a page."""
        for block in blocks(text):
            if block.is_long and not with_long:
                continue
            if block.file:
                path = self._folder / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, "utf-8")
            elif block.status is not None:
                self._printed = (self._python if block.language == "python" else self._shell)(block)
            elif {"says", "alike"} & set(block.marks.split()):
                self._heard(block)

    def _shell(self, block: Block) -> str:
        said = ""
        for line in CONTINUED.sub(" ", block.text).splitlines():
            status, printed = self._agedp(line) if _PLAIN_CALL.fullmatch(line) else self._bash(line)
            said += printed
            if status:
                break
        assert status == block.status, f"line {block.line}: status {status}\n{said}"
        return said

    def _bash(self, line: str) -> tuple[int, str]:
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout

    def _agedp(self, line: str) -> tuple[int, str]:
        self._patch.setattr(sys, "argv", shlex.split(line))
        status: object = 0
        with io.StringIO() as said, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                app.main()
            except SystemExit as ended:
                status = ended.code or 0
            return int(str(status)), said.getvalue()

    def _python(self, block: Block) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile("\n" * block.line + block.text, "page", "exec"), self._known)  # noqa: S102
        return said.getvalue()

    def _heard(self, block: Block) -> None:
        line = unprinted(block.text, self._printed, free="alike" in block.marks.split())
        assert not line, f"line {block.line}: not printed, or not in this order: {line}\n{self._printed}"


def unprinted(text: str, printed: str, *, free: bool) -> str:
    """Return the first line of a text that was not printed, or not in this order; "" if all were."""
    left = iter(printed.splitlines())
    for line in text.splitlines():
        wanted = _pattern(line, free=free)
        if line.strip(". ") and not any(wanted.fullmatch(" ".join(other.split())) for other in left):
            return line
    return ""


def screen(page: str) -> str:
    """Return the block of a page that is marked `demo`: what `make run` prints, shortened."""
    return next(block.text for block in blocks(page) if "demo" in block.marks.split())


def unlike(text: str, printed: str) -> str:
    """Return the first line of a text that was not printed at any size, or not in this order; "" if all were.

    Numbers, empty cells (".") and line breaks are free: they depend on how much is drawn.
    """
    left = _shape(printed)
    for line in text.splitlines():
        if line.strip(". "):
            _, shape, rest = left.partition(_shape(line))
            if not shape:
                return line
            left = f" {rest}"
    return ""


def _shape(text: str) -> str:
    cells = " ".join("#" if cell in (".", "hidden") else _CELL.sub("#", cell) for cell in text.split())
    return f" {cells} ".replace(" # to # ", " # ")


def _pattern(line: str, *, free: bool) -> re.Pattern[str]:
    """Return what a line may be, blanks made one."""
    words = re.escape(" ".join(line.split())).replace(re.escape("..."), ".*").replace(r"\ ", " ")
    return re.compile(_NUMBER.sub(lambda _: _ANY, words) if free else words)
