"""What the discounted paper claims, and what was found: numbers by the same code as the figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agedp_data.accounting.discount_schedules import Exponential, Hyperbolic, certified_constant, schedule
from docs.papers.discounted.constants import broken, printed_constant
from docs.papers.discounted.reports import printed
from docs.papers.results import EVERY, OWN, PaperClaim, PaperFigure

_TEST = "agedp_data/accounting/test_discounted.py"
_PROMISE = f"{_TEST}::test_where_corollary_16_is_wrong_its_constant_breaks_the_promise_and_is_refused"
_COSTS = f"{_TEST}::test_mean_noise_over_a_year_is_that_of_the_reference"


def claims(figures: Sequence[PaperFigure]) -> tuple[PaperClaim, ...]:
    """Return every claim of the paper with its verdict."""
    figure_1, figure_2, figure_3 = (
        next(values for values in figures if values.name == f"figure_{i}") for i in (1, 2, 3)
    )
    year = 365
    classical = float((np.pi * np.arange(1.0, year + 1)) ** 2 @ np.ones(year) / 6 / year)
    slow = {method: _noise(Hyperbolic(0.1), method) for method in ("renewal", "optimal")}
    gentle = {method: _noise(Exponential(0.9), method) for method in ("paper", "renewal", "optimal")}
    constants = [certified_constant(beta) for beta in (0.01, 0.1, 1.0)]
    fewer = figure_3.panels[0].curves[0].y
    noise = 1 / printed(Hyperbolic(0.1), year), np.pi**2 * np.arange(1.0, year + 1) ** 2 / 6
    early, turn = [values[:2].tolist() for values in noise], int(np.argmax(noise[0] < noise[1])) + 1
    return (
        PaperClaim("Corollary 7", "ε-DP for ever needs noise without bound.", "reproduced",
              f"constant noise of scale 1 comes to {float(np.ones(year).sum()):.0f} in a year",
              "[discounting]",
              "papers/test_discounted.py::test_an_endless_classical_series_never_comes_to_more_than_epsilon"),
        PaperClaim("Corollary 8", "Noise growing as k² keeps ε-DP for ever.", "reproduced",
              f"mean scale of a year {classical:.0f}; {year} by even shares of a known year", "[discounting]",
              "papers/test_discounted.py::test_an_endless_classical_series_never_comes_to_more_than_epsilon"),
        PaperClaim("Definitions 10, 14", "The discounted sum at t is at most ε.", "sharpened",
              "needed at every t; renewal meets every one with equality", "[discounting], [errata]",
              f"{_TEST}::test_long_renewal_continues_the_short_one_and_meets_every_bound_with_equality"),
        PaperClaim("after Definition 13", "The factor of release k is 1/(1 + βk).", "refuted",
              f"1/(1 + β(t - k)), today 1: as printed {1 / (1 + 0.1 * year):.3f} on day {year}, β = .1",
              "[errata]",
              f"{_TEST}::test_it_is_the_sum_term_by_term_and_never_below_it", ground=EVERY),
        PaperClaim("Corollary 12", "Constant noise 1/(ε(1 - α)) suffices.", "sharpened",
              f"α = .9, a year: {gentle['paper']:.2f}; renewal {gentle['renewal']:.2f}, optimum"
              f" {gentle['optimal']:.2f}",
              "reference value", _COSTS),
        PaperClaim("Corollary 16", "Its constant keeps the promise for every β.", "refuted",
              f"the sum comes to {broken(8.0):.3f} at β = 8; below 1 from β = 3.65384757680581916 on, too small below"
              " 1.2203e-5", "[discounting], [errata], reference value", _PROMISE, ground=OWN),
        PaperClaim("Corollary 16", "Where it holds it is the noise to take.", "sharpened",
              f"β = .1: mean scale {float((1 / printed(Hyperbolic(0.1), year)).mean()):.1f}; certified constant"
              f" {constants[1]:.4f} for {printed_constant(0.1):.3f}; renewal {slow['renewal']:.1f}, optimum"
              f" {slow['optimal']:.1f}", "reference value", _COSTS),
        PaperClaim("after Corollary 16", "Reports remain better than under differential privacy.", "refuted",
              f"not at first: on days 1 and 2 noise of {_list(early[0])} (β = .1) for {_list(early[1])} by Corollary 8;"
              f" from day {turn} on it is less", "[discounting], [errata]",
              "papers/test_discounted.py::test_corollary_16_is_worse_than_corollary_8_on_the_first_two_days",
              ground=OWN),
        PaperClaim("Figure 1", "200 kWh is the largest change of a household's day.", figure_1.verdicts["200 kWh"],
              f"{figure_1.parts['largest']}; a bound must be declared and not read off the data",
              "[sensitivity], [errata]",
              "papers/test_discounted.py::test_200_kwh_is_judged_by_measured_homes_only", figure_1.rests_on,
              OWN if figure_1.verdicts["200 kWh"] == "refuted" else ""),
        PaperClaim("Figure 2", "Undiscounted reports get worse and worse.", "reproduced",
              f"day 1: {figure_2.panels[0].curves[0].y[0]:.2f}, "
              f"last day: {figure_2.panels[0].curves[0].y[-1]:.0f} times "
              "the"
              " mean",
              "[discounting]", "papers/test_discounted.py::test_the_errors_are_scale_over_mean", figure_2.rests_on),
        PaperClaim("Figure 2", "Hyperbolic noise grows too slowly to be seen within a year.", "refuted",
              f"19-fold over 365 days; from day 30 on {np.sqrt(365 / 30):.1f}-fold, by renewal"
              f" {_growth(Hyperbolic(0.1)):.1f}-fold", "[discounting]",
              "papers/test_discounted.py::test_hyperbolic_noise_grows_visibly_within_a_year",
              ground=OWN),
        PaperClaim("Figure 3", "Stronger discounting lowers the average error.", "reproduced",
              f"exponential, from the slowest to the fastest: {fewer[-1]:.3g} to {fewer[0]:.3g}", "[discounting]",
              "papers/test_discounted.py::test_stronger_discounting_lowers_the_error", figure_3.rests_on),
    )  # fmt: skip


def _list(values: Sequence[float]) -> str:
    return " and ".join(f"{value:.3f}" for value in values)


def _noise(discount: Exponential | Hyperbolic, method: str) -> float:
    return float((1 / schedule(discount, epsilon=1.0, horizon=365, method=method)).mean())


def _growth(discount: Hyperbolic) -> float:
    losses = schedule(discount, epsilon=1.0, horizon=365, method="renewal")
    return float(losses[29] / losses[-1])
