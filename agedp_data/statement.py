"""What is claimed about a release, from run file, ledger and model's public part alone.

The dictionary holds strings, integers and lists only; amounts of epsilon are exact decimal text. The warnings
are fixed: they are the same whatever the readings say (MATHS 2b), so nothing measured leaves the house.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agedp_data.losses import epsilon
from agedp_data.notions.notion import Figure

SCHEMA = "agedp-statement-1"

PROTECTS = (
    "One household's use on one day: whether its readings of that day were these or any others changes the "
    "probability of anything released about the day by at most a factor e^epsilon, the day's figure above."
)
NOT_PROTECTED = (
    "The past: what the release of a day said about that day, it says for ever. Ageing protects the present only.",
    "Who is on the roster, and in which group, is taken as known to everybody and is not protected.",
    "Whether a household has left shows in all its later days: it is protected by the total only.",
    "What somebody knows from elsewhere (a bill, a later reading, a neighbour) is not undone.",
)
ALWAYS = (
    "The per-day, window and total figures need no assumption about how households behave; the total is what all "
    "published days together may say about one household.",
)
WITH_MODEL = (
    "Figures that depend on a model hold for an adversary who knows the stated model and nothing else about the "
    "household (no bill, no later reading), and for households independent given weather, calendar and prices, "
    "which real ones are only roughly. The per-day and total figures need none of this.",
    "On 40 London households of open data, chains of this kind forgot far faster than the households did at every age "
    "from 6 hours to 60 days. This tool does not vouch for the model.",
    "The model is of states, the release of readings: what a reading says beyond its state carries over in time too.",
)
ESTIMATED = (
    "The model was estimated from protected readings and its envelope is published without noise: one odd household "
    "decides it, exactly."
)
OVERLAP = (
    "This ledger holds other populations too; whether they share homes was not checked, and losses of shared homes add."
)
RECOVERED = (
    "The ledger was lost and recovered from a release folder: what it held beyond that folder is unknown, and losses "
    "of releases that were in nobody's folder are not counted."
)
TAKEN_OVER = (
    "The ledger goes on from a copy of one that was lost: what that one held beyond the copy is unknown, and those "
    "losses are not counted."
)
OWN_DAYS = "The model was estimated from the very days that are released here."
ROSTER_READ_OFF = "The roster was read off the input files: who has readings, and from when to when, is then public."
REHEARSAL = "REHEARSAL: the dates are simulated. This is not a publication."


@dataclass(frozen=True, slots=True)
class Facts:
    """What a statement is made of.

    `model` is the public part; `head` the hash of the ledger's newest row that is not itself a statement; `opening`
    what the promise wants said before everything else.
    """

    title: Mapping[str, str]
    contract: Mapping[str, Any]
    days: Sequence[str]
    skipped: Sequence[str]
    published_on: Sequence[str]
    figures: Sequence[Figure]
    model: Mapping[str, Any] | None
    notes: Sequence[str]
    ledger_id: str
    head: str
    version: int
    software: Mapping[str, str]
    opening: str = ""


def statement(facts: Facts) -> dict[str, Any]:
    """Return the statement as it is written to statement.json and kept in the ledger."""
    rehearsal = facts.contract["schedule"]["mode"] == "rehearsal"
    warnings = [*ALWAYS, *(WITH_MODEL if facts.model is not None else ())]
    if facts.model is not None and facts.model["source"] == "estimated":
        warnings.append(ESTIMATED)
    return {
        "schema": SCHEMA,
        "rehearsal": int(rehearsal),
        **{key: text for key, text in facts.title.items() if text},
        "population": facts.contract["population"]["name"],
        "days": {
            "first": min(facts.days, default=""),
            "last": max(facts.days, default=""),
            "released": len(facts.days),
            "skipped": list(facts.skipped),
        },
        "published": {"first": min(facts.published_on, default=""), "last": max(facts.published_on, default="")},
        "contract": facts.contract,
        "version": facts.version,
        "protects": PROTECTS,
        "not_protected": list(NOT_PROTECTED),
        "figures": [_figure(figure) for figure in _ordered(facts.figures)],
        "model": _public(facts.model),
        "warnings": warnings,
        "notes": [*filter(None, [facts.opening, REHEARSAL if rehearsal else ""]), *facts.notes],
        "ledger": {"id": facts.ledger_id, "head": facts.head},
        "software": dict(facts.software),
    }


def _ordered(figures: Sequence[Figure]) -> list[Figure]:
    """Return the figures that are always true first, each once."""
    return sorted(dict.fromkeys(figures), key=lambda figure: figure.kind != "assumption-free")


def _figure(figure: Figure) -> dict[str, str]:
    return {
        "name": figure.name,
        "epsilon": "infinite" if figure.value is None else epsilon(figure.value),
        "kind": figure.kind,
        "about": figure.about,
        "assumption": figure.assumption,
    }


def _public(model: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if model is None else {key: part for key, part in model.items() if key != "envelope"}


def markdown(claim: Mapping[str, Any]) -> str:
    """Return a statement in plain words."""
    lines = [f"# {claim.get('title') or 'Daily averages of ' + claim['population']}", ""]
    lines += [f"**{note}**\n" for note in claim["notes"]]
    days = claim["days"]
    lines += [
        f"{days['released']} days released, {days['first']} to {days['last']}, published "
        f"{claim['published']['first']} to {claim['published']['last']}"
        + (f"; {len(days['skipped'])} days skipped." if days["skipped"] else "."),
        "",
        "## What the releases say at most",
        "",
        "| figure | epsilon | about | holds |",
        "|---|---|---|---|",
        *(_line(figure) for figure in claim["figures"]),
        "",
        "## What is protected",
        "",
        claim["protects"],
        "",
        "## What is not",
        "",
        *(f"* {text}" for text in claim["not_protected"]),
        "",
        "## Read this before you rely on it",
        "",
        *(f"* {text}" for text in claim["warnings"]),
        "",
        "## What was promised",
        "",
        *(f"* {key} = {value}" for key, value in _leaves(claim["contract"])),
        "",
    ]
    if claim["model"]:
        lines += ["## The model", "", *(f"* {key} = {value}" for key, value in _leaves(claim["model"])), ""]
    lines += [f"Ledger {claim['ledger']['id'][:16]}, head `{claim['ledger']['head']}`.", ""]
    credits = [claim[key] for key in ("source", "licence", "contact") if key in claim]
    return "\n".join([*lines, *([" · ".join(credits), ""] if credits else [])])


def _line(figure: Mapping[str, str]) -> str:
    holds = "always" if figure["kind"] == "assumption-free" else f"if {figure['assumption']}"
    return f"| {figure['name']} | {figure['epsilon']} | {figure['about']} | {holds} |"


def _leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:  # noqa: ANN401  (any JSON)
    if isinstance(value, Mapping):
        return [leaf for name in value for leaf in _leaves(value[name], f"{key}.{name}" if key else name)]
    return [(key, ", ".join(map(str, value)) if isinstance(value, list | tuple) else value)]
