"""What `agedp plan` says of every notion for a target: the target, the table for people."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from agedp_data.errors import RunFileError
from agedp_data.losses import NANO
from agedp_data.notions.notion import ASSUMPTION_FREE, LossBound
from agedp_data.notions.parameters import LARGEST
from flows.words import change_words, four_digits
from pipelines.promise.offers import ComparisonTarget, NotionComparison, NotionOffer
from pipelines.promise.promises import compare_promises
from pipelines.work import Work

_WIDTH = 118
_HEADING = "   {notion:14s} {method:{width}s}  promises of  epsilon a day  noise kWh of change   first day   last day"
_NEEDED = "   {notion:14s} {method:{width}s}    homes     figure  epsilon a day   last day"
_LEAST_WIDTH = 26
_WORDS = (
    "promises: the most that the figure may come to; of: what that is about. epsilon a day: mean over the days, "
    "~ where they differ. noise: standard deviation of what is added to a mean, kWh a home, root mean square over "
    "the days; it is all that an interval in the release covers. +: goes on."
)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def target_of(risk: str | None, error_kwh: str | None) -> ComparisonTarget:
    """Return the target that the command was given, in words; none leaves it to the run file's promise.

    Raises:
        RunFileError: both, or what is no amount above 0.
    """
    if risk is not None and error_kwh is not None:
        raise RunFileError("--risk and --error-kwh are two targets; name one")
    if error_kwh is not None:
        return ComparisonTarget(error_kwh=float(_amount("--error-kwh", error_kwh)))
    return ComparisonTarget(risk=None if risk is None else _amount("--risk", risk))


def _amount(option: str, written: str) -> Decimal:
    try:
        amount = Decimal(written) if _NUMBER.fullmatch(written) else Decimal("nan")
        if not amount.is_finite() or not Decimal("0.000001") <= amount <= LARGEST:
            raise InvalidOperation
    except InvalidOperation:
        raise RunFileError(f"{option} must be a number from 0.000001 to {LARGEST}, such as 0.5") from None
    return amount


def promises_lines(work: Work, target: ComparisonTarget) -> list[str]:
    """Return the offers for people."""
    found = compare_promises(work, target)
    had = [one for one in found.offers if one.series is not None]
    about = _about(had)
    return [
        *_head_lines(found),
        _HEADING.format(notion="notion", method="method", width=_width(had)),
        *(_offer_line(one, found, about, width=_width(had)) for one in had),
        *_about_lines(about),
        *_mark_lines(found, had),
        *_ended_lines(had),
        *_ahead_lines(had),
        *_some_days_lines(had),
        *_unusable_lines(found),
        *_lacking_lines(found),
        *_wrapped("", _WORDS),
    ]


def _head_lines(found: NotionComparison) -> list[str]:
    target = found.target
    kept = f"a figure of {_short(target.risk)}" if target.risk is not None else f"a noise of {target.error_kwh:g} kWh"
    whence = ", which the run file promises" if target.from_run_file else ""
    group = f"the smallest group by {found.groups}, which decides" if found.groups else "all in one mean"
    asked = f"{len(found.days)} days from {found.days[0]}" + (" and on" if found.endless else f" to {found.days[-1]}")
    changes = change_words(found.change)
    return [
        *_wrapped("", f"which promise keeps {kept}{whence}, and what each costs: {found.series}, {asked}"),
        *_wrapped(
            "",
            f"{found.homes} homes ({group}); a mean changes by {_kwh(found.change.kwh)} kWh from day to day, {changes}",
        ),
    ]


def _about(offers: list[NotionOffer]) -> dict[tuple[str, str, str], str]:
    """Return a letter for each thing that figures are about, with what they assume; a star where they assume it."""
    found: dict[tuple[str, str, str], str] = {}
    for one in offers:
        if one.figure is not None and (key := _key(one.figure)) not in found:
            star = "" if one.figure.kind == ASSUMPTION_FREE else "*"
            found[key] = f"{_LETTERS[len(found) % len(_LETTERS)]}{star}"
    return found


def _key(figure: LossBound) -> tuple[str, str, str]:
    """Return what a letter stands for; by which method, behind the assumption, the offer's own line says."""
    return figure.about, figure.kind, figure.assumption.partition(" (method")[0]


def _width(offers: list[NotionOffer]) -> int:
    return max([_LEAST_WIDTH, *(len(one.method) for one in offers)])


def _offer_line(
    one: NotionOffer, found: NotionComparison, about: dict[tuple[str, str, str], str], *, width: int
) -> str:
    series, figure = one.series, one.figure
    if series is None or figure is None:
        raise RuntimeError("an offer without a series has no line")
    mark = ("=" if one.promised else " ") + (">" if one.cheapest else " ")
    day = ("~" if min(series.losses) < max(series.losses) else "") + _round(series.epsilon)
    of_change = series.noise_kwh / found.change.kwh
    return (
        f"{mark} {one.notion:14s} {one.method:{width}s} {_short(one.amount):>9s} {about[_key(figure)]:2s} {day:>14s} "
        f"{_kwh(series.noise_kwh):>10s} {_kwh(of_change):>9s}{'!' if one.needs else ' '}  {series.first_day}  "
        f"{series.last_day}{'+' if series.beyond else ''}"
    )


def _kwh(value: float) -> str:
    if not math.isfinite(value):
        return "no end"
    return f"{value:.3f}" if value < 1000 else f"{value:,.0f}"


def _short(amount: Decimal | None) -> str:
    return "none" if amount is None else four_digits(float(amount))


def _about_lines(about: dict[tuple[str, str, str], str]) -> Iterator[str]:
    for (what, kind, assumption), letter in about.items():
        holds = "whatever is true of the homes" if kind == ASSUMPTION_FREE else f"if {assumption}"
        yield from _wrapped(f"{letter:3s}", f"about {what}; {holds}")


def _mark_lines(found: NotionComparison, had: list[NotionOffer]) -> Iterator[str]:
    if any(one.promised for one in had):
        yield "=  what the run file says now"
    if any(one.cheapest for one in found.offers):
        least = "least noise" if found.target.risk is not None else "least figure"
        yield from _wrapped(
            ">  ",
            f"{least} of those that keep the target on every day asked for, apart with and without an assumption (*); "
            "what they are about is yours to weigh: no noise can",
        )
    else:
        yield "no promise here keeps the target on every day asked for"


def _ended_lines(offers: list[NotionOffer]) -> Iterator[str]:
    for one in offers:
        if one.series is not None and (one.series.ended_by or one.series.skipped):
            skipped = f"{one.series.skipped} days are skipped" if one.series.skipped else ""
            ends = f"{one.series.ended_by or ''} ends it on {one.series.last_day}" if one.series.ended_by else ""
            yield f"   {one.notion}, {one.method}: {'; '.join(filter(None, [ends, skipped]))}"


def _ahead_lines(offers: list[NotionOffer]) -> Iterator[str]:
    for one in offers:
        if one.ahead is not None:
            yield (
                f"   {one.notion}, {one.method}: released days carry {_short(one.amount)} already; it binds those to "
                f"come to {_short(one.ahead)}"
            )


def _some_days_lines(offers: list[NotionOffer]) -> Iterator[str]:
    """Yield which usable series have days that are not."""
    for one in offers:
        if one.series is not None and one.needs is None and one.series.unusable_days:
            yield (
                f"   {one.notion}, {one.method}: usable on the whole, but {one.series.unusable_days} of "
                f"{len(one.series.losses)} days have more noise than the mean changes by"
            )


def _unusable_lines(found: NotionComparison) -> Iterator[str]:
    unusable = [one for one in found.offers if one.needs is not None]
    if not unusable:
        return
    where = "in the smallest group" if found.groups else "on the roster"
    yield f"!  unusable: the noise exceeds what a mean changes by from day to day. So many homes {where} would mend"
    yield "   it, or so large a figure under the same caps (none: they, or the model, permit none):"
    width = _width(unusable)
    yield _NEEDED.format(notion="notion", method="method", width=width)
    for one in unusable:
        if one.needs is not None:
            start = f"   {one.notion:14s} {one.method:{width}s} {one.needs.homes:8,d} "
            figure = _short(one.needs.figure)
            yield f"{start} {figure:>9s} {_round(one.needs.epsilon):>14s}   {one.needs.last_day or ''}".rstrip()


def _round(loss: int) -> str:
    return four_digits(loss / NANO)


def _lacking_lines(found: NotionComparison) -> Iterator[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in found.offers:
        if one.reason:
            reasons.setdefault((one.notion, one.reason), []).append(one.method)
    if reasons:
        yield "cannot be had here:"
    for (notion, why), methods in reasons.items():
        named = "; ".join(filter(None, methods))
        yield from _wrapped("   ", f"{notion}{f' ({named})' if named else ''}: {why}")


def _wrapped(start: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=start, subsequent_indent=" " * max(3, len(start)))
