"""What the age-dependent paper claims, and what was found: numbers by the same code as the figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agedp_data.accounting.ageing import age_of_information, compose, peak, risk
from agedp_data.leakage.function import leakage, leakage_from_total_variation
from agedp_data.markov.mixing import total_variation
from docs.papers.age.ar1_model import mean_square_error as aged_error
from docs.papers.age.autoregressive import NOISE, RATE, drifts, printed_risk
from docs.papers.age.geometric_decay import plan_geometric_decay
from docs.papers.age.planning import DECAY, SQUARE_ERROR
from docs.papers.age.policies import LEFT, kept_by_interval, periodic_and_alternating
from docs.papers.age.two_state import AGENTS, CHAIN, MOVE, success, unaged
from docs.papers.age.two_state_model import failure_rate, mean_square_error
from docs.papers.results import EVERY, OWN, PaperClaim, PaperFigure

_ERRS = "agedp_data/accounting/test_where_the_paper_errs.py"
EVEN, UNLIKE = ((0.5, 0.5), (0.0, 1.0)), ((0.75, 0.25), (0.25, 0.75))
"""Two kernels whose rows are .5 apart."""

_AGEING = "agedp_data/accounting/test_ageing.py"


def claims(figures: Sequence[PaperFigure]) -> tuple[PaperClaim, ...]:
    """Return every claim of the paper with its verdict."""
    by_name = {figure.name: figure for figure in figures}
    return (
        *_single(),
        *_several(by_name),
        *_two_states(by_name),
        *_household_claims(by_name["figure_7"]),
        *_appendix(by_name["figure_8"]),
    )


def _list(values: Sequence[float] | np.ndarray, digits: int = 4) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def equal_risk(target: float, age: int) -> tuple[float, float, float]:
    """Return a risk, and the averaged failure rates of a fresh output of it and of one that ages to it."""
    aged = unaged(target, age, tight=True)
    if not np.isfinite(aged):
        raise ValueError(f"nothing that is {age} steps old discloses {target:g}")
    fresh, old = (failure_rate(t, loss, agents=AGENTS, move=MOVE) for t, loss in ((0, target), (age, aged)))
    return target, fresh, old


def _single() -> tuple[PaperClaim, ...]:
    tight, classic = (risk(CHAIN, 2.0, [3, 6, 10], method=method) for method in ("tight", "total_variation"))
    return (
        PaperClaim("after eq. 8", "The attack succeeds in 65, 58 and 53 % after 3, 6 and 10 days.", "refuted",
              f"{_list(100 * success(tight), 1)} %; 65, 58 and 53 % belong to 4, 7 and 11 days", "[errata]",
              f"{_ERRS}::test_after_eq_8_the_attack_succeeds_at_ages_4_7_11_as_often_as_is_said_of_3_6_10", ground=OWN),
        PaperClaim("after eq. 8", "Six days old at loss 2 is about as good as fresh at loss .3.", "refuted",
              f"as good as fresh at {tight[1]:.4f}", "[errata]",
              f"{_ERRS}::test_after_eq_8_the_attack_succeeds_at_ages_4_7_11_as_often_as_is_said_of_3_6_10", ground=OWN),
        PaperClaim("Definition 7", "The distance between rows of the reversed kernel is what counts.", "reproduced",
              "the forward kernel, used in VI-B, would give .5 where the truth is 1", "[chains], [errata]",
              f"{_ERRS}::test_eq_12_with_the_forward_kernel_would_be_unsafe"),
        PaperClaim("Corollary 1", "Ageing the input artificially is the same as an aged output.", "reproduced",
              "the enumerated loss is that of the aged kernel", "[ageing]",
              "agedp_data/accounting/test_ageing.py::"
              "test_an_artificially_aged_randomised_response_costs_what_its_kernel_lets_through"),
        PaperClaim("eq. 13", "Chains mix as ρ^-t.", "refuted",
              f"as ρ^t: {_list(total_variation(CHAIN, [1, 10]))} after 1 and 10 steps for ρ = .8", "[errata]",
              f"{_ERRS}::test_eq_13_decays_as_rho_to_the_t", ground=EVERY),
        PaperClaim("Theorem 1", "At age t the loss is at most ln(1 + Δ(t)(e^ε - 1)).", "sharpened",
              f"loss 2 at ages 3, 6, 10: {_list(classic)}; tight {_list(tight)}", "[leakage], [ageing]",
              f"{_AGEING}::test_single_queries_have_their_reference_risks"),
        PaperClaim("III-A.3, Theorem 1", "Users are independent.", "sharpened",
              "the theorem rests on it: of two that always do the same, an output of loss 1 each, two steps old,"
              f" discloses {float(risk(CHAIN, 2.0, [2], method='tight')[0]):.4f} and not"
              f" {float(risk(CHAIN, 1.0, [2], method='total_variation')[0]):.4f}", "[goodness of fit], [errata]",
              f"{_ERRS}::test_theorem_1_fails_for_two_households_that_always_do_the_same"),
        PaperClaim("abstract, after Theorem 1", "Total variation is the sole essential information.", "sharpened",
              f"enough for a bound: "
              f"{float(leakage_from_total_variation(0.5, 2.0)):.4f} at distance .5 and loss 2; of two chains"
              f" that far apart {float(leakage(UNLIKE, 2.0)):.4f} and {float(leakage(EVEN, 2.0)):.4f} pass through",
              "[leakage]",
              "papers/test_claims.py::test_two_kernels_of_one_distance_let_different_losses_through"),
        PaperClaim("Theorem 2", "Ageing alone protects, at the rate λ_*^t.", "sharpened",
              "exact: loss of any mechanism, two states, age 10:"
              f" {float(risk(CHAIN, np.inf, [10], method='tight')[0]):.4f};"
              " step (b) of eq. 61 drops π(x')/π(x)", "[ageing], [errata]",
              f"{_ERRS}::test_eq_61_b_drops_the_ratio_of_the_stationary_law"),
        PaperClaim("eq. 12 on real data", "Powers of a one-step kernel give the memory.", "sharpened",
              "of a time-homogeneous first-order chain, which it assumes; no change at night, random days: .62 where"
              " the truth is 1", "[goodness of fit], [errata]",
              f"{_ERRS}::test_eq_12_of_a_homogenised_chain_understates_a_night_in_which_nothing_changes"),
    )  # fmt: skip


def _several(figures: dict[str, PaperFigure]) -> tuple[PaperClaim, ...]:
    literal = float(np.log1p((1 - 2 * MOVE) ** 5 * np.expm1(0.5)))
    exact, bound = (
        float(compose(CHAIN, [1, 2, 3], [5] * 3, [0.5] * 3, [3], method=method)[0])
        for method in ("tight", "total_variation")
    )
    oldest = int(age_of_information(4 * np.arange(1, 25), [2] * 24, 99)[8:].max())
    fifth = figures["figure_3"].at("total variation", 20.0)
    top, tight = (float(peak(CHAIN, 0.5, age=2, interval=4, method=method)) for method in ("total_variation", "tight"))
    endless = float(peak(CHAIN, 1.0, age=0, interval=1, method="tight"))
    search = {"losses": (np.arange(1, 401) * 0.02).tolist(), "precision": 1e-6, "max_total": 60.0}
    turns = [periodic_and_alternating(most) for most in (0.084, 0.0995)]
    strict, free = (plan_geometric_decay(DECAY, SQUARE_ERROR, max_penalty=most, **search) for most in (0.084, 0.0995))
    alone, lower = (float(np.log1p(LEFT**3 * factor)) for factor in (np.expm1(0.5), np.exp(0.5) * (1 - LEFT * 0.7) - 1))
    return (
        PaperClaim("eq. 21", "Queries are counted from S_0 = 0 on.", "refuted",
              "from the first publication on: before it the loss is"
              f" {float(compose(CHAIN, [4], [2], [0.5], [3], method='tight')[0]):.1f}", "[errata]",
              f"{_ERRS}::test_eq_21_counts_no_query_before_the_first", ground=OWN),
        PaperClaim("eq. 24, before eq. 28", "The largest age of information is A + S.", "refuted",
              f"A + S - 1: for A = 2, S = 4 it is {oldest}", "[ageing], [errata]",
              f"{_ERRS}::test_after_eq_27_the_largest_age_of_information_is_one_less_than_age_and_interval",
              ground=EVERY),
        PaperClaim("Theorem 3, eq. 25", "The loss of a series follows from the last output and one earlier risk.",
              "refuted",
              f"three outputs of .5 of inputs five steps old: printed {literal:.4f}, exact {exact:.10f}, by total"
              f" variation {bound:.4f}", "[ageing], [errata]",
              f"{_ERRS}::test_eq_25_looked_up_literally_is_below_the_truth_for_overlapping_ages", ground=OWN),
        PaperClaim("Proposition 3, Figure 3", "A = 2, S = 4, loss .5 peaks at eq. 30.", "sharpened",
              f"{top:.12f}; tight {tight:.4f}", "[ageing]",
              "agedp_data/accounting/test_ageing.py::test_the_peak_of_figure_3_has_its_thirty_digit_reference"),
        PaperClaim("Figure 3", "Five epochs come near the fixed point.", "sharpened",
              f"for Δ(t) = .8^t, which is ours, {fifth / top:.0%} of it; the tight recursion is within 1 %", "[ageing]",
              "papers/test_claims.py::test_the_fifth_publication_is_a_tenth_below_the_peak"),
        PaperClaim("eq. 31", "Otherwise the risk diverges.", "refuted",
              f"only the bound does: p = q = .1, A = 0, S = 1, loss 1: {endless:.9f}", "[errata]",
              f"{_ERRS}::test_eq_31_only_the_bound_diverges", ground=OWN),
        PaperClaim("eq. 38", "Δ(t) = cρ^t with c ≥ 1.", "sharpened",
              f"clipped at 1, which c = 1 never needs: c = 3, ρ = .9 would have {3 * 0.9**10:.3f} after ten steps",
              "[errata]", f"{_ERRS}::test_eq_38_is_clipped_at_one"),
        PaperClaim("Algorithms 1, 2", "They find the schedule of least peak risk.", "refuted",
              f"as printed no loop runs; repaired they come to {free.risk:.3f} at an error of .0995", "[errata]",
              f"{_ERRS}::test_algorithms_1_and_2_repaired_find_the_feasible_minimum_of_a_fine_grid", ground=EVERY),
        PaperClaim("after eq. 39", "Age and interval may be rounded to whole steps.", "refuted",
              "at an error of .084 rounding comes to"
              f" {SQUARE_ERROR(round(strict.age) + round(strict.interval), strict.loss):.4f}; whole steps keep it",
              "[ageing], [errata]",
              f"{_ERRS}::test_algorithm_2_rounded_to_whole_steps_breaks_the_constraint_and_the_integer_search_does_not",
              ground=OWN),
        PaperClaim("Proposition 4, eq. 40", "Aged schedules are best with ρ^S e^ε = 1/2.", "reproduced",
              f"a search over all splits of 14 steps comes to {_list([kept_by_interval(x, 14) for x in (0.2, 0.5, 1)])}"
              " at losses .2, .5 and 1", "[ageing]",
              "papers/test_age.py::test_eq_40_is_what_a_search_over_all_splits_finds"),
        PaperClaim("Theorem 4", "Periodic schedules are enough.", "reproduced",
              f"fresh outputs, errors of .084 and .0995: one interval {_list([peak for peak, _ in turns], 3)}, two that"
              f" take turns {_list([two for _, two in turns], 3)}", "[ageing]",
              "papers/test_age.py::test_two_intervals_that_take_turns_are_no_better_than_one"),
        PaperClaim("eqs. 67, 71", "The recursion of the proof of Theorem 4.", "refuted",
              f"ε stands where e^ε is needed: an earlier output of .3 would lower a risk of {alone:.4f} to {lower:.4f}",
              "[errata]",
              f"{_ERRS}::test_eqs_67_and_71_with_eps_for_e_to_the_eps_would_let_an_earlier_release_lower_the_risk",
              ground=OWN),
    )  # fmt: skip


def _two_states(figures: dict[str, PaperFigure]) -> tuple[PaperClaim, ...]:
    errors = [mean_square_error(t, 0.5, agents=AGENTS, move=MOVE) for t in range(4)]
    pair = equal_risk(0.4, 6)
    return (
        PaperClaim("eq. 48", "Laplace(1/(εI)) makes the mean ε-DP.", "refuted",
              f"states -1 and 1: 2/(εI); errors at loss .5, ages 0 to 3: {_list(errors)}", "[errata], reference value",
              f"{_ERRS}::test_eq_48_would_be_twice_as_costly_as_it_says", ground=OWN),
        PaperClaim("Figure 4(a)", "The error rises with age to a limit.", "reproduced",
              f"2/I + 8/(ε²I²) = {mean_square_error(500, 0.5, agents=AGENTS, move=MOVE):.4f} at loss .5", "[ageing]",
              f"{_ERRS}::test_fig_4c_an_aged_mean_is_worse_than_publishing_zero_unless_it_is_shrunk"),
        PaperClaim("Figure 4(b)", "The risk falls with age to 0.", "sharpened", "the tight risk is lower at every age",
              "[leakage]", f"{_AGEING}::test_every_method_bounds_the_tight_one"),
        PaperClaim("Figure 4(c)", "For small risks ageing bounds the error, noise alone does not.", "reproduced",
              f"limit 2/I = {2 / AGENTS:g}; but always publishing 0 has {1 / AGENTS:g}", "[errata]",
              f"{_ERRS}::test_fig_4c_an_aged_mean_is_worse_than_publishing_zero_unless_it_is_shrunk"),
        PaperClaim("Figure 5(a)", "The failure rate converges to .5.", "refuted",
              f"to {figures['figure_5'].at('loss 2', 25.0):.5f}: ties count as at least 0", "[errata]",
              f"{_ERRS}::test_fig_5a_converges_to_0_41190_and_not_to_one_half", ground=OWN),
        PaperClaim("Figure 5(b)", "Different pairs of risk and failure rate ask for different ages and losses.",
              "sharpened",
              f"given the start; averaged, age 0 is best at every loss: at {pair[0]:.2f} it fails in {pair[1]:.1%}, age"
              f" 6 at the same risk in {pair[2]:.1%}", "[errata]",
              "papers/test_age.py::test_averaged_over_the_start_the_fresh_output_of_equal_risk_is_never_worse"),
        PaperClaim("Figure 5(c)", "Ageing lowers the failure rate by up to a third, given the start (eq. 51).",
              "reproduced",
              figures["figure_5"].parts["conditional"], "[errata]",
              "papers/test_age.py::test_failure_rates_by_start_are_those_of_a_simulated_mechanism"),
        PaperClaim("Figure 5(c)", "Ageing fails less often than noise alone for every start.", "refuted",
              figures["figure_5"].parts["averaged"], "[errata]",
              f"{_ERRS}::test_fig_5c_gains_nothing_by_ageing_once_averaged_over_the_past", ground=OWN),
        PaperClaim("Corollary 3, Figure 6(a)", "For the mean square error there is no trade-off.", "refuted",
              figures["figure_6a"].parts["trade"], "[errata]",
              f"{_ERRS}::test_corollary_3_does_not_apply_to_the_square_error_so_there_is_a_trade_off", ground=OWN),
        PaperClaim("Figure 6(b)", "For the failure rate there is a trade-off.", "sharpened",
              figures["figure_6b"].parts["trade"], "[ageing]",
              "agedp/planning/test_frontier.py::test_the_frontier_falls_as_more_error_is_allowed"),
    )  # fmt: skip


def _household_claims(figure: PaperFigure) -> tuple[PaperClaim, ...]:
    data, verdicts, parts = figure.rests_on, figure.verdicts, figure.parts
    ground = {name: EVERY if verdict == "refuted" else "" for name, verdict in verdicts.items()}
    return (
        PaperClaim("Figure 7(a)", "After a quick rise the error stays level.", verdicts["level"], parts["level"],
              "[goodness of fit]",
              "papers/test_age.py::test_figure_7_s_error_is_that_of_a_plain_loop", data, ground["level"]),
        PaperClaim("Figure 7(b)", "By eq. 55 the risk falls from 18 hours on.", verdicts["from 18 hours"],
              parts["from 18 hours"], "reference value",
              "papers/test_age.py::test_forty_homes_have_the_reference_distances_and_losses", data,
              ground["from 18 hours"], parts["reading"] if verdicts["from 18 hours"] == "reproduced" else ""),
        PaperClaim("Figure 7(b)", "A household mixes as fast as its chain.", verdicts["mixing"], parts["mixing"],
              "[goodness of fit]",
              "real/test_forgetting_of_homes.py::test_half_hours_are_forgotten_as_the_table_says", data,
              ground["mixing"]),
        PaperClaim("Figure 7(c)", "Ageing has a finite error at any risk, noise alone has not.", verdicts["finite"],
              f"{parts['finite']}, {figure.at('noise alone', 0.05):.3g} by noise alone, growing as 1/ε²; counted"
              f" directly {figure.at('aged, counted directly', 0.05):.3g}{parts['over']}",
              "[goodness of fit]", "papers/test_age.py::test_few_homes_or_made_up_ones_judge_nothing", data,
              ground["finite"]),
        PaperClaim("eq. 55", "It bounds Δ(t) of household chains.", verdicts["eq. 55"],
              f"it held {parts['eq. 55 held']}; proved for reversible chains only, and others fall below the"
              " truth; Fill's holds for all", "[chains], [errata]",
              "papers/test_age.py::test_eq_55_is_counted_home_by_home_against_matrix_powers", data,
              ground["eq. 55"]),
    )  # fmt: skip


def _appendix(figure: PaperFigure) -> tuple[PaperClaim, ...]:
    drift = figure.parts["drift"]
    first, second = np.array([0.9, 0.1]), np.array([0.5, 0.5])
    wrong, right = float(second @ np.log(first / second)), float(second @ np.log(second / first))
    limits = [drifts(500.0)[i] for i in (0, 1)]
    fresh = float(printed_risk(np.array([0.0]), 1.0)[0])
    return (
        PaperClaim("eq. 57", "Bounds λ_* of a walk on a graph.", "refuted", "bounds λ_1: on two vertices λ_* is 1",
              "[errata]",
              f"{_ERRS}::test_eq_57_does_not_bound_the_modulus_of_the_walk_on_two_vertices", ground=OWN),
        PaperClaim("eq. 85", "The divergence of two laws.", "refuted",
              f"minus that of the other direction: {wrong:.4f} for (.9, .1) and (.5, .5), where it is {right:.4f}",
              "[errata]",
              f"{_ERRS}::test_eq_85_is_negative_so_pinsker_needs_the_other_sign", ground=EVERY),
        PaperClaim("Figure 8(a)", "The error rises with age to a limit.", "sharpened",
              f"without noise to {limits[0]:.4f}, twice the {limits[1]:.4f} of eq. 92", "[errata]",
              "papers/test_age.py::test_the_aged_mean_of_a_continuous_state_drifts_to_twice_the_paper_s_limit"),
        PaperClaim("Figure 8(b)", "Ageing has a finite error at any risk, noise alone has not.", "sharpened",
              f"at a risk of .05 {figure.at('aged, exact', 0.05):.3f} by the exact distance,"
              f" {figure.at('aged, eq. 89', 0.05):.3f} by eq. 89, {figure.at('noise alone', 0.05):.1f} by noise alone;"
              " once the state is clipped", "[errata]",
              "papers/test_age.py::test_the_aged_mean_of_a_continuous_state_drifts_to_twice_the_paper_s_limit"),
        PaperClaim("eqs. 88, 89, Figure 8", "An aged output of an autoregressive state.", "sharpened",
              f"a bound that is not clipped: loss 1 becomes {fresh:.2f} when fresh, for states 6 apart; the exact total"
              " variation is below throughout",
              "[errata]",
              f"{_ERRS}::test_eqs_88_and_89_may_exceed_the_loss_of_the_mechanism_itself"),
        PaperClaim("eqs. 90, 92, Figure 8", "Error of the aged mean.", "refuted",
              f"{drift}; at a scale of .05 {aged_error(3, 0.05, agents=20, rate=RATE, noise=NOISE):.5f}", "[errata]",
              f"{_ERRS}::test_eqs_90_and_92_need_a_range_and_twice_the_square_of_the_scale", ground=EVERY),
    )  # fmt: skip
