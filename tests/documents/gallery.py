"""Draws the pictures of the pages by the lines of docs/gallery/plots.py.

    python -m tests.documents.gallery    writes docs/gallery/*.svg, from an empty folder

The figure that the lines below `# picture: NAME` leave open is docs/gallery/NAME.svg.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from tests.documents.notebook import STYLE, open_figures, svg
from tests.documents.pages import ROOT

GALLERY = ROOT / "docs" / "gallery"
_NAMED = re.compile(r"^# picture: ([\w-]+)$", re.MULTILINE)
_SHOWN = re.compile(r"^!\[(?P<alt>[^\]]+)\]\(gallery/(?P<name>[\w-]+)\.svg\)$", re.MULTILINE)


def shown() -> Iterator[tuple[str, str]]:
    """Yield name and alternative text of each picture on the pages."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        for picture in _SHOWN.finditer(page.read_text("utf-8")):
            yield picture["name"], picture["alt"]


def drawn() -> Iterator[tuple[str, str]]:
    """Yield name and SVG of each picture, drawn in the folder in hand."""
    known: dict[str, Any] = {"__name__": "__main__"}
    plt.close("all")
    plt.switch_backend("agg")
    first, *parts = _NAMED.split((GALLERY / "plots.py").read_text("utf-8"))
    with mpl.rc_context(STYLE | {"font.size": 12, "figure.constrained_layout.use": True}):
        exec(compile(first, "plots", "exec"), known)  # noqa: S102
        for name, lines in zip(parts[::2], parts[1::2], strict=True):
            exec(compile(lines, name, "exec"), known)  # noqa: S102
            [figure] = open_figures()
            yield name, svg(figure)["image/svg+xml"]


def main() -> None:
    """Draw the pictures."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        texts = dict(drawn())
    for name, text in texts.items():
        (GALLERY / f"{name}.svg").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
