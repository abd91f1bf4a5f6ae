"""A statement against the ledger rows of its folder: contract, days, bounds, account of households, and its words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from agedp.budget import series_by_contract
from agedp.release_folder.folder_files import ROWS
from agedp.release_folder.table_comparison import check_losses
from agedp.release_folder.value_accuracy import value_accuracy
from agedp_data.epsilon import format_epsilon, round_nano
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord, StatementRecord, canonical
from agedp_data.ledger.calibration_charges import calibration_draws, charges_of
from agedp_data.ledger.lifecycle import HouseholdAccount, read_lifecycle_record
from agedp_data.ledger.records import Row
from agedp_data.ledger.transfer import LedgerExport
from agedp_data.messages import escape_text
from agedp_data.notions.publication import Publication
from agedp_data.statement.document import StatedAccount, StatedBound, Statement
from agedp_data.statement.odds import odds_factor

_DIFFERENT: Final = "statement.json and ledger_rows.jsonl contain different days or losses"
_EPSILON_TEXT: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


def check_rows_belong(
    statement: Statement, releases: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> None:
    """Check that the ledger rows of a folder are of the population and contract that its statement names.

    Raises:
        InputError: they are of another one.
    """
    if {row.population for row in contracts} | {row.population for row in releases} != {statement.population}:
        raise InputError("ledger_rows.jsonl and statement.json are of different populations")
    if not contracts or contracts[-1].promise != canonical(statement.contract.content()):
        raise InputError("ledger_rows.jsonl and statement.json hold different contracts")
    if not {row.contract for row in releases} <= {row.hash for row in contracts}:
        raise InputError("ledger_rows.jsonl lacks a contract that its releases name")


def check_statement(
    statement: Statement, releases: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> None:
    """Check the days and losses of the statement against the ledger rows of its folder.

    Raises:
        InputError: they differ.
    """
    released = [row for row in releases if row.state == "released"]
    series = series_by_contract(contracts)
    spent = Publication(earlier=series).released_days(released)
    dates = [row.published_on for row in released]
    min_households = statement.contract.population.min_households
    days, published = statement.days, statement.published
    is_consistent = (
        (days.first, days.last, days.released) == (min(spent, default=""), max(spent, default=""), len(spent))
        and set(days.skipped) == {row.day for row in releases} - spent
        and (published.first, published.last) == (min(dates, default=""), max(dates, default=""))
        and statement.version == len(contracts)
        and all(min(row.households) >= min_households for row in released if row.contract == contracts[-1].hash)
    )
    if not is_consistent:
        raise InputError(_DIFFERENT)
    # earlier versions state no errors of values
    if statement.accuracy is not None and statement.accuracy != value_accuracy(released, contracts):
        raise InputError("statement.json and ledger_rows.jsonl contain different errors of the values")


def check_bounds(statement: Statement, rows: Sequence[Row]) -> None:
    """Check that the bounds of a statement agree with each other, with its account of households and with the draws.

    `release_verification` computes the bounds themselves again.

    Raises:
        InputError: the factor or limit of a bound differs from its epsilon, or the account or the draws differ.
    """
    for bound in statement.bounds:
        if not _is_consistent(bound):
            name = escape_text(repr(bound.name))
            raise InputError(f"statement.json: the bound {name}: its factor or limit contradicts its epsilon")
    covers = _account_covers(statement.household_account, statement.unconditional_epsilons)
    if not covers or statement.charges != charges_of(calibration_draws(rows)):
        raise InputError(_DIFFERENT)


def _account_covers(account: StatedAccount | None, stated: Mapping[str, str]) -> bool:
    """Return whether the account of households, if there is one, is not below the losses of this release alone."""
    if account is None:
        return True
    is_stated = f"of a day {account.day}, in all {account.total}" in account.text and account.since in account.text
    covers = all(Decimal(getattr(account, name)) >= Decimal(stated.get(name, "0")) for name in ("day", "total"))
    return is_stated and covers and Decimal(account.day) <= Decimal(account.total)


def check_account(statement: Statement, export: LedgerExport) -> None:
    """Check the account of households in a statement against the newest one in the ledger rows of its folder.

    Raises:
        InputError: they differ.
    """
    records = [read_lifecycle_record(row) for row in export.rows if isinstance(row, StatementRecord)]
    accounts = [record for record in records if isinstance(record, HouseholdAccount)]
    expected = [(format_epsilon(entry.day), format_epsilon(entry.total), entry.since) for entry in accounts[-1:]]
    account = statement.household_account
    if ([] if account is None else [(account.day, account.total, account.since)]) != expected:
        raise InputError("statement.json and ledger_rows.jsonl contain different accounts of households")


def _is_consistent(bound: StatedBound) -> bool:
    """Return whether a bound's factor, if it has one, is e^epsilon, and its limit is at least the bound."""
    if bound.epsilon == "infinite":
        return bound.factor in ("", bound.epsilon) and bound.limit in ("", "unlimited")
    if not _EPSILON_TEXT.fullmatch(bound.epsilon):
        return False
    is_within_limit = bound.limit in ("", "unlimited") or Decimal(bound.limit) >= Decimal(bound.epsilon)
    factors = ("",) if bound.delta is not None else ("", odds_factor(round_nano(Decimal(bound.epsilon))))
    return is_within_limit and bound.factor in factors


def check_words(words: str, statement: Statement) -> None:
    """Check that the text of STATEMENT.md contains the bounds and the account of households.

    Raises:
        InputError: it contains others.
    """
    lines = words.splitlines()
    for bound in statement.bounds:
        start = f"| {bound.name} | {bound.epsilon} | {bound.scope} |"
        if not any(line.startswith(start) for line in lines):
            raise InputError("STATEMENT.md and statement.json contain different bounds")
    if statement.household_account is not None and statement.household_account.text not in lines:
        raise InputError("STATEMENT.md and statement.json contain different accounts of households")


def check_rows(statement: Statement, releases: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> None:
    """Check that ledger rows are of the statement's population and contract, and that each loss follows from its row.

    Raises:
        InputError: they are not; one line.
    """
    check_rows_belong(statement, releases, contracts)
    check_losses(ROWS, releases, contracts)


def check_claims(statement: Statement, export: LedgerExport, *, words: str) -> None:
    """Check that the statement and its words follow from the ledger rows.

    Raises:
        InputError: a value that differs; one line.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    contracts, releases = contracts_and_releases(export)
    check_statement(statement, releases, contracts)
    check_bounds(statement, export.rows)
    check_account(statement, export)
    check_words(words, statement)


def contracts_and_releases(export: LedgerExport) -> tuple[list[ContractRecord], list[ReleaseRecord]]:
    """Return the contracts and the release rows of a folder's ledger rows."""
    contracts = [row for row in export.rows if isinstance(row, ContractRecord)]
    return contracts, [row for row in export.rows if isinstance(row, ReleaseRecord)]
