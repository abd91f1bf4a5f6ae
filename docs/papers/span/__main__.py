"""Write docs/spans.md: `python -m docs.papers.span`."""

from __future__ import annotations

from pathlib import Path

from agedp.local_files import atomic_files
from docs.papers.span import page

if __name__ == "__main__":
    atomic_files.write(Path(__file__).parents[2] / "spans.md", page().encode(), mode=0o644)
