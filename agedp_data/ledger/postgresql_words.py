"""Explanations of PostgreSQL's errors for the user. The server's own text is never quoted: it may contain values."""

from __future__ import annotations

from typing import Final

from agedp_data.ledger.database import BUSY, REPAIR_HINT

_LOST_CODES: Final = ("08", "57P01", "57P02", "57P03")
_CONFLICT_CODES: Final = ("40001", "40P01")

_LOST_TEXT: Final = (
    "the connection to the server was lost again and again; what was stored is read before anything is drawn, so "
    "start again when the server is there"
)
_DAMAGED: Final = f"its tables are not those of a ledger, or are damaged; {REPAIR_HINT}"

_EXPLANATIONS_BY_CODE: Final = {
    "55P03": BUSY,
    **dict.fromkeys(_CONFLICT_CODES, "another transaction came in between again and again; start again"),
    **dict.fromkeys(_LOST_CODES, _LOST_TEXT),
    "53100": "the server's disk is full; nothing was stored",
    "53": "the server has no room or no connections left; nothing was stored",
    "57014": "the server stopped a statement that took longer than it permits; nothing was stored",
    "25006": "it cannot be written: the server, the database or the role is read-only",
    "0A000": "it cannot be written: the server is a standby; name its primary",
    "42501": "the role lacks a right; docs/postgresql.md names those that it needs",
    "42": _DAMAGED,
    "3F": _DAMAGED,
    "XX": f"the server finds the tables damaged; {REPAIR_HINT}",
    "58": "the server's disk fails to read or write; nothing was stored",
    "23": "it refused a row that does not continue it; run `agedp ledger verify`",
    "22": "it refused a text that it cannot store; nothing was stored",
}

_STARTING_TEXTS: Final = (
    *("starting up", "not yet accepting connections", "recovery mode"),
    *("closed the connection unexpectedly", "Connection reset"),  # it crashed in that very moment
)

_UNREACHABLE_TEXTS: Final = ("shutting down", "Connection refused", "No such file")

_EXPLANATIONS_BY_TEXT: Final = (
    ("password authentication failed", "the server refuses the password; check ~/.pgpass (mode 0600) or PGSERVICE"),
    ("no password supplied", "the server asks for a password; put it into ~/.pgpass (mode 0600)"),
    ("authentication failed", "the server does not believe who this is; check the role and pg_hba.conf"),
    ("no pg_hba.conf entry", "the server does not let this role in from here; check pg_hba.conf"),
    ('role "', "the server knows no such role, or it may not log in; create it (docs/postgresql.md)"),
    ('database "', "the server has no such database; create it (docs/postgresql.md)"),
    ("definition of service", "the service is not in ~/.pg_service.conf"),
    ("connection option", "the address has an option that the driver does not know"),
    ("permission denied for database", "the role may not connect to the database; grant it CONNECT"),
    *((part, "the server is starting, or recovers from a crash; start again in a moment") for part in _STARTING_TEXTS),
    ("shutting down", "the server is shutting down; start again when it is back"),
    ("too many", "the server has no connections left; start again later"),
    ("connection slots", "the server has no connections left; start again later"),
    ("could not translate host name", "there is no server of that name; check the address"),
    ("failed to resolve host", "there is no server of that name; check the address"),
    ("Name or service not known", "there is no server of that name; check the address"),  # psycopg 3.2
    ("timeout expired", "the server does not answer; check the address and the network"),
    ("SSL", "the server and this side do not agree on encryption; check sslmode"),
    ("Connection refused", "no server listens there; check host and port, and whether it runs"),
    ("No such file", "no server listens there; check host and port, and whether it runs"),
)
"""Explanations by a part of libpq's message: a connection that fails has no error code."""


def explain_sqlstate(error: BaseException | None) -> str:
    """Return the meaning of a statement's error, by its SQLSTATE."""
    code = str(getattr(error, "sqlstate", None) or ("08" if _is_lost(error) else "22"))
    text = next(
        (_EXPLANATIONS_BY_CODE[code[:length]] for length in (5, 2) if code[:length] in _EXPLANATIONS_BY_CODE), None
    )
    return text or f"the server refused ({code}); nothing was stored"


def explain_connection_error(error: BaseException) -> str:
    """Return why a connection failed, by libpq's message."""
    message = str(error)
    return next(
        (text for part, text in _EXPLANATIONS_BY_TEXT if part in message),
        "there is no connection to the server; try `psql` with the same address",
    )


def is_starting_up(error: BaseException) -> bool:
    """Return whether the server is starting and will accept connections soon."""
    return any(part in str(error) for part in _STARTING_TEXTS)


def is_unreachable(error: BaseException) -> bool:
    """Return whether no server listens at the address, as during a restart."""
    return any(part in str(error) for part in _UNREACHABLE_TEXTS)


def is_retryable(error: BaseException | None) -> bool:
    """Return whether a retry may succeed: the server aborted the transaction, or the connection was lost."""
    return _is_lost(error) or getattr(error, "sqlstate", None) in _CONFLICT_CODES


def _is_lost(error: BaseException | None) -> bool:
    code = getattr(error, "sqlstate", None)
    if code is not None:
        return str(code).startswith(_LOST_CODES)
    return type(error).__name__ in ("OperationalError", "InterfaceError", "AdminShutdown", "CrashShutdown")
