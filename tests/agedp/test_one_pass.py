"""One pass over files says what the store says: daily sums and transitions, whatever the order of the rows."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from agedp import one_pass as tallying
from agedp.compute.engine_settings import Engine
from agedp.one_pass import Tally, tally
from agedp_data.datasets.synthetic import write_london

EDGES = [100.0, 200.0, 400.0]


def same(one: Tally, other: Tally) -> bool:
    fields = ("household", "day", "energy_wh", "readings", "counts")
    return one.ids == other.ids and all(np.array_equal(getattr(one, f), getattr(other, f)) for f in fields)


def contest(*_: object) -> None:
    raise tallying._ConflictingParts


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch):
    """Tally with one of the two ways closed."""

    def tallied(way: str, folder: Path, block_bytes: int = 20_000) -> Tally:
        with monkeypatch.context() as patch:
            patch.setattr(tallying, way, contest)
            return tally([str(folder)], dataset="london", edges=EDGES, engine=Engine("threads", 2, block_bytes))

    return tallied


@pytest.mark.parametrize("block_bytes", [500, 2**24])
def test_london_households_are_tallied_in_one_pass(tmp_path: Path, block_bytes: int, closed) -> None:
    truth = write_london(tmp_path / "in", households=4, first_day=date(2012, 12, 20), days=14, seed=3)
    found = closed("_tally_by_store", tmp_path / "in", block_bytes=block_bytes)
    days = [date.fromordinal(date(1970, 1, 1).toordinal() + int(day)) for day in found.day]
    keys = [(found.ids[code], day) for code, day in zip(found.household, days, strict=True)]
    assert dict(zip(keys, found.energy_wh.tolist(), strict=True)) == truth.truth()
    assert int(found.readings.sum()) == int(truth.readings.sum())
    assert same(found, closed("_tally_files", tmp_path / "in"))
