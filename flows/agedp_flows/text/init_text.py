"""Output of `agedp init`: facts about the input files, the advice, and the keys to decide."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

from agedp.setup.advice import advise_draft
from agedp.setup.init_run_file import BY, InitialFiles, missing_options
from agedp.setup.run_file_options import SERIES
from agedp_data.datasets.validation import INTERVAL_MINUTES
from agedp_data.errors import AgedpError
from agedp_data.messages import count_text, escape_text
from agedp_flows.text.advice_text import advice_lines
from agedp_flows.text.screen import heading, next_step, screen_width, table_lines

_WIDTH = 118


def initial_json(initial: InitialFiles) -> dict[str, Any]:
    """Return what was written as JSON, without names of input files."""
    return {
        "run_file": str(initial.run_file),
        "roster": str(initial.roster),
        "dataset": initial.facts.dataset,
        "households": initial.households,
        "first_day": initial.facts.first.isoformat(),
        "last_day": initial.facts.last.isoformat(),
        "to_decide": [f"[{table}] {key}" for table, key in initial.undecided],
    }


def initial_lines(initial: InitialFiles) -> list[str]:
    """Return the facts, proposals and undecided keys as lines for the terminal."""
    facts, households = initial.facts, count_text(initial.households, "household")
    number, days = count_text(facts.households, "household"), count_text(facts.days, "day")
    roster = f"{households}, read off the files; correct it from your records"
    if BY in initial.options:  # groups are in no input file, so that the roster existed before
        roster = "kept as it is"
    return [
        f"{facts.dataset}: {number}, {days} from {facts.first} to {facts.last}",
        *_column_lines(initial),
        "",
        *_advice(initial),
        "",
        *_period_lines(initial),
        *_age_lines(initial),
        *_decision_lines(initial),
        f"{initial.roster}: {roster}",
        *_next_lines(initial),
    ]


def _column_lines(initial: InitialFiles) -> Iterator[str]:
    if initial.long is None:
        return
    yield heading("Long table. The first rows show these columns:")
    rows = []
    for line in initial.draft.tables["input.columns"]:
        reason = initial.long.reasons.get(line.key, "given")
        rows.append((line.key, escape_text(line.toml, 34), "" if line.decided else "to decide", reason))
    minutes = initial.facts.interval_minutes
    if minutes != INTERVAL_MINUTES:
        reason = f"most timestamps of a household lie {minutes} minutes apart: [input] interval_minutes"
        rows.append(("interval", f"{minutes} minutes", "", reason))
    yield from table_lines(["key", "value", "", "reason"], rows, indent="   ")
    if initial.first:
        yield heading("The first rows are then read as:")
        readings = []
        for of in initial.first:
            end, kwh = of.begin + timedelta(minutes=of.minutes), of.reason if of.kwh is None else f"{of.kwh:.6g}"
            readings.append((escape_text(of.household, 34), f"{of.begin:%Y-%m-%d %H:%M}", f"{end:%H:%M}", kwh))
        yield from table_lines(["household", "from", "to", ">kWh"], readings, indent="   ")


def _advice(initial: InitialFiles) -> Iterator[str]:
    """Yield the advice; nothing where the proposals of undecided keys do not go together, as of levels of groups."""
    with suppress(AgedpError):
        yield from advice_lines(advise_draft(initial.draft, initial.read_roster(), base=initial.run_file.parent))


def _period_lines(initial: InitialFiles) -> Iterator[str]:
    """Yield what a row is about where the promise chose it, and why."""
    for line in initial.draft.tables.get(SERIES, ()):
        if line.key == "every" and (SERIES, line.key) not in initial.options:
            chosen = f"A row is about a {line.toml.strip(chr(34))}, {line.comment}. `--every day` keeps rows of days."
            yield from [*textwrap.wrap(chosen, screen_width() or _WIDTH, break_on_hyphens=False), ""]


def _age_lines(initial: InitialFiles) -> list[str]:
    if not (initial.is_old_archive and initial.credits_age):
        return []
    years = initial.age_days / 365.25
    text = (
        f"The newest day is {years:.1f} years old. In an archive every day is published at such an age, where a bound "
        "on the aged loss is trivially small and means nothing. `--mode rehearsal` publishes each day "
        "--age-days after its end, by a simulated clock."
    )
    return [*textwrap.wrap(text, _WIDTH), ""]


def _decision_lines(initial: InitialFiles) -> list[str]:
    """Return what was written, and the keys that are still to decide."""
    if not initial.undecided:
        return [f"{initial.run_file}: written, every key is decided."]
    missing = missing_options(initial.undecided, initial.options)
    text = (
        f"{initial.run_file}: written. To decide: {missing}. Give them as options, or edit the lines "
        'that begin with "# decide:"'
    )
    return textwrap.wrap(text, screen_width() or _WIDTH, break_on_hyphens=False, subsequent_indent="   ")


def _next_lines(initial: InitialFiles) -> list[str]:
    """Return the next commands; an estimated model is calibrated before them."""
    model = '"estimated"' in [line.toml for line in initial.draft.tables.get("model", ()) if line.key == "source"]
    after = "when every key is decided: " if initial.undecided else ""
    purposes = {"calibrate": f"{after}estimate the model"} if model else {}
    purposes |= {"plan": f"{'' if model else after}due days, epsilon and noise; draws nothing"}
    purposes |= {} if initial.undecided else {"run": "release what is due; the promise is then fixed"}
    file = str(initial.run_file)
    return [next_step(shlex.join(["agedp", command, file]), purpose) for command, purpose in purposes.items()]
