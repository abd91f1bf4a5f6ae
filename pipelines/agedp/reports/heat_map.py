"""A square matrix as a heat map: HTML with an SVG inside, in the style of `svg`.

Words are HTML beside the drawing, and a caller puts the numbers in a table beside it.

Decisions:

* Shares in [0, 1] are drawn as opacity of one colour in steps of 5 %: a dark page, a light page and paper show the same
  order.
* Cells of one opacity are one path: a 12 x 12 matrix takes about 4 kB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

_CELL = 20
_STEPS = 20


def heat_map(
    title: str, about: str, shares: Sequence[Sequence[float]], *, x_title: str, y_title: str, height: int = 300
) -> str:
    """Return a figure of a square matrix of shares in [0, 1]. Texts are escaped here.

    Args:
        title: subject of the figure, different from every other title of the page.
        about: description for a reader who cannot see the figure.
        shares: rows from top to bottom, columns from left to right [-].
        x_title: meaning of the columns.
        y_title: meaning of the rows.
        height: height of the drawing [px].
    """
    size = len(shares)
    edge = size * _CELL
    label = escape(f"{title}. {about}", quote=True)
    return "\n".join(
        [
            f'<figure class="chart"><figcaption>{escape(title)}</figcaption>',
            f'<div class="plot" style="--h:{height}px">',
            f'<svg viewBox="0 0 {edge} {edge}" preserveAspectRatio="none" role="img" aria-label="{label}">',
            *_cells(shares),
            f'<path class="grid" d="M0 0H{edge}V{edge}H0z"/>',
            "</svg>",
            *_numbers(size, x_title, y_title),
            "</div></figure>",
        ]
    )


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


def _numbers(size: int, x_title: str, y_title: str) -> Iterator[str]:
    """Yield the numbers of rows and columns, from 1, and the titles of both axes."""
    for i in range(size):
        middle = f"{round(100 * (i + 0.5) / size, 1):g}%"
        yield f'<span class="y" aria-hidden="true" style="top:{middle}">{i + 1}</span>'
        yield f'<span class="x" aria-hidden="true" style="left:{middle}">{i + 1}</span>'
    yield f'<span class="yt" aria-hidden="true">{escape(y_title)}</span>'
    yield f'<span class="xt" aria-hidden="true" style="top:100%;right:0;padding-top:1.7rem">{escape(x_title)}</span>'
