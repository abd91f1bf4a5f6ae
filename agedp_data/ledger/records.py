"""The four kinds of row, and the one canonical text by which each is hashed.

A row's text contains all its fields but the hash: sorted keys, no spaces, integers and strings (and lists and
objects of them) only. The hash is SHA-256 of the previous row's hash followed by that text, over all tables
in the order of `seq`. A scale is written as the shortest text that reads back as the same float.

Throughout the package `text` is the text that is hashed; the text of a contract is in its column
`promise`, that of a statement in its column `claim`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache, lru_cache
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Final

from agedp_data import clock, epsilon
from agedp_data.config.contract import Contract, parse_contract
from agedp_data.config.contract_document import ContractDocument, DocumentPart, read_document
from agedp_data.errors import ChainError, LedgerError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.series.series import BY_NAME
from agedp_data.statement.document import Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


NO_HASH = "0" * 64

_PLAIN_TYPES = frozenset({str, int, bool})
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)

VERSION = "1"
"""Schema version of a new ledger's tables and columns."""
READABLE_VERSIONS: Mapping[str, str] = {"1": "0.1"}
"""Schema versions that this agedp reads and writes, each with the first version of agedp that does."""

Plain = str | int | list["Plain"] | dict[str, "Plain"]


@dataclass(frozen=True, slots=True)
class ContractRecord:
    """A registered contract of a population: `promise` is the canonical JSON of its run file's contract part.

    A later contract of the same population is an amendment.
    """

    population: str
    promise: str
    seq: int = 0
    at: str = ""
    hash: str = ""

    @property
    def terms(self) -> Contract:
        """The contract that the text means, parsed once."""
        return parse_contract(self.promise)


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """The public part of a model: `envelope` is its canonical JSON, `model` the SHA-256 of that text."""

    model: str
    envelope: str
    seq: int = 0
    at: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """One draw for one series and one day: `values[i]` is the noisy value of `cells[i]`.

    `day` and `published_on` are ISO dates, `input_ended_at` a UTC instant; `sensitivity` and `scale` have the unit of
    the values; `loss` is in nano-epsilon, at least sensitivity/scale; `contract` is the hash of the contract in force,
    `model` a model's id or "". A skipped day has no values and no loss.
    """

    population: str
    series: str
    day: str
    revision: int
    state: str
    cells: tuple[str, ...]
    values: tuple[int, ...]
    households: tuple[int, ...]
    sensitivity: int
    scale: float
    mechanism: str
    loss: int
    input_ended_at: str
    published_on: str
    contract: str
    model: str
    seq: int = 0
    at: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True)
class StatementRecord:
    """The privacy statement after a run, or a lifecycle record of the ledger (`lifecycle`).

    `claim` is its text in canonical JSON, `files` are (name, SHA-256) of the files that were published with it.
    """

    population: str
    claim: str
    files: tuple[tuple[str, str], ...]
    software: str
    seq: int = 0
    at: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a ledger's row; with `seq` 0, of the ledger itself."""

    seq: int
    table: str
    problem: str


Row = ContractRecord | ModelRecord | ReleaseRecord | StatementRecord
TABLES: dict[str, type[Row]] = {
    "contract": ContractRecord,
    "model": ModelRecord,
    "release": ReleaseRecord,
    "statement": StatementRecord,
}
_TABLE_NAMES = {kind: name for name, kind in TABLES.items()}


def canonical(value: object) -> str:
    """Return the one JSON text of a value made of strings, integers, booleans, lists and objects.

    >>> canonical({"b": [1, 2], "a": "x"})
    '{"a":"x","b":[1,2]}'

    Raises:
        TypeError: anything else, above all floats: they have more than one text.
    """
    if type(value) is int:
        return repr(value)
    if type(value) is str:
        return encode_basestring_ascii(value)
    _require_plain(value)
    return _ENCODER.encode(value)


def _require_plain(value: object) -> None:
    match value:
        case str() | int():
            return
        case list() | tuple():
            if not set(map(type, value)) <= _PLAIN_TYPES:  # thousands of cells are checked with one comparison
                for item in value:
                    _require_plain(item)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise TypeError(f"canonical text has string keys, not {type(key).__name__}")
                _require_plain(item)
        case _:
            raise TypeError(f"canonical text holds strings and integers, not {type(value).__name__}")


def sha256(text: str) -> str:
    """Return the hexadecimal SHA-256 of a text in UTF-8.

    >>> sha256("")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def table_of(row: Row) -> str:
    """Return the name of the table of a row.

    >>> table_of(ModelRecord("id", "{}"))
    'model'
    """
    return _TABLE_NAMES[type(row)]


def text_of(row: Row) -> str:
    """Return the canonical text of a row: all its fields but the hash.

    >>> text_of(ModelRecord("id", "{}", seq=1, at="2013-01-02"))
    '{"at":"2013-01-02","envelope":"{}","model":"id","seq":1}'
    """
    return str(columns_of(row)["text"])


def columns_of(row: Row) -> dict[str, str | int]:
    """Return a row as the columns of its table: lists and objects as canonical text, plus `text` and `hash`.

    `row_from_columns` is the inverse.

    Raises:
        TypeError: a field contains a value that has no canonical text.
    """
    table, columns = table_of(row), dict[str, str | int]()
    for name, kind in _field_types(table):
        plain = _to_plain(kind, getattr(row, name))
        columns[name] = plain if isinstance(plain, (str, int)) else canonical(plain)
    return {**columns, "text": text_from_columns(table, columns), "hash": row.hash}


def text_from_columns(table: str, columns: Mapping[str, Any]) -> str:
    """Return the canonical text of stored columns without parsing their lists and objects.

    It is `text_of` the row in them, if they are written canonically; otherwise it is no text of a row.

    >>> text_from_columns("model", {"seq": 1, "at": "2013-01-02", "model": "id", "envelope": "{}"})
    '{"at":"2013-01-02","envelope":"{}","model":"id","seq":1}'

    Raises:
        TypeError: a column is neither text nor a whole number.
    """
    pairs = [
        f'"{name}":{columns[name] if kind.startswith("tuple") else canonical(columns[name])}'
        for name, kind in _field_types(table)
    ]
    return f"{{{','.join(pairs)}}}"


def row_from_columns(table: str, columns: Mapping[str, Any]) -> Row:
    """Return the row with these columns of a table.

    Raises:
        ValueError: a column has a wrong type or content; the message names the column.
    """
    read = {name: _parse_column(name, kind, columns[name]) for name, kind in _field_types(table)}
    return TABLES[table](**read, hash=str(columns["hash"]))


def row_from_text(table: str, text: str, digest: str) -> Row:
    """Return the row with this canonical text, with `digest` as its hash.

    Raises:
        ValueError: the text is no row of this table; the message contains no value.
    """
    try:
        fields = json.loads(text)
        columns = {key: value if isinstance(value, str | int) else canonical(value) for key, value in fields.items()}
        row = row_from_columns(table, {**columns, "hash": digest})
    except (LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError("it holds no row of a ledger") from None
    if text_of(row) != text:
        raise ValueError("its text is not written canonically")
    return row


@cache
def _field_types(table: str) -> tuple[tuple[str, str], ...]:
    """Return (field, annotation) of all fields but the hash, in the order of their names."""
    return tuple(sorted((field.name, str(field.type)) for field in fields(TABLES[table]) if field.name != "hash"))


def _to_plain(kind: str, value: Any) -> Plain:  # noqa: ANN401 - a field of any row
    """Return a field as a value that JSON represents exactly."""
    if kind == "float":
        return repr(float(value))
    if kind == "tuple[tuple[str, str], ...]":
        return dict(value)
    return value if kind in ("str", "int") else list(value)


def _parse_column(name: str, kind: str, column: Any) -> Any:  # noqa: ANN401 - any column of any file
    """Return a column as the field of a row; raise ValueError with the column's name."""
    if kind == "int":
        if type(column) is int:
            return column
    elif type(column) is str:
        if kind == "str":
            return column
        value = _parse_float(column) if kind == "float" else _parse_json(column)
        if kind == "float" and value is not None:
            return value
        item = str if kind == "tuple[str, ...]" else int
        if kind == "tuple[tuple[str, str], ...]":
            if isinstance(value, dict) and all(type(entry) is str for entry in value.values()):
                return tuple(sorted(value.items()))
        elif isinstance(value, list) and all(type(entry) is item for entry in value):
            return tuple(value)
    raise ValueError(f"{name} does not hold what it should")


def _parse_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parse_json(text: str) -> object:
    try:
        value: object = json.loads(text)
        require_unicode(text, value)
    except (ValueError, RecursionError):
        return None
    return value


def require_unicode(text: str, value: object) -> None:
    """Check that a JSON text contains whole characters only.

    Args:
        text: the JSON text.
        value: its parsed value.

    Raises:
        ValueError: the text escapes half a character (a lone surrogate), which has no UTF-8 and so no hash.
    """
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()


# --------------------------------------------------------------------------------------------------
# Schemas of the JSON inside a row: a contract's promise, a privacy statement and the public part of a model.
#
# The hash chain detects a single edited row; somebody who recomputes the complete chain can write anything into these
# three texts. They are validated once, when a row is read or written, so that later code can rely on every key it
# reads. `ContractDocument` and `Statement` describe the first two.
# --------------------------------------------------------------------------------------------------

_MAX_DEPTH: Final = 32
_STEPS_PER_DAY: Final = 86_400


class _PublicPart(DocumentPart):
    envelope: dict[str, Any]


def parse_promise(text: str) -> ContractDocument:
    """Return a contract's promise, validated.

    Raises:
        ValueError: the text differs in form from what agedp writes; the message names the key.
    """
    value = _parse_canonical(text, "the promise")
    if canonical(value) != text:
        raise ValueError("the promise is not canonical JSON")
    try:
        keys = parse_contract(text).keys if isinstance(value, dict) else value
    except LedgerError as error:
        raise ValueError(str(error)) from None
    promise = read_document(ContractDocument, keys, "the promise")
    for series in promise.series.values():
        _, needed = BY_NAME[series.statistic].cell_words
        if needed:
            try:
                series.parse()
            except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
                problem = f"a {series.statistic} without its {needed}"
                raise ValueError(f"the promise is not as agedp writes one: {problem}") from None
    return promise


def parse_statement(text: str) -> Statement:
    """Return a privacy statement, validated.

    Raises:
        ValueError: the text differs in form from what agedp writes; the message names the key.
    """
    return read_document(Statement, _parse_canonical(text, "the statement"), "the statement")


def require_leakage_bound(text: str) -> None:
    """Check that a model's public part contains a valid leakage bound, under the key `envelope`.

    Raises:
        ValueError: the leakage bound is missing or invalid, has more than one step per second, or no total variations.
    """
    public = read_document(_PublicPart, _parse_canonical(text, "the model"), "the model")
    try:
        bound = LeakageBound.from_json(public.envelope)
    except (ChainError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        raise ValueError("the model contains no leakage bound") from None
    if bound.steps_per_day > _STEPS_PER_DAY or "total_variation" not in bound.methods:
        raise ValueError("the model contains a bound of more than one step per second, or without total variations")


def is_canonical(text: str) -> bool:
    """Return whether a text is the canonical JSON of an object.

    >>> is_canonical('{"a":1}'), is_canonical('{"a": 1}'), is_canonical("[1]")
    (True, False, False)
    """
    try:
        value = _parse_canonical(text, "the query")
    except ValueError:
        return False
    return isinstance(value, dict) and canonical(value) == text


def _parse_canonical(text: str, subject: str) -> object:
    """Return the JSON value of a text; it may contain only strings, integers, booleans, lists and objects."""
    try:
        value: object = json.loads(text)
        require_unicode(text, value)
        _require_shallow(value, _MAX_DEPTH)
    except (ValueError, RecursionError):
        raise ValueError(f"{subject} is not canonical JSON") from None
    return value


def _require_shallow(value: object, depth: int) -> None:
    match value:
        case str() | int() if depth:
            return
        case list() if depth:
            for item in value:
                _require_shallow(item, depth - 1)
        case dict() if depth:
            for item in value.values():
                _require_shallow(item, depth - 1)
        case _:
            raise ValueError("neither text, nor a whole number, nor a list or object of them")


# --------------------------------------------------------------------------------------------------
# Headers of releases: what promises, plans and statements need of a row, without its vector.
#
# A row of 20 groups x 100 bins has 2,000 cells, values and numbers of households; its header has none of them, so that
# years of history are small. The complete row is read from the database where values are needed (`LedgerReader.rows`).
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReleaseHeader:
    """All fields of a release but cells, values and households; see `ReleaseRecord` for their meaning."""

    population: str
    series: str
    day: str
    revision: int
    state: str
    sensitivity: int
    scale: float
    mechanism: str
    loss: int
    input_ended_at: str
    published_on: str
    contract: str
    model: str
    seq: int = 0
    at: str = ""
    hash: str = ""


AnyRelease = ReleaseHeader | ReleaseRecord
"""A release with or without its vector, for functions that do not read the vector."""
HEADER_FIELDS = tuple(field.name for field in fields(ReleaseHeader))


def outline_of(row: AnyRelease) -> ReleaseRecord:
    """Return a release without its vector as a record, for functions of complete records that do not read the vector.

    Nothing is computed from the empty vector: the complete row takes its place first (`LedgerReader.rows_of`).
    """
    fields_of_row = {name: getattr(row, name) for name in HEADER_FIELDS}
    return ReleaseRecord(**fields_of_row, cells=(), values=(), households=())


def header_of(row: ReleaseRecord) -> ReleaseHeader:
    """Return the header of a release."""
    return ReleaseHeader(*(getattr(row, name) for name in HEADER_FIELDS))


# --------------------------------------------------------------------------------------------------
# Rules of a release that follow from its own fields: dates, cells, values, numbers of households, scale and loss.
# --------------------------------------------------------------------------------------------------

STATES = ("released", "skipped")
INT32, INT64 = range(2**31), range(-(2**63), 2**63)
HOUSEHOLDS = range(1, 10**9 + 1)
HOUSEHOLD_DAYS = range(1, 366 * 10**9 + 1)
MAX_SENSITIVITY, MAX_SCALE = 2**62, 2.0**55  # as `mechanisms` draws


def check_dates(row: ReleaseRecord) -> Iterator[str]:
    """Yield the faults of a release's dates."""
    for name in ("day", "published_on"):
        if not clock.is_date(getattr(row, name)):
            yield f"{name} is not an ISO date"
    if not _is_utc(row.input_ended_at):
        yield "input_ended_at is not a UTC instant"


def check_draw(row: ReleaseRecord, *, counts: range) -> Iterator[str]:
    """Yield the faults of state, cells and loss; a skipped day has no values and no loss.

    `counts` are the possible numbers of households, or of household-days in a row that covers a week, month or year.
    """
    if row.state not in STATES:
        yield f"state is neither {' nor '.join(STATES)}"
    if len(set(row.cells)) < len(row.cells):
        yield "a cell is named twice"
    if not all(value in INT64 for value in row.values):
        yield "a value is beyond 64 bits"
    if row.revision not in INT32:
        yield "the revision is negative, or beyond 32 bits"
    if not all(count in counts for count in row.households):
        yield f"a number of {'households' if counts == HOUSEHOLDS else 'household-days'} is not from 1 to {counts[-1]}"
    if row.sensitivity not in range(1, MAX_SENSITIVITY + 1):
        yield "sensitivity is not positive, or beyond 2^62"
        return
    if row.state == "skipped":
        if row.cells or row.values or row.households or row.loss:
            yield "a skipped day with cells, values or a loss"
        return
    if not row.cells or not len(row.cells) == len(row.values) == len(row.households):
        yield f"{len(row.cells)} cells, {len(row.values)} values, {len(row.households)} numbers of households"
    if not 0 < row.scale <= MAX_SCALE:
        yield "scale is not positive, or beyond 2^55"
    elif not _least_loss(row.sensitivity, row.scale) <= row.loss < INT64.stop:
        bound = f"sensitivity {row.sensitivity} / scale {row.scale!r}"
        yield f"loss {epsilon.format_epsilon(row.loss)} is below {bound}, or beyond 64 bits"


@lru_cache(maxsize=2**10)
def _least_loss(sensitivity: int, scale: float) -> int:
    """Return the loss of a draw with this noise, rounded up [nano-epsilon]."""
    return epsilon.ceil_nano(Fraction(sensitivity) / Fraction(scale))


@lru_cache(maxsize=2**10)
def _is_utc(text: str) -> bool:
    """Return whether a text is an instant as `clock.format_instant` writes it."""
    try:
        instant = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    return clock.format_instant(instant) == text and clock.is_date(instant.date().isoformat())


def is_row_number(seq: object) -> bool:
    """Return whether a value is a valid row number: an integer from 1 on.

    >>> is_row_number(1), is_row_number(0), is_row_number("1")
    (True, False, False)
    """
    return type(seq) is int and seq >= 1
