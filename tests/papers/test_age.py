"""Figures and claims of [A]: by simulation, by search, and on homes, real and made up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from docs.papers.age.autoregressive import drifts
from docs.papers.age.claims import equal_risk
from docs.papers.age.failure import by_start
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
from docs.papers.age.policies import kept_by_interval, periodic_and_alternating
from docs.papers.age.two_state_model import noise_scale
from docs.papers.households import PaperHouseholds, PaperReadings
from docs.papers.results import PaperFigure

# What the age-dependent figures add to the library: rates given the start, drifts, policies, equal risks.

pytestmark = pytest.mark.xdist_group("papers")  # figures are computed once


def test_failure_rates_by_start_are_those_of_a_simulated_mechanism() -> None:
    rng, tries = np.random.default_rng(3), 60_000
    age, loss, start = 4, 1.0, 14
    stays = (1 + 0.8**age) / 2
    now = rng.binomial(start, stays, tries) + rng.binomial(20 - start, 1 - stays, tries)
    output = (2 * start - 20) / 20 + rng.laplace(0, noise_scale(loss, agents=20), tries)
    # The likelier answer for starts at random, from its own simulation in narrow bins.
    every = rng.binomial(20, 0.5, tries)
    later = rng.binomial(every, stays) + rng.binomial(20 - every, 1 - stays)
    edges = np.linspace(-2, 2, 81)
    seen = np.searchsorted(edges, (2 * every - 20) / 20 + rng.laplace(0, noise_scale(loss, agents=20), tries))
    yes = np.bincount(seen, later >= 10, 82) / np.maximum(np.bincount(seen, minlength=82), 1) >= 0.5
    wrong = (yes[np.searchsorted(edges, output)] != (now >= 10)).mean()
    assert by_start(age, loss)[start] == pytest.approx(wrong, abs=0.02)


def test_publishing_zero_beats_noise_and_ageing_up_to_the_loss_in_the_title(figures: dict[str, PaperFigure]) -> None:
    figure = figures["age-figure_4"]
    assert "at losses below 0.63" in figure.title
    # By hand: the variance 1/20 of the true mean equals 8/(20 e)^2 at e = sqrt(.4).
    for panel in figure.panels:
        for line in panel.curves:
            if line.label in {"noise alone: 8/(ε²I²)", "aged, tight"}:
                np.testing.assert_array_equal(line.y > 1 / 20, line.x < 0.4**0.5)


def test_the_aged_mean_of_a_continuous_state_drifts_to_twice_the_paper_s_limit(figures: dict[str, PaperFigure]) -> None:
    rng = np.random.default_rng(8)
    past = rng.normal(0, 1 / 0.6, (20_000, 20))
    present = 0.8**3 * past + rng.normal(0, np.sqrt((1 - 0.8**6) / 0.36), past.shape)
    ours, printed = drifts(3.0)
    assert ((present.mean(axis=1) - past.mean(axis=1)) ** 2).mean() == pytest.approx(ours, rel=0.03)
    assert (ours, printed) == pytest.approx((0.1356, 0.1025), abs=1e-4)
    assert drifts(200.0)[0] == pytest.approx(2 * drifts(200.0)[1])
    assert "0.1356" in figures["age-figure_8"].erratum


@pytest.mark.parametrize("loss", [0.2, 0.5, 1.0])
def test_eq_40_is_what_a_search_over_all_splits_finds(loss: float) -> None:
    interval = np.linspace(loss / -np.log(0.8) + 1e-3, 14, 200_001)
    risks = np.log1p(0.8 ** (14 - interval) * np.expm1(loss) / (1 - 0.8**interval * np.exp(loss)))
    best = 0.8 ** interval[risks.argmin()] * np.exp(loss)
    assert kept_by_interval(loss, 14) == pytest.approx(best, abs=1e-4)
    assert best == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("allowed", [0.084, 0.0995])
def test_two_intervals_that_take_turns_are_no_better_than_one(allowed: float) -> None:
    alone, turns = periodic_and_alternating(allowed)
    assert alone == pytest.approx({0.084: 4.454, 0.0995: 1.581}[allowed], abs=1e-3)  # docs/papers.md
    assert alone <= turns < np.inf


def test_averaged_over_the_start_the_fresh_output_of_equal_risk_is_never_worse() -> None:
    for target in (0.1, 0.4):
        _, fresh, aged = equal_risk(target, 6)
        assert fresh <= aged + 1e-9
    with pytest.raises(ValueError, match="discloses 1"):
        equal_risk(1.0, 6)  # .8^6 left: nothing that old discloses as much


# Figure 7: error and loss of aged means of homes, against plain loops and against the reference of the real homes.


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
