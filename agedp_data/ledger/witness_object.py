"""A witness in an object store: compared and replaced by conditional writes (If-Match, If-None-Match).

A store that ignores these conditions would let two copies of a ledger write over each other. A new record is therefore
written twice more, under conditions that are false; a store that accepts either is refused.
"""

from __future__ import annotations

from typing import Any, Final

from agedp_data.datasets.filesystem import format_location, input_errors, system_at
from agedp_data.errors import InputError, LedgerError
from agedp_data.ledger.witness import WitnessState, damaged_record_error, format_state, parse_state, witness_error

_CONFLICTS: Final = frozenset(("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404", "409", "412"))
_NO_TAG: Final = f'"{"0" * 32}"'


class ObjectWitness:
    """One object, named by an s3:// URL, as a `Witness`."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def address(self) -> str:
        """Return the URL."""
        return format_location(self.url)

    def read(self) -> WitnessState | None:
        """Return the record in the object, None if the object does not exist."""
        return self._fetch()[0]

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        """Write the object on the condition that it has not changed; return whether it was written.

        Raises:
            LedgerError: the service does not answer, or it ignores conditions (tried when the record is created).
        """
        current, tag = self._fetch()
        if current != expected:
            return False
        content = format_state(state)
        if expected is not None:
            return self._put(content, IfMatch=tag)
        if not self._put(content, IfNoneMatch="*"):
            return False
        if self._put(content, IfNoneMatch="*") or self._put(content, IfMatch=_NO_TAG):
            problem = (
                "lies in a store that ignores If-Match and If-None-Match, so that two machines could both write it"
            )
            raise witness_error(LedgerError, self, f"{problem}. Name another place")
        return True

    def _fetch(self) -> tuple[WitnessState | None, str]:
        """Return the record and an entity tag read before it: a change in between makes the conditional write fail."""
        try:
            with input_errors("the witness", self.url):
                system, path = system_at(self.url)
                system.invalidate_cache()
                try:
                    tag = str(system.info(path)["ETag"])
                    content = bytes(system.cat_file(path))
                except FileNotFoundError:
                    return None, ""
            return parse_state(content), tag
        except InputError as error:
            raise LedgerError(str(error), private=error.private) from None
        except ValueError:
            raise damaged_record_error(self) from None

    def _put(self, content: bytes, **condition: str) -> bool:
        try:
            with input_errors("the witness", self.url):
                system, path = system_at(self.url)
                try:
                    system.pipe_file(path, content, **condition)
                except OSError as error:
                    if _is_conflict(error):
                        return False
                    raise
            return True
        except InputError as error:
            raise LedgerError(str(error), private=error.private) from None


def _is_conflict(error: OSError) -> bool:
    """Return whether the store refused a write because its condition did not hold."""
    cause: Any = error.__cause__
    response = getattr(cause, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return isinstance(error, FileExistsError) or str(code) in _CONFLICTS
