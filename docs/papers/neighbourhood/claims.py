"""What the slides claim, and what was found: numbers by the same code as the figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agedp_data.accounting.delta_neighbourhood import distance, loss_of_change, moves, standard_distance
from agedp_data.series.sensitivity import Move, histogram_sensitivity, shifted_sensitivity
from docs.papers.neighbourhood import histograms, planes
from docs.papers.neighbourhood.distances import DELTA, TABLE, rows
from docs.papers.results import OWN, PaperClaim, PaperFigure

_NEAR, _COUNTS, _RANGES, _WINDOWS = (
    "agedp_data/accounting/test_neighbourhood.py",
    "agedp_data/series/test_histograms.py",
    "papers/test_span.py",
    "agedp_data/accounting/test_windows.py",
)


def claims(figures: Sequence[PaperFigure]) -> tuple[PaperClaim, ...]:
    """Return every claim of the slides with its verdict."""
    by_name = {figure.name: figure for figure in figures}
    return (*_distances(), *_counts(by_name), *_series(by_name["sustained_release"]))


def _distances() -> tuple[PaperClaim, ...]:
    near, far = rows()
    first, second = TABLE[1]
    slow = (
        standard_distance([0, 0], [0, DELTA - 1], neighbours="bounded"),
        distance([0, 0], [0, DELTA - 1], delta=DELTA),
    )
    names = {name: standard_distance(first, second, neighbours=name) for name in ("bounded", "unbounded")}
    return (
        PaperClaim("Background", "'Bounded' is removing a record, 'unbounded' replacing one.", "refuted",
              f"the other way round: {{0,0,0,0}} to {{0,0,0,9}} is {names['bounded']} step bounded (a replacement),"
              f" {names['unbounded']} unbounded", "[errata]",
              f"{_NEAR}::test_bounded_and_unbounded_are_the_other_way_round", ground=OWN),
        PaperClaim("Table", "{0,0,0,0} to {0,0,1,1} is 2 steps under both notions.", "reproduced",
              f"{near[0]} and {near[1]}", "[neighbourhoods]",
              f"{_NEAR}::test_of_the_table_the_standard_distances_and_the_first_row_hold"),
        PaperClaim("Table", "{0,0,0,0} to {0,0,0,9} is 2 steps at δ = 5.", "reproduced",
              f"{far[2]} on the line; {far[1]} with whole numbers and moves strictly shorter than 5", "[errata]",
              f"{_NEAR}::test_of_the_table_the_second_row_is_two_on_the_line_and_three_in_whole_numbers",
              reading="values on the line"),
        PaperClaim("Scenario 1", "Where valid neighbours are δ-neighbours both notions are one.", "reproduced",
              f"of records that change by {DELTA - 1} at most: {slow[0]} step by replacement, {slow[1]} at δ = {DELTA}",
              "[neighbourhoods]",
              "papers/test_neighbourhood.py::test_where_records_cannot_change_by_delta_both_notions_are_one"),
        PaperClaim("Scenario 3", "A change of 2δ costs 2ε.", "sharpened",
              f"{int(moves(1.99 * DELTA, delta=DELTA))} moves for what is shorter than 2δ with values half-way,"
              f" {int(moves(2.0 * DELTA, delta=DELTA))} for 2δ itself; for Laplace noise on a sum"
              f" exactly {float(loss_of_change(4, epsilon=1, delta=2)):g}ε", "[neighbourhoods], [errata]",
              f"{_NEAR}::test_two_delta_costs_three_epsilon_of_a_mechanism_that_counts_moves"),
    )  # fmt: skip


def _counts(figures: dict[str, PaperFigure]) -> tuple[PaperClaim, ...]:
    grid = {"width": 8, "delta": 2, "low": 0, "high": 50}
    kinds = [shifted_sensitivity(change, **grid) for change in (Move(2), Move(3), "arrival", "replacement")]
    move = Move(histograms.DELTA)
    length = 16
    errors = [float(deviations[length - 1]) for deviations in
              (histograms.deviation(1, move), histograms.deviation(4, move), histograms.cumulative(move))]  # fmt: skip
    side = 12
    plane = [float(planes.deviation(k)[side - 1]) for k in (1, 4)]
    return (
        PaperClaim("Histogram publishing", "Its sensitivity is 2 under either notion.", "sharpened",
              f"{histogram_sensitivity(Move(1), edges=[0, 5, 9])} for a move,"
              f" {histogram_sensitivity('replacement', edges=[0, 5, 9])} for a replacement;"
              f" {histogram_sensitivity('arrival', edges=[0, 5, 9])} for an arrival", "[neighbourhoods]",
              f"{_COUNTS}::test_sensitivities_are_the_largest_change_of_all"),
        PaperClaim("Proposed method", "Of k shifted histograms it is still 2.", "refuted",
              f"k = 4: {kinds[0]} for moves of up to δ, {kinds[1]} for moves of 1.5 δ, {kinds[2]} for an arrival,"
              f" {kinds[3]} for a replacement", "[neighbourhoods], [errata]",
              f"{_COUNTS}::test_sensitivities_are_the_largest_change_of_all", ground=OWN),
        PaperClaim("Proposed method", "Utility is significantly higher.", "sharpened",
              f"a range of {length} cells: {errors[0]:.2f} by one histogram, {errors[1]:.2f} by four shifted,"
              f" {errors[2]:.2f} by cumulative counts, which need no histogram at all", "[neighbourhoods]",
              f"{_RANGES}::test_cumulative_counts_are_flat_and_below_both_histograms_for_every_length_above_two",
              figures["histograms_1d"].rests_on),
        PaperClaim("Experimental result for 2d points", "A heading only: no method and no number.", "not judged",
              f"our k × k histograms have {planes.sensitivity(4)} for k = 4; a square of {side} cells a side:"
              f" {plane[0]:.1f} by"
              f" one, {plane[1]:.1f} by 4 × 4; small squares are worse", "[neighbourhoods]",
              "papers/test_neighbourhood.py::test_the_plane_s_sensitivity_is_that_of_all_moves_tried",
              figures["histograms_2d"].rests_on),
    )  # fmt: skip


def _series(figure: PaperFigure) -> tuple[PaperClaim, ...]:
    offline = figure.at("offline", 3.0, panel=figure.panels[0].title)
    online = figure.at("online, fraction chosen on samples", 3.0)
    per_request = figure.at("online, at most m requests", 3.0)
    single_budget = figure.at("whole series under one ε", 3.0)
    stays = np.array([7.0, 10.0, 21.0])
    return (
        PaperClaim("Dynamic datasets", "Who leaves within δ is protected as under the standard notion.", "reproduced",
              "losses of any window come to at most ε, exactly", "[neighbourhoods]",
              f"{_WINDOWS}::test_at_every_instant_the_window_spends_at_most_epsilon"),
        PaperClaim("Dynamic datasets", "Longer stays are protected more weakly.", "reproduced",
              f"stays of {', '.join(f'{stay:g}' for stay in stays)} days: at most"
              f" {', '.join(f'{int(np.ceil(stay / 7))}ε' for stay in stays)}", "[neighbourhoods]",
              "papers/test_neighbourhood.py::test_a_stay_of_several_windows_costs_at_most_as_many_epsilon"),
        PaperClaim("Sustainable privacy", "Continuous publishing with a limited budget lowers utility.", "reproduced",
              f"three requests a week for a year: noise scale {single_budget:.0f} under one ε, "
              f"{offline:.2f} by windows",
              "[neighbourhoods]",
              f"{_WINDOWS}::test_losses_of_windows_are_the_exact_sums_rounded_up"),
        PaperClaim("Offline", "An algorithm for some utility functions.", "sharpened",
              "the optimum for any weights, to 1e-8 of it or better", "[neighbourhoods]",
              f"{_WINDOWS}::test_it_is_the_optimum_that_a_general_solver_finds"),
        PaperClaim("Online", "A budget that is best on sampled inputs.", "reproduced",
              f"{online:.2f} (fraction), {per_request:.2f} (fixed part), against {offline:.2f} offline",
              "[neighbourhoods]", f"{_WINDOWS}::test_it_has_no_more_noise_than_either_online_rule"),
    )  # fmt: skip
