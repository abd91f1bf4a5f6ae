"""A next version reads what this one and 0.1 wrote, and this one says which version reads what the next one wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from agedp.pipeline import run_stages
from agedp_data.errors import AgedpError, LedgerError
from agedp_data.ledger import Ledger
from tests.compatibility.fixtures import unpack
from tests.source_path import ROOT, source_path

NIGHTS = "classical-rehearsal and (nights or amendment)"
ALL = "(classical-rehearsal or temporal-live) and not same_contract"
"""Groups, an amended series, marker and skipped days, a model and its estimate; the same bytes need not be written."""
VERSION: Final = "0.9"
RENAMED: Final = ("missing_kwh", "absent_kwh")
"""A key that every contract has and no run file of a fixture writes."""
_KEY = '    {name}: Annotated[Literal["a", "b"], LATER] = "a"\n'
_TABLES: Final = {
    "agedp_data/config/input.py": ("    dataset: str\n", "next_input"),
    "agedp_data/config/output.py": ("    name: parameters.Text\n", "next_population"),
    "agedp_data/config/schedule.py": ("    mode: str\n", "next_schedule"),
    "agedp_data/series/series_terms.py": ("    statistic: str\n", "next_series"),
    "agedp_data/config/model_section.py": ("    source: str\n", "next_model"),
    "agedp_data/notions/notion.py": ("    notion: str\n", "next_promise"),
}
_FUTURE = "from __future__ import annotations\n"
_IMPORTS = f"{_FUTURE}\nfrom typing import Annotated, Literal\n\nfrom agedp_data.parameters import LATER\n"
_TABLES_FILE = "agedp_data/ledger/records.py"
_OTHER: Final = (
    ("agedp_data/config/contract.py", "FORM: Final = 2", "FORM: Final = 3"),
    ("agedp_data/config/contract.py", '{1: "0.1", 2: "0.2"}', f'{{1: "0.1", 2: "0.2", 3: "{VERSION}"}}'),
    ("agedp_data/ledger/lifecycle.py", "LEDGER_FORM: Final = 3", "LEDGER_FORM: Final = 4"),
    ("agedp_data/ledger/lifecycle.py", '3: "0.3"}', f'3: "0.3", 4: "{VERSION}"}}'),
    (_TABLES_FILE, 'VERSION = "1"', 'VERSION = "2"'),
    (_TABLES_FILE, '{"1": "0.1"}', f'{{"1": "0.1", "2": "{VERSION}"}}'),
    (
        "agedp_data/config/contract.py",
        "RENAMED: Final[dict[str, str | None]] = {}",
        f'RENAMED = {{"series.*.{RENAMED[0]}": "{RENAMED[1]}"}}',
    ),
)
_FRESH = """
import sys
from datetime import date
from pathlib import Path
from agedp_data.ledger import Ledger
from tests.compatibility.fixtures import unpack
population = unpack("classical-live", Path(sys.argv[1]))
with Ledger.open(population.ledger) as ledger:
    ledger.upgrade(at=date(2030, 1, 1))
Ledger.open(f"sqlite:///{population.folder / 'fresh.sqlite'}", create=True).close()
"""


@pytest.fixture(scope="module")
def next_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Product and tests of a simulated next version: a key more in each table, one renamed, and later forms."""
    folder = tmp_path_factory.mktemp("next")
    for package in ("agedp_data", "pipelines", "flows", "tests"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder)
    for package in ("agedp_data", "pipelines", "flows"):
        for path in (folder / package).rglob("*.py"):
            path.write_text(path.read_text().replace(*RENAMED))
    for name, (after, key) in _TABLES.items():
        edit(folder / name, after, after + _KEY.format(name=key))
        edit(folder / name, _FUTURE, _IMPORTS)
    for name, old, new in _OTHER:
        edit(folder / name, old, new)
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path.name} has no {old!r}"
    path.write_text(text.replace(old, new, 1))


def under(version: Path, *words: str) -> str:
    """Run Python with the source of a version; return what it printed."""
    environment = {**os.environ, "PYTHONPATH": source_path(version)}
    done = subprocess.run(
        [sys.executable, *words], cwd=version, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("chosen", [NIGHTS, pytest.param(ALL, marks=pytest.mark.long)])
def test_the_next_version_goes_on_with_the_series_of_0_1(next_version: Path, chosen: str) -> None:
    """A key more in each table, one renamed, a later schema: verify, ten nights, amend, import, recover, commands."""
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", chosen)
    assert " passed" in under(next_version, "-m", "pytest", *options, "tests/compatibility/test_fixtures.py")


def test_what_the_next_version_wrote_is_refused_with_its_version(next_version: Path, tmp_path: Path) -> None:
    under(next_version, "-c", _FRESH, str(tmp_path / "p"))
    with pytest.raises(LedgerError, match=f"has schema version 2, which agedp {VERSION} or newer reads; update agedp"):
        Ledger.open(f"sqlite:///{tmp_path / 'p' / 'fresh.sqlite'}")
    population = unpack("classical-live", tmp_path / "other")
    (tmp_path / "p" / "out" / "ledger.sqlite").rename(tmp_path / "other" / "out" / "ledger.sqlite")
    with pytest.raises(AgedpError, match=f"has form 4, which agedp {VERSION} or newer reads"):
        run_stages(population.begin(now=population.following[0])).check_not_refused()


def test_a_ledger_of_0_1_is_upgraded_by_one_row_and_goes_on(tmp_path: Path) -> None:
    population = unpack("classical-live", tmp_path)
    before, night = population.rows(), population.following[0]
    with Ledger.open(population.ledger) as ledger:
        length, head = ledger.length(), ledger.head()
        assert ledger.upgrade(at=night) is not None
        assert ledger.length() == length + 1
        assert ledger.contains(head)
        assert ledger.upgrade(at=night) is None
        assert ledger.verify() == ()
    assert population.ending(now=night) == ""
    assert population.rows()[: len(before)] == before
