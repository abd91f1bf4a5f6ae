from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from agedp_data.errors import ContractChanged, LedgerError, Refused
from agedp_data.ledger import Ledger
from tests.agedp_data.ledger.texts import promise

EVERYWHERE = True


def test_a_day_once_stored_is_read_again_and_neither_admitted_nor_drawn(book):
    with book.open() as ledger:
        first = book.add(ledger, 0)
        head = ledger.head()
        again = ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=book.never)
    with book.open() as ledger:
        later = ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=book.never)
        assert first == again == later
        assert ledger.head() == head == first.hash


def test_what_was_stored_comes_back_field_by_field(book):
    scale = math.nextafter(1 / 3, 1)
    with book.open() as ledger:
        given = book.planned(0, scale=scale, sensitivity=1, loss=3_000_000_000, cells=("é", 'a"b'))
        stored = ledger.release(
            book.homes,
            "mean",
            book.day(0),
            draw=lambda _: np.array([-(2**63), 2**63 - 1]),
            admit=lambda _: given,
        )
        assert stored == replace(given, values=(-(2**63), 2**63 - 1), seq=2, at=given.published_on, hash=stored.hash)
        assert stored.scale.hex() == scale.hex()
    with book.open() as ledger:
        assert ledger.rows() == (stored,)


def test_the_hash_is_sha256_of_the_previous_hash_and_the_sorted_json_of_the_fields(book):
    with book.open() as ledger:
        stored = book.add(ledger, 0)
    fields = {
        "at": "2025-01-08",
        "cells": ["all", "social"],
        "contract": book.contract,
        "day": "2025-01-01",
        "households": [5, 2],
        "input_ended_at": "2025-01-02T00:00:00Z",
        "loss": 750000000,
        "mechanism": "discrete-laplace",
        "model": "",
        "population": "london-homes",
        "published_on": "2025-01-08",
        "revision": 0,
        "scale": "4.0",
        "sensitivity": 3,
        "seq": 2,
        "series": "mean",
        "state": "released",
        "values": [100, 0],
    }
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    assert stored.hash == hashlib.sha256((book.contract + text).encode()).hexdigest()


def test_the_first_row_follows_sixty_four_zeros(book):
    promise = json.dumps(book.promise, sort_keys=True, separators=(",", ":"))
    fields = {"at": "2025-01-08", "population": "london-homes", "promise": promise, "seq": 1}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    assert book.contract == hashlib.sha256(("0" * 64 + text).encode()).hexdigest()
    with book.open() as ledger:
        assert ledger.id == ledger.head() == book.contract


def test_a_release_sees_the_whole_history_of_its_population_and_no_other(book):
    seen = []
    with book.open() as ledger:
        other = ledger.register(promise("elsewhere"), at=book.day(7))
        stored = [book.add(ledger, 0), book.add(ledger, 0, series="bins"), book.skip(ledger, 1)]
        book.add(ledger, 2, population="elsewhere", contract=other.hash)

        def admit(history):
            seen.append(history)
            return book.planned(3)

        ledger.release(book.homes, "mean", book.day(3), draw=lambda _: [1, 2], admit=admit)
    assert seen == [tuple(stored)]


def test_a_refusal_or_a_draw_that_fails_leaves_the_ledger_and_the_day_open(book):
    def refuse(_):
        raise Refused("2025-01-01 would exceed the window")

    def fail(_):
        raise OSError("no randomness")

    with book.open() as ledger:
        head = ledger.head()
        with pytest.raises(Refused, match="the window"):
            ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=refuse)
        with pytest.raises(OSError, match="no randomness"):
            ledger.release(book.homes, "mean", book.day(0), draw=fail, admit=lambda _: book.planned(0))
        assert (ledger.head(), ledger.verify()) == (head, ())
        assert book.add(ledger, 0).values == (100, 0)


def test_a_skipped_day_is_stored_without_a_draw(book):
    row = book.planned(0, state="skipped", cells=(), households=(), loss=0, scale=0.0)
    with book.open() as ledger:
        stored = ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=lambda _: row)
        assert (stored.state, stored.values, stored.loss) == ("skipped", (), 0)
        assert ledger.verify() == ()


WRONG_PLANS = [
    ({"loss": 749_999_999}, "loss 0.749999999 is below sensitivity 3 / scale 4.0"),
    ({"loss": 2**63}, "64 bits"),
    ({"scale": math.inf}, "not positive"),
    ({"scale": math.nan}, "not positive"),
    ({"scale": 0.0}, "not positive"),
    ({"sensitivity": 0}, "not positive"),
    ({"contract": "f" * 64}, "not the one in force"),
    ({"model": "f" * 64}, "model it names"),
    ({"published_on": "8 January"}, "published_on is not an ISO date"),
    ({"input_ended_at": "2025-01-02T00:00:00"}, "not a UTC instant"),
    ({"input_ended_at": "2025-01-02T00:00:00+01:00"}, "not a UTC instant"),
    ({"scale": 2.0**56, "loss": 1}, "beyond 2\\^55"),
    ({"sensitivity": 2**62 + 1}, "beyond 2\\^62"),
    ({"day": "9999-12-31"}, "admitted"),
    ({"published_on": "9999-12-31"}, "published_on is not an ISO date"),
    ({"input_ended_at": "9999-12-31T00:00:00Z"}, "not a UTC instant"),
    ({"input_ended_at": "2025-01-02T00:00:00+00:00"}, "not a UTC instant"),
    ({"households": (5, 0)}, "households is not from 1"),
    ({"cells": ("all",)}, "1 cells"),
    ({"cells": ("all", "all")}, "named twice"),
    ({"households": (5, -1)}, "households is not from 1"),
    ({"state": "planned"}, "state"),
    ({"series": "other"}, "admitted"),
    ({"revision": 1}, "admitted"),
    ({"values": (1, 2)}, "before the draw"),
    ({"state": "skipped"}, "skipped day with cells, values or a loss"),
]
WRONG_DRAWS = [
    ([1], LedgerError), ([1, 2, 3], LedgerError), ([1, 2**63], LedgerError), ([], LedgerError),
    ([1.5, 2.0], TypeError),
]  # fmt: skip


def test_what_breaks_a_rule_of_the_ledger_is_neither_drawn_nor_stored(book):
    with book.open() as ledger:
        for changed, message in WRONG_PLANS:
            row = book.planned(0, **changed)
            with pytest.raises(LedgerError, match=message):
                ledger.release(book.homes, "mean", book.day(0), draw=book.never, admit=lambda _, row=row: row)
        for values, kind in WRONG_DRAWS:
            with pytest.raises(kind):
                ledger.release(
                    book.homes, "mean", book.day(0), draw=lambda _, v=values: v, admit=lambda _: book.planned(0)
                )
        assert ledger.length() == 1


def test_published_on_never_runs_backwards_and_the_refusal_names_both_dates(book):
    with book.open() as ledger:
        book.add(ledger, 3)
        with pytest.raises(LedgerError, match=r"2025-01-10, before 2025-01-11"):
            book.add(ledger, 2, published_on="2025-01-10")
        assert book.add(ledger, 2, published_on="2025-01-11").seq == 3


def test_the_same_promise_is_registered_once(book):
    with book.open() as ledger:
        reordered = dict(reversed(book.promise.items()))
        again = ledger.register(reordered, population=book.homes, at=book.day(99))
        assert (again.hash, again.at) == (book.contract, book.day(7))
        assert ledger.length() == 1


def test_another_promise_is_refused_key_by_key_and_nothing_is_written(book):
    changed = promise(epsilon="0.6", cap=2, series=("mean",)) | {"tags": ["a", "b"]}
    with book.open() as ledger:
        with pytest.raises(ContractChanged) as caught:
            ledger.register(changed, population=book.homes, at=book.day(8))
        assert ledger.length() == 1
    for line in (
        "promise.cap: (absent) -> 2",
        'promise.epsilon: "0.5" -> "0.6"',
        'series.bins.share: "1" -> (absent)',
        'tags: (absent) -> ["a","b"]',
    ):
        assert line in str(caught.value)
    assert "notion" not in str(caught.value)
    assert caught.value.exit_status == 3


def test_a_promise_has_no_floats_and_nothing_without_one_text(book):
    with book.open() as ledger:
        for value in (0.5, None, b"x", {1: "a"}):
            with pytest.raises(TypeError, match="canonical text"):
                ledger.register({"promise": value}, population="others", at=book.day(8))


def test_a_model_is_named_by_the_hash_of_its_public_part_and_stored_once(book):
    with book.open() as ledger:
        model = ledger.register_model(book.leakage_bound, at=book.day(7))
        assert model.model == hashlib.sha256(book.leakage_bound.encode()).hexdigest()
        assert ledger.register_model(book.leakage_bound, at=book.day(8)) == model
        assert ledger.models() == (model,)


def test_a_statement_is_stored_when_it_says_something_new(book):
    with book.open() as ledger:
        kept = [
            ledger.record(
                book.claim(title), population=book.homes, files={"a": book.digest}, software="1", at=book.day(8)
            ).seq
            for title in ("one", "one", "two", "one")
        ]
        assert kept == [2, 2, 3, 4]
        assert [json.loads(each.claim)["title"] for each in ledger.statements(book.homes)] == ["one", "two", "one"]
        assert ledger.statements("elsewhere") == ()


def test_two_open_ledgers_see_each_others_rows(book):
    with book.open() as one, book.open() as two:
        stored = [book.add(one, 0), book.add(two, 1), book.add(one, 2)]
        assert [row.seq for row in stored] == [2, 3, 4]
        assert one.rows() == two.rows() == tuple(stored)
        assert one.rows(book.homes, "bins") == ()


def test_every_head_that_there_was_lies_on_the_chain_and_no_other(full):
    with full.open() as ledger:
        heads = [row.hash for row in ledger.rows()]
        assert all(ledger.contains(head) for head in [*heads, full.contract, "0" * 64])
        assert not ledger.contains("f" * 64)


def test_an_empty_ledger_has_no_rows_no_id_and_no_faults(place):
    assert not Ledger.exists(place)
    with Ledger.open(place, create=True) as ledger:
        assert (ledger.head(), ledger.length(), ledger.id, ledger.rows()) == ("0" * 64, 0, "", ())
        assert ledger.verify() == ()
