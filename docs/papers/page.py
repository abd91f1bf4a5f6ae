"""The page of all figures: one sentence each, the data it rests on, and the table of claims; written by the command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from agedp.local_files import atomic_files
from docs.papers.results import Paper, PaperClaim, PaperFigure, Verdict
from docs.papers.writing import writable

_READABLE = 0o644

_INTRODUCTION = """# The papers, reproduced

The project implements four papers. Their experiments, run on the code that makes the releases: each figure has the
paper's curve (vermilion, broken, hollow marks), the project's (blue, solid), what is counted on readings (green) and
references (grey, dotted), and names its data. Where a figure cannot be reproduced the reason stands below it.
"MATHS" is the project's own restatement of the theory, with every difference from the papers.

This page is written by the command, never by hand:

    pip install '.[papers]'
    python -m docs.papers all --out papers --docs docs

`--london FILES` and `--ausgrid FILES` name open data; without them synthetic households take their place, and the page
reports it. The folder `papers` then holds every figure as SVG, PNG and Parquet, and the claims as JSON and Parquet."""


def write_page(papers: Sequence[Paper], docs: Path, *, out: Path) -> Path:
    """Write papers.md, copy each figure's SVG from `out` into papers/, and return the page.

    Raises:
        RunFileError: it cannot be written.
    """
    with writable(docs):
        return _write_page(papers, docs, out)


def _write_page(papers: Sequence[Paper], docs: Path, out: Path) -> Path:
    folder = docs / "papers"
    folder.mkdir(parents=True, exist_ok=True)
    for paper in papers:
        for figure in paper.figures:
            drawn = (out / paper.name / f"{figure.name}.svg").read_bytes()
            atomic_files.write(folder / picture(paper, figure), drawn, mode=_READABLE)
    page = docs / "papers.md"
    atomic_files.write(page, page_of(papers).encode(), mode=_READABLE)
    return page


def picture(paper: Paper, figure: PaperFigure) -> str:
    """Return the file name of a figure's picture in the page's folder."""
    return f"{paper.name}-{figure.name}.svg"


def page_of(papers: Sequence[Paper]) -> str:
    """Return the page as Markdown."""
    verdicts = Counter(claim.verdict for paper in papers for claim in paper.claims)
    counted = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in get_args(Verdict) if verdicts[verdict])
    blocks = [_INTRODUCTION, f"Of {verdicts.total()} claims: {counted}."]
    for paper in papers:
        blocks += [f"## {paper.title}", *(section(paper, figure) for figure in paper.figures)]
        blocks.append("### What it claims\n\n" + "\n".join(_rows(paper.claims)))
    return "\n\n".join(blocks) + "\n"


def section(paper: Paper, figure: PaperFigure) -> str:
    """Return heading, picture and sentences of a figure."""
    paragraphs = [
        f"### {figure.shows}: {figure.title}",
        f"![{figure.title}](papers/{picture(paper, figure)})",
        figure.sentence,
        f"*Rests on {figure.rests_on}.*",
    ]
    return "\n\n".join(paragraphs + [f"*Erratum: {figure.erratum}*"] * bool(figure.erratum))


def _rows(claims: Sequence[PaperClaim]) -> Iterator[str]:
    yield "| where | claim | verdict | found | correct form | rests on |"
    yield "|---|---|---|---|---|---|"
    for claim in claims:
        cells = (claim.place, claim.claim, f"**{claim.verdict}**", claim.found, claim.maths, claim.rests_on)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
