"""The page of all figures: one sentence each, the data it rests on, and the table of claims; written by the command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from agedp.local_files import atomic_files
from docs.papers.implemented import implemented
from docs.papers.references import linked
from docs.papers.results import PUBLISHED, Paper, PaperClaim, PaperFigure, Verdict
from docs.papers.writing import writable

_READABLE = 0o644

_INTRODUCTION = """# The papers, reproduced

The project implements four papers. This page lists for each what is implemented and where the project differs,
repeats the paper's experiments with the code that makes the releases, and judges every claim.

* *Figures.* The paper's curve is vermilion and broken, with hollow marks. The project's is blue and solid. Green is
  counted on readings, dotted grey a reference. Each figure names its data. Where a figure cannot be reproduced, an
  erratum follows.
* *Verdicts.* *Reproduced*: true as printed, or under a reading that the row names. *Sharpened*: true, and a stronger
  statement holds. *Refuted*: false as printed, with a number. *Not judged*: the data at hand, or the paper's own words,
  do not decide it.
* *Refutations.* Each names its ground. *Every open value*: the claim is false for every value tried of what the paper
  leaves open. *Own case*: it is false on the paper's own data and parameters, or in a case that meets its conditions.
* *Measured households.* A verdict on readings is a verdict on these households. Their number is small: each row states
  how far its numbers differ over random halves of them.
* *Tests.* Each claim names a test under `tests/` that computes it. [Errata](errata.md) lists the errors alone, the
  unsafe ones first.

Unless a row says otherwise, a claim rests on the paper's published parameters and no data. A command writes this
page:

    pip install '.[papers]'
    python -m docs.papers all --out papers --docs docs

`--london FILES` and `--ausgrid FILES` name open data. Without them synthetic households take their place, and the
page reports it. The folder `papers` then contains every figure as SVG, PNG and Parquet, and the claims as JSON and
Parquet."""


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
        blocks += [f"## {paper.title}", implemented(paper.name)]
        blocks += [section(paper, figure) for figure in paper.figures]
        blocks.append(f"### Claims and verdicts: {paper.title}\n\n" + "\n".join(_rows(paper.claims)))
    return "\n\n".join(blocks) + "\n"


def section(paper: Paper, figure: PaperFigure) -> str:
    """Return heading, picture and sentences of a figure."""
    paragraphs = [
        f"### {figure.shows}: {figure.title}",
        f"![{figure.title}](papers/{picture(paper, figure)})",
        figure.sentence,
        f"*Rests on {figure.rests_on}.*",
    ]
    return "\n\n".join(paragraphs + [f"*Erratum: {linked(figure.erratum)}*"] * bool(figure.erratum))


def short_source(rests_on: str) -> str:
    """Return the name of the data; the section of the figure has their size and period.

    >>> short_source("Low Carbon London (open data): 40 households")
    'Low Carbon London'
    """
    return re.split(r":| \(", rests_on)[0]


def _rows(claims: Sequence[PaperClaim]) -> Iterator[str]:
    yield "| where | claim | verdict | found | correct form | test |"
    yield "|---|---|---|---|---|---|"
    for claim in claims:
        found = claim.found if claim.rests_on == PUBLISHED else f"{claim.found} *({short_source(claim.rests_on)})*"
        test = f"`{claim.test.partition('::')[2]}`"
        of_verdict = f" ({claim.ground or claim.reading})" if claim.ground or claim.reading else ""
        verdict = f"**{claim.verdict}**{of_verdict}"
        cells = (claim.place, claim.claim, verdict, found, linked(claim.correct_form), test)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
