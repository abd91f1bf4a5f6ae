"""Temporal leakage of each household under its own chain, and the households with the largest one. Confidential.

The public bound uses the leakage bound, a maximum over all households at every step. Here the recursion (MATHS 4) uses
each household's own kernels, as one stack, over the newest released days.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from agedp_data.config.model import EstimatedModel
from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import NANO, to_float
from agedp_data.notions.fading import losses_by_day_number
from agedp_data.notions.notion import day_losses
from agedp_data.pictures.page import table
from agedp_data.pictures.scales import format_number
from agedp_data.privacy.temporal import daily_release_leakage
from pipelines.models.envelopes import steps_per_day
from pipelines.quantize import Floats

_MAX_DAYS: Final = 60
_MAX_HOUSEHOLDS: Final = 5
_SHARES: Final = (0.5, 0.9, 0.99)


def household_leakage_parts(
    model: EstimatedModel, households_with_chains: tuple[list[str], Floats] | None, rows: Sequence[ReleaseRecord]
) -> Iterator[str]:
    """Yield the temporal leakage of the newest releases by household, under time-homogeneous chains."""
    losses = dict(sorted(losses_by_day_number(day_losses(rows)).items())[-_MAX_DAYS:])
    if households_with_chains is None or not households_with_chains[0] or len(losses) < 2:
        return
    ids, chains = households_with_chains
    spent, gaps = np.array(list(losses.values())) / NANO, np.diff(list(losses))
    leakage = daily_release_leakage(chains, spent, gaps, steps_per_day=steps_per_day(model))[2].max(axis=-1)
    order = np.argsort(-leakage, kind="stable")
    quantile_rows = [
        (f"{100 * share:g} % of the homes at most", format_number(float(np.quantile(leakage, share))))
        for share in _SHARES
    ]
    household_rows = [(ids[index], format_number(float(leakage[index]))) for index in order[:_MAX_HOUSEHOLDS]]
    caption = (
        f"What the newest {len(losses)} released days say about one of them, by each home's own chain "
        f"(a day's own loss: {format_number(to_float(max(losses.values())))} at most)"
    )
    yield table(caption, ("homes", "epsilon"), [*quantile_rows, *household_rows])
