"""Output of `agedp compare`, as text and as JSON: every notion that meets a target.

The text shows each notion with its noise and its end; docs/written.md describes the keys of the JSON output.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import cycle
from typing import Any, Final

from agedp.budget import estimation_periods
from agedp.ledger_session import LedgerSession, comparison_view
from agedp.planning.notion_comparison import (
    ComparisonEntry,
    ComparisonTarget,
    NotionComparison,
    SeriesCost,
    compare_promises,
)
from agedp.planning.row_noise import ChangeYardstick
from agedp.signal_against_noise import change_text, three_digits
from agedp_data.config.model_section import ModelSection
from agedp_data.epsilon import exact_text, format_delta, format_epsilon
from agedp_data.errors import RunFileError
from agedp_data.ledger import ContractRecord
from agedp_data.notions.notion import ASSUMPTION_FREE, DAY_BOUND, LossBound
from agedp_data.parameters import LARGEST
from agedp_data.smoothing.signal_estimate import Verdict
from agedp_flows.text.noise_text import assumption_text, exception_text, scope_text
from agedp_flows.text.screen import finite_or_none, format_bound, format_loss, screen_width, table_lines

_WIDTH = 118
_COLUMN_NOTES = (
    "bound: upper bound over future releases; of: its scope, by letter. epsilon/day: mean over the days, ~ where they "
    "differ. noise: standard deviation of the noise of a mean in kWh per household, root mean square over the days; an "
    "interval in the release covers nothing else. ratio: noise-to-signal ratio, the noise divided by the day-to-day "
    "change. +: the series continues."
)
_VERDICT_MARKS: Final[Mapping[Verdict, str]] = {"visible": " ", "hidden": "!", "uncertain": "?"}
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
        epsilon = Decimal(value_text) if _NUMBER.fullmatch(value_text) else Decimal("nan")
        if not epsilon.is_finite() or not Decimal("0.000001") <= epsilon <= LARGEST:
            raise InvalidOperation
    except InvalidOperation:
        raise RunFileError(f"{option} must be a number from 0.000001 to {LARGEST}, such as 0.5") from None
    return epsilon


_Offer = tuple[ComparisonEntry, SeriesCost, LossBound]
"""A notion that can be promised, its cost, and the bound that it limits."""


def envelope_days(model: ModelSection | None, contracts: Sequence[ContractRecord]) -> str:
    """Return the periods of the models that contracts or run file publish without noise, in words; "" for none."""
    return " and ".join(estimation_periods([*(contract.terms.model for contract in contracts), model]))


def promises_lines(session: LedgerSession, target: ComparisonTarget) -> list[str]:
    """Return the offers of all notions as lines for the terminal."""
    comparison = compare_promises(session.terms(), comparison_view(session), target)
    found = ((entry, entry.series, entry.bound) for entry in comparison.entries)
    offers = [(entry, series, bound) for entry, series, bound in found if series is not None and bound is not None]
    scopes = dict.fromkeys(_scope_key(bound) for _, _, bound in offers)
    stars = ("" if kind == ASSUMPTION_FREE else "*" for _, _, kind, _ in scopes)  # of conditional bounds
    letters = {scope: f"{letter}{star}" for scope, letter, star in zip(scopes, cycle(_LETTERS), stars, strict=False)}
    # a promise with a delta is compared at its bound on one day, which has no delta
    run, has_delta = session.run.run_file, session.run.run_file.promise.delta is not None
    is_of_day = has_delta and any(entry.promised and bound.name == DAY_BOUND for entry, _, bound in offers)
    return [
        *_head_lines(comparison, is_of_day=is_of_day),
        *_offer_lines(offers, comparison, letters),
        *_scope_lines(letters, envelope_days(run.model, session.history.contracts)),
        *_layer_lines(comparison, offers),
        *_mark_lines(comparison, offers),
        *_remark_lines(offers),
        *_verdict_lines(comparison),
        *_impossible_lines(comparison),
        *_wrapped("", _COLUMN_NOTES),
    ]


def _head_lines(comparison: NotionComparison, *, is_of_day: bool) -> list[str]:
    target, on_day = comparison.target, " on one day" if is_of_day else ""
    if target.risk is None:
        title = f"Notions with a noise of at most {target.error_kwh:g} kWh per household, and their smallest bounds"
    elif target.from_run_file:
        epsilon = _epsilon_text(target.risk)
        title = f"Notions that guarantee the same bound{on_day} as your run file (epsilon {epsilon}), and their noise"
    else:
        title = f"Notions that guarantee a bound of epsilon {_epsilon_text(target.risk)}, and their noise"
    group = f"the smallest group by {comparison.groups}, which decides" if comparison.groups else "all in one mean"
    end = " and on" if comparison.endless else f" to {comparison.days[-1]}"
    period = f"{len(comparison.days)} days from {comparison.days[0]}{end}"
    change = f"Day-to-day change of the mean: {yardstick_text(comparison.change)}"
    return [
        *_wrapped("", f"{title}: {comparison.label}, {period}"),
        *_wrapped("", f"{comparison.households} households ({group}). {change}"),
    ]


def yardstick_text(change: ChangeYardstick) -> str:
    """Return the change that planned noise is compared with, and its source."""
    if change.estimate is None:
        return f"{three_digits(change.kwh)} kWh per household, assumed until the published series can show it"
    if change.is_estimated:
        return f"{change_text(change.estimate)}, estimated from the published series"
    return (
        f"{three_digits(change.kwh)} kWh per household, assumed: the published series shows "
        f"{change_text(change.estimate)}, which may be noise alone"
    )


_Scope = tuple[str, str, str, str]
"""Scope, its delta, class and assumption of a bound."""


def _scope_key(bound: LossBound) -> _Scope:
    """Return the scope of a bound; the method of its assumption, which the offer's line names, is removed."""
    delta = "" if bound.delta is None else f", with delta {format_delta(bound.delta)}"
    return scope_text(bound.about), delta, bound.kind, bound.assumption.partition(" (method")[0]


def _offer_lines(offers: Sequence[_Offer], comparison: NotionComparison, letters: Mapping[_Scope, str]) -> list[str]:
    """Return the table of the notions that meet the target."""
    figures = ">bound", "of", ">epsilon/day", ">noise kWh", ">ratio", ""
    rows = []
    for entry, series, bound in offers:
        mark = ("=" if entry.promised else " ") + (">" if entry.cheapest else " ")
        day = ("~" if min(series.losses) < max(series.losses) else "") + format_loss(series.epsilon)
        noise, ratio = _kwh_text(series.noise_kwh), _kwh_text(series.noise_kwh / comparison.change.kwh)
        verdict = _VERDICT_MARKS[comparison.change.verdict(series.noise_kwh)]
        promised = f"{mark} {entry.notion}", entry.method, _epsilon_text(entry.epsilon), letters[_scope_key(bound)]
        dates = str(series.first_day), f"{series.last_day}{'+' if series.beyond else ''}"
        rows.append([*promised, day, noise, ratio, verdict, *dates])
    return table_lines(["   notion", "method", *figures, "first day", "last day"], rows, labels=2)


def _kwh_text(value: float) -> str:
    return three_digits(value) if math.isfinite(value) else "no end"


def _epsilon_text(epsilon: Decimal | None) -> str:
    return "none" if epsilon is None else format_bound(epsilon)


def _scope_lines(letters: Mapping[_Scope, str], envelope_days: str) -> Iterator[str]:
    """Yield each scope with its assumption, and the model without noise that bounds leave out."""
    for (scope, delta, kind, assumption), letter in letters.items():
        text = "Assumption-free." if kind == ASSUMPTION_FREE else assumption_text(assumption)
        condition = f"{text.removesuffix('.')}{exception_text(envelope_days)}." if text else ""
        yield from _wrapped(f"{letter:3s}", f"Scope: {scope}{delta}. {condition}")


def _layer_lines(comparison: NotionComparison, offers: Sequence[_Offer]) -> Iterator[str]:
    """Yield what the noise is about, and the noise of the sum, if the mean is published in layers."""
    if comparison.label != comparison.series and offers:
        costs = [series for _, series, _ in offers if math.isfinite(series.sum_noise_kwh)]
        ratios = sorted(series.sum_noise_kwh / series.noise_kwh for series in costs)
        times = " to ".join(dict.fromkeys(f"{ratio:.1f}" for ratio in (ratios[:1] + ratios[-1:])))
        sum_text = f"; the sum of its layers has {times} times that noise" if ratios else ""
        yield from _wrapped("   ", f"The noise is that of {comparison.label}{sum_text}.")


def _mark_lines(comparison: NotionComparison, offers: Sequence[_Offer]) -> Iterator[str]:
    if any(entry.promised for entry, _, _ in offers):
        yield "=  The promise of the run file."
    if any(entry.cheapest for entry in comparison.entries):
        criterion = "Least noise" if comparison.target.risk is not None else "Smallest bound"
        yield from _wrapped(
            ">  ",
            f"{criterion} of the notions that meet the target on every requested day, marked once with and once "
            "without an assumption (*). Their scopes differ. You decide which scope you need; the noise cannot.",
        )
    else:
        yield "No notion meets the target on every requested day."


def _remark_lines(offers: Sequence[_Offer]) -> list[str]:
    """Return the ends and skipped days of series, then bounds of future days, then usable series with unusable days."""
    ended, ahead, unusable = [], [], []
    for entry, series, _ in offers:
        name = f"   {entry.notion}, {entry.method}"
        ends = [f"{series.ended_by} ends the series on {series.last_day}"] if series.ended_by else []
        ends += [f"{series.skipped} days are skipped"] if series.skipped else []
        if ends:
            ended.append(f"{name}: {'; '.join(ends)}")
        if entry.ahead is not None:
            ahead.append(
                f"{name}: the bound of the released days is {_epsilon_text(entry.epsilon)} already; the promise bounds "
                f"future days by {_epsilon_text(entry.ahead)}"
            )
        if entry.needs is None and series.unusable_days:
            unusable.append(
                f"{name}: usable on average, but on {series.unusable_days} of {len(series.losses)} days the noise "
                "exceeds the day-to-day change"
            )
    return [*ended, *ahead, *unusable]


def _verdict_lines(comparison: NotionComparison) -> Iterator[str]:
    """Yield what the marks of unusable and uncertain series mean, and what would lower the noise of each."""
    noises = [entry.series.noise_kwh for entry in comparison.entries if entry.series is not None]
    verdicts = {comparison.change.verdict(noise) for noise in noises}
    if "hidden" in verdicts:
        yield from _wrapped(
            "!  ", "Unusable: the noise exceeds the day-to-day change, so single days cannot be told apart."
        )
    if "uncertain" in verdicts:
        yield from _wrapped(
            "?  ",
            "Not certain: the noise lies within two standard errors of the estimated day-to-day change, so single days "
            "may or may not be told apart.",
        )
    rows = []
    for entry in comparison.entries:
        if (needs := entry.needs) is not None:
            remedies = f"{needs.households_needed:,d}", _epsilon_text(needs.bound), format_loss(needs.epsilon)
            rows.append((f"   {entry.notion}", entry.method, *remedies, str(needs.last_day or "")))
    if rows:
        scope = "in the smallest group" if comparison.groups else "on the roster"
        yield from _wrapped(
            "   ",
            f"Either of these would lower the noise to {three_digits(comparison.change.kwh)} kWh: at least this number "
            f"of households {scope}, or this larger bound under the same caps (none: not possible under these caps or "
            "this model).",
        )
        headings = "   notion", "method", ">households", ">bound", ">epsilon/day", "last day"
        yield from table_lines(headings, rows, labels=2)


def _impossible_lines(comparison: NotionComparison) -> Iterator[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for entry in comparison.entries:
        if entry.reason:
            reasons.setdefault((entry.notion, entry.reason), []).append(entry.method)
    if reasons:
        yield "Not possible here:"
    for (notion, reason), methods in reasons.items():
        method_names = "; ".join(filter(None, methods))
        yield from _wrapped("   ", f"{notion}{f' ({method_names})' if method_names else ''}: {reason}")


def _wrapped(start: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, screen_width() or _WIDTH, initial_indent=start, subsequent_indent=" " * max(3, len(start))
    )


_USABLE: Final[Mapping[Verdict, bool | None]] = {"visible": True, "hidden": False, "uncertain": None}


def promises_json(session: LedgerSession, target: ComparisonTarget) -> dict[str, Any]:
    """Return the offers of all notions as JSON."""
    comparison = compare_promises(session.terms(), comparison_view(session), target)
    asked = comparison.target
    value = {"risk": exact_text(asked.risk)} if asked.risk is not None else {"error_kwh": asked.error_kwh}
    return {
        "target": {**value, "from": "the run file's promise" if asked.from_run_file else "asked for"},
        "series": comparison.series,
        "noise_of": comparison.label,
        "by": comparison.groups,
        "households": comparison.households,
        "days": len(comparison.days),
        **yardstick_json(comparison.change),
        "offers": [_offer_json(entry, comparison) for entry in comparison.entries],
    }


def yardstick_json(change: ChangeYardstick) -> dict[str, Any]:
    """Return the change that planned noise is compared with; without a standard error it is assumed."""
    error = change.estimate.standard_error if change.estimate is not None and change.is_estimated else None
    return {
        "change_kwh": change.kwh,
        "change_error_kwh": error,
        "change_from": "published series" if change.is_estimated else "yardstick",
    }


def _offer_json(entry: ComparisonEntry, comparison: NotionComparison) -> dict[str, Any]:
    series, bound, needs = entry.series, entry.bound, entry.needs
    if series is None or bound is None:
        return {"notion": entry.notion, "method": entry.method, "lacking": entry.reason}
    remedies = needs and {
        "households": needs.households_needed,
        "epsilon_a_day": format_epsilon(needs.epsilon),
        "bounds": _exact_or_none(needs.bound),
        "last_day": None if needs.last_day is None else needs.last_day.isoformat(),
    }
    return {
        "notion": entry.notion,
        "method": entry.method,
        "promise": entry.keys,
        "bounds": _exact_or_none(entry.epsilon),
        "figure": {
            "name": bound.name,
            "epsilon": None if series.reaches is None else format_epsilon(series.reaches),
            "about": bound.about,
            "class": bound.kind,
            "assumption": bound.assumption,
        },
        **_series_json(series, comparison),
        "usable": _USABLE[comparison.change.verdict(series.noise_kwh)],
        **({"needs": remedies} if remedies else {}),
        **({} if entry.ahead is None else {"bounds_ahead": exact_text(entry.ahead)}),
        "promised": entry.promised,
        "kept": entry.meets_target,
        "cheapest": entry.cheapest,
    }


def _exact_or_none(epsilon: Decimal | None) -> str | None:
    return None if epsilon is None else exact_text(epsilon)


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
