"""`agedp demo`: draw the synthetic households, calibrate once per dataset, run three releases each, write the page.

Every calibration and release is a run of a Prefect flow, all on one server. A second run draws nothing again: models
that exist stay, and the release flow finds no due day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.demo import overview
from agedp.demo.demo_folder import (
    AGES_DAYS,
    CHAINS,
    DATASETS,
    DEMONSTRATED_NOTIONS,
    PAGE,
    SERVER,
    DemonstrationDataset,
    Size,
    draw_dataset,
    locked_folder,
    write_dataset,
)
from agedp.local_files import atomic_files
from agedp_data.datasets.filesystem import format_path
from agedp_data.datasets.synthetic.households import Floats
from agedp_data.messages import sentence_start
from agedp_data.model import PUBLIC_FILE
from agedp_flows.prefect_server import running_server
from agedp_flows.text.screen import StyledLine, count_text, heading, screen_width, table_lines

_READABLE = 0o644


def run_demonstration(folder: Path, size: Size, *, progress: ProgressReporter = SILENT) -> Iterator[overview.Step]:
    """Yield each result as soon as it exists: per dataset its households, chains and releases; last the page.

    Raises:
        Busy: another demonstration works in the folder.
        InputError: the folder contains something else under a name that the demonstration writes.
        ServerError: no Prefect server answers or starts.
    """
    with locked_folder(folder, size):
        yield overview.DemoStarted()
        yield from _results(folder, size, progress)


def _results(folder: Path, size: Size, progress: ProgressReporter) -> Iterator[overview.Step]:
    mixings: list[overview.Mixing] = []
    releases: list[overview.ReleaseSummary] = []
    with running_server(folder / SERVER):
        for dataset in DATASETS:
            dataset_folder = folder / dataset.name
            write_dataset(folder, dataset, size)
            yield draw_dataset(dataset, size)
            if not (dataset_folder / "model" / PUBLIC_FILE).exists():
                yield overview.CalibrationTasks(
                    _calibrate(dataset_folder / f"{DEMONSTRATED_NOTIONS[0]}.toml", progress)
                )
            mixings.append(overview.read_mixing(dataset_folder))
            yield mixings[-1]
            for notion in DEMONSTRATED_NOTIONS:
                _release(dataset_folder / f"{notion}.toml", progress)
                releases.append(overview.summarise_release(dataset_folder, notion))
                yield releases[-1]
    atomic_files.write(folder / PAGE, overview.overview_page(mixings, releases).encode(), mode=_READABLE)
    yield overview.DemoPage(folder / PAGE)


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


# --------------------------------------------------------------------------------------------------
# Output of `agedp demo`: one part per dataset, printed as results arrive, then one table of all releases.
#
# All of it may be shown because no household exists; for real households chains and row counts are confidential.
# --------------------------------------------------------------------------------------------------

_INTRODUCTION = (
    "Synthetic households, drawn from known Markov chains, so the Markov assumption holds. Real households are "
    "usually not such chains; their chains, gaps, matrices and row counts are confidential."
)
_RELEASES = (
    *("dataset, notion", ">days", ">noise, kWh per household", ">noise / change", ">epsilon of a day"),
    *(">epsilon of the period", "bound of the notion: reached of promised"),
)
_COLUMNS = 100
_TABLE_COLUMNS = 118


def step_lines(step: overview.Step, folder: Path) -> list[str]:
    """Return one result as lines for the terminal."""
    return [line for text in _step_texts(step, folder) for line in _wrapped(text)]


def _wrapped(text: str) -> list[str]:
    """Return a sentence on lines of at most 100 columns; a table's line is not wrapped."""
    return (
        [text]
        if "  " in text or isinstance(text, StyledLine)
        else wrap(text, _COLUMNS, break_long_words=False, break_on_hyphens=False) or [""]
    )


def _step_texts(step: overview.Step, folder: Path) -> list[str]:
    match step:
        case overview.DemoStarted():
            return [_INTRODUCTION]
        case DemonstrationDataset():
            return _draw_lines(step, folder)
        case overview.CalibrationTasks():
            return [step.text]
        case overview.Mixing():
            return _mixing_lines(step)
        case overview.ReleaseSummary():
            return [_release_line(step)]
        case overview.DemoPage():
            return [f"The same in pictures: {format_path(str(step.path))}"]


def _draw_lines(draw: DemonstrationDataset, folder: Path) -> list[str]:
    dataset_folder = folder / draw.dataset.name
    days = (draw.released.last - draw.calibration.first).days + 1
    return [
        "",
        heading(
            f"=== {draw.dataset.title} format: {draw.households} synthetic households, {days} days "
            f"({draw.calibration.first} to {draw.released.last}) ==="
        ),
        f"Drawn from three reversible 12-state Markov chains ({format_path(str(dataset_folder / CHAINS))}) into "
        f"{format_path(str(dataset_folder / 'input'))}",
    ]


def _mixing_lines(mixing: overview.Mixing) -> list[str]:
    columns = "".join(f"{column:5d}" for column in range(1, len(mixing.example) + 1))
    return [
        overview.row_text(mixing.rows),
        overview.state_text(mixing),
        "",
        f"Estimated transition matrix of household {mixing.example_id}",
        "(row: state now; column: state after half an hour)",
        f"    {columns}",
        *(f"{row:4d}" + "".join(map(_cell, values)) for row, values in enumerate(mixing.example.tolist(), start=1)),
        "",
        overview.gap_text(mixing),
        "",
        *_age_lines(mixing),
        overview.not_applicable(mixing),
        overview.sampling_text(mixing),
        "",
    ]


def _cell(share: float) -> str:
    """Return a probability in five columns.

    >>> _cell(0.714), _cell(0.0)
    ('  .71', '    .')
    """
    return f"{'.' if share == 0 else f'{share:.2f}'.removeprefix('0'):>5}"


def _age_lines(mixing: overview.Mixing) -> list[str]:
    rows: list[list[str]] = []
    measure = ""
    for name, chains, *values in overview.mixing_rows(mixing):
        if name != measure:
            rows.append([name])
            measure = name
        rows.append([f"    {chains}", *values])
    columns = "By age", *(f">{count_text(age, 'day')}" for age in AGES_DAYS)
    return table_lines(columns, rows, width=screen_width() or _TABLE_COLUMNS)


def _release_line(release: overview.ReleaseSummary) -> str:
    return (
        f"{sentence_start(release.notion)} privacy: {len(release.days)} days released, noise "
        f"{release.noise.deviation:.3f} kWh per household, epsilon of a day {overview.day_epsilon_text(release)}: "
        f"{format_path(str(release.folder))}"
    )


def release_table_lines(steps: Sequence[overview.Step]) -> list[str]:
    """Return the table of all releases, the meaning of its columns, and the effect of the credit for age."""
    releases = [step for step in steps if isinstance(step, overview.ReleaseSummary)]
    texts = [
        *overview.COLUMNS_ARE,
        *(overview.credit_text(releases, step) for step in steps if isinstance(step, overview.Mixing)),
    ]
    rows = table_lines(_RELEASES, map(overview.release_row, releases), width=screen_width() or _TABLE_COLUMNS)
    return ["", *rows, "", *(line for text in texts for line in _wrapped(text)), ""]


def demonstration_json(steps: Sequence[overview.Step]) -> dict[str, Any]:
    """Return all results as JSON: public facts and, because the households are synthetic, those of the chains."""
    kernels = next(step.kernels for step in steps if isinstance(step, overview.Mixing))
    return {
        "page": next(str(step.path) for step in steps if isinstance(step, overview.DemoPage)),
        "chains": [_mixing_json(step) for step in steps if isinstance(step, overview.Mixing)],
        "releases": [_release_json(step, kernels) for step in steps if isinstance(step, overview.ReleaseSummary)],
    }


def _mixing_json(mixing: overview.Mixing) -> dict[str, Any]:
    estimated = ("total_variation", "reversibilised")
    return {
        "dataset": mixing.dataset,
        "synthetic": True,
        "rows_read": mixing.rows.rows_read,
        "rows_kept": mixing.rows.rows_kept,
        "rows_rejected": dict(mixing.rows.rows_rejected),
        "households": mixing.households,
        "states": mixing.states,
        "transitions": mixing.transitions,
        "not_reversible": mixing.not_reversible,
        "spectral_gap": {"median": float(np.median(mixing.gaps)), "smallest": float(mixing.gaps.min())},
        "ages_days": list(AGES_DAYS),
        "estimated": {
            name: {
                "median": np.median(mixing.estimated[name], axis=0).tolist(),
                "largest": mixing.estimated[name].max(axis=0).tolist(),
            }
            for name in estimated
        },
        "exact": {
            chain.name: {"spectral_gap": chain.gap, **{name: curve.tolist() for name, curve in chain.curves.items()}}
            for chain in mixing.exact
        },
    }


def _release_json(release: overview.ReleaseSummary, kernels: Floats) -> dict[str, Any]:
    estimate = release.noise.signal.estimate
    return {
        "dataset": release.dataset,
        "notion": release.notion,
        "folder": format_path(str(release.folder)),
        "days": len(release.days),
        "noise_sd_kwh": release.noise.deviation,
        "change_kwh": None if estimate is None else estimate.change,
        "change_error_kwh": None if estimate is None else estimate.standard_error,
        "true_change_kwh": release.noise.true_change,
        "noise_to_change": release.noise.ratio,
        "day_epsilon": release.day_epsilon,
        "total_epsilon": release.total_epsilon,
        "bound": {"name": release.bound.name, "epsilon": release.bound.epsilon, "limit": release.bound.limit},
        "bound_under_exact_chains": overview.exact_bound(release, kernels),
    }
