"""Output of `agedp init`: facts about the input files, the noise of each notion, and the keys to decide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from agedp.setup.init_run_file import InitialFiles, missing_options
from agedp.setup.noise_table import NoiseTable, noise_table
from agedp_data.datasets.validation import INTERVAL_MINUTES
from agedp_data.messages import escape_text
from agedp_flows.text.run_text import count_text, four_digits

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
    facts = initial.facts
    return [
        f"{facts.dataset}: {count_text(facts.households, 'household')}, {count_text(facts.days, 'day')} from "
        f"{facts.first} "
        f"to {facts.last}",
        *_column_lines(initial),
        "",
        *noise_lines(noise_table(facts, initial.options, initial.read_roster())),
        "",
        *_age_lines(initial),
        *_next_lines(initial),
        f"{initial.roster}: {count_text(initial.households, 'household')}, read off the files; "
        "correct it from your records",
    ]


def _column_lines(initial: InitialFiles) -> Iterator[str]:
    if initial.long is None:
        return
    yield "Long table. The first rows show these columns:"
    for line in initial.draft.tables["input.columns"]:
        state = "" if line.decided else "to decide"
        reason = initial.long.reasons.get(line.key, "given")
        yield f"   {line.key:12s} {escape_text(line.toml, 34):34s} {state:10s} {reason}".rstrip()
    minutes = initial.facts.interval_minutes
    if minutes != INTERVAL_MINUTES:
        reason = f"most timestamps of a household lie {minutes} minutes apart: [input] interval_minutes"
        yield f"   {'interval':12s} {f'{minutes} minutes':34s} {'':10s} {reason}"


def noise_lines(table: NoiseTable) -> Iterator[str]:
    """Yield the noise of each notion, a column for each pair of epsilon and clamp."""
    fewest, most = table.households
    households = count_text(most, "household") if fewest == most else f"{fewest:,} to {most:,} households"
    yield (
        f"Noise of a daily mean, standard deviation in kWh per household, {households}, "
        f"{count_text(table.days, 'day')}."
    )
    if not table.is_given_pair:
        yield "Examples of epsilon and clamp; nothing is decided."
    heads = [f"e={epsilon:f}, {clamp:f} kWh" for epsilon, clamp in table.pairs]
    yield f"   {'notion':14s}" + "".join(f"{head:>18s}" for head in heads) + "   promise"
    for row in table.rows:
        amounts = "".join(f"{_kwh(noise):>18s}" for noise in row.noise_kwh)
        start = f"   {row.notion:14s}{amounts}   "
        yield from textwrap.wrap(row.description, _WIDTH, initial_indent=start, subsequent_indent=" " * len(start))
    yield (
        "   Noise is proportional to clamp_kwh and inversely proportional to epsilon and to the number of households."
    )


def _kwh(noise: float | None) -> str:
    return "no day" if noise is None else four_digits(noise)


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


def _next_lines(initial: InitialFiles) -> list[str]:
    if initial.undecided:
        missing = missing_options(initial.undecided, initial.options)
        text = (
            f"{initial.run_file}: written. To decide: {missing}. Give them as options, or edit the lines "
            'that begin with "# decide:"'
        )
        lines = textwrap.wrap(text, _WIDTH, break_on_hyphens=False, subsequent_indent="   ")
        return [*lines, f"   Then: {_steps(initial, 'plan')}"]
    steps = _steps(initial, "plan", "run")
    return [f"{initial.run_file}: written, every key is decided. Next: {steps}"]


def _steps(initial: InitialFiles, *commands: str) -> str:
    """Return the next commands; an estimated model is calibrated before them."""
    model = '"estimated"' in [line.toml for line in initial.draft.tables.get("model", ()) if line.key == "source"]
    names = [*(["calibrate"] if model else []), *commands]
    return ", then ".join(f"`agedp {command} {initial.run_file}`" for command in names)
