"""`agedp demo`: draw the synthetic households, calibrate once per dataset, run three releases each, write the page.

Every calibration and release is a run of a Prefect flow, all on one server. A second run draws nothing again: models
that exist stay, and the release flow finds no due day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.demo.demo_folder import NOTIONS, PAGE, SERVER, locked_folder, write_dataset
from agedp.demo.mixing_table import Mixing, read_mixing
from agedp.demo.overview import CalibrationTasks, DemoPage, DemoStarted, Step, overview_page
from agedp.demo.release_table import ReleaseSummary, summarise_release
from agedp.demo.synthetic_datasets import DATASETS, Size, draw_dataset
from agedp.local_files import atomic_files
from agedp_data.model import PUBLIC_FILE
from agedp_flows.prefect_server import running_server

_READABLE = 0o644


def run_demonstration(folder: Path, size: Size, *, progress: ProgressReporter = SILENT) -> Iterator[Step]:
    """Yield each result as soon as it exists: per dataset its households, chains and releases; last the page.

    Raises:
        Busy: another demonstration works in the folder.
        InputError: the folder contains something else under a name that the demonstration writes.
        ServerError: no Prefect server answers or starts.
    """
    with locked_folder(folder, size):
        yield DemoStarted()
        yield from _results(folder, size, progress)


def _results(folder: Path, size: Size, progress: ProgressReporter) -> Iterator[Step]:
    mixings: list[Mixing] = []
    releases: list[ReleaseSummary] = []
    with running_server(folder / SERVER):
        for dataset in DATASETS:
            dataset_folder = folder / dataset.name
            write_dataset(folder, dataset, size)
            yield draw_dataset(dataset, size)
            if not (dataset_folder / "model" / PUBLIC_FILE).exists():
                yield CalibrationTasks(_calibrate(dataset_folder / f"{NOTIONS[0]}.toml", progress))
            mixings.append(read_mixing(dataset_folder))
            yield mixings[-1]
            for notion in NOTIONS:
                _release(dataset_folder / f"{notion}.toml", progress)
                releases.append(summarise_release(dataset_folder, notion))
                yield releases[-1]
    atomic_files.write(folder / PAGE, overview_page(mixings, releases).encode(), mode=_READABLE)
    yield DemoPage(folder / PAGE)


def _calibrate(run_file: Path, progress: ProgressReporter) -> str:
    """Run the calibrate flow of a run file, and return its tasks as text.

    Prefect reads its settings on import, so inside `running_server` only.
    """
    from agedp_flows.calibrate_flow import run_calibration  # noqa: PLC0415

    return run_calibration(str(run_file), progress).tasks


def _release(run_file: Path, progress: ProgressReporter) -> None:
    """Run the release flow of a run file, inside `running_server` as well."""
    from agedp_flows.release_flow import run_release  # noqa: PLC0415

    run_release(str(run_file), None, replace(progress, notice=None)).check_not_refused()
