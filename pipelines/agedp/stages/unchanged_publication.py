"""Whether the release folder is published already: same ledger, same software and run file, same files.

The files of a release folder follow from the ledger, the run file, the roster's counts, the household register and the
versions of the software. If none of them has changed since the last complete publication, and no file of the folder,
publishing again would write the same bytes; so it is left out.

Decisions.

* A folder at a URL is always published again: other machines may write there, and only reading it back shows it.
* A run that has read the ledger completely publishes in any case. So once a month (`ledger_checkpoint`) every byte of
  the folder is compared with the ledger, whatever times of change say: closed months of the layout "monthly" by the
  SHA-256 in SHA256SUMS, whose own the ledger has, and all other files with what the rows give.
* Where it cannot be told whether something has changed, the folder is published again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version

from agedp.internal_records.publication_record import digest_of_file, record_of, save_publication
from agedp.ledger_session import LedgerSession
from agedp.release_folder.release_folder import SUMS
from agedp.statement_facts import SOFTWARE
from agedp_data.datasets.zone_changes import tzdata_version


def is_published(session: LedgerSession) -> bool:
    """Return whether the release folder is as the last complete publication left it, and would be written so again."""
    ledger, publication = session.open_ledger, session.publication
    return (
        publication is not None
        and not ledger.is_read_completely
        and session.run.roster.file_digest != ""  # a roster of no file
        and publication.population == session.population
        and publication.ledger_head == ledger.head()
        and publication.is_of_folder(session.run.release_folder, sums=SUMS)
        and publication.facts == _digest_of_facts(session)
    )


def note_publication(session: LedgerSession, *, origin_head: str, ledger_head: str) -> None:
    """Record a complete publication of a folder on this machine.

    Args:
        session: the session.
        origin_head: the head that the files name.
        ledger_head: the head of the ledger after their statement was stored.
    """
    if session.remote_folder is None:
        record = record_of(
            session.run.release_folder,
            sums=SUMS,
            ledger_head=ledger_head,
            origin_head=origin_head,
            population=session.population,
            facts=_digest_of_facts(session),
        )
        save_publication(session.run.paths.publication, record)


def _digest_of_facts(session: LedgerSession) -> str:
    """Return the digest of what the files of a release folder depend on beside the ledger."""
    run, paths = session.run, session.run.paths
    facts = {
        "software": {name: version(name) for name in SOFTWARE},
        "tzdata": tzdata_version(),
        "run file": repr(run.run_file),
        "model": "" if session.model is None else session.model.id,
        "roster": run.roster.file_digest,
        "released rosters": digest_of_file(paths.roster_history),
        "register": _register_state(session),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _register_state(session: LedgerSession) -> Mapping[str, str]:
    """Return what the household register knows, as texts; the account of the population follows from it."""
    accounts = session.accounts
    if accounts is None:
        return {}
    with accounts.place.register() as register:
        if not register.exists():
            return {}
        return register.read(
            lambda rows: {
                "sources": repr(rows.sources()),
                "draws": hashlib.sha256(repr(rows.draws()).encode()).hexdigest(),
                "meta": repr(sorted(rows.meta().items())),
            }
        )
