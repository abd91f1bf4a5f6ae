"""Run file, LEDGER and statement -> a request for erasure or an impact assessment, as far as a file knows the answers.

The templates are pages: `templates/erase.md` and `templates/impact-assessment.md`, which the documentation shows as
they are. Each text in asterisks is an example. One with a name, `*4 days*<!-- released -->`, is replaced by what the
run file, the ledger or its newest statement contains; the others are blanks for the operator, marked `...`.

Confidential: the filled text names paths and the roster's size. It is for the operator's terminal, or for a file of the
operator's, never for a release folder, a log or Prefect.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agedp.internal_records.signing_keys import keys_of
from agedp.ledger_session import LedgerSession
from agedp.local_files import atomic_files
from agedp.statement_facts import loss_bounds
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.epsilon import format_epsilon
from agedp_data.errors import InputError
from agedp_data.messages import count_text
from agedp_data.notions.notion import DAY_BOUND, TOTAL_BOUND
from agedp_data.series.series import AnySeries
from agedp_data.statement.document import StatedBound, Statement, read_statement
from agedp_data.statement.facts import state_bound

TEMPLATES: Final = {"erase": "Erasure of a household", "impact-assessment": "Impact assessment"}
"""Titles of the templates by name."""
BLANK: Final = "**...**"
"""What marks a blank."""
_ROWS: Final = re.compile(r"(?:^\|.*<!-- rows (?P<name>[a-z_]+) -->.*\n)+", re.MULTILINE)
_EXAMPLE: Final = re.compile(r"\*(?P<example>(?:[^*|\n\\]|\\.)+)\*(?:<!-- (?P<name>[a-z_]+) -->)?")
_LINK: Final = re.compile(r"\[(?P<text>[^]]+)\]\([^)]+\)")
_NONE, _NOT_YET = "none", "nothing is released yet"


class FilledTemplate(NamedTuple):
    """A filled template (confidential), and how many blanks are left for the operator."""

    text: str
    blanks: int

    def write(self, path: Path, release_folder: Path) -> None:
        """Write it for the owner's eyes only; nothing is overwritten, because the operator fills in the blanks there.

        Raises:
            InputError: the file exists, cannot be written, or would lie in the release folder.
        """
        problem = "exists already, and may have answers; name another file" if atomic_files.path_exists(path) else ""
        if path.resolve().is_relative_to(release_folder.resolve()):
            problem = "would be handed over with the release folder, and it is confidential; name another folder"
        if problem:
            raise InputError(f"--out: the file {problem}", private=f"--out {path}: the file {problem}")
        atomic_files.write(path, self.text.encode())


def fill_template(name: str, session: LedgerSession) -> FilledTemplate:
    """Return a template with every answer that run file, ledger and statement have, also before the first release."""
    page = (Path(__file__).parent / "templates" / f"{name}.md").read_text(encoding="utf-8")
    statement = _newest_statement(session)
    bounds = _bounds(session) if statement is None else statement.bounds
    facts = {**_facts(session), **_stated(statement, bounds)}
    page = _ROWS.sub(lambda _: "".join(map(_bound_row, bounds)), _LINK.sub(lambda match: match["text"], page))
    text = _EXAMPLE.sub(lambda match: _answer(match, facts), page)
    head = f"ledger head {statement.ledger.head}" if statement else _NOT_YET
    opening = (
        f"Confidential: this file names paths. Filled in from {session.run.run_file.name} and its ledger ({head})."
    )
    return FilledTemplate(
        f"# {TEMPLATES[name]}: {session.run.population}\n\n{opening} Each {BLANK} is for you.\n\n{text}",
        text.count(BLANK),
    )


def _answer(match: re.Match[str], facts: Mapping[str, str]) -> str:
    """Return what replaces an example: the fact of its name, or a blank with the example beside it."""
    if match["name"] and (answer := facts[match["name"]]):
        return answer
    example = match["example"]
    return BLANK if example == "..." or match["name"] else f"{BLANK} (such as: {example})"


def _newest_statement(session: LedgerSession) -> Statement | None:
    record = None if session.ledger is None else session.ledger.newest_statement(session.run.population)
    return None if record is None else read_statement(record.claim)


def _bounds(session: LedgerSession) -> list[StatedBound]:
    """Return the bounds before the first release: those of the draws of a calibration, else 0."""
    terms = session.terms()
    return [state_bound(bound, terms.notion.limits) for bound in loss_bounds(terms, ())]


def _facts(session: LedgerSession) -> dict[str, str]:
    """Return the answers of run file and confidential folder by name; "" where neither has one."""
    run, paths = session.run.run_file, session.run.paths
    output, accounts, schedule = run.output, session.accounts, run.schedule
    places = {
        "roster": run.population.roster,
        "meters": run.population.meters,
        "store": paths.store,
        "roster_cache": paths.roster,
        "books": paths.books,
        "confidential": paths.folder,
        "ledger": output.ledger,
        "release": output.release,
        "witness": output.witness,
        "accounts": None if accounts is None else accounts.place.url,
        "accounts_key": None if accounts is None else accounts.place.key_path,
        "model_files": run.model.file if isinstance(run.model, EstimatedModel) else None,
        "model_tables": paths.folder / "forgetting" if isinstance(run.model, EstimatedModel) else None,
    }
    promise, key = run.promise, keys_of(session.ledger).newest
    return {
        **{name: _NONE if place is None else _code(place) for name, place in places.items()},
        "inputs": ", ".join(map(_code, run.input.files)) if schedule.reads_input else _NONE,
        "run_command": _code(shlex.join(["agedp", "run", str(run.folder / run.name)])),
        "today": str(session.run.today),
        "population": _cell(run.population.name),
        "households": f"{len(session.run.roster.rows.ids):,}",
        "groups": ", ".join(map(_code, session.run.roster.counts.groups)) or "no groups",
        "minutes": str(run.input.layout.interval_minutes),
        "contact": _cell(output.contact or ""),
        "source": _cell(output.source or ""),
        "licence": _cell(output.licence or ""),
        "statistics": "; ".join(f"{_cell(name)} ({_series_text(of)})" for name, of in run.series.items()),
        "mode": schedule.mode,
        "first_day": str(schedule.first_day),
        "last_day": str(schedule.last_day or "no end"),
        "age_days": str(promise.age_days or 0),
        "retention": _retention(session),
        "min_households": str(run.population.min_households),
        "notion": promise.notion,
        "max_day_epsilon": format_epsilon(promise.day_cap),
        "epsilon_total": "unlimited" if promise.total_cap is None else format_epsilon(promise.total_cap),
        "model": _model_text(session),
        "key": _code(key) if key else "none, the folder is not signed",
        **_account(session),
    }


def _account(session: LedgerSession) -> dict[str, str]:
    """Return the losses with all populations that share a household, as the accounts know them now."""
    ledger, accounts = session.ledger, session.accounts
    overview = None if ledger is None or accounts is None else accounts.overview(ledger)
    if overview is None:
        return dict.fromkeys(("account_day", "account_total"), "not counted")
    account, today = overview.account, f"on {session.run.today}"
    losses = {"account_day": account.day, "account_total": account.total}
    return {name: f"{format_epsilon(loss)} {today}" for name, loss in losses.items()}


def _stated(statement: Statement | None, bounds: Sequence[StatedBound]) -> dict[str, str]:
    """Return the figures of the statement by name, and those of the bounds, which are there before it."""
    by_name = {bound.name: bound for bound in bounds}
    day, total = by_name[DAY_BOUND], by_name[TOTAL_BOUND]
    days = None if statement is None else statement.days
    accuracy = (
        f"{_cell(of.series)}{f', {_cell(of.group)}' if of.group else ''}, {of.day}: at most {of.within} {of.unit}"
        for of in (statement.accuracy if statement else None) or ()
    )
    fewest = [] if statement is None else [of.contract.population.min_households for of in statement.stated_contracts]
    return {
        **({"min_households": str(min(fewest))} if fewest else {}),
        "day_epsilon": day.epsilon,
        "total_epsilon": total.epsilon,
        "day_factor": day.factor,
        "total_factor": total.factor,
        "released": f"{count_text(days.released, 'day')}, {days.first} to {days.last}" if days else _NOT_YET,
        "last_released": days.last if days else _NOT_YET,
        "accuracy": "; ".join(accuracy) or _NOT_YET,
    }


def _bound_row(bound: StatedBound) -> str:
    cells = (bound.name, bound.epsilon, bound.factor or _NONE, bound.limit, "*...*")
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _retention(session: LedgerSession) -> str:
    """Return how long readings are stored (`agedp.store.retention`)."""
    run = session.run.run_file
    if not run.schedule.reads_input:
        return "no reading is stored"
    if run.schedule.mode == "archive" and "keep_days" not in run.engine.model_fields_set:
        return "until you remove them: an archive keeps them unless `keep_days` is written"
    return f"{run.engine.keep_days} days after the day, by whole months, once it is released"


def _model_text(session: LedgerSession) -> str:
    """Return where the model comes from, and what of it is published without noise."""
    section = session.run.run_file.model
    if isinstance(section, DeclaredModel):
        return f"declared ({_cell(section.basis)}); nothing of it is computed from readings"
    if isinstance(section, EstimatedModel):
        return f'estimated, publish = "{section.publish}"'
    return _NONE


def _series_text(series: AnySeries) -> str:
    return f"{series.KIND} by {', '.join(series.columns)}" if series.columns else series.KIND


def _code(place: object) -> str:
    return f"`{_cell(str(place))}`"


def _cell(text: str) -> str:
    """Return a text for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")
