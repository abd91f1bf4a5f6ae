"""The names that outsiders rely on are where docs/mathematics.md says; a change of one is a change for users."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

NAMES = {
    "agedp_data.markov.transitions": "count_transitions transition_matrix stationary reverse power recurrent_part",
    "agedp_data.markov.states": "edges_quantile edges_equal_width states merge_rare",
    "agedp_data.markov.mixing": "total_variation total_variation_forward spectral_bound reversibilised_bound "
    "spectral_gap is_reversible max_total_variation",
    "agedp_data.markov.confidence": "sampling_bound",
    "agedp_data.markov.lagged_counts": "lag_kernel",
    "agedp_data.markov.empirical_mixing": "empirical_total_variation",
    "agedp_data.markov.goodness_of_fit": "markov_goodness_of_fit",
    "agedp_data.markov.cyclic": "count_cyclic_transitions merge_phases cyclic_kernels",
    "agedp_data.markov.cyclic_inference": "cyclic_sampling_bound cyclic_goodness_of_fit",
    "agedp_data.leakage.function": "leakage supremum KernelLeakage leakage_from_total_variation",
    "agedp_data.leakage.bound_table": "max_leakage LeakageBound",
    "agedp_data.leakage.exact": "TabulatedLeakage PiecewiseLeakage",
    "agedp_data.leakage.batched": "BatchedLeakage",
    "agedp_data.leakage.population_bound": "leakage_bound",
    "agedp_data.leakage.population_bound_cyclic": "cyclic_leakage_bound",
    "agedp_data.accounting.ageing": "risk risk_of_curve compose peak cyclic_risk age_of_information age_artificially "
    "approximate_risk compose_approximate",
    "agedp_data.accounting.composition": "compose_without_markov",
    "agedp_data.accounting.age_planner": "plan_ageing frontier AgePlan",
    "agedp_data.accounting.temporal_leakage": "backward forward temporal pairwise window w_event user_level "
    "temporal_supremum",
    "agedp_data.accounting.temporal_half_hourly": "daily_release_leakage",
    "agedp_data.accounting.temporal_allocation": "allocate allocate_with round_up_losses",
    "agedp_data.accounting.discounting": "Exponential Hyperbolic Weights",
    "agedp_data.accounting.discount_schedules": "discounted_loss schedule infinite_horizon_schedule certified_constant "
    "paper_constant",
    "agedp_data.accounting.delta_neighbourhood": "distance standard_distance moves loss_of_change full_range_loss",
    "agedp_data.accounting.windows": "window_budgets window_losses window_ends",
    "agedp_data.series.histograms": "histogram cumulative shifted_histograms cumulative_counts",
    "agedp_data.series.sensitivity": "Move sum_sensitivity histogram_sensitivity cumulative_sensitivity "
    "shifted_sensitivity",
    "agedp_data.audit.lower_bounds": "epsilon_lower_bound detection_power detectable_epsilon",
    "agedp_data.epsilon": "floor_nano ceil_nano round_nano format_epsilon to_float",
    "agedp_data.mechanisms": "discrete_laplace laplace_scale recorded_loss standard_deviation interval fair_bits",
    "agedp_data.ledger": "Ledger ReleaseRecord ContractRecord ModelRecord StatementRecord",
    "agedp_data.errors": "AgedpError InputError RunFileError ChainError Busy LedgerError Refused ContractChanged "
    "LedgerBehind",
}


@pytest.mark.parametrize("module", NAMES)
def test_a_public_name_is_there_and_documented(module: str) -> None:
    loaded = import_module(module)
    missing = [name for name in NAMES[module].split() if not hasattr(loaded, name)]
    assert missing == []
    assert [name for name in NAMES[module].split() if not inspect.getdoc(getattr(loaded, name))] == []


def test_everything_in_all_exists() -> None:
    for module in NAMES:
        loaded = import_module(module)
        assert [name for name in getattr(loaded, "__all__", ()) if not hasattr(loaded, name)] == []
