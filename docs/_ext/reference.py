"""The generated parts of reference pages, written into the files, so that a clone has them without a build.

    python docs/_ext/reference.py    writes them; `make reference` does the same

A generated part is the text between two comments and is replaced completely; the text around it is written by hand.
`tests/documents` compares the files with the code.
"""

from __future__ import annotations

import re
from pathlib import Path

from commands import commands_page
from run_file import run_file_page

DOCS = Path(__file__).parents[1]
GENERATED = {"commands": commands_page, "run-file": run_file_page}
"""Each page with a generated part, and the function that returns this part."""
_PART = re.compile(r"^(<!-- generated: ([a-z-]+)[^\n]* -->\n).*?^(<!-- end of generated part -->)$", re.M | re.S)


def regenerate(page: str) -> str:
    """Return the text of a page with its generated part renewed from the code.

    Raises:
        LookupError: the page has no generated part with its name.
    """
    text = (DOCS / f"{page}.md").read_text("utf-8")
    if [part[2] for part in _PART.finditer(text)] != [page]:
        raise LookupError(f"docs/{page}.md: expected one part between <!-- generated: {page} --> and its end")
    return _PART.sub(lambda part: f"{part[1]}\n{GENERATED[page]().strip()}\n\n{part[3]}", text)


def main() -> None:
    """Write the generated part of every page."""
    for page in GENERATED:
        (DOCS / f"{page}.md").write_text(regenerate(page), "utf-8")


if __name__ == "__main__":
    main()
