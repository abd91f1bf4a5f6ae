"""Output of `agedp ledger households`, and the line of a run about shared households: for the terminal only.

How many households are counted elsewhere too, and where, is confidential: it is in no file, log or `--json`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from agedp.internal_records.household_accounts import AccountOverview, HouseholdAccounts
from agedp.ledger_session import LedgerSession
from agedp.run_context import RunContext
from agedp_data.errors import LedgerError, RunFileError
from agedp_flows.text.number_text import format_loss
from agedp_flows.text.screen import heading

_FLOW_RUN: Final = "PREFECT__FLOW_RUN_ID"
"""Set by Prefect for the process of a flow run."""
_KINDS: Final = {"release": "releases", "rehearsal": "rehearsal over readings"}


def check_on_terminal() -> None:
    """Refuse to show confidential numbers where Prefect would store them.

    Raises:
        LedgerError: the process is that of a Prefect flow run.
    """
    context = sys.modules.get("prefect.context")
    is_in_flow = context is not None and context.FlowRunContext.get() is not None
    if is_in_flow or os.environ.get(_FLOW_RUN):
        raise LedgerError("`agedp ledger households` shows confidential numbers; use it on a terminal, not in Prefect")


def rebuild_register(run_file: Path) -> None:
    """Fill a lost household register again from the ledger and the roster of a run file.

    Raises:
        LedgerError: the register is there, or no ledger exists.
    """
    session = LedgerSession.open_existing(RunContext.load(run_file), checks_register=False)
    _accounts(session).rebuild(session.open_ledger, session.run.roster)


def household_lines(run_file: Path) -> list[str]:
    """Return the accounts of a run file's population as lines for the terminal."""
    session = LedgerSession.open_existing(RunContext.load(run_file))
    return overview_lines(_accounts(session).overview(session.open_ledger))


def _accounts(session: LedgerSession) -> HouseholdAccounts:
    accounts = session.accounts
    if accounts is None:
        raise RunFileError(
            "no household register counts these releases: they are of synthetic households, or of a table in memory"
        )
    return accounts


def overview_lines(overview: AccountOverview) -> list[str]:
    """Return the accounts of a population as lines."""
    rebuilt = " It was lost and filled again on that day." if overview.is_rebuilt else ""
    largest, shared = overview.largest, overview.shared
    return [
        heading("Accounts of households (confidential)"),
        f"Households of the population in the register: {overview.households:,}",
        f"Largest loss about one day of a household: {format_loss(largest.day)}",
        f"Largest loss about all days of a household: {format_loss(largest.total)}",
        f"Households that are counted elsewhere too: {shared.households:,}",
        *_source_lines(overview),
        f"The register counts since {overview.since}.{rebuilt}",
    ]


def shared_lines(session: LedgerSession) -> list[str]:
    """Return a line about the households of a run that are counted elsewhere too; none if there are none."""
    accounts = session.accounts
    if accounts is None or session.ledger is None or session.ledger.household_account(session.population) is None:
        return []
    overview = accounts.overview(session.ledger)
    if not overview.shared.households:
        return []
    largest = overview.largest
    return [
        f"{overview.shared.households:,} of {overview.households:,} households are counted elsewhere too; largest loss "
        f"about one household: {format_loss(largest.day)} about a day, {format_loss(largest.total)} in all",
        *_source_lines(overview),
    ]


def _source_lines(overview: AccountOverview) -> list[str]:
    return [
        f"  {number:,} in population {population!r} ({_KINDS.get(kind, kind)})"
        for population, kind, number in overview.shared.by_source
    ]
