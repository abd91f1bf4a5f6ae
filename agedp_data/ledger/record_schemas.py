"""Schemas of the JSON inside a row: a contract's promise, a privacy statement and the public part of a model.

The hash chain detects a single edited row; somebody who recomputes the complete chain can write anything into these
three texts. They are validated once, when a row is read or written, so that later code can rely on every key it
reads. `ContractDocument` and `Statement` describe the first two.
"""

from __future__ import annotations

import json
from typing import Any, Final

from agedp_data.config.contract import meaning
from agedp_data.config.contract_document import ContractDocument, DocumentPart, read_document
from agedp_data.errors import ChainError, LedgerError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger.records import canonical, require_unicode
from agedp_data.series.series import BY_NAME
from agedp_data.statement.document import Statement

_MAX_DEPTH: Final = 32
_STEPS_PER_DAY: Final = 86_400


class _PublicPart(DocumentPart):
    envelope: dict[str, Any]


def parse_promise(text: str) -> ContractDocument:
    """Return a contract's promise, validated.

    Raises:
        ValueError: the text differs in form from what agedp writes; the message names the key.
    """
    value = _parse_json(text, "the promise")
    if canonical(value) != text:
        raise ValueError("the promise is not canonical JSON")
    try:
        keys = meaning(value) if isinstance(value, dict) else value
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
    return read_document(Statement, _parse_json(text, "the statement"), "the statement")


def require_leakage_bound(text: str) -> None:
    """Check that a model's public part contains a valid leakage bound, under the key `envelope`.

    Raises:
        ValueError: the leakage bound is missing or invalid, has more than one step per second, or no total variations.
    """
    public = read_document(_PublicPart, _parse_json(text, "the model"), "the model")
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
        value = _parse_json(text, "the query")
    except ValueError:
        return False
    return isinstance(value, dict) and canonical(value) == text


def _parse_json(text: str, subject: str) -> object:
    """Return the JSON value of a text; it may contain only strings, integers, booleans, lists and objects."""
    try:
        value: object = json.loads(text)
        require_unicode(text, value)
        _require_plain(value, _MAX_DEPTH)
    except (ValueError, RecursionError):
        raise ValueError(f"{subject} is not canonical JSON") from None
    return value


def _require_plain(value: object, depth: int) -> None:
    match value:
        case str() | int() if depth:
            return
        case list() if depth:
            for item in value:
                _require_plain(item, depth - 1)
        case dict() if depth:
            for item in value.values():
                _require_plain(item, depth - 1)
        case _:
            raise ValueError("neither text, nor a whole number, nor a list or object of them")
