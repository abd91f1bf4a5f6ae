"""Losses of a made-up world's releases -> which faults so many made-up homes would show, and how many homes it takes.

What can be proven is limited by the number of draws: at a small loss the two worlds come out alike so often that even
twice the loss looks like luck. An audit that says "kept" must say beside it what it could not have seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agedp_data.privacy.measured import shows

CHOICES: Final = (5_000, 10_000)
"""Homes of a made-up world; with more an audit may take longer than a minute."""


@dataclass(frozen=True, slots=True)
class Charged:
    """A release: its day, what it is charged, in how many equal parts it is told, how far unclamped sums would lie.

    `reach` is in the distance of clamped sums, 1 for counts, which a skipped clamp leaves as they are. `span` is that
    distance as a part of the sensitivity: a home that uses nothing may count as a little.
    """

    day: str
    epsilon: float
    parts: int
    reach: float
    span: float = 1.0


@dataclass(frozen=True, slots=True)
class _Faulty:
    """What a fault makes of what is looked at: the releases as they would be drawn, and what would be told."""

    drawn: tuple[Charged, ...]
    promised: float


def fewest(releases: Sequence[Charged], *, confidence: float) -> int:
    """Return the fewest homes that show whatever the most would show."""
    least = unseen(releases, CHOICES[-1], confidence=confidence)
    return next(homes for homes in CHOICES if unseen(releases, homes, confidence=confidence) == least)


def unseen(releases: Sequence[Charged], homes: int, *, confidence: float) -> tuple[str, ...]:
    """Return the faults that so many homes would not show at these losses, 19 times out of 20."""
    found: dict[str, bool] = {}
    for name, faulty in _faults(releases):
        found[name] = found.get(name, False) or _shown(faulty, homes, confidence)
    return tuple(name for name, seen in found.items() if not seen)


def parts_of(releases: Sequence[Charged]) -> list[float]:
    """Return the losses of the draws that releases are made of."""
    return [each.epsilon * each.span / each.parts for each in releases for _ in range(each.parts)]


def _faults(releases: Sequence[Charged]) -> Iterator[tuple[str, _Faulty]]:
    """Yield what each fault makes of one release, and of all of them."""
    clamped = [replace(each, reach=1.0) for each in releases]
    for looked_at in (slice(0, 1), slice(None)):
        sound = tuple(clamped[looked_at])
        promised = sum(each.epsilon for each in sound)
        yield "half the noise", _Faulty(tuple(replace(each, epsilon=2 * each.epsilon) for each in sound), promised)
        if any(each.reach > 1 for each in releases):
            yield "a skipped clamp", _Faulty(tuple(releases[looked_at]), promised)
        yield "fresh noise on a second run", _Faulty(2 * sound, promised)
    last = max(each.day for each in releases)
    if told := sum(each.epsilon for each in releases if each.day < last):
        yield "a day left out of the total", _Faulty(tuple(clamped), told)


def _shown(faulty: _Faulty, homes: int, confidence: float) -> bool:
    reach = [each.reach for each in faulty.drawn for _ in range(each.parts)]
    return shows(parts_of(faulty.drawn), faulty.promised, homes, confidence=confidence, reach=reach)
