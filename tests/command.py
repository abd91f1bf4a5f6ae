"""The `agedp` command in this process, and a folder in which it is called."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from agedp_flows.cli.app import main
from tests.references import unresolved

VERDICT = (
    "agedp: Verdict before the first release: ", "agedp: Accepted in writing by ", "agedp: A rehearsal passes, ",
    "agedp: [population] min_households = ",
)  # fmt: skip


def beside_verdict(err: str) -> str:
    """Return what was printed on standard error beside the verdict on a first release."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith(VERDICT))


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


def agedp(
    *words: str | Path, folder: Path | None = None, answer: str = "", terminal: type[io.StringIO] = io.StringIO
) -> Ended:
    """Run the command inside a folder with `answer` typed in; questions and answers use streams of `terminal`."""
    out, err, status = io.StringIO(), terminal(), 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder or "."))
        stack.enter_context(mock.patch.object(sys, "argv", ["agedp", *map(str, words)]))
        stack.enter_context(mock.patch.object(sys, "stdin", terminal(answer)))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
    ended = Ended(status, out.getvalue(), err.getvalue())
    assert unresolved(ended.out + ended.err) == []
    return ended


@dataclass(frozen=True)
class CommandFolder:
    """A folder in which the command is called; its run file is run.toml."""

    folder: Path

    def agedp(self, *words: str | Path, answer: str = "") -> Ended:
        return agedp(*words, folder=self.folder, answer=answer)

    def succeed(self, *words: str | Path, answer: str = "") -> str:
        """Require exit status 0 and return what was printed."""
        ended = self.agedp(*words, answer=answer)
        assert ended.status == 0, ended
        return ended.out

    def load(self, *words: str | Path) -> Any:
        """Return what a command that succeeds prints with --json."""
        return json.loads(self.succeed(*words, "--json"))

    def refuse(self, *words: str | Path, status: int) -> str:
        """Require an exit status and nothing but one line on standard error, and return the line."""
        ended = self.agedp(*words)
        assert (ended.status, ended.out) == (status, ""), ended
        [line] = ended.err.splitlines()
        assert line.startswith("agedp: ")
        return line

    def edit(self, *edits: tuple[str, str], name: str = "run.toml") -> None:
        """Replace texts of a file that must be there."""
        text = (self.folder / name).read_text()
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new)
        (self.folder / name).write_text(text)

    def copy(self, folder: Path) -> CommandFolder:
        """Return a copy, a folder of the same kind."""
        return type(self)(Path(shutil.copytree(self.folder, folder)))
