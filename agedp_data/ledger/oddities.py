"""Comparison of a database's tables, indices and triggers with those of a new ledger."""

from __future__ import annotations

from collections.abc import Mapping

from agedp_data.shown import escape_text

Parts = Mapping[tuple[str, str], str]
"""Definitions of the tables, indices, triggers and views of a database, by kind and name."""


def compare_parts(expected: Parts, stored: Parts) -> tuple[tuple[str, str], ...]:
    """Return (part, difference) for every part that is missing, changed or does not belong to a ledger.

    >>> compare_parts({("table", "a"): "x", ("table", "b"): "y"}, {("table", "a"): "z", ("view", "c"): ""})
    (('table a', 'was changed'), ('table b', 'is missing'), ('view c', "is none of a ledger's"))
    """
    return tuple(
        (f"{kind} {escape_text(name, 80)}", _difference(expected.get((kind, name)), stored.get((kind, name))))
        for kind, name in sorted(expected.keys() | stored.keys())
        if expected.get((kind, name)) != stored.get((kind, name))
    )


def _difference(expected: str | None, stored: str | None) -> str:
    if stored is None:
        return "is missing"
    return "was changed" if expected is not None else "is none of a ledger's"
