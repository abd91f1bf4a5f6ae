"""The contract part of a run file: what the ledger registers, and what may not change unnoticed.

Everything is in it that is not marked FREE: no path, engine, title or schedule of the machine. Defaults are
written out, and numbers in one form, so that two files that say the same make the same contract. A key that is marked
LATER is left out where it has its default (`meanings`), so that series that began before there was such a key go on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agedp_data.config.meanings import ZONE_CHANGES, contract_value, is_later, meaning_of
from agedp_data.config.run import RunFile
from agedp_data.config.series import AnySeries, series_of
from agedp_data.errors import LedgerError
from agedp_data.format_versions import FORM, NEEDS
from agedp_data.notions import AnyPromise
from agedp_data.notions.notion import Notion
from agedp_data.notions.publication import Publication
from agedp_data.readers.zone_changes import FIXED_ZONES, zone_changes

_TABLES = ("input", "population", "schedule", "promise", "model")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_PROMISE: TypeAdapter[AnyPromise] = TypeAdapter(AnyPromise)


def contract(run: RunFile, *, model: str | None) -> dict[str, Any]:
    """Return what is promised as nested dicts and lists of text and integers.

    `model` is the hash of the model's public part, None where there is none yet.
    """
    registered: dict[str, Any] = {"version": run.version}
    registered |= {name: contract_value(getattr(run, name)) for name in _TABLES if getattr(run, name) is not None}
    shares = run.shares
    registered["series"] = {
        name: {**contract_value(series), "share": contract_value(shares[name])} for name, series in run.series.items()
    }
    zone = run.input.layout.day_zone
    if zone not in FIXED_ZONES:
        registered["schedule"][ZONE_CHANGES] = list(zone_changes(zone, run.schedule.first_day, run.schedule.last_day))
    if model is not None:
        registered.setdefault("model", {})["hash"] = model
    if run.output.witness is not None:  # its place is free; that there is one is remembered
        registered["output"] = {"witness": "required"}
    return {**registered, "form": FORM, "needs": NEEDS[FORM]} if is_later(registered) else registered


def promise_of(text: str, earlier: Mapping[str, Mapping[str, AnySeries]] | None = None) -> Notion:
    """Return the promise that a contract's text holds, as it is enforced; `earlier` are the series of all contracts.

    >>> text = '{"promise":{"notion":"classical","epsilon_per_day":"0.5","max_day_epsilon":"0.5","epsilon_total":"9"}}'
    >>> promise_of(text).loss([], "2013-01-01", None)
    500000000

    Raises:
        LedgerError: a text that holds no promise which this version knows and can enforce.
    """
    try:
        terms = meaning_of(text)
        promise = _PROMISE.validate_python({key: _read(value) for key, value in terms["promise"].items()})
        series, schedule = series_of({"series": {}} | terms), terms.get("schedule", {})
        first, last = (
            date.fromisoformat(schedule[key]) if key in schedule else None for key in ("first_day", "last_day")
        )
    except (ValidationError, ValueError, LookupError, TypeError, AttributeError):
        raise LedgerError("a contract in the ledger holds no promise that this agedp knows; update agedp") from None
    return promise.over(Publication(series, earlier or {}, first, last))


def _read(value: object) -> object:
    """Return a number that the contract keeps as text; nothing else in a promise looks like one."""
    return Decimal(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
