"""Output of `agedp ledger show`, `verify`, `upgrade` and `export`, and of the checks of a release folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agedp.ledger_transfer import export_ledger, verify_against
from agedp.release_folder.span_bounds import SpanBound
from agedp.release_verification import ReleaseFolder
from agedp_data import clock
from agedp_data.config import load
from agedp_data.epsilon import exact_text, format_delta, format_epsilon
from agedp_data.errors import LedgerError, RunFileError
from agedp_data.ledger import Ledger
from agedp_data.ledger.backends.backend import REPAIR_HINT
from agedp_data.ledger.backends.connect import database_at
from agedp_data.ledger.lifecycle import LEDGER_FORM, LEDGER_NEEDS
from agedp_data.messages import count_text, escape_text
from agedp_data.statement.document import read_statement
from agedp_data.statement.note_texts import aside
from agedp_flows.text.screen import format_bound, format_loss, table_lines

_MAX_FAULTS = 5
"""Number of faults that an error message lists."""
_MAX_DIGITS = 9
_HASH_DIGITS = 16
"""Hexadecimal digits of a hash that tell rows apart."""
_MEANING = (
    "Had one household used anything else on these days, every set of results would be at most e^epsilon times as "
    "probable, plus {delta}. No model of the household is needed. The sum of the losses also holds, without a "
    "delta{aside}."
)


def _address(address: str) -> tuple[str, str | None]:
    """Return URL and population of a run file's ledger; for the URL of a ledger, all populations (None)."""
    if "://" in address:
        return address, None
    run_file = load(Path(address))
    return run_file.output.ledger, run_file.population.name


def release_rows_json(address: str) -> list[dict[str, Any]]:
    """Return the releases of a run file's population, or of all populations of a ledger URL, oldest first."""
    url, population = _address(address)
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


def statement_rows_json(address: str) -> list[dict[str, Any]]:
    """Return the statements of a run file's population, or of all populations of a ledger URL, oldest first."""
    url, population = _address(address)
    with Ledger.open(url) as ledger:
        statements = [(row, read_statement(row.claim)) for row in ledger.statements(population) if row.population]
    return [
        {"seq": row.seq, "population": row.population, "at": row.at, "version": statement.version}
        | {"released": statement.days.released, "first": statement.days.first, "last": statement.days.last}
        | {"hash": row.hash}
        for row, statement in statements
    ]


def release_lines(rows: list[dict[str, Any]], *, verbose: bool = False) -> list[str]:
    """Return the releases as a table for the terminal; with `verbose` with exact losses and whole hashes."""
    headings = ">seq", "day", "series", "state", ">epsilon", "published on", "hash"
    if not verbose:
        rows = [{**row, "epsilon": format_bound(row["epsilon"]), "hash": row["hash"][:_HASH_DIGITS]} for row in rows]
    names = "seq", "day", "series", "state", "epsilon", "published_on", "hash"
    cells = [[str(row[name]) for name in names] for row in rows]
    return table_lines(headings, cells) if cells else ["no day is released yet"]


def statement_lines(rows: list[dict[str, Any]], *, verbose: bool = False) -> list[str]:
    """Return the statements as a table for the terminal; with `verbose` with whole hashes."""
    headings = ">seq", "statement of", ">version", ">days", "first day", "last day", "hash"
    names = "seq", "at", "version", "released", "first", "last"
    digits = None if verbose else _HASH_DIGITS
    cells = [[*(str(row[name]) for name in names), row["hash"][:digits]] for row in rows]
    return table_lines(headings, cells) if cells else []


def draw_lines(address: str, *, verbose: bool = False) -> list[str]:
    """Return the draws of calibrations about a run file's population, or about all, as a table; none without a draw."""
    url, population = _address(address)
    with Ledger.open(url) as ledger:
        draws = ledger.calibration_draws(population)
    losses = [format_epsilon(draw.loss) if verbose else format_loss(draw.loss) for draw in draws]
    cells = [
        (draw.first_day, draw.last_day, loss, _question_text(draw.query))
        for draw, loss in zip(draws, losses, strict=True)
    ]
    return [*table_lines(["first day", "last day", ">epsilon", "draw of a calibration"], cells), ""] if cells else []


def _question_text(query: str) -> str:
    """Return the question of a draw in few words."""
    question = json.loads(query)
    if question.get("ask") == "quantile":
        at = f" at {question['age_days']} d" if "age_days" in question else ""
        return f"{question['probability']} quantile of the {question['of']}{at}"
    return "member of a family of bounds" if question.get("ask") == "member" else "further question"


def verify_ledger(address: str) -> tuple[dict[str, Any], str]:
    """Verify a ledger and return the result as JSON and as text.

    Raises:
        LedgerError: the ledger has faults; the message lists the first and counts the rest.
    """
    with Ledger.open(_address(address)[0]) as ledger:
        _require_sound(ledger)
        head, length = ledger.head(), ledger.length()
    return {"rows": length, "head": head}, f"{length:,} rows, every hash is correct; head {head}"


def upgrade_ledger(address: str) -> tuple[dict[str, Any], str]:
    """Upgrade a ledger to the newest form and return the result as JSON and as text.

    Raises:
        LedgerError: the ledger is closed or damaged.
    """
    with Ledger.open(_address(address)[0]) as ledger:
        _require_sound(ledger)
        mark = ledger.upgrade(at=clock.today())
    facts = {"form": LEDGER_FORM, "row": mark.seq if mark else 0}
    if mark is None:
        return facts, f"the ledger has form {LEDGER_FORM} already, the newest that this agedp knows"
    needs = f"it needs agedp {LEDGER_NEEDS[LEDGER_FORM]} or newer from now on"
    return facts, f"from row {mark.seq} on the ledger has form {LEDGER_FORM}; {needs}"


def _require_sound(ledger: Ledger) -> None:
    faults = ledger.verify()
    if faults:
        positions = [f"row {of.seq} ({of.table}):" if of.seq else of.table for of in faults[:_MAX_FAULTS]]
        text = "; ".join(f"{place} {fault.problem}" for place, fault in zip(positions, faults, strict=False))
        further = f"; and {len(faults) - _MAX_FAULTS} more" if len(faults) > _MAX_FAULTS else ""
        raise LedgerError(f"the ledger is not as it was written: {text}{further}; {REPAIR_HINT}")


def verify_folder_against(folder: ReleaseFolder, url: str) -> None:
    """Check a verified release folder against a ledger, which is checked first.

    Raises:
        RunFileError: what is given is no address of a ledger.
        LedgerError: the ledger is damaged, or differs from the folder.
    """
    try:
        database_at(url)
    except LedgerError as error:
        raise RunFileError(f"--ledger: {error}") from None
    with Ledger.open(url) as ledger:
        _require_sound(ledger)
        verify_against(folder, ledger)


def folder_spans(folder: ReleaseFolder, span: str | None, delta: str | None) -> tuple[SpanBound, ...]:
    """Return the (epsilon, delta) bounds of `--span` and `--delta`; none without these options.

    Raises:
        RunFileError: one option without the other, or a span that is no number of days.
        InputError: days or delta out of range.
    """
    if span is None and delta is None:
        return ()
    if span is None or delta is None:
        raise RunFileError("--span and --delta belong together; give both, such as --span 365 --delta 1e-6")
    if span != "total" and not (span.isascii() and span.isdecimal() and len(span) <= _MAX_DIGITS):
        raise RunFileError(f"--span {escape_text(span)}: name a number of days, such as 365, or total")
    return folder.span_bounds(days=None if span == "total" else int(span), delta=delta)


def spans_json(spans: Sequence[SpanBound]) -> list[dict[str, Any]]:
    """Return (epsilon, delta) bounds of spans as JSON; all days have no number of days."""
    return [
        {"name": span.name, "days": span.days, "delta": exact_text(span.delta)}
        | {"epsilon": exact_text(span.epsilon), "sum_of_losses": exact_text(span.sum_of_losses)}
        | ({"conditional_days": span.conditional_days} if span.conditional_days else {})
        for span in spans
    ]


def span_lines(folder: ReleaseFolder, spans: Sequence[SpanBound]) -> list[str]:
    """Return (epsilon, delta) bounds of spans as lines for the terminal, with what they mean."""
    if not spans:
        return []
    days = folder.read_statement().days.released
    longest = max(span.days or 0 for span in spans)
    short = [f"the folder has {count_text(days, 'day')}"] if days < longest else []
    lines = [
        f"{span.name}: epsilon {format_bound(span.epsilon)}; sum of the losses: {format_bound(span.sum_of_losses)}"
        for span in spans
    ]
    return [*lines, *short, _MEANING.format(delta=format_delta(spans[0].delta), aside=aside(spans[0].conditional_days))]


def export_rows(run_file: Path, file: Path, *, close: bool) -> tuple[dict[str, Any], str]:
    """Export a ledger to a file, closing it with `close`, and return the result as JSON and as text."""
    rows = export_ledger(load(run_file).output.ledger, file, closed_at=clock.today() if close else None)
    ending = "; this ledger is closed and continues where `agedp ledger import` writes it" if close else ""
    return {"rows": rows, "closed": close}, f"{rows:,} rows written to {file}{ending}"
