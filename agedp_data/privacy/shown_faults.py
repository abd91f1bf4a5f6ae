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

from agedp_data.privacy.measured_noise import NoiseLaw, misplaced_noise_power, small_noise_power

DEFAULT_GROUPS: Final = 1_600
"""How many streets there are: so many draws has each cell of a release."""
MAX_HOUSEHOLDS: Final = 102_400
"""Homes of a made-up world; with more an audit may take longer than a minute."""
_TARGET_GROUP_LOSS = 1.5  # what is best told of a street: of less, luck hides it; of more, its ends are rare
_DETECTION_POWER = 0.95


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


def choose_audit_datasets(releases: Sequence[AuditedRelease]) -> AuditDatasets:
    """Return streets of as many homes as make the loss of one release easy to tell, as far as there is time.

    >>> choose_audit_datasets([AuditedRelease("2013-01-01", "mean", 0.07, 1, 50_000, 1, 0)])
    AuditDatasets(number=1600, homes=21)
    """
    homes = _TARGET_GROUP_LOSS / releases[0].epsilon
    return AuditDatasets(DEFAULT_GROUPS, max(1, min(round(homes), MAX_HOUSEHOLDS // DEFAULT_GROUPS)))


def undetectable_faults(
    releases: Sequence[AuditedRelease], streets: AuditDatasets, *, significance: float
) -> tuple[str, ...]:
    """Return the faults that these streets would not show at these losses 19 times out of 20.

    Fresh noise on a second run and a day left out of the total show at once, whatever the losses.
    """
    small_noise = [
        small_noise_power(release.law, 2, streets.number * release.cells, significance=significance)
        for release in releases
    ]
    skipped_clamp = [
        misplaced_noise_power(release.law, release.beyond * streets.homes, streets.number, significance=significance)
        for release in releases
        if release.beyond
    ]
    powers = {"half the noise": small_noise, "a skipped clamp": skipped_clamp}
    return tuple(
        fault for fault, fault_powers in powers.items() if fault_powers and max(fault_powers) < _DETECTION_POWER
    )


def moved_cell_losses(releases: Sequence[AuditedRelease], households: int) -> list[float]:
    """Return the losses, of a street of so many homes, of the draws that a change moves."""
    return [households * release.apart / release.moved for release in releases for _ in range(release.moved)]
