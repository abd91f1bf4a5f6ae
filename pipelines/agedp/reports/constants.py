"""Charts whose values never change become one sentence with the number."""

from __future__ import annotations

from collections.abc import Iterable


def constant_value(values: Iterable[float]) -> float | None:
    """Return the value that all of these equal; None if they differ or there are none.

    >>> constant_value([0.5, 0.5]), constant_value([0.5, 0.6]), constant_value([])
    (0.5, None, None)
    """
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
