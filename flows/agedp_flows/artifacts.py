"""Keys of artifacts, and a server that does not take one: what all flows leave in Prefect has in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256

from prefect import get_run_logger


def artifact_key(kind: str, population: str) -> str:
    """Return the key of an artifact: lower-case letters, digits and dashes, different for different populations.

    >>> artifact_key("plan", "my-london-homes"), artifact_key("plan", "Haus 7")
    ('agedp-plan-my-london-homes', 'agedp-plan-haus-7-785a81')
    """
    return f"agedp-{kind}-{slug(population)}"


def slug(population: str) -> str:
    """Return a population's name in lower-case letters, digits and dashes; with a hash where the name has others."""
    plain = re.sub(r"[^a-z0-9]+", "-", population.lower()).strip("-")
    return plain if plain == population else f"{plain}-{sha256(population.encode()).hexdigest()[:6]}".strip("-")


def record(call: Callable[[], object]) -> None:
    """Hand an artifact or event to Prefect; a server that does not take it fails no run."""
    try:
        call()
    except Exception as error:
        get_run_logger().warning("Prefect did not record an artifact or event (%s).", type(error).__name__)
