"""One small demonstration that all tests share: drawn, calibrated and released without Prefect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from agedp.calibration_pipeline import calibrate
from agedp.demo.demo_folder import DATASETS, DEMONSTRATED_NOTIONS, Size, write_dataset
from agedp.demo.overview import Mixing, ReleaseSummary, overview_page, read_mixing, summarise_release
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
        calibrate(place / f"{DEMONSTRATED_NOTIONS[0]}.toml")
        mixings.append(read_mixing(place))
        for notion in DEMONSTRATED_NOTIONS:
            sanitise(place / f"{notion}.toml")
            releases.append(summarise_release(place, notion))
    page = overview_page(mixings, releases)
    (folder / "index.html").write_text(page, encoding="utf-8")
    return Demonstration(folder, mixings, releases, page)
