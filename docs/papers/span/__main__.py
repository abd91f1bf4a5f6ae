"""Write the tables about spans into docs/notions.md: `python -m docs.papers.span`."""

from __future__ import annotations

from pathlib import Path

from agedp.local_files import atomic_files
from docs.papers.span import page

NOTIONS = Path(__file__).parents[2] / "notions.md"

if __name__ == "__main__":
    atomic_files.write(NOTIONS, page(NOTIONS.read_text("utf-8")).encode(), mode=0o644)
