"""Sections of STATEMENT.md for those who use the values: their error, sums and means of them, gaps and corrections."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, Context, Decimal
from typing import Final

from agedp_data.series.series import BY_NAME
from agedp_data.statement.document import Statement
from agedp_data.statement.odds import short_number
from agedp_data.statement.stated_accuracy import StatedAccuracy

_MEAN: Final = (
    "`{series}`{group}, {day}: in 95 of 100 cases the published value differs from the true mean by at most {within} "
    "kWh."
)
_COUNT: Final = "`{series}`, {day}: in 95 of 100 cases a count differs from the true count by at most {within}."
_TRUE: Final = (
    "The true value is that of the use as it is counted: up to the clamps, with the stated value for missing readings. "
    "The error contains the noise alone, not what a clamp leaves out. {largest}"
)
_LARGEST: Final = "Groups with more households have a smaller error."
_ANY_DAY_MEAN: Final = (
    "Every other value has its own `noise_sd_kwh` in its row, the standard deviation of the noise. In 95 of 100 cases "
    "its error is at most 2.12 times that. `low_kwh` to `high_kwh` is the interval of that noise, of 95 % unless the "
    "publisher chose another share."
)
_ANY_DAY_COUNT: Final = (
    "Every other count has its own `noise_sd` in its row, the standard deviation of the noise. In 95 of 100 cases its "
    "error is at most about 2.12 of these."
)
_MONTHS: Final = (
    "**Months, not days:** if two days differ by less than {day} kWh, the difference may be noise alone. Draw "
    "conclusions about months then: in 95 of 100 cases the error of a mean of 30 days is at most about {month} kWh."
)
_GROUPS_PRIVACY: Final = (
    "*Groups, privacy:* reading or adding the groups of one series costs nothing more. A household is in one group of "
    "a series on a day, so the groups of a day together have the loss of one group (parallel composition)."
)
_OTHERS_PRIVACY: Final = (
    "*Series, levels and days, privacy:* their losses about one household add up (sequential composition). The table "
    "of bounds below contains these sums."
)
_GROUPS_MEAN: Final = (
    "*Groups, accuracy:* yes, the groups of one column of the roster (one level) may be added up. Add the noisy sums "
    "and divide by the sum of the households; do not add or average the means of groups of different size. The errors "
    "add as squares: the standard deviation of a sum is the root of the sum of the squares. That of a noisy sum is "
    "`noise_sd_kwh` times `households`."
)
_GROUPS_COUNT: Final = (
    "*Groups, accuracy:* yes, counts of the groups of one column of the roster (one level) may be added up. The errors "
    "add as squares: the standard deviation of a sum is the root of the sum of the squares."
)
_DAYS: Final = (
    "*Days:* yes, days may be added up or averaged, for example to a month. The noise of days is independent, so a "
    "mean of n days with equal noise has the standard deviation of a day divided by the root of n: 0.183 of it for 30 "
    "days."
)
_DIFFERENCES: Final = (
    "*Differences of days, groups or years:* the standard deviation of a difference is the root of the sum of both "
    "squares. A difference of less than 2.12 of these standard deviations may be noise alone."
)
_GAPS: Final = (
    "*Missing days:* a day without a row was skipped, is not yet due, or has too few households. {skipped}Do not read "
    "a missing day as 0; averages of a period are of its released days. A household without enough readings on a "
    "released day is another matter: it counts as stated under 'How each series was computed'."
)
_CORRECTIONS: Final = (
    "*Late corrections:* a day is drawn once, with `revision` 0. Readings that arrive or are corrected after the day "
    "was drawn change no published value."
)
_TWO_RELEASES: Final = (
    "Composition: the epsilons of two releases about the same household add up, and their factors multiply. A second "
    "release with epsilon 0.5 for a day adds 0.5 to the bound *day*; over 10 such days it adds 5 to the bound *total*. "
    "Publications of other operators are not counted here."
)
_THREE_DIGITS: Final = Context(prec=3, rounding=ROUND_CEILING)


def accuracy_paragraphs(statement: Statement) -> list[str]:
    """Return how exact a published value is, by the noise alone; nothing for statements that do not state it."""
    entries = statement.accuracy or []
    if not entries:
        return []
    means = [entry for entry in entries if entry.unit == "kWh"]
    has_counts = len(means) < len(entries)
    lines = [_line(entry, statement.contract.series[entry.series].every or "day") for entry in entries]
    largest = _LARGEST if any(entry.group not in ("", "all") for entry in means) else ""
    return [
        "\n".join(f"* {line}" for line in lines),
        _TRUE.format(largest=largest).strip(),
        " ".join([*([_ANY_DAY_MEAN] if means else []), *([_ANY_DAY_COUNT] if has_counts else [])]),
        *_months(statement, means),
    ]


def _line(entry: StatedAccuracy, every: str) -> str:
    if entry.unit == "households":
        return _COUNT.format(series=entry.series, day=entry.day, within=short_number(entry.within))
    of_group = "" if entry.group in ("", "all") else f" of group {entry.group}"
    group = f"{of_group} ({entry.households:,} {_counted(entry.households, every)})"
    return _MEAN.format(series=entry.series, group=group, day=entry.day, within=short_number(entry.within))


def _counted(number: int, every: str) -> str:
    if every != "day":
        return "household-days"
    return "household" if number == 1 else "households"


def _months(statement: Statement, means: list[StatedAccuracy]) -> Iterator[str]:
    terms = {entry.series: statement.contract.series[entry.series] for entry in means}
    daily_means = [
        name for name, of in terms.items() if of.every in (None, "day") and BY_NAME[of.statistic].has_one_mean()
    ]
    daily = [entry for entry in means if entry.series in daily_means]
    if daily:
        day = max(Decimal(entry.within) for entry in daily)
        change = day * Decimal(2).sqrt()  # of two days, whose noise is independent
        # 1.96 standard deviations contain 95 % of a mean of many values; of one value 2.118 do
        month = _THREE_DIGITS.plus(day * Decimal("1.96") / Decimal("2.118") / Decimal(30).sqrt())
        yield _MONTHS.format(day=short_number(f"{change:f}"), month=f"{month:f}")


def use_paragraphs(statement: Statement) -> list[str]:
    """Return whether groups and days may be added up, how errors add, and what missing days and corrections mean."""
    has_means = any(BY_NAME[series.statistic].unit == "kWh" for series in statement.contract.series.values())
    number = len(statement.days.skipped)
    are = "is" if number == 1 else "are"
    skipped = (
        f"{number} skipped {'day' if number == 1 else 'days'} {are} listed in `statement.json`. " if number else ""
    )
    texts = [
        _GROUPS_PRIVACY,
        _OTHERS_PRIVACY,
        _GROUPS_MEAN if has_means else _GROUPS_COUNT,
        _DAYS,
        _DIFFERENCES,
        _GAPS.format(skipped=skipped),
        _CORRECTIONS,
    ]
    return ["\n".join(f"* {text}" for text in texts)]


def two_releases_text() -> str:
    """Return what two releases about the same household disclose together."""
    return _TWO_RELEASES
