"""What can go wrong, one class per thing that a caller can do about it.

An error has two texts. `str(error)` is the public one: it may be logged, stored by Prefect or sent to a
worker, and names no reading, household or input file. `error.private` is the line for the terminal and the
confidential folder, which may name the file. Whoever prints an error without thinking prints the public text.
"""

from __future__ import annotations


class AgedpError(Exception):
    """Anything that the user, not the programmer, can put right; `exit_status` is the command's."""

    exit_status = 2

    def __init__(self, public: str, *, private: str | None = None) -> None:
        super().__init__(public)
        self.private = public if private is None else private

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), str(self), self.private)


def _restore(kind: type[AgedpError], public: str, private: str) -> AgedpError:
    return kind(public, private=private)


class InputError(AgedpError):
    """An input file or roster that cannot be understood; nothing was drawn."""


class UnreadableFile(InputError):
    """An input file whose content cannot be understood: no text, no known header, or a broken archive.

    It can be set apart as a whole; every other `InputError` about a file says that the system did not give it.
    """


class PreflightFailed(InputError):
    """Input files that make a first release senseless; nothing was drawn."""


class Unavailable(InputError):
    """A disk, network or service did not answer; the same call may succeed later."""


class RunFileError(AgedpError):
    """A run file that asks for something unknown or impossible."""


class ChainError(AgedpError):
    """A matrix, curve or loss for which the asked figure does not exist."""


class Busy(AgedpError):
    """Another run holds what this one needs, and does not let go; nothing was drawn."""

    exit_status = 3


class LedgerError(AgedpError):
    """The ledger cannot be used as it stands."""

    exit_status = 3


class Refused(LedgerError):
    """A release that the promise does not permit."""


class ContractChanged(LedgerError):
    """The run file no longer says what the ledger says was promised."""


class LedgerBehind(LedgerError):
    """The ledger is shorter than what was already published from it."""
