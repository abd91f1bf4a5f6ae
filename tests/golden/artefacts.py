"""One golden run: its commands in a new folder, and what they print and write, artefact by artefact."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import tomllib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq

from tests.golden import inputs
from tests.golden.product import fixed_surroundings, run_command

HERE = Path(__file__).parent
RUNS = {path.stem: path for path in sorted((HERE / "runs").glob("*.toml"))}
DIGESTS = HERE / "digests.json"

Commands = Iterator[tuple[str, bytes]]
Digests = dict[str, dict[str, str]]
Artefacts = dict[str, dict[str, bytes]]
"""Category (numbers or texts), artefact, content."""

_TEXT_SUFFIXES = {".md", ".html", ".txt"}
_TEXT_FILES = {"SHA256SUMS"}  # it changes with each text that it sums up
_VARYING = {"store", "household_register.key", "household_register.sqlite", "publication.json", "report.json"}
"""Entries of the confidential folder that contain where and when files were found, or random bytes."""
_PLACE_KEYS = {"agedp.lines"}
"""Metadata of confidential tables that contain a digest of where the input was found."""
_WRITER = re.compile(rb"parquet-cpp-arrow version [0-9.]+")


def collect(name: str, folder: Path) -> Artefacts:
    """Run the commands of a golden run in an empty folder and return every artefact, masked."""
    world = folder.resolve() / "world"
    text = RUNS[name].read_text(encoding="utf-8")
    found: Artefacts = {"numbers": {}, "texts": {}}
    with fixed_surroundings():
        for artefact, content in _all_of(name, world, text):
            category = "texts" if _is_text(artefact) else "numbers"
            found[category][artefact] = _masked(content, world)
    return found


def digests_of(artefacts: Artefacts) -> Digests:
    """Return the SHA-256 of each artefact, by category."""
    return {
        category: {name: hashlib.sha256(content).hexdigest() for name, content in sorted(contents.items())}
        for category, contents in artefacts.items()
    }


def stored_digests() -> dict[str, Digests]:
    return json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.exists() else {}


def write_digests(digests: dict[str, Digests]) -> None:
    DIGESTS.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def differences(stored: Digests, computed: Digests) -> list[str]:
    """Return one line for each artefact that is new, missing or different."""
    lines = []
    for category in sorted({*stored, *computed}):
        before, after = stored.get(category, {}), computed.get(category, {})
        for artefact in sorted({*before, *after}):
            if before.get(artefact) != after.get(artefact):
                change = "new" if artefact not in before else "missing" if artefact not in after else "different"
                lines.append(f"{category}: {artefact}: {change}")
    return lines


def write_artefacts(artefacts: Artefacts, folder: Path) -> None:
    """Store the artefacts as files, category/artefact, for `diff -r` with those of another checkout."""
    for category, contents in artefacts.items():
        for artefact, content in contents.items():
            path = folder / category / artefact
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _all_of(name: str, world: Path, text: str) -> Commands:
    document = tomllib.loads(text)
    dataset, mode, now = document["input"]["dataset"], document["schedule"]["mode"], inputs.NIGHTS[1]
    inputs.write_surroundings(world, dataset)
    (world / "run.toml").write_text(text, encoding="utf-8")
    inputs.write_readings(world, dataset, night=0)
    if mode == "archive":
        inputs.write_readings(world, dataset, night=1)
        yield from _first_night(world, document, now=now, json_run=True)
    else:
        yield from _first_night(world, document, now=inputs.NIGHTS[0], json_run=False)
        inputs.write_readings(world, dataset, night=1)
        as_of = _as_of(mode, now)
        yield from _command(world, "second-plan", "plan", "run.toml", *as_of, now=now)
        yield from _command(world, "run-json", "run", "run.toml", *as_of, "--json", now=now)
    ledger = f"sqlite:///{world}/out/ledger.sqlite"
    yield from _command(world, "verify", "verify", "out/release", now=now)
    yield from _command(world, "verify-json", "verify", "out/release", "--ledger", ledger, "--json", now=now)
    yield from _command(world, "ledger-show", "ledger", "show", "run.toml", now=now)
    yield from _files(world / "out")
    yield from _ledger(world / "out" / "ledger.sqlite")
    for witness in sorted((world / "witness").iterdir()):
        yield f"witness/{witness.name}", witness.read_bytes()


def _first_night(world: Path, document: dict[str, dict[str, str]], *, now: datetime, json_run: bool) -> Commands:
    as_of = _as_of(document["schedule"]["mode"], now)
    if document.get("model", {}).get("source") == "estimated":
        yield from _command(world, "calibrate", "calibrate", "run.toml", now=now)
    yield from _command(world, "plan", "plan", "run.toml", *as_of, now=now)
    yield from _command(world, "plan-json", "plan", "run.toml", *as_of, "--json", now=now)
    if any(series["statistic"] == "mean" for series in document["series"].values()):  # type: ignore[attr-defined]
        yield from _command(world, "plan-notions-json", "plan", "run.toml", "--notions", "--json", now=now)
    if json_run:
        twin = world.with_name("world-json")
        shutil.copytree(world, twin)
        for artefact, content in _command(twin, "run-json", "run", "run.toml", *as_of, "--json", now=now):
            yield artefact, content.replace(str(twin).encode(), str(world).encode())
    yield from _command(world, "run", "run", "run.toml", *as_of, now=now)


def _as_of(mode: str, now: datetime) -> tuple[str, ...]:
    return ("--as-of", str(now.date())) if mode == "rehearsal" else ()


def _command(world: Path, artefact: str, *words: str, now: datetime) -> Commands:
    """Yield what a command prints, on each stream; the exit status is an artefact of its own."""
    status, out, err = run_command(world, *words, now=now, seed=now.toordinal())
    yield f"commands/{artefact}.{'json' if '--json' in words else 'stdout.txt'}", out.encode()
    yield f"commands/{artefact}.stderr.txt", err.encode()
    yield f"commands/{artefact}.status", str(status).encode()


def _files(out: Path) -> Commands:
    """Yield the files of the release folder and, as far as their place does not show, of the confidential folder."""
    for path in sorted((out / "release").rglob("*")):
        if path.is_file():
            name = f"release/{path.relative_to(out / 'release')}"
            yield name, _WRITER.sub(b"parquet-cpp-arrow version <version>", path.read_bytes())
            if path.suffix == ".parquet":
                yield f"{name}.rows", _rows(path)
    inside = out / "confidential"
    for path in sorted(inside.rglob("*")):
        relative = path.relative_to(inside)
        if path.is_file() and relative.parts[0] not in _VARYING and not path.name.startswith("."):
            table = path.suffix == ".parquet"
            yield (
                f"confidential/{relative}{'.rows' if table else ''}",
                _rows(path, is_model="model" in relative.parts) if table else path.read_bytes(),
            )


def _rows(path: Path, *, is_model: bool = False) -> bytes:
    """Return schema, metadata and rows of a Parquet file as lines, so that a difference can be read.

    Eigenvalues of a model differ from processor to processor in their last digits.
    """
    with pq.ParquetFile(path) as file:
        table = file.read()
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


def _ledger(path: Path) -> Commands:
    """Yield each table of the ledger with all columns, by seq, and the statements that made the tables."""
    with sqlite3.connect(path) as connection:
        made = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        yield "ledger/schema", "\n".join(str(row) for row in made).encode()
        for table in [name for kind, name, _ in made if kind == "table"]:
            cursor = connection.execute(f'SELECT * FROM "{table}" ORDER BY 1')
            columns = [column[0] for column in cursor.description]
            rows = [json.dumps(dict(zip(columns, row, strict=True)), default=str) for row in cursor]
            yield f"ledger/{table}.jsonl", "\n".join([*rows, ""]).encode()
    connection.close()


def _is_text(artefact: str) -> bool:
    path = Path(artefact)
    return path.suffix in _TEXT_SUFFIXES or path.name in _TEXT_FILES


def _masked(content: bytes, world: Path) -> bytes:
    return content.replace(str(world).encode(), b"<folder>")
