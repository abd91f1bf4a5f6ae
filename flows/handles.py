"""Handles: what Prefect holds in place of a value that must stay inside this process.

Prefect may store, log or pickle whatever a task takes and returns. A task of agedp takes and returns handles: to
Prefect a handle is a label, such as "sums of london-homes". Pickling one fails, so no setting of Prefect can persist
the value behind it.
"""

from __future__ import annotations

from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class RunHandle(Generic[T]):
    """An opaque reference to a value; its label is public."""

    __slots__ = ("__weakref__", "_value", "label")  # Prefect links tasks by weak references to their results

    def __init__(self, label: str, value: T) -> None:
        self.label = label
        self._value = value

    @property
    def value(self) -> T:
        """Return the value, in the process that made the handle."""
        return self._value

    def __repr__(self) -> str:
        return f"<{self.label}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} stays inside its process: agedp hands no value to a scheduler")
