"""A chain made anew behind an edit is found where a row's meaning is impossible, or its texts have another form."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.agedp_data.ledger.forging import faults, rechain


def test_the_forger_of_these_tests_knows_how_to_chain(full):
    rechain(full, 7, "software", "2")
    assert faults(full) == ()


@pytest.mark.parametrize(
    ("seq", "column", "value", "said"),
    [
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
    ],
)
def test_a_forged_chain_is_found_where_its_meaning_is_impossible(full, seq, column, value, said):
    rechain(full, seq, column, value)
    assert any(fault.seq == seq and said in fault.problem for fault in faults(full)), faults(full)


def test_a_fault_is_a_line_that_can_be_read_whatever_stands_in_the_row(full):
    rechain(full, 3, "published_on", "x" * 5000)
    rechain(full, 4, "series", "y" * 5000)
    assert max(len(fault.problem) for fault in faults(full)) < 300


def other(text, change):
    said = json.loads(text)
    change(said)
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said.pop("population"), "population: Field required"),
        (lambda said: said["population"].update(name="others"), "name different populations"),
        (lambda said: said["population"].update(min_households="3"), "population.min_households"),
        (lambda said: said["population"].update(min_households=0), "population.min_households"),
        (lambda said: said["population"].update(min_households=True), "population.min_households"),
        (lambda said: said.update(series=["mean"]), "series"),
        (lambda said: said.update(series={}), "series"),
        (lambda said: said["series"].update(mean={}), "series.mean.statistic"),
        (lambda said: said["series"]["mean"].update(share="half"), "series.mean.share"),
        (lambda said: said["series"]["mean"].update(by=1), "series.mean.by"),
        (lambda said: said["schedule"].update(first_day="9999-12-31"), "schedule.first_day"),
        (lambda said: said["schedule"].update(last_day=20261231), "schedule.last_day"),
        (lambda said: said["promise"].update(age_days=10**9), "promise.age_days"),
        (lambda said: said["promise"].update(epsilon_total=9), "promise.epsilon_total"),
        (lambda said: said.update(model="f"), "model"),
        (lambda said: said.update(model={"hash": "f" * 64}), "the model it names is not in the ledger"),
        (lambda said: said["input"].update(columns={"missing": 1}), "input.columns"),
        (lambda said: said.update(more=None), "not canonical JSON"),
        (lambda said: said.update(more="\ud800"), "not canonical JSON"),
        (lambda said: said.update(more=json.loads("[" * 40 + "]" * 40)), "not canonical JSON"),
    ],
)
def test_a_promise_of_another_form_is_one_fault_of_its_row(full, change, said):
    rechain(full, 1, "promise", other(json.dumps(full.promise), change))
    found = [fault.problem for fault in faults(full) if fault.seq == 1]
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said.pop("ledger"), "ledger: Field required"),
        (lambda said: said["ledger"].update(head=7), "ledger.head"),
        (lambda said: said["ledger"].update(head="f" * 64), "the head that the statement names"),
        (lambda said: said.update(population="others"), "name different populations"),
        (lambda said: said.update(version="2"), "version"),
        (lambda said: said["days"].pop("released"), "days.released"),
        (lambda said: said["days"].update(first="2025-02-30"), "days.first"),
        (lambda said: said.update(figures=[{}]), "figures.0.name"),
        (lambda said: said.update(notes="none"), "notes"),
        (lambda said: said["contract"].pop("input"), "contract.input"),
        (lambda said: said.update(title=["x"]), "title"),
        (lambda said: said.update(title="\udfff"), "not canonical JSON"),
        (lambda said: said.update(title=0.5), "not canonical JSON"),
    ],
)
def test_a_claim_of_another_form_is_one_fault_of_its_row(full, change, said):
    rechain(full, 7, "claim", other(full.claim("claim 2"), change))
    [fault] = faults(full)
    assert fault.seq == 7
    assert said in fault.problem


@pytest.mark.parametrize("claim", ["", "null", "[]", '"x"', "{}", "NaN", "[" * 5000, "1" * 5000, "{"])
def test_a_claim_that_is_no_object_is_one_fault_of_its_row(full, claim):
    rechain(full, 7, "claim", claim)
    [fault] = faults(full)
    assert (fault.seq, len(fault.problem) < 300) == (7, True)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.pop("envelope"),
        lambda said: said.update(envelope=[]),
        lambda said: said["envelope"].update(ages=[]),
        lambda said: said["envelope"].update(ages=[10**30]),
        lambda said: said["envelope"].update(bounds={}),
        lambda said: said["envelope"].update(steps_per_day=10**30),
        lambda said: said["envelope"].update(losses=["many"]),
        lambda said: said["envelope"].update(more=1),
        lambda said: said["envelope"].update(assume=["curve"]),
    ],
)
def test_a_model_without_an_envelope_is_one_fault_of_its_row(full, change):
    leakage_bound = other(full.leakage_bound, change)
    rechain(full, 2, "envelope", leakage_bound, model=hashlib.sha256(leakage_bound.encode()).hexdigest())
    [fault] = [fault for fault in faults(full) if fault.seq == 2]
    assert fault.problem.startswith("the model ")
