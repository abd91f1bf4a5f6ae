"""One small demonstration that all tests share: drawn, calibrated and released without Prefect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from agedp.calibration_pipeline import calibrate
from agedp.demo.demo_folder import NOTIONS, write_dataset
from agedp.demo.mixing_table import Mixing, read_mixing
from agedp.demo.overview import overview_page
from agedp.demo.release_table import ReleaseSummary, summarise_release
from agedp.demo.synthetic_datasets import DATASETS, Size
from agedp.pipeline import sanitise

SIZE = Size(households=6, calibration_days=40, released_days=4, seed=3)


@dataclass(frozen=True, slots=True)
class Demonstration:
    folder: Path
    mixings: list[Mixing]
    releases: list[ReleaseSummary]
    page: str


@pytest.fixture(scope="session")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    folder = tmp_path_factory.mktemp("demo")
    mixings, releases = [], []
    for dataset in DATASETS:
        place = folder / dataset.name
        write_dataset(folder, dataset, SIZE)
        calibrate(place / f"{NOTIONS[0]}.toml")
        mixings.append(read_mixing(place))
        for notion in NOTIONS:
            sanitise(place / f"{notion}.toml")
            releases.append(summarise_release(place, notion))
    page = overview_page(mixings, releases)
    (folder / "index.html").write_text(page, encoding="utf-8")
    return Demonstration(folder, mixings, releases, page)
