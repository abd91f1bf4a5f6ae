"""The error of a task, as the value that the task returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agedp_data.errors import AgedpError

NO_MEMORY: Final = (
    "this step needs more memory than the process can have. Lower [engine] block_mib or workers, raise the limit, or "
    "check the size to which compressed input files expand"
)


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
