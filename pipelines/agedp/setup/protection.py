"""`--protect SPAN --epsilon E`: the deciding keys of a run file, from two answers and the advisor.

    agedp init 'incoming/*.csv' --protect month --epsilon 5

The span and its epsilon are typed; nothing has a default that decides how much is protected. What follows from them is
written into the run file, each key with a sentence why: the notion and its keys (`advisor.promise_of`), the shortest
rows that are fit, or else rough, and the clamp with the smallest error, both by the yardstick. Every option that is
given stays as it is given.

Decisions:

* What publishes something without noise, or accepts it, is typed all the same: publish, accept_unverified_model, and
  whether a rehearsal is on readings.
* "today" is age-dependent: an archive is refused, because in it a bound about the whole period is hardly below the sum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from agedp.budget import ReleaseTerms
from agedp.planning.advisor import EVERY, PROTECTED, AdviceRow, Asked, Protected, promise_of, row_for
from agedp.setup.run_file_draft import DraftPaths, FileFacts, RunFileDraft, draft, load_decided
from agedp.setup.run_file_options import SERIES, Key, OptionValues, quoted, toml_text
from agedp_data import yardstick
from agedp_data.epsilon import exact_text
from agedp_data.errors import RunFileError
from agedp_data.messages import percent_text
from agedp_data.roster import RosterCounts

SPAN: Final[Key] = ("protect", "span")
EPSILON: Final[Key] = ("protect", "epsilon")
DELTA: Final[Key] = ("protect", "delta")
_TYPED: Final = {("model", "publish"), ("model", "accept_unverified_model"), ("schedule", "rehearsal_on")}
ABOUT: Final[Mapping[str, str]] = {
    "day": "one day of one household; the losses of several days add up, without a limit",
    "week": "any 7 days of one household",
    "month": "any 31 days of one household",
    "year": "any 366 days of one household",
    "all": "all days of one household",
    "today": "what old days say about one household's present day, under the model",
}
"""What each span of `--protect` protects, in words."""


def decide(
    facts: FileFacts, options: OptionValues, roster: RosterCounts, *, paths: DraftPaths, base: Path, today: date
) -> RunFileDraft:
    """Return the draft for `--protect`: decided, but for what must be typed and for columns that are left open.

    Raises:
        RunFileError: a span or epsilon that is not one, an option that the promise writes itself, or a span that these
            files cannot protect; the message says what to do instead.
    """
    protected, epsilon, delta = _asked(options)
    given = {key: toml for key, toml in options.items() if key[0] != SPAN[0]}
    run = load_decided(provisional(facts, options, paths=paths, base=base).with_proposals(), base=base)
    row: AdviceRow | None = None
    if protected == "today":
        keys = promise_of(run, protected, epsilon, delta=delta)
    else:
        asked = Asked(protected, epsilon, delta, given.get((SERIES, "every"), "").strip('"'), _clamps(given))
        row = row_for(ReleaseTerms(run), roster, today, asked)
        keys = promise_of(row.run, protected, epsilon, delta=delta, every=row.every)
    given |= {("promise", key): _toml(value) for key, value in keys.items() if ("promise", key) not in given}
    if row is not None and row.clamps_kwh:
        given |= {key: toml for key, toml in _series_keys(row).items() if key not in given}
    drafted = _decided(draft(facts, given, paths=paths, base=base))
    reasons = _reasons(protected, epsilon, delta, row)
    tables = {
        table: tuple(replace(line, comment=reasons.get((table, line.key), line.comment)) for line in lines)
        for table, lines in drafted.tables.items()
    }
    return RunFileDraft(tables, drafted.notes)


def provisional(facts: FileFacts, options: OptionValues, *, paths: DraftPaths, base: Path) -> RunFileDraft:
    """Return the draft before the promise follows: its days, series and groups, and what must be typed.

    Raises:
        RunFileError: as `decide`.
    """
    protected, *_ = _asked(options)
    given = {key: toml for key, toml in options.items() if key[0] != SPAN[0]}
    own = [key for key in given if key[0] == "promise" and key[1] not in ("accept", "age_days")]
    if own:
        written = ", ".join("--" + key.replace("_", "-") for _, key in own)
        raise RunFileError(f"--protect {protected} writes the promise by itself; remove {written}, or --protect")
    if protected == "today" and given.get(("schedule", "mode"), quoted("archive")) == quoted("archive"):
        raise RunFileError(
            "--protect today is about days that are published late. In an archive the bound about the whole period is "
            "hardly below the sum of all days. Give --mode live, or --mode rehearsal, or protect month, year or all"
        )
    promise = {("promise", "notion"): quoted("age-dependent" if protected == "today" else "classical")}
    return _decided(draft(facts, {**given, **promise}, paths=paths, base=base))


def _asked(options: OptionValues) -> tuple[Protected, Decimal, Decimal | None]:
    span = json.loads(options[SPAN])
    protected = next((name for name in PROTECTED if name == span), None)
    if protected is None:
        raise RunFileError(f"--protect {span}: must be one of {', '.join(PROTECTED)}")
    if EPSILON not in options:
        raise RunFileError(f"--protect {span} needs --epsilon: the loss about {ABOUT[protected].partition(';')[0]}")
    numbers = []
    for key, flag in ((EPSILON, "--epsilon"), (DELTA, "--delta")):
        number = None
        if key in options:
            with suppress(InvalidOperation):
                number = Decimal(options[key].strip('"'))
            if number is None or not 0 < number < (1 if key == DELTA else 1000):
                limit = "1" if key == DELTA else "1,000"
                raise RunFileError(f"{flag} {options[key].strip(chr(34))}: must be a number between 0 and {limit}")
        numbers.append(number)
    return protected, numbers[0] or Decimal(0), numbers[1]


def _decided(drafted: RunFileDraft) -> RunFileDraft:
    """Return the draft with its proposals, but for what must be typed and for columns of a table."""
    columns = {key for key in drafted.undecided if key[0] == "input.columns"}
    return drafted.with_proposals(but=_TYPED | columns)


def _clamps(given: OptionValues) -> tuple[Decimal, ...]:
    """Return the clamps that are given; () without any, or where the loader of run files refuses them."""
    with suppress(KeyError, InvalidOperation):
        return tuple(Decimal(part.strip()) for part in given[SERIES, "clamp_kwh"].strip("[]").split(","))
    return ()


def _series_keys(row: AdviceRow) -> dict[Key, str]:
    clamps = [exact_text(clamp) for clamp in row.clamps_kwh]
    keys = {(SERIES, "clamp_kwh"): clamps[0] if len(clamps) == 1 else f"[{', '.join(clamps)}]"}
    if len(clamps) > 1:
        keys[SERIES, "share"] = f"[{', '.join(str(share) for _, _, share in yardstick.layers())}]"
    return keys if row.every == EVERY[0] else {**keys, (SERIES, "every"): quoted(row.every)}


def _toml(value: Any) -> str:  # noqa: ANN401  (any value of [promise])
    return exact_text(value) if isinstance(value, Decimal) else toml_text(value)


def _reasons(protected: Protected, epsilon: Decimal, delta: Decimal | None, row: AdviceRow | None) -> dict[Key, str]:
    """Return why each key is as it is."""
    asked = f"--epsilon {exact_text(epsilon)}: the loss about {ABOUT[protected]}"
    reasons = {
        ("promise", "notion"): f"--protect {protected}: {ABOUT[protected]}",
        ("promise", "epsilon_per_window"): asked,
        ("promise", "window_days"): f"--protect {protected}",
        ("promise", "risk"): asked,
        ("promise", "max_day_epsilon"): "no day has more, whatever else happens",
        ("promise", "spend"): "each day has an equal part of the window"
        if row is None or row.every == EVERY[0]
        else "each row has an equal part for the rows that a window touches",
        ("promise", "epsilon_total"): asked if protected == "all" else "all days together have no limit",
        ("promise", "epsilon_per_day"): asked if protected == "day" else "an equal part of all rows",
        ("population", "min_households"): "fewer are never published: half of them, at most 100",
    }  # fmt: skip
    if delta is not None:
        reasons["promise", "delta"] = "--delta: of the bound over several days"
    if row is None or not row.clamps_kwh:
        return reasons
    cut, fit = row.cut, "" if row.error is None else f": {row.error.text}"
    reasons[SERIES, "clamp_kwh"] = (
        f"the smallest error; of the yardstick it cuts {percent_text(cut.days)} of the days, "
        f"{percent_text(cut.energy)} of the energy ({yardstick.yardstick_name()})"
    )
    reasons[SERIES, "every"] = f"the shortest rows that are of use: {row.verdict.purpose}{fit}"
    reasons[SERIES, "share"] = "share of each layer of the clamp"
    return reasons
