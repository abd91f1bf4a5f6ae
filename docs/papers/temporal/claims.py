"""What the temporal-leakage paper claims, and what was found: numbers by the same code as the figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agedp_data.accounting.temporal_leakage import allocate, backward, pairwise, temporal, temporal_supremum, user_level
from agedp_data.accounting.temporal_recursion import temporal_kernels
from agedp_data.leakage.function import fixed_point, leakage
from agedp_data.markov.transitions import reverse, stationary
from docs.papers.results import OWN, PaperClaim, PaperFigure
from docs.papers.temporal.budgets import AHEAD, BEHIND
from docs.papers.temporal.courses import DRIFT, EXAMPLE_4, TRAP, TURNING, frozen, theorem_11
from docs.papers.temporal.smoothing import READ_AS, smoothed, until

_MISPRINT = f"s = {READ_AS:g} for the printed .005"
_ERRS = "agedp_data/accounting/test_where_the_paper_errs.py"
_TEMPORAL = "agedp_data/accounting/test_temporal_leakage.py"
_BUDGETS = "agedp_data/accounting/test_temporal_allocation.py"


def crossings() -> int:
    """Return how many of many random pairs of pieces change places more than once on a grid of losses."""
    rng = np.random.default_rng(5)
    q, d, other_q, other_d = rng.random((4, 100_000, 1))
    gain = np.expm1(np.array([0.2, 1.0, 3.0]))
    apart = np.log((1 + q * gain) / (1 + d * gain)) - np.log((1 + other_q * gain) / (1 + other_d * gain))
    return int(((apart[:, 0] >= 0) & (apart[:, 2] >= 0) & (apart[:, 1] < -1e-12)).sum())


def claims(figures: Sequence[PaperFigure]) -> tuple[PaperClaim, ...]:
    """Return every claim of the paper with its verdict."""
    by_name = {figure.name: figure for figure in figures}
    return (*_courses(), *_algorithms(by_name["figure_6"]), *_limits(by_name["figure_7"]), *_plans(by_name))


def _courses() -> tuple[PaperClaim, ...]:
    losses, stationary_share = [0.1] * 10, float(stationary(np.array([DRIFT]))[0, 0])
    (backward_kernel,), (forward_kernel,) = temporal_kernels(TURNING)
    apart = [float(leakage(backward_kernel, forward_kernel, [0.5] * 10).max()) for leakage in (temporal, pairwise)]
    return (
        PaperClaim("eqs. 5, 10, 11", "Total leakage equals backward plus forward leakage less the release.", "refuted",
              f"it is at most that: {apart[0]:.3f} against {apart[1]:.3f} for a chain of three states",
              "[temporal leakage], [errata]",
              f"{_ERRS}::test_the_sum_of_both_sides_is_a_bound_and_no_equality", ground=OWN),
        PaperClaim("Examples 2, 3, Figure 3",
              "Leakage of ten releases of .1 under strong, moderate and no correlation.",
              "reproduced", f"BPL ends at {backward(DRIFT, losses)[-1]:.10f}, TPL peaks at"
              f" {temporal(DRIFT, DRIFT, losses).max():.10f}", "reference value",
              f"{_TEMPORAL}::test_figure_3_of_the_paper_has_its_reference_values"),
        PaperClaim("Figure 3", "The moderate matrix serves as forward and as backward correlation.", "refuted",
              f"its chain leaves one place for good, of stationary probability {stationary_share:.0f}, and "
              "has no reverse",
              "[errata]",
              f"{_ERRS}::test_figure_3_s_chain_has_no_reverse", ground=OWN),
        PaperClaim("Remark 1", "0 ≤ L(x) ≤ x.", "reproduced", "and non-decreasing, attained by a mechanism",
              "[leakage]",
              "agedp_data/leakage/test_function.py::test_disjoint_rows_let_everything_through_and_equal_rows_nothing"),
        PaperClaim("Theorem 3", "Leakage about one, two or more releases in a row.", "reproduced",
              "three cases, never exceeded by enumerated mechanisms", "[temporal leakage]",
              "agedp_data/accounting/test_temporal_leakage.py::test_windows_have_the_paper_s_three_cases"),
        PaperClaim("Corollary 1", "About the whole series it is the sum for every correlation.", "reproduced",
              f"ten releases of .1: {float(user_level(losses)):.4f}", "[temporal leakage]",
              "agedp_data/accounting/test_temporal_leakage.py::"
              "test_w_event_is_the_largest_window_and_user_level_the_longest"),
    )  # fmt: skip


def _algorithms(figure: PaperFigure) -> tuple[PaperClaim, ...]:
    values = leakage(np.array(EXAMPLE_4), np.array([0.1, 0.5, 1.0, 2.0, 5.0]))
    # The first piece of Algorithm 2 is that of the first two rows and the column of the largest ratio.
    over, under = max(zip(EXAMPLE_4[0], EXAMPLE_4[1], strict=True), key=lambda pair: pair[0] / pair[1])
    first = float(np.log((1 + over * np.expm1(1.0)) / (1 + under * np.expm1(1.0))))
    return (
        PaperClaim("6.1", "Algorithms 1, 3 and 5 give what the linear programmes give.", "reproduced",
              figure.parts["agree"], "[leakage]",
              "agedp_data/leakage/test_function.py::test_it_is_the_optimum_of_the_linear_programmes",
              figure.rests_on),
        PaperClaim("Figure 6(a), (b)", "They are much quicker than a solver, in O(n³) or after precomputation.",
              "sharpened",
              figure.parts["once"], "[leakage]",
              "papers/test_temporal.py::test_algorithm_1_and_the_programmes_find_what_the_primitive_finds",
              figure.rests_on),
        PaperClaim("Figure 6(d)", "A larger loss before slows Algorithm 1.", figure.verdicts["slower"],
              figure.parts["slower"], "[leakage]",
              "papers/test_temporal.py::test_algorithm_1_and_the_programmes_find_what_the_primitive_finds",
              figure.rests_on),
        PaperClaim("Figure 6(c)", "Which algorithm is best depends on the number of releases.", "sharpened",
              "few releases: no preparation; many: pieces once, then O(log n) each, chosen by themselves", "[leakage]",
              "agedp_data/accounting/test_temporal_leakage.py::test_random_pairs_of_matrices_leak_as_algorithm_1_says",
              figure.rests_on),
        PaperClaim("Theorem 10", "A piece above another at two losses is above it in between.", "reproduced",
              f"{crossings()} exceptions among 100000 pairs of pieces", "[leakage]",
              "papers/test_temporal.py::test_two_pieces_cross_at_most_once"),
        PaperClaim("Corollary 3, Figure 4", "L is the largest of finitely many pieces.", "reproduced",
              f"Example 4 at .1, .5, 1, 2, 5: {', '.join(f'{value:.10f}' for value in values)}", "reference value",
              "agedp_data/leakage/test_function.py::test_the_reference_example_comes_out"),
        PaperClaim("Algorithm 4", "It may start at α = 0.", "refuted",
              f"all pieces tie there; the first of Example 4 is {first:.4f} at loss 1, the largest {values[2]:.4f}",
              "[errata]",
              f"{_ERRS}::test_algorithm_4_started_at_zero_takes_a_piece_that_is_never_the_largest", ground=OWN),
        PaperClaim("eq. 24", "L is computed from e^α.", "sharpened",
              f"e^α overflows for α above {np.log(np.finfo(np.float64).max):.0f}; a form in e^-α does not",
              "[leakage], [errata]", f"{_ERRS}::test_e_to_the_alpha_overflows_as_printed_and_not_here"),
    )  # fmt: skip


def _limits(figure: PaperFigure) -> tuple[PaperClaim, ...]:
    tops = [float(temporal_supremum(smoothed(0.05, 50), None, loss)) for loss in (0.1, 1.0)]
    strong, strongest = (
        [float(temporal_supremum(smoothed(s, 50), None, loss)) for loss in (0.1, 1.0)] for s in (0.005, READ_AS)
    )
    lost, fixed = theorem_11(0.6, 1e-17, 0.4), fixed_point(np.array([0.6]), np.array([1e-17]), np.array(0.4))
    grows = float(np.diff(np.exp(backward(DRIFT, [float(np.log(1.25))] * 2)))[0])
    larger = float(temporal_supremum(smoothed(0.005, 200), None, 0.1))
    printed, meant = ([until(s, 50, loss, share=0.95) for loss in (1.0, 0.1)] for s in (0.005, READ_AS))
    return (
        PaperClaim("Theorem 11", "The supremum is that of the q and d which give the maximum in eq. 24.", "refuted",
              f"as worded, at one loss, {frozen(TRAP, 1.0):.8f} where there is no limit: all must be searched",
              "[temporal leakage], [errata]",
              f"{_ERRS}::test_theorem_11_with_the_pair_frozen_calls_an_endless_growth_bounded",
              ground=OWN),
        PaperClaim("Algorithm 6", "The supremum is found among all q and d.", "reproduced",
              f"no limit for that kernel, and "
              f"{float(temporal_supremum(EXAMPLE_4, None, 1.0)):.4f} for Example 4 at loss 1, where"
              f" 200 releases come to {backward(EXAMPLE_4, [1.0] * 200)[-1]:.4f}", "[temporal leakage]",
              "agedp_data/leakage/test_function.py::test_the_supremum_is_the_limit_of_the_recursion"),
        PaperClaim("Theorem 11, case 2", "ε ≤ ln(1/q) suffices.", "refuted",
              f"strictly less: at the edge, ln 1.25, e^BPL grows by {grows:.2f} with every release",
              "[temporal leakage], [errata]", f"{_ERRS}::test_theorem_11_s_second_case_is_strict", ground=OWN),
        PaperClaim("Theorem 11, case 1", "The root as printed.", "sharpened",
              f"true, and loses its digits: {lost:.4f} at q = .6, d = 1e-17, loss .4, where a stable root has"
              f" {float(fixed):.4f}", "[temporal leakage], [errata]",
              f"{_ERRS}::test_theorem_11_s_first_case_loses_all_digits_for_a_small_d"),
        PaperClaim("Example 5, Figure 5", "Whether there is a supremum, and which.", "reproduced",
              f"q = .8, d = 0: {float(temporal_supremum(DRIFT, None, 0.1)):.10f} at loss .1, none at loss .3",
              "reference value",
              f"{_TEMPORAL}::test_infinite_limits_are_found_on_either_side"),
        PaperClaim("Figure 7", "Leakage rises sharply and then stays near a supremum.", "reproduced",
              f"s = .05, n = 50: {tops[0]:.10f} (loss .1), {tops[1]:.10f} (loss 1)", "reference value",
              "agedp_data/leakage/test_function.py::test_the_smoothed_identity_has_its_reference_supremum"),
        PaperClaim("Figure 7", "For s = .005 it rises for about 8 releases of loss 1 and about 80 of loss .1.",
              "reproduced",
              f"n = 50: 95 % of the supremum after {meant[0]} and {meant[1]}; as printed after {printed[0]} and"
              f" {printed[1]}", "reference value",
              "papers/test_temporal.py::test_how_long_leakage_rises_is_that_of_a_plain_recursion", reading=_MISPRINT),
        PaperClaim("Figure 7", "A loss of .1 significantly delays the growth.", "sharpened", figure.parts["rises"],
              "reference value",
              "papers/test_temporal.py::test_how_long_leakage_rises_is_that_of_a_plain_recursion"),
        PaperClaim("6.2", "In the long run a loss of .1 is not substantially better than 1 under strong correlation.",
              "reproduced", f"n = 50: {strongest[0]:.3f} against {strongest[1]:.3f}; as printed {strong[0]:.3f} against"
              f" {strong[1]:.3f}", "reference value",
              "papers/test_temporal.py::test_how_long_leakage_rises_is_that_of_a_plain_recursion", reading=_MISPRINT),
        PaperClaim("Figure 7", "With the same s more states leak less.", "reproduced",
              f"s = .005, loss .1: {strong[0]:.4f} for n = 50, {larger:.4f} for n = 200", "reference value",
              "papers/test_temporal.py::test_how_long_leakage_rises_is_that_of_a_plain_recursion"),
        PaperClaim("eq. 28", "Smoothing makes matrices of any correlation.", "reproduced",
              "for experiments; where a risk is planned it is refused, for it lowers the figure", "[goodness of fit]",
              "agedp_data/accounting/test_ageing.py::test_smoothing_lowers_the_figure_by_a_power_of_the_age"),
    )  # fmt: skip


def _plans(figures: dict[str, PaperFigure]) -> tuple[PaperClaim, ...]:
    length = {name: figures["figure_9"].at(name, 5.0, panel="(a) By length, s = .001, α = 2")
              for name in ("Algorithm 7", "Algorithm 8", "α/T", "best")}  # fmt: skip
    plan = allocate(BEHIND, AHEAD, alpha=1.0, horizon=30, method="exact")
    long = float(temporal(TRAP, TRAP, allocate(TRAP, TRAP, alpha=3.0, horizon=400, method="supremum")).max())
    five = ", ".join(f"{name} {noise:.2f}" for name, noise in length.items())
    return (
        PaperClaim("Algorithm 7", "Its constant loss keeps leakage below α for ever.", "sharpened",
              f"over all q and d it holds, {long:.4f} after 400 releases for α = 3; with Theorem 11's pair"
              " frozen it would not", "[temporal leakage]",
              f"{_ERRS}::test_algorithm_7_with_the_pair_frozen_breaks_its_promise_and_the_budget_here_keeps_it"),
        PaperClaim("Algorithm 8, Figure 8", "It makes leakage α at every release.", "reproduced",
              figures["figure_8"].parts["plans"], "[temporal leakage]",
              f"{_BUDGETS}::test_supremum_and_exact_are_algorithms_7_and_8"),
        PaperClaim("Algorithm 8", "Its losses are constant on [2, T].", "refuted",
              f"on [2, T - 1]: {plan[1]:.4f} there, {plan[-1]:.4f} at T = {plan.size}", "[errata]",
              f"{_ERRS}::test_algorithm_8_is_constant_from_the_second_to_the_last_but_one", ground=OWN),
        PaperClaim("Figure 8", "Its two matrices describe one user.", "refuted",
              f"the one for looking back has {BEHIND[1][0]:g} where the reverse of the other has"
              f" {reverse(np.array([AHEAD]))[0, 1, 0]:.1f}", "[errata]",
              f"{_ERRS}::test_figure_8_s_backward_matrix_is_not_the_reverse_of_its_forward_one", ground=OWN),
        PaperClaim("Figure 9(a)", "For short series Algorithm 8 is better than Algorithm 7.", "reproduced",
              f"T = 5, mean noise scale: {five}", "[temporal leakage]",
              f"{_BUDGETS}::test_the_best_is_never_worse_than_algorithms_7_and_8_and_the_even_split"),
        PaperClaim("Figure 9", "Algorithms 7 and 8 bound leakage.", "sharpened",
              "they do, and α/T, which is always valid, needs less noise under strong correlation:"
              f" {figures['figure_9'].parts['sticky']}", "[temporal leakage], [errata]",
              f"{_ERRS}::test_algorithm_8_loses_to_an_even_split_under_strong_correlation"),
        PaperClaim("Figure 9(b)", "Strong correlation asks for much more noise.", "sharpened",
              f"s = .01: {figures['figure_9'].at('Algorithm 8', 0.01):.2f} by Algorithm 8,"
              f" {figures['figure_9'].at('best', 0.01):.2f} at best, .5 without correlation", "[temporal leakage]",
              f"{_BUDGETS}::test_the_best_is_a_local_optimum_of_all_losses_together"),
    )  # fmt: skip
