"""Output of `agedp plan --notions`, as text and as JSON: every notion that meets a target.

The text shows each notion with its noise and its end; docs/plan.md describes the keys of the JSON output.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from agedp.ledger_session import LedgerSession
from agedp.planning.compare_notions import compare_promises
from agedp.planning.notion_comparison import ComparisonTarget, NotionComparison, NotionOffer, Remedies, SeriesCost
from agedp_data.epsilon import NANO, format_epsilon
from agedp_data.errors import RunFileError
from agedp_data.notions.notion import ASSUMPTION_FREE, LossBound
from agedp_data.parameters import LARGEST, exact_text
from agedp_flows.text.bound_text import condition_text, scope_text
from agedp_flows.text.run_text import change_json, change_text, four_digits

_WIDTH = 118
_HEADING = "   {notion:14s} {method:{width}s}     bound of    epsilon/day  noise kWh     ratio   first day   last day"
_REMEDY_ROW = "   {notion:14s} {method:{width}s} households     bound    epsilon/day   last day"
_MIN_WIDTH = 26
_COLUMN_NOTES = (
    "bound: upper bound over future releases; of: its scope, by letter. epsilon/day: mean over the days, ~ where they "
    "differ. noise: standard deviation of the noise of a mean in kWh per household, root mean square over the days; an "
    "interval in the release covers nothing else. ratio: noise-to-signal ratio, the noise divided by the day-to-day "
    "change. +: the series continues."
)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def parse_target(risk: str | None, error_kwh: str | None) -> ComparisonTarget:
    """Return the target of --risk or --error-kwh; without either it is the bound of the run file's promise.

    Raises:
        RunFileError: both options, or a value that is not a number above 0.
    """
    if risk is not None and error_kwh is not None:
        raise RunFileError("--risk and --error-kwh are two targets; name one")
    if error_kwh is not None:
        return ComparisonTarget(error_kwh=float(_parse_amount("--error-kwh", error_kwh)))
    return ComparisonTarget(risk=None if risk is None else _parse_amount("--risk", risk))


def _parse_amount(option: str, value_text: str) -> Decimal:
    try:
        amount = Decimal(value_text) if _NUMBER.fullmatch(value_text) else Decimal("nan")
        if not amount.is_finite() or not Decimal("0.000001") <= amount <= LARGEST:
            raise InvalidOperation
    except InvalidOperation:
        raise RunFileError(f"{option} must be a number from 0.000001 to {LARGEST}, such as 0.5") from None
    return amount


def promises_lines(session: LedgerSession, target: ComparisonTarget) -> list[str]:
    """Return the offers of all notions as lines for the terminal."""
    comparison = compare_promises(session.terms(), session.forecast_view, target)
    available = [offer for offer in comparison.offers if offer.series is not None]
    letters = _scope_letters(available)
    return [
        *_head_lines(comparison),
        _HEADING.format(notion="notion", method="method", width=_width(available)),
        *(_offer_line(offer, comparison, letters, width=_width(available)) for offer in available),
        *_scope_lines(letters),
        *_mark_lines(comparison, available),
        *_ended_lines(available),
        *_future_bound_lines(available),
        *_some_days_lines(available),
        *_unusable_lines(comparison),
        *_impossible_lines(comparison),
        *_wrapped("", _COLUMN_NOTES),
    ]


def _head_lines(comparison: NotionComparison) -> list[str]:
    target = comparison.target
    group = f"the smallest group by {comparison.groups}, which decides" if comparison.groups else "all in one mean"
    period = f"{len(comparison.days)} days from {comparison.days[0]}" + (
        " and on" if comparison.endless else f" to {comparison.days[-1]}"
    )
    changes = change_text(comparison.change)
    return [
        *_wrapped("", f"{_target_text(target)}: {comparison.series}, {period}"),
        *_wrapped(
            "",
            f"{comparison.households} households ({group}). Day-to-day change of the mean: "
            f"{_kwh_text(comparison.change.kwh)} kWh per household, {changes}",
        ),
    ]


def _target_text(target: ComparisonTarget) -> str:
    if target.risk is None:
        return f"Notions with a noise of at most {target.error_kwh:g} kWh per household, and their smallest bounds"
    epsilon = f"epsilon {_epsilon_text(target.risk)}"
    if target.from_run_file:
        return f"Notions that guarantee the same bound as your run file ({epsilon}), and their noise"
    return f"Notions that guarantee a bound of {epsilon}, and their noise"


def _scope_letters(offers: list[NotionOffer]) -> dict[tuple[str, str, str], str]:
    """Return a letter for each scope and assumption of the bounds, with a star for a conditional bound."""
    letters: dict[tuple[str, str, str], str] = {}
    for offer in offers:
        if offer.bound is not None and (key := _scope_key(offer.bound)) not in letters:
            suffix = "" if offer.bound.kind == ASSUMPTION_FREE else "*"
            letters[key] = f"{_LETTERS[len(letters) % len(_LETTERS)]}{suffix}"
    return letters


def _scope_key(bound: LossBound) -> tuple[str, str, str]:
    """Return scope, class and assumption of a bound; the method, which the offer's line names, is removed."""
    return bound.about, bound.kind, bound.assumption.partition(" (method")[0]


def _width(offers: list[NotionOffer]) -> int:
    return max([_MIN_WIDTH, *(len(offer.method) for offer in offers)])


def _offer_line(
    offer: NotionOffer, comparison: NotionComparison, letters: dict[tuple[str, str, str], str], *, width: int
) -> str:
    series, bound = offer.series, offer.bound
    if series is None or bound is None:
        raise RuntimeError("an offer without a series has no line")
    mark = ("=" if offer.promised else " ") + (">" if offer.cheapest else " ")
    day = ("~" if min(series.losses) < max(series.losses) else "") + _loss_text(series.epsilon)
    noise_to_change = series.noise_kwh / comparison.change.kwh
    return (
        f"{mark} {offer.notion:14s} {offer.method:{width}s} {_epsilon_text(offer.amount):>9s} "
        f"{letters[_scope_key(bound)]:2s} {day:>14s} "
        f"{_kwh_text(series.noise_kwh):>10s} {_kwh_text(noise_to_change):>9s}{'!' if offer.needs else ' '}  "
        f"{series.first_day}  "
        f"{series.last_day}{'+' if series.beyond else ''}"
    )


def _kwh_text(value: float) -> str:
    if not math.isfinite(value):
        return "no end"
    return f"{value:.3f}" if value < 1000 else f"{value:,.0f}"


def _epsilon_text(amount: Decimal | None) -> str:
    return "none" if amount is None else four_digits(float(amount))


def _scope_lines(letters: dict[tuple[str, str, str], str]) -> Iterator[str]:
    for (scope, kind, assumption), letter in letters.items():
        condition = condition_text(kind, assumption)
        yield from _wrapped(f"{letter:3s}", f"Scope: {scope_text(scope)}. {condition}")


def _mark_lines(comparison: NotionComparison, available: list[NotionOffer]) -> Iterator[str]:
    if any(offer.promised for offer in available):
        yield "=  The promise of the run file."
    if any(offer.cheapest for offer in comparison.offers):
        criterion = "Least noise" if comparison.target.risk is not None else "Smallest bound"
        yield from _wrapped(
            ">  ",
            f"{criterion} of the notions that meet the target on every requested day, marked once with and once "
            "without an assumption (*). Their scopes differ. You decide which scope you need; the noise cannot.",
        )
    else:
        yield "No notion meets the target on every requested day."


def _ended_lines(offers: list[NotionOffer]) -> Iterator[str]:
    for offer in offers:
        if offer.series is not None and (offer.series.ended_by or offer.series.skipped):
            skipped_text = f"{offer.series.skipped} days are skipped" if offer.series.skipped else ""
            end_text = (
                f"{offer.series.ended_by or ''} ends the series on {offer.series.last_day}"
                if offer.series.ended_by
                else ""
            )
            yield f"   {offer.notion}, {offer.method}: {'; '.join(filter(None, [end_text, skipped_text]))}"


def _future_bound_lines(offers: list[NotionOffer]) -> Iterator[str]:
    for offer in offers:
        if offer.ahead is not None:
            yield (
                f"   {offer.notion}, {offer.method}: the bound of the released days is {_epsilon_text(offer.amount)} "
                f"already; the promise bounds future days by {_epsilon_text(offer.ahead)}"
            )


def _some_days_lines(offers: list[NotionOffer]) -> Iterator[str]:
    """Yield the usable series that have single unusable days."""
    for offer in offers:
        if offer.series is not None and offer.needs is None and offer.series.unusable_days:
            yield (
                f"   {offer.notion}, {offer.method}: usable on average, but on {offer.series.unusable_days} of "
                f"{len(offer.series.losses)} days the noise exceeds the day-to-day change"
            )


def _unusable_lines(comparison: NotionComparison) -> Iterator[str]:
    unusable = [offer for offer in comparison.offers if offer.needs is not None]
    if not unusable:
        return
    scope = "in the smallest group" if comparison.groups else "on the roster"
    yield from _wrapped(
        "!  ",
        "Unusable: the noise exceeds the typical day-to-day change. Either of these would fix it: at least this number "
        f"of households {scope}, or this larger bound under the same caps (none: not possible under these caps or this "
        "model).",
    )
    width = _width(unusable)
    yield _REMEDY_ROW.format(notion="notion", method="method", width=width)
    for offer in unusable:
        if offer.needs is not None:
            start = f"   {offer.notion:14s} {offer.method:{width}s} {offer.needs.households_needed:10,d}"
            bound = _epsilon_text(offer.needs.bound)
            yield f"{start} {bound:>9s} {_loss_text(offer.needs.epsilon):>14s}   {offer.needs.last_day or ''}".rstrip()


def _loss_text(loss: int) -> str:
    return four_digits(loss / NANO)


def _impossible_lines(comparison: NotionComparison) -> Iterator[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for offer in comparison.offers:
        if offer.reason:
            reasons.setdefault((offer.notion, offer.reason), []).append(offer.method)
    if reasons:
        yield "Not possible here:"
    for (notion, reason), methods in reasons.items():
        method_names = "; ".join(filter(None, methods))
        yield from _wrapped("   ", f"{notion}{f' ({method_names})' if method_names else ''}: {reason}")


def _wrapped(start: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=start, subsequent_indent=" " * max(3, len(start)))


def promises_json(session: LedgerSession, target: ComparisonTarget) -> dict[str, Any]:
    """Return the offers of all notions as JSON."""
    comparison = compare_promises(session.terms(), session.forecast_view, target)
    return {
        "target": _target_json(comparison.target),
        "series": comparison.series,
        "by": comparison.groups,
        "households": comparison.households,
        "days": len(comparison.days),
        **change_json(comparison.change),
        "offers": [_offer_json(offer, comparison) for offer in comparison.offers],
    }


def _target_json(target: ComparisonTarget) -> dict[str, Any]:
    value = {"risk": exact_text(target.risk)} if target.risk is not None else {"error_kwh": target.error_kwh}
    return {**value, "from": "the run file's promise" if target.from_run_file else "asked for"}


def _offer_json(offer: NotionOffer, comparison: NotionComparison) -> dict[str, Any]:
    if offer.series is None or offer.bound is None:
        return {"notion": offer.notion, "method": offer.method, "lacking": offer.reason}
    return {
        "notion": offer.notion,
        "method": offer.method,
        "promise": offer.keys,
        "bounds": None if offer.amount is None else exact_text(offer.amount),
        "figure": _bound_json(offer.bound, offer.series),
        **_series_json(offer.series, comparison),
        "usable": offer.series.noise_kwh <= comparison.change.kwh,
        **({"needs": _needs_json(offer.needs)} if offer.needs else {}),
        **({} if offer.ahead is None else {"bounds_ahead": exact_text(offer.ahead)}),
        "promised": offer.promised,
        "kept": offer.meets_target,
        "cheapest": offer.cheapest,
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
        "households": needs.households_needed,
        "epsilon_a_day": format_epsilon(needs.epsilon),
        "bounds": None if needs.bound is None else exact_text(needs.bound),
        "last_day": None if needs.last_day is None else needs.last_day.isoformat(),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
