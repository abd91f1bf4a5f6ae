"""Statement -> deployment.json: the release as an entry of the public registry of differential-privacy deployments.

    {"url_slug": "...", "deployment": {"basic": {"name": "Daily averages of london", ...}, "privacy_loss": {...}, ...}}

The entry is in `deployment.toml`, which cites the registry's schema; `schemas/deployment-1.json` describes it. Every
figure is one of the statement, so that the entry follows from the rows of the ledger as the statement does.

Decisions:

* The unit is the household-day and the variant pure: that holds of every release of every notion. A bound at a delta,
  over a span, or under a model is one line of the details, with its condition.
* The epsilon of the entry is the limit of one day, which no later release exceeds: an entry is submitted once.
* What no statement knows (purpose, region, kind of publisher, reasons, author of the entry) is "..." for the publisher
  to fill in. The registry refuses an entry in which the kind of publisher is left so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from agedp_data.notions.notion import CALIBRATION_DAY_BOUND, DAY_BOUND
from agedp_data.statement.datapackage import release_description, slug
from agedp_data.statement.document import StatedBound, Statement

_ENTRY: Final = tomllib.loads(Path(__file__).with_name("deployment.toml").read_text(encoding="utf-8"))
_BLANK: Final = "..."


def deployment(statement: Statement) -> dict[str, Any]:
    """Return the entry of a release; copy it, replace each "...", and submit it (YAML reads JSON)."""
    entry: dict[str, Any] = _filled(_ENTRY, _texts(statement))
    of_day = [_limit(bound) for bound in statement.bounds if bound.name in (DAY_BOUND, CALIBRATION_DAY_BOUND)]
    entry["deployment"]["privacy_loss"]["privacy_parameters"] = {"epsilon": float(max(of_day))}
    return entry


def _limit(bound: StatedBound) -> Decimal:
    return Decimal(bound.epsilon if bound.limit in ("", "unlimited") else bound.limit)


def _texts(statement: Statement) -> dict[str, str]:
    contract, ending, first = statement.contract, statement.ending, statement.published.first
    is_live = contract.schedule.mode != "archive"
    title = f"REHEARSAL: {statement.full_title}" if statement.rehearsal else statement.full_title
    days = statement.model_days
    draws = [
        f"{draw.asked} ({draw.first_day} to {draw.last_day}): epsilon {draw.epsilon}" for draw in statement.draws or ()
    ]
    accuracy = [
        f"`{of.series}`{f', {of.group}' if of.group else ''}, {of.day}: at most {of.within} {of.unit}"
        for of in statement.accuracy or ()
    ]
    return {
        "slug": slug(f"{title} {first[:4]}"),
        "title": title,
        "curator": statement.contact or statement.source or _BLANK,
        "description": release_description(statement),
        "first_published": first or _BLANK,
        "minutes": str(contract.input.interval_minutes),
        "population": statement.population,
        "model": f"A model that was estimated from the days {days}. " if days else "",
        "not_protected": _listed(statement.not_protected),
        "protects": statement.protects,
        "from_whom": statement.from_whom,
        "bounds": _listed([_bound_text(bound) for bound in statement.bounds]),
        "releases": "Many releases" if is_live else "One release",
        "source": "Dynamic" if is_live else "Static",
        "delta": f" (delta {ending.delta})" if ending and ending.delta else "",
        "spent": ending.spent if ending else _BLANK,
        "left": ending.remaining if ending else _BLANK,
        "clamps": "; ".join(_clamp_texts(statement)) or "none, no use is counted",
        "draws": f"\nDraws of calibrations, which every bound counts:\n{_listed(draws)}" if draws else "",
        "opendp": statement.software.get("opendp", ""),
        "agedp": statement.software.get("agedp", ""),
        "notion": contract.promise.notion,
        "accuracy": _listed(accuracy),
        "head": statement.ledger.head,
        "notes": _listed(statement.notes),
    }


def _clamp_texts(statement: Statement) -> Iterator[str]:
    """Yield the clamps of each series, the version of the contract and its days with each if there are several."""
    versions = statement.stated_contracts
    for name in sorted({name for stated in versions for name in stated.days}):
        for stated in [stated for stated in versions if name in stated.days]:
            terms, days = stated.series[name], stated.days[name]
            if terms.clamp_kwh is not None:
                text = f"{name} from {terms.above_kwh or 0} to {terms.clamp_kwh} kWh"
                about = f" (version {stated.version} of the contract, {days.first} to {days.last})"
                yield text + (about if statement.version > 1 else "")


def _bound_text(bound: StatedBound) -> str:
    limit = f" (limit {bound.limit})" if bound.limit else ""
    return f"{bound.name}: epsilon {bound.epsilon}{limit}, about {bound.scope}; holds {bound.holds}"


def _listed(texts: list[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _filled(value: Any, texts: Mapping[str, str]) -> Any:  # noqa: ANN401  (a TOML value)
    """Return a part of the entry with the names in braces replaced."""
    if isinstance(value, dict):
        return {key: _filled(part, texts) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, texts) for part in value]
    return value.format_map(texts) if isinstance(value, str) else value
