"""What the confidential report is computed from, beside the released rows."""

from __future__ import annotations

from dataclasses import dataclass

from agedp.internal_records.internal_paths import InternalPaths
from agedp.stage_values import Delivery
from agedp.store.store import Store
from agedp_data.config import RunFile
from agedp_data.roster import Roster


@dataclass(frozen=True, slots=True)
class InternalSources:
    """Run file, confidential files, roster and readings of a run."""

    run: RunFile
    paths: InternalPaths
    roster: Roster
    store: Store
    delivery: Delivery

    @property
    def population(self) -> str:
        """Return the name of the population."""
        return self.run.population.name
