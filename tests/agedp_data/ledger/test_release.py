"""What a ledger takes, stores and refuses: a day is drawn once, within the rules, and read for ever."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from agedp_data.errors import ContractChanged, LedgerError, Refused
from agedp_data.ledger import Ledger
from agedp_data.ledger.records import header_of
from tests.agedp_data.ledger.conftest import everywhere
from tests.agedp_data.ledger.texts import promise


@everywhere
def test_a_day_once_stored_is_read_again_and_not_drawn(book):
    with book.open() as ledger:
        first = book.add(ledger, 0)
        again = ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=book.never)
    with book.open() as ledger:
        later = ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=book.never)
        assert first == again == later
        assert (ledger.head(), ledger.length()) == (first.hash, 2)


@everywhere
def test_what_was_stored_comes_back_field_by_field(book):
    scale, ends = math.nextafter(1 / 3, 1), [-(2**63), 2**63 - 1]
    changed = {"scale": scale, "sensitivity": 1, "loss": 3_000_000_000, "cells": ("é", 'a"b')}
    with book.open() as ledger:
        stored = book.release(ledger, 0, lambda _: np.array(ends), **changed)
        given = book.planned(0, **changed)
        assert stored == replace(given, values=tuple(ends), seq=2, at=given.published_on, hash=stored.hash)
        assert stored.scale.hex() == scale.hex()
    with book.open() as ledger:
        assert ledger.rows() == (stored,)


def sha256_of(previous, fields):
    return hashlib.sha256((previous + json.dumps(fields, sort_keys=True, separators=(",", ":"))).encode()).hexdigest()


def test_a_hash_is_sha256_of_the_one_before_and_the_sorted_json(book):
    text = json.dumps(book.promise, sort_keys=True, separators=(",", ":"))
    contract = {"at": "2025-01-08", "population": "london-homes", "promise": text, "seq": 1}
    assert book.contract == sha256_of("0" * 64, contract)
    with book.open() as ledger:
        assert ledger.id == ledger.head() == book.contract
        stored = book.add(ledger, 0)
    assert stored.hash == sha256_of(book.contract, {
        "at": "2025-01-08", "cells": ["all", "social"], "contract": book.contract, "day": "2025-01-01",
        "households": [5, 2], "input_ended_at": "2025-01-02T00:00:00Z", "loss": 750000000,
        "mechanism": "discrete-laplace", "model": "", "population": "london-homes", "published_on": "2025-01-08",
        "revision": 0, "scale": "4.0", "sensitivity": 3, "seq": 2, "series": "mean", "state": "released",
        "values": [100, 0],
    })  # fmt: skip


def test_a_release_sees_all_of_its_population_and_no_other(book):
    seen = []
    with book.open() as ledger, book.open() as second:
        other = ledger.register(promise("elsewhere"), at=book.day(7))
        stored = [book.add(ledger, 0), book.add(second, 0, series="bins"), book.skip(ledger, 1)]
        book.add(second, 2, population="elsewhere", contract=other.hash)
        admit = lambda rows: seen.append(rows) or book.planned(3)  # noqa: E731
        ledger.release(book.homes, "mean", book.day(3), draw=lambda _: [1, 2], admit=admit)
        assert seen == [tuple(map(header_of, stored))]
        assert ledger.rows() == second.rows()
        assert ledger.rows(book.homes, "bins") == (stored[1],)
        assert ledger.contains("0" * 64)
        assert not ledger.contains("f" * 64)


def test_a_refusal_or_a_draw_that_fails_leaves_the_day_open(book):
    def fail(_):
        raise OSError("no randomness")

    def refuse(_):
        raise Refused("2025-01-01 would exceed the window")

    with book.open() as ledger:
        with pytest.raises(Refused, match="the window"):
            ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=refuse)
        with pytest.raises(OSError, match="no randomness"):
            book.release(ledger, 0, fail)
        assert (ledger.head(), ledger.verify()) == (book.contract, ())
        assert book.add(ledger, 0).values == (100, 0)


WRONG_PLANS = [
    ({"loss": 749_999_999}, "loss 0.749999999 is below sensitivity 3 / scale 4.0"), ({"loss": 2**63}, "64 bits"),
    ({"scale": math.nextafter(4, 0)}, "below sensitivity"), ({"sensitivity": 4}, "below sensitivity"),
    ({"scale": math.inf}, "not positive"), ({"scale": math.nan}, "not positive"), ({"scale": 0.0}, "not positive"),
    ({"sensitivity": 0}, "not positive"), ({"sensitivity": 2**62 + 1}, "beyond 2\\^62"),
    ({"scale": 2.0**56, "loss": 1}, "beyond 2\\^55"), ({"contract": "f" * 64}, "not the one in force"),
    ({"model": "f" * 64}, "model it names"), ({"published_on": "8 January"}, "published_on is not an ISO date"),
    ({"published_on": "9999-12-31"}, "published_on is not an ISO date"), ({"day": "9999-12-31"}, "admitted"),
    *(({"input_ended_at": text}, "not a UTC instant") for text in (
        "2025-01-02T00:00:00", "2025-01-02T00:00:00+01:00", "2025-01-02T00:00:00+00:00", "9999-12-31T00:00:00Z")),
    ({"households": (5, 0)}, "households is not from 1"), ({"households": (5, 10**9 + 1)}, "households is not from 1"),
    ({"cells": ("all",)}, "1 cells"), ({"cells": ("all", "all")}, "named twice"), ({"state": "planned"}, "state"),
    ({"series": "other"}, "admitted"), ({"revision": 1}, "admitted"), ({"values": (1, 2)}, "before the draw"),
    ({"state": "skipped"}, "skipped day with cells, values or a loss"),
]  # fmt: skip
WRONG_DRAWS = [([1], LedgerError), ([1, 2, 3], LedgerError), ([1, 2**63], LedgerError), ([1.5, 2.0], TypeError)]


def test_what_breaks_a_rule_is_neither_drawn_nor_stored(book):
    with book.open() as ledger:
        for changed, message in WRONG_PLANS:
            row = book.planned(0, **changed)
            with pytest.raises(LedgerError, match=message):
                ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=lambda _, row=row: row)
        for values, kind in WRONG_DRAWS:
            with pytest.raises(kind):
                book.release(ledger, 0, lambda _, values=values: values)
        assert ledger.length() == 1


def test_published_on_never_runs_backwards(book):
    with book.open() as ledger:
        book.add(ledger, 3)
        with pytest.raises(LedgerError, match=r"2025-01-10, before 2025-01-11"):
            book.add(ledger, 2, published_on="2025-01-10")
        assert book.add(ledger, 2, published_on="2025-01-11").seq == 3


def test_another_promise_is_refused_key_by_key(book):
    changed = promise(epsilon="0.6", cap=2, series=("mean",)) | {"tags": ["a", "b"]}
    with book.open() as ledger:
        again = ledger.register(dict(reversed(book.promise.items())), population=book.homes, at=book.day(99))
        assert (again.hash, again.at) == (book.contract, book.day(7))
        with pytest.raises(ContractChanged) as caught:
            ledger.register(changed, population=book.homes, at=book.day(8))
        for value in (0.5, None, {1: "a"}):
            with pytest.raises(TypeError, match="canonical text"):
                ledger.register({"promise": value}, population="others", at=book.day(8))
        assert ledger.length() == 1
    for line in (
        *("promise.cap: (absent) -> 2", 'promise.epsilon: "0.5" -> "0.6"', 'series.bins.share: "1" -> (absent)'),
        'tags: (absent) -> ["a","b"]',
    ):
        assert line in str(caught.value)
    assert "notion" not in str(caught.value)


def test_models_and_statements_are_stored_when_they_are_new(book):
    with book.open() as ledger:
        model = ledger.register_model(book.leakage_bound, at=book.day(7))
        assert model.model == hashlib.sha256(book.leakage_bound.encode()).hexdigest()
        assert ledger.register_model(book.leakage_bound, at=book.day(8)) == model
        assert ledger.models() == (model,)
        titles = ("one", "one", "two", "one")
        assert [book.record(ledger, book.claim(title)).seq for title in titles] == [3, 3, 4, 5]
        assert [json.loads(row.claim)["title"] for row in ledger.statements(book.homes)] == ["one", "two", "one"]
        assert ledger.statements("elsewhere") == ()


@everywhere
def test_an_empty_ledger_has_no_rows_no_id_and_no_faults(place):
    assert not Ledger.exists(place)
    with Ledger.open(place, create=True) as ledger:
        assert (ledger.head(), ledger.length(), ledger.id, ledger.rows()) == ("0" * 64, 0, "", ())
        assert ledger.verify() == ()
