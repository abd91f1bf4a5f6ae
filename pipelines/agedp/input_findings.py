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
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from agedp.preflight.input_checks import CAUSES, Finding
from agedp_data.config.input import LongColumns
from agedp_data.errors import AgedpError, PreflightFailed

HOUSEHOLD_IDS: Final = "household ids"
"""Name of the finding about household ids that are floating-point numbers, which cannot be accepted."""
ROWS: Final = "rows"
"""Name of the finding that the run file or the call asks for no row that there is."""
_ARGUMENTS: Final = ("dataset", "files", "interval_minutes", "accept")
"""Keys of [input] that are arguments of a function."""
_VALUE: Final = r'"(?:[^"\\]|\\.)*"|\[[^]]*\]|\{[^}]*\}|true|false|-?\d+(?:\.\d+)?'
_COLUMN: Final = rf"(?:{'|'.join(LongColumns.model_fields)})"
_OPTION: Final = re.compile(r" \(--[^)]*\)")
_COLUMN_VALUE: Final = re.compile(rf"(?:\[input\.columns\] |\b)({_COLUMN}) = ({_VALUE})")
_COLUMNS: Final = re.compile(rf"\[input\.columns\] ({_COLUMN}\b(?:(?:, | and | or ){_COLUMN}\b)*)")
_ARGUMENT: Final = re.compile(rf"(?:\[input\] |\b)({'|'.join(_ARGUMENTS)}) = (?={_VALUE})")
_KEY_ELSEWHERE: Final = re.compile(rf"\[input\] (?!(?:{'|'.join(_ARGUMENTS)})\b)(\w+(?: = (?:{_VALUE}))?)(?=\W|$)")
_QUARANTINE: Final = "quality.parquet and store/quarantine in the confidential folder name the rows"


class InputWarning(UserWarning):
    """The judge of the input found something; `findings` names it and is confidential, `str()` is public."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("the judge of the input found what makes readings wrong or missing; agedp.findings says which")
        self.findings = findings


def in_python(text: str) -> str:
    """Return a text about keys of a run file in the words of a call.

    >>> in_python('[input.columns] negative = "zero", or [input] accept = ["negative"] (--accept-finding negative)')
    'columns={"negative": "zero"}, or accept=["negative"]'
    >>> in_python('Correct [input.columns] unit or [input] max_half_hour_kwh, or write where = { kind = "E1" }')
    'Correct columns["unit"] or max_half_hour_kwh in a run file, or write columns={"where": {"kind": "E1"}}'
    """
    text = _OPTION.sub("", text).replace(_QUARANTINE, '.attrs["rows"] of agedp.read counts them by reason')
    text = _COLUMN_VALUE.sub(lambda found: f'columns={{"{found[1]}": {_python_value(found[2])}}}', text)
    text = _COLUMNS.sub(lambda found: re.sub(_COLUMN + r"\b", r'columns["\g<0>"]', found[1]), text)
    text = _KEY_ELSEWHERE.sub(r"\1 in a run file", _ARGUMENT.sub(r"\1=", text))
    text = re.sub(r"\[input\] (?=\w+\b)", "", re.sub(r"\[input\](?= with)", "the arguments", text))
    return re.sub(r"^columns: (?=columns)", "", text.replace("[input.columns]", "columns="))


def _python_value(value: str) -> str:
    """Return a value of a run file as Python writes it."""
    if value.startswith("{"):
        return "{" + re.sub(r"(\w+) = ", r'"\1": ', value[1:-1].strip()) + "}"
    return {"true": "True", "false": "False"}.get(value, value)


@contextmanager
def python_words() -> Iterator[None]:
    """Say errors about keys of a run file in the words of a call."""
    try:
        yield
    except AgedpError as error:
        raise noted(error) from None


def refusal_of(findings: Sequence[Finding]) -> PreflightFailed:
    """Return the error about refused findings; Python prints its note below a traceback."""
    causes = " ".join(in_python(f"{finding.name}: {finding.text.rstrip('.')}.") for finding in findings)
    error = PreflightFailed(private=f"readings: {causes} Nothing was drawn")
    error.add_note(f"agedp: {error.private}")
    return error


_Error = TypeVar("_Error", bound=AgedpError)


def noted(error: _Error) -> _Error:
    """Return an error about a table in the words of a call; Python prints what is private as a note."""
    error.args, error.private = (in_python(str(error)),), in_python(error.private)
    if error.private != str(error):
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
    """Warn of findings about readings, household ids and the rows that are asked for, if there are any."""
    names = (*CAUSES, HOUSEHOLD_IDS, ROWS)
    if found := tuple(finding for finding in findings if finding.name in names and finding.verdict != "ok"):
        warnings.warn(InputWarning(found), stacklevel=4)
