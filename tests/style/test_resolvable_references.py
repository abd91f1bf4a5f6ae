"""No stored page or picture, and no text in the sources, refers to what its reader does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.references import KEY, NOTES, unresolved
from tests.source_path import ROOT
from tests.style.test_names import files

PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "docs/**/*.svg",
    "docs/**/*.ipynb",
)
TEMPLATES = (".html", ".toml", ".css", ".json", ".md")


def texts(path: Path) -> Iterator[tuple[str, bool]]:
    """The texts of a Python file, each with whether it is a docstring."""
    content = path.read_text(encoding="utf-8")
    if not (NOTES.search(content) or KEY.search(content)):
        return
    tree = ast.parse(content)
    bodies = [node.body for node in ast.walk(tree) if hasattr(node, "body") and isinstance(node.body, list)]
    free = {id(line.value) for body in bodies for line in body if isinstance(line, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, id(node) in free


def unresolved_texts(path: Path) -> list[str]:
    """Notes in any text of a file; keys of papers in texts that are printed, since docstrings have the glossary."""
    return [
        found
        for text, is_docstring in texts(path)
        for found in (NOTES.findall(text) if is_docstring else unresolved(text))
    ]


def test_stored_pages_and_pictures_resolve_their_references() -> None:
    paths = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern)) if "_build" not in path.parts]
    assert len([path for path in paths if path.suffix == ".svg"]) > 25
    lost = {str(path.relative_to(ROOT)): found for path in paths if (found := unresolved(path.read_text("utf-8")))}
    assert lost == {}


def test_texts_of_the_sources_resolve_their_references() -> None:
    sources = [*files(), *sorted((ROOT / "docs").rglob("*.py"))]
    lost = {str(path.relative_to(ROOT)): found for path in sources if (found := unresolved_texts(path))}
    packages = [ROOT / "agedp_data", ROOT / "pipelines", ROOT / "flows", ROOT / "container"]
    templates = [path for folder in packages for path in sorted(folder.rglob("*")) if path.suffix in TEMPLATES]
    assert len(templates) > 10
    lost |= {str(path.relative_to(ROOT)): found for path in templates if (found := unresolved(path.read_text("utf-8")))}
    assert lost == {}


def test_sentences_are_capitalised_without_changing_units_and_names() -> None:
    # "2 kWh".capitalize() is "2 kwh", and "[A, eq. 55]" became "[a, eq. 55]": `messages.sentence_start` keeps the rest
    assert [str(path) for path in files() if ".capitalize(" in path.read_text("utf-8")] == []
