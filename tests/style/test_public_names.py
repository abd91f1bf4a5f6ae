"""Outsiders call these names in these forms: a change of a name or of a parameter is a change for users."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

from agedp_data import errors

OPTIONS = (
    "clamp_kwh, share=None, min_households, roster=None, statistic='mean', bins_kwh=None, "
    "half_hour_clamp_kwh=None, by=None, max_missing=2, "
    "missing_kwh=0, every=None, first_day=None, last_day=None, skip_days=None, model=None, "
    "accept_unverified_model=None, accept=None, "
    "population='households', ledger=None, title=None, attribution=None, licence=None, contact=None"
)
"""Keywords of release, sanitise, plan and compare; the two that decide have no default."""
OF_ADVICE = OPTIONS.replace("clamp_kwh,", "clamp_kwh=50,", 1).replace("min_households,", "min_households=1,", 1)
CALLS = {
    "agedp": "read(files, *, dataset=None, columns=None, interval_minutes=None, households=None, days=None, "
    "as_dask=False, read_off=None) "
    "findings(source, *, dataset=None, columns=None, interval_minutes=None, households=None, days=None) "
    "InputWarning(findings) quantize(readings, *, states=12, edges='quantile', step='half-hour', ...) "
    "States.plot() estimate(states, *, chain='homogeneous') Chains.spectral_gap() "
    "Chains.total_variation(ages_days=None, *, age_steps=None) "
    "Chains.spectral_bound(ages_days=None, *, age_steps=None) "
    "Chains.reversibilised_bound(ages_days=None, *, age_steps=None) Chains.goodness_of_fit(lags, rng) "
    "Chains.to_frame() Chains.plot(household=None) "
    "calibrate(source, *, min_visits=None, confidence=None, level=None, ages_days=None, chain=None, ...) "
    "load_model(folder) CalibratedModel.plot() CalibratedModel.save(folder) "
    f"advise(source, *, {OF_ADVICE}) "
    f"plan(source, *, promise=None, as_of=None, {OPTIONS}) Plan.compare(*, epsilon=None, error_kwh=None) Plan.plot() "
    f"compare(readings, promises, *, {OPTIONS}) "
    f"release(source, *, promise=None, scheduler=None, as_of=None, {OPTIONS}) Release.plot() Release.save(folder) "
    f"sanitise(source, *, folder=None, promise=None, scheduler=None, as_of=None, {OPTIONS}) true_means(run_file) "
    "open_release(folder) ReleaseFolder.table(...) ReleaseFolder.ledger_rows() "
    "ReleaseFolder.verify(*, key='', not_before='') "
    "ReleaseFolder.plot(name='') ReleaseFolder.period_averages(period) ReleaseFolder.quantiles() "
    "ReleaseFolder.span_bounds(*, days, delta) "
    "smooth(release, *, region=None, weather=None, temperature_column=None) "
    "SmoothedRelease.save(folder) SmoothedRelease.plot() "
    "verify(folder, *, ledger=None, key='', not_before='') audit(run_file, ...) progress_bars() "
    "Classical(*, max_day_epsilon, epsilon_total, delta=None, accept=None, epsilon_per_day) "
    "WEvent(*, max_day_epsilon, epsilon_total, delta=None, accept=None, window_days, epsilon_per_window, spend) "
    "AgeDependent(*, max_day_epsilon, epsilon_total, delta=None, accept=None, age_days, method, secret, "
    "epsilon_per_day=None, risk=None) "
    "Temporal(*, max_day_epsilon, epsilon_total, delta=None, accept=None, alpha, horizon_days, budget) "
    "Discounted(*, max_day_epsilon, epsilon_total, delta=None, accept=None, discount, rate, epsilon, schedule, clock, "
    "horizon_days=None) "
    "Neighbourhood(*, max_day_epsilon, epsilon_total, delta=None, accept=None, delta_kwh, window_days, "
    "epsilon_per_window, spend, fraction=None) DeclaredCurve(ages_days, total_variation, basis, ...)",
    "agedp_data.markov.transitions": "count_transitions(states, contiguous, n_states, *, every=1) "
    "transition_matrix(counts, *, smoothing) stationary(transition) reverse(transition) power(transition, steps) "
    "recurrent_part(transition) "
    "lag_kernel(secret, read, lag, *, n_secret, n_read, part=None)",
    "agedp_data.markov.states": "edges_quantile(values, counts, n_states) edges_equal_width(maximum, n_states) "
    "states(values, edges) merge_rare(states, *, n_states, min_visits)",
    "agedp_data.markov.mixing": "total_variation(transition, steps) total_variation_forward(transition, steps) "
    "spectral_bound(transition, steps) reversibilised_bound(transition, steps) spectral_gap(transition) "
    "is_reversible(transition) max_total_variation(kernel)",
    "agedp_data.markov.confidence": "sampling_bound(counts, steps, *, level, households)",
    "agedp_data.markov.memory_check": "markov_goodness_of_fit(states, lags, rng, *, n_states, ...)",
    "agedp_data.markov.cyclic": "count_cyclic_transitions(states, phases, contiguous, n_states, ...) "
    "merge_phases(counts, *, min_visits) cyclic_kernels(counts, groups, *, direction) "
    "cyclic_sampling_bound(counts, groups, steps, *, level, households) "
    "cyclic_goodness_of_fit(states, lags_days, rng, *, n_phases, min_visits, ...)",
    "agedp_data.leakage.function": "leakage(kernel, loss) supremum(kernel, loss) KernelLeakage(kernel) "
    "KernelLeakage.__call__(loss) KernelLeakage.supremum(loss) leakage_from_total_variation(distance, loss) "
    "BatchedLeakage(kernel, ...) BatchedLeakage.__call__(loss) "
    "BatchedLeakage.supremum(loss)",
    "agedp_data.leakage.bound_table": "max_leakage(kernels, losses) "
    "LeakageBound(ages, losses, backward=None, forward=None, bounds=<factory>, ...) "
    "LeakageBound.__call__(age, loss, *, direction, method)",
    "agedp_data.leakage.exact": "TabulatedLeakage(grid, values) TabulatedLeakage.__call__(loss) "
    "TabulatedLeakage.supremum(loss) PiecewiseLeakage(over, under) PiecewiseLeakage.__call__(loss) "
    "PiecewiseLeakage.supremum(loss)",
    "agedp_data.leakage.population_bound": "leakage_bound(backward, ages, losses, *, reliable, forward=None, "
    "steps_per_day=48, pieces=False) cyclic_leakage_bound(backward, ages, losses, *, reliable, forward=None)",
    "agedp_data.accounting.ageing": "risk(transition, loss, age_steps, *, method) risk_of_curve(curve, loss, ages) "
    "compose(transition, published, ages, losses, at, *, method) peak(transition, loss, *, age, interval, method) "
    "cyclic_risk(kernels, loss, age_steps) age_of_information(published, ages, horizon) "
    "age_artificially(states, transition, steps, rng) approximate_risk(transition, loss, delta, age_steps) "
    "compose_approximate(transition, published, ages, losses, deltas, at) "
    "plan_ageing(risk_of, penalty, *, max_penalty, horizon, ...) "
    "AgePlan(loss, age, interval, risk, penalty)",
    "agedp_data.accounting.composition": "compose_without_markov(kernels, losses) Composition(leakage_at, ...)",
    "agedp_data.accounting.temporal_leakage": "backward(kernel_b, losses) forward(kernel_f, losses) "
    "temporal(kernel_b, kernel_f, losses) pairwise(kernel_b, kernel_f, losses) "
    "window(kernel_b, kernel_f, losses, start, length) w_event(kernel_b, kernel_f, losses, length) user_level(losses) "
    "temporal_supremum(kernel_b, kernel_f, loss)",
    "agedp_data.accounting.temporal_recursion": "daily_release_leakage(transition, losses, gaps_days, *, "
    "steps_per_day)",
    "agedp_data.accounting.temporal_allocation": "allocate(kernel_b, kernel_f, *, alpha, horizon, method) "
    "allocate_with(recursion, *, alpha, horizon, method) round_up_losses(recursion, losses, *, alpha, ...)",
    "agedp_data.accounting.discounting": "Exponential(alpha) Exponential.weights(releases) Hyperbolic(beta) "
    "Hyperbolic.weights(releases) Weights(array) Weights.weights(releases)",
    "agedp_data.accounting.discount_schedules": "discounted_loss(losses, discount) "
    "schedule(discount, *, epsilon, horizon, method) infinite_horizon_schedule(discount, *, epsilon, releases, method) "
    "certified_constant(beta) paper_constant(beta)",
    "agedp_data.accounting.delta_neighbourhood": "distance(a, b, *, delta, source=None) "
    "standard_distance(a, b, *, neighbours) moves(size, *, delta) loss_of_change(size, *, epsilon, delta, full=None) "
    "full_range_loss(epsilon, *, protected, full)",
    "agedp_data.accounting.windows": "window_budgets(times, *, window, epsilon, method, weights=None, fraction=0.2, "
    "requests=None) window_losses(times, losses, *, window) window_ends(times, *, window)",
    "agedp_data.series.sensitivity": "histogram(values, *, edges) cumulative(values, *, edges) "
    "shifted_histograms(values, *, width, delta, low, high) cumulative_counts(values, *, delta, low, high) "
    "Move(size) sum_sensitivity(change, ...) histogram_sensitivity(change, ...) "
    "cumulative_sensitivity(change, ...) shifted_sensitivity(change, ...)",
    "agedp_data.audit.lower_bounds": "epsilon_lower_bound(statistic, coins, *, confidence) "
    "detection_power(losses, promised, trials, ...) detectable_epsilon(promised, trials, ...)",
    "agedp_data.epsilon": "floor_nano(epsilon) ceil_nano(epsilon) round_nano(epsilon) format_epsilon(nano_epsilon) "
    "to_float(nano_epsilon)",
    "agedp_data.mechanisms": "discrete_laplace(values, *, sensitivity, loss) laplace_scale(*, sensitivity, loss) "
    "recorded_loss(*, sensitivity, scale) standard_deviation(scale) interval(scale, coverage) fair_bits(count)",
    "agedp_data.ledger": "Ledger.open(url, *, create=False, ...) "
    "Ledger.register(contract, *, population=None, at=None) "
    "Ledger.release(population, series, day, *, draw, admit, ...) Ledger.rows(population=None, series=None, ...) "
    "Ledger.history(population=None, series=None) "
    "Ledger.head() Ledger.verify() "
    "ReleaseRecord(population, series, day, revision, state, cells, values, households, sensitivity, scale, mechanism, "
    "loss, input_ended_at, published_on, contract, model, seq=0, at='', hash='') "
    "ContractRecord(...) ModelRecord(...) StatementRecord(...)",
}
"""Names and parameters of API.md, sections 1 and 2; `...` stands for further parameters that it does not fix."""

ATTRIBUTES = {
    "agedp:States": "frame edges",
    "agedp:Chains": "households transition counts",
    "agedp:CalibratedModel": "id leakage_bound spectral_gaps households settings",
    "agedp:Plan": "table ends_on ended_by verdict",
    "agedp:Release": "table statement ledger bounds",
    "agedp:ReleaseFolder": "path statement newest_row",
    "agedp:SmoothedRelease": "table source",
    "agedp_data.leakage.function:KernelLeakage": "breakpoints",
    "agedp_data.leakage.bound_table:LeakageBound": "ages losses backward forward bounds",
}

Call = tuple[str, str, str]


def public_calls() -> list[Call]:
    return [
        (module, *found) for module, text in CALLS.items() for found in re.findall(r"([\w.]+)\(([^)]*)\)(?= |$)", text)
    ]


def named(module: str, path: str) -> object:
    value: object = import_module(module)
    for name in path.split("."):
        value = getattr(value, name)
    return value


def written_parameters(value: object) -> list[str]:
    """The parameters as API.md writes them: `*` before the keyword-only ones, defaults where they are values."""
    texts: list[str] = []
    for parameter in inspect.signature(value).parameters.values():  # type: ignore[arg-type]
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        has_value = parameter.default is not parameter.empty
        texts.append(f"{parameter.name}={parameter.default!r}" if has_value else parameter.name)
    return texts[1:] if texts[:1] == ["self"] else texts


def agrees(value: object, parameters: str) -> bool:
    expected = parameters.split(", ") if parameters else []
    actual = written_parameters(value)
    if expected[-1:] != ["..."]:
        return actual == expected
    expected = expected[:-1]
    rest = [text for text in actual[len(expected) :] if text != "*"]
    return actual[: len(expected)] == expected and (not expected or all("=" in text for text in rest) or "*" in actual)


@pytest.mark.parametrize(("module", "path", "parameters"), public_calls(), ids=lambda text: text.split(".")[-1])
def test_a_public_name_is_called_as_documented(module: str, path: str, parameters: str) -> None:
    value = named(module, path)
    assert agrees(value, parameters), f"{path}({', '.join(written_parameters(value))})"
    assert inspect.getdoc(value)


@pytest.mark.parametrize(
    "name", sorted(path for module, path, _ in public_calls() if module == "agedp" and "." not in path)
)
def test_a_call_hides_no_parameter_and_describes_each(name: str) -> None:
    called = named("agedp", name)
    parameters = inspect.signature(called).parameters.values()  # type: ignore[arg-type]
    assert not [each for each in parameters if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    assert not [each.name for each in parameters if each.annotation is each.empty]
    described = inspect.getdoc(called) or ""
    undescribed = [each.name for each in parameters if not re.search(rf"^ +{each.name}: \S", described, re.MULTILINE)]
    assert undescribed == ([] if name != "InputWarning" else ["findings"])


def test_every_name_of_the_api_is_listed_and_loads() -> None:
    agedp = import_module("agedp")
    called = {path for module, path, _ in public_calls() if module == "agedp" and "." not in path}
    classes = {name.partition(":")[2] for name in ATTRIBUTES if name.startswith("agedp:")}
    assert set(agedp.__all__) == set(dir(agedp)) == called | classes


def test_public_classes_have_their_attributes_errors_their_kinds_and_all_its_names() -> None:
    for name, attributes in ATTRIBUTES.items():
        cls = named(*name.split(":"))
        assert [attribute for attribute in attributes.split() if not hasattr(cls, attribute)] == []
    for cls in (errors.InputError, errors.RunFileError, errors.ChainError, errors.Busy, errors.LedgerError):
        assert cls.__base__ is errors.AgedpError
    for cls in (errors.Refused, errors.ContractChanged, errors.LedgerBehind):
        assert issubclass(cls, errors.LedgerError)
    for module in map(import_module, CALLS):
        assert [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)] == []
