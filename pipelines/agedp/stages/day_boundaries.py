"""Contract + time zone database -> whether unreleased days begin when the contract registered them.

A new version of the database that moves a clock change moves days. If it moves no unreleased day, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from agedp_data.config.contract import ContractChange
from agedp_data.config.contract_values import ZONE_CHANGES, meaning_of
from agedp_data.config.run_file import RunFile
from agedp_data.datasets.zone_changes import begins_as_recorded, first_moved_day, tzdata_version
from agedp_data.errors import ContractChanged
from agedp_data.ledger import ContractRecord, ReleaseRecord


def check_day_boundaries(run: RunFile, contracts: Sequence[ContractRecord], rows: Sequence[ReleaseRecord]) -> None:
    """Check that every unreleased day begins when the contract in force registered it.

    Raises:
        ContractChanged: a day differs; the message names the first one and the remedies.
    """
    contract = meaning_of(contracts[-1].promise) if contracts else {}
    moved = first_moved_day_of_contract(contract, run, rows)
    if moved is not None:
        raise ContractChanged(
            f"{run.name}: by this time zone database{_version()} days of {run.input.layout.day_zone} from {moved} on "
            "are not those of the contract. Install the database that was used before, or record the change "
            "(`agedp ledger amend`)"
        )


def first_moved_day_of_contract(
    contract: Mapping[str, Any], run: RunFile, rows: Sequence[ReleaseRecord]
) -> date | None:
    """Return the first unreleased day that differs from a contract; None if none does or none is registered."""
    recorded = contract.get("schedule", {}).get(ZONE_CHANGES)
    if not recorded:
        return None
    return first_moved_day(recorded, run.input.layout.day_zone, first_unreleased(run, rows), run.schedule.last_day)


def first_unreleased(run: RunFile, rows: Sequence[ReleaseRecord]) -> date:
    """Return the day after the newest one that is released or skipped."""
    newest = max((row.day for row in rows), default=None)
    return run.schedule.first_day if newest is None else date.fromisoformat(newest) + timedelta(days=1)


def judge_zone_changes(
    changes: Sequence[ContractChange], old: Mapping[str, Any], run: RunFile, rows: Sequence[ReleaseRecord]
) -> tuple[ContractChange, ...]:
    """Return the changes of an amendment, with a change of the clock changes only if it moves an unreleased day.

    It is refused if the first unreleased day would overlap a released day or leave a gap after it.
    """
    key = f"schedule.{ZONE_CHANGES}"
    other_changes = [change for change in changes if change.key != key]
    moved = first_moved_day_of_contract(old, run, rows)
    if moved is None:
        return tuple(other_changes)
    change = next(change for change in changes if change.key == key)
    change = replace(change, old="as registered", new=f"other days from {moved} on")
    since = first_unreleased(run, rows)
    if rows and not begins_as_recorded(old["schedule"][ZONE_CHANGES], run.input.layout.day_zone, since):
        reason = f"{since} would overlap the day released before it, or leave a gap; install the earlier database"
        change = replace(change, verdict="refused", why=reason)
    return tuple(sorted([*other_changes, change], key=lambda amended: amended.key))


def _version() -> str:
    version = tzdata_version()
    return f" ({version})" if version else ""
