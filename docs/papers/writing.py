"""What a paper's experiments leave in a folder: a table and two pictures of each figure, and the table of claims."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp_data.errors import RunFileError
from docs.papers.references import cited
from docs.papers.results import Paper, PaperClaim, PaperFigure
from docs.papers.style import drawn

_READABLE = 0o644


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Turn the system's refusals to write into one line.

    Raises:
        RunFileError: the folder is a file, lies below one, is read-only, or the disk is full.
    """
    try:
        yield
    except OSError as error:
        reason = f"cannot be written ({error.strerror or error}); name a folder that can"
        raise RunFileError(f"the folder of the papers {reason}", private=f"{folder}: {reason}") from error


def write(paper: Paper, out: Path) -> Path:
    """Write everything of one paper into its folder below `out` and return that folder.

    Raises:
        RunFileError: it cannot be written.
    """
    with writable(out):
        return _write(paper, out / paper.name)


def _write(paper: Paper, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for figure in paper.figures:
        atomic_files.write_table(folder / f"{figure.name}.parquet", table_of(figure), mode=_READABLE)
        for ending, content in drawn(figure).items():
            atomic_files.write(folder / f"{figure.name}.{ending}", content, mode=_READABLE)
    atomic_files.write_table(folder / "claims.parquet", claims_of(paper.claims), mode=_READABLE)
    text = json.dumps([_row(claim) for claim in paper.claims], indent=1, ensure_ascii=False)
    atomic_files.write(folder / "claims.json", (text + "\n").encode(), mode=_READABLE)
    return folder


def table_of(figure: PaperFigure) -> pa.Table:
    """Return every point of every curve: panel, x and y axis, curve, look, x, y; what it rests on is its metadata."""
    rows = [(panel, line) for panel in figure.panels for line in panel.curves]
    sizes = [line.x.size for _, line in rows]
    columns = {
        "panel": [panel.title for panel, _ in rows],
        "x_axis": [panel.x for panel, _ in rows],
        "y_axis": [panel.y for panel, _ in rows],
        "curve": [line.label for _, line in rows],
        "look": [line.look for _, line in rows],
    }
    table = pa.table(
        {name: pa.array(np.repeat(np.array(values, object), sizes), pa.string()) for name, values in columns.items()}
        | {"x": np.concatenate([line.x for _, line in rows]), "y": np.concatenate([line.y for _, line in rows])}
    )
    description = {"shows": figure.shows, "title": figure.title, "rests on": figure.rests_on}
    description["erratum"] = cited(figure.erratum)
    return table.replace_schema_metadata(description)


def claims_of(claims: tuple[PaperClaim, ...]) -> pa.Table:
    """Return one row for each claim."""
    rows = [_row(claim) for claim in claims]
    return pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in rows[0]})


def _row(claim: PaperClaim) -> dict[str, str]:
    return asdict(replace(claim, correct_form=cited(claim.correct_form)))
