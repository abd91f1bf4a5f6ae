"""Result of a verification -> what `agedp verify` prints: what was compared, and what was not.

The data holder's ledger keeps the checksum of every file that was published, so a folder that equals it is as it was
published. Without a ledger a folder is compared with its own ledger rows, and nothing more is said of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from agedp.release_verification import Verification


def verification_lines(folder: str | Path, verification: Verification, *, has_ledger: bool) -> list[str]:
    """Return the result as lines for the terminal.

    Args:
        folder: the release folder, as it was named.
        verification: of the folder.
        has_ledger: whether the folder equals a ledger.
    """
    if has_ledger:
        return [f"{folder}: as it was published, and it equals the ledger"]
    return [
        f"{folder}: what was compared follows from its ledger rows",
        f"compared: {', '.join(verification.compared)}",
        f"not compared: {'; '.join(verification.not_compared)}",
    ]


def verification_json(verification: Verification, *, has_ledger: bool) -> dict[str, list[str]]:
    """Return the result as JSON; compared with a ledger, nothing of a folder is left out."""
    not_compared = () if has_ledger else verification.not_compared
    return {"compared": list(verification.compared), "not_compared": list(not_compared)}
