"""The forms that agedp wrote so far: of a contract, of the rows of a ledger, of the files that hold rows.

Every form that was ever released is read for ever. A newer one begins where a row says so, on the same hash chain, and
rewrites nothing. Software that does not know a form refuses it and names the version that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FORM: Final = 2
"""The newest form of contracts and rows; form 1 is that of agedp 0.1."""
NEEDS: Final[Mapping[int, str]] = {1: "0.1", 2: "0.2"}
"""The first version of agedp that reads each form."""


def format_reader_version(version: object) -> str:
    """Return which agedp reads something that says that it `needs` a version, or says nothing.

    >>> format_reader_version("0.5"), format_reader_version(None)
    ('agedp 0.5 or newer', 'a newer agedp')
    """
    return f"agedp {version} or newer" if isinstance(version, str) else "a newer agedp"


def format_unknown_version(subject: str, form: object, needs: object) -> str:
    """Return why something of an unknown form is refused, and what helps.

    >>> format_unknown_version("the ledger", 3, "0.5")
    'the ledger has form 3, which agedp 0.5 or newer reads; this agedp reads forms 1 to 2. Update agedp'
    """
    reader = format_reader_version(needs)
    return f"{subject} has form {form}, which {reader} reads; this agedp reads forms 1 to {FORM}. Update agedp"
