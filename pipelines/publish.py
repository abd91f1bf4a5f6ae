"""LEDGER -> release folder: a projection of what was drawn; same head and same software, same bytes.

Every file is put in place by rename, SHA256SUMS last: a folder whose sums do not match was cut off, and
publishing again mends it. Nothing here reads a reading.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data import noise, tables
from agedp_data.config.model import Estimated
from agedp_data.errors import InputError
from agedp_data.ledger import Contract, Ledger, Release
from agedp_data.ledger.moves import lines, published_rows
from agedp_data.losses import number
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import Account, Figure
from agedp_data.statement import OVERLAP, OWN_DAYS, RECOVERED, ROSTER_READ_OFF, Facts, markdown, statement
from pipelines import folders
from pipelines.received import AVERAGES, MEANS, METADATA_KEY, ROWS, STATEMENT, SUMS, WORDS, ReleaseFolder, open_release
from pipelines.work import Work, earlier_models

__all__ = ["ReleaseFolder", "averages", "open_release", "project", "publish"]

SOFTWARE = ("agedp", "opendp", "numpy", "scipy", "pyarrow")
_READABLE = 0o644


def project(work: Work, ledger: Ledger) -> None:
    """Write the folder that the ledger stands for, and keep its statement there; nothing if nothing was said yet."""
    rows = ledger.rows(work.population)
    if not rows:
        return
    work.earlier_models = earlier_models(work, ledger, rows)
    contracts = ledger.contracts(work.population)
    claim = statement(_facts(work, ledger, contracts, rows))
    files = _files(work, ledger, claim, rows, contracts)
    ledger.record(
        json.dumps(claim, sort_keys=True, ensure_ascii=True),
        population=work.population,
        files=sums(files),
        software=json.dumps(claim["software"], sort_keys=True),
        at=max(row.published_on for row in rows),
    )
    publish(Path(work.run.output.release), files)


def project_as_of(work: Work, ledger: Ledger, day: date) -> bool:
    """Write the folder as it stood on a day, from the statement that was kept; return whether its bytes are the same.

    Other software, or another [output] interval, writes the same figures in other bytes.

    Raises:
        InputError: nothing was published by that day.
    """
    kept = [one for one in ledger.statements(work.population) if one.at <= day.isoformat()]
    if not kept:
        raise InputError(f"nothing was published to {work.population!r} by {day}")
    claim = json.loads(kept[-1].claim)
    contracts, rows = ledger.contracts(work.population), ledger.rows(work.population)
    newest = ledger.place(claim["ledger"]["head"]) or 0
    until = [row for row in rows if row.seq <= newest]
    files = _files(work, ledger, claim, until, [one for one in contracts if one.seq <= newest])
    publish(Path(work.run.output.release), files)
    return tuple(sorted(sums(files).items())) == tuple(sorted(kept[-1].files))


def _files(
    work: Work, ledger: Ledger, claim: Mapping[str, Any], rows: Sequence[Release], contracts: Sequence[Contract]
) -> dict[str, bytes]:
    """Return the files of a release folder but its checksums."""
    text = json.dumps(claim, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
    files = {
        STATEMENT: text.encode(),
        WORDS: markdown(claim).encode(),
        ROWS: lines(published_rows(ledger, work.population, head=claim["ledger"]["head"])).encode(),
    }
    versions = {one.hash: number for number, one in enumerate(contracts, 1)}
    clamps = _clamps(contracts)
    for i, series in enumerate(_in_order(rows, clamps)):
        of_series = [row for row in rows if row.series == series and row.state == "released"]
        table = averages(of_series, coverage=work.run.output.interval, versions=versions)
        guarantee = {**_guarantee(work, claim), "of": series, "clamp_kwh_by_version": clamps[series]}
        files[AVERAGES if i == 0 else f"{MEANS}_{series}.parquet"] = parquet_bytes(with_guarantee(table, guarantee))
    return files


def _clamps(contracts: Sequence[Contract]) -> dict[str, dict[str, str]]:
    """Return for every series that ever was a mean its clamp by version, an ended one's too."""
    found: dict[str, dict[str, str]] = {}
    for version_number, known in enumerate(contracts, 1):
        for name, series in json.loads(known.promise)["series"].items():
            if series["statistic"] == "mean":
                found.setdefault(name, {})[str(version_number)] = series["clamp_kwh"]
    return found


def _in_order(rows: Sequence[Release], means: Mapping[str, object]) -> list[str]:
    """Return the means in the order of their first release: the first keeps the plain file name for ever."""
    return [name for name in dict.fromkeys([*(row.series for row in rows), *sorted(means)]) if name in means]


def _guarantee(work: Work, claim: Mapping[str, Any]) -> dict[str, Any]:
    """Return what travels in the schema metadata of every file of figures."""
    return {
        "schema": "agedp-daily-averages-1",
        **{key: claim[key] for key in ("title", "source", "licence", "contact") if key in claim},
        "population": claim["population"],
        "rehearsal": claim["rehearsal"],
        "promise": claim["contract"]["promise"],
        "series": claim["contract"]["series"],
        "interval": {"coverage": str(work.run.output.interval), "covers": "the noise and nothing else"},
        "day_zone": work.store.layout.day_zone,
        "figures": claim["figures"],
        "ledger": claim["ledger"],
    }


def _facts(work: Work, ledger: Ledger, contracts: Sequence[Contract], rows: Sequence[Release]) -> Facts:
    output = work.run.output
    titles = {"title": output.title, "source": output.source, "licence": output.licence, "contact": output.contact}
    others = {one.population for one in ledger.contracts()} - {work.population}
    return Facts(
        title={key: text for key, text in titles.items() if text},
        contract=json.loads(contracts[-1].promise),
        days=sorted({row.day for row in rows if row.state == "released"}),
        skipped=sorted({row.day for row in rows if row.state == "skipped"}),
        published_on=sorted({row.published_on for row in rows if row.state == "released"}),
        figures=figures(work, rows),
        model=work.model.public if work.model else None,
        notes=_notes(work, ledger, several=bool(others)),
        ledger_id=ledger.id,
        head=_head(ledger),
        version=len(contracts),
        software={name: version(name) for name in SOFTWARE},
    )


def _head(ledger: Ledger) -> str:
    """Return the hash of the newest row that is no statement: a statement cannot name the row that it becomes."""
    heads = {row.seq: row.hash for row in ledger.rows()}
    heads |= {row.seq: row.hash for row in ledger.contracts()} | {row.seq: row.hash for row in ledger.models()}
    return heads[max(heads)]


def _notes(work: Work, ledger: Ledger, *, several: bool) -> list[str]:
    model, schedule = work.run.model, work.run.schedule
    # Once days were released by a roster that was read off the data, that is so for ever.
    earlier = [json.loads(kept.claim) for kept in ledger.statements(work.population)[-1:]]
    read_off = work.roster.read_off or any(ROSTER_READ_OFF in claim.get("notes", ()) for claim in earlier)
    own = isinstance(model, Estimated) and model.period[1] >= schedule.first_day
    said = ((RECOVERED, ledger.seam() is not None), (ROSTER_READ_OFF, read_off), (OWN_DAYS, own), (OVERLAP, several))
    return [note for note, holds in said if holds]


def figures(work: Work, rows: Sequence[Release]) -> list[Figure]:
    """Return what these releases come to under the promise and under every other notion that applies."""
    accounts = [work.run.notion, *(account for notion in NOTIONS for account in notion.compared(work.run))]
    found = [figure for account in accounts for figure in account.figures(rows, work.terms.envelopes[0], None)]
    return [*found, *_as_promised(work, rows, accounts)]


def _as_promised(work: Work, rows: Sequence[Release], accounts: Sequence[Account]) -> list[Figure]:
    """Return what earlier models said of the rows that were charged under them, when they were charged."""
    found = []
    for model in work.earlier_models:
        last = max(i for i, row in enumerate(rows) if row.model == model)
        envelope = work.earlier_models[model]
        of_model = [figure for one in accounts for figure in one.figures(rows[: last + 1], envelope, None)]
        found += [
            replace(figure, name=f"{figure.name} as promised", assumption=f"{figure.assumption}, by model {model[:16]}")
            for figure in of_model
            if figure.kind == "conditional"
        ]
    return found


def averages(rows: Sequence[Release], *, coverage: Decimal, versions: Mapping[str, int]) -> pa.Table:
    """Return the daily averages of released rows; intervals cover the noise of `mean_kwh` and nothing else."""
    lines = [_line(row, i, coverage, versions) for row in sorted(rows, key=_by_day) for i in range(len(row.cells))]
    names = tables.DAILY_AVERAGES.names
    return tables.columns(tables.DAILY_AVERAGES, **{name: [line[name] for line in lines] for name in names})


def _by_day(row: Release) -> tuple[str, int]:
    return row.day, row.revision


def _line(row: Release, cell: int, coverage: Decimal, versions: Mapping[str, int]) -> dict[str, Any]:
    per_home = 1000.0 * row.households[cell]
    half = noise.interval(row.scale, coverage)
    value = row.values[cell]
    return {
        "day": date.fromisoformat(row.day),
        "group": row.cells[cell],
        "revision": row.revision,
        "households": row.households[cell],
        "noisy_sum_wh": value,
        "mean_kwh": value / per_home,
        "noise_sd_kwh": noise.standard_deviation(row.scale) / per_home,
        "low_kwh": (value - half) / per_home,
        "high_kwh": (value + half) / per_home,
        "published_on": date.fromisoformat(row.published_on),
        "epsilon": number(row.loss),
        "version": versions[row.contract],
    }


def with_guarantee(table: pa.Table, guarantee: Mapping[str, Any]) -> pa.Table:
    """Return the table with its guarantee in the schema metadata, one JSON key."""
    text = json.dumps(guarantee, sort_keys=True, ensure_ascii=True).encode()
    return table.replace_schema_metadata({METADATA_KEY: text})


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file; the same table, the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def sums(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each file."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}


def publish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put the files in place, SHA256SUMS last; untouched if they already lie there whole."""
    listing = "".join(f"{digest}  {name}\n" for name, digest in sums(files).items()).encode()
    if _holds(folder, {**files, SUMS: listing}):
        return
    with folders.readable(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        folders.write(folder / name, content, mode=_READABLE)
    folders.write(folder / SUMS, listing, mode=_READABLE)


def _holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all((folder / name).read_bytes() == content for name, content in files.items())
    except OSError:
        return False
