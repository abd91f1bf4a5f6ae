"""Links of docstrings to the literature: each DOI is a known one and stands beside its own work."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.style.test_names import files

WORKS = {
    "10.1109/TIT.2023.3340147": r"\[A\]",
    "10.1109/TKDE.2018.2824328": r"\[T\]",
    "10.48550/arXiv.1908.03995": r"\[F\]",
    "10.14778/2732977.2732989": r"Kellaris",
    "10.1007/11681878_14": r"Dwork",
    "10.1145/1536414.1536464": r"Ghosh",
    "10.1109/FOCS.2007.66": r"\[MT\]",
    "10.48550/arXiv.1807.01647": r"Balle",
    "10.1145/1989323.1989345": r"Kifer",
    "10.48550/arXiv.2305.08846": r"Steinke",
    "10.1093/biomet/26.4.404": r"Clopper",
    "10.3150/14-BEJ603": r"Bentkus, Dzindzalieta",
    "10.1017/CBO9780511804441": r"Boyd",
    "10.1287/mnsc.13.7.492": r"Dinkelbach",
    "10.1137/1.9780898718027": r"\[H\]",
    "10.1145/93542.93559": r"Steele",
    "10.1007/PL00009321": r"Shewchuk",
    "10.1145/3230636": r"Lemire",
    "10.1038/s41592-019-0686-2": r"SciPy",
    "10.1038/s41586-020-2649-2": r"numpy",
    "10.1214/aoms/1177707039": r"Anderson, Goodman",
    "10.1063/1.4934536": r"Trendelkamp-Schroer",
    "10.1214/09-EJS521": r"Bach",
    "10.1109/5.18626": r"Rabiner",
    "10.1214/aoms/1177697196": r"Baum, Petrie",
    "10.1214/aoap/1177005981": r"Fill",
    "10.1287/opre.33.5.1107": r"Grassmann",
    "10.1017/CBO9780511802843": r"Davison, Hinkley",
    "10.1090/mbk/107": r"Levin, Peres",
    "10.1109/CSF.2017.11": r"\[M\]",
    "10.48550/arXiv.2004.00010": r"\[CKS\]",
    "10.48550/arXiv.1311.0776": r"\[KOV\]",
    "10.48550/arXiv.1906.03049": r"\[KJH\]",
    "10.14778/1920841.1920970": r"\[HRMS\]",
    "10.1093/acprof:oso/9780199641178.001.0001": r"\[DK\]",
    "10.7551/mitpress/3206.001.0001": r"\[RW\]",
    "10.1201/9780203492024": r"\[RH\]",
}
"""DOI and what stands beside it. Add a DOI only after a look-up; otherwise cite author, title, venue and year."""
LINK = re.compile(r"https://doi\.org/(\S+?)[.,)]?(?=\s|$)")


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def citations(text: str) -> Iterator[tuple[str, str]]:
    """DOI and its reference: what stands before the link since the last one, at most three lines."""
    end = 0
    for link in LINK.finditer(text):
        yield link[1], "\n".join(text[end : link.start()].splitlines()[-3:])
        end = link.end()


def wrong_citations(text: str) -> list[str]:
    return [doi for doi, reference in citations(text) if doi not in WORKS or not re.search(WORKS[doi], reference)]


def test_every_doi_stands_beside_its_own_work() -> None:
    wrong: dict[Path, list[str]] = {}
    count = 0
    for path in files():
        for text in docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            count += len(list(citations(text)))
            if unfit := wrong_citations(text):
                wrong.setdefault(path, []).extend(unfit)
    assert count > 100
    assert wrong == {}
