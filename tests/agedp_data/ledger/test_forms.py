"""A chain made anew behind an edit is found where a row's meaning is impossible, or its texts have another form."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.agedp_data.ledger.behind import faults, rechain


def test_the_forger_of_these_tests_knows_how_to_chain(full):
    rechain(full, 7, "software", "2")
    assert faults(full) == ()


IMPOSSIBLE = [
    (3, "loss", 749_999_999, "below sensitivity"),
    (3, "scale", "3.9999999", "below sensitivity"),
    (3, "sensitivity", 4, "below sensitivity"),
    (3, "values", [1], "1 values"),
    (3, "state", "skipped", "skipped day with cells"),
    (3, "population", "elsewhere", "not the one in force"),
    (3, "contract", "f" * 64, "not the one in force"),
    (4, "model", "f" * 64, "model it names"),
    (4, "published_on", "2025-01-01", "before 2025-01-08"),
    (4, "day", "2025-1-2", "day is not"),
    (2, "envelope", "{}", "not the hash of its public part"),
    (1, "promise", "[ ]", "not canonical"),
    (6, "files", {"statement.json": 1}, "files does not hold"),
    (6, "files", {"statement.json": "1"}, "has no SHA-256"),
    (6, "at", "yesterday", "at is not"),
    (6, "at", "9999-12-31", "at is not"),
    (3, "series", "other", "its contract has no series 'other'"),
    (3, "households", [5, 0], "households is not from 1"),
    (3, "households", [5, 2**70], "households is not from 1"),
    (3, "cells", ["all", "\ud800"], "cells does not hold"),
    (3, "revision", 2**40, "beyond 32 bits"),
    (4, "day", "9999-12-31", "day is not"),
    (4, "input_ended_at", "0001-01-01T00:00:00Z", "not a UTC instant"),
]


@pytest.fixture
def forged(full):
    """Return what changes a value of the sound ledger, makes the chain anew and returns the faults of the row."""
    sound = full.path.read_bytes()

    def forge(seq, column, value, **more):
        full.path.write_bytes(sound)
        rechain(full, seq, column, value, **more)
        return [fault.problem for fault in faults(full) if fault.seq == seq]

    return forge


def test_a_forged_chain_is_found_where_its_meaning_is_impossible(forged):
    for seq, column, value, message in IMPOSSIBLE:
        problems = forged(seq, column, value)
        assert any(message in problem for problem in problems), (seq, column, value, problems)


def test_a_fault_is_a_line_that_can_be_read_whatever_stands_in_the_row(full):
    rechain(full, 3, "published_on", "x" * 5000)
    rechain(full, 4, "series", "y" * 5000)
    assert max(len(fault.problem) for fault in faults(full)) < 300


def changed(text, path, value=...):
    """Return a document with another value at a dotted path, or without it."""
    document = part = json.loads(text)
    *above, last = path.split(".")
    for key in above:
        part = part[key]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


PROMISES = [
    ("population", ..., "population: Field required"),
    ("population.name", "others", "name different populations"),
    ("population.min_households", "3", "population.min_households"),
    ("population.min_households", 0, "population.min_households"),
    ("population.min_households", True, "population.min_households"),
    ("series", ["mean"], "series"),
    ("series", {}, "series"),
    ("series.mean", {}, "series.mean.statistic"),
    ("series.mean.share", "half", "series.mean.share"),
    ("series.mean.by", 1, "series.mean.by"),
    ("schedule.first_day", "9999-12-31", "schedule.first_day"),
    ("schedule.last_day", 20261231, "schedule.last_day"),
    ("promise.age_days", 10**9, "promise.age_days"),
    ("promise.epsilon_total", 9, "promise.epsilon_total"),
    ("model", "f", "model"),
    ("model", {"hash": "f" * 64}, "the model it names is not in the ledger"),
    ("input.columns", {"missing": 1}, "input.columns"),
    ("more", None, "not canonical JSON"),
    ("more", "\ud800", "not canonical JSON"),
    ("more", json.loads("[" * 40 + "]" * 40), "not canonical JSON"),
]
CLAIMS = [
    ("ledger", ..., "ledger: Field required"),
    ("ledger.head", 7, "ledger.head"),
    ("ledger.head", "f" * 64, "the head that the statement names"),
    ("population", "others", "name different populations"),
    ("version", "2", "version"),
    ("days.released", ..., "days.released"),
    ("days.first", "2025-02-30", "days.first"),
    ("figures", [{}], "figures.0.name"),
    ("notes", "none", "notes"),
    ("contract.input", ..., "contract.input"),
    ("title", ["x"], "title"),
    ("title", "\udfff", "not canonical JSON"),
    ("title", 0.5, "not canonical JSON"),
]
MODELS = [
    ("envelope", ...),
    ("envelope", []),
    ("envelope.ages", []),
    ("envelope.ages", [10**30]),
    ("envelope.bounds", {}),
    ("envelope.steps_per_day", 10**30),
    ("envelope.losses", ["many"]),
    ("envelope.more", 1),
    ("envelope.assume", ["curve"]),
]
NO_OBJECTS = ["", "null", "[]", '"x"', "{}", "NaN", "[" * 5000, "1" * 5000, "{"]


def test_a_promise_or_claim_of_another_form_is_one_fault_of_its_row(full, forged):
    documents = ((1, "promise", json.dumps(full.promise), PROMISES), (7, "claim", full.claim("claim 2"), CLAIMS))
    for seq, column, text, rows in documents:
        for path, value, message in rows:
            [problem] = forged(seq, column, changed(text, path, value))
            assert message in problem, (path, value)
    for claim in NO_OBJECTS:
        [problem] = forged(7, "claim", claim)
        assert len(problem) < 300, claim


def test_a_model_without_a_leakage_bound_is_one_fault_of_its_row(full, forged):
    for path, value in MODELS:
        text = changed(full.leakage_bound, path, value)
        [problem] = forged(2, "envelope", text, model=hashlib.sha256(text.encode()).hexdigest())
        assert problem.startswith("the model "), (path, value)
