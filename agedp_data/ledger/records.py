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
from typing import TYPE_CHECKING, Any

from agedp_data.config.contract import Contract, parse_contract

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_HASH = "0" * 64

_PLAIN_TYPES = frozenset({str, int, bool})

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
    _require_plain(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


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
    return canonical({name: _to_plain(kind, getattr(row, name)) for name, kind in _field_types(type(row))})


def columns_of(row: Row) -> dict[str, str | int]:
    """Return a row as the columns of its table: lists and objects as canonical text, plus `text` and `hash`.

    `row_from_columns` is the inverse.

    Raises:
        TypeError: a field contains a value that has no canonical text.
    """
    columns: dict[str, str | int] = {"text": text_of(row), "hash": row.hash}
    for name, kind in _field_types(type(row)):
        plain = _to_plain(kind, getattr(row, name))
        columns[name] = plain if isinstance(plain, (str, int)) else canonical(plain)
    return columns


def text_from_columns(table: str, columns: Mapping[str, Any]) -> str:
    """Return the canonical text of stored columns without parsing their lists and objects.

    It is `text_of` the row in them, if they are written canonically; otherwise it is no text of a row.

    >>> text_from_columns("model", {"seq": 1, "at": "2013-01-02", "model": "id", "envelope": "{}"})
    '{"at":"2013-01-02","envelope":"{}","model":"id","seq":1}'

    Raises:
        TypeError: a column is neither text nor a whole number.
    """
    kinds = sorted(_field_types(TABLES[table]))
    texts = (columns[name] if kind.startswith("tuple") else canonical(columns[name]) for name, kind in kinds)
    pairs = (f'"{name}":{text}' for (name, _), text in zip(kinds, texts, strict=True))
    return f"{{{','.join(pairs)}}}"


def row_from_columns(table: str, columns: Mapping[str, Any]) -> Row:
    """Return the row with these columns of a table.

    Raises:
        ValueError: a column has a wrong type or content; the message names the column.
    """
    read = {name: _parse_column(name, kind, columns[name]) for name, kind in _field_types(TABLES[table])}
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


def _field_types(row: type[Row]) -> list[tuple[str, str]]:
    """Return (field, annotation) of all fields but the hash."""
    return [(field.name, str(field.type)) for field in fields(row) if field.name != "hash"]


def _to_plain(kind: str, value: Any) -> Plain:  # noqa: ANN401 - a field of any row
    """Return a field as a value that JSON represents exactly."""
    if kind == "float":
        return repr(float(value))
    if kind == "tuple[tuple[str, str], ...]":
        return dict(value)
    return list(value) if kind.startswith("tuple") else value


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
