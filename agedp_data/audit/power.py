"""Power of an audit: the size of its synthetic groups, and the faults that it could not have detected.

The idea: the number of draws limits what they prove. At a small loss both values of a bit look alike so often that even
twice the loss is not significant. So households are audited in groups: of k households that all change, a promise of L
each permits k L in all, and twice k L is detected where twice L would not be.

Example: at epsilon 0.07 a group has 21 households, so that the promised loss of a group is 1.5.

An audit that finds no fault must name the faults that it could not have detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agedp_data.audit.noise_tests import NoiseLaw, misplaced_noise_power, small_noise_power

DEFAULT_GROUPS: Final = 1_600
"""Number of groups, and so of the draws of each cell of a release."""
MAX_HOUSEHOLDS: Final = 102_400
"""Largest number of synthetic households; with more an audit may take longer than a minute."""
_TARGET_GROUP_LOSS = 1.5  # easiest to detect: less is hidden by chance, with more the decisive outputs are rare
_DETECTION_POWER = 0.95


@dataclass(frozen=True, slots=True)
class AuditDatasets:
    """The synthetic groups of an audit: each is published alone, and all its households change at once.

    Args:
        groups: number of groups, >= 1.
        households_per_group: households of a group, >= 1.

    >>> AuditDatasets(2, 3).total_households
    6
    """

    groups: int
    households_per_group: int

    @property
    def total_households(self) -> int:
        """Return the households of all groups."""
        return self.groups * self.households_per_group


@dataclass(frozen=True, slots=True)
class AuditedRelease:
    r"""A release of an audit: its loss and the change that one household causes in it.

    .. math:: \Delta_1 = \text{moved cells} \cdot \text{step}

    Args:
        day: day of the data, ISO date.
        series: name of the series.
        epsilon: recorded loss of the release [epsilon].
        moved_cells: cells that a changed household changes.
        step: change of each of these cells [Wh, or households].
        cells: all cells of a group.
        excess: further change of a cell without a clamp; 0 for counts, which a skipped clamp does not change [Wh].
        span: change of a household as a part of the sensitivity; below 1 if no use counts as a little use [-].

    >>> AuditedRelease("2013-01-01", "mean", 0.5, 1, 50_000, 1, 0, span=0.5).effective_epsilon  # 0.5 * 0.5
    0.25
    """

    day: str
    series: str
    epsilon: float
    moved_cells: int
    step: int
    cells: int
    excess: int
    span: float = 1.0

    @property
    def effective_epsilon(self) -> float:
        """Return the loss at the distance of the two synthetic households, epsilon times span [epsilon]."""
        return self.epsilon * self.span

    @property
    def law(self) -> NoiseLaw:
        """Return the noise that the loss requires."""
        return NoiseLaw(self.moved_cells * self.step, self.epsilon)


def choose_audit_datasets(releases: Sequence[AuditedRelease]) -> AuditDatasets:
    r"""Return the groups whose promised loss is nearest to the easiest one to detect, within the run-time limit.

    .. math:: k = \mathrm{round}(1.5 / \varepsilon), \quad 1 \le k \le 64

    A smaller loss of a group is hidden by chance; of a larger one the decisive outputs are rare.

    Args:
        releases: releases of the run file; the first one decides.

    Returns:
        1,600 groups of k households.

    >>> choose_audit_datasets([AuditedRelease("2013-01-01", "mean", 0.07, 1, 50_000, 1, 0)])  # 1.5/0.07 = 21.4
    AuditDatasets(groups=1600, households_per_group=21)
    """
    households = _TARGET_GROUP_LOSS / releases[0].epsilon
    return AuditDatasets(DEFAULT_GROUPS, max(1, min(round(households), MAX_HOUSEHOLDS // DEFAULT_GROUPS)))


def undetectable_faults(
    releases: Sequence[AuditedRelease], datasets: AuditDatasets, *, significance: float
) -> tuple[str, ...]:
    """Return the faults that an audit with these groups detects with a probability below 0.95 in every release.

    Half the noise is tested by `small_noise_power`, a skipped clamp by `misplaced_noise_power`. A second draw on a
    second run and a day missing from the total are certain to be detected, whatever the losses.

    Args:
        releases: releases of the run file.
        datasets: groups of the audit.
        significance: probability of a false alarm of each test, in (0, 1) [-].

    Returns:
        Names of the faults, as in the audit's report.

    >>> mean = AuditedRelease("2013-01-01", "mean", 0.07, 1, 50_000, 1, 2_350_000)
    >>> undetectable_faults([mean], AuditDatasets(1600, 21), significance=1e-6)
    ()
    """
    small_noise = [
        small_noise_power(release.law, 2, datasets.groups * release.cells, significance=significance)
        for release in releases
    ]
    households, groups = datasets.households_per_group, datasets.groups
    skipped_clamp = [
        misplaced_noise_power(release.law, release.excess * households, groups, significance=significance)
        for release in releases
        if release.excess
    ]
    powers = {"half the noise": small_noise, "a skipped clamp": skipped_clamp}
    return tuple(
        fault for fault, fault_powers in powers.items() if fault_powers and max(fault_powers) < _DETECTION_POWER
    )


def moved_cell_losses(releases: Sequence[AuditedRelease], households: int) -> list[float]:
    r"""Return the loss of each draw that a change of a group affects, for `detectable_epsilon`.

    .. math:: k \, \varepsilon_{\text{effective}} / \text{moved cells}, \quad \text{once per moved cell}

    Args:
        releases: releases whose losses compose.
        households: households k of a group.

    Returns:
        Losses, one per moved cell [epsilon].

    >>> moved_cell_losses([AuditedRelease("2013-01-01", "counts", 0.5, 2, 1, 10, 0)], 4)  # 4 * 0.5/2, twice
    [1.0, 1.0]
    """
    return [
        households * release.effective_epsilon / release.moved_cells
        for release in releases
        for _ in range(release.moved_cells)
    ]
