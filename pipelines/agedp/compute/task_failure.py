"""The error of a task, as the value that the task returns."""

from __future__ import annotations

from dataclasses import dataclass

from agedp_data.errors import AgedpError


@dataclass(frozen=True, slots=True)
class Failure:
    """The error of a task, returned instead of raised."""

    error: AgedpError | None
    trace: str

    def raise_error(self) -> None:
        """Raise the error of the task."""
        if self.error is not None:
            raise self.error
        raise TaskFailed(self.trace)


class TaskFailed(RuntimeError):
    """A bug inside a task; the traceback is text without values."""
