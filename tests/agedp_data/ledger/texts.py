"""Promises, claims and models' public parts of the form that a ledger takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agedp_data.config.contract_document import ContractDocument
from agedp_data.notions.notion import LossBound
from agedp_data.statement.document import ContractVersion
from agedp_data.statement.facts import SeriesEnd, StatementFacts, build_statement

ENVELOPE = json.dumps(
    {
        "envelope": {
            "ages": [48], "assume": "curve", "bounds": {"total_variation": [500_000_000]},
            "losses": [1_000_000_000, "inf"], "steps_per_day": 48,
        },
        "source": "declared",
    },
    sort_keys=True,
    separators=(",", ":"),
)  # fmt: skip


def promise(
    population: str = "london-homes", *, series: tuple[str, ...] = ("mean", "bins"), **terms: object
) -> dict[str, Any]:
    """A promise to these people about these series; `terms` change what is promised."""
    return {
        "version": 1,
        "input": {"dataset": "london"},
        "population": {"name": population, "min_households": 1},
        "schedule": {"mode": "archive", "first_day": "2013-01-01", "last_day": "2026-12-31"},
        "promise": {"notion": "classical", "epsilon": "0.5", "max_day_epsilon": "1", "epsilon_total": "9", **terms},
        "series": {name: {"statistic": "mean", "clamp_kwh": "50", "share": "1"} for name in series},
    }


def claim(contract: Mapping[str, Any], *, head: str, title: str = "") -> str:
    """What is claimed to the people of a contract before anything was released."""
    facts = StatementFacts(
        title={"title": title}, contract=ContractDocument.model_validate(contract), days=(), skipped=(),
        published_on=(),
        bounds=[LossBound(name, 0, "assumption-free", name) for name in ("day", "total")],
        limits={"day": 10**9, "total": 9 * 10**9}, ending=SeriesEnd("", "", None), model=None, notes=(),
        ledger_id=head, head=head, versions=[ContractVersion(registered="2013-01-01", changes=[])],
        software={"agedp": "0"},
    )  # fmt: skip
    return build_statement(facts).text()
