"""The contract part of a run file: what the ledger registers, and what may not change unnoticed.

Everything is in it that is not marked FREE: no path, engine, title or schedule of the machine. Defaults are
written out, and numbers in one form, so that two files that say the same make the same contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from agedp_data.config.run import RunFile
from agedp_data.notions.parameters import FREE, Block

_TABLES = ("input", "population", "schedule", "promise", "model")


def contract(run: RunFile, *, model: str | None) -> dict[str, Any]:
    """Return what is promised as nested dicts and lists of text and integers.

    `model` is the hash of the model's public part, None where there is none yet.
    """
    registered: dict[str, Any] = {"version": run.version}
    registered |= {name: _plain(getattr(run, name)) for name in _TABLES if getattr(run, name) is not None}
    shares = run.shares
    registered["series"] = {name: {**_plain(each), "share": _plain(shares[name])} for name, each in run.series.items()}
    if model is not None:
        registered.setdefault("model", {})["hash"] = model
    return registered


def _plain(value: object) -> Any:  # noqa: ANN401 - a JSON value, of any depth
    if isinstance(value, Block):
        fields = type(value).model_fields
        kept = {key: getattr(value, key) for key in fields if FREE not in fields[key].metadata}
        return {key: _plain(each) for key, each in kept.items() if each is not None}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal):
        return exact_text(value)
    return value.isoformat() if isinstance(value, date) else value


def exact_text(amount: Decimal) -> str:
    """Return a number as text, one form for every way of writing it.

    >>> exact_text(Decimal("0.50")), exact_text(Decimal("2E+2")), exact_text(Decimal(0))
    ('0.5', '200', '0')
    """
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
