"""One pass over files says what the store says: daily sums and transitions, whatever the order of the rows."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from agedp.compute.engine_settings import Engine
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from tests.benchmarks import one_pass as tallying
from tests.benchmarks.one_pass import Tally, tally

EDGES = [100.0, 200.0, 400.0]


def same(one: Tally, other: Tally) -> bool:
    fields = ("household", "day", "energy_wh", "readings", "counts")
    return one.ids == other.ids and all(np.array_equal(getattr(one, f), getattr(other, f)) for f in fields)


def one_pass(folder: Path, dataset: str, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> Tally:
    with monkeypatch.context() as patch:
        patch.delattr(tallying, "_tally_by_store")
        return tally([str(folder)], dataset=dataset, edges=EDGES, engine=Engine("threads", 2, block_bytes))


def stored(folder: Path, dataset: str, monkeypatch: pytest.MonkeyPatch) -> Tally:
    def contest(*_: object) -> None:
        raise tallying._ConflictingParts

    with monkeypatch.context() as patch:
        patch.setattr(tallying, "_tally_files", contest)
        return tally([str(folder)], dataset=dataset, edges=EDGES, engine=Engine())


@pytest.mark.parametrize("block_bytes", [500, 5_000, 2**24])
def test_made_up_london_homes_are_tallied_in_one_pass(
    tmp_path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = write_london(tmp_path / "in", households=5, first_day=date(2012, 12, 1), days=20, seed=3)
    found = one_pass(tmp_path / "in", "london", block_bytes, monkeypatch)
    days = [date.fromordinal(date(1970, 1, 1).toordinal() + int(day)) for day in found.day]
    keys = [(found.ids[code], day) for code, day in zip(found.household, days, strict=True)]
    assert dict(zip(keys, found.energy_wh.tolist(), strict=True)) == truth.truth()
    assert int(found.readings.sum()) == int(truth.readings.sum())
    assert same(found, stored(tmp_path / "in", "london", monkeypatch))


def test_made_up_ausgrid_homes_are_tallied_like_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "in"
    write_ausgrid(folder, households=4, first_day=date(2012, 9, 25), days=20, seed=3, year_layout="2012-2013")
    found = tally([str(folder)], dataset="ausgrid", edges=EDGES, engine=Engine("threads", 2, 3_000))
    assert found.counts.sum() > 0
    assert same(found, stored(folder, "ausgrid", monkeypatch))


@pytest.mark.parametrize("shuffled", ["by time", "at random"])
def test_files_in_another_order_go_through_a_store_and_say_the_same(
    tmp_path: Path, shuffled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_london(tmp_path / "in", households=4, first_day=date(2012, 12, 1), days=20, seed=3, header="extract")
    before = one_pass(tmp_path / "in", "london", 20_000, monkeypatch)
    for path in (tmp_path / "in").glob("*.csv"):
        header, *lines = path.read_bytes().split(b"\n")
        lines = [line for line in lines if line]
        if shuffled == "by time":
            lines.sort(key=lambda line: line.split(b",")[1])
        else:
            np.random.default_rng(1).shuffle(lines)
        path.write_bytes(b"\n".join([header, *lines]) + b"\n")
    with monkeypatch.context() as patch:
        used: list[bool] = []
        through = tallying._tally_by_store
        patch.setattr(tallying, "_tally_by_store", lambda *args: used.append(True) or through(*args))
        after = tally([str(tmp_path / "in")], dataset="london", edges=EDGES, engine=Engine("threads", 2, 5_000))
    assert used == [True]
    assert same(before, after)


def test_quotes_around_fields_change_nothing_and_need_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_london(tmp_path / "in", households=4, first_day=date(2012, 12, 1), days=20, seed=3, header="extract")
    before = one_pass(tmp_path / "in", "london", 20_000, monkeypatch)
    for path in (tmp_path / "in").glob("*.csv"):
        header, *lines = path.read_bytes().rstrip(b"\n").split(b"\n")
        quoted = [b",".join(b'"' + cell + b'"' for cell in line.split(b",")) for line in lines[::3]]
        lines[::3] = quoted
        path.write_bytes(b"\n".join([header, *lines]) + b"\n")
    assert same(before, one_pass(tmp_path / "in", "london", 20_000, monkeypatch))
