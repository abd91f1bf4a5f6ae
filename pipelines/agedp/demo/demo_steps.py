"""The steps of `agedp demo`, each yielded as soon as its result exists."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agedp.demo.mixing_table import Mixing
from agedp.demo.release_table import ReleaseSummary
from agedp.demo.synthetic_datasets import DemonstrationDataset


@dataclass(frozen=True, slots=True)
class DemoStarted:
    """The folder is usable; the server starts next."""


@dataclass(frozen=True, slots=True)
class DemoPage:
    """The page with all pictures is written."""

    path: Path


Step = DemoStarted | DemonstrationDataset | Mixing | ReleaseSummary | DemoPage
