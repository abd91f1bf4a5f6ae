"""What a promise, a claim and a model's public part look like inside a row: as much of each as is read later.

The hash chain shows that nobody changed a row alone; whoever makes the whole chain anew can put anything into these
three texts. They are checked once, when the row is read or written, so that every later reader finds what it looks
for. Keys that nobody reads are left alone: a newer agedp may write more of them.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agedp_data.chains.envelope import LeakageBound
from agedp_data.config.input import LongColumns
from agedp_data.config.meanings import meaning, meaning_of
from agedp_data.config.series import Distribution, series_in
from agedp_data.errors import ChainError, LedgerError
from agedp_data.ledger.rows import canonical, require_unicode
from agedp_data.notions.parameters import AgeDays

FIRST_DATE, LAST_DATE = date(1970, 1, 1), date(2999, 12, 31)
"""Between these lies every date of a ledger: no later arithmetic on one leaves the calendar."""

_DEEPEST: Final = 32
_STEPS_PER_DAY: Final = 86_400


def is_date(text: str) -> bool:
    """Tell whether a text is an ISO date that a ledger may hold.

    >>> is_date("2026-03-04"), is_date("2026-3-4"), is_date("9999-12-31")
    (True, False, False)
    """
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return False
    return found.isoformat() == text and FIRST_DATE <= found <= LAST_DATE


def _date(text: str) -> str:
    if not is_date(text):
        raise ValueError("no ISO date")
    return text


_Date = Annotated[str, AfterValidator(_date)]
_Number = Annotated[str, Field(pattern=r"^[0-9]{1,20}(\.[0-9]{1,20})?$")]
_Amount = Annotated[str, Field(pattern=r"^([0-9]{1,40}(\.[0-9]{1,9})?|infinite|unlimited)$")]
_Factor = Annotated[str, Field(pattern=r"^([0-9]{1,400}(\.[0-9]{1,2})?|[0-9]\.[0-9]e[0-9]{1,20}|infinite)?$")]
_Households = Annotated[int, Field(ge=1, le=1_000_000_000)]
_Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


class _Schema(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


def _all_written(columns: LongColumns) -> LongColumns:
    """Let no default stand in for a key: a contract writes them all out."""
    if columns.model_fields_set != set(LongColumns.model_fields):
        raise ValueError("a key is missing")
    return columns


class _Input(_Schema):
    dataset: str
    interval_minutes: Literal[15, 30, 60] = 30
    columns: Annotated[LongColumns, AfterValidator(_all_written)] | None = None


class _Population(_Schema):
    name: str
    min_households: _Households


class _Schedule(_Schema):
    mode: str
    first_day: _Date
    last_day: _Date | None = None


class _Terms(_Schema):
    notion: str
    max_day_epsilon: _Number
    epsilon_total: _Number | Literal["unlimited"]
    age_days: AgeDays | None = None


class _Series(_Schema):
    statistic: str
    clamp_kwh: _Number
    share: _Number
    by: str | None = None


class _Named(_Schema):
    hash: str | None = None


class PromiseSchema(_Schema):
    """What is read of a contract's promise."""

    input: _Input
    population: _Population
    schedule: _Schedule
    promise: _Terms
    series: Annotated[dict[str, _Series], Field(min_length=1)]
    model: _Named | None = None


class _Days(_Schema):
    first: _Date | Literal[""]
    last: _Date | Literal[""]
    released: _Count
    skipped: list[_Date]


class _PublishedSchema(_Schema):
    first: _Date | Literal[""]
    last: _Date | Literal[""]


class _Figure(_Schema):
    name: str
    epsilon: _Amount
    kind: str
    about: str
    assumption: str
    factor: _Factor = ""
    limit: _Amount | Literal[""] = ""


class _Version(_Schema):
    registered: str
    changes: list[str]


class _Ending(_Schema):
    spent: _Amount
    left: _Amount
    last_day: str
    because: Literal["promise", "period", "broken", ""]


class _Adds(_Schema):
    day: _Amount
    total: _Amount


class _Second(_Schema):
    in_ledger: _Count
    adds: _Adds
    text: str


class _LocationSchema(_Schema):
    id: str
    head: str


class StatementSchema(_Schema):
    """What is read of a statement's claim."""

    rehearsal: int
    population: str
    days: _Days
    published: _PublishedSchema
    contract: PromiseSchema
    version: Annotated[int, Field(ge=1, le=1_000_000_000)]
    protects: str
    not_protected: list[str]
    figures: list[_Figure]
    model: dict[str, Any]
    warnings: list[str]
    notes: list[str]
    ledger: _LocationSchema
    software: dict[str, str] = {}
    from_whom: str = ""
    versions: list[_Version] = []
    ending: _Ending | None = None
    second_population: _Second | None = None
    title: str = ""
    source: str = ""
    licence: str = ""
    contact: str = ""


class _PublicPart(_Schema):
    envelope: dict[str, Any]


_AnyForm = TypeVar("_AnyForm", bound=_Schema)


def promise_in(text: str) -> PromiseSchema:
    """Return what a contract's promise says.

    Raises:
        ValueError: a text that agedp does not write; the message names the key.
    """
    said = _said(text, "the promise")
    if canonical(said) != text:
        raise ValueError("the promise is not canonical JSON")
    found = _formed(PromiseSchema, _meant(said), "the promise")
    distributions_in(text)
    return found


def _meant(said: object) -> object:
    try:
        return meaning(said) if isinstance(said, dict) else said
    except LedgerError as error:
        raise ValueError(str(error)) from None


def distributions_in(text: str) -> dict[str, Distribution]:
    """Return the distributions that a contract's promise publishes, by name.

    Raises:
        ValueError: one that agedp does not write.
    """
    try:
        series = meaning_of(text)["series"].items()
        found = {name: series_in(each) for name, each in series if each["statistic"] == "distribution"}
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        raise ValueError("the promise is not as agedp writes one: a distribution without its form or bins") from None
    return {name: each for name, each in found.items() if isinstance(each, Distribution)}


def claim_in(text: str) -> StatementSchema:
    """Return what a statement's claim says.

    Raises:
        ValueError: a text that agedp does not write; the message names the key.
    """
    return _formed(StatementSchema, _said(text, "the claim"), "the claim")


def require_envelope(text: str) -> None:
    """Check that a model's public part holds an envelope.

    Raises:
        ValueError: it holds none.
    """
    public = _formed(_PublicPart, _said(text, "the model"), "the model")
    try:
        found = LeakageBound.from_json(public.envelope)
    except (ChainError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        raise ValueError("the model holds no envelope") from None
    if found.steps_per_day > _STEPS_PER_DAY or "total_variation" not in found.methods:
        raise ValueError("the model holds an envelope of more than a step a second, or without total variations")


def _said(text: str, what: str) -> object:
    """Return the JSON that a text holds, which is made of texts, whole numbers and truth values only."""
    try:
        said: object = json.loads(text)
        require_unicode(text, said)
        _require_plain(said, _DEEPEST)
    except (ValueError, RecursionError):
        raise ValueError(f"{what} is not canonical JSON") from None
    return said


def _require_plain(said: object, deepest: int) -> None:
    match said:
        case str() | int() if deepest:
            return
        case list() if deepest:
            for each in said:
                _require_plain(each, deepest - 1)
        case dict() if deepest:
            for each in said.values():
                _require_plain(each, deepest - 1)
        case _:
            raise ValueError("neither text, nor a whole number, nor a list or object of them")


def _formed(form: type[_AnyForm], said: object, what: str) -> _AnyForm:
    try:
        return form.model_validate(said)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"])) or "it"
        raise ValueError(f"{what} is not as agedp writes one: {ascii(key)[1:-1][:80]}: {first['msg'][:80]}") from None
