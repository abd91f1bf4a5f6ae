"""A next version reads what this one and 0.1 wrote, and this one says which version reads what the next one wrote."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agedp_data.errors import AgedpError, LedgerError
from agedp_data.ledger import Ledger
from tests.compatibility.fixtures import Fixture
from tests.compatibility.next_version import VERSION, write_next_version
from tests.source_path import source_path

FIXTURES = "classical-rehearsal or temporal-live or discounted-archive"
"""Groups, a model and its estimate, marker and skipped days, an amended series."""
SAME_TEXT = ("contract_is", "export_is", "closing_writes", "same_is_published")
"""Tests of the same bytes, which another version need not write."""
_FRESH = """
import sys
from pathlib import Path
from agedp_data.ledger import Ledger
from datetime import date
from tests.compatibility.fixtures import Fixture
population = Fixture("classical-live").unpack(Path(sys.argv[1]))
with Ledger.open(population.ledger) as ledger:
    ledger.upgrade(at=date(2030, 1, 1))
Ledger.open(f"sqlite:///{population.folder / 'fresh.sqlite'}", create=True).close()
"""


@pytest.fixture(scope="module")
def next_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("next")
    write_next_version(folder)
    return folder


def under(version: Path, *words: str) -> str:
    """Run Python with the source of a version; return what it printed."""
    environment = {**os.environ, "PYTHONPATH": source_path(version)}
    done = subprocess.run(
        [sys.executable, *words], cwd=version, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_next_version_goes_on_with_the_series_of_0_1(next_version: Path) -> None:
    """A key more in each table, one renamed, a later schema: verify, ten nights, amend, import, recover, commands."""
    chosen = f"({FIXTURES}) and not {' and not '.join(SAME_TEXT)}"
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", chosen)
    printed = under(next_version, "-m", "pytest", *options, "tests/compatibility/test_fixtures.py")
    assert " passed" in printed


def test_what_the_next_version_wrote_is_refused_with_its_version(next_version: Path, tmp_path: Path) -> None:
    under(next_version, "-c", _FRESH, str(tmp_path / "p"))
    with pytest.raises(LedgerError, match=f"has schema version 2, which agedp {VERSION} or newer reads; update agedp"):
        Ledger.open(f"sqlite:///{tmp_path / 'p' / 'fresh.sqlite'}")
    population = Fixture("classical-live").unpack(tmp_path / "other")
    (tmp_path / "p" / "out" / "ledger.sqlite").rename(tmp_path / "other" / "out" / "ledger.sqlite")
    with pytest.raises(AgedpError, match=f"has form 3, which agedp {VERSION} or newer reads"):
        population.run(now=population.following[0])


def test_a_ledger_of_0_1_is_upgraded_by_one_row_and_goes_on(tmp_path: Path) -> None:
    population = Fixture("classical-live").unpack(tmp_path)
    before = population.recorded()["rows"]
    with Ledger.open(population.ledger) as ledger:
        length, head = ledger.length(), ledger.head()
        mark = ledger.upgrade(at=population.following[0])
        assert mark is not None
        assert ledger.length() == length + 1
        assert ledger.contains(head)
        assert ledger.upgrade(at=population.following[0]) is None
        assert ledger.verify() == ()
    population.run(now=population.following[0])
    assert population.recorded()["rows"][: len(before)] == before
