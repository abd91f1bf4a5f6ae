"""What to do next, after a command whose result a user has not seen before: commands to copy.

Every command parses as it is printed (`tests/agedp_flows/test_next_steps.py`). Light to import, for recipients.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from agedp_data.messages import escape_text
from agedp_flows.text.screen import next_step

if TYPE_CHECKING:
    from agedp.calibration.bound import Calibration
    from agedp.setup.sample import SampleFolder


def command_step(purpose: str, *words: str | Path) -> str:
    """Return a next step: a command of agedp, quoted for a shell, and its purpose.

    >>> command_step("what is due", "plan", "my run.toml")
    "Next: agedp plan 'my run.toml'  # what is due"
    """
    return next_step(escape_text(shlex.join(["agedp", *map(str, words)])), purpose)


def after_calibration(calibration: Calibration, run_file: Path) -> list[str]:
    """Return the next step of a calibration; none if its model was stored before."""
    if calibration.is_stored:
        return []
    return [command_step("due days, epsilon and noise under this model", "plan", run_file)]


def sample_lines(sample: SampleFolder) -> list[str]:
    """Return what a sample contains, and the next steps if it was written now."""
    if not sample.written:
        return [sample.message]
    return [
        sample.message,
        command_step("due days, epsilon and noise; draws nothing", "plan", sample.run_file),
        command_step("a rehearsal: releases every day by a simulated clock", "run", sample.run_file),
    ]


def after_verification(folder: str) -> list[str]:
    """Return what a recipient does with a verified folder."""
    return [f"Read {escape_text(folder)}/STATEMENT.md: what the release reveals about one household."]


def after_export(file: Path, *, is_closed: bool) -> list[str]:
    """Return the next step of an export that moves the ledger."""
    if not is_closed:
        return []
    return [command_step("its new place", "ledger", "import", file, "--to", "sqlite:///new/ledger.sqlite")]


def after_transfer(address: str) -> list[str]:
    """Return the next steps of an import or a recovery."""
    return [
        f'Write into [output] of the run file: ledger = "{escape_text(address)}"',
        command_step("every row and hash once more", "ledger", "verify", address),
    ]
