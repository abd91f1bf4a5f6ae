"""One golden run: its commands in a new folder, and what they print and write, artefact by artefact and by category."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data import table_schemas
from tests import books
from tests.golden import inputs
from tests.golden.product import fixed_surroundings, run_command

HERE = Path(__file__).parent
SHORT = {path.stem: path for path in sorted((HERE / "runs" / "short").glob("*.toml"))}
RUNS = {path.stem: path for path in sorted((HERE / "runs").glob("*.toml"))} | SHORT
SECOND = {path.stem: path for path in sorted((HERE / "runs" / "short" / "second").glob("*.toml"))}
DIGESTS = HERE / "digests"
VALUES, CONTRACTS, TEXTS = CATEGORIES = ("values", "contracts", "texts")

Contents = Iterator[tuple[str, str, bytes]]
"""Category, artefact, content."""
Digests = dict[str, dict[str, str]]
Artefacts = dict[str, dict[str, bytes]]
"""Category, artefact, content."""

_MODEL = "confidential/model/"
_CELL_TABLES = ("true_means", "true_counts", "counted_states", "coverage")
"""Tables of cells in the confidential book; the columns of all but the last are values."""
_CHAIN_COLUMNS = {"text", "hash", "seq", "contract", "model"}
"""Columns of a release row that depend on texts or on the number of other rows."""
_BOUND = ("epsilon", "delta", "kind", "limit")
_VALUE_DIGITS = 16
"""Hexadecimal digits of a digest in values.json, which has one for each column and bound."""
_VARYING = {
    "store",
    "household_register.key",
    "household_register.sqlite",
    "household_register.place",
    "books.sqlite",
}
"""Entries of the confidential folder that contain where and when files were found, or random bytes."""
_PLACE_KEYS = {"agedp.lines"}
"""Metadata of confidential tables that contain a digest of where the input was found."""
_SECONDS = re.compile(rb"Time of the check: [0-9]+ s")
_WRITER = re.compile(rb"parquet-cpp-arrow version [0-9.]+")


@dataclass(frozen=True)
class Population:
    """A run file in the world's folder, and its document."""

    run_file: str
    document: dict[str, Any]
    prefix: str = ""
    """Of its artefacts' names: "" for the first population of a run."""

    @property
    def out(self) -> str:
        return str(Path(self.document["output"]["confidential"]).parent)


def collect(name: str, folder: Path) -> Artefacts:
    """Run the commands of a golden run in an empty folder and return every artefact, masked."""
    world = folder.resolve() / "world"
    artefacts: Artefacts = {category: {} for category in CATEGORIES}
    with fixed_surroundings():
        for category, artefact, content in (_short_run if name in SHORT else _complete_run)(name, world):
            artefacts[category][artefact] = _masked(content, world)
    return artefacts


def digests_of(artefacts: Artefacts) -> Digests:
    """Return the SHA-256 of each artefact, by category; of values its beginning."""
    return {
        category: {
            name: hashlib.sha256(content).hexdigest()[: _VALUE_DIGITS if category == VALUES else None]
            for name, content in sorted(contents.items())
        }
        for category, contents in artefacts.items()
    }


def stored_digests() -> dict[str, Digests]:
    """Return the digests of each run, by category."""
    stored: dict[str, Digests] = {}
    for category in CATEGORIES:
        path = DIGESTS / f"{category}.json"
        for run, digests in (json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}).items():
            stored.setdefault(run, {})[category] = digests
    return stored


def write_digests(digests: dict[str, Digests]) -> None:
    """Write one file for each category."""
    DIGESTS.mkdir(exist_ok=True)
    for category in CATEGORIES:
        of_category = {run: by_category.get(category, {}) for run, by_category in digests.items()}
        text = json.dumps(of_category, indent=1, sort_keys=True) + "\n"
        (DIGESTS / f"{category}.json").write_text(text, encoding="utf-8")


def differences(stored: Digests, computed: Digests) -> list[str]:
    """Return one line for each artefact that is new, missing or different."""
    lines = []
    for category in CATEGORIES:
        before, after = stored.get(category, {}), computed.get(category, {})
        for artefact in sorted({*before, *after}):
            if before.get(artefact) != after.get(artefact):
                change = "new" if artefact not in before else "missing" if artefact not in after else "different"
                lines.append(f"{category}: {artefact}: {change}")
    return lines


def rewritten_values(stored: dict[str, Digests], updated: dict[str, Digests]) -> list[str]:
    """Return one line for each stored digest of a value that an update would change or remove."""
    return [
        f"{run}: {artefact}"
        for run, by_category in stored.items()
        for artefact, digest in by_category.get(VALUES, {}).items()
        if updated.get(run, {}).get(VALUES, {}).get(artefact) != digest
    ]


def write_artefacts(artefacts: Artefacts, folder: Path) -> None:
    """Store the artefacts as files, category/artefact, for `diff -r` with those of another checkout."""
    for category, contents in artefacts.items():
        for artefact, content in contents.items():
            path = folder / category / artefact
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _complete_run(name: str, world: Path) -> Contents:
    """Yield the artefacts of a run with every command that reads or writes a release."""
    population = _write_run_file(world, "run.toml", RUNS[name])
    document = population.document
    dataset, mode, calendar = document["input"]["dataset"], document["schedule"]["mode"], _calendar(document)
    now = calendar.nights[1]
    inputs.write_surroundings(world, dataset, calendar)
    inputs.write_readings(world, dataset, calendar, night=0)
    if mode == "archive":
        inputs.write_readings(world, dataset, calendar, night=1)
        yield from _first_night(world, document, now=now, json_run=True)
    else:
        yield from _first_night(world, document, now=calendar.nights[0], json_run=False)
        inputs.write_readings(world, dataset, calendar, night=1)
        as_of = _as_of(document, now)
        yield from _command(world, "second-plan", "plan", "run.toml", *as_of, now=now)
        yield from _command(world, "run-json", "run", "run.toml", *as_of, "--json", now=now)
    yield from _command(world, "verify", "verify", "out/release", now=now)
    yield from _published(world, population, now=now)
    for witness in sorted((world / "witness").iterdir()):
        yield TEXTS, f"witness/{witness.name}", witness.read_bytes()


def _first_night(world: Path, document: dict[str, Any], *, now: datetime, json_run: bool) -> Contents:
    as_of = _as_of(document, now)
    if _is_estimated(document):
        yield from _command(world, "calibrate", "calibrate", "run.toml", now=now)
    yield from _command(world, "plan", "plan", "run.toml", *as_of, now=now)
    yield from _command(world, "plan-json", "plan", "run.toml", *as_of, "--json", now=now)
    if any(series["statistic"] == "mean" for series in document["series"].values()):
        yield from _command(world, "plan-notions-json", "plan", "run.toml", "--notions", "--json", now=now)
    if json_run:
        twin = world.with_name("world-json")
        shutil.copytree(world, twin)
        for category, artefact, content in _command(twin, "run-json", "run", "run.toml", *as_of, "--json", now=now):
            yield category, artefact, content.replace(str(twin).encode(), str(world).encode())
    yield from _command(world, "run", "run", "run.toml", *as_of, now=now)


def _short_run(name: str, world: Path) -> Contents:
    """Yield the artefacts of a run with few commands, of one population, of two, or of one that is amended."""
    populations = [_write_run_file(world, "run.toml", RUNS[name])]
    document = populations[0].document
    dataset, mode, calendar = document["input"]["dataset"], document["schedule"]["mode"], _calendar(document)
    amended = name in SECOND and _is_same_population(document, SECOND[name])
    if name in SECOND and not amended:
        populations.append(_write_run_file(world, "second.toml", SECOND[name], prefix="second/"))
    inputs.write_surroundings(world, dataset, calendar)
    _clear(document["output"]["release"])
    nights = [calendar.nights[1]] if mode == "archive" else [*calendar.nights]
    if mode == "archive":
        inputs.write_readings(world, dataset, calendar, night=0)
    for now in nights:
        inputs.write_readings(world, dataset, calendar, night=calendar.nights.index(now))
        if now == nights[0]:
            if _is_estimated(document):
                yield from _command(world, "calibrate", "calibrate", "run.toml", now=now)
            else:  # with a private model the comparison of notions takes minutes
                yield from _command(world, "plan-json", "plan", "run.toml", *_as_of(document, now), "--json", now=now)
        elif amended:
            populations = [_write_run_file(world, "run.toml", SECOND[name])]
            yield from _command(world, "amend", "ledger", "amend", "run.toml", "--yes", now=now)
        for population in populations:
            words = ("run", population.run_file, *_as_of(document, now), *(["--json"] if now == nights[-1] else []))
            command = "run-json" if now == nights[-1] else "run"
            yield from _command(world, f"{population.prefix}{command}", *words, now=now)
    for population in populations:
        yield from _published(world, population, now=nights[-1])


def _published(world: Path, population: Population, *, now: datetime) -> Contents:
    """Yield what a population has published and recorded in the end, and what the commands for readers print."""
    out, prefix = population.out, population.prefix
    address = population.document["output"]["release"]
    if "://" in address:
        system, root = fsspec.core.url_to_fs(address)
        system.get(root, f"{world / out / 'release'}", recursive=True)
        _clear(address)
    ledger = f"sqlite:///{world}/{out}/ledger.sqlite"
    words = ("verify", f"{out}/release", "--ledger", ledger, "--json")
    yield from _command(world, f"{prefix}verify-json", *words, now=now)
    yield from _command(world, f"{prefix}ledger-show", "ledger", "show", population.run_file, now=now)
    for contents in (_files(world / out), _ledger(world / out / "ledger.sqlite")):
        for category, artefact, content in contents:
            yield category, f"{prefix}{artefact}", content


def _clear(address: str) -> None:
    """Remove a release at a URL, of this run or of one that was interrupted."""
    if "://" in address:
        system, root = fsspec.core.url_to_fs(address)
        if system.exists(root):
            system.rm(root, recursive=True)


def _write_run_file(world: Path, name: str, source: Path, *, prefix: str = "") -> Population:
    text = source.read_text(encoding="utf-8")
    world.mkdir(parents=True, exist_ok=True)
    (world / name).write_text(text, encoding="utf-8")
    return Population(name, tomllib.loads(text), prefix)


def _calendar(document: dict[str, Any]) -> inputs.Calendar:
    return inputs.CALENDARS[document["schedule"]["first_day"]]


def _is_estimated(document: dict[str, Any]) -> bool:
    return document.get("model", {}).get("source") == "estimated"


def _is_same_population(document: dict[str, Any], path: Path) -> bool:
    return tomllib.loads(path.read_text(encoding="utf-8"))["population"]["name"] == document["population"]["name"]


def _as_of(document: dict[str, Any], now: datetime) -> tuple[str, ...]:
    return ("--as-of", str(now.date())) if document["schedule"]["mode"] == "rehearsal" else ()


def _command(world: Path, artefact: str, *words: str, now: datetime) -> Contents:
    """Yield what a command prints, on each stream; the exit status is an artefact of its own."""
    status, out, err = run_command(world, *words, now=now, seed=now.toordinal())
    yield TEXTS, f"commands/{artefact}.{'json' if '--json' in words else 'stdout.txt'}", out.encode()
    yield TEXTS, f"commands/{artefact}.stderr.txt", err.encode()
    yield VALUES, f"commands/{artefact}.status", str(status).encode()


def _files(out: Path) -> Contents:
    """Yield the files of the release folder and, as far as their place does not show, of the confidential folder."""
    for path in sorted((out / "release").rglob("*")):
        if path.is_file():
            name = f"release/{path.relative_to(out / 'release')}"
            yield TEXTS, name, _WRITER.sub(b"parquet-cpp-arrow version <version>", path.read_bytes())
            if path.suffix == ".parquet":
                table = _read(path)
                yield TEXTS, f"{name}.rows", _rows(table)
                yield from _columns(name, _typed(table))
    yield from _own_bounds(json.loads((out / "release" / "statement.json").read_text(encoding="utf-8")))
    inside = out / "confidential"
    for path in sorted(inside.rglob("*")):
        relative = path.relative_to(inside)
        if path.is_file() and relative.parts[0] not in _VARYING and not path.name.startswith("."):
            name = f"confidential/{relative}"
            category = CONTRACTS if name.startswith(_MODEL) else TEXTS
            if path.suffix == ".parquet":
                table = _read(path)
                yield category, f"{name}.rows", _rows(table, is_model="model" in relative.parts)
                if path.name == "sums.parquet":
                    yield from _columns(name, _typed(table))
            else:
                yield category, name, path.read_bytes()
    for book in sorted(inside.rglob("books.sqlite")):
        for of_cells in _CELL_TABLES:
            lines = books.cells(book.parent, of_cells)
            if lines:
                table = table_schemas.table_from_rows(getattr(table_schemas, of_cells.upper()), lines)
                name = f"{book.parent.relative_to(out)}/{of_cells}.parquet"  # as in 0.2
                yield TEXTS, f"{name}.rows", _rows(table)
                if of_cells != "coverage":
                    yield from _columns(name, _typed(table))


def _columns(name: str, columns: dict[str, list[Any]]) -> Contents:
    """Yield each column as an artefact, one value a line: a later version may add columns."""
    for column, values in columns.items():
        yield VALUES, f"{name}/{column}", _lines(values)


def _typed(table: pa.Table) -> dict[str, list[Any]]:
    """Return the columns of a table, each below its type."""
    return {field.name: [str(field.type), *table[field.name].to_pylist()] for field in table.schema}


def _own_bounds(statement: dict[str, Any]) -> Contents:
    """Yield the bounds that the promise limits, and those that follow from the losses alone."""
    for bound in statement["figures"]:
        if bound["limit"] or (bound["kind"] == "assumption-free" and "delta" not in bound):
            figures = {key: bound[key] for key in _BOUND if key in bound}
            yield VALUES, f"release/statement.json/{bound['name']}", json.dumps(figures, sort_keys=True).encode()


def _read(path: Path) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return file.read()


def _rows(table: pa.Table, *, is_model: bool = False) -> bytes:
    """Return schema, metadata and rows of a Parquet file as lines, so that a difference can be read.

    Eigenvalues of a model differ from processor to processor in their last digits.
    """
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    metadata = {key: value for key, value in metadata.items() if key not in _PLACE_KEYS}
    lines = [json.dumps(metadata, sort_keys=True)]
    lines += [f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in table.schema]
    rows = [
        {name: round(v, 9) if is_model and isinstance(v, float) else v for name, v in row.items()}
        for row in table.to_pylist()
    ]
    lines += [json.dumps(row, default=str) for row in rows]
    return "\n".join([*lines, ""]).encode()


def _ledger(path: Path) -> Contents:
    """Yield each table of the ledger with all columns, by seq, and the statements that made the tables.

    Values are the columns of the releases that do not depend on other rows. Contracts are the texts of contracts and
    models, the records of the ledger itself, and the hash of the first contract, which no statement precedes.
    """
    with sqlite3.connect(path) as connection:
        made = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        yield CONTRACTS, "ledger/schema", "\n".join(str(row) for row in made).encode()
        tables = {name: _table(connection, name) for kind, name, _ in made if kind == "table"}
    connection.close()
    for name, rows in tables.items():
        yield TEXTS, f"ledger/{name}.jsonl", _lines(rows)
    contracts, models, releases, statements = (tables[name] for name in ("contract", "model", "release", "statement"))
    own = [column for column in releases[0] if column not in _CHAIN_COLUMNS]
    yield from _columns("ledger/release", {column: [row[column] for row in releases] for column in own})
    yield CONTRACTS, "ledger/contract/promise", _lines([row["promise"] for row in contracts])
    yield CONTRACTS, "ledger/contract/first", contracts[0]["hash"].encode()
    yield CONTRACTS, "ledger/model/envelope", _lines([[row["model"], row["envelope"]] for row in models])
    records = [row["claim"] for row in statements if not row["population"]]
    yield CONTRACTS, "ledger/statement/records", _lines(records)


def _table(connection: sqlite3.Connection, name: str) -> list[dict[str, Any]]:
    cursor = connection.execute(f'SELECT * FROM "{name}" ORDER BY 1')
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def _lines(rows: list[Any]) -> bytes:
    return "\n".join([*(json.dumps(row, default=str) for row in rows), ""]).encode()


def _masked(content: bytes, world: Path) -> bytes:
    return _SECONDS.sub(b"Time of the check: 0 s", content.replace(str(world).encode(), b"<folder>"))
