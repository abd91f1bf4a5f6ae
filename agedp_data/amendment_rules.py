"""Rules of amendment: how a key of a contract may change, as an object that stands beside the key.

A key of the run file carries its rule in its type, such as `epsilon_per_day: Annotated[Epsilon, LOWER]`, and
`config.amendment` reads the rules off the fields. A rule has its verdict and its two sentences: why a change is allowed
and why it is refused.

Decisions:

* A key without a rule never changes: a new key of the run file is refused until its loosening direction is decided.
* A missing key that bounds something counts as no bound, so writing one is allowed and removing one is not. A missing
  delta counts as 0: writing one is refused and removing it is allowed, if the released days fit without it.
* A new model is allowed because it loosens nothing by itself: of all models that the contracts ever named, the one with
  the larger bound applies to every later release. A model is replaced, never withdrawn: the bounds that rest on it
  would vanish from the statement.
* The shares divide the day budget, so they change freely as long as they add up to 1.
* With epsilon_total = "unlimited" the last day bounds the sum over all days. It may come earlier; it may come later, or
  be removed, only where a number bounds that sum.
* Shared households may be refused from a day on, if none is shared then, and are refused for ever after.
* A series may change from readings to their states and not back; a contract without this key counts readings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

Verdict = Literal["allowed", "refused"]

ABSENT: Final = "(absent)"
_DECIMAL = re.compile(r'-?[0-9]+|"-?[0-9]+(\.[0-9]+)?"')
_DATE = re.compile(r'"[0-9]{4}-[0-9]{2}-[0-9]{2}"')
_TIGHTENS: Final = "tightens the promise"
_STAYS: Final = "the promise stays as it is"


@dataclass(frozen=True, slots=True)
class Rule:
    """What may become of a key: a change that `tightens` the promise, and one that it `permits` in the new contract.

    Values are JSON texts, or `ABSENT`; `why` is the reason for what it permits, `why_not` that of a refusal.
    """

    why_not: str
    why: str = ""
    tightens: Callable[[str, str], bool] = lambda _old, _new: False
    permits: Callable[[str, str, Mapping[str, Any]], bool] = lambda _old, _new, _contract: False

    def judge(self, old: str, new: str, contract: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Return the verdict on a change to the value in a new contract, and its reason."""
        if self.tightens(old, new):
            return "allowed", _TIGHTENS
        return ("allowed", self.why) if self.permits(old, new, contract) else ("refused", self.why_not)


def _falls(old: str, new: str, *, absent: str) -> bool:
    """Return whether a number becomes smaller, `absent` being the size of a missing one; False for other texts."""
    old_size, new_size = (Decimal(absent) if text == ABSENT else _size(text) for text in (old, new))
    return old_size is not None and new_size is not None and new_size < old_size


def _comes_earlier(old: str, new: str) -> bool:
    """Return whether a last day is before the old one, or replaces no last day; dates are ISO text."""
    return bool(_DATE.fullmatch(new)) and (old == ABSENT or (bool(_DATE.fullmatch(old)) and new < old))


def _shares_fit(_old: str, _new: str, contract: Mapping[str, Any]) -> bool:
    series = contract.get("series")
    tables = series.values() if isinstance(series, Mapping) else ()
    written = [table.get("share") if isinstance(table, Mapping) else None for table in tables]
    of_layers = [share for shares in written for share in (shares if isinstance(shares, list) else [shares])]
    sizes = [_size(json.dumps(share)) for share in of_layers]
    shares = [size for size in sizes if size is not None and 0 < size <= 1]
    return len(shares) == len(sizes) and sum(shares, Decimal()) == 1


def _has_total(_old: str, _new: str, contract: Mapping[str, Any]) -> bool:
    promise = contract.get("promise")
    total = _size(json.dumps(promise.get("epsilon_total"))) if isinstance(promise, Mapping) else None
    return total is not None and total.is_finite()


def _size(text: str) -> Decimal | None:
    """Return a contract's number, an integer or decimal text (never a float); "unlimited" is above all."""
    if text == '"unlimited"':
        return Decimal("Infinity")
    match = _DECIMAL.fullmatch(text)
    return Decimal(text.strip('"')) if match else None


NEVER: Final = Rule("it is part of the promise and never changes; another population or ledger may promise it")
LOWER: Final = Rule(
    "it may only be lowered: more would loosen the promise",
    tightens=lambda old, new: _falls(old, new, absent="Infinity"),
)
RAISE: Final = Rule(
    "it may only be raised: less would loosen the promise",
    tightens=lambda old, new: _falls(new, old, absent="-Infinity"),
)
DELTA: Final = Rule(
    "it may only be lowered or removed: more would loosen the promise",
    tightens=lambda old, new: _falls(old, new, absent="0"),
)
EITHER: Final = Rule("", _STAYS, permits=lambda _old, _new, _contract: True)
MODEL: Final = Rule(
    "a model may be replaced, not withdrawn", _STAYS, permits=lambda _old, new, _contract: new != ABSENT
)
"""Of the model as a whole; its keys change by `EITHER`."""
END: Final = Rule(
    "without a number in epsilon_total it bounds the sum over all days: it may only come earlier",
    "epsilon_total bounds the sum over all days as before",
    tightens=_comes_earlier,
    permits=_has_total,
)
SHARE: Final = Rule("the shares of the series would not add up to 1", _STAYS, permits=_shares_fit)
COARSER: Final = Rule(
    "the model covers states only: readings contain more, which would loosen the bounds that rest on it",
    "states contain no more information than their readings",
    permits=lambda old, new, _contract: new == '"states"' or (old == ABSENT and new == '"readings"'),
)
WITNESS: Final = Rule(
    "it states that a witness is required, or is absent",
    "no bound changes; without a witness an older ledger that was put back is not detected",
    permits=lambda old, new, _contract: {old, new} == {ABSENT, '"required"'},
)
SIGN: Final = Rule(
    "recipients were told that folders of this population are signed",
    "no bound changes; from then on a folder without a signature is refused",
    permits=lambda old, new, _contract: (old, new) == (ABSENT, "true"),
)
APART: Final = Rule(
    "households that are counted elsewhere too would be released: this would loosen the promise",
    tightens=lambda _old, new: new == '"refuse"',
)
