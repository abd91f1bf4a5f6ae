"""What `agedp plan` says of every notion for a target, for machines; the keys are in docs/plan.md."""

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
    """Return the offers for machines."""
    found = compare_promises(work, target)
    return {
        "target": _target_json(found.target),
        "series": found.series,
        "by": found.groups,
        "households": found.homes,
        "days": len(found.days),
        **change_json(found.change),
        "offers": [_offer_json(one, found) for one in found.offers],
    }


def _target_json(target: ComparisonTarget) -> dict[str, Any]:
    kept = {"risk": exact_text(target.risk)} if target.risk is not None else {"error_kwh": target.error_kwh}
    return {**kept, "from": "the run file's promise" if target.from_run_file else "asked for"}


def _offer_json(one: NotionOffer, found: NotionComparison) -> dict[str, Any]:
    if one.series is None or one.figure is None:
        return {"notion": one.notion, "method": one.method, "lacking": one.reason}
    return {
        "notion": one.notion,
        "method": one.method,
        "promise": one.keys,
        "bounds": None if one.amount is None else exact_text(one.amount),
        "figure": _figure_json(one.figure, one.series),
        **_series_json(one.series, found),
        "usable": one.series.noise_kwh <= found.change.kwh,
        **({"needs": _needs_json(one.needs)} if one.needs else {}),
        **({} if one.ahead is None else {"bounds_ahead": exact_text(one.ahead)}),
        "promised": one.promised,
        "kept": one.meets_target,
        "cheapest": one.cheapest,
    }


def _figure_json(figure: LossBound, series: SeriesCost) -> dict[str, Any]:
    return {
        "name": figure.name,
        "epsilon": None if series.reaches is None else format_epsilon(series.reaches),
        "about": figure.about,
        "class": figure.kind,
        "assumption": figure.assumption,
    }


def _series_json(series: SeriesCost, found: NotionComparison) -> dict[str, Any]:
    return {
        "epsilon_first_day": format_epsilon(series.losses[0]),
        "epsilon_least_day": format_epsilon(min(series.losses)),
        "epsilon_largest_day": format_epsilon(max(series.losses)),
        "epsilon_mean_day": format_epsilon(series.epsilon),
        "noise_sd_kwh": _finite(series.noise_kwh),
        "noise_sd_worst_day_kwh": _finite(series.worst_kwh),
        "noise_of_change": _finite(series.noise_kwh / found.change.kwh),
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
