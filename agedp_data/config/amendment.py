"""Every difference of two contracts, each with a verdict: an amendment may tighten a promise, never loosen it.

Each key of the run file carries its rule in its type (`amendment_rules`). Example: `promise.max_day_epsilon` may be
lowered, `population.min_households` raised. A key without a rule never changes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agedp_data.amendment_rules import ABSENT, EITHER, MODEL, NEVER, SHARE, Rule, Verdict
from agedp_data.config.contract import TABLES, ZONE_CHANGES, entries_of
from agedp_data.notions import NOTIONS
from agedp_data.series.series import written_contracts

_BESIDE_FIELDS: Final = {"model": MODEL, "model.*": EITHER, "series.*": SHARE, f"schedule.{ZONE_CHANGES}": EITHER}
"""Rules of whole tables, and of the key that only a contract has; clock changes are judged by the days they move."""


@dataclass(frozen=True, slots=True)
class ContractChange:
    """One difference of two contracts, with its verdict.

    `key` is dotted; `old` and `new` are JSON texts, or `ABSENT`; `why` is the reason for the verdict in a few words.
    """

    key: str
    old: str
    new: str
    verdict: Verdict
    why: str


def amendment(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[ContractChange, ...]:
    """Return every difference of two contracts with its verdict, in the order of their keys.

    What a table is of, such as its notion or dataset, comes before the other keys of the table.

    >>> [change] = amendment({"promise": {"epsilon": "0.5"}}, {"promise": {"epsilon": "0.4"}})
    >>> change.key, change.old, change.new, change.verdict
    ('promise.epsilon', '"0.5"', '"0.4"', 'allowed')
    """
    old, new = written_contracts(old, new)
    # a series, or the model, that only one contract has is one change
    names = (set(_table(old, "series")) ^ set(_table(new, "series"))) - {""}
    models = {"model"} if ("model" in old) != ("model" in new) else set()
    units = {f"series.{name}" for name in names} | models
    old_values, new_values = (
        {key: json.dumps(value, sort_keys=True) for key, value in entries_of(contract, units).items()}
        for contract in (old, new)
    )
    notions = [_table(contract, "promise").get("notion") for contract in (old, new)]
    changes = []
    for key in sorted(old_values.keys() | new_values.keys(), key=_place_of):
        before, after = old_values.get(key, ABSENT), new_values.get(key, ABSENT)
        if before != after:
            changes.append(ContractChange(key, before, after, *rule_of(key, notions).judge(before, after, new)))
    return tuple(changes)


def _place_of(key: str) -> str:
    """Return a dotted key for sorting.

    >>> sorted(["promise.epsilon", "promise.notion"], key=_place_of)
    ['promise.notion', 'promise.epsilon']
    """
    above, _, name = key.rpartition(".")
    choice, _ = TABLES.get(key.partition(".")[0], ("", ()))
    return f"{above}." if name == choice else key


def _table(contract: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = contract.get(name)
    return table if isinstance(table, Mapping) else {}


def rule_of(key: str, notions: Collection[object] = ()) -> Rule:
    """Return the rule beside a dotted key of a contract, `NEVER` for a key without one or with different ones.

    `notions` are the names of the notions that the compared contracts promise; if none is known, all notions count.

    >>> rule_of("series.daily_mean.clamp_kwh").why, rule_of("promise.epsilon").why_not.partition(":")[0]
    ('the promise stays as it is', 'it may only be lowered')
    >>> rule_of("promise.notion") is NEVER
    True
    """
    table, *below = key.split(".")
    if table == "series" and below:
        below[0] = "*"
    pattern = "model.*" if table == "model" and below else ".".join((table, *below))
    if pattern in _BESIDE_FIELDS:
        return _BESIDE_FIELDS[pattern]
    if len(below) != (2 if table == "series" else 1):
        return NEVER
    _, kinds = TABLES.get(table, ("", ()))
    if table == "promise":
        kinds = [notion for notion in NOTIONS if notion.name in notions] or NOTIONS
    fields = [kind.model_fields[below[-1]] for kind in kinds if below[-1] in kind.model_fields]
    rules = {mark for field in fields for mark in field.metadata if isinstance(mark, Rule)}
    return rules.pop() if len(rules) == 1 else NEVER
