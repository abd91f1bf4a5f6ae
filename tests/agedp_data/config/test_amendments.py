"""No edit of a contract loosens a promise: every key of every kind of run file, in both directions."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Annotated

import pytest

from agedp_data.amendment_rules import (
    APART,
    COARSER,
    DELTA,
    EITHER,
    END,
    LOWER,
    NEVER,
    RAISE,
    SHARE,
    WITNESS,
    Rule,
)
from agedp_data.amendment_rules import MODEL as WHOLE_MODEL
from agedp_data.config import contract_part, load, parse
from agedp_data.config.amendment import amendment, rule_of
from agedp_data.config.contract import TABLES
from agedp_data.notions import NOTIONS, Promise, WEvent

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
LONDON = (EXAMPLES / "london.toml").read_text("utf-8")
CAPS = "max_day_epsilon = 0.5\nepsilon_total = 9\n"
MODEL = '[model]\nsource = "declared"\nkernel = "kernel.csv"\nassume = "markov"\nbasis = "made up"\n'
PROMISES = {
    "classical": "epsilon_per_day = 0.5",
    "w-event": 'window_days = 7\nepsilon_per_window = 1\nspend = "remaining"',
    "age-dependent": 'age_days = 2\nepsilon_per_day = 0.5\nmethod = "total_variation"\nsecret = "day"',
    "age-dependent, planned": 'age_days = 2\nrisk = 0.5\nmethod = "spectral"\nsecret = "day"',
    "temporal": 'alpha = 2\nhorizon_days = 365\nbudget = "best"',
    "discounted": 'discount = "exponential"\nrate = 0.9\nepsilon = 1\nschedule = "optimal"\nhorizon_days = 9\n'
    'clock = "data-day"',
    "neighbourhood": 'delta_kwh = 2\nwindow_days = 7\nepsilon_per_window = 1\nspend = "fraction"\nfraction = 0.2',
}

# Written down apart from the code: which way each key loosens what was promised.
LOOSER_UP = {"epsilon_per_day", "epsilon_per_window", "epsilon", "epsilon_total", "max_day_epsilon", "risk", "alpha",
             "horizon_days"}  # fmt: skip
LOOSER_DOWN = {"age_days", "window_days", "min_households"}
LOOSER_ANYHOW = {"version", "dataset", "categories", "missing_controlled_load", "name", "mode", "first_day",
                 "statistic", "form", "values", "notion", "method", "secret", "spend", "fraction", "budget",
                 "discount", "rate", "schedule", "clock", "delta_kwh"}  # fmt: skip
HARMLESS = {"corrections", "file_order", "max_half_hour_kwh", "wait_for", "give_up_days", "clamp_kwh", "by",
            "max_missing", "missing_kwh", "bins_kwh", "above_kwh", "half_hour_clamp_kwh"}  # fmt: skip
RULES = {
    "input.corrections": EITHER, "input.file_order": EITHER, "input.max_half_hour_kwh": EITHER,
    "output.witness": WITNESS,
    "population.min_households": RAISE, "population.shared_households": APART,
    "schedule.give_up_days": EITHER, "schedule.last_day": END, "schedule.rehearsal_on": NEVER,
    "schedule.wait_for": EITHER, "schedule.zone_changes": EITHER,
    "series.*": SHARE, "series.*.above_kwh": EITHER, "series.*.bins_kwh": EITHER, "series.*.by": EITHER,
    "series.*.clamp_kwh": EITHER, "series.*.every": NEVER, "series.*.half_hour_clamp_kwh": EITHER,
    "series.*.max_missing": EITHER, "series.*.missing_kwh": EITHER, "series.*.share": SHARE,
    "series.*.values": COARSER,
    "promise.age_days": RAISE, "promise.delta": DELTA, "promise.epsilon_total": LOWER,
    "promise.max_day_epsilon": LOWER,
    "model": WHOLE_MODEL, "model.*": EITHER,
}  # fmt: skip
TIGHTENED = {
    "classical": {"epsilon_per_day": LOWER},
    "w-event": {"epsilon_per_window": LOWER, "window_days": RAISE},
    "age-dependent": {"epsilon_per_day": LOWER, "risk": LOWER},
    "temporal": {"alpha": LOWER, "horizon_days": LOWER},
    "discounted": {"epsilon": LOWER, "horizon_days": LOWER},
    "neighbourhood": {"epsilon_per_window": LOWER, "window_days": RAISE},
}
NOT_JUDGED_HERE = (("form",), ("needs",), ("schedule", "zone_changes"))  # day by day in `agedp.stages.amend`


def contracts():
    for path in sorted(EXAMPLES.glob("*.toml")):
        yield path.stem, contract_part(load(path), model="ab12")
    head = LONDON[: LONDON.index("[promise]")]
    for name, keys in PROMISES.items():
        text = f'{head}[promise]\nnotion = "{name.partition(",")[0]}"\n{keys}\n{CAPS}{MODEL}'
        yield name, contract_part(parse(text, base=Path("/house"), name="r.toml"), model="ab12")


CONTRACTS = dict(contracts())


def leaves(value, path=()):
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from leaves(inner, (*path, key))
        else:
            yield (*path, key), inner


def edited(old, path, value):
    new = part = copy.deepcopy(old)
    for key in path[:-1]:
        part = part[key]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return new


def moved(value, factor):
    """The same kind of value, further up or down; None if it has no direction."""
    if isinstance(value, int):
        return max(0, value - 1) if factor < 1 else value + 1
    try:
        return str(float(value) * factor)
    except (TypeError, ValueError):
        return None


def allowed(old, new):
    changes = amendment(old, new)
    assert changes
    return all(change.verdict == "allowed" for change in changes)


@pytest.mark.parametrize("name", CONTRACTS)
def test_no_key_can_be_moved_the_way_that_loosens(name):
    for path, value in leaves(CONTRACTS[name]):
        if path not in NOT_JUDGED_HERE:
            check_key(CONTRACTS[name], path, value)


def check_key(old, path, value):
    key, up, down = path[-1], moved(value, 2), moved(value, 0.5)
    others = ["another", "unlimited", "Infinity", [], {"a": 1}, True, 1.5, "-1", "1e9", None]
    if key == "values":  # states are the one other thing that it may become, and stay
        states = edited(old, path, "states")
        assert allowed(old, states)
        assert not any(allowed(states, new) for new in (old, edited(old, path, None)))
        assert allowed(edited(old, path, None), old)
    if path[0] == "model":
        assert allowed(old, edited(old, path, "another"))
    elif key == "share":
        assert not any(allowed(old, edited(old, path, each)) for each in ("0.1", "1.1", "-1", "NaN", 2, None))
    elif key in LOOSER_ANYHOW:
        assert not any(allowed(old, edited(old, path, each)) for each in (up, down, *others) if each != value), path
    elif key == "delta":
        assert all(allowed(old, edited(old, path, each)) for each in ("0.0000005", None))
        looser = ["0.000002", *(each for each in others if each not in (None, "-1"))]
        assert not any(allowed(old, edited(old, path, each)) for each in looser), path
    elif key == "last_day":
        assert allowed(old, edited(old, path, "2001-01-01"))
        bounded = old["promise"]["epsilon_total"] != "unlimited"
        assert all(allowed(old, edited(old, path, each)) is bounded for each in ("2999-01-01", None))
    elif key in HARMLESS:
        assert allowed(old, edited(old, path, "another")), path
    elif value == "unlimited":
        assert key in LOOSER_UP
        assert allowed(old, edited(old, path, "36.5"))
        assert not allowed(old, edited(old, path, None))
    else:
        assert (key in LOOSER_UP) != (key in LOOSER_DOWN), "a key that nobody has decided about"
        looser, tighter = (up, down) if key in LOOSER_UP else (down, up)
        assert allowed(old, edited(old, path, tighter)), path
        wrong = [each for each in others if key in LOOSER_UP or each not in ("unlimited", "1e9")]
        if key in LOOSER_UP:
            wrong.remove("-1")  # lower; no run file can say so
        assert not any(allowed(old, edited(old, path, each)) for each in (looser, *wrong)), path


def test_a_bound_may_be_added_and_not_removed():
    plain, bounded = {"promise": {}}, {"promise": {"epsilon_total": "9", "age_days": 2, "risk": "1"}}
    assert allowed(plain, bounded)
    assert [change.verdict for change in amendment(bounded, plain)] == ["refused"] * 3
    constant, planned = (CONTRACTS[name]["promise"] for name in ("age-dependent", "age-dependent, planned"))
    for old, new in ((constant, planned), (planned, constant)):  # nor exchanged
        assert not allowed({"promise": old}, {"promise": {**new, "method": old["method"]}})


def ending(last_day, total):
    return {"schedule": {} if last_day is None else {"last_day": last_day}, "promise": {"epsilon_total": total}}


def series(**shares):
    return {"series": {name: {"statistic": "mean", "share": share} for name, share in shares.items()}}


EARLIER, BOUNDED = "it may only come earlier", "epsilon_total bounds the sum"


@pytest.mark.parametrize(
    ("old", "new", "permitted", "why"),
    [
        (("2013-01-05", "unlimited"), ("2013-01-04", "unlimited"), True, "tightens the promise"),
        (("2013-01-05", "unlimited"), ("2013-01-06", "unlimited"), False, EARLIER),
        (("2013-01-05", "unlimited"), (None, "unlimited"), False, EARLIER),
        ((None, "unlimited"), ("2013-01-05", "unlimited"), True, "tightens the promise"),
        (("2013-01-05", "unlimited"), ("2013-01-06", "9"), True, BOUNDED),
        (("2013-01-05", "9"), (None, "9"), True, BOUNDED),
        (("2013-01-05", "9"), ("2013-01-06", "unlimited"), False, EARLIER),
        (("2013-01-05", "unlimited"), ("1e9", "unlimited"), False, EARLIER),
    ],
)
def test_the_last_day_moves_away_only_where_a_number_bounds_the_sum(old, new, permitted, why):
    [change] = [change for change in amendment(ending(*old), ending(*new)) if change.key == "schedule.last_day"]
    assert (change.verdict == "allowed") is permitted
    assert why in change.why


@pytest.mark.parametrize(
    ("old", "new", "permitted"),
    [
        (series(a="1"), series(a="0.7", b="0.3"), True), (series(a="1"), series(a="0.7", b="0.31"), False),
        (series(a="0.7", b="0.3"), series(a="1"), True), (series(a="0.7", b="0.3"), series(a="0.7"), False),
        (series(a="0.7", b="0.3"), series(c="1"), True), (series(a="1"), series(), False),
        (series(a="1"), series(a="1.5", b="-0.5"), False),
    ],
)  # fmt: skip
def test_series_come_and_go_as_long_as_the_shares_add_up(old, new, permitted):
    assert allowed(old, new) is permitted
    changes = amendment(series(a="1"), series(b="1"))
    assert [(change.key, change.old == "(absent)") for change in changes] == [("series.a", False), ("series.b", True)]


def test_a_model_may_be_adopted_and_exchanged_but_not_withdrawn():
    modelled = CONTRACTS["temporal"]
    plain = {key: value for key, value in modelled.items() if key != "model"}
    assert allowed(plain, modelled)
    assert allowed(modelled, edited(modelled, ("model", "hash"), "cd34"))
    [change] = amendment(modelled, plain)
    assert (change.key, change.verdict) == ("model", "refused")


def test_a_key_that_nobody_decided_about_never_changes():
    assert rule_of("promise.anything") is rule_of("anything") is rule_of("series.a.anything") is NEVER
    assert not allowed({}, {"promise": {"anything": 1}})
    assert all(rule_of(key.replace("*", "x")) is rule for key, rule in RULES.items())


def test_no_key_has_a_rule_that_is_not_written_down_here():
    ruled = {
        f"{table}.{'*.' * (table == 'series')}{key}"
        for table, (_, kinds) in TABLES.items()
        for kind in kinds
        for key, field in kind.model_fields.items()
        if any(isinstance(mark, Rule) for mark in field.metadata)
    }
    of_notions = {f"promise.{key}" for keys in TIGHTENED.values() for key in keys}
    assert ruled <= RULES.keys() | of_notions


def test_a_notion_says_itself_which_of_its_own_keys_may_be_tightened():
    for notion in NOTIONS:
        own = notion.model_fields.keys() - Promise.model_fields.keys()
        marks = {key: notion.model_fields[key].metadata for key in own}
        beside = {key: rule for key in own for rule in (LOWER, RAISE) if rule in marks[key]}
        assert beside == TIGHTENED.get(notion.name, beside)
        for key in own:
            assert rule_of(f"promise.{key}", [notion.name]) is beside.get(key, NEVER)
        strangers = {key for each in NOTIONS for key in each.model_fields} - notion.model_fields.keys()
        assert {rule_of(f"promise.{key}", [notion.name]) for key in strangers} <= {NEVER}


def test_a_key_tightened_in_opposite_directions_does_not_change(monkeypatch):
    class Opposite(WEvent):
        alpha: Annotated[int, RAISE] = 1

    monkeypatch.setattr("agedp_data.config.amendment.NOTIONS", (*NOTIONS[2:], Opposite))
    assert {notion.name for notion in (*NOTIONS[2:], Opposite)} > {"temporal", "w-event"}
    assert rule_of("promise.alpha", ["temporal", "w-event"]) is rule_of("promise.alpha") is NEVER
    assert (rule_of("promise.alpha", ["temporal"]), rule_of("promise.alpha", ["w-event"])) == (LOWER, RAISE)


def test_what_a_table_is_of_is_named_before_its_other_keys():
    weekly = {"statistic": "mean", "clamp_kwh": "20", "every": "week"}
    changes = amendment({"series": {"use": weekly}}, {"series": {"use": {"statistic": "coverage"}}})
    assert [change.key.rpartition(".")[2] for change in changes] == ["statistic", "clamp_kwh", "every"]
