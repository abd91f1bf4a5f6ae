"""`--protect SPAN --epsilon E` and `--notion NOTION --epsilon E`: the deciding keys of a run file, from two answers.

    agedp init 'incoming/*.csv' --protect month --epsilon 5
    agedp sanitise 'incoming/*.csv' --out 2013 --notion temporal --epsilon 2 --kernel days.csv --basis 'open data'

What is protected and its epsilon are typed; nothing has a default that decides how much is protected. What follows is
written into the run file, each key with a sentence why. Of a span these are the notion and its keys
(`advisor.promise_of`) and the shortest rows that are fit, or else rough. Of a notion E is the epsilon that it bounds
(`NotionText.epsilon_key`). The clamp is that with the smallest error by the yardstick. Every option that is given stays
as it is given.

Decisions:

* What publishes something without noise, or accepts it, is typed all the same, and so are all further figures of
  privacy, the step of an estimated chain, on which a bound depends most (`_TYPED`), and the keys of a notion that say
  what it protects (`NotionText.typed`).
* Of a notion no day loses more than E by itself, unless --max-day-epsilon is given. There is no second figure.
* "today" is age-dependent: an archive is refused, because in it a bound about the whole period is hardly below the sum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from agedp.budget import ReleaseTerms
from agedp.planning.advisor import EVERY, PROTECTED, AdviceRow, Asked, Protected, advised_clamps, promise_of, row_for
from agedp.setup.run_file_draft import DraftPaths, FileFacts, RunFileDraft, draft, flag_of, load_decided, notion_of
from agedp.setup.run_file_options import COMMENTS, SERIES, Key, OptionValues, quoted, toml_text
from agedp_data import yardstick
from agedp_data.config import RunFile
from agedp_data.config.model_section import DeclaredModel
from agedp_data.config.output import FEWEST_HOUSEHOLDS
from agedp_data.epsilon import exact_text
from agedp_data.errors import RunFileError
from agedp_data.messages import check_one_of, percent_text
from agedp_data.model import read_model
from agedp_data.roster import RosterCounts

SPAN: Final[Key] = ("protect", "span")
EPSILON: Final[Key] = ("protect", "epsilon")
DELTA: Final[Key] = ("protect", "delta")
_OF_NOTION: Final[Key] = ("promise", "epsilon")
"""`--epsilon` without `--protect`: it is about what the notion bounds."""
_DAY_CAP: Final[Key] = ("promise", "max_day_epsilon")
_TOTAL: Final[Key] = ("promise", "epsilon_total")
_NOTION: Final[Key] = ("promise", "notion")
_MODEL_KEYS: Final = (
    "step",
    "publish",
    "selection_epsilon",
    "coverage",
    "failure_probability",
    "level",
    "basis",
    "accept_unverified_model",
)
_TYPED: Final = {*(("model", key) for key in _MODEL_KEYS), ("schedule", "rehearsal_on")}
ABOUT: Final[Mapping[str, str]] = {
    "day": "one day of one household; the losses of several days add up, without a limit",
    "week": "any 7 days of one household",
    "month": "any 31 days of one household",
    "year": "any 366 days of one household",
    "all": "all days of one household",
    "today": "what old days say about one household's present day, under the model",
}
"""What each span of `--protect` protects, in words."""


def is_asked(options: OptionValues) -> bool:
    """Return whether the options say what is protected, or with which epsilon: the other keys then follow."""
    return SPAN in options or _OF_NOTION in options


def decide(
    facts: FileFacts, options: OptionValues, roster: RosterCounts, *, paths: DraftPaths, base: Path, today: date
) -> RunFileDraft:
    """Return the draft for what is asked: decided, but for what must be typed and for columns that are left open.

    Raises:
        RunFileError: a span or epsilon that is not one, an option that the promise writes itself, or a span that these
            files cannot protect; the message says what to do instead.
    """
    run = load_decided(provisional(facts, options, paths=paths, base=base).with_proposals(), base=base)
    every: str = EVERY[0]
    if SPAN not in options:
        given, reasons = _of_notion(options), _reasons_of_notion(options)
        clamps = _advised_clamps(run, given, roster, today)
    else:
        protected, epsilon, delta = _asked(options)
        given, row = _without_answers(options), None
        if protected != "today":
            asked = Asked(protected, epsilon, delta, given.get((SERIES, "every"), "").strip('"'), _clamps(given))
            row = row_for(ReleaseTerms(run), roster, today, asked)
            run, every = row.run, row.every
        keys = promise_of(run, protected, epsilon, delta=delta, every=every)
        given = {**{("promise", key): _toml(value) for key, value in keys.items()}, **given}
        reasons = _reasons_of_span(protected, epsilon, delta, row)
        if row is None:
            run = load_decided(_decided(draft(facts, given, paths=paths, base=base), given).with_proposals(), base=base)
        clamps = _advised_clamps(run, given, roster, today) if row is None else row.clamps_kwh
    if clamps:
        given = {**_series_keys(every, clamps), **given}
        reasons |= _reasons_of_clamps(clamps)
    drafted = _decided(draft(facts, given, paths=paths, base=base), given)
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
    if SPAN not in options:
        given = _of_notion(options)
    else:
        protected, *_ = _asked(options)
        given = _without_answers(options)
        free = ("accept", "age_days", *(["max_day_epsilon"] if protected == "today" else []))
        own = [key for key in given if key[0] == "promise" and key[1] not in free]
        if own:
            written = ", ".join("--" + key.replace("_", "-") for _, key in own)
            raise RunFileError(f"--protect {protected} writes the promise by itself; remove {written}, or --protect")
        if protected == "today" and given.get(("schedule", "mode"), quoted("archive")) == quoted("archive"):
            raise RunFileError(
                "--protect today is about days that are published late. In an archive the bound about the whole period "
                "is hardly below the sum of all days. Give --mode live, or protect month, year or all; --notion "
                "age-dependent states the bound of an archive and promises each day alone"
            )
        given[_NOTION] = quoted("age-dependent" if protected == "today" else "classical")
        if protected == "today":
            given["promise", "risk"] = options[EPSILON]
    return _decided(draft(facts, given, paths=paths, base=base), given)


def _without_answers(options: OptionValues) -> dict[Key, str]:
    return {key: toml for key, toml in options.items() if key[0] != SPAN[0]}


def _of_notion(options: OptionValues) -> dict[Key, str]:
    """Return the options with the epsilon of the notion under its own key, and with the caps that follow from it.

    Raises:
        RunFileError: no notion, no number, or the notion's own key beside --epsilon.
    """
    rest = {key: toml for key, toml in options.items() if key != _OF_NOTION}
    epsilon = exact_text(_number(options, _OF_NOTION, "--epsilon"))
    if _NOTION not in options:
        raise RunFileError(f"--epsilon {epsilon}: give --protect or --notion, which say what it is about")
    if (notion := notion_of(options)) is None:
        return rest  # the draft names the nearest one
    key = ("promise", notion.TEXT.epsilon_key)
    if key in rest:
        raise RunFileError(f"--epsilon is {flag_of(key)} under --notion {notion.name}; give one of the two")
    return {key: epsilon, _DAY_CAP: epsilon, _TOTAL: quoted("unlimited"), **rest}


def _asked(options: OptionValues) -> tuple[Protected, Decimal, Decimal | None]:
    span = json.loads(options[SPAN])
    check_one_of("--protect", span, PROTECTED, RunFileError)
    protected: Protected = span
    if EPSILON not in options:
        raise RunFileError(f"--protect {span} needs --epsilon: the loss about {ABOUT[protected].partition(';')[0]}")
    delta = _number(options, DELTA, "--delta", limit=1) if DELTA in options else None
    return protected, _number(options, EPSILON, "--epsilon"), delta


def _number(options: OptionValues, key: Key, flag: str, *, limit: int = 1000) -> Decimal:
    text, number = options[key].strip('"'), Decimal(0)
    with suppress(InvalidOperation):
        number = Decimal(text)
    if not 0 < number < limit:
        raise RunFileError(f"{flag} {text}: must be a number between 0 and {limit:,}")
    return number


def _decided(drafted: RunFileDraft, given: OptionValues) -> RunFileDraft:
    """Return the draft with its proposals, but for what must be typed and for columns of a table."""
    notion = notion_of(given)
    typed = {("promise", key) for key in ([] if notion is None else notion.TEXT.typed)}
    columns = {key for key in drafted.undecided if key[0] == "input.columns"}
    return drafted.with_proposals(but=_TYPED | typed | columns)


def _clamps(given: OptionValues) -> tuple[Decimal, ...]:
    """Return the clamps that are given; () without any, or where the loader of run files refuses them."""
    with suppress(KeyError, InvalidOperation):
        return tuple(Decimal(part.strip()) for part in given[SERIES, "clamp_kwh"].strip("[]").split(","))
    return ()


def _advised_clamps(run: RunFile, given: OptionValues, roster: RosterCounts, today: date) -> tuple[Decimal, ...]:
    """Return the clamps of a mean under the promise of a run file; () where they, or their shares, are given."""
    if {(SERIES, "clamp_kwh"), (SERIES, "share")} & given.keys():
        return ()
    model = read_model(run) if isinstance(run.model, DeclaredModel) else None
    return advised_clamps(ReleaseTerms(run, None if model is None else model.leakage_bound), roster, today)


def _series_keys(every: str, clamps: Sequence[Decimal]) -> dict[Key, str]:
    texts = [exact_text(clamp) for clamp in clamps]
    keys = {(SERIES, "clamp_kwh"): texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"}
    if len(texts) > 1:
        keys[SERIES, "share"] = f"[{', '.join(str(share) for _, _, share in yardstick.layers())}]"
    return keys if every == EVERY[0] else {**keys, (SERIES, "every"): quoted(every)}


def _toml(value: Any) -> str:  # noqa: ANN401  (any value of [promise])
    return exact_text(value) if isinstance(value, Decimal) else toml_text(value)


def _reasons_of_span(
    protected: Protected, epsilon: Decimal, delta: Decimal | None, row: AdviceRow | None
) -> dict[Key, str]:
    """Return why each key is as it is."""
    asked = f"--epsilon {exact_text(epsilon)}: the loss about {ABOUT[protected]}"
    reasons = {
        _NOTION: f"--protect {protected}: {ABOUT[protected]}",
        ("promise", "epsilon_per_window"): asked,
        ("promise", "window_days"): f"--protect {protected}",
        ("promise", "risk"): asked,
        _DAY_CAP: "no day has more, whatever else happens",
        ("promise", "spend"): "each day has an equal part of the window"
        if row is None or row.every == EVERY[0]
        else "each row has an equal part for the rows that a window touches",
        _TOTAL: asked if protected == "all" else "all days together have no limit",
        ("promise", "epsilon_per_day"): asked if protected == "day" else "an equal part of all rows",
        ("population", "min_households"): f"fewer are never published: half of them, {FEWEST_HOUSEHOLDS} to 100",
    }  # fmt: skip
    if delta is not None:
        reasons["promise", "delta"] = "--delta: of the bound over several days"
    if row is not None:
        fit = "" if row.error is None else f": {row.error.text}"
        reasons[SERIES, "every"] = f"the shortest rows that are of use: {row.verdict.purpose}{fit}"
    return reasons


def _reasons_of_notion(options: OptionValues) -> dict[Key, str]:
    """Return why the keys are as they are that follow from the epsilon of a notion."""
    notion, epsilon = notion_of(options), options[_OF_NOTION].strip('"')
    epsilon_key = _OF_NOTION if notion is None else ("promise", notion.TEXT.epsilon_key)
    reasons = {
        epsilon_key: f"--epsilon {epsilon}: {COMMENTS.get(epsilon_key, 'what this notion bounds')}",
        _DAY_CAP: f"--epsilon {epsilon}: no day has more by itself, whatever a model, age or discount says",
        _TOTAL: "the sum of the losses of all days has no limit of its own",
    }
    return {key: reason for key, reason in reasons.items() if key == epsilon_key or key not in options}


def _reasons_of_clamps(clamps: Sequence[Decimal]) -> dict[Key, str]:
    cut = yardstick.cut_by(float(max(clamps)))
    return {
        (SERIES, "clamp_kwh"): "the smallest interval and cut together; of the yardstick it cuts "
        f"{percent_text(cut.days)} of the days, "
        f"{percent_text(cut.energy)} of the energy ({yardstick.yardstick_name()})",
        (SERIES, "share"): "share of each layer of the clamp",
    }
