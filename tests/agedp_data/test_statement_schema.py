"""The JSON schema of statement.json: every key is described, none can be missing or another, and it is a schema."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest

from agedp_data.notions.notion import LossBound
from agedp_data.statement.document import SCHEMA, ContractVersion, read_statement, schema
from agedp_data.statement.facts import SeriesEnd, StatementFacts, build_statement

CHECK = jsonschema.Draft202012Validator(schema())
PROMISE = {
    "version": 1,
    "input": {"dataset": "london"},
    "population": {"name": "homes", "min_households": 3},
    "schedule": {"mode": "archive", "first_day": "2013-01-01", "last_day": "2013-01-02"},
    "promise": {"notion": "classical", "max_day_epsilon": "0.5", "epsilon_total": "unlimited"},
    "series": {"use": {"statistic": "mean", "clamp_kwh": "50", "share": "1", "max_missing": 2, "missing_kwh": "0"}},
}
FACTS = StatementFacts(
    title={"title": "T", "source": "S", "licence": "CC-BY-4.0", "contact": "us"},
    contract=PROMISE,
    days=("2013-01-01",),
    skipped=("2013-01-02",),
    published_on=("2026-01-01",),
    bounds=[
        LossBound("day", 5 * 10**8, "assumption-free", "any one day"),
        LossBound("total", 182_500_000_000, "assumption-free", "all days"),
        LossBound("risk", None, "conditional", "the current day", "chains hold"),
    ],
    limits={"day": 5 * 10**8, "total": None},
    ending=SeriesEnd("2013-01-02", "period", None),
    model={"source": "declared", "assume": "curve", "basis": "made up", "envelope": {}},
    notes=("note",),
    ledger_id="ab" * 32,
    head="cd" * 32,
    versions=[ContractVersion(registered="2026-01-01", changes=[])],
    software={"agedp": "1"},
    other_populations=1,
)
CLAIM = build_statement(FACTS).content()


def test_it_is_a_schema_of_the_form_that_statements_name():
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["properties"]["schema"]["const"] == SCHEMA == CLAIM["schema"]
    shipped = files("agedp_data").joinpath("schemas", "statement-2.json")
    assert shipped.read_text() == json.dumps(schema(), indent=1) + "\n"  # write that text if the model changed


@pytest.mark.parametrize(
    "facts",
    [
        FACTS,
        replace(FACTS, title={}, model=None, notes=(), days=(), published_on=(), ending=SeriesEnd("", "", 9)),
        replace(FACTS, contract={**PROMISE, "schedule": {**PROMISE["schedule"], "mode": "rehearsal"}}),
    ],
)
def test_every_statement_is_of_that_form(facts):
    CHECK.validate(build_statement(facts).content())


@pytest.mark.parametrize("facts", [FACTS, replace(FACTS, title={}, model=None)])
def test_a_statement_that_is_read_is_written_out_as_it_was(facts):
    later = build_statement(facts).content() | {"key_of_a_later_version": {"more": [1]}}
    later["contract"]["series"]["use"]["later"] = "1"
    later["figures"][0]["delta"] = "0"
    assert json.loads(read_statement(json.dumps(later)).text()) == later


@pytest.mark.parametrize("key", ["from_whom", "versions", "ending", "second_population", "software"])
def test_a_statement_of_the_first_schema_lacks_keys_and_is_read(key):
    claim = {name: value for name, value in CLAIM.items() if name != key}
    claim["figures"] = [
        {name: text for name, text in figure.items() if name not in ("factor", "limit")} for figure in CLAIM["figures"]
    ]
    assert read_statement(json.dumps(claim)).content() == claim


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("figures", 0, "epsilon"), "1e9"),
        (("figures", 0, "epsilon"), "9" * 501),
        (("days", "first"), "2013-02-30"),
        (("days", "skipped"), ["9999-12-31"]),
        (("ledger", "head"), "ab"),
        (("contract", "promise", "max_day_epsilon"), "much"),
        (("contract", "schedule", "first_day"), "today"),
        (("population",), 3),
    ],
)
def test_a_statement_of_another_form_is_refused_by_its_key(path, value):
    claim = copy.deepcopy(CLAIM)
    at(claim, path[:-1])[path[-1]] = value
    with pytest.raises(ValueError, match=r"the statement is not as agedp writes one: " + r"\.".join(map(str, path))):
        read_statement(json.dumps(claim))


def keys_of(value, path=()):
    """Yield the path of every key of a statement, of the first item of its lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from keys_of(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from keys_of(value[0], (*path, 0))


def at(value, path):
    for key in path:
        value = value[key]
    return value


FREE = {("title",), ("source",), ("licence",), ("contact",)}
LEFT_TO_THE_RUN_FILE = ("contract", "model", "software")


@pytest.mark.parametrize("path", [path for path in keys_of(CLAIM) if path[0] not in LEFT_TO_THE_RUN_FILE])
def test_no_key_may_be_missing_misspelt_or_of_another_kind(path):
    for edit in ("missing", "misspelt", "other"):
        claim = copy.deepcopy(CLAIM)
        above = at(claim, path[:-1])
        value = above.pop(path[-1])
        if edit == "misspelt":
            above[f"{path[-1]}x"] = value
        if edit == "other":
            above[path[-1]] = 1.5
        assert CHECK.is_valid(claim) == (edit == "missing" and path in FREE), (path, edit)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("figures", 0, "epsilon"), "0.50"),
        (("figures", 0, "epsilon"), "-1"),
        (("figures", 0, "epsilon"), "1e-9"),
        (("figures", 0, "epsilon"), "0.1234567891"),
        (("figures", 0, "kind"), "indicative"),
        (("figures", 0, "assumption"), "chains hold"),
        (("figures", 2, "assumption"), ""),
        (("figures", 0, "factor"), "1.6"),
        (("ending", "because"), "whim"),
        (("ending", "last_day"), "tomorrow"),
        (("days", "skipped"), ["2013-01-02", "2013-01-02"]),
        (("ledger", "head"), "ab"),
        (("model",), {"source": "guessed", "assume": "curve"}),
        (("model",), {"source": "declared"}),
        (("contract", "promise"), {"notion": "classical"}),
        (("contract", "series"), {}),
        (("contract", "output"), {}),
        (("rehearsal",), 2),
    ],
)
def test_values_out_of_range_are_found(path, value):
    claim = copy.deepcopy(CLAIM)
    at(claim, path[:-1])[path[-1]] = value
    assert not CHECK.is_valid(claim)


def test_every_key_says_what_it_means():
    def described(part, name):
        for key, inner in part.get("properties", {}).items():
            given = schema()["$defs"][inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
            text = inner.get("description") or given.get("description")
            enough = {"mode", "statistic"}
            assert text or key in enough, f"{name}.{key}"
            described(inner, f"{name}.{key}")
            described(inner.get("items", {}), f"{name}.{key}[]")

    described(schema(), "")
    for name, part in schema()["$defs"].items():
        described(part, name)
