"""LEDGER -> release folder: a projection of what was drawn; same head and same software, same bytes.

Every file is put in place by rename, SHA256SUMS last: a folder whose sums do not match was cut off, and
publishing again mends it. Nothing here reads a reading.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data import noise, tables
from agedp_data.config.series import AnySeries, Distribution, series_in
from agedp_data.datapackage import datapackage
from agedp_data.errors import InputError
from agedp_data.ledger import Contract, Ledger, Release, Statement
from agedp_data.ledger.moves import lines, published_rows
from agedp_data.losses import number
from agedp_data.notions.notion import Figure
from agedp_data.readers.datasets import layout_of
from agedp_data.statement import Facts, markdown, statement
from pipelines import folders, locks
from pipelines.handover.received import (
    METADATA_KEY,
    PACKAGE,
    REPORT,
    ROWS,
    STATEMENT,
    SUMS,
    WORDS,
    ReleaseFolder,
    open_release,
)
from pipelines.handover.series_files import PublishedSeries, series_in_order
from pipelines.handover.signs import published_in
from pipelines.handover.stated import (
    counted_in,
    ending_of,
    figures_of,
    figures_with_others,
    head_of,
    notes_of,
    others_of,
    states_told,
    titles_of,
    versions_of,
)
from pipelines.reports.public import report_of
from pipelines.work import Work, follow

__all__ = ["ReleaseFolder", "averages", "open_release", "project", "publish"]

SOFTWARE = ("agedp", "opendp", "numpy", "scipy", "pyarrow")
_READABLE = 0o644
_ATTEMPTS = 5


def project(work: Work, ledger: Ledger) -> None:
    """Write the folder that the ledger stands for, and keep its statement there; nothing if nothing was said yet.

    One run at a time: of two at once, the one that knows fewer rows must not write over what the other wrote. The
    statement tells of one moment: nobody releases between the rows that it is made from and its own.

    Raises:
        ContractChanged: the run file no longer says what was promised; nothing that differs may be claimed.
    """
    ledger.require_unchanged(work.promise, population=work.population)
    if ledger.rows(work.population):
        with locks.alone(made(work.release)):
            for _ in range(_ATTEMPTS):
                files = ledger.together(lambda: _stated(work, ledger))
                publish(work.release, files)
                head = ledger.head()
                if work.outbox is None or (work.outbox.put(with_sums(files)) and ledger.head() == head):
                    return
        raise InputError("[output] release: another run writes there at the same time, again and again; run again")


def _stated(work: Work, ledger: Ledger) -> dict[str, bytes]:
    """Keep the statement of all rows in the ledger and return the files that carry it."""
    ledger.require_unchanged(work.promise, population=work.population)
    follow(work, ledger)
    rows, contracts = ledger.rows(work.population), ledger.contracts(work.population)
    text = json.dumps(statement(_facts(work, ledger, contracts, rows)), sort_keys=True, ensure_ascii=True)
    claim = json.loads(text)  # its keys in the order in which the ledger will give them back
    files = files_of(work, ledger, claim, rows, contracts)
    ledger.record(
        text,
        population=work.population,
        files=sums(files),
        software=json.dumps(claim["software"], sort_keys=True),
        at=_claimed_on(work, ledger),
    )
    return files


def _claimed_on(work: Work, ledger: Ledger) -> str:
    """Return the date of a statement: today, and never before anything that it tells or the statement before it."""
    told = [
        row.at for row in ledger.everything() if not isinstance(row, Statement) or row.population == work.population
    ]
    today = [] if work.run.schedule.mode == "rehearsal" else [work.today.isoformat()]
    return max([*told, *today])


def files_of(
    work: Work, ledger: Ledger, claim: Mapping[str, Any], rows: Sequence[Release], contracts: Sequence[Contract]
) -> dict[str, bytes]:
    """Return the files of a release folder but its checksums; of the run file only the interval shows in them."""
    files = {
        STATEMENT: _json(claim),
        WORDS: markdown(claim).encode(),
        ROWS: lines(published_rows(ledger, work.population, head=claim["ledger"]["head"])).encode(),
    }
    for series in series_in_order(rows, contracts):
        table, guarantee = _figures(work, series, rows, contracts)
        guarantee = {**_guarantee(work, claim), **guarantee}
        files[series.file] = parquet_bytes(with_guarantee(table, guarantee))
    files[REPORT] = report_of(work, ledger, claim, rows, contracts)
    # whatever else a folder holds comes before its list of resources
    files[PACKAGE] = _json(datapackage(claim, files))
    return files


def _json(said: Mapping[str, Any]) -> bytes:
    return (json.dumps(said, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def _figures(
    work: Work, series: PublishedSeries, rows: Sequence[Release], contracts: Sequence[Contract]
) -> tuple[pa.Table, dict[str, Any]]:
    """Return the table of one series, and what its guarantee says of it alone."""
    versions = {one.hash: number for number, one in enumerate(contracts, 1)}
    terms = {str(versions[contract]): told for contract, told in series.terms.items()}
    states = {
        str(versions[one.hash]): states_told(json.loads(one.promise))
        for one in contracts
        if series.terms.get(one.hash, {}).get("values") == "states"
    }
    travels = {"of": series.name, **({"states_by_version": states} if states else {})}
    own = [row for row in rows if series.has(row) and row.state == "released"]
    if series.statistic == "distribution":
        table = distribution(
            own, series={name: series_in(told) for name, told in series.terms.items()}, versions=versions
        )
        return table, {"schema": "agedp-daily-distribution-1", **travels, "series_by_version": terms}
    clamps = {number: told["clamp_kwh"] for number, told in terms.items()}
    table = averages(own, coverage=work.run.output.interval, versions=versions)
    return table, {"schema": "agedp-daily-averages-1", **travels, "clamp_kwh_by_version": clamps}


def _guarantee(work: Work, claim: Mapping[str, Any]) -> dict[str, Any]:
    """Return what travels in the schema metadata of every file of figures."""
    terms = claim["contract"]["input"]
    return {
        **{key: claim[key] for key in ("title", "source", "licence", "contact") if key in claim},
        "population": claim["population"],
        "rehearsal": claim["rehearsal"],
        "promise": claim["contract"]["promise"],
        "series": claim["contract"]["series"],
        "interval": {"coverage": str(work.run.output.interval), "covers": "the noise and nothing else"},
        "day_zone": layout_of(terms["dataset"], terms.get("columns")).day_zone,
        "figures": claim["figures"],
        "ledger": claim["ledger"],
    }


def _facts(work: Work, ledger: Ledger, contracts: Sequence[Contract], rows: Sequence[Release]) -> Facts:
    released = {row.day for row in rows if row.state == "released"}
    beyond_states, represented = counted_in(contracts, rows)
    return Facts(
        title=titles_of(work),
        contract=json.loads(contracts[-1].promise),
        days=sorted(released),
        skipped=sorted({row.day for row in rows} - released),  # a day that one series only skipped is released
        published_on=sorted({row.published_on for row in rows if row.state == "released"}),
        figures=[*figures(work, rows), *figures_with_others(ledger, work.population)],
        limits=work.run.notion.limits,
        ending=ending_of(work, contracts, rows),
        model=work.model.public if work.model else None,
        notes=notes_of(work, ledger),
        ledger_id=ledger.id,
        head=head_of(ledger),
        versions=versions_of(contracts),
        software={name: version(name) for name in SOFTWARE},
        others=len(others_of(ledger, work.population)),
        opening=work.run.promise.opening,
        beyond_states=beyond_states,
        represented=represented,
    )


def figures(work: Work, rows: Sequence[Release]) -> list[Figure]:
    """Return what these releases come to under the promise and under every other notion that applies."""
    return figures_of(work, rows)


def averages(rows: Sequence[Release], *, coverage: Decimal, versions: Mapping[str, int]) -> pa.Table:
    """Return the daily averages of released rows; intervals cover the noise of `mean_kwh` and nothing else."""
    spread = {
        scale: (noise.standard_deviation(scale), noise.interval(scale, coverage))
        for scale in {row.scale for row in rows}
    }
    lines = [
        _line(row, i, *spread[row.scale], versions) for row in sorted(rows, key=_by_day) for i in range(len(row.cells))
    ]
    return tables.of_lines(tables.DAILY_AVERAGES, lines)


def distribution(rows: Sequence[Release], *, series: Mapping[str, AnySeries], versions: Mapping[str, int]) -> pa.Table:
    """Return the counts of released rows by group and range of use; `series` by the contract of its rows."""
    deviation = {scale: noise.standard_deviation(scale) for scale in {row.scale for row in rows}}
    lines = []
    for row in sorted(rows, key=_by_day):
        counted = series[row.contract]
        if isinstance(counted, Distribution):
            places = map(counted.place, row.cells)
            lines += [
                {
                    **_of_row(row, group, versions),
                    "bin_low_kwh": float(low),
                    "bin_high_kwh": float(high),
                    "households_noisy": value,
                    "noise_sd": deviation[row.scale],
                }
                for (group, low, high), value in zip(places, row.values, strict=True)
            ]
    return tables.of_lines(tables.DAILY_DISTRIBUTION, lines)


def _by_day(row: Release) -> tuple[str, int]:
    return row.day, row.revision


def _line(row: Release, cell: int, deviation: float, half: int, versions: Mapping[str, int]) -> dict[str, Any]:
    per_home = 1000.0 * row.households[cell]
    value = row.values[cell]
    return {
        **_of_row(row, row.cells[cell], versions),
        "households": row.households[cell],
        "noisy_sum_wh": value,
        "mean_kwh": value / per_home,
        "noise_sd_kwh": deviation / per_home,
        "low_kwh": (value - half) / per_home,
        "high_kwh": (value + half) / per_home,
    }


def _of_row(row: Release, group: str, versions: Mapping[str, int]) -> dict[str, Any]:
    """Return what a line of every table says of its release."""
    return {
        "day": date.fromisoformat(row.day),
        "group": group,
        "revision": row.revision,
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
    """Put the files in place, SHA256SUMS last, and remove those of another release; nothing if they lie there whole."""
    whole = with_sums(files)
    folders.sweep(made(folder))
    of_another = [path for path in published_in(folder) if path.name not in whole]
    if not of_another and _holds(folder, whole):
        return
    for name, content in files.items():
        folders.write(folder / name, content, mode=_READABLE)
    with folders.readable(folder):
        for path in of_another:
            path.unlink(missing_ok=True)
    folders.write(folder / SUMS, whole[SUMS], mode=_READABLE)


def with_sums(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a release and, last, their checksums."""
    listing = "".join(f"{digest}  {name}\n" for name, digest in sums(files).items())
    return {**files, SUMS: listing.encode()}


def made(folder: Path) -> Path:
    """Return a release folder, made if need be."""
    with folders.readable(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all((folder / name).read_bytes() == content for name, content in files.items())
    except OSError:
        return False
