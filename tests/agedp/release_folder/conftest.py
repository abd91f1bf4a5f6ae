"""Contracts of a population with series, schedule and dataset as a test needs them, and its statement."""

from __future__ import annotations

import json
from datetime import date

import pytest

from agedp_data.ledger import ContractRecord

FIRST = date(2013, 1, 1)


@pytest.fixture(scope="session")
def statement(published_twice):
    return published_twice.release.read_statement()


@pytest.fixture(scope="session")
def contract(published_twice):
    rows = published_twice.release.ledger_rows().rows
    text = json.loads(next(row for row in rows if isinstance(row, ContractRecord)).promise)

    def changed(last=None, *, number=1, seq=1, first=FIRST, dataset="london", **series):
        schedule = {"mode": "live", "first_day": str(first), **({"last_day": str(last)} if last else {})}
        terms = {"schedule": schedule, "input": {"dataset": dataset}, "series": series}
        return ContractRecord("homes", json.dumps({**text, **terms}), seq=seq, hash=f"contract {number}")

    return changed
