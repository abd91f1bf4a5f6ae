"""Error classes, one per thing that a caller can do about it.

An error has two texts. `str(error)` is public: it may be logged, stored by Prefect or sent to a worker, and names no
reading, household or input file. `error.private` is the line for the terminal and the confidential folder, which may
name the file. Code that prints an error without a choice prints the public text.
"""

from __future__ import annotations


class AgedpError(Exception):
    """An error that the user, not the programmer, can correct; `exit_status` is the exit status of the command."""

    exit_status = 2

    def __init__(self, public: str, *, private: str | None = None) -> None:
        super().__init__(public)
        self.private = public if private is None else private

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), str(self), self.private)


def _restore(kind: type[AgedpError], public: str, private: str) -> AgedpError:
    return kind(public, private=private)


class InputError(AgedpError):
    """An input file or roster that cannot be parsed; nothing was drawn."""


class UnreadableFile(InputError):
    """An input file whose content cannot be parsed: not a text, without a known header, or a broken archive.

    Such a file can be rejected as a whole; every other `InputError` about a file means that the system did not return
    it.
    """


class PreflightFailed(InputError):
    """Input files that make a first release pointless; nothing was drawn."""


class Unavailable(InputError):
    """A disk, network or service did not answer; the same call may succeed later."""


class RunFileError(AgedpError):
    """A run file with an unknown or impossible setting."""


class ChainError(AgedpError):
    """A matrix, curve or loss for which the requested bound does not exist."""


class Busy(AgedpError):
    """Another run holds a resource that this one needs, and does not release it; nothing was drawn."""

    exit_status = 3


class LedgerError(AgedpError):
    """The ledger cannot be used in its present state."""

    exit_status = 3


class Refused(LedgerError):
    """A release that the promise does not permit."""


class ContractChanged(LedgerError):
    """The run file differs from the contract that the ledger registered."""


class LedgerBehind(LedgerError):
    """The ledger is shorter than what was already published from it."""
