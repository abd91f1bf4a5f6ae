"""A chain made anew behind an edit is found where a row's meaning is impossible, or its texts have another form."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.agedp_data.ledger.behind import faults, rechain


@pytest.fixture
def forge(full):
    """Return what changes a value of the sound ledger, makes the chain anew and returns the faults of the row."""
    sound = full.path.read_bytes()

    def forged(seq, column, value, **more):
        full.path.write_bytes(sound)
        rechain(full, seq, column, value, **more)
        return [fault.problem for fault in faults(full) if fault.seq == seq]

    return forged


IMPOSSIBLE = [
    (3, "loss", 749_999_999, "below sensitivity"), (3, "values", [1], "1 values"),
    (3, "state", "skipped", "skipped day with cells"), (3, "population", "elsewhere", "not the one in force"),
    (4, "published_on", "2025-01-01", "before 2025-01-08"), (4, "day", "2025-1-2", "day is not"),
    (4, "day", "9999-12-31", "day is not"), (4, "input_ended_at", "0001-01-01T00:00:00Z", "not a UTC instant"),
    (3, "households", [5, 2**70], "households is not from 1"), (3, "cells", ["all", "\ud800"], "cells does not hold"),
    (3, "revision", 2**40, "beyond 32 bits"), (3, "series", "other", "its contract has no series 'other'"),
    (2, "envelope", "{}", "not the hash of its public part"), (1, "promise", "[ ]", "not canonical"),
    (6, "files", {"statement.json": 1}, "files does not hold"), (6, "files", {"a": "1"}, "has no SHA-256"),
    (6, "files", [1, 2], "files does not hold"), (6, "files", [["statement.json", "0"]], "files does not hold"),
    (6, "at", "yesterday", "at is not"), (6, "at", "9999-12-31", "at is not"),
]  # fmt: skip


def test_a_forged_chain_is_found_where_its_meaning_is_impossible(full, forge):
    assert forge(7, "software", "2") == []  # the forger knows how to chain
    for seq, column, value, message in IMPOSSIBLE:
        problems = forge(seq, column, value)
        assert any(message in problem for problem in problems), (seq, column, value, problems)
    for column in ("published_on", "series"):
        assert max(map(len, forge(3, column, "x" * 5000))) < 300


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


DEEP = json.loads("[" * 40 + "]" * 40)
PROMISES = [
    ("population", ..., "population: Field required"), ("population.name", "others", "name different populations"),
    *(("population.min_households", value, "population.min_households") for value in ("3", 0, True)),
    ("series", ["mean"], "series"), ("series", {}, "series"), ("series.mean", {}, "series.mean.statistic"),
    ("series.mean.share", "half", "series.mean.share"), ("series.mean.by", 1, "series.mean.by"),
    ("schedule.first_day", "9999-12-31", "schedule.first_day"), ("promise.age_days", 10**9, "promise.age_days"),
    ("promise.epsilon_total", 9, "promise.epsilon_total"), ("model", "f", "model"),
    ("model", {"hash": "f" * 64}, "the model it names is not in the ledger"),
    ("input.columns", {"missing": 1}, "input.columns"),
    *(("more", value, "not canonical JSON") for value in (None, "\ud800", DEEP)),
]  # fmt: skip
CLAIMS = [
    ("ledger", ..., "ledger: Field required"), ("ledger.head", 7, "ledger.head"),
    ("ledger.head", "f" * 64, "the head that the statement names"),
    ("population", "others", "name different populations"), ("version", "2", "version"),
    ("days.first", "2025-02-30", "days.first"), ("figures", [{}], "figures.0.name"), ("notes", "none", "notes"),
    ("contract.input", ..., "contract.input"), ("title", ["x"], "title"), ("title", 0.5, "not canonical JSON"),
]  # fmt: skip
MODELS = [
    ("envelope", ...), ("envelope", []), ("envelope.ages", []), ("envelope.ages", [10**30]), ("envelope.bounds", {}),
    ("envelope.steps_per_day", 10**30), ("envelope.losses", ["many"]), ("envelope.more", 1),
    ("envelope.assume", ["curve"]),
]  # fmt: skip


def test_a_text_of_another_form_is_one_fault_of_its_row(full, forge):
    documents = ((1, "promise", json.dumps(full.promise), PROMISES), (7, "claim", full.claim("claim 2"), CLAIMS))
    for seq, column, text, rows in documents:
        for path, value, message in rows:
            [problem] = forge(seq, column, changed(text, path, value))
            assert message in problem, (path, value)
    for claim in ("", "null", '"x"', "{}", "NaN", "[" * 5000, "1" * 5000):
        [problem] = forge(7, "claim", claim)
        assert len(problem) < 300, claim
    for path, value in MODELS:
        text = changed(full.leakage_bound, path, value)
        [problem] = forge(2, "envelope", text, model=hashlib.sha256(text.encode()).hexdigest())
        assert problem.startswith("the model "), (path, value)
