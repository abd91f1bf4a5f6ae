"""The fenced blocks of a page, and whoever does what a page tells its reader to do.

A block is marked behind its language. All `sh run` blocks of a page are one bash session in the page's folder: a later
block finds the folder, variables and environment that an earlier one left. `sh fails=3` must end with that status,
`python run` goes on where the page's last one ended, `toml file=run.toml` is written into the folder. `text says` holds
lines that the block before it printed, in this order, digit for digit; "..." is whatever. A block that is marked `long`
besides is left to `make long`. `text demo` is the README's screen.

Decisions:

* `agedp` is a function of the session that asks this process, which has its modules: a second less each time.
* Noise is drawn as ever, so no number of a page may depend on it. `NOISY` pages show drawn numbers and tell the reader
  that others will be drawn. For them noise follows from what it is added to: their numbers are of one possible run.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from agedp_data import mechanisms
from agedp_flows.cli import app

ROOT = Path(__file__).parents[2]
NOISY = frozenset({"README.md", "recipient.md", "written.md"})
"""A published mean is what the first is about, and the error of one the second; a smoothed interval follows from it."""
_FENCE = re.compile(r"^(?P<tick>`{3,})(?P<language>\w*)(?P<marks>[^\n]*)\n(?P<text>.*?)^(?P=tick)$", re.M | re.S)
_CELL = re.compile(r"[0-9]*\.?[0-9][0-9,.]*(?<![,.])")
_SESSION = r"""
set -o pipefail
agedp() {
    local out err status
    exec {out}>&1 {err}>&2
    { printf '%s\0' "$(($# + 4))" "$BASHPID" "$out" "$err" "$PWD" "$@"; env -0; printf '\0'; } >&"$questions"
    read -r status <&"$answers"
    exec {out}>&- {err}>&-
    return "$status"
}
trap 'failed=${failed:-$?}' ERR
while IFS= read -r -d '' block; do
    failed=
    eval "$block" </dev/null
    printf '%s\0' 2 "${failed:-0}" "$PWD" >&"$questions"
done
"""
_OF_A_CALL = 4
"""Fields of a call of `agedp` before its words; the end of a block has only two."""


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


def repeatable_noise(values: Any, *, sensitivity: int, loss: Any) -> Any:
    """Return `values` with noise of the mechanism's law that follows from the arguments."""
    vector, scale = np.asarray(values, np.int64), mechanisms.laplace_scale(sensitivity=sensitivity, loss=loss)
    source = random.Random(f"{vector.tolist()} {sensitivity} {loss}")  # noqa: S311

    def geometric() -> int:
        return int(-scale * math.log(1 - source.random()))

    return vector + np.array([geometric() - geometric() for _ in vector], np.int64)


class Session:
    """A bash session; each run returns when its block has ended."""

    def __init__(self, folder: Path) -> None:
        self._printed = (folder.parent / "printed").open("a+b", buffering=0)
        (asked, questions), (answers, answered) = os.pipe(), os.pipe()
        self._process = subprocess.Popen(
            ["bash", "--norc", "-c", f"questions={questions} answers={answers}\n{_SESSION}"],
            cwd=folder, stdin=subprocess.PIPE, stdout=self._printed, stderr=subprocess.STDOUT,
            pass_fds=(questions, answers),
        )  # fmt: skip
        os.close(questions)
        os.close(answers)
        self._questions, self._answers = os.fdopen(asked, "rb"), os.fdopen(answered, "wb", buffering=0)

    def run(self, text: str) -> tuple[int, str]:
        """Run a block; return the status of its first command that failed, or 0, and what was printed."""
        begin = os.fstat(self._printed.fileno()).st_size
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode() + b"\0")
        self._process.stdin.flush()
        while len(question := [self._field() for _ in range(int(self._field()))]) >= _OF_A_CALL:
            environment = dict(entry.partition("=")[::2] for entry in iter(self._field, ""))
            self._answers.write(b"%d\n" % _call_agedp(question, environment))
        status, folder = question
        os.chdir(folder)
        return int(status), os.pread(self._printed.fileno(), 2**24, begin).decode()

    def close(self) -> None:
        """End the session."""
        self._process.kill()
        self._process.communicate()
        for stream in (self._printed, self._questions, self._answers):
            stream.close()

    def _field(self) -> str:
        field = bytearray()
        while (byte := self._questions.read(1)) != b"\0":
            assert byte, "the session ended"
            field += byte
        return field.decode()


def _call_agedp(question: list[str], environment: dict[str, str]) -> int:
    """Run the `agedp` command in this process, on the streams, in the folder and with the environment of its caller."""
    process, out, err, folder, *words = question
    out, err = (f"/proc/{process}/fd/{stream}" for stream in (out, err))
    os.chdir(folder)
    with (
        os.fdopen(os.open(out, os.O_WRONLY | os.O_APPEND), "w", buffering=1) as stdout,
        os.fdopen(os.open(err, os.O_WRONLY | os.O_APPEND), "w", buffering=1) as stderr,
        contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr),
        mock.patch.dict(os.environ, environment, clear=True), mock.patch.object(sys, "argv", ["agedp", *words]),
    ):  # fmt: skip
        try:
            app.main()
        except SystemExit as ended:
            return int(str(ended.code or 0))
    return 0


class Reader:
    """Somebody who does in a folder of his own, block by block, what a page tells him to."""

    def __init__(self, folder: Path, monkeypatch: Any) -> None:
        self._folder, self._session = folder, Session(folder)
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
            elif "says" in block.marks.split():
                line = unprinted(block.text, self._printed)
                assert not line, f"line {block.line}: not printed, or not in this order: {line}\n{self._printed}"

    def close(self) -> None:
        """Leave."""
        self._session.close()

    def _shell(self, block: Block) -> str:
        status, printed = self._session.run(block.text)
        assert status == block.status, f"line {block.line}: status {status}\n{printed}"
        return printed

    def _python(self, block: Block) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * block.line + block.text, "page", "exec"), self._known)  # noqa: S102
        return printed.getvalue()


def unprinted(text: str, printed: str) -> str:
    """Return the first line of a text that was not printed, or not in this order; "" if all were."""
    left = iter(printed.splitlines())
    for line in text.splitlines():
        words = re.escape(" ".join(line.split())).replace(re.escape("..."), ".*").replace(r"\ ", " ")
        if line.strip(". ") and not any(re.fullmatch(words, " ".join(other.split())) for other in left):
            return line
    return ""


def screen(page: str) -> str:
    """Return the block of a page that is marked `demo`: what `make run` prints, shortened."""
    return next(block.text for block in blocks(page) if "demo" in block.marks.split())


def unlike(text: str, printed: str) -> str:
    """Return the first line of a text that was not printed at any size, or not in this order; "" if all were.

    Numbers, empty cells (".") and line breaks are free: they depend on how much is drawn. "..." stands for any words.
    """
    left = _shape(printed)
    for line in text.splitlines():
        for words in filter(str.strip, line.split("...")):
            _, shape, rest = left.partition(_shape(words))
            if not shape:
                return line
            left = f" {rest}"
    return ""


def _shape(text: str) -> str:
    cells = " ".join("#" if cell in (".", "hidden") else _CELL.sub("#", cell) for cell in text.split())
    return f" {cells} ".replace(" # to # ", " # ")
