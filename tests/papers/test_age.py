"""What the age-dependent figures add to the library: rates given the start, inverses, eq. 55 as printed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from agedp_data.accounting.ageing import compose, risk
from docs.papers.age.autoregressive import drifts
from docs.papers.age.claims import equal_risk
from docs.papers.age.failure import by_start
from docs.papers.age.planning import SQUARE_ERROR, classical_edge, continuous, plans, rate
from docs.papers.age.policies import cycle_peak, kept_by_interval, periodic_and_alternating
from docs.papers.age.two_state import CHAIN, unaged
from docs.papers.age.two_state_model import failure_rate, noise_scale
from docs.papers.results import PaperFigure

pytestmark = pytest.mark.xdist_group("papers")  # figures are computed once


@pytest.mark.parametrize("tight", [True, False])
def test_what_ages_to_a_target_ages_to_it(tight: bool) -> None:
    method = "tight" if tight else "total_variation"
    for age in (0, 1, 5):
        loss = unaged(0.3, age, tight=tight)
        assert risk(CHAIN, loss, [age], method=method)[0] == pytest.approx(0.3, rel=1e-9)
    # .8^20 left: for every mechanism the loss is below .3.
    assert unaged(0.3, 20, tight=True) == np.inf
    assert risk(CHAIN, np.inf, [20], method="tight")[0] < 0.3


@pytest.mark.parametrize(("age", "loss"), [(0, 0.05), (0, 0.5), (3, 2.0), (20, 1.0)])
def test_failure_rates_by_start_average_to_that_of_all_starts(age: int, loss: float) -> None:
    weight = binom.pmf(np.arange(21), 20, 0.5)
    assert weight @ by_start(age, loss) == pytest.approx(failure_rate(age, loss, agents=20, move=0.1), abs=1e-6)


def test_failure_rates_by_start_are_those_of_a_simulated_mechanism() -> None:
    rng, tries = np.random.default_rng(3), 200_000
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
    assert by_start(age, loss)[start] == pytest.approx(wrong, abs=0.015)


def test_whole_steps_are_never_better_than_the_continuous_reference() -> None:
    allowed = np.array([0.09, 0.0995])
    whole = plans(SQUARE_ERROR, allowed, horizon=20, method="total_variation", max_loss=10.0)
    free = continuous(SQUARE_ERROR, allowed, losses=np.geomspace(0.2, 5.0, 200), longest=60.0)
    tight = plans(SQUARE_ERROR, allowed, horizon=20, method="tight", max_loss=10.0)
    for one, other, sharper in zip(whole, free, tight, strict=True):
        assert one is not None
        assert other is not None
        assert sharper is not None
        assert other.risk <= one.risk * 1.01
        assert sharper.risk < one.risk


def test_eq_30_has_finite_plans_just_above_the_edge_and_none_at_it() -> None:
    edge = classical_edge()
    assert edge == pytest.approx(0.3459, abs=5e-5)
    below, above, far = plans(
        rate, np.array([edge - 1e-4, 0.347, 0.35]), horizon=16, method="total_variation", max_loss=10.0
    )
    assert below is None or not np.isfinite(below.risk)
    assert above is not None
    assert far is not None
    assert [above.risk, far.risk] == pytest.approx([4.405, 3.074], abs=2e-3)
    assert (far.age, far.interval) == (0, 2)


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
    past = rng.normal(0, 1 / 0.6, (40_000, 20))
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
    assert alone == pytest.approx({0.084: 4.454, 0.0995: 1.581}[allowed], abs=1e-3)  # MATHS 9
    assert alone <= turns < np.inf


def test_the_peak_of_a_cycle_is_that_of_a_long_series() -> None:
    losses, intervals = (0.5, 0.7), (6, 7)
    published = np.cumsum([intervals[k % 2] for k in range(60)])
    given = [losses[(k + 1) % 2] for k in range(60)]  # the interval after an output is its own
    course = compose(CHAIN, published, [0] * 60, given, published, method="total_variation")
    assert cycle_peak(intervals, losses) == pytest.approx(course.max(), rel=1e-6)
    assert cycle_peak([1], [0.5]) == np.inf


def test_averaged_over_the_start_the_fresh_output_of_equal_risk_is_never_worse() -> None:
    for target in (0.1, 0.4):
        _, fresh, aged = equal_risk(target, 6)
        assert fresh <= aged + 1e-9
    with pytest.raises(ValueError, match="discloses 1"):
        equal_risk(1.0, 6)  # .8^6 left: nothing that old discloses as much


def test_no_plan_of_figure_6_stands_at_the_horizon_of_the_search() -> None:
    most = np.array([0.0995])
    near, far = (plans(SQUARE_ERROR, most, horizon=h, method="tight", max_loss=10.0)[0] for h in (40, 80))
    assert near is not None
    assert far is not None
    assert (near.age, near.interval) == (far.age, far.interval)
    assert near.age + near.interval < 40


def test_the_paper_s_curves_are_drawn_beside_ours(figures: dict[str, PaperFigure]) -> None:
    for name, panels in (("figure_4", (0, 1, 2)), ("figure_5", (0, 1, 2)), ("figure_7", (0, 1, 2))):
        for place in panels:
            looks = {line.look for line in figures[f"age-{name}"].panels[place].curves}
            assert {"paper", "ours"} <= looks, (name, place)
    assert figures["age-figure_4"].at("as printed, 0.5", 0.0) == pytest.approx(2 / (0.5 * 20) ** 2)
