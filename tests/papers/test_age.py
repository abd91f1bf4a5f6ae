"""What the age-dependent figures add to the library: rates given the start, drifts, policies, equal risks."""

from __future__ import annotations

import numpy as np
import pytest

from docs.papers.age.autoregressive import drifts
from docs.papers.age.claims import equal_risk
from docs.papers.age.failure import by_start
from docs.papers.age.policies import kept_by_interval, periodic_and_alternating
from docs.papers.age.two_state_model import noise_scale
from docs.papers.results import PaperFigure

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
