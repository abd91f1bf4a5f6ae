"""What is let go is let go wholly, wherever a run that lets it go is cut off."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store import retention
from agedp.store.store import FileOrder, Store
from agedp_data.datasets.validation import ReadingRules

SPOILT = "A,2013-01-05 soon,0.1"
FILES = {
    "old.csv": ("A,2013-01-05 00:30:00,0.1", "A,2012-12-05 00:30:00,0.1", "A,2013-01-07 00:30:00,-1", SPOILT),
    "both.csv": ("B,2013-01-06 00:30:00,0.1", "B,2013-02-06 00:30:00,0.1", SPOILT),
}


class CutOff(BaseException):
    """The process ended here."""


def let_go(store: Store) -> list[str]:
    """Let go of all before February; return what is left."""
    retention.remove_old_months(store, today=date(2013, 3, 2), keep_days=2, needed_from=date(2013, 2, 1))
    return sorted(str(path.relative_to(store.folder)) for path in store.folder.rglob("*"))


def let_go_until(store: Store, last: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let go, but for what the `last`-th removal and those behind it remove; return whether there were as many."""
    passed = 0

    def counted(call: Callable[..., None]) -> Callable[..., None]:
        def removing(*args: object, **kwargs: object) -> None:
            nonlocal passed
            passed += 1
            if passed == last:
                raise CutOff
            call(*args, **kwargs)

        return removing

    with monkeypatch.context() as patch:
        for name in ("unlink", "rmdir"):
            patch.setattr(os, name, counted(getattr(os, name)))
        try:
            let_go(store)
        except CutOff:
            return True
    return False


def test_cut_off_before_any_removal_the_next_run_lets_go_of_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, rows in FILES.items():
        (tmp_path / name).write_text("\n".join(["LCLid,tstp,energy(kWh/hh)", *rows]) + "\n")
    kept = Store(tmp_path / "kept" / "store", "london", ReadingRules(), FileOrder("name", keeps_unlisted=True))
    ingest(kept, [str(tmp_path / "*.csv")], engine=Engine())
    store = Store(tmp_path / "confidential" / "store", "london", ReadingRules(), kept.order)
    shutil.copytree(kept.folder, store.folder)
    left = let_go(store)
    assert len({path.name for path in kept.folder.glob("quarantine/**/*.parquet")}) == 2
    # of the file that has readings of February, too
    assert len({path.name for path in store.folder.glob("quarantine/**/*.parquet")}) == 1
    assert [path.name for path in store.folder.glob("month=*")] == ["month=2013-02"]
    cut = 0
    while True:
        shutil.rmtree(store.folder)
        shutil.copytree(kept.folder, store.folder)
        if not let_go_until(store, cut + 1, monkeypatch):
            break
        cut += 1
        assert let_go(store) == left, cut
    assert cut >= 10
