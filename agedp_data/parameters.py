"""Validated types of run-file values (exact amounts, whole watt-hours, zones), and the errors about other values.

Every kind of value has one validator with one message, so that a wrong line gives one clear sentence. Numbers keep
their decimal digits: `Decimal`, never a float.

An epsilon of a promise counts with nine decimals, rounded down: each is a budget, a cap or a loss to come. Further
digits, which float arithmetic gives, are cut (`rounding_lines` names them), and contracts are compared without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from difflib import get_close_matches
from itertools import pairwise
from typing import Annotated, ClassVar, Final, Literal, TypeVar, cast, get_args
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, Strict, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from agedp_data.epsilon import exact_text
from agedp_data.messages import format_value, suggest_name

Unlimited = Literal["unlimited"]
Method = Literal["tight", "total_variation", "spectral", "reversibilised"]
"""How a leakage function is bounded: exactly, or by a total variation; `ModelSection.methods` are those of a model."""
Acceptance = Literal["useless", "no-credit", "total"]
"""A cause for which a first release is refused unless [promise] accept names it."""
FindingName = Literal[
    "rejected", "negative", "thousands", "text", "bound", "time", "clock", "interval", "slot", "channels", "conflicts",
    "registers", "total", "rounded", "marker", "numbers",
]  # fmt: skip
"""What the preflight can find; it refuses a first release unless [input] accept names it."""

# An amount beyond these is a typing error, and exact arithmetic on 1e-999999999 would never end.
LARGEST: Final = Decimal(1_000_000)
DECIMALS: Final = 15
LONGEST_TEXT: Final = 1000
SMALLEST_EPSILON: Final = Decimal("0.000000001")
EPSILON_DECIMALS: Final = 9
DELTA_DECIMALS: Final = 20
_DELTA_TEXT: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?([eE]-?[0-9]{1,2})?", re.ASCII)


class Marker:
    """A note on a key, found among the metadata of its field."""


FREE: Final = Marker()
"""May change at any time: no part of the contract."""
LATER: Final = Marker()
"""Added after series had begun: a contract omits the key while it has its default, so that earlier contracts compare
as equal."""


_EPSILON: Final = Marker()
"""An epsilon, which counts with nine decimals."""


class Absent(Marker):
    """The meaning of a missing LATER key in an earlier contract, for a key that later contracts always write."""

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning


class Section(BaseModel):
    """A table of the run file: frozen, strict about types, closed to unknown keys.

    Text below a key is its description in the JSON schema (`config.contract_document`). Pydantic would collect it from
    the source of each class at import, and build the validator of each table by itself: half a second of every command.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    written_as: ClassVar[Mapping[str, str]] = {}
    """Keys by their symbols in papers, for the message about such a symbol."""


def wrong(what: str, *at: str, hide: bool = False, more: int = 0) -> PydanticCustomError:
    """Return the error of a validator, which `config.loading` turns into one line.

    Args:
        what: the problem and its remedy, following the key and its value, such as "must be above 0".
        at: keys below the table that is validated, for a problem of one of its keys.
        hide: whether the message omits the value, because it may contain a password.
        more: number of further errors that this one represents.
    """
    return PydanticCustomError("agedp", "{what}", {"what": what, "at": at, "hide": hide, "more": more})


def refuse_first(*problems: tuple[bool, str, *tuple[str, ...]]) -> None:
    """Raise the error of the first problem that there is: whether it is one, what is wrong, and at which keys."""
    for is_problem, what, *at in problems:
        if is_problem:
            raise wrong(what, *at)


def exact(value: object) -> Decimal:
    """Return a number of the run file without rounding.

    >>> exact(2), exact(Decimal("0.5"))
    (Decimal('2'), Decimal('0.5'))

    Raises:
        PydanticCustomError: not a finite number, above `LARGEST`, or with more than `DECIMALS` decimals.
    """
    amount = _finite(value)
    if _decimals(amount) > DECIMALS:
        raise wrong(f"has more than {DECIMALS} decimals; write fewer")
    return amount


_LONGEST: Final = 1000
"""Decimals from which on a number keeps the form in which it was written; each is refused or cut afterwards."""


def _finite(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise wrong("must be a number, without quotes")
    amount = Decimal(value)
    if not amount.is_finite():
        raise wrong("must be a finite number")
    if amount.copy_abs() > LARGEST:
        raise wrong(f"is too large; at most {LARGEST}")
    if _decimals(amount) > _LONGEST:  # its text would not fit the memory
        return amount
    return Decimal(exact_text(amount))  # as a contract has it: a bound is named alike from the run file and from rows


def _decimals(amount: Decimal) -> int:
    return -int(amount.as_tuple().exponent)


def positive(value: object) -> Decimal:
    """Return a number above 0.

    >>> positive(2)
    Decimal('2')

    Raises:
        PydanticCustomError: any other value, as `exact`.
    """
    amount = exact(value)
    if amount <= 0:
        raise wrong("must be above 0")
    return amount


def fraction(value: object) -> Decimal:
    """Return a number strictly between 0 and 1.

    >>> fraction(Decimal("0.95"))
    Decimal('0.95')

    Raises:
        PydanticCustomError: any other value, as `exact`.
    """
    amount = exact(value)
    if not 0 < amount < 1:
        raise wrong("must lie between 0 and 1, both excluded")
    return amount


def _delta(value: object) -> Decimal:
    """Return a probability strictly between 0 and 1, from a number or its text, "1e-6"."""
    amount = Decimal(value) if isinstance(value, str) and _DELTA_TEXT.fullmatch(value) else value
    if isinstance(amount, bool) or not isinstance(amount, int | Decimal):
        raise wrong('must be a probability, such as "1e-6"')
    probability = Decimal(amount)
    if not probability.is_finite():
        raise wrong("must be a finite number")
    if not 0 < probability < 1:
        raise wrong("must lie between 0 and 1, both excluded; without delta the bounds hold without exception")
    if _decimals(probability.normalize()) > DELTA_DECIMALS:
        raise wrong(f"has more than {DELTA_DECIMALS} decimals; write fewer")
    return probability.normalize()


def share(value: object) -> Decimal:
    """Return a part of a whole, above 0 and at most 1.

    >>> share(Decimal("0.5"))
    Decimal('0.5')

    Raises:
        PydanticCustomError: any other value, as `exact`.
    """
    amount = exact(value)
    if not 0 < amount <= 1:
        raise wrong("must be above 0 and at most 1")
    return amount


def _epsilon(value: object, most_decimals: int = EPSILON_DECIMALS) -> Decimal:
    """Return an epsilon, of which nine decimals count if it has more than `most_decimals`."""
    amount = _finite(value)
    refuse_first(
        (amount <= 0, "must be above 0"),
        (
            amount < SMALLEST_EPSILON,
            "is below 0.000000001, the smallest amount that the ledger keeps; write a larger one",
        ),
    )
    if _decimals(amount) <= most_decimals:
        return amount
    return Decimal(exact_text(amount.quantize(SMALLEST_EPSILON, ROUND_FLOOR)))


def _draw_epsilon(value: object) -> Decimal:
    """Return the epsilon of a calibration draw; models contain as many decimals of it as a number may have."""
    return _epsilon(value, DECIMALS)


def is_epsilon(field: FieldInfo) -> bool:
    """Return whether a key is an epsilon that counts with nine decimals, or an optional one."""
    choices = (getattr(choice, "__metadata__", ()) for choice in get_args(field.annotation))
    return any(_EPSILON in marks for marks in (field.metadata, *choices))


def rounding_lines(section: Section, written: Mapping[str, object], place: str) -> Iterator[str]:
    """Yield a warning for each number of a table that counts for less than its digits; public.

    Args:
        section: the validated table.
        written: the table as it was given.
        place: file and table, for the message.
    """
    for key in type(section).model_fields:
        value, counted = written.get(key), getattr(section, key)
        if isinstance(value, Decimal) and isinstance(counted, Decimal) and value != counted:
            yield (
                f"{place} {key} = {format_value(value)}: counts as {exact_text(counted)}, because an epsilon has nine "
                f"decimals and is rounded down. Write {exact_text(counted)}."
            )


def _total(value: object) -> Decimal | Unlimited:
    if value == "unlimited":
        return "unlimited"
    if isinstance(value, str):
        raise wrong('must be a number, or "unlimited"')
    return _epsilon(value)


def kwh(value: object) -> Decimal:
    """Return an energy in kWh that is a whole number of watt-hours, 0 or more.

    >>> kwh(Decimal("0.125"))
    Decimal('0.125')
    """
    amount = exact(value)
    refuse_first(
        (amount < 0, "must not be negative"),
        (amount * 1000 % 1 != 0, "must be a whole number of watt-hours; write at most three decimals"),
    )
    return amount


def positive_kwh(value: object) -> Decimal:
    """Return an energy in kWh that is a whole number of watt-hours, above 0.

    >>> positive_kwh(Decimal("0.125"))
    Decimal('0.125')

    Raises:
        PydanticCustomError: any other value, as `kwh`.
    """
    amount = kwh(value)
    if amount == 0:
        raise wrong("must be above 0")
    return amount


def watt_hours(energy: Decimal) -> int:
    """Return an energy in kWh in whole watt-hours.

    >>> watt_hours(Decimal("0.125"))
    125
    """
    return int(energy * 1000)


def ascending(values: object, read: Callable[[object], Decimal]) -> tuple[Decimal, ...]:
    """Return a list of numbers that increase strictly.

    >>> ascending([1, Decimal("2.5")], positive)
    (Decimal('1'), Decimal('2.5'))

    Args:
        values: the list in the run file, with at least one number.
        read: validator of one number, such as `positive`.

    Raises:
        PydanticCustomError: any other value, or a number that `read` refuses.
    """
    if not isinstance(values, list | tuple) or not values:
        raise wrong("must be a list of numbers, such as [1, 2, 5]")
    numbers = tuple(read(value) for value in values)
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        raise wrong("must increase from each number to the next")
    return numbers


def text(value: object) -> str:
    """Return a text that is one printable line, not blank, of at most `LONGEST_TEXT` characters.

    >>> text("London, 2013")
    'London, 2013'

    Raises:
        PydanticCustomError: any other value.
    """
    if not isinstance(value, str):
        raise wrong("must be text in quotes")
    refuse_first(
        (not value.strip(), "must not be empty"),
        (not value.isprintable(), "must be one line without control characters"),
        (len(value) > LONGEST_TEXT, f"is too long; at most {LONGEST_TEXT} characters"),
    )
    return value


def _zone(value: object) -> str:
    name = text(value)
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        named = (zone for zone in available_timezones() if not any(char.isdigit() for char in zone))
        zones = {zone.casefold(): zone for zone in named}  # the sign of "Etc/GMT-1" is not what people take it for
        nearest = [zones[zone] for zone in get_close_matches(name[:64].casefold(), zones, n=1)]
        advice = f'did you mean "{nearest[0]}"?' if nearest else 'write one such as "UTC" or "Europe/London"'
        raise wrong(f"is not a known time zone; {advice}") from None
    return name


def acceptances(value: object) -> tuple[Acceptance, ...]:
    """Return the causes that a promise accepts in writing, each once.

    >>> acceptances(["no-credit", "useless", "no-credit"])
    ('no-credit', 'useless')

    Raises:
        PydanticCustomError: not a list of such words.
    """
    return cast("tuple[Acceptance, ...]", known_words(value, get_args(Acceptance)))


def accepted_findings(value: object) -> tuple[FindingName, ...]:
    """Return the findings about the input that a run file accepts in writing, each once and in order.

    >>> accepted_findings(["negative", "conflicts", "negative"])
    ('conflicts', 'negative')

    Raises:
        PydanticCustomError: not a list of such words.
    """
    words = known_words(value, get_args(FindingName)) if value != () else ()
    return cast("tuple[FindingName, ...]", tuple(sorted(words)))


def known_words(value: object, known: Sequence[str]) -> tuple[str, ...]:
    """Return a list of words, each once.

    >>> known_words(["unit", "negative", "unit"], ["negative", "unit"])
    ('unit', 'negative')

    Raises:
        PydanticCustomError: not a list, an empty one, or with a word that is not known.
    """
    listed_words = [word for word in _listed(value) if isinstance(word, str)]
    if len(listed_words) < len(_listed(value)):
        raise wrong("must be a list of words in quotes")
    for word in (words := tuple(dict.fromkeys(listed_words))):
        if word not in known:
            nearest, listed = suggest_name(word, known), " | ".join(f'"{name}"' for name in known)
            advice = f"{nearest} Known are {listed}" if nearest else f"; known are {listed}"
            raise wrong(f"{str(word)[:64]!r} is not known{advice}")
    return words


def horizon(value: object) -> int | Unlimited:
    """Return a number of releases after which the series closes, or "unlimited".

    >>> horizon(365), horizon("unlimited")
    (365, 'unlimited')

    Raises:
        PydanticCustomError: neither a whole number from 1 to `MANY_DAYS` nor "unlimited".
    """
    if value == "unlimited":
        return "unlimited"
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MANY_DAYS:
        raise wrong(f'must be a whole number of days from 1 to {MANY_DAYS}, or "unlimited"')
    return value


MANY_DAYS: Final = 100_000
_T = TypeVar("_T")


def _listed(value: object) -> tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise wrong("must be a list, in square brackets")
    if not value:
        raise wrong("must not be empty")
    return tuple(value)


# A plain validator hides its type from the JSON schema that editors read, so each names it.
TEXT: Final = WithJsonSchema({"type": "string"})
NUMBERS: Final = WithJsonSchema({"type": "array", "items": {"type": "number"}})
_NUMBER: Final = WithJsonSchema({"type": "number", "minimum": 0})
_POSITIVE: Final = WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
_PROBABILITY: Final = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number", "exclusiveMinimum": 0}]})
_OR_UNLIMITED: Final = WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": "unlimited"}]})


def words_schema(words: Iterable[str]) -> WithJsonSchema:
    """Return the JSON schema of a list of at least one of these words."""
    return WithJsonSchema({"type": "array", "items": {"enum": list(words)}, "minItems": 1})


Amount = Annotated[Decimal, PlainValidator(positive), _POSITIVE]
Fraction01 = Annotated[Decimal, PlainValidator(fraction), _POSITIVE]
Epsilon = Annotated[Decimal, PlainValidator(_epsilon), _POSITIVE, _EPSILON]
DrawEpsilon = Annotated[Decimal, PlainValidator(_draw_epsilon), _POSITIVE]
Total = Annotated[Decimal | Unlimited, PlainValidator(_total), _OR_UNLIMITED, _EPSILON]
Delta = Annotated[Decimal, PlainValidator(_delta), _PROBABILITY]
Kwh = Annotated[Decimal, PlainValidator(kwh), _NUMBER]
PositiveKwh = Annotated[Decimal, PlainValidator(positive_kwh), _POSITIVE]
Text = Annotated[str, PlainValidator(text), TEXT]
Zone = Annotated[str, PlainValidator(_zone), TEXT]
Acceptances = Annotated[tuple[Acceptance, ...], PlainValidator(acceptances), words_schema(get_args(Acceptance))]
AcceptedFindings = Annotated[
    tuple[FindingName, ...], PlainValidator(accepted_findings), words_schema(get_args(FindingName))
]
Horizon = Annotated[int | Unlimited, PlainValidator(horizon), _OR_UNLIMITED]
Days = Annotated[int, Field(ge=1, le=MANY_DAYS)]
AgeDays = Annotated[int, Field(ge=0, le=MANY_DAYS)]
ListOf = Annotated[tuple[_T, ...], Strict(False), BeforeValidator(_listed)]
