"""Losses of a made-up world's releases -> in which streets its homes are audited, and which faults would not show.

What draws prove about a loss is limited by their number: at a small loss either side of a coin looks alike so often
that even twice the loss looks like luck. So homes are taken in streets: of k homes that all change, a promise of L each
permits k L in all, and twice k L shows where twice L would not. An audit that says "kept" must say beside it what it
could not have seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agedp_data.privacy.measured_noise import NoiseLaw, chance_too_far, chance_too_near

STREETS: Final = 1_600
"""How many streets there are: so many draws has each cell of a release."""
MOST_HOMES: Final = 102_400
"""Homes of a made-up world; with more an audit may take longer than a minute."""
_TELLING = 1.5  # what is best told of a street: of less, luck hides it; of more, its ends are rare
_NEARLY_ALWAYS = 0.95


@dataclass(frozen=True, slots=True)
class AuditDatasets:
    """So many streets of so many homes: each street is published alone, and all its homes change at once."""

    number: int
    homes: int

    @property
    def all_homes(self) -> int:
        """Return the homes of all streets."""
        return self.number * self.homes


@dataclass(frozen=True, slots=True)
class AuditedRelease:
    """A release: its day and series, its loss, the cells that a changed home moves, and the others of its street.

    Each of the `moved` cells is moved by `step`, which makes `moved * step` its sensitivity. `beyond` says how much
    further a home would move it without a clamp: 0 for counts, which a skipped clamp leaves as they are. `span` is how
    far a changed home moves it as a part of the sensitivity: a home that uses nothing may count as a little.
    """

    day: str
    series: str
    epsilon: float
    moved: int
    step: int
    cells: int
    beyond: int
    span: float = 1.0

    @property
    def apart(self) -> float:
        """Return how far the two sides of a coin lie apart, of a single home [epsilon]."""
        return self.epsilon * self.span

    @property
    def law(self) -> NoiseLaw:
        """Return the noise that the loss asks for."""
        return NoiseLaw(self.moved * self.step, self.epsilon)


def streets_for(releases: Sequence[AuditedRelease]) -> AuditDatasets:
    """Return streets of as many homes as make the loss of one release easy to tell, as far as there is time.

    >>> streets_for([AuditedRelease("2013-01-01", "mean", 0.07, 1, 50_000, 1, 0)])
    AuditDatasets(number=1600, homes=21)
    """
    homes = _TELLING / releases[0].epsilon
    return AuditDatasets(STREETS, max(1, min(round(homes), MOST_HOMES // STREETS)))


def unseen(releases: Sequence[AuditedRelease], streets: AuditDatasets, *, unlikely: float) -> tuple[str, ...]:
    """Return the faults that these streets would not show at these losses 19 times out of 20.

    Fresh noise on a second run and a day left out of the total show at once, whatever the losses.
    """
    small = [chance_too_near(each.law, 2, streets.number * each.cells, unlikely=unlikely) for each in releases]
    far = [
        chance_too_far(each.law, each.beyond * streets.homes, streets.number, unlikely=unlikely)
        for each in releases
        if each.beyond
    ]
    chances = {"half the noise": small, "a skipped clamp": far}
    return tuple(fault for fault, of in chances.items() if of and max(of) < _NEARLY_ALWAYS)


def parts_of(releases: Sequence[AuditedRelease], homes: int) -> list[float]:
    """Return the losses, of a street of so many homes, of the draws that a change moves."""
    return [homes * each.apart / each.moved for each in releases for _ in range(each.moved)]
