"""What `agedp ledger show`, `verify` and `export` say, and what a folder is checked against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agedp_data import clock
from agedp_data.config import load
from agedp_data.errors import LedgerError
from agedp_data.format_versions import FORM, NEEDS
from agedp_data.ledger import Fault, Ledger, StatementRecord
from agedp_data.ledger.database import REPAIR_HINT
from agedp_data.losses import format_epsilon
from pipelines.handover.compare import verify_against
from pipelines.handover.ledger_moves import export_ledger
from pipelines.handover.received import ReleaseFolder

_TOLD = 5
"""How many faults a line tells of."""


def _address(place: str) -> tuple[str, str | None]:
    """Return the ledger and the population of a run file, or a ledger that is named by its URL with everybody in it."""
    if "://" in place:
        return place, None
    run = load(Path(place))
    return run.output.ledger, run.population.name


def shown(place: str) -> list[dict[str, Any]]:
    """Return the releases to a run file's population, or all of a ledger by its URL, oldest first."""
    url, population = _address(place)
    with Ledger.open(url) as ledger:
        rows = ledger.rows(population)
    return [
        {
            "seq": row.seq,
            "population": row.population,
            "day": row.day,
            "series": row.series,
            "state": row.state,
            "epsilon": format_epsilon(row.loss),
            "published_on": row.published_on,
            "households": list(row.households),
            "values": list(row.values),
            "hash": row.hash,
        }
        for row in rows
    ]


def statements(place: str) -> list[dict[str, Any]]:
    """Return what was claimed to a run file's population, or to all of a ledger by its URL, oldest first."""
    url, population = _address(place)
    with Ledger.open(url) as ledger:
        kept = [row for row in ledger.statements(population) if row.population]
    return [{"seq": row.seq, "population": row.population, "at": row.at, **_told(row)} for row in kept]


def _told(row: StatementRecord) -> dict[str, Any]:
    claim = json.loads(row.claim)
    days = {key: claim["days"][key] for key in ("released", "first", "last")}
    return {"version": claim["version"], **days, "hash": row.hash}


def show_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the releases for people."""
    return ["seq    day         series          state     epsilon       published   hash", *map(_show_line, rows)]


def statement_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the statements for people."""
    return ["seq    statement of  version  days  first       last        hash", *map(_statement_line, rows)]


def _statement_line(row: dict[str, Any]) -> str:
    return (
        f"{row['seq']:<5d}  {row['at']}    {row['version']:<7d}  {row['released']:<4d}  {row['first']:10s}  "
        f"{row['last']:10s}  {row['hash'][:16]}"
    )


def _show_line(row: dict[str, Any]) -> str:
    return (
        f"{row['seq']:<5d}  {row['day']}  {row['series']:14s}  {row['state']:8s}  {row['epsilon']:12s}  "
        f"{row['published_on']}  {row['hash'][:16]}"
    )


def verified(place: str) -> tuple[dict[str, Any], str]:
    """Return what was verified, for machines and for people.

    Raises:
        LedgerError: the first faults, and how many there are.
    """
    with Ledger.open(_address(place)[0]) as ledger:
        _require_sound(ledger)
        head, length = ledger.head(), ledger.length()
    return {"rows": length, "head": head}, f"{length} rows, every hash as it was written; head {head}"


def upgraded(place: str) -> tuple[dict[str, Any], str]:
    """Upgrade a ledger and return what was done, for machines and for people.

    Raises:
        LedgerError: the ledger is closed, or not as it was written.
    """
    with Ledger.open(_address(place)[0]) as ledger:
        _require_sound(ledger)
        mark = ledger.upgrade(at=clock.today())
    facts = {"form": FORM, "row": mark.seq if mark else 0}
    if mark is None:
        return facts, f"the ledger has form {FORM} already, the newest that this agedp knows"
    return (
        facts,
        f"from row {mark.seq} on the ledger has form {FORM}; it needs agedp {NEEDS[FORM]} or newer from now on",
    )


def _require_sound(ledger: Ledger) -> None:
    faults = ledger.verify()
    if faults:
        said = "; ".join(_fault(each) for each in faults[:_TOLD])
        more = f"; and {len(faults) - _TOLD} more" if len(faults) > _TOLD else ""
        raise LedgerError(f"the ledger is not as it was written: {said}{more}; {REPAIR_HINT}")


def _fault(found: Fault) -> str:
    where = f"row {found.seq} ({found.table}):" if found.seq else found.table
    return f"{where} {found.problem}"


def verified_against(folder: ReleaseFolder, url: str) -> None:
    """Check a verified release folder against a ledger, which is checked first.

    Raises:
        LedgerError: the ledger is not as it was written, or does not say what the folder says.
    """
    with Ledger.open(url) as ledger:
        _require_sound(ledger)
        verify_against(folder, ledger)


def exported(run_file: Path, file: Path, *, close: bool) -> tuple[dict[str, Any], str]:
    """Export a ledger, close it if asked to, and say so to machines and people."""
    rows = export_ledger(load(run_file).output.ledger, file, closed_at=clock.today() if close else None)
    ending = "; this ledger is closed and goes on where `agedp ledger import` puts it" if close else ""
    return {"rows": rows, "closed": close}, f"{rows} rows written to {file}{ending}"
