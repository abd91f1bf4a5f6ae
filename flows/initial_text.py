"""What `agedp init` prints: what was read off the files, the noise of each notion, and what is to be decided."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from agedp_data.shown import shown
from flows.words import counted, four_digits
from pipelines.init import Made, missing_options
from pipelines.noise_table import NoiseTable, noise_table

_WIDTH = 118


def initial_json(made: Made) -> dict[str, Any]:
    """Return what was written for machines; no name of an input file is in it."""
    return {
        "run_file": str(made.run_file),
        "roster": str(made.roster),
        "dataset": made.facts.dataset,
        "households": made.households,
        "first_day": made.facts.first.isoformat(),
        "last_day": made.facts.last.isoformat(),
        "to_decide": [f"[{table}] {key}" for table, key in made.undecided],
    }


def initial_lines(made: Made) -> list[str]:
    """Return what was read, proposed and left to decide, for people."""
    facts = made.facts
    return [
        f"{facts.dataset}: {counted(facts.households, 'household')}, {counted(facts.days, 'day')} from {facts.first} "
        f"to {facts.last}",
        *_column_lines(made),
        "",
        *noise_lines(noise_table(facts, made.given, made.read_roster())),
        "",
        *_age_lines(made),
        *_next_lines(made),
        f"{made.roster}: {counted(made.households, 'household')}, read off the files; correct it from your records",
    ]


def _column_lines(made: Made) -> Iterator[str]:
    if made.long is None:
        return
    yield "Long table. The first rows show these columns:"
    for line in made.draft.tables["input.columns"]:
        state = "" if line.decided else "to decide"
        reason = made.long.reasons.get(line.key, "given")
        yield f"   {line.key:12s} {shown(line.toml, 34):34s} {state:10s} {reason}".rstrip()


def noise_lines(table: NoiseTable) -> Iterator[str]:
    """Yield the noise of each notion, a column for each pair of epsilon and clamp."""
    fewest, most = table.households
    households = counted(most, "household") if fewest == most else f"{fewest:,} to {most:,} households"
    yield f"Noise of a daily mean, standard deviation in kWh per household, {households}, {counted(table.days, 'day')}."
    if not table.given:
        yield "Examples of epsilon and clamp; nothing is decided."
    heads = [f"e={epsilon:f}, {clamp:f} kWh" for epsilon, clamp in table.pairs]
    yield f"   {'notion':14s}" + "".join(f"{head:>18s}" for head in heads) + "   promise"
    for row in table.rows:
        figures = "".join(f"{_kwh(noise):>18s}" for noise in row.noise_kwh)
        start = f"   {row.notion:14s}{figures}   "
        yield from textwrap.wrap(row.words, _WIDTH, initial_indent=start, subsequent_indent=" " * len(start))
    yield (
        "   Noise is proportional to clamp_kwh and inversely proportional to epsilon and to the number of households."
    )


def _kwh(noise: float | None) -> str:
    return "no day" if noise is None else four_digits(noise)


def _age_lines(made: Made) -> list[str]:
    if not (made.is_old_archive and made.credits_age):
        return []
    years = made.age_days / 365.25
    text = (
        f"The newest day is {years:.1f} years old. In an archive every day is published at such an age, where a bound "
        "on what is left of a loss is trivially small and means nothing. `--mode rehearsal` publishes each day "
        "--age-days after its end, by a simulated clock."
    )
    return [*textwrap.wrap(text, _WIDTH), ""]


def _next_lines(made: Made) -> list[str]:
    if made.undecided:
        missing = missing_options(made.undecided, made.given)
        text = (
            f"{made.run_file}: written. To decide: {missing}. Give them as options, or edit the lines that begin with "
            '"# decide:"'
        )
        lines = textwrap.wrap(text, _WIDTH, break_on_hyphens=False, subsequent_indent="   ")
        return [*lines, f"   Next: `agedp plan {made.run_file}`"]
    model = '"estimated"' in [line.toml for line in made.draft.tables.get("model", ()) if line.key == "source"]
    commands = ["calibrate"] * model + ["plan", "run"]
    steps = ", then ".join(f"`agedp {command} {made.run_file}`" for command in commands)
    return [f"{made.run_file}: written, nothing is left to decide. Next: {steps}"]
