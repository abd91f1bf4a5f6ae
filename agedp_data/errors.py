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
    """A file or folder that cannot be parsed, read or written. The user corrects or replaces it.

    Names of files are in the private text only; the public text has labels such as "input 12 of 40".
    """


class UnreadableFile(InputError):
    """An input file whose content cannot be parsed: not a text, without a known header, or a broken archive.

    Such a file can be rejected as a whole; every other `InputError` about a file means that the system did not return
    it.
    """


REFUSED_INPUT = (
    "what the input contains would make a first release wrong or meaningless, so it is refused and nothing was drawn; "
    "the findings are confidential: of a run the terminal and preflight.json in the confidential folder name them, in "
    "Python a note below the error"
)
"""The public text of every refusal of a first release that readings cause: which cause it is depends on them."""


class PreflightFailed(InputError):
    """Input that makes a first release wrong or meaningless; nothing was registered or drawn.

    Raised before the first release only, because later refusals would depend on readings. All have one public text.
    """

    def __init__(self, public: str = REFUSED_INPUT, *, private: str | None = None) -> None:
        super().__init__(public, private=private)


class Unavailable(InputError):
    """A disk, network or service did not answer; nothing was drawn.

    The same call may succeed later, so a scheduler may retry it.
    """


class RunFileError(AgedpError):
    """A run file with an unknown or impossible setting."""


class ChainError(AgedpError):
    """A matrix, curve or loss for which the requested bound does not exist."""


class Busy(AgedpError):
    """Another run holds a resource that this one needs, and does not release it; nothing was drawn.

    Wait for the other run to end and start again.
    """

    exit_status = 3


class LedgerError(AgedpError):
    """The ledger cannot be used in its present state: damaged, closed, of a newer version, or unreachable.

    The message states the remedy.
    """

    exit_status = 3


class Refused(LedgerError):
    """A release that the promise does not permit; it is neither drawn nor stored.

    Days that were released before stay published.
    """


class ContractChanged(LedgerError):
    """The run file differs from the contract that the ledger registered; nothing was drawn.

    Undo the change, or record a permitted one by `agedp ledger amend`.
    """


class LedgerBehind(LedgerError):
    """The ledger lacks rows that were already published from it: an older copy, or a second copy is in use.

    Nothing of this run is published. Put back the newest ledger, or recover it from the newest release folder.
    """
