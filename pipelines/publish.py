"""LEDGER -> release folder: a projection of what was drawn; same head and same software, same bytes.

A folder that was cut off is mended by publishing again. Nothing here reads a reading.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from agedp_data.config.meanings import meaning_of
from agedp_data.config.series import series_in
from agedp_data.datapackage import datapackage
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord, StatementRecord
from agedp_data.ledger.moves import export_population, format_export
from agedp_data.notions.notion import LossBound
from agedp_data.readers.datasets import layout_of
from agedp_data.readers.zone_changes import tzdata_version
from agedp_data.statement import StatementFacts, markdown, statement
from pipelines import locks
from pipelines.handover.figure_tables import averages, distribution, parquet_bytes, with_guarantee
from pipelines.handover.in_place import made, publish, sums, with_sums
from pipelines.handover.received import PACKAGE, REPORT, ROWS, STATEMENT, WORDS, ReleaseFolder, open_release
from pipelines.handover.series_files import PublishedSeries, series_in_order
from pipelines.handover.stated import (
    counted_in,
    ending_of,
    estimated_from,
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

__all__ = ["ReleaseFolder", "open_release", "project"]

SOFTWARE = ("agedp", "opendp", "numpy", "scipy", "pyarrow")
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
        with locks.exclusive_lock(made(work.release)):
            for _ in range(_ATTEMPTS):
                files = ledger.in_one_transaction(lambda: _stated(work, ledger))
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
        row.at for row in ledger.all_rows() if not isinstance(row, StatementRecord) or row.population == work.population
    ]
    today = [] if work.run.schedule.mode == "rehearsal" else [work.today.isoformat()]
    return max([*told, *today])


def files_of(
    work: Work,
    ledger: Ledger,
    claim: Mapping[str, Any],
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
) -> dict[str, bytes]:
    """Return the files of a release folder but its checksums; of the run file only the interval shows in them."""
    files = {
        STATEMENT: _json(claim),
        WORDS: markdown(claim).encode(),
        ROWS: format_export(export_population(ledger, work.population, head=claim["ledger"]["head"])).encode(),
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
    work: Work, series: PublishedSeries, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> tuple[pa.Table, dict[str, Any]]:
    """Return the table of one series, and what its guarantee says of it alone."""
    versions = {one.hash: number for number, one in enumerate(contracts, 1)}
    terms = {str(versions[contract]): told for contract, told in series.terms.items()}
    states = {
        str(versions[one.hash]): states_told(meaning_of(one.promise))
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


def _facts(
    work: Work, ledger: Ledger, contracts: Sequence[ContractRecord], rows: Sequence[ReleaseRecord]
) -> StatementFacts:
    released = {row.day for row in rows if row.state == "released"}
    beyond_states, represented = counted_in(contracts, rows)
    return StatementFacts(
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
        software={name: version(name) for name in SOFTWARE} | _tzdata(),
        others=len(others_of(ledger, work.population)),
        opening=work.run.promise.opening,
        beyond_states=beyond_states,
        represented=represented,
        estimated_from=estimated_from(contracts),
    )


def figures(work: Work, rows: Sequence[ReleaseRecord]) -> list[LossBound]:
    """Return what these releases come to under the promise and under every other notion that applies."""
    return figures_of(work, rows)


def _tzdata() -> dict[str, str]:
    """Return the version of the time zone database, which decides where days begin."""
    found = tzdata_version()
    return {"tzdata": found} if found else {}
