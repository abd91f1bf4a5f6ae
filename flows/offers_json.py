"""JSON output of `agedp plan --notions`: every notion for a target; docs/plan.md describes the keys."""

from __future__ import annotations

import math
from typing import Any

from agedp_data.losses import format_epsilon
from agedp_data.notions.notion import LossBound
from agedp_data.notions.parameters import exact_text
from flows.words import change_json
from pipelines.promise.offers import ComparisonTarget, NotionComparison, NotionOffer, Remedies, SeriesCost
from pipelines.promise.promises import compare_promises
from pipelines.work import Work


def promises_json(work: Work, target: ComparisonTarget) -> dict[str, Any]:
    """Return the offers of all notions as JSON."""
    comparison = compare_promises(work, target)
    return {
        "target": _target_json(comparison.target),
        "series": comparison.series,
        "by": comparison.groups,
        "households": comparison.homes,
        "days": len(comparison.days),
        **change_json(comparison.change),
        "offers": [_offer_json(offer, comparison) for offer in comparison.offers],
    }


def _target_json(target: ComparisonTarget) -> dict[str, Any]:
    value = {"risk": exact_text(target.risk)} if target.risk is not None else {"error_kwh": target.error_kwh}
    return {**value, "from": "the run file's promise" if target.from_run_file else "asked for"}


def _offer_json(offer: NotionOffer, comparison: NotionComparison) -> dict[str, Any]:
    if offer.series is None or offer.figure is None:
        return {"notion": offer.notion, "method": offer.method, "lacking": offer.reason}
    return {
        "notion": offer.notion,
        "method": offer.method,
        "promise": offer.keys,
        "bounds": None if offer.amount is None else exact_text(offer.amount),
        "figure": _figure_json(offer.figure, offer.series),
        **_series_json(offer.series, comparison),
        "usable": offer.series.noise_kwh <= comparison.change.kwh,
        **({"needs": _needs_json(offer.needs)} if offer.needs else {}),
        **({} if offer.ahead is None else {"bounds_ahead": exact_text(offer.ahead)}),
        "promised": offer.promised,
        "kept": offer.meets_target,
        "cheapest": offer.cheapest,
    }


def _figure_json(bound: LossBound, series: SeriesCost) -> dict[str, Any]:
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
        "noise_sd_kwh": _finite(series.noise_kwh),
        "noise_sd_worst_day_kwh": _finite(series.worst_kwh),
        "noise_of_change": _finite(series.noise_kwh / comparison.change.kwh),
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
        "households": needs.homes,
        "epsilon_a_day": format_epsilon(needs.epsilon),
        "bounds": None if needs.figure is None else exact_text(needs.figure),
        "last_day": None if needs.last_day is None else needs.last_day.isoformat(),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
