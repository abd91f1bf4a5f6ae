"""What a notion says about itself, for every text that compares notions: one `NotionText` beside the notion's class.

Options, proposals and tables go over `NOTIONS` and take the words from here, so that none of them knows a notion by
name. Values are TOML text, as they are written into a run file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from agedp_data.epsilon import format_delta

RESULTS: Final = "; every set of results at most e^epsilon times as probable, plus "
"""What a delta means, a part of the scope of a bound."""


@dataclass(frozen=True, slots=True)
class NoiseExample:
    """One use of a notion, and its keys of [promise]: `{e}` is the epsilon, `{days}` the length of the period.

    The description may name keys of [promise] as well: "any {window_days} consecutive days".

    >>> NoiseExample("epsilon {e} a day", {"epsilon_per_day": "{e}"}).toml(e="0.5", days=7)
    {'epsilon_per_day': '0.5'}
    """

    description: str
    keys: Mapping[str, str]

    def toml(self, *, e: str, days: int) -> dict[str, str]:
        """Return the keys with their TOML text for an epsilon and a length of the period [days]."""
        return {key: text.format(e=e, days=days) for key, text in self.keys.items()}

    def described(self, *, days: int, given: Mapping[str, str]) -> str:
        """Return the description, with "e" for the epsilon; given TOML texts of keys replace those of the example.

        >>> week = NoiseExample("epsilon {e} for any {window_days} days", {"window_days": "7"})
        >>> week.described(days=9, given={}), week.described(days=9, given={"window_days": "365"})
        ('epsilon e for any 7 days', 'epsilon e for any 365 days')
        """
        keys = {**self.toml(e="e", days=days), **given, "e": "e", "days": f"{days}"}
        return self.description.format_map({key: text.strip('"') for key, text in keys.items()})


@dataclass(frozen=True, slots=True)
class OwnBound:
    """The bound that a promise is about, as a statement names it, and its heading in a table.

    Both are templates over the keys of [promise]: "window of {window_days} days".
    """

    name: str
    heading: str

    def of(self, promise: Mapping[str, object]) -> tuple[str, str]:
        """Return name and heading for the promise of a contract.

        >>> OwnBound("risk", "risk at {age_days} days").of({"age_days": 2})
        ('risk', 'risk at 2 days')
        """
        return self.name.format_map(promise), self.heading.format_map(promise)


@dataclass(frozen=True, slots=True)
class NotionText:
    """Words and example values of one notion.

    `epsilon_key` is the key of [promise] in which it takes its epsilon. `examples` are rows of the noise table of
    `agedp init`. `proposals` are the values that `agedp init` proposes for the notion's own keys; a key without one is
    proposed by its type. `option_help` is the help of the option of a key that no other notion has. `takes_delta`:
    a promised delta applies to the notion's own bound, and not to `epsilon_total` alone. `credit_remedy` says what to
    change where the own bound is hardly below the sum of the losses of all days.
    """

    epsilon_key: str
    own_bound: OwnBound
    examples: tuple[NoiseExample, ...] = ()
    proposals: Mapping[str, str] = field(default_factory=dict)
    option_help: Mapping[str, str] = field(default_factory=dict)
    takes_delta: bool = False
    credit_remedy: str = "another bound"


def name_at_delta(name: str, delta: Decimal | None) -> str:
    """Return the name of a bound over several days as an (epsilon, delta) bound; without delta its own name.

    Source: text, without a formula.

    Args:
        name: name of the bound of pure losses.
        delta: probability [-].

    >>> name_at_delta("total", Decimal("0.000001")), name_at_delta("total", None)
    ('total (delta 1e-6)', 'total')
    """
    return name if delta is None else f"{name} (delta {format_delta(delta)})"


def scope_at_delta(scope: str, delta: Decimal) -> str:
    """Return the scope of an (epsilon, delta) bound, with what its delta means; the text is stored and never changes.

    It is no bound on odds "but for a probability of delta": a loss above epsilon may be more probable than delta.

    Source: text, without a formula.

    Args:
        scope: scope of the bound of pure losses.
        delta: probability [-].

    >>> scope_at_delta("all days", Decimal("1e-6"))
    'all days; every set of results at most e^epsilon times as probable, plus 1e-6'
    """
    return f"{scope}{RESULTS}{format_delta(delta)}"
