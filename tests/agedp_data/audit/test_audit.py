"""The audit: lower bounds on epsilon and tests of the noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from agedp_data.audit.lower_bounds import (
    FAULTS_OF_SUMS,
    MARGINS,
    AuditDatasets,
    AuditedSeries,
    audit_sizes,
    copied_noise_power,
    detectable_epsilon,
    detection_power,
    epsilon_from_guesses,
    epsilon_lower_bound,
    fault_powers,
    households_per_group,
    is_chosen_size,
    shifted_noise_power,
    small_noise_power,
    undetectable_faults,
)
from agedp_data.audit.noise_tests import (
    Residuals,
    count_tails,
    equality_probability,
    expected_sign,
    noise_tests,
    noise_width,
    nonzero_probability,
    series_tests,
    sign_sum_tail,
    sign_sum_threshold,
    significant_tests,
    size_log_moment,
    size_moments,
    size_tails,
    small_size_threshold,
    tail_probability,
)

# Proven losses: never above the true one more often than the confidence says, and near it with many trials.


def audit(source, losses, number):
    """The log likelihood ratios of composed Laplace mechanisms, 0 to 1, and the coins."""
    heads = source.random(number) < 0.5
    ratios = sum(loss * np.clip(source.laplace(heads, 1 / loss), 0, 1) for loss in losses)
    return ratios / sum(losses), heads


@pytest.mark.parametrize(("right", "guesses"), [(60, 100), (5, 50), (50, 50), (4, 7)])
def test_the_bound_is_the_loss_at_which_so_many_right_guesses_become_unlikely(right, guesses):
    shares = np.linspace(1e-6, 1 - 1e-6, 100_001)
    share = shares[binom.sf(right - 1, guesses, shares) <= 0.0005].max()
    expected = math.log(share / (1 - share))
    assert epsilon_from_guesses(right, guesses, significance=0.0005) == pytest.approx(expected, abs=1e-3)


def test_without_a_right_guess_nothing_is_proven():
    assert epsilon_from_guesses(0, 100, significance=0.1) == epsilon_from_guesses(0, 0, significance=0.1) == -math.inf
    assert epsilon_from_guesses(50, 100, significance=0.1) < 0


@pytest.mark.parametrize("loss", [0.01, 0.3, 1.0, 4.0])
def test_what_spends_all_it_may_is_accused_as_often_as_the_confidence_says(loss):
    trials, share = 60, 1 / (1 + math.exp(-loss))  # randomised response: each answer is as telling as the loss permits
    coins = np.arange(trials)
    bounds = [
        epsilon_lower_bound((coins < right).astype(float), coins < trials, confidence=0.9)
        for right in range(trials + 1)
    ]
    accused = [right for right, bound in enumerate(bounds) if bound > loss]
    assert accused or loss >= 1
    assert binom.pmf(accused, trials, share).sum() <= 0.1 / len(MARGINS)
    more = [min(accused, default=trials + 1) - 1, *accused]
    assert binom.pmf(more, trials, share).sum() > 0.1 / len(MARGINS)  # the bound is exact


def test_trials_that_all_depend_on_one_another_are_accused_no_more_often():
    source, loss, above = np.random.default_rng(5), 0.7, 0
    for _ in range(200):
        heads, lie = source.random(40) < 0.5, source.random() > 1 / (1 + math.exp(-loss))
        shown = np.full(40, 0.45)
        shown[0] = heads[0] != lie  # one coin is told, the others are hidden between the margins or beside the truth
        above += epsilon_lower_bound(shown, heads, confidence=0.9) > loss
    assert above <= 20


@pytest.mark.parametrize("loss", [0.1, 1.0, 3.0])
def test_with_many_trials_it_is_near_the_true_loss(loss):
    bound = epsilon_lower_bound(*audit(np.random.default_rng(6), [loss], 400_000), confidence=0.999)
    assert 0.9 * loss - 0.03 < bound <= loss


@pytest.mark.parametrize("parts", [(1.0,), (0.35, 0.15, 0.35, 0.15)])
def test_what_would_be_noticed_is_noticed_and_half_less_of_it_hardly(parts):
    promised, trials, source = 0.5, 5_000, np.random.default_rng(7)
    detectable = detectable_epsilon(promised, trials, parts=parts, confidence=0.999)
    for more, least, most in ((detectable, 36, 40), (promised + 0.5 * (detectable - promised), 0, 30)):
        losses = [more * part / sum(parts) for part in parts]
        proven = [epsilon_lower_bound(*audit(source, losses, trials), confidence=0.999) for _ in range(40)]
        assert least <= sum(bound > promised for bound in proven) <= most


@pytest.mark.parametrize(("losses", "promised", "trials"), [((1.6,), 1.0, 300), ((0.9, 0.9), 1.0, 350)])
def test_the_power_is_how_often_many_audits_show_it(losses, promised, trials):
    source = np.random.default_rng(9)
    shown = [epsilon_lower_bound(*audit(source, losses, trials), confidence=0.99) > promised for _ in range(400)]
    power = detection_power(losses, promised, trials, confidence=0.99)
    assert 0.1 < power < 0.95
    assert power - 0.1 < np.mean(shown) < power + 0.25  # it is that of the best margin alone


def test_nothing_is_noticed_of_what_is_promised_or_by_too_few_trials():
    assert detection_power([0.5, 0.5], 1.0, 20_000, confidence=0.999) < 0.95
    assert detection_power([1.0, 1.0], 1.0, 2_000, confidence=0.999) >= 0.95
    assert detectable_epsilon(30.0, 1000, confidence=0.999) == math.inf


# The noise of an audit against its law: sums over the law, exact tails, power as simulated, few false alarms.

SCALES = [0.05, 0.4, 3.0, 40.0]
K = np.arange(-3000, 3001)


def law(scale):
    """P(X = k) for each k, by its definition."""
    q = np.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(K)


def draws(source, scale, shape):
    """Discrete Laplace draws: differences of geometric ones, independent of the product's sampler."""
    p = -np.expm1(-1 / np.broadcast_to(scale, shape))
    return source.geometric(p) - source.geometric(p)


@pytest.mark.parametrize("scale", SCALES)
def test_the_closed_forms_are_sums_over_the_law(scale):
    p = law(scale)
    for w in (0, 1, 7):
        assert tail_probability(scale, w) == pytest.approx(p[np.abs(K) > w].sum(), abs=1e-12)
        assert expected_sign(scale, -w) == pytest.approx((p * np.sign(K - w)).sum(), abs=1e-12)
        assert nonzero_probability(scale, w) == pytest.approx(p[-w != K].sum(), abs=1e-12)
    for tail in (0.9, 0.5, 0.01):
        tails = np.array([p[np.abs(K) > w].sum() for w in range(300)])
        assert noise_width(scale, tail) == np.argmax(tails <= tail)
    assert equality_probability(scale, 2.0) == pytest.approx((p * law(2.0)).sum(), abs=1e-12)
    assert size_log_moment(scale, -0.3) == pytest.approx(math.log((p * np.exp(-0.3 * np.abs(K))).sum()), abs=1e-12)
    mean, variance = size_moments(scale)
    assert mean == pytest.approx((p * np.abs(K)).sum(), rel=1e-9)
    assert variance == pytest.approx((p * K**2).sum() - mean**2, rel=1e-9)


def enumerated(probabilities):
    """Law of the number of successes of different trials, by convolution."""
    sums = np.ones(1)
    for p in probabilities:
        sums = np.convolve(sums, [1 - p, p])
    return sums


def test_tails_of_counts_bound_those_of_unequal_trials():
    probabilities = np.linspace(0.05, 0.6, 12)
    sums = enumerated(probabilities)
    for k in range(13):
        low, high = count_tails(k, 12, probabilities.mean())
        assert low >= sums[: k + 1].sum() - 1e-12
        assert high >= sums[k:].sum() - 1e-12
    assert count_tails(0, 12, 0.5)[0] == pytest.approx(2**-12)


def test_tails_of_weighted_signs_bound_the_enumerated_ones():
    weights = np.array([3.0, 2.5, 2.0, 1.5, 1.0, 1.0, 0.5, 0.5, 0.2, 0.1, 0.1, 4.0])
    totals = np.array([signs @ weights for signs in itertools.product((-1, 1), repeat=len(weights))])
    for total in np.unique(totals):
        assert sign_sum_tail(total, np.linalg.norm(weights)) >= np.mean(totals >= total - 1e-9)
    assert sign_sum_tail(sign_sum_threshold(1e-8), 1.0) == pytest.approx(1e-8)


@pytest.mark.parametrize("scale", [0.4, 3.0])
def test_tails_of_sizes_bound_the_convolved_ones(scale):
    number, size = 20, np.append(law(scale)[K == 0], 2 * law(scale)[K > 0])
    sums = np.ones(1)
    for _ in range(number):
        sums = np.convolve(sums, size)[:400]
    for total in (0, 2, 5, 20, 60, 120):
        low, high = size_tails(total / scale, [scale], number)
        assert low >= sums[: total + 1].sum() - 1e-12
        assert high >= 1 - sums[:total].sum() - 1e-12
    threshold = small_size_threshold(np.array([scale]), 400, significance=1e-7)
    assert size_tails(threshold, [scale], 400)[0] == pytest.approx(1e-7, rel=1e-3)
    assert small_size_threshold(np.array([scale]), 1, significance=1e-9) == -1.0


def planted(source, scale, fault, shift):
    """Residuals (ledgers, days, groups, cells) of a fault."""
    shape = (*scale.shape, *shift.shape[1:])
    by_release = scale[:, :, None, None]
    match fault:
        case "half the noise":
            return draws(source, by_release / 2, shape)
        case "10 % less noise":
            return draws(source, 0.9 * by_release, shape)
        case "the same noise on every day":
            return np.broadcast_to(draws(source, by_release[:, :1], (shape[0], 1, *shape[2:])), shape)
        case "the same noise for a day in every ledger":
            return np.broadcast_to(draws(source, by_release[:1], (1, *shape[1:])), shape)
        case "the same noise in every group":
            return np.broadcast_to(draws(source, by_release, (*shape[:2], 1, shape[3])), shape)
    return draws(source, by_release, shape) + (shift if fault else 0)


SCALE, SHIFT = np.full((2, 4), 40.0), np.full((4, 1000, 1), 5)
SEVEN = [
    "half the noise",
    "10 % less noise",
    "the same noise on every day",
    "the same noise for a day in every ledger",
    "the same noise in every group",
    FAULTS_OF_SUMS[0],
    FAULTS_OF_SUMS[2],
]


def alarms(noise, shift=SHIFT, significance=5e-6):
    tests = noise_tests(Residuals(noise, SCALE, 2), dict.fromkeys(FAULTS_OF_SUMS, shift))
    return significant_tests(tests, significance=significance / len(tests))


@pytest.mark.parametrize("fault", SEVEN)
def test_the_seven_faults_are_detected_in_all_of_twenty_audits(fault):
    source = np.random.default_rng(11)
    powers = fault_powers([AuditedSeries(SCALE, 1000, 1, dict.fromkeys(FAULTS_OF_SUMS, SHIFT))], significance=5e-6 / 48)
    assert powers[fault] > 0.999
    assert all(alarms(planted(source, SCALE, fault, SHIFT)) for _ in range(20))


def test_sound_noise_raises_alarms_at_most_as_often_as_stated():
    source, often, audits = np.random.default_rng(12), 0.05, 150
    found = [bool(alarms(planted(source, SCALE, "", SHIFT[:, :200]), SHIFT[:, :200], often)) for _ in range(audits)]
    assert binom.sf(sum(found) - 1, audits, often) > 1e-9
    two = [Residuals(planted(source, SCALE, "", SHIFT[:, :200]), SCALE, 2) for _ in range(2)]
    assert min(test.p_value for test in series_tests(*two)) > 1e-9
    same = list(series_tests(two[0], two[0]))
    assert {test.about for test in significant_tests(same, significance=1e-9)} == {"series", "sizes"}


@pytest.mark.parametrize(
    ("power", "fault", "shift"),
    [
        (lambda alpha: small_noise_power(SCALE, 300, 0.9, significance=alpha), "10 % less noise", SHIFT[:, :300]),
        (
            lambda alpha: shifted_noise_power([(SCALE, SHIFT[:, :300] - 2)], significance=alpha),
            "late",
            SHIFT[:, :300] - 2,
        ),
    ],
)
def test_the_power_is_how_often_simulated_audits_show_it(power, fault, shift):
    source, alpha, audits = np.random.default_rng(13), 1e-3, 100
    about = "smaller" if shift[0, 0, 0] == 5 else f"shifted as by {FAULTS_OF_SUMS[0]}"
    shown = 0
    for _ in range(audits):
        residuals = Residuals(planted(source, SCALE, fault, shift), SCALE, 2)
        tests = noise_tests(residuals, {FAULTS_OF_SUMS[0]: shift})
        shown += next(test for test in tests if about in test.fault).p_value < alpha
    expected = power(alpha)
    assert 0.2 < expected < 0.97
    assert abs(shown / audits - expected) < 6 * math.sqrt(expected * (1 - expected) / audits) + 0.03


def test_copies_are_detected_unless_nearly_all_draws_are_zero():
    wide, narrow = np.array([40.0]), np.array([0.02])
    assert copied_noise_power(wide, wide, 10, significance=1e-8) == 1.0
    assert copied_noise_power(wide, 1.1 * wide, 10, significance=1e-8) == 0.0  # ten signs: 2^-10
    assert copied_noise_power(narrow, narrow, 10_000, significance=1e-8) == 0.0
    assert copied_noise_power(wide[:0], wide[:0], 10, significance=1e-8) == 0.0  # one day has no pairs


def test_sizes_grow_with_smaller_losses_and_what_stays_hidden_is_named():
    assert [households_per_group(loss) for loss in (3.0, 1.0, 0.1, 0.000001)] == [1, 2, 15, 64]
    sizes = list(audit_sizes(0.5, cells=1))
    assert sizes == sorted(sizes, key=lambda size: (size.varying_groups, size.days))
    assert is_chosen_size({"a": 0.5}, {"a": 0.6})
    assert not is_chosen_size({"a": 0.5}, {"a": 1.0})
    assert undetectable_faults({"a": 0.9, FAULTS_OF_SUMS[0]: 0.9, "b": 0.99}) == (
        "a",
        f"{FAULTS_OF_SUMS[0]} between the recorded sums and the draw",
    )
    assert AuditDatasets(1600, 2, varying_groups=100).total_households == 6500
