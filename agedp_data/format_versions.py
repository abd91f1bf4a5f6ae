"""Format versions that agedp has written: of contracts, of ledger rows, of the files that hold rows.

Every released format stays readable. A newer format begins at the row that states it, on the same hash chain, and
rewrites nothing. Software that does not know a format refuses it and names the version that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FORM: Final = 2
"""The newest form of contracts and rows; form 1 is that of agedp 0.1."""
NEEDS: Final[Mapping[int, str]] = {1: "0.1", 2: "0.2"}
"""The first version of agedp that reads each form."""


def format_reader_version(version: object) -> str:
    """Return the name of the agedp that reads something whose format requires a version, or does not state one.

    >>> format_reader_version("0.5"), format_reader_version(None)
    ('agedp 0.5 or newer', 'a newer agedp')
    """
    return f"agedp {version} or newer" if isinstance(version, str) else "a newer agedp"


def format_unknown_version(subject: str, form: object, needs: object) -> str:
    """Return why something of an unknown format is refused, and what to do.

    >>> format_unknown_version("the ledger", 3, "0.5")
    'the ledger has form 3, which agedp 0.5 or newer reads; this agedp reads forms 1 to 2. Update agedp'
    """
    reader = format_reader_version(needs)
    return f"{subject} has form {form}, which {reader} reads; this agedp reads forms 1 to {FORM}. Update agedp"
