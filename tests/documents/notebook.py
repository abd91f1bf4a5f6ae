"""Runs the notebook's cells one after the other, as Jupyter would, without Jupyter.

    python -m tests.documents.notebook    runs docs/notebook.ipynb in an empty folder and stores what it says

Decision. The cells are plain Python, so a kernel would add nothing but its installation (nbclient and ipykernel bring
some thirty packages); `exec` and the representations that objects offer to notebooks are enough.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_OFFERED = {"_repr_html_": "text/html", "_repr_svg_": "image/svg+xml"}


def executed(cells: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the outputs of each code cell, run in the folder in hand."""
    known: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cell for cell in cells if cell["cell_type"] == "code"):
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop().value if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(tree, f"cell {number}", "exec"), known)  # noqa: S102
            value = eval(compile(ast.Expression(last), f"cell {number}", "eval"), known) if last else None  # noqa: S307
        outputs: list[dict[str, Any]] = []
        if said.getvalue():
            outputs.append({"output_type": "stream", "name": "stdout", "text": said.getvalue().splitlines(True)})
        if value is not None:
            data = {kind: getattr(value, name)() for name, kind in _OFFERED.items() if hasattr(value, name)}
            lines = {
                kind: text.splitlines(True)
                for kind, text in (data | {"text/plain": _ADDRESS.sub("", repr(value))}).items()
            }
            outputs.append(
                {"output_type": "execute_result", "execution_count": number + 1, "metadata": {}, "data": lines}
            )
        yield outputs


def main() -> None:
    """Run the notebook and store its outputs."""
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, (cell, outputs) in enumerate(zip(code, executed(notebook["cells"]), strict=True)):
            cell |= {"outputs": outputs, "execution_count": number + 1}
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
