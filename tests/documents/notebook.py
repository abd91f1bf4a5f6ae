"""Runs the cells of the notebooks one after the other, as Jupyter would, without Jupyter.

    python -m tests.documents.notebook    runs docs/notebook*.ipynb, each in an empty folder, and stores their outputs

Decisions. The cells are plain Python, so a kernel would add nothing but its installation (nbclient and ipykernel bring
some thirty packages); `exec` and the representations that objects offer to notebooks are enough. Figures of matplotlib
that a cell leaves open are its outputs, as with Jupyter's inline backend. They are stored as SVG: small, sharp at every
size, and text in git.
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

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs").glob("notebook*.ipynb"))
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_TAG = re.compile(r"<[^>]*>")
_FINE = re.compile(r"\d+\.\d{3,}")
_OFFERED = {"_repr_html_": "text/html", "_repr_svg_": "image/svg+xml"}
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "agedp", "font.size": 9, "path.simplify": True}
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def executed(cells: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the outputs of each code cell, run in the folder in hand."""
    known: dict[str, Any] = {"__name__": "__main__"}
    plt.close("all")
    plt.switch_backend("agg")
    with mpl.rc_context(STYLE):
        for number, cell in enumerate(cell for cell in cells if cell["cell_type"] == "code"):
            source = "".join(cell["source"])
            tree = ast.parse(source)
            last = tree.body.pop().value if isinstance(tree.body[-1], ast.Expr) else None
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(tree, f"cell {number}", "exec"), known)  # noqa: S102
                value = eval(compile(ast.Expression(last), f"cell {number}", "eval"), known) if last else None  # noqa: S307
            outputs: list[dict[str, Any]] = []
            if printed.getvalue():
                outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
            outputs += [_output(svg(figure), figure, "display_data") for figure in open_figures()]
            if value is not None and not source.endswith(";"):
                data = {kind: getattr(value, name)() for name, kind in _OFFERED.items() if hasattr(value, name)}
                outputs.append(_output(data, value, "execute_result") | {"execution_count": number + 1})
            yield outputs


def _output(data: dict[str, str], value: object, kind: str) -> dict[str, Any]:
    texts = data | {"text/plain": _ADDRESS.sub("", repr(value))}
    lines = {name: text.splitlines(True) for name, text in texts.items()}
    return {"output_type": kind, "metadata": {}, "data": lines}


def open_figures() -> list[Figure]:
    """Return the figures that a cell has made, and close them."""
    figures = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    return figures


def svg(figure: Figure) -> dict[str, str]:
    """Return a figure as SVG without its document type, in hundredths of a point."""
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata=_NO_METADATA)
    rounded = _TAG.sub(lambda tag: _FINE.sub(lambda number: f"{float(number[0]):.2f}", tag[0]), written.getvalue())
    text = " ".join(rounded.split())
    return {"image/svg+xml": text[text.index("<svg") :].replace("> <", ">\n<")}


def main() -> None:
    """Run the notebooks and store their outputs."""
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text("utf-8"))
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        with TemporaryDirectory() as folder, contextlib.chdir(folder):
            for number, (cell, outputs) in enumerate(zip(code, executed(notebook["cells"]), strict=True)):
                cell |= {"outputs": outputs, "execution_count": number + 1}
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
