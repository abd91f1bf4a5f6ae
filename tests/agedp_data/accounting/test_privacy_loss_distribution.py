"""The privacy-loss distribution against reference values and the binomial of randomised response."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from agedp_data.accounting.renyi import tight_epsilon


@pytest.mark.parametrize(
    ("loss", "days", "exact"), [(0.0988, 365, 9.982), (0.1, 365, 10.125), (0.5, 60, 21.305), (0.02, 365, 1.666)]
)
def test_reference_values_are_met_from_above(loss: float, days: int, exact: float) -> None:
    figure = tight_epsilon([(50_000, 50_000 / loss, days)], 1e-6)
    assert exact - 5e-4 <= figure <= exact * 1.002


def test_randomised_response_is_a_binomial() -> None:
    days, loss = 365, 0.1
    figure = tight_epsilon([(1, 1 / loss, days)], 1e-6)
    truths = np.arange(days + 1)
    law = binom.pmf(truths, days, np.exp(loss) / (1 + np.exp(loss)))
    delta = np.clip(-np.expm1(figure - (2 * truths - days) * loss), 0, None) @ law
    assert 0.9e-6 <= delta <= 1e-6


def test_kinds_of_releases_add_and_the_pure_sum_is_never_exceeded() -> None:
    half = [(50_000, 5e5, 180), (50_000, 5e5, 185)]
    assert tight_epsilon(half, 1e-6) == pytest.approx(tight_epsilon([(50_000, 5e5, 365)], 1e-6), abs=1e-3)
    assert tight_epsilon([(50_000, 350_000.0, 7)], 1e-6) <= 1.0
    assert tight_epsilon([], 1e-6) == 0
