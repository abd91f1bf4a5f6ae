"""The contract part of a run file: the text that the ledger registers, and the changes that an amendment may make.

The contract has every key that is not marked FREE: no path, engine, title or schedule of the machine. Defaults are
written out and numbers have one form, so equal run files make the same contract. A key that is marked LATER is left out
where it has its default (`contract_values`), so that series that began before the key existed continue.

An amendment may tighten a promise, never loosen it. Each key of a contract has a rule, and each change a verdict. The
rules of a notion's parameters are the notion's (`Promise.TIGHTENING`); `RULES` has those of the keys that all notions
share and of the other tables. Example: `promise.max_day_epsilon` may be lowered, `population.min_households` raised.

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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final, Literal, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agedp_data.config.contract_values import ZONE_CHANGES, contract_value, interval_minutes_of, is_later, meaning_of
from agedp_data.config.input import INPUTS, LongColumns
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.config.output import CompareSection, OutputSection, PopulationSection
from agedp_data.config.run_file import RunFile
from agedp_data.config.schedule import Archive, Live, Rehearsal
from agedp_data.datasets.zone_changes import FIXED_ZONES, zone_changes
from agedp_data.errors import LedgerError
from agedp_data.format_versions import FORM, NEEDS
from agedp_data.notions import NOTIONS, AnyPromise
from agedp_data.notions.notion import Notion
from agedp_data.notions.period_loss import PeriodLoss
from agedp_data.notions.publication import Publication
from agedp_data.parameters import Section
from agedp_data.series.series import AnySeries, series_of
from agedp_data.series.series_tables import written_contracts

_TABLES = ("input", "population", "schedule", "promise", "model")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_UNKNOWN_PROMISE: Final = "a contract in the ledger holds no promise that this agedp knows; update agedp"
_PROMISE: TypeAdapter[AnyPromise] = TypeAdapter(AnyPromise, config=ConfigDict(defer_build=True))


def contract_part(run: RunFile, *, model: str | None) -> dict[str, Any]:
    """Return the contract of a run file as nested dicts and lists of text and integers.

    Args:
        run: the run file.
        model: SHA-256 of the model's public part; None before there is a model.
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
    if run.output.witness is not None:  # its address is free; the contract records only that it is required
        registered["output"] = {"witness": "required"}
    return {**registered, "form": FORM, "needs": NEEDS[FORM]} if is_later(registered) else registered


def promise_of(
    text: str, earlier: Mapping[str, Mapping[str, AnySeries]] | None = None, charges: Iterable[PeriodLoss] = ()
) -> Notion:
    """Return the promise in a contract's text, as it is enforced.

    `earlier` are the series of all contracts, `charges` the losses of the population's calibration draws.

    >>> text = '{"promise":{"notion":"classical","epsilon_per_day":"0.5","max_day_epsilon":"0.5","epsilon_total":"9"}}'
    >>> promise_of(text).loss([], "2013-01-01", None)
    500000000

    Raises:
        LedgerError: the text contains no promise that this version knows and can enforce.
    """
    try:
        terms = meaning_of(text)
        promise = _promise_in(terms)
        series, schedule = series_of({"series": {}} | terms), terms.get("schedule", {})
        minutes = interval_minutes_of(terms)
        first, last = (
            date.fromisoformat(schedule[key]) if key in schedule else None for key in ("first_day", "last_day")
        )
    except (ValidationError, ValueError, LookupError, TypeError, AttributeError):
        raise LedgerError(_UNKNOWN_PROMISE) from None
    return promise.for_publication(Publication(series, earlier or {}, first, last, tuple(charges), minutes))


def registered_run_file(text: str, *, output: OutputSection, compare: CompareSection, has_curve: bool) -> RunFile:
    """Return the run file that registered a contract, as far as a statement and a public report depend on it.

    Free keys are no part of a contract: those of paths are missing, those of texts and comparisons are given. Use it
    to compute again what was published, never to run.

    Args:
        text: the contract's text.
        output: texts and layout of the release.
        compare: the additional bounds of the statement.
        has_curve: whether a declared model is a curve, by its public part.

    Raises:
        LedgerError: the text contains no promise that this version knows and can enforce.
    """
    terms = meaning_of(text)
    try:
        model = terms.get("model")
        curve = {"curve": ""} if has_curve else {}
        return RunFile.model_construct(
            version=1,
            input=_section(INPUTS, "dataset", _with_columns(terms["input"])),
            output=output,
            population=PopulationSection.model_construct(**terms["population"]),
            schedule=_section((Archive, Live, Rehearsal), "mode", _with_dates(terms["schedule"])),
            series=series_of(terms),
            promise=_promise_in(terms),
            model=None if model is None else _section((DeclaredModel, EstimatedModel), "source", {**model, **curve}),
            compare=compare,
        )
    except (ValidationError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        raise LedgerError(_UNKNOWN_PROMISE) from None


def _promise_in(terms: Mapping[str, Any]) -> AnyPromise:
    return _PROMISE.validate_python({key: _read(value) for key, value in terms["promise"].items()})


def _section(kinds: Iterable[type[Section]], choice: str, table: Mapping[str, Any]) -> Any:  # noqa: ANN401  (any section)
    """Return a table of a contract as the section of a run file that it was, its values as the contract has them."""
    kind = next(kind for kind in kinds if table[choice] in get_args(kind.model_fields[choice].annotation))
    return kind.model_construct(**{key: value for key, value in table.items() if key in kind.model_fields})


def _with_columns(table: Mapping[str, Any]) -> dict[str, Any]:
    columns = table.get("columns")
    return {**table, **({} if columns is None else {"columns": LongColumns.model_validate(columns)})}


def _with_dates(table: Mapping[str, Any]) -> dict[str, Any]:
    dates: dict[str, Any] = {
        key: date.fromisoformat(table[key]) for key in ("first_day", "last_day") if table.get(key) is not None
    }
    if "skip_days" in table:
        dates["skip_days"] = tuple(map(date.fromisoformat, table["skip_days"]))
    return {**table, **dates}


def _read(value: object) -> object:
    """Return a number that the contract keeps as text; no other text of a promise has this form."""
    return Decimal(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


Rule = Literal["lower", "raise", "delta", "either", "end", "share", "coarser", "witness", "apart", "never"]
Verdict = Literal["allowed", "refused"]

RULES: Final[Mapping[str, Rule]] = {
    "input.corrections": "either",
    "input.file_order": "either",
    "input.max_half_hour_kwh": "either",
    "output.witness": "witness",
    "population.min_households": "raise",
    "population.shared_households": "apart",
    "schedule.give_up_days": "either",
    "schedule.last_day": "end",
    "schedule.rehearsal_on": "never",
    "schedule.wait_for": "either",
    "schedule.zone_changes": "either",
    "series.*": "share",
    "series.*.above_kwh": "either",
    "series.*.bins_kwh": "either",
    "series.*.by": "either",
    "series.*.clamp_kwh": "either",
    "series.*.every": "never",
    "series.*.half_hour_clamp_kwh": "either",
    "series.*.max_missing": "either",
    "series.*.missing_kwh": "either",
    "series.*.share": "share",
    "series.*.values": "coarser",
    "promise.age_days": "raise",
    "promise.delta": "delta",
    "promise.epsilon_total": "lower",
    "promise.max_day_epsilon": "lower",
    "model.*": "either",
}
"""By dotted key; "series.*" is a series as a whole, "model.*" the model or any key of it."""

ABSENT: Final = "(absent)"
_DECIMAL = re.compile(r'-?[0-9]+|"-?[0-9]+(\.[0-9]+)?"')
_DATE = re.compile(r'"[0-9]{4}-[0-9]{2}-[0-9]{2}"')
_WITHOUT_KEY: Final[Mapping[str, Decimal]] = {
    "lower": Decimal("Infinity"),
    "raise": Decimal("-Infinity"),
    "delta": Decimal(0),
}
"""What a missing key counts as: no bound; a missing delta is the bound without exception."""
_WHY_NOT: Final[Mapping[Rule, str]] = {
    "lower": "it may only be lowered: more would loosen the promise",
    "raise": "it may only be raised: less would loosen the promise",
    "delta": "it may only be lowered or removed: more would loosen the promise",
    "either": "a model may be replaced, not withdrawn",
    "end": "without a number in epsilon_total it bounds the sum over all days: it may only come earlier",
    "share": "the shares of the series would not add up to 1",
    "witness": "it states that a witness is required, or is absent",
    "apart": "households that are counted elsewhere too would be released: this would loosen the promise",
    "coarser": "the model covers states only: readings contain more, which would loosen the bounds that rest on it",
    "never": "it is part of the promise and never changes; another population or ledger may promise it",
}
_WHY: Final[Mapping[Rule, str]] = {
    "lower": "tightens the promise",
    "raise": "tightens the promise",
    "delta": "tightens the promise",
    "either": "the promise stays as it is",
    "end": "epsilon_total bounds the sum over all days as before",
    "share": "the promise stays as it is",
    "witness": "no bound changes; without a witness an older ledger that was put back is not detected",
    "apart": "tightens the promise",
    "coarser": "states contain no more information than their readings",
    "never": "",
}


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

    >>> [change] = amendment({"promise": {"epsilon": "0.5"}}, {"promise": {"epsilon": "0.4"}})
    >>> change.key, change.old, change.new, change.verdict
    ('promise.epsilon', '"0.5"', '"0.4"', 'allowed')
    """
    old, new = written_contracts(old, new)
    units = _on_one_side(old, new)
    old_values, new_values = _entries(old, units), _entries(new, units)
    fits: dict[Rule, bool] = {"share": _shares_fit(new), "end": _has_total(new)}
    notions = [_table(terms, "promise").get("notion") for terms in (old, new)]
    return tuple(
        _judged(key, rule_of(key, notions), old_values.get(key, ABSENT), new_values.get(key, ABSENT), fits=fits)
        for key in sorted(old_values.keys() | new_values.keys())
        if old_values.get(key) != new_values.get(key)
    )


def _on_one_side(old: Mapping[str, Any], new: Mapping[str, Any]) -> frozenset[str]:
    """Return the series, and the model, that only one contract has: each is one change."""
    names = (set(_table(old, "series")) ^ set(_table(new, "series"))) - {""}
    models = {"model"} if ("model" in old) != ("model" in new) else set()
    return frozenset({f"series.{name}" for name in names} | models)


def _table(contract: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = contract.get(name)
    return table if isinstance(table, Mapping) else {}


def _entries(value: Mapping[str, Any], units: frozenset[str], above: str = "") -> dict[str, str]:
    """Return (dotted key, JSON text) of every value that is not a table, and of the tables that are one change."""
    entries: dict[str, str] = {}
    for name, entry in value.items():
        key = f"{above}{name}"
        if isinstance(entry, Mapping) and key not in units:
            entries |= _entries(entry, units, f"{key}.")
        else:
            entries[key] = json.dumps(entry, sort_keys=True, ensure_ascii=True)
    return entries


def _shares_fit(new: Mapping[str, Any]) -> bool:
    series = _table(new, "series").values()
    written = [terms.get("share") if isinstance(terms, Mapping) else None for terms in series]
    of_layers = [share for shares in written for share in (shares if isinstance(shares, list) else [shares])]
    sizes = [_size(json.dumps(share)) for share in of_layers]
    shares = [size for size in sizes if size is not None and 0 < size <= 1]
    return len(shares) == len(sizes) and sum(shares, Decimal()) == 1


def _has_total(new: Mapping[str, Any]) -> bool:
    total = _size(json.dumps(_table(new, "promise").get("epsilon_total")))
    return total is not None and total.is_finite()


def _judged(key: str, rule: Rule, old: str, new: str, *, fits: Mapping[Rule, bool]) -> ContractChange:
    if rule in _WITHOUT_KEY:
        allowed = _tightens(rule, old, new)
    elif rule == "end" and _comes_earlier(old, new):
        return ContractChange(key, old, new, "allowed", _WHY["lower"])
    elif rule == "coarser":
        allowed = new == '"states"' or (old == ABSENT and new == '"readings"')
    elif rule == "apart":
        allowed = new == '"refuse"'
    elif rule == "witness":
        allowed = {old, new} == {ABSENT, '"required"'}
    elif rule == "either":
        allowed = not (key == "model" and new == ABSENT)
    else:
        allowed = fits.get(rule, False)
    return ContractChange(key, old, new, "allowed" if allowed else "refused", (_WHY if allowed else _WHY_NOT)[rule])


def _comes_earlier(old: str, new: str) -> bool:
    """Return whether a last day is before the old one, or replaces no last day; dates are ISO text."""
    return bool(_DATE.fullmatch(new)) and (old == ABSENT or (bool(_DATE.fullmatch(old)) and new < old))


def rule_of(key: str, notions: Collection[object] = ()) -> Rule:
    """Return the rule for a dotted key of a contract; "never" for a key without a rule.

    `notions` are the names of the notions that the compared contracts promise; if none is known, all notions count.

    >>> rule_of("series.daily_mean.clamp_kwh"), rule_of("promise.epsilon"), rule_of("promise.notion")
    ('either', 'lower', 'never')
    """
    parts = key.split(".")
    if parts[0] == "model":
        return RULES["model.*"]
    if parts[0] == "series" and len(parts) > 1:
        parts[1] = "*"
    if parts[0] == "promise" and len(parts) == 2 and key not in RULES:
        return _rule_of_notions(parts[1], notions)
    return RULES.get(".".join(parts), "never")


def _rule_of_notions(parameter: str, notions: Collection[object]) -> Rule:
    """Return the rule of the notions that have this parameter, "never" where they differ."""
    promised = [notion for notion in NOTIONS if notion.name in notions] or NOTIONS
    rules = {notion.TIGHTENING[parameter] for notion in promised if parameter in notion.TIGHTENING}
    return rules.pop() if len(rules) == 1 else "never"


def _tightens(rule: Rule, old: str, new: str) -> bool:
    """Return whether a bound becomes tighter; False for a text that is not a number."""
    old_size, new_size = (_WITHOUT_KEY[rule] if text == ABSENT else _size(text) for text in (old, new))
    if old_size is None or new_size is None:
        return False
    return new_size > old_size if rule == "raise" else new_size < old_size


def _size(text: str) -> Decimal | None:
    """Return a contract's number, an integer or decimal text (never a float); "unlimited" is above all."""
    if text == '"unlimited"':
        return Decimal("Infinity")
    match = _DECIMAL.fullmatch(text)
    return Decimal(text.strip('"')) if match else None
