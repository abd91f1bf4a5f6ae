"""What a database is made of, against what it should be made of."""

from __future__ import annotations

from collections.abc import Mapping

from agedp_data.shown import escape_text

Parts = Mapping[tuple[str, str], str]
"""By kind and name the tables, indices, triggers and views of a database, and what each is."""


def compared(made: Parts, found: Parts) -> tuple[tuple[str, str], ...]:
    """Return (what, how) of every part that is missing, changed or foreign.

    >>> compared({("table", "a"): "x", ("table", "b"): "y"}, {("table", "a"): "z", ("view", "c"): ""})
    (('table a', 'was changed'), ('table b', 'is missing'), ('view c', "is none of a ledger's"))
    """
    return tuple(
        (f"{kind} {escape_text(name, 80)}", _how(made.get((kind, name)), found.get((kind, name))))
        for kind, name in sorted(made.keys() | found.keys())
        if made.get((kind, name)) != found.get((kind, name))
    )


def _how(made: str | None, found: str | None) -> str:
    if found is None:
        return "is missing"
    return "was changed" if made is not None else "is none of a ledger's"
