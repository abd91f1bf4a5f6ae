"""The page of the papers: figures with one sentence each, errors, and the claims that rest on households.

Decisions:

* A picture contains its finding, its data and its erratum, so the page does not repeat them.
* All claims are rows of a table of their own, `papers/claims.csv`; the errors are rows of `papers/errata.csv`, which is
  written by hand, each with the test that computes its number.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from agedp.local_files import atomic_files
from docs.papers.accuracy.page import accuracy_section
from docs.papers.implemented import implemented
from docs.papers.references import cited
from docs.papers.results import Paper, PaperClaim, PaperFigure, Verdict
from docs.papers.writing import writable

_READABLE = 0o644
_ERRATA = Path(__file__).parent / "errata.csv"

_INTRODUCTION = """# The papers, reproduced

Four [papers](glossary.md#papers) stand behind the notions. For each this page states what agedp implements and where it
differs, repeats the figures with the code that makes the releases, and lists the unsafe errors.

* *Figures.* The paper's curve is vermilion and broken, the project's blue and solid. Green is counted on readings,
  dotted grey a reference. The line below a picture names its data.
* *Errors.* *Unsafe*: a release that follows the equation as printed is less private than it claims. The code computes
  the corrected form, or refuses the case. [errata.csv](papers/errata.csv) has all errors, what holds, and their tests.
* *Claims.* [claims.csv](papers/claims.csv) has every claim with the number found, its data and its test. *Reproduced*:
  true as printed, or under a named reading. *Sharpened*: true, and more is. *Refuted*: false, for *every open value*
  tried of what the paper leaves open, or in its *own case*. *Not judged*: the data at hand do not decide it.
* *Households.* A verdict on readings is one on these households. They are few; rows have the spread over random
  halves."""

_WRITING = """## Write it again

    pip install '.[papers]'
    python -m docs.papers all --out papers --docs docs

`--london FILES` and `--ausgrid FILES` name open data; synthetic households stand in for what is not named. The folder
`papers` then has each figure as SVG, PNG and Parquet, and the claims as JSON and Parquet."""


def write_page(papers: Sequence[Paper], docs: Path, *, out: Path) -> Path:
    """Write papers.md and papers/claims.csv, copy each figure's SVG from `out` into papers/, and return the page.

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
    atomic_files.write(folder / "claims.csv", claims_table(papers).encode(), mode=_READABLE)
    page = docs / "papers.md"
    atomic_files.write(page, page_of(papers).encode(), mode=_READABLE)
    return page


def picture(paper: Paper, figure: PaperFigure) -> str:
    """Return the file name of a figure's picture in the page's folder."""
    return f"{paper.name}-{figure.name}.svg"


def page_of(papers: Sequence[Paper]) -> str:
    """Return the page as Markdown."""
    blocks = [_INTRODUCTION, f"Of {_counted(claim for paper in papers for claim in paper.claims)}."]
    for paper in papers:
        blocks += [f"## {paper.title}", implemented(paper.name), f"Of {_counted(paper.claims)}."]
        blocks += [section(paper, figure) for figure in paper.figures]
        measured = [claim for claim in paper.claims if "London" in claim.rests_on]
        if measured:
            blocks.append(f"### Claims judged on households: {paper.title}\n\n" + "\n".join(_rows(measured)))
        blocks.append(f"### Errors: {paper.title}\n\n" + "\n".join(_errors(paper.name)))
    return "\n\n".join([*blocks, accuracy_section(), _WRITING]) + "\n"


def _counted(claims: Iterable[PaperClaim]) -> str:
    verdicts = Counter(claim.verdict for claim in claims)
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in get_args(Verdict) if verdicts[verdict])
    return f"{verdicts.total()} claims: {counts}"


def section(paper: Paper, figure: PaperFigure) -> str:
    """Return heading, picture and sentence of a figure."""
    shown = f"![{figure.title}](papers/{picture(paper, figure)})"
    return f"### {figure.shows}\n\n{shown}\n\n{figure.sentence}"


def claims_table(papers: Sequence[Paper]) -> str:
    """Return all claims as CSV, the table that the page links."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(("paper", "where", "claim", "verdict", "of", "found", "rests on", "correct form", "test"))
    for paper in papers:
        for claim in paper.claims:
            of_verdict = claim.ground or claim.reading
            facts = (claim.found, claim.rests_on, cited(claim.correct_form), claim.test)
            table.writerow((paper.name, claim.place, claim.claim, claim.verdict, of_verdict, *facts))
    return written.getvalue()


def _rows(claims: Sequence[PaperClaim]) -> Iterator[str]:
    yield "| where | claim | verdict | found | test |"
    yield "|---|---|---|---|---|"
    for claim in claims:
        of_verdict = f" ({claim.ground or claim.reading})" if claim.ground or claim.reading else ""
        cells = (claim.place, claim.claim, f"**{claim.verdict}**{of_verdict}", claim.found, f"`{_test_name(claim)}`")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _test_name(claim: PaperClaim) -> str:
    return claim.test.partition("::")[2]


def _errors(paper: str) -> Iterator[str]:
    """Yield the table of a paper's unsafe errors, and where the others are."""
    rows = [row for row in read_errata() if row["paper"] == paper]
    unsafe, others = [row for row in rows if row["unsafe"]], [row for row in rows if not row["unsafe"]]
    if unsafe:
        yield from ("| where | unsafe as printed | what holds |", "|---|---|---|")
        yield from (f"| {row['where']} | {row['printed']} | {row['holds']} |" for row in unsafe)
        yield ""
    places = "; ".join(dict.fromkeys(row["where"] for row in others))
    yield f"{'Further errors' if unsafe else 'Errors'}, without danger to privacy: {places}."


def read_errata() -> list[dict[str, str]]:
    """Return the errors of all papers, each with its tests."""
    return list(csv.DictReader(_ERRATA.read_text("utf-8").splitlines()))
