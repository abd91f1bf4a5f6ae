"""Bounds of the released losses under the exact chains, which only synthetic households have.

The promise is kept under the estimated model. These bounds show that the credit for age and for mixing is real: they
are computed from the stated chains alone, by the library's recursions for known kernels ([A] Theorem 3, [T] section 3).
"""

from __future__ import annotations

import numpy as np

from agedp.demo.release_table import ReleaseSummary
from agedp_data.accounting.ageing import compose
from agedp_data.accounting.temporal_half_hourly import daily_release_leakage
from agedp_data.datasets.synthetic.households import Floats
from agedp_data.datasets.validation import SLOTS


def exact_bound(release: ReleaseSummary, kernels: Floats) -> float | None:
    """Return the notion's bound of a release under exact chains (c, k, k), the largest over them [epsilon].

    None for discounted privacy, whose bound needs no chain.
    """
    losses = np.array([row["epsilon"] for row in release.days])
    days = np.array([row["day"].toordinal() for row in release.days])
    if release.notion == "temporal":
        _, _, total = daily_release_leakage(kernels, losses, np.diff(days), steps_per_day=SLOTS)
        return float(total.max())
    if release.notion == "age-dependent":
        age = release.age_days * SLOTS
        published = (days - days[0] + 1) * SLOTS + age
        ages = np.full(len(days), age)
        return float(compose(kernels, published, ages, losses, published, method="tight").max())
    return None
