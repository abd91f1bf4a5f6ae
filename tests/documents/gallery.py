"""Draws the pictures of docs/gallery.md by the lines of Python on that page.

    python -m tests.documents.gallery    writes docs/gallery/*.svg, from an empty folder

The figure that a block leaves open is the picture that follows it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from tests.documents.notebook import STYLE, open_figures, svg
from tests.documents.pages import ROOT, blocks

PAGE = ROOT / "docs" / "gallery.md"
PICTURE = re.compile(r"^!\[(?P<alt>[^\]]+)\]\((?P<path>gallery/[\w-]+\.svg)\)$", re.MULTILINE)


def pictures() -> Iterator[tuple[str, str]]:
    """Yield path and alternative text of each picture of the page."""
    for picture in PICTURE.finditer(PAGE.read_text("utf-8")):
        yield picture["path"], picture["alt"]


def drawn() -> Iterator[str]:
    """Yield each figure of the page as SVG, drawn in the folder in hand."""
    known: dict[str, Any] = {"__name__": "__main__"}
    plt.close("all")
    plt.switch_backend("agg")
    with mpl.rc_context(STYLE | {"font.size": 12, "figure.constrained_layout.use": True}):
        for block in blocks(PAGE.read_text("utf-8")):
            if "plot" in block.marks.split():
                exec(compile("\n" * block.line + block.text, "gallery", "exec"), known)  # noqa: S102
                yield from (svg(figure)["image/svg+xml"] for figure in open_figures())


def main() -> None:
    """Draw the pictures."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        texts = list(drawn())
    (ROOT / "docs" / "gallery").mkdir(exist_ok=True)
    for (path, _), text in zip(pictures(), texts, strict=True):
        Path(ROOT / "docs" / path).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
