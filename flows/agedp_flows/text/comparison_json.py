"""Output of `agedp plan --notions --json`: every notion that meets a target; docs/plan.md describes the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agedp.ledger_session import LedgerSession
from agedp.planning.compare_notions import compare_promises
from agedp.planning.notion_comparison import ComparisonEntry, ComparisonTarget, NotionComparison, Remedies, SeriesCost
from agedp_data.epsilon import format_epsilon
from agedp_data.notions.notion import LossBound
from agedp_data.parameters import exact_text
from agedp_data.smoothing.signal_estimate import Verdict
from agedp_flows.text.run_text import finite_or_none
from agedp_flows.text.signal_text import yardstick_json

_USABLE: Final[Mapping[Verdict, bool | None]] = {"visible": True, "hidden": False, "uncertain": None}


def promises_json(session: LedgerSession, target: ComparisonTarget) -> dict[str, Any]:
    """Return the offers of all notions as JSON."""
    comparison = compare_promises(session.terms(), session.comparison_view, target)
    return {
        "target": _target_json(comparison.target),
        "series": comparison.series,
        "noise_of": comparison.label,
        "by": comparison.groups,
        "households": comparison.households,
        "days": len(comparison.days),
        **yardstick_json(comparison.change),
        "offers": [_offer_json(entry, comparison) for entry in comparison.entries],
    }


def _target_json(target: ComparisonTarget) -> dict[str, Any]:
    value = {"risk": exact_text(target.risk)} if target.risk is not None else {"error_kwh": target.error_kwh}
    return {**value, "from": "the run file's promise" if target.from_run_file else "asked for"}


def _offer_json(entry: ComparisonEntry, comparison: NotionComparison) -> dict[str, Any]:
    if entry.series is None or entry.bound is None:
        return {"notion": entry.notion, "method": entry.method, "lacking": entry.reason}
    return {
        "notion": entry.notion,
        "method": entry.method,
        "promise": entry.keys,
        "bounds": None if entry.epsilon is None else exact_text(entry.epsilon),
        "figure": _bound_json(entry.bound, entry.series),
        **_series_json(entry.series, comparison),
        "usable": _USABLE[comparison.change.verdict(entry.series.noise_kwh)],
        **({"needs": _needs_json(entry.needs)} if entry.needs else {}),
        **({} if entry.ahead is None else {"bounds_ahead": exact_text(entry.ahead)}),
        "promised": entry.promised,
        "kept": entry.meets_target,
        "cheapest": entry.cheapest,
    }


def _bound_json(bound: LossBound, series: SeriesCost) -> dict[str, Any]:
    return {
        "name": bound.name,
        "epsilon": None if series.reaches is None else format_epsilon(series.reaches),
        "about": bound.about,
        "class": bound.kind,
        "assumption": bound.assumption,
    }


def _series_json(series: SeriesCost, comparison: NotionComparison) -> dict[str, Any]:
    return {
        "epsilon_first_day": format_epsilon(series.losses[0]),
        "epsilon_least_day": format_epsilon(min(series.losses)),
        "epsilon_largest_day": format_epsilon(max(series.losses)),
        "epsilon_mean_day": format_epsilon(series.epsilon),
        "noise_sd_kwh": finite_or_none(series.noise_kwh),
        "noise_sd_of_sum_kwh": finite_or_none(series.sum_noise_kwh),
        "noise_sd_worst_day_kwh": finite_or_none(series.worst_kwh),
        "noise_of_change": finite_or_none(series.noise_kwh / comparison.change.kwh),
        "unusable_days": series.unusable_days,
        "released_days": len(series.losses),
        "skipped_days": series.skipped,
        "first_day": series.first_day.isoformat(),
        "last_day": series.last_day.isoformat(),
        "first_published_on": series.published[0],
        "last_published_on": series.published[1],
        "ended_by": series.ended_by,
        "goes_on": series.beyond,
    }


def _needs_json(needs: Remedies) -> dict[str, Any]:
    return {
        "households": needs.households_needed,
        "epsilon_a_day": format_epsilon(needs.epsilon),
        "bounds": None if needs.bound is None else exact_text(needs.bound),
        "last_day": None if needs.last_day is None else needs.last_day.isoformat(),
    }
