"""Faults by name, each a function of the product replaced by a faulty one, with tests of which one must fail.

A fault is what a restructuring breaks without anybody noticing: a loss rounded down, a window a day short, a draw that
is not charged. `replace` takes the original function and returns the faulty one. A landing that moves a function
changes the target here and nothing else; a fault whose function is gone gets the function that has its duty now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, islice
from typing import Any

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """A fault: the function that has it (`module:path`), how it is made, and where a test must fail."""

    target: str
    replace: Callable[[Function], Function]
    tests: tuple[str, ...]


def returning(value: object) -> Callable[[Function], Function]:
    """Return a replacement that ignores its arguments."""
    return lambda _: lambda *_, **__: value


def changed(change: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return a replacement whose result is changed."""
    return lambda original: lambda *args, **keywords: change(original(*args, **keywords))


def _half_noise(original: Function) -> Function:
    return lambda values, *, sensitivity, loss: original(values, sensitivity=sensitivity, loss=2 * Fraction(loss))


def _rounded_down(original: Function) -> Function:
    def recorded_loss(*, sensitivity: int, scale: float) -> int:
        original(sensitivity=sensitivity, scale=scale)
        return int(10**9 * Fraction(sensitivity) / Fraction(scale))

    return recorded_loss


def _draw_before_rules(original: Function) -> Function:
    def release(self: Any, population: str, series: str, day: Any, *, draw: Function, admit: Function) -> Any:
        drawn: list[Any] = []

        def admit_and_draw(history: Any) -> Any:
            row = admit(history)
            if row.state != "skipped":
                drawn.append(draw(row))
            return row

        return original(self, population, series, day, draw=lambda _: drawn[0], admit=admit_and_draw)

    return release


def _draw_again(original: Function) -> Function:
    def release(self: Any, population: str, series: str, day: Any, *, draw: Function, admit: Function) -> Any:
        row = original(self, population, series, day, draw=draw, admit=admit)
        if row.state == "released":
            draw(row)
        return row

    return release


def _window_a_day_short(original: Function) -> Function:
    return lambda *args, days, **keywords: original(*args, days=max(days - 1, 1), **keywords)


def _one_series_of_a_day(original: Function) -> Function:
    def of_rows(history: Any) -> dict[str, int]:
        rows = list(history)
        first = {row.day: row for row in reversed(rows)}
        return original([row for row in rows if first[row.day] is row])

    return of_rows


def _later_series_free(original: Function) -> Function:
    """Count, in the losses of a growing history, the first row of each day only."""

    return lambda self, row: int if row.day in self.ended else original(self, row)


def _charge_aged(original: Function) -> Function:
    def bounds(self: Any, *args: Any, **keywords: Any) -> Any:
        halves = tuple(replace(event, pure=event.pure // 2) for event in self.publication.charges)
        return original(replace(self, publication=replace(self.publication, charges=halves)), *args, **keywords)

    return bounds


def _first_day_only(_: Function) -> Function:
    return lambda self, day: self.first_day == day


def _covers_first_day_only(original: Function) -> Function:
    return lambda losses, charges: original(losses, [replace(charge, last_day=charge.first_day) for charge in charges])


def _stale_forward(original: Function) -> Function:
    """Keep what was computed about earlier days when a later one comes."""

    def refresh(self: Any, first: int, end: int) -> None:
        stale = self._leakages[:first]
        original(self, first, end)
        self._leakages[:first] = stale
        self._largest[:] = accumulate(self._leakages, max)

    return refresh


def _equal_once(_: Function) -> Function:
    """End an update at the first result that is what it was, though a step may reach back further."""

    def refresh(self: Any) -> tuple[int, int]:
        first = k = self._stale
        is_equal = False
        while k < len(self.inputs) and not is_equal:
            result = self._result(k)
            is_equal = k >= self._kept and result[1] == self._composed[k]
            self._leakages[k], self._composed[k] = result
            k += 1
        self._stale, self._kept = len(self.inputs), 0
        return first - self.n_past, k - self.n_past

    return refresh


def _forward_kernel(original: Function) -> Function:
    def bound(self: Any, age: int, loss: float, *, direction: str, method: str) -> Any:
        other = {"backward": "forward", "forward": "backward"}[direction]
        return original(self, age, loss, direction=other if self.has_both_directions else direction, method=method)

    return bound


def _first_pair_of_rows(original: Function) -> Function:
    return lambda kernel, loss: original(np.asarray(kernel)[..., :2, :], loss)


def _gap_doubled(original: Function) -> Function:
    return lambda self, age_steps, loss: original(self, 2 * age_steps, loss)


def _a_day_older(original: Function) -> Function:
    return lambda self, losses, day: original(self, losses, day + 1)


def _sums_first(original: Function) -> Function:
    """Write the checksums before the files that they are of."""

    def write_release_files(folder: Any, files: Any, remote: Any = None, *, unchanged: Any = None) -> bool:
        from agedp.local_files import atomic_files
        from agedp.release_folder import folder_writer

        keywords = {} if unchanged is None else {"unchanged": unchanged}
        sums = folder_writer.add_checksums(files, **keywords)[folder_writer.SUMS]
        folder.mkdir(parents=True, exist_ok=True)
        atomic_files.write(folder / folder_writer.SUMS, sums, mode=0o644)
        return original(folder, files, remote, **keywords)

    return write_release_files


def _any_number_of_households(original: Function) -> Function:
    return lambda roster, series, days, min_households: original(roster, series, days, 0)


def _first_of_conflicting(original: Function) -> Function:
    def reasons(key: Any, file: Any, energy: Any, *, later_wins: bool) -> Any:
        from agedp_data.datasets.validation import RejectionReason

        reason = np.array(original(key, file, energy, later_wins=later_wins))
        first = np.ones(len(key), bool)
        first[1:] = key[1:] != key[:-1]
        reason[first & (reason == RejectionReason.CONFLICT)] = RejectionReason.KEPT
        return reason

    return reasons


def _start_of_interval(original: Function) -> Function:
    def records(self: Any, columns: Any, header: Any, rules: Any) -> Any:
        result = original(self, columns, header, rules)
        return replace(result, time=result.time + np.int32(1))

    return records


def _no_clamp(_: Function) -> Function:
    return lambda self, energy_wh: energy_wh


def _missing_scaled_up(_: Function) -> Function:
    def add_missing(series: Any, counts: Any, exact: Any, missing: Any) -> None:
        exact += (counts[:, :1] - counts[:, 1:2]) * exact // np.maximum(counts[:, 1:2], 1)

    return add_missing


def _gaps_bridged(original: Function) -> Function:
    def count(states: Any, contiguous: Any, n_states: int, *, every: int = 1) -> Any:
        return original(states, np.ones_like(np.asarray(contiguous, bool)), n_states, every=every)

    return count


def _kept_rows_only(original: Function) -> Function:
    def named_rows(store: Any, month: str, bucket: int, contents: Any) -> Any:
        parts = sum(1 for _ in store.month_parts(month, contents, bucket))
        return islice(original(store, month, bucket, contents), parts)

    return named_rows


def _neighbouring_rows(original: Function) -> Function:
    return lambda kernel: original(np.asarray(kernel)[..., :2, :])


def _newest_model_only(_: Function) -> Function:
    return lambda self: (self.leakage_bound,)


def _another_model(original: Function) -> Function:
    """Register the public part of a model with another number of households."""

    def register_model(self: Any, public_text: str, *, at: Any) -> Any:
        import json

        public = json.loads(public_text)
        public["households"] = int(public.get("households", 0)) + 1
        return original(self, json.dumps(public, sort_keys=True, separators=(",", ":")), at=at)

    return register_model


def _small_change_for_any(original: Function) -> Function:
    return lambda self, size_wh: Fraction(1)


def _derived_left_out(original: Function) -> Function:
    """Compare the tables of series alone."""

    def check_tables(stored: Any, read: Any, statement: Any, partitions: Any) -> None:
        from agedp.release_folder.partitions import kind_of

        of_series = [path for path in stored if kind_of(path.partition("/")[0].removesuffix(".parquet"))]
        original(of_series, read, statement, partitions)

    return check_tables


def _with_a_count(original: Function) -> Function:
    """Add the number of readings that were rejected to the public text of a run."""

    def markdown(summary: Any, *args: Any, **keywords: Any) -> str:
        rows = sum(file.rows for file in summary.delivery.files) if summary.delivery else 0
        return f"{original(summary, *args, **keywords)}\nRows: {rows}"

    return markdown


NOISE = "tests/statistics/test_noise.py"
LEDGER = "tests/agedp_data/ledger/test_release.py"

FAULTS: dict[str, Fault] = {
    # The draw and its loss
    "half the noise": Fault(
        "agedp_data.mechanisms:discrete_laplace",
        _half_noise,
        ("tests/statistics/test_noise.py::test_the_noise_follows_the_law_and_a_scale_wrong_by_a_tenth_is_rejected",),
    ),
    "recorded loss rounded down": Fault(
        "agedp_data.mechanisms:recorded_loss",
        _rounded_down,
        ("tests/statistics/test_noise.py::test_a_granted_loss_is_never_exceeded_by_the_recorded_one",),
    ),
    "noise interval a step short": Fault(
        "agedp_data.mechanisms:interval",
        changed(lambda w: max(w - 1, 0)),
        ("tests/statistics/test_noise.py::test_spread_and_intervals_are_those_of_the_law_summed_term_by_term",),
    ),
    "privacy map not asked": Fault(
        "agedp_data.mechanisms:_is_within_loss",
        returning(True),
        ("tests/statistics/test_noise.py::test_a_privacy_map_above_the_loss_draws_nothing",),
    ),
    "budget rounded up": Fault(
        "agedp_data.epsilon:floor_nano",
        changed(lambda nano: nano + 1),
        ("tests/laws/test_losses.py::test_budgets_are_the_floor_and_records_the_ceiling_of_the_exact_amount",),
    ),
    "loss rounded to the nearest": Fault(
        "agedp_data.epsilon:ceil_nano",
        lambda _: lambda loss: round(Fraction(loss) * 10**9),
        ("tests/laws/test_losses.py::test_budgets_are_the_floor_and_records_the_ceiling_of_the_exact_amount",),
    ),
    # Sensitivity and clamp
    "sensitivity of a sum halved": Fault(
        "agedp_data.series.sensitivity:sum_sensitivity",
        changed(lambda s: s // 2),
        ("tests/agedp/test_neighbours.py::test_no_replaced_day_changes_more_than_a_sensitivity",),
    ),
    "a household in one bin counts once": Fault(
        "agedp_data.series.sensitivity:histogram_sensitivity",
        returning(1),
        ("tests/agedp/test_neighbours.py::test_no_replaced_day_changes_more_than_a_sensitivity",),
    ),
    "a profile moves one clamp": Fault(
        "agedp_data.series.profile:Profile.sensitivity",
        changed(lambda s: s // 2),
        ("tests/agedp/test_neighbours.py::test_no_replaced_day_changes_more_than_a_sensitivity",),
    ),
    "a month of profiles weighs one day": Fault(
        "agedp_data.series.profile:Profile.row_sensitivity",
        lambda _: lambda self, day: self.sensitivity("replacement"),
        ("tests/agedp_data/series/test_profiles.py::test_a_month_is_as_sensitive_as_its_weighted_days",),
    ),
    "a month of means weighs one day": Fault(
        "agedp_data.series.series_terms:Series.row_sensitivity",
        lambda _: lambda self, day: self.sensitivity("replacement"),
        ("tests/agedp/test_every_statistic.py::test_the_noise_is_that_of_the_largest_change_at_the_share",),
    ),
    "no clamp": Fault(
        "agedp_data.series.series_terms:EnergySeries.clamp_energy",
        _no_clamp,
        ("tests/agedp/test_aggregate.py::test_sums_are_those_of_plain_dictionaries",),
    ),
    "missing days take the mean of others": Fault(
        "agedp.store.bucketed_roster:_add_missing",
        _missing_scaled_up,
        ("tests/agedp/test_aggregate.py::test_sums_are_those_of_plain_dictionaries",),
    ),
    "impossible sums are drawn": Fault(
        "agedp_data.series.series_terms:Series.is_possible",
        returning(True),
        ("tests/agedp_data/series/test_series.py::test_impossible_sums_are_known_as_such",),
    ),
    # The ledger
    "drawn before the rules are checked": Fault(
        "agedp_data.ledger.ledger:Ledger.release",
        _draw_before_rules,
        ("tests/agedp_data/ledger/test_release.py::test_what_breaks_a_rule_is_neither_drawn_nor_stored",),
    ),
    "a stored day is drawn again": Fault(
        "agedp_data.ledger.ledger:Ledger.release",
        _draw_again,
        ("tests/agedp_data/ledger/test_release.py::test_a_day_once_stored_is_read_again_and_not_drawn",),
    ),
    "hashes are not compared": Fault(
        "agedp_data.ledger.hash_chain:check_hash",
        returning(()),
        ("tests/agedp_data/ledger/test_tampering.py::test_an_edit_of_any_column_is_found_at_its_row",),
    ),
    "rows of a ledger break rules": Fault(
        "agedp_data.ledger.hash_chain:HashChain._check_release",
        returning(()),
        (
            "tests/agedp_data/ledger/test_amending_and_moving.py::test_releases_refer_to_the_newest_contract_of_their_time",
        ),
    ),
    "a checkpoint is believed": Fault(
        "agedp_data.ledger.ledger_reader:_is_header_of",
        returning(True),
        ("tests/agedp_data/ledger/test_checkpoint.py::test_a_forged_checkpoint_is_found_before_a_draw",),
    ),
    "another model is registered": Fault(
        "agedp_data.ledger.ledger:Ledger.register_model",
        _another_model,
        ("tests/agedp/test_release_and_publish.py::test_the_aged_risk_never_exceeds_its_promise",),
    ),
    # Accounting
    "a window is a day short": Fault(
        "agedp_data.notions.publication:window_sums",
        _window_a_day_short,
        ("tests/agedp_data/notions/test_closed_forms.py::test_windows_equal_a_brute_force_over_all_of_them",),
    ),
    "a stated window is a day short": Fault(
        "agedp_data.notions.publication:largest_window",
        _window_a_day_short,
        ("tests/agedp_data/notions/test_closed_forms.py::test_windows_equal_a_brute_force_over_all_of_them",),
    ),
    "a second series is free": Fault(
        "agedp_data.notions.notion:LossMeter.add",
        _later_series_free,
        ("tests/laws/test_caps.py::test_caps_bind_and_series_share_a_day",),
    ),
    "a second series is not stated": Fault(
        "agedp_data.notions.notion:day_losses",
        _one_series_of_a_day,
        ("tests/laws/test_charges.py::test_draws_enter_each_figure_once_as_far_as_its_scope_touches_them",),
    ),
    "a calibration draw is free": Fault(
        "agedp_data.notions.publication:total_charge",
        returning(0),
        ("tests/laws/test_charges.py::test_draws_enter_each_figure_once_as_far_as_its_scope_touches_them",),
    ),
    "a calibration draw is aged": Fault(
        "agedp_data.notions.age_dependent:AgedLoss.bounds",
        _charge_aged,
        ("tests/laws/test_charges.py::test_draws_enter_each_figure_once_as_far_as_its_scope_touches_them",),
    ),
    "a month counts on its first day": Fault(
        "agedp_data.notions.publication:covered_losses",
        _covers_first_day_only,
        ("tests/laws/test_period_rows.py::test_figures_are_those_of_all_days_and_windows",),
    ),
    "a calibration draw counts on its first day": Fault(
        "agedp_data.notions.publication:Event.touches",
        _first_day_only,
        ("tests/laws/test_charges.py::test_draws_enter_each_figure_once_as_far_as_its_scope_touches_them",),
    ),
    "stale forward leakage": Fault(
        "agedp_data.accounting.temporal_recursion:TemporalLosses._refresh",
        _stale_forward,
        (
            "tests/agedp_data/notions/test_temporal.py::"
            "test_losses_that_grow_change_and_go_have_the_leakage_of_losses_looked_at_for_the_first_time",
        ),
    ),
    "an update ends too early": Fault(
        "agedp_data.accounting.composition:Composition.refresh",
        _equal_once,
        (
            "tests/agedp_data/accounting/test_composition.py::test_a_release_set_changed_or_taken_back_leaves_what_a_composition_made_anew_has",
        ),
    ),
    "ageing by the forward kernel": Fault(
        "agedp_data.leakage.bound_table:LeakageBound.__call__",
        _forward_kernel,
        ("tests/agedp_data/leakage/test_bound_table.py::test_pieces_are_beside_the_grid_and_sharper",),
    ),
    "leakage of the first two states": Fault(
        "agedp_data.leakage.function:leakage",
        _first_pair_of_rows,
        ("tests/agedp_data/leakage/test_function.py::test_the_reference_example_comes_out",),
    ),
    "inputs are twice as old": Fault(
        "agedp_data.notions.age_dependent:AgedLeakage.__call__",
        _gap_doubled,
        (
            "tests/agedp_data/notions/test_aged_and_sustained_spans.py::test_a_year_is_aged_by_its_newest_day_where_that_says_more",
        ),
    ),
    "discounted a day too much": Fault(
        "agedp_data.accounting.discounting:DiscountWeights.total",
        _a_day_older,
        (
            "tests/agedp_data/notions/test_discounted.py::test_the_sum_is_kept_on_every_day_in_exact_arithmetic",
            "tests/agedp_data/notions/test_discounted.py::test_days_get_the_closed_form_of_their_schedule",
        ),
    ),
    "a small change stands for any": Fault(
        "agedp_data.notions.publication:Publication.times",
        _small_change_for_any,
        ("tests/agedp_data/notions/test_neighbourhood.py::test_a_fraction_of_what_is_left_never_fills_a_window",),
    ),
    "the total is not enforced": Fault(
        "agedp_data.notions.enforcement:EnforcedPromise.total",
        returning(0),
        ("tests/laws/test_caps.py::test_caps_bind_and_series_share_a_day",),
    ),
    "the limit of a day is not enforced": Fault(
        "agedp_data.notions.enforcement:EnforcedPromise.largest_day",
        returning(0),
        ("tests/laws/test_caps.py::test_caps_bind_and_series_share_a_day",),
    ),
    "a delta makes losses a tenth smaller": Fault(
        "agedp_data.accounting.renyi:approximate_epsilon",
        changed(lambda nano: nano * 9 // 10),
        ("tests/agedp_data/accounting/test_spans.py::test_reference_values_of_a_span",),
    ),
    "an earlier model is forgotten": Fault(
        "agedp.budget:ReleaseTerms.leakage_bounds",
        _newest_model_only,
        (
            "tests/agedp/planning/test_in_force.py::test_a_series_that_a_slower_model_ended_does_not_resume",
            "tests/agedp/planning/test_in_force.py::test_forecasts_include_the_earlier_model",
        ),
    ),
    "a looser promise is permitted": Fault(
        "agedp_data.amendment_rules:_falls",
        returning(True),
        ("tests/agedp_data/config/test_amendments.py::test_no_key_can_be_moved_the_way_that_loosens",),
    ),
    # Readings
    "the first of conflicting readings wins": Fault(
        "agedp_data.datasets.deduplication:_rejection_reasons",
        _first_of_conflicting,
        ("tests/agedp_data/datasets/test_deduplication.py::test_readings_equal_the_dictionary_in_any_order",),
    ),
    "an interval is named by its start": Fault(
        "agedp_data.datasets.london:London.records",
        _start_of_interval,
        (
            "tests/agedp_data/datasets/test_layouts.py::TestEveryLayout::test_half_hours_come_back_in_their_day_and_slot",
        ),
    ),
    "a stray quote is no damage": Fault(
        "agedp_data.datasets.csv_lines:_stray_quotes",
        returning(np.zeros(0, np.int64)),
        ("tests/agedp_data/datasets/test_csv_parsing.py::test_an_odd_row_is_rejected_and_its_neighbours_are_kept",),
    ),
    "a roster is read off kept rows": Fault(
        "agedp.store.named_days:_named_rows",
        _kept_rows_only,
        ("tests/agedp/test_named_days.py::test_three_negative_half_hours_change_nothing_that_sanitise_publishes",),
    ),
    "gaps are bridged": Fault(
        "agedp_data.markov.transitions:count_transitions",
        _gaps_bridged,
        ("tests/agedp_data/markov/test_transitions.py::test_counts_are_those_of_a_plain_loop",),
    ),
    "distance of the first two states": Fault(
        "agedp_data.markov.mixing:max_total_variation",
        _neighbouring_rows,
        ("tests/agedp_data/markov/test_cyclic.py::test_a_leakage_bound_is_the_maximum_over_households_and_phases",),
    ),
    # What is published
    "checksums come first": Fault(
        "agedp.release_folder.folder_writer:write_release_files",
        _sums_first,
        ("tests/agedp/test_checksums.py::test_checksums_are_written_after_the_files_that_they_are_of",),
    ),
    "small groups are released": Fault(
        "agedp.budget:row_cells",
        _any_number_of_households,
        ("tests/agedp/test_release_and_publish.py::test_days_with_too_few_households_are_skipped_and_never_drawn",),
    ),
    "tables are not compared with the ledger": Fault(
        "agedp.release_folder.verification:check_tables",
        returning(None),
        ("tests/agedp/release_folder/test_tampering.py::test_an_edited_field_is_named_with_what_it_contradicts",),
    ),
    "derived tables are not compared with the ledger": Fault(
        "agedp.release_folder.verification:check_tables",
        _derived_left_out,
        ("tests/agedp/test_every_statistic.py::test_a_changed_cell_and_a_lost_line_of_any_table_are_named",),
    ),
    "stated bounds are believed": Fault(
        "agedp.release_verification:_check_bound",
        returning(None),
        ("tests/agedp/release_folder/test_forged_folders.py::test_the_bound_of_each_notion_is_computed_again",),
    ),
    "a changed roster of a released day": Fault(
        "agedp.internal_records.roster_history:_check_same_roster",
        returning(None),
        (
            "tests/agedp/internal_records/test_roster_history.py::test_a_half_released_day_goes_on_with_the_same_households_only",
        ),
    ),
    "public text with a count": Fault(
        "agedp_flows.text.run_text:markdown",
        _with_a_count,
        ("tests/exposure/test_pairs.py::test_what_becomes_public_of_two_different_houses_is_the_same",),
    ),
    "a name leads out of its folder": Fault(
        "agedp_data.foreign_files:is_plain_path",
        returning(True),
        ("tests/agedp/release_folder/test_hostile_bucket.py",),
    ),
    "no promise is refused before its first draw": Fault(
        "agedp.planning.first_release_verdict:Verdict.refused",
        returning(()),
        ("tests/agedp/planning/test_verdict.py::test_a_first_run_is_refused_before_anything_is_read",),
    ),
    "old months stay": Fault(
        "agedp.store.retention:remove_old_months",
        returning(None),
        (
            "tests/agedp/store/test_retention.py::test_rows_leave_with_their_own_month_though_their_file_has_younger_ones",
        ),
    ),
    "old months stay in a part with younger ones": Fault(
        "agedp.store.part_writer:cut_part",
        returning(None),
        (
            "tests/agedp/store/test_retention.py::test_rows_leave_with_their_own_month_though_their_file_has_younger_ones",
        ),
    ),
}
