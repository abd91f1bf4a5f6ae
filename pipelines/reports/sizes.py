"""Report of bounded changes: privacy loss of a day by size of the change in a household's use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import to_float
from agedp_data.notions.changes import BoundedChangeLoss
from agedp_data.notions.notion import Accountant
from agedp_data.notions.parameters import exact_text
from agedp_data.notions.publication import Publication
from agedp_data.pictures.chart import Line, Marks, chart
from agedp_data.pictures.page import table
from agedp_data.pictures.scales import format_rounded_up, linear_axis

_POINTS = 40
_MAX_ROWS = 8


def size_parts(
    accountants: Sequence[Accountant], rows: Sequence[ReleaseRecord], publication: Publication, *, full_wh: int
) -> Iterator[str]:
    """Yield the loss of a day by size of change up to the full range, if the statement has a bound for any size."""
    sizes = sorted({accountant.size_kwh for accountant in accountants if isinstance(accountant, BoundedChangeLoss)})
    released = [row for row in rows if row.state == "released"]
    if not sizes or not released:
        return
    grid = sorted({Decimal(full_wh * i // _POINTS) / 1000 for i in range(1, _POINTS + 1)})
    losses = {size: _loss(size, released, publication) for size in {*grid, *sizes}}
    size_texts = ", ".join(f"{exact_text(size)} kWh: {format_rounded_up(losses[size])}" for size in sizes)
    description = f"At most, of any one day. {size_texts}; any size: {format_rounded_up(losses[grid[-1]])}."
    layers: list[Line | Marks] = [
        Line("epsilon", [float(size) for size in grid], [losses[size] for size in grid], dots=False),
        Marks("sizes of the statement", [float(size) for size in sizes if size <= grid[-1]]),
    ]
    x, y = linear_axis([0.0, float(grid[-1])]), linear_axis([0.0, losses[grid[-1]]], zero=True)
    title = "What a day says of a change, by its size in kWh"
    yield chart(title, description, layers, x=x, y=y, y_title="epsilon", height=170)
    table_sizes = sorted({*sizes, *grid[_POINTS // _MAX_ROWS - 1 :: _POINTS // _MAX_ROWS]})
    yield table(
        "The same in numbers: epsilon at most, of any one day",
        ("a change of one home's use by at most, kWh", "epsilon"),
        [(exact_text(size), format_rounded_up(losses[size])) for size in table_sizes],
    )


def _loss(size: Decimal, rows: Sequence[ReleaseRecord], publication: Publication) -> float:
    [bound] = BoundedChangeLoss(size, publication).figures(rows, None, None)
    return to_float(bound.value or 0)
