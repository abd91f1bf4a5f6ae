"""Handles: what Prefect receives in place of a value that must not leave this process.

Prefect may store, log or pickle the arguments and results of a task. The tasks of agedp take and return handles: for
Prefect a handle is a label, such as "sums of london-homes". Pickling one fails, so no setting of Prefect can persist
its value.
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
        """The value, in the process that created the handle."""
        return self._value

    def __repr__(self) -> str:
        return f"<{self.label}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} stays inside its process: agedp hands no value to a scheduler")
