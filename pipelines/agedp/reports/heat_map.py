"""A square matrix as a heat map: HTML with an SVG inside, in the style of `svg`.

Words are HTML beside the drawing, and a caller puts the numbers in a table beside it.

Decisions:

* Shares in [0, 1] are drawn as opacity of one colour in steps of 5 %: a dark page, a light page and paper show the same
  order.
* Cells of one opacity are one path: a 12 x 12 matrix takes about 4 kB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agedp.reports.html import part

_CELL = 20
_STEPS = 20


def heat_map(
    title: str, about: str, shares: Sequence[Sequence[float]], *, x_title: str, y_title: str, height: int = 300
) -> str:
    """Return a figure of a square matrix of shares in [0, 1].

    Args:
        title: subject of the figure, different from every other title of the page.
        about: description for a reader who cannot see the figure.
        shares: rows from top to bottom, columns from left to right [-].
        x_title: meaning of the columns.
        y_title: meaning of the rows.
        height: height of the drawing [px].
    """
    edge = len(shares) * _CELL
    drawing = "\n".join([*_cells(shares), f'<path class="grid" d="M0 0H{edge}V{edge}H0z"/>'])
    labels = [*_labels(len(shares), x_title, y_title)]
    return part("figure", title, about, height, (edge, edge), drawing, labels, (), ())


def _cells(shares: Sequence[Sequence[float]]) -> Iterator[str]:
    """Yield one path for the cells of each opacity; a share above 0 always has a visible cell."""
    by_step: dict[int, list[str]] = {}
    for row, values in enumerate(shares):
        for column, share in enumerate(values):
            step = min(_STEPS, max(round(share * _STEPS), int(share > 0)))
            by_step.setdefault(step, []).append(f"M{column * _CELL} {row * _CELL}h{_CELL}v{_CELL}h-{_CELL}z")
    for step, squares in sorted(by_step.items()):
        if step:
            yield f'<path style="fill:var(--s0);fill-opacity:{step / _STEPS:g}" d="{"".join(squares)}"/>'


def _labels(size: int, x_title: str, y_title: str) -> Iterator[tuple[str, str, str]]:
    """Yield class, position and text of the numbers of rows and columns, from 1, and of the titles of both axes."""
    for i in range(size):
        middle = f"{round(100 * (i + 0.5) / size, 1):g}%"
        yield "y", f"top:{middle}", f"{i + 1}"
        yield "x", f"left:{middle}", f"{i + 1}"
    yield "yt", "", y_title
    yield "xt", "top:100%;right:0;padding-top:1.7rem", x_title
