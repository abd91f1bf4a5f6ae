"""Names and values of a run file inside a message: as the file writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from agedp_data.shown import escape_text

_LONGEST, _LONGEST_NAME = 80, 64


def short(name: str) -> str:
    """Return the name of a table or key, cut short if it is long."""
    return escape_text(name, _LONGEST_NAME)


def written(value: object) -> str:
    """Return a value as the run file writes it, cut short if it is long.

    >>> written(["a", 5, True])
    '["a", 5, true]'
    >>> written(Decimal("1E-9"))
    '0.000000001'
    """
    return escape_text(_toml(value), _LONGEST)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, Mapping):
        return "{...}"
    if isinstance(value, Decimal):
        return "nan" if value.is_nan() else _number(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def _number(value: Decimal) -> str:
    """Return a number without an exponent, unless nobody could read it."""
    if value.is_finite() and abs(value.adjusted()) > _LONGEST:
        return str(value)
    return f"{value:f}".lower().replace("infinity", "inf")
