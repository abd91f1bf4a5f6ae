"""Figure 7: error and loss of aged means of homes, against plain loops and against the reference of the real homes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from docs.papers.age.households import (
    AS_COUNTED,
    CLAMP_WH,
    COMMON_RANGE,
    HOURS,
    IN_BALANCE,
    LOSSES,
    OWN_RANGE,
    error,
    household_risk,
)
from docs.papers.households import PaperHouseholds, PaperReadings
from docs.papers.results import PaperFigure

pytestmark = pytest.mark.xdist_group("papers")  # figures are computed once


def test_figure_7_s_error_is_that_of_a_plain_loop() -> None:
    rng = np.random.default_rng(5)
    energy = rng.integers(0, 3000, (10, 8, 48))
    energy[3, 2, 5:9] = -1
    energy[:4, 5, 7] = -1  # too few are left there
    drift, number = error(PaperHouseholds("made up", energy, open_data=False))
    assert number == 9
    flat, means = energy.reshape(10, -1), []
    for column in flat.T:
        seen = [min(int(value), CLAMP_WH) / 1000 for value in column if value >= 0]
        means.append(sum(seen) / len(seen) if len(seen) >= 9 else None)
    for place in (0, 1, 5, 30):
        lag = 2 * int(HOURS[place])
        pairs = [(a, b) for a, b in zip(means, means[lag:], strict=False) if a is not None and b is not None]
        assert drift[place] == pytest.approx(np.mean([(a - b) ** 2 for a, b in pairs]), rel=1e-12)


def wandering(homes: int, days: int, *, open_data: bool, moves: float = 0.5) -> PaperHouseholds:
    """Homes that go round three levels and mostly one way: no chain of theirs is reversible."""
    rng, steps = np.random.default_rng(9), days * 48
    turned = np.where(rng.random((homes, steps)) < moves, 1, 0)
    level = np.cumsum(turned, axis=1) % 3
    return PaperHouseholds("made up", (100 + 900 * level).reshape(homes, days, 48), open_data)


def test_eq_55_is_counted_home_by_home_against_matrix_powers() -> None:
    homes = wandering(3, 20, open_data=False, moves=0.99)
    steady = np.random.default_rng(4).integers(0, 3, (2, 20, 48)) * 900 + 100
    both = PaperHouseholds("made up", np.concatenate([homes.energy_wh, steady]), open_data=False)
    found = household_risk(both)
    held = 0
    for home in both.steps:  # by hand: counted moves, powers of the reversed chain, largest half distance of rows
        seen = np.searchsorted(np.unique(home), home)
        counts = np.zeros((3, 3))
        np.add.at(counts, (seen[:-1], seen[1:]), 1)
        chain = counts / counts.sum(axis=1, keepdims=True)
        values, vectors = np.linalg.eig(chain.T)
        law = np.real(vectors[:, np.argmax(np.real(values))])
        law = law / law.sum()
        back, power = chain.T * law / law[:, None], np.eye(3)
        second, keeps = sorted(np.abs(values))[-2], True
        for step in range(1, 337):
            power = power @ back
            apart = max(np.abs(a - b).sum() / 2 for a in power for b in power)
            bound = min(1, ((1 - law.min()) / law.min()) ** 0.5 * second**step)
            keeps &= apart <= bound * (1 + 1e-9) + 1e-12
        held += keeps
    assert (len(found.bound_met), found.bound_met.sum()) == (5, held)


def test_few_homes_or_made_up_ones_judge_nothing() -> None:
    assert wandering(20, 90, open_data=True).judge
    for homes in (wandering(19, 90, open_data=True), wandering(20, 89, open_data=True)):
        assert not homes.judge
    assert not wandering(20, 90, open_data=False).judge


def test_figure_7_has_no_verdict_and_no_finding_on_made_up_homes(figures: dict[str, PaperFigure], claims) -> None:
    figure = figures["age-figure_7"]
    assert set(figure.verdicts.values()) == {"not judged"}
    assert "do not decide" in figure.title
    assert "forget as" not in figure.erratum
    assert {claim.verdict for claim in claims if claim.place.startswith("Figure 7(") and "kWh" in claim.rests_on} == {
        "not judged"
    }


@pytest.mark.long
def test_forty_homes_have_the_reference_distances_and_losses(real_data: Path) -> None:
    homes = PaperReadings(london=(str(real_data / "london" / "kaggle" / "*.csv"),)).london_households
    found = household_risk(homes)
    at = [HOURS.tolist().index(hour) for hour in (3, 6, 12, 18, 24)]
    np.testing.assert_allclose(found.distance[at], [0.70, 0.37, 0.12, 0.039, 0.0125], rtol=0.06)  # reference values
    starts = {name: float(first.max()) for name, first in found.helps_from.items()}
    assert starts[f"{OWN_RANGE}, {AS_COUNTED}"] == 26.5
    assert starts[f"{COMMON_RANGE}, {IN_BALANCE}"] == 18.0  # as the paper says
    two = np.flatnonzero(LOSSES == 2.0)[0]
    assert found.theorem[two, at[3]] == pytest.approx(0.2, abs=0.03)
    assert found.counted[two, at[3]] == pytest.approx(1.89, abs=0.02)
    assert found.printed[two, at[3]] == 2.0
