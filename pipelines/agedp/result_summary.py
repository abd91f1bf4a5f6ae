"""What a result shows of itself in a terminal and in a notebook: counts and public facts.

    States(households=60, days=2013-01-01 to 2013-06-30, step=half-hour, states=12, states_of_households=confidential)

A notebook keeps what it shows, and is handed on. So a summary has no household id, no state edge that a household's
readings decide, and no count of a single household; what else a result holds is named, and "confidential" beside it.
The page has no colour of its own, so that it is readable in light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

from agedp_data.messages import escape_controls

CONFIDENTIAL: Final = "confidential"
_LONGEST: Final = 200


class ResultSummary:
    """A result with a summary; a class with results says which facts it shows (`_facts`)."""

    __slots__ = ()

    def _facts(self) -> Mapping[str, object]:
        """Return the facts by name, in order; empty ones are left out."""
        raise NotImplementedError

    def _shown_facts(self) -> Mapping[str, str]:
        facts = ((name, escape_controls(str(value))) for name, value in self._facts().items() if value is not None)
        return {name: text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..." for name, text in facts if text}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self._shown_facts().items())})"

    def _repr_html_(self) -> str:
        facts = self._shown_facts().items()
        rows = (f"<tr><th>{escape(name.replace('_', ' '))}</th><td>{escape(text)}</td></tr>" for name, text in facts)
        return f"<table><caption>agedp.{type(self).__name__}</caption><tbody>{''.join(rows)}</tbody></table>"


def extent(values: Iterable[object]) -> str:
    """Return the smallest and the largest of some values as text; "" of none.

    >>> extent([3, 1, 2]), extent([0.5, 0.5]), extent([])
    ('1 to 3', '0.5', '')
    """
    ordered = sorted(values)  # type: ignore[type-var]
    texts = (f"{value:.3g}" if isinstance(value, float) else str(value) for value in (ordered[:1] + ordered[-1:]))
    return " to ".join(dict.fromkeys(texts))
