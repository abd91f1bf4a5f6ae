"""The three sentences with which STATEMENT.md, the report and a run begin: what, how strong, what not.

Decisions:

* They follow from the statement alone, with numbers to three digits, rounded up; of usual releases at most 40 words
  each.
* The odds are those of an observer who knows all other households: knowledge of one may be knowledge of another.
* The factor of one day is that of the larger bound of a day: of published days, or of days of a calibration.
* A factor from a million on is called what it is: practically no protection.
"""

from __future__ import annotations

from typing import Final

from agedp_data.notions.notion import CALIBRATION_DAY_BOUND, DAY_BOUND, TOTAL_BOUND
from agedp_data.statement.document import Statement
from agedp_data.statement.odds import INFINITE, is_useless_factor, short_factor, short_number

_PERIODS: Final = {"week": "weekly", "month": "monthly", "year": "yearly", "weekday-month": "monthly"}
_CONTENTS: Final = {
    "mean": "{every} averages",
    "distribution": "{every} distributions",
    "profile": "{every} load profiles",
    "coverage": "{every} coverage",
}
_WHAT: Final = (
    "{opening} {contents} of the population {population} for {days}; noise limits what they{model} disclose about one "
    "household to an observer who knows the readings of all others."
)
_NOTHING: Final = "{opening} no value yet: no day of the population {population} is published{skipped}."
_HOW_STRONG: Final = (
    "{subject} observer's odds between two guesses about its use by at most {day} if they differ on one day, and "
    "{total} if on all days."
)
_LIMITS: Final = (
    "Whether a household is in the population is not protected{model}, nor is what other publications add; habits that "
    "show on many days are limited by the second factor only."
)


def lead_sentences(statement: Statement) -> list[str]:
    """Return what was published and protected, how strongly, and what is not promised, in one sentence each."""
    return [_what(statement), _how_strong(statement), _limits(statement)]


def _what(statement: Statement) -> str:
    days = statement.days
    opening = "This rehearsal contains" if statement.rehearsal else "This folder contains"
    if not days.released:
        skipped = f", {_days(len(days.skipped))} skipped" if days.skipped else ""
        return _NOTHING.format(opening=opening, population=statement.population, skipped=skipped)
    span = days.first if days.first == days.last else f"{days.first} to {days.last}"
    return _WHAT.format(
        opening=opening,
        contents=_joined(_without_repetition(published_contents(statement))),
        population=statement.population,
        days=f"{_days(days.released)} ({span})",
        model=", not the published model," if statement.model_days else "",
    )


def published_contents(statement: Statement) -> list[str]:
    """Return what the series of a statement are, such as "daily averages", without duplicates."""
    contents = {
        _CONTENTS[series.statistic].format(every=_PERIODS.get(series.every or "day", "daily"))
        for series in statement.contract.series.values()
    }
    return sorted(contents, key=_position)


def _position(text: str) -> tuple[int, str]:
    every, _, what = text.partition(" ")
    return [content.partition(" ")[2] for content in _CONTENTS.values()].index(what), every


def _without_repetition(contents: list[str]) -> list[str]:
    """Return contents of which only the first of those with the same period names it."""
    everies = [text.partition(" ")[0] for text in contents]
    return [
        text if i == 0 or everies[i] != everies[i - 1] else text.partition(" ")[2] for i, text in enumerate(contents)
    ]


def _how_strong(statement: Statement) -> str:
    epsilons = statement.unconditional_epsilons
    of_day = [epsilons[name] for name in (DAY_BOUND, CALIBRATION_DAY_BOUND) if name in epsilons]
    day, total = max(of_day or [INFINITE], key=_number), epsilons.get(TOTAL_BOUND, INFINITE)
    return _HOW_STRONG.format(
        subject="These values change that" if statement.days.released else "Noisy values change an",
        day=_factor(day, "a factor of {}"),
        total=_factor(total, "of {}"),
    )


def _number(epsilon: str) -> float:
    return float("inf") if epsilon == INFINITE else float(epsilon)


def _factor(epsilon: str, words: str) -> str:
    if epsilon == INFINITE:
        return "any factor (no bound, unprotected)"
    remark = ", practically no protection" if is_useless_factor(epsilon) else ""
    return f"{words.format(short_factor(epsilon))} (epsilon {short_number(epsilon)}{remark})"


def _limits(statement: Statement) -> str:
    model = ", nor what the model published without noise shows" if statement.model_days else ""
    return _LIMITS.format(model=model)


def _days(number: int) -> str:
    return f"{number} day{'s' * (number != 1)}"


def _joined(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
