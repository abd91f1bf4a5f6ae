"""What the judge of the input found in tables in memory: `agedp.findings`, its refusals and its warnings.

    >>> import agedp, pandas as pd
    >>> columns = {"household": "meter", "time": "at", "time_format": "iso", "stamp": "start", "zone": "UTC"}
    >>> columns |= {"day_zone": "UTC", "energy": "kwh", "unit": "kWh"}
    >>> times = pd.date_range("2026-01-05", periods=48, freq="30min")
    >>> table = pd.DataFrame({"meter": "A", "at": times.astype(str), "kwh": [-0.1] * 5 + [0.2] * 43})
    >>> [(finding.name, finding.verdict, finding.number) for finding in agedp.findings(table, columns=columns)]
    [('negative', 'warning', 1)]

Decisions:

* Findings stay in this process (`input_frames.ReadNotes`), never in `DataFrame.attrs`, which pandas writes to Parquet.
* `str()` of an error and of a warning is public. Causes are in `error.private`, in a note that Python prints below the
  traceback, and in the attribute `findings` of a warning.
* `agedp.read` and `quantize` warn, so that readings can be looked at; `plan`, `compare`, `release`, `sanitise` raise.
* A frame of which rows were removed is taken as it is: its owner has chosen them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Sequence
from typing import Final

from agedp.preflight.input_checks import CAUSES, Finding
from agedp_data.errors import PreflightFailed

_COLUMN: Final = re.compile(r"\[input\.columns\] (\w+) = (\"[^\"]*\"|\[[^]]*\])")
_KEY: Final = re.compile(r"\[input\.columns\] (\w+)")
_OPTION: Final = re.compile(r" \(--accept-finding \w+\)")
_INPUT: Final = re.compile(r"\[input\] (\w+)( = )?")


class InputWarning(UserWarning):
    """The judge of the input found something; `findings` names it and is confidential, `str()` is public."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("the judge of the input found rejected or missing readings; agedp.findings says which")
        self.findings = findings


def in_python(text: str) -> str:
    """Return a text about keys of a run file in the words of a call.

    >>> in_python('[input.columns] negative = "zero", or [input] accept = ["negative"] (--accept-finding negative)')
    'columns={"negative": "zero"}, or accept=["negative"]'
    """
    text = _KEY.sub(r'columns["\1"]', _COLUMN.sub(r'columns={"\1": \2}', _OPTION.sub("", text)))
    return _INPUT.sub(lambda found: f"{found[1]}{'=' if found[2] else ''}", text)


def refusal_of(findings: Sequence[Finding]) -> PreflightFailed:
    """Return the error about refused findings; Python prints its note below a traceback."""
    causes = " ".join(in_python(f"{finding.name}: {finding.text.rstrip('.')}.") for finding in findings)
    error = PreflightFailed(private=f"readings: {causes} Nothing was drawn")
    error.add_note(f"agedp: {error.private}")
    return error


def noted(error: PreflightFailed) -> PreflightFailed:
    """Return the refusal of a run of a table, in the words of a call, with the note that Python prints."""
    error.private = in_python(error.private)
    error.add_note(f"agedp: {error.private}")
    return error


def check_findings(findings: Sequence[Finding], *, accepted: Collection[str] = ()) -> None:
    """Warn of findings, unless one refuses a first release.

    Raises:
        PreflightFailed: findings that refuse it, and that are not accepted.
    """
    if refused := [finding for finding in findings if finding.verdict == "refused" and finding.name not in accepted]:
        raise refusal_of(refused)
    warn_of(findings)


def warn_of(findings: Sequence[Finding]) -> None:
    """Warn of findings about single readings, if there are any."""
    if found := tuple(finding for finding in findings if finding.name in CAUSES and finding.verdict != "ok"):
        warnings.warn(InputWarning(found), stacklevel=4)
