"""Output of `agedp plan --notions`, as text and as JSON: every notion that meets a target.

The text shows each notion with its noise and its end; docs/plan.md describes the keys of the JSON output.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from agedp.ledger_session import LedgerSession
from agedp.planning.compare_notions import compare_promises
from agedp.planning.notion_comparison import ComparisonEntry, ComparisonTarget, NotionComparison, Remedies, SeriesCost
from agedp.signal_against_noise import three_digits
from agedp_data.epsilon import format_delta, format_epsilon
from agedp_data.errors import RunFileError
from agedp_data.notions.notion import ASSUMPTION_FREE, DAY_BOUND, LossBound
from agedp_data.parameters import LARGEST, exact_text
from agedp_data.smoothing.signal_estimate import Verdict
from agedp_flows.text.noise_text import condition_text, scope_text, yardstick_json, yardstick_text
from agedp_flows.text.number_text import format_bound, format_loss
from agedp_flows.text.run_text import finite_or_none
from agedp_flows.text.screen import Column, screen_width, table_lines, text_column

_WIDTH = 118
_DATES: Final = text_column("first day"), text_column("last day")
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


def promises_lines(session: LedgerSession, target: ComparisonTarget) -> list[str]:
    """Return the offers of all notions as lines for the terminal."""
    comparison = compare_promises(session.terms(), session.comparison_view, target)
    available = [entry for entry in comparison.entries if entry.series is not None]
    letters = _scope_letters(available)
    return [
        *_head_lines(comparison, is_of_day=_is_of_day(session, comparison)),
        *_offer_lines(available, comparison, letters),
        *_scope_lines(letters, session.envelope_days),
        *_layer_lines(comparison, available),
        *_mark_lines(comparison, available),
        *_ended_lines(available),
        *_future_bound_lines(available),
        *_some_days_lines(available),
        *_verdict_lines(comparison),
        *_impossible_lines(comparison),
        *_wrapped("", _COLUMN_NOTES),
    ]


def _is_of_day(session: LedgerSession, comparison: NotionComparison) -> bool:
    """Return whether a promise with a delta is compared at its bound on one day, which has no delta."""
    bounds = (entry.bound for entry in comparison.entries if entry.promised)
    has_delta = session.run.run_file.promise.delta is not None
    return has_delta and any(bound is not None and bound.name == DAY_BOUND for bound in bounds)


def _head_lines(comparison: NotionComparison, *, is_of_day: bool) -> list[str]:
    target = comparison.target
    group = f"the smallest group by {comparison.groups}, which decides" if comparison.groups else "all in one mean"
    period = f"{len(comparison.days)} days from {comparison.days[0]}" + (
        " and on" if comparison.endless else f" to {comparison.days[-1]}"
    )
    return [
        *_wrapped("", f"{_target_text(target, is_of_day=is_of_day)}: {comparison.label}, {period}"),
        *_wrapped(
            "",
            f"{comparison.households} households ({group}). Day-to-day change of the mean: "
            f"{yardstick_text(comparison.change)}",
        ),
    ]


def _target_text(target: ComparisonTarget, *, is_of_day: bool) -> str:
    if target.risk is None:
        return f"Notions with a noise of at most {target.error_kwh:g} kWh per household, and their smallest bounds"
    epsilon = f"epsilon {_epsilon_text(target.risk)}"
    if target.from_run_file:
        on_day = " on one day" if is_of_day else ""
        return f"Notions that guarantee the same bound{on_day} as your run file ({epsilon}), and their noise"
    return f"Notions that guarantee a bound of {epsilon}, and their noise"


_Scope = tuple[str, str, str, str]
"""Scope, its delta, class and assumption of a bound."""


def _scope_letters(entries: list[ComparisonEntry]) -> dict[_Scope, str]:
    """Return a letter for each scope and assumption of the bounds, with a star for a conditional bound."""
    letters: dict[_Scope, str] = {}
    for entry in entries:
        if entry.bound is not None and (key := _scope_key(entry.bound)) not in letters:
            suffix = "" if entry.bound.kind == ASSUMPTION_FREE else "*"
            letters[key] = f"{_LETTERS[len(letters) % len(_LETTERS)]}{suffix}"
    return letters


def _scope_key(bound: LossBound) -> _Scope:
    """Return the scope of a bound; the method of its assumption, which the offer's line names, is removed."""
    delta = "" if bound.delta is None else f", with delta {format_delta(bound.delta)}"
    return scope_text(bound.about), delta, bound.kind, bound.assumption.partition(" (method")[0]


def _offer_lines(
    available: list[ComparisonEntry], comparison: NotionComparison, letters: dict[_Scope, str]
) -> list[str]:
    """Return the table of the notions that meet the target."""
    columns = (
        *(text_column("   notion"), text_column("method"), Column("bound"), text_column("of")),
        *(Column("epsilon/day"), Column("noise kWh"), Column("ratio"), text_column(""), *_DATES),
    )
    return table_lines(columns, [_offer_cells(entry, comparison, letters) for entry in available], labels=2)


def _offer_cells(entry: ComparisonEntry, comparison: NotionComparison, letters: dict[_Scope, str]) -> list[str]:
    series, bound = entry.series, entry.bound
    if series is None or bound is None:
        raise RuntimeError("an offer without a series has no line")
    mark = ("=" if entry.promised else " ") + (">" if entry.cheapest else " ")
    day = ("~" if min(series.losses) < max(series.losses) else "") + format_loss(series.epsilon)
    verdict = comparison.change.verdict(series.noise_kwh)
    return [
        *(f"{mark} {entry.notion}", entry.method, _epsilon_text(entry.epsilon), letters[_scope_key(bound)], day),
        *(_kwh_text(series.noise_kwh), _kwh_text(series.noise_kwh / comparison.change.kwh), _VERDICT_MARKS[verdict]),
        *(str(series.first_day), f"{series.last_day}{'+' if series.beyond else ''}"),
    ]


def _kwh_text(value: float) -> str:
    return three_digits(value) if math.isfinite(value) else "no end"


def _epsilon_text(epsilon: Decimal | None) -> str:
    return "none" if epsilon is None else format_bound(epsilon)


def _scope_lines(letters: dict[_Scope, str], envelope_days: str) -> Iterator[str]:
    for (scope, delta, kind, assumption), letter in letters.items():
        condition = condition_text(kind, assumption, envelope_days)
        yield from _wrapped(f"{letter:3s}", f"Scope: {scope}{delta}. {condition}")


def _layer_lines(comparison: NotionComparison, available: list[ComparisonEntry]) -> Iterator[str]:
    """Yield what the noise is about, and the noise of the sum, if the mean is published in layers."""
    costs = [entry.series for entry in available if entry.series is not None]
    if comparison.label != comparison.series and costs:
        ratios = sorted(cost.sum_noise_kwh / cost.noise_kwh for cost in costs if math.isfinite(cost.sum_noise_kwh))
        times = " to ".join(dict.fromkeys(f"{ratio:.1f}" for ratio in (ratios[:1] + ratios[-1:])))
        sum_text = f"; the sum of its layers has {times} times that noise" if ratios else ""
        yield from _wrapped("   ", f"The noise is that of {comparison.label}{sum_text}.")


def _mark_lines(comparison: NotionComparison, available: list[ComparisonEntry]) -> Iterator[str]:
    if any(entry.promised for entry in available):
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


def _ended_lines(entries: list[ComparisonEntry]) -> Iterator[str]:
    for entry in entries:
        series = entry.series
        if series is not None and (series.ended_by or series.skipped):
            end_text = f"{series.ended_by} ends the series on {series.last_day}" if series.ended_by else ""
            skipped_text = f"{series.skipped} days are skipped" if series.skipped else ""
            yield f"   {entry.notion}, {entry.method}: {'; '.join(filter(None, [end_text, skipped_text]))}"


def _future_bound_lines(entries: list[ComparisonEntry]) -> Iterator[str]:
    for entry in entries:
        if entry.ahead is not None:
            yield (
                f"   {entry.notion}, {entry.method}: the bound of the released days is {_epsilon_text(entry.epsilon)} "
                f"already; the promise bounds future days by {_epsilon_text(entry.ahead)}"
            )


def _some_days_lines(entries: list[ComparisonEntry]) -> Iterator[str]:
    """Yield the usable series that have single unusable days."""
    for entry in entries:
        if entry.series is not None and entry.needs is None and entry.series.unusable_days:
            yield (
                f"   {entry.notion}, {entry.method}: usable on average, but on {entry.series.unusable_days} of "
                f"{len(entry.series.losses)} days the noise exceeds the day-to-day change"
            )


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
    yield from _remedy_lines(comparison)


def _remedy_lines(comparison: NotionComparison) -> Iterator[str]:
    in_need = [(entry, entry.needs) for entry in comparison.entries if entry.needs is not None]
    if not in_need:
        return
    scope = "in the smallest group" if comparison.groups else "on the roster"
    yield from _wrapped(
        "   ",
        f"Either of these would lower the noise to {three_digits(comparison.change.kwh)} kWh: at least this number of "
        f"households {scope}, or this larger bound under the same caps (none: not possible under these caps or this "
        "model).",
    )
    columns = (
        *(text_column("   notion"), text_column("method"), Column("households"), Column("bound")),
        *(Column("epsilon/day"), text_column("last day")),
    )
    rows = [
        (
            f"   {entry.notion}",
            entry.method,
            f"{needs.households_needed:,d}",
            _epsilon_text(needs.bound),
            format_loss(needs.epsilon),
            str(needs.last_day or ""),
        )
        for entry, needs in in_need
    ]
    yield from table_lines(columns, rows, labels=2)


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


# --------------------------------------------------------------------------------------------------
# Output of `agedp plan --notions --json`: every notion that meets a target; docs/plan.md describes the keys.
# --------------------------------------------------------------------------------------------------

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
