"""A population that an earlier version began: unpacked, run on night by night, amended, and read back as plain JSON.

    population = Fixture("classical-live").unpack(tmp_path)
    for night in population.following:
        population.run(now=night)
    assert population.recorded()["rows"] == population.expected["rows"]

A fixture (`fixtures/<notion>-<mode>.tar.xz`) holds, as agedp 0.1 (commit a2328a0) left them:

    run.toml  roster.csv  *.csv (declared models)  model/ (an estimated one)
    incoming/                 input files and markers that had arrived
    later/<night>/            those that arrive on the nights to come
    out/                      ledger.sqlite, release/, confidential/
    export.jsonl              all rows, by `agedp ledger export`
    closed.jsonl              all rows of a copy that was closed by `agedp ledger export --close`
    recovered.jsonl           all rows of the ledger that `agedp ledger recover` made from release/
    fixture.json              population, mode, the nights so far and to come, an amendment
    expected.json             what 0.1 itself had published after the nights to come
    amended.json              the same after that amendment and three nights
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq

from agedp.pipeline import RunSummary, run_stages
from agedp.run_context import RunContext
from agedp.stages.amend import amend
from agedp_data import clock
from agedp_data.errors import AgedpError
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from tests.nights.keyed import JOURNAL, keyed_sampler

PACKED = Path(__file__).with_name("fixtures")
AMENDED_NIGHTS = 3
_OF_THE_CHAIN = ("seq", "hash", "contract")


@dataclass(frozen=True)
class Fixture:
    """A packed fixture, by name."""

    name: str

    @property
    def path(self) -> Path:
        return PACKED / f"{self.name}.tar.xz"

    def unpack(self, folder: Path) -> RunningPopulation:
        """Return a copy of one's own in a folder that need not exist."""
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(self.path) as packed:
            packed.extractall(folder, filter="data")
        return RunningPopulation(folder)


FIXTURES = tuple(Fixture(path.name.removesuffix(".tar.xz")) for path in sorted(PACKED.glob("*.tar.xz")))


@dataclass(frozen=True)
class RunningPopulation:
    """A population with its run file, ledger, folders and files, all under one folder."""

    folder: Path

    @property
    def run_file(self) -> Path:
        return self.folder / "run.toml"

    @property
    def ledger(self) -> str:
        """Return the URL of the ledger that the fixture came with."""
        return f"sqlite:///{self.folder / 'out' / 'ledger.sqlite'}"

    @property
    def release(self) -> Path:
        return self.folder / "out" / "release"

    @property
    def export(self) -> Path:
        return self.folder / "export.jsonl"

    @property
    def closed_export(self) -> Path:
        return self.folder / "closed.jsonl"

    @property
    def recovered_export(self) -> Path:
        return self.folder / "recovered.jsonl"

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return json.loads((self.folder / "fixture.json").read_text())

    @property
    def population(self) -> str:
        return self._facts["population"]

    @property
    def mode(self) -> str:
        return self._facts["mode"]

    @property
    def begun(self) -> tuple[date, ...]:
        """Return the nights that the earlier version ran."""
        return tuple(map(date.fromisoformat, self._facts["begun"]))

    @property
    def following(self) -> tuple[date, ...]:
        """Return the nights to come."""
        return tuple(map(date.fromisoformat, self._facts["following"]))

    @property
    def amendment(self) -> tuple[str, str]:
        """Return text of the run file, and what takes its place in an amendment that is allowed."""
        old, new = self._facts["amendment"]
        return old, new

    @cached_property
    def expected(self) -> dict[str, Any]:
        """Return what the earlier version had published after the nights to come."""
        return json.loads((self.folder / "expected.json").read_text())

    @cached_property
    def expected_amended(self) -> dict[str, Any]:
        """Return what the earlier version had published after the amendment and the first nights to come."""
        return json.loads((self.folder / "amended.json").read_text())

    def run(self, *, now: date) -> RunSummary:
        """Let the files of a night arrive and run all stages.

        Raises:
            AgedpError: the run is refused; what was committed is published.
        """
        self.receive(now)
        with standing_clock(now), keyed_sampler(self.folder / JOURNAL):
            summary = run_stages(self.begin(now=now))
        summary.check_not_refused()
        return summary

    def ending(self, *, now: date) -> str:
        """Run a night; return the class of a refusal, "" if there is none."""
        try:
            self.run(now=now)
        except AgedpError as error:
            return type(error).__name__
        return ""

    def begin(self, *, now: date) -> RunContext:
        """Return the run of a night before its first stage."""
        with standing_clock(now):
            return RunContext.load(self.run_file, as_of=now if self.mode == "rehearsal" else None)

    def receive(self, night: date) -> None:
        """Let the files and markers of a night arrive."""
        arriving = self.folder / "later" / night.isoformat()
        if arriving.exists():
            shutil.copytree(arriving, self.folder / "incoming", dirs_exist_ok=True)

    def edit(self, old: str, new: str) -> None:
        """Replace text of the run file that must be there."""
        text = self.run_file.read_text()
        assert old in text, old
        self.run_file.write_text(text.replace(old, new))

    def amend(self, old: str, new: str, *, now: date) -> ContractRecord:
        """Record an edit of the run file in the ledger."""
        self.edit(old, new)
        with standing_clock(now):
            return amend(RunContext.load(self.run_file))

    def move_to(self, ledger: str) -> None:
        """Let the run file name another ledger."""
        self.edit("sqlite:///out/ledger.sqlite", ledger)

    def recorded(self, ledger: str = "") -> dict[str, Any]:
        """Return everything that is published, as JSON holds it."""
        return {
            "rows": recorded_rows(ledger or self.ledger, self.population),
            "tables": recorded_tables(self.release),
            "statement": json.loads((self.release / "statement.json").read_text()),
        }


@contextmanager
def standing_clock(day: date) -> Iterator[None]:
    """Let the clock stand at three in the morning of a day."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(clock, "now", return_value=datetime.combine(day, time(3), UTC)))
        yield


def recorded_rows(ledger: str, population: str) -> list[dict[str, Any]]:
    """Return the release rows of a ledger; in place of hashes, which contract of the population each was made under."""
    with Ledger.open(ledger) as opened:
        contracts = [contract.hash for contract in opened.contracts(population)]
        return [_recorded(row, contracts) for row in opened.rows(population)]


def _recorded(row: ReleaseRecord, contracts: list[str]) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(row).items() if key not in _OF_THE_CHAIN}
    return json.loads(json.dumps({**plain, "version": contracts.index(row.contract) + 1}))


def recorded_tables(release: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every Parquet file of a release folder, dates as text."""
    tables = {path.name: pq.read_table(path).to_pylist() for path in sorted(release.glob("*.parquet"))}
    return json.loads(json.dumps(tables, default=str))


def recorded_metadata(release: Path) -> dict[str, dict[str, Any]]:
    """Return the guarantee that every Parquet file of a release folder carries."""
    schemas = {path.name: pq.read_schema(path) for path in sorted(release.glob("*.parquet"))}
    return {name: json.loads((schema.metadata or {})[b"agedp"]) for name, schema in schemas.items()}
