"""Facts about the input files -> FINDINGS: ok, a warning, or a refusal because a release would be useless.

Pure functions of `InputFacts` and of the run file. The checks are in the order of cause and effect: hourly
files also cover no day.

Decisions:

* A finding of `CAUSES` refuses a first release if the household-days that it touches are more than 1 % of those of the
  roster, in all or in a group that is published. Its own key settles it, or [input] accept with its name. A single
  household-day is a warning in the smallest files too: it shows no pattern.
* An unusual daily use is a warning, not a refusal: meters of single appliances may read 0 on most days. A share of
  rejected rows above 0.2 is refused by default: it is one supplier of five whose files have a different form.
* The public text of every refusal is one sentence (`agedp_data.errors.REFUSED_INPUT`): which finding it is depends on
  readings. Counts, causes and keys are for the terminal of whoever ran the command.

What the preflight found in tables in memory: `agedp.findings`, its refusals and its warnings.

    >>> import agedp, pandas as pd
    >>> columns = {"household": "meter", "time": "at", "time_format": "iso", "stamp": "start", "zone": "UTC"}
    >>> columns |= {"day_zone": "UTC", "energy": "kwh", "unit": "kWh"}
    >>> times = pd.date_range("2026-01-05", periods=48, freq="30min")
    >>> table = pd.DataFrame({"meter": "A", "at": times.astype(str), "kwh": [-0.1] * 5 + [0.2] * 43})
    >>> [(finding.name, finding.verdict, finding.number) for finding in agedp.findings(table, columns=columns)]
    [('negative', 'warning', 1)]

Decisions:

* Findings stay in this process (`workspace.ReadNotes`), never in `DataFrame.attrs`, which pandas writes to Parquet.
* `str()` of an error and of a warning is public. Causes are in `error.private`, in a note that Python prints below the
  traceback, and in the attribute `findings` of a warning.
* `agedp.read` and `quantize` warn, so that readings can be looked at; `plan`, `compare`, `release`, `sanitise` raise.
* A frame of which rows were removed is taken as it is: its owner has chosen them.
"""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, Literal, TypeVar, cast

from agedp.preflight.input_findings import MAX_REJECTED_SHARE, InputFacts, name_stem
from agedp.preflight.rejection_findings import Touched
from agedp_data.config import RunFile
from agedp_data.config.input import LongColumns
from agedp_data.errors import AgedpError, PreflightFailed
from agedp_data.messages import count_text
from agedp_data.parameters import FindingName
from agedp_data.roster import ALL

Verdict = Literal["ok", "warning", "refused"]

PLAUSIBLE_DAY_KWH: Final = (0.1, 300.0)
"""A median of complete household-days outside these limits is implausible: Wh for kWh, or the reverse [kWh]."""
MAX_CONFLICT_SHARE: Final = 0.05
"""A larger share of a day's readings lost to conflicting rows is an alert."""

MAX_TOUCHED_SHARE: Final = 0.01
"""A finding that touches a larger share of the household-days of the roster, or of a group, is a refusal."""

_MAX_LISTED_DAYS: Final = 40
_GOOD_COVERAGE: Final = 0.9


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; all of it is confidential.

    Attributes:
        name: the name of the check, or of the cause.
        sentence: what the files show.
        verdict: "ok", "warning" or "refused".
        remedy: what settles a refusal.
        number: household-days that it touches; 0 if it is about none in particular.
        limit: the number above which it is a refusal, in all.
    """

    name: str
    sentence: str
    verdict: Verdict = "ok"
    remedy: str = ""
    number: int = 0
    limit: int = 0

    @property
    def text(self) -> str:
        """Return the sentence and what settles it."""
        return f"{self.sentence}. {self.remedy}" if self.remedy else self.sentence


_CAUSES_TOML = Path(__file__).with_name("causes.toml").read_text(encoding="utf-8")
_CAUSES = cast("dict[FindingName, dict[str, str]]", tomllib.loads(_CAUSES_TOML))
CAUSES: Final = {name: (texts["cause"], texts["remedy"]) for name, texts in _CAUSES.items()}
"""Cause of each finding, with a place for details, and what settles it, in the order of cause and effect."""


def check_facts(facts: InputFacts, run: RunFile) -> tuple[Finding, ...]:
    """Return the findings of all checks, in the order of cause and effect.

    A pure function: it reads no file. `first_refusal` decides whether the run is refused.
    """
    checked = [check(facts, run) for check in _CHECKS]
    judged = judge(facts.touched, facts.roster_days, facts.members, accepted=run.input.accept)
    return (checked[0], *judged, *checked[1:])


def judge(
    touched: Mapping[FindingName, Touched],
    roster_days: Mapping[str, int],
    members: int,
    *,
    accepted: Collection[str] = (),
) -> tuple[Finding, ...]:
    """Return a finding for each cause that touches a household-day, in the order of cause and effect.

    Args:
        touched: what each cause touches.
        roster_days: household-days of the roster by group.
        members: households of the roster.
        accepted: names that [input] accept lists.

    >>> [finding] = judge({"negative": Touched(1, {"all": 3}, 9)}, {"all": 200}, 50)
    >>> finding.verdict, finding.number, finding.limit
    ('refused', 3, 2)
    """
    findings = []
    for name, (cause, remedy) in CAUSES.items():
        found = touched.get(name, Touched())
        days, total = found.days.get(ALL, 0), roster_days.get(ALL, 0)
        if not days:
            continue
        shares = {group: number / max(roster_days.get(group, 0), 1) for group, number in found.days.items()}
        patterns = [group for group, number in found.days.items() if number > 1]
        worst = max(patterns or shares, key=lambda group: (shares[group], group == ALL))
        is_refused = shares[worst] > MAX_TOUCHED_SHARE and worst in patterns
        numbers = f"{found.households:,} of {count_text(members, 'household')}"
        numbers += f", {_format_percent(days, total)} of {count_text(total, 'household-day')}"
        numbers += f", {shares[worst]:.1%} in group {worst}" if is_refused and worst != ALL else ""
        numbers += f", {count_text(found.rows, 'row')}" if found.rows else ""
        sentence = f"{numbers}{' (sampled)' if found.is_sampled else ''}: {cause.format(_details(found.details))}"
        if name in accepted and is_refused:
            sentence, is_refused = f"accepted in writing: {sentence}", False
        mark = next((text.removeprefix("text ") for text in found.details if text.startswith("text ")), ",")
        accept = f'[input] accept = ["{name}"] (--accept-finding {name})'
        settled = f"{remedy.replace('{mark}', mark)}, or accept it: {accept}"
        verdict: Verdict = "refused" if is_refused else "warning"
        findings.append(Finding(name, sentence, verdict, settled, days, max(1, int(MAX_TOUCHED_SHARE * total))))
    return tuple(findings)


def _clock(slot: int) -> str:
    return f"{slot // 2:02}:{slot % 2 * 30:02}"


def _details(details: Mapping[str, int]) -> str:
    """Return what rows show, in words."""
    slots = sorted(int(text.removeprefix("slot ")) for text in details if text.startswith("slot "))
    starts = [slot for slot in slots if slot - 1 not in slots]
    ends = [slot + 1 for slot in slots if slot + 1 not in slots]
    words = [f"from {_clock(start)} to {_clock(end)}" for start, end in zip(starts, ends, strict=True)]
    for text, number in details.items():
        kind, _, rest = text.partition(" ")
        if kind == "slot":
            continue
        if kind == "text":
            words.append(rest)
        elif kind == "skipped":
            words.append(f"{count_text(number, 'row')} at times that it skips in spring")
        elif kind == "repeated":
            words.append("no household repeats the hour that it shows twice in autumn")
        else:
            words.append(f"{text} in {count_text(number, 'household')}")
    return f" ({', '.join(words)})" if words else ""


def first_refusal(findings: Sequence[Finding]) -> Finding | None:
    """Return the refusal to mend first; None if nothing is refused.

    It is the one that touches most household-days, because rejected rows leave gaps that look like another cause; of
    equal ones the first in the order of cause and effect.

    >>> first_refusal([Finding("files", "1 file"), Finding("interval", "60 minutes", "refused")]).name
    'interval'
    """
    refused = (finding for finding in findings if finding.verdict == "refused")
    return max(refused, key=lambda finding: finding.number, default=None)


def _finding(name: str, sentence: str, remedy: str = "", *, refused: bool = False, warns: bool = False) -> Finding:
    """Return the finding of a check: refused, with what settles it, else a warning or ok."""
    if refused:
        return Finding(name, sentence, "refused", remedy)
    return Finding(name, sentence, "warning" if warns else "ok")


def _check_files(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001  (one signature for all checks)
    names = ", ".join(facts.empty_files[:5]) + (", ..." if len(facts.empty_files) > 5 else "")
    result = f"{count_text(facts.files, 'file')}, {count_text(facts.rows, 'row')}"
    if facts.rows == 0:
        remedy = "[input] files: the files contain no row of data. Deliver the readings, or correct the paths."
        return _finding("files", f"{result}; empty: {names}", remedy, refused=True)
    if facts.empty_files:
        result += f"; {count_text(len(facts.empty_files), 'file')} without a row: {names}"
    if facts.unreadable:
        result += f"; {count_text(len(facts.unreadable), 'file')} rejected as a whole: {facts.unreadable[0]}"
    for name, rows, _ in facts.superseded[:5]:
        result += f"; {count_text(rows, 'row')} of {name} corrected by files later in the order"
    if swapped := [(name, of) for name, _, of in facts.superseded if of]:
        name, corrected = swapped[0]
        result += f"; by name {name} comes before {corrected}"
        remedy = (
            f'If {name} is the correction, rename it ("_" after "{name_stem(corrected)}" comes last) and add an empty '
            f"line at its end, since a stored file keeps its place; if {corrected} is, do so with that. Or begin with "
            '[input] file_order = "modified".'
        )
        return _finding("files", result, remedy, refused=True)
    return _finding("files", result, warns=bool(facts.empty_files or facts.unreadable))


def _check_readings(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001
    complete = _format_percent(facts.complete_days, facts.household_days)
    days = count_text(facts.household_days, "household-day")
    return _finding("readings", f"{complete} of {days} have about all of their readings")


def _check_rejected(facts: InputFacts, run: RunFile) -> Finding:
    reasons = sorted(facts.rejected.items(), key=lambda file: -file[1])[:3]
    result = f"{facts.rejected_share:.2%} of {count_text(facts.counted_rows, 'row')}"
    result += "".join(f"; {number:,} {reason}" for reason, number in reasons)
    if facts.rejecting_files:
        worst = max(facts.rejecting_files, key=lambda file: file.rejected / file.rows)
        number = count_text(len(facts.rejecting_files), "file")
        result += f"; {number} above {MAX_REJECTED_SHARE:.0%}, most in {worst.name}: {worst.rejected / worst.rows:.1%}"
    max_share = float(run.input.max_rejected_share)
    remedy = f"[input] max_rejected_share = {max_share:g} is exceeded. {CAUSES['rejected'][1]}"
    is_refused = facts.rejected_share > max_share
    return _finding("rejected rows", result, remedy, refused=is_refused, warns=bool(facts.rejecting_files))


def _check_roster(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001
    result = (
        f"{facts.on_roster:,} of {count_text(facts.roster, 'household')} on the roster have a reading; "
        f"{count_text(facts.households - facts.on_roster, 'household')} of the files are not on the roster"
    )
    remedy = "no household of the roster has a reading in the input files; are roster and files of the same population?"
    complete = facts.on_roster == facts.roster == facts.households
    return _finding("roster", result, remedy, refused=facts.on_roster == 0, warns=not complete)


def _check_period(facts: InputFacts, run: RunFile) -> Finding:
    first, last = min(facts.coverage), max(facts.coverage)
    read = "no reading" if facts.days is None else f"readings {facts.days[0]} to {facts.days[1]}"
    outside = facts.days is None or facts.days[1] < first or facts.days[0] > last
    remedy = (
        f"[schedule] first_day = {run.schedule.first_day}: the files hold no reading of a due day. Correct first_day "
        "and last_day, or deliver those days."
    )
    partial = facts.days is not None and not facts.days[0] <= first <= last <= facts.days[1]
    return _finding("period", f"{read}; due days {first} to {last}", remedy, refused=outside, warns=partial)


def _check_coverage(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001
    household_days = sum(coverage.households for coverage in facts.coverage.values())
    usable = sum(coverage.usable for coverage in facts.coverage.values())
    day, least = min(facts.coverage.items(), key=lambda item: item[1].usable / max(item[1].households, 1))
    few = sum(2 * coverage.usable < coverage.households for coverage in facts.coverage.values())
    result = (
        f"{_format_percent(usable, household_days)} of the household-days of the roster are usable; fewest on "
        f"{day}: {least.usable:,} of {least.households:,}"
    )
    remedy = (
        "[input] files: no household of the roster has a usable day among the due days. Compare max_missing with the "
        "files, or deliver those days."
    )
    if few and usable:
        result += f"; fewer than half of the households on {count_text(few, 'due day')}"
    warns = few > 0 or usable < _GOOD_COVERAGE * household_days
    return _finding("coverage", result, remedy, refused=usable == 0, warns=warns)


def _check_absent_days(facts: InputFacts, run: RunFile) -> Finding:
    absent = facts.absent_days
    if not absent:
        return _finding("absent days", "on every due day more than a tenth of the households are usable")
    days = ", ".join(_day_ranges(absent[:_MAX_LISTED_DAYS]))
    if len(absent) > _MAX_LISTED_DAYS:
        days += f", ... {absent[-1]}"
    result = f"{count_text(len(absent), 'due day')} with at most a tenth of the households usable: {days}"
    remedy = (
        "[schedule]: some days of the period have hardly a usable household. Shorten the period, list the days in "
        'skip_days, or write absent_days = "missing".'
    )
    is_refused = getattr(run.schedule, "absent_days", "") == "refuse" and len(absent) < len(facts.coverage)
    return _finding("absent days", result, remedy, refused=is_refused, warns=True)


def _check_unit(facts: InputFacts, run: RunFile) -> Finding:  # noqa: ARG001
    if facts.median_kwh is None:
        return _finding("unit", "no complete household-day")
    min_kwh, max_kwh = PLAUSIBLE_DAY_KWH
    result = f"median use of a complete household-day: {facts.median_kwh:.3g} kWh"
    if zero_days := sorted(facts.zero_days):
        result += f"; most households have 0 kWh on {count_text(len(zero_days), 'due day')}, first on {zero_days[0]}"
    if min_kwh <= facts.median_kwh <= max_kwh:
        return _finding("unit", result, warns=bool(zero_days))
    doubt = f"households use {min_kwh:g} to {max_kwh:g} kWh: Wh taken for kWh, or the reverse?"
    return _finding("unit", f"{result}; {doubt}", warns=True)


_CHECKS: Final[tuple[Callable[[InputFacts, RunFile], Finding], ...]] = (
    _check_files, _check_readings, _check_rejected, _check_roster,
    _check_period, _check_coverage, _check_absent_days, _check_unit,
)  # fmt: skip


def _format_percent(part: int, total: int) -> str:
    return f"{part / total:.1%}" if total else "0 %"


def _day_ranges(days: Sequence[date]) -> Iterator[str]:
    """Yield the ranges of consecutive days, in order."""
    start = 0
    for i, day in enumerate(days):
        if i + 1 == len(days) or (days[i + 1] - day).days != 1:
            yield f"{days[start]}" if i == start else f"{days[start]} to {day}"
            start = i + 1


def findings_json(findings: Sequence[Finding]) -> list[Mapping[str, str | int]]:
    """Return the findings as JSON objects."""
    names = {"check": "name", "result": "text", "verdict": "verdict", "number": "number", "limit": "limit"}
    return [{key: getattr(finding, name) for key, name in names.items()} for finding in findings]


HOUSEHOLD_IDS: Final = "household ids"
"""Name of the finding about household ids that are floating-point numbers, which cannot be accepted."""
ROWS: Final = "rows"
"""Name of the finding that the run file or the call asks for no row that there is."""
_ARGUMENTS: Final = ("dataset", "files", "interval_minutes", "accept")
"""Keys of [input] that are arguments of a function."""
_VALUE: Final = r'"(?:[^"\\]|\\.)*"|\[[^]]*\]|\{[^}]*\}|true|false|-?\d+(?:\.\d+)?'
_COLUMN: Final = rf"(?:{'|'.join(LongColumns.model_fields)})"
_OPTION: Final = re.compile(r" \(--[^)]*\)")
_FLAGS: Final = "|".join(sorted((key.replace("_", "-") for key in LongColumns.model_fields), key=len, reverse=True))
_COLUMN_FLAG: Final = re.compile(rf"--({_FLAGS})(?:-columns?)?\b")
_COLUMN_VALUE: Final = re.compile(rf"(?:\[input\.columns\] |\b)({_COLUMN}) = ({_VALUE})")
_COLUMNS: Final = re.compile(rf"\[input\.columns\] ({_COLUMN}\b(?:(?:, | and | or ){_COLUMN}\b)*)")
_ARGUMENT: Final = re.compile(rf"(?:\[input\] |\b)({'|'.join(_ARGUMENTS)}) = (?={_VALUE})")
_KEY_ELSEWHERE: Final = re.compile(rf"\[input\] (?!(?:{'|'.join(_ARGUMENTS)})\b)(\w+(?: = (?:{_VALUE}))?)(?=\W|$)")
_QUARANTINE: Final = "quality.parquet and store/quarantine in the confidential folder name the rows"


class InputWarning(UserWarning):
    """The preflight found something; `findings` names it and is confidential, `str()` is public."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("the preflight found what makes readings wrong or missing; agedp.findings says which")
        self.findings = findings


def in_python(text: str) -> str:
    """Return a text about keys of a run file in the words of a call.

    >>> in_python('[input.columns] negative = "zero", or [input] accept = ["negative"] (--accept-finding negative)')
    'columns={"negative": "zero"}, or accept=["negative"]'
    >>> in_python('Give --time-format, --household-column')
    'Give columns["time_format"], columns["household"]'
    >>> in_python('Correct [input.columns] unit or [input] max_half_hour_kwh, or write where = { kind = "E1" }')
    'Correct columns["unit"] or max_half_hour_kwh in a run file, or write columns={"where": {"kind": "E1"}}'
    """
    text = _OPTION.sub("", text).replace(_QUARANTINE, '.attrs["rows"] of agedp.read counts them by reason')
    text = _COLUMN_FLAG.sub(lambda found: f'columns["{found[1].replace("-", "_")}"]', text)
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
