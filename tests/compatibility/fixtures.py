"""A population that an earlier version began: unpacked, run on night by night, amended, and read back as plain JSON.

A fixture was made once and is never made again: `fixtures/<notion>-<mode>.tar.xz` by agedp 0.1 (commit a2328a0) with
`tests/compatibility/make_fixtures.py` of commit 612f8f4, `fixtures/0.2/<name>.tar.xz` by a wheel of agedp 0.2 (commit
d07a3d58) with that file of commit 316179f8. It contains:

    run.toml  roster.csv  *.csv (declared models)  model/ (an estimated one)
    incoming/                 input files and markers that had arrived
    later/<night>/            those that arrive on the nights to come
    out/                      ledger.sqlite, release/, confidential/
    export.jsonl              all rows, by `agedp ledger export`
    closed.jsonl              all rows of a copy that was closed by `agedp ledger export --close`
    recovered.jsonl           all rows of the ledger that `agedp ledger recover` made from release/
    fixture.json              population, mode, the nights so far and to come, an amendment
    expected.json             what that version itself had published after the nights to come
    amended.json              the same after that amendment and the first of these nights
    witness.json              the record of a witness that was a row of a PostgreSQL table
    second.toml  second/  second-*.json  shared/    a second population with the same households, and their register
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from agedp.pipeline import run_stages
from agedp.run_context import RunContext
from agedp.stages.amend import amend
from agedp_data import clock
from agedp_data.errors import AgedpError
from agedp_data.ledger import ContractRecord, Ledger
from agedp_data.model import Model, public_text
from tests.nights.keyed import JOURNAL, keyed_sampler

PACKED = Path(__file__).with_name("fixtures")
NAMES = tuple(path.name.removesuffix(".tar.xz") for path in sorted(PACKED.glob("*.tar.xz")))
NAMES_OF_0_2 = tuple(f"0.2/{path.name.removesuffix('.tar.xz')}" for path in sorted(PACKED.glob("0.2/*.tar.xz")))
WITNESS_ROW = "postgresql+psycopg://agedp@witness.example/agedp#london"
"""The witness in the run file of a fixture: a server that does not exist."""
WITNESS_FILE = "witness/record.json"
"""Its record after `unpack`."""
_FIRST_VERSION = "a2328a0"
_REPLANNED = frozenset({"temporal-rehearsal"})
"""Their budget = "best" is a plan that 0.1 found by a solver. That of 0.3 has less noise and other losses, and the days
to come get losses of it, within the same alpha: what was released, contracts and noise draws stay as they are."""
_OF_THE_CHAIN = ("seq", "hash", "contract")


def unpack(name: str, folder: Path) -> RunningPopulation:
    """Return a copy of a fixture of one's own; a witness on a server becomes a file with the same record."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(PACKED / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    population = RunningPopulation(folder)
    if (folder / "witness.json").exists():
        (folder / "witness").mkdir()
        (folder / "witness.json").rename(folder / WITNESS_FILE)
        population.edit(WITNESS_ROW, WITNESS_FILE)
    return population


@dataclass(frozen=True)
class RunningPopulation:
    """A population with its run file, ledger, folders and files, all under one folder."""

    folder: Path
    part: str = ""
    """"second" for the second population of a fixture."""

    @property
    def run_file(self) -> Path:
        return self.folder / f"{self.part or 'run'}.toml"

    @property
    def _out(self) -> Path:
        return self.folder / (self.part or "out")

    @property
    def ledger(self) -> str:
        """The URL of the ledger that the fixture came with."""
        return f"sqlite:///{self._out / 'ledger.sqlite'}"

    @property
    def release(self) -> Path:
        return self._out / "release"

    def path_of(self, name: str) -> Path:
        """The file of what the earlier version wrote beside the population: "fixture", "expected" or "amended"."""
        return self.folder / f"{self.part}{'-' if self.part else ''}{name}.json"

    def stored(self, name: str) -> dict[str, Any]:
        return json.loads(self.path_of(name).read_text())

    @cached_property
    def facts(self) -> dict[str, Any]:
        return self.stored("fixture")

    @property
    def population(self) -> str:
        return self.facts["population"]

    @property
    def last_night(self) -> date:
        """The last night that the earlier version ran."""
        return date.fromisoformat(self.facts["begun"][-1])

    @property
    def following(self) -> tuple[date, ...]:
        """The nights to come."""
        return tuple(map(date.fromisoformat, self.facts["following"]))

    @property
    def replanned_from(self) -> str | None:
        """The first day whose loss is from another plan than the earlier version's; None if the plan is the same."""
        last_night = str(self.last_night)
        to_come = (row["day"] for row in self.stored("expected")["rows"] if row["published_on"] > last_night)
        return min(to_come) if self.population in _REPLANNED else None

    def ending(self, *, now: date) -> str:
        """Let the files of a night arrive and run all stages; return the class of a refusal, "" if there is none."""
        arriving = self.folder / "later" / now.isoformat()
        if arriving.exists():
            shutil.copytree(arriving, self.folder / "incoming", dirs_exist_ok=True)
        try:
            with standing_clock(now), keyed_sampler(self.folder / JOURNAL):
                run_stages(self.begin(now=now)).check_not_refused()
        except AgedpError as error:
            return type(error).__name__
        return ""

    def begin(self, *, now: date) -> RunContext:
        """The run of a night before its first stage."""
        with standing_clock(now):
            return RunContext.load(self.run_file, as_of=now if self.facts["mode"] == "rehearsal" else None)

    def edit(self, old: str, new: str) -> None:
        """Replace text of the run file that must be there."""
        text = self.run_file.read_text()
        assert old in text, old
        self.run_file.write_text(text.replace(old, new))

    def amend(self, *, now: date) -> ContractRecord:
        """Record the fixture's amendment of the run file in the ledger."""
        self.edit(*self.facts["amendment"])
        with standing_clock(now):
            return amend(RunContext.load(self.run_file))

    def rows(self, ledger: str = "") -> list[dict[str, Any]]:
        """Release rows; in place of hashes, which contract each was made under, and the model in the fixture's form."""
        with Ledger.open(ledger or self.ledger) as opened:
            contracts = [contract.hash for contract in opened.contracts(self.population)]
            rows = [
                {
                    **asdict(row),
                    "version": contracts.index(row.contract) + 1,
                    "model": self.model_form(row.model, ledger),
                }
                for row in opened.rows(self.population)
            ]
        plain = [{key: value for key, value in row.items() if key not in _OF_THE_CHAIN} for row in rows]
        return json.loads(json.dumps(plain))

    @property
    def is_of_first_version(self) -> bool:
        return bool(self.facts["made_by"] == _FIRST_VERSION)

    def model_form(self, model: str, ledger: str = "") -> str:
        """Return the hash that the version of the fixture gave the model of this hash."""
        if not self.is_of_first_version:
            return model
        with Ledger.open(ledger or self.ledger) as opened:
            stored = {record.model: Model.from_text(record.envelope) for record in opened.models()}
        if model not in stored or stored[model].leakage_bound.distances == "rounded":
            return model
        rounded = replace(stored[model].leakage_bound, distances="rounded")  # a declared kernel had its pieces already
        with_pieces = Model(public_text(stored[model].public, rounded), rounded).id
        named = json.dumps([self.stored(name) for name in ("expected", "amended")])
        return with_pieces if with_pieces in named else stored[model].first_form.id

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of every Parquet file of the release folder, dates as text."""
        tables = {name: table.to_pylist() for name, table in self._parquet_files()}
        return json.loads(json.dumps(tables, default=str))

    def metadata(self) -> dict[str, dict[str, Any]]:
        """The guarantee that every Parquet file of the release folder carries."""
        return {name: json.loads((table.schema.metadata or {})[b"agedp"]) for name, table in self._parquet_files()}

    def _parquet_files(self) -> Iterator[tuple[str, pa.Table]]:
        for path in sorted(self.release.rglob("*.parquet")):
            with pq.ParquetFile(path) as file:
                yield str(path.relative_to(self.release)), file.read()


@contextmanager
def standing_clock(day: date) -> Iterator[None]:
    """Let the clock stand at three in the morning of a day."""
    with mock.patch.object(clock, "now", return_value=datetime.combine(day, time(3), UTC)):
        yield
