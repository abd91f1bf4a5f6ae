"""Names and values of a run file inside a message, in the syntax of the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from agedp_data.shown import escape_text

_MAX_VALUE_LENGTH, _MAX_NAME_LENGTH = 80, 64


def short_name(name: str) -> str:
    """Return the name of a table or key, shortened to 64 characters."""
    return escape_text(name, _MAX_NAME_LENGTH)


def format_value(value: object) -> str:
    """Return a value in the syntax of a run file, shortened to 80 characters.

    >>> format_value(["a", 5, True])
    '["a", 5, true]'
    >>> format_value(Decimal("1E-9"))
    '0.000000001'
    """
    return escape_text(_format_toml(value), _MAX_VALUE_LENGTH)


def _format_toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_format_toml(item) for item in value)}]"
    if isinstance(value, Mapping):
        return "{...}"
    if isinstance(value, Decimal):
        return "nan" if value.is_nan() else _format_decimal(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def _format_decimal(value: Decimal) -> str:
    """Return a number without an exponent, unless it would have more than 80 digits."""
    if value.is_finite() and abs(value.adjusted()) > _MAX_VALUE_LENGTH:
        return str(value)
    return f"{value:f}".lower().replace("infinity", "inf")
