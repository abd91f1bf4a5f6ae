"""The facts that a privacy statement is made of, from run file, ledger and the model's public part -> the statement.

The warnings follow from the ledger and do not depend on the readings, so no measured value is published.

Decisions:

* The texts (`texts.FACTS`) are stored in the ledger and hashed: a published statement keeps its own wording, and
  `markdown` explains the terms of earlier ones. A new wording is for new statements.
* The `limit` of a bound is the upper bound over future releases: the promise's bound, or the present value where that
  is larger (tightening a bound does not undo releases). The pure bound of a span has none beside that with a promised
  delta: it depends on calibration draws and earlier caps of a day as well.
* `factor` is e^epsilon, the factor by which odds may change, rounded up; none with a delta.
* With a promised delta, what is spent, left and added is that of the total at this delta.
* Losses of other populations of the ledger are stated separately, because a ledger does not show whether they share
  households.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from agedp_data.config.contract_document import ContractDocument
from agedp_data.epsilon import exact_text, format_epsilon
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import (
    ASSUMPTION_FREE,
    CALIBRATION_DAY_BOUND,
    DAY_BOUND,
    TOTAL_BOUND,
    LossBound,
    name_at_delta,
)
from agedp_data.statement import document, note_texts
from agedp_data.statement.note_texts import FACTS, NOTES


@dataclass(frozen=True, slots=True)
class SeriesEnd:
    """End of a series: the last day that can be released, "" if there is none within a year, and the reason.

    `reason` is "promise" (its caps), "period" (the schedule's last day), "broken" (under a newer model the releases
    exceed the promise already) or "" (no end within a year). `total` is the cap of the sum, at `delta` if one is
    promised; None if unlimited.
    """

    last_day: str
    reason: Literal["promise", "period", "broken", ""]
    total: int | None
    delta: Decimal | None = None


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """The largest loss about one household of a `day` and in `total` [nano-epsilon]; the accounts count `since`."""

    day: int
    total: int
    since: str


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """Content of a statement.

    `limits` are the promise's bounds by name, None if unlimited; `model` is the public part; `head` the hash of the
    ledger's newest row that is not a statement; `other_populations` the number of further populations in the ledger;
    `account` the largest losses over all populations that share a household, None without accounts; `signed_by` the
    fingerprint of the key that signs the folder;
    `opening` a first note that the promise requires; `estimated_from` the periods, "first to last", of the estimated
    models whose leakage bounds are published without noise; `draws` the calibration draws; `accuracy` the errors of the
    newest values by their noise.
    """

    title: Mapping[str, str]
    contract: ContractDocument
    days: Sequence[str]
    skipped: Sequence[str]
    published_on: Sequence[str]
    bounds: Sequence[LossBound]
    limits: Mapping[str, int | None]
    ending: SeriesEnd
    model: Mapping[str, Any] | None
    notes: Sequence[str]
    ledger_id: str
    head: str
    versions: Sequence[document.ContractVersion]
    software: Mapping[str, str]
    other_populations: int = 0
    account: AccountFacts | None = None
    opening: str = ""
    beyond_states: bool = True
    represented: bool = False
    estimated_from: Sequence[str] = ()
    draws: Sequence[document.StatedDraw] = ()
    accuracy: Sequence[document.StatedAccuracy] = ()
    signed_by: str = ""

    @property
    def contracts(self) -> list[ContractDocument]:
        """Return the contracts under which rows were released, or the one in force where all were under it."""
        return [of.contract or self.contract for of in self.versions if of.released] or [self.contract]

    @property
    def envelope_days(self) -> str:
        """Return the periods of the published envelopes in words, "" without one."""
        return " and ".join(self.estimated_from)

    @property
    def has_spans(self) -> bool:
        """Return whether a bound on all days, or on a window, has a delta."""
        return any(map(note_texts.is_of_span, self.bounds))

    @property
    def promised_spans(self) -> list[LossBound]:
        """Return the bounds on all days, or on a window, that are promised with a delta."""
        spans = filter(note_texts.is_of_span, dict.fromkeys(self.bounds))
        return [bound for bound in spans if self.limits.get(bound.name) is not None]


def build_statement(facts: StatementFacts) -> document.Statement:
    """Return the statement as it is written to statement.json and stored in the ledger."""
    is_rehearsal = facts.contract.schedule.mode == "rehearsal"
    # no bound is unconditional for the days from which a published leakage bound was estimated
    conditional_days = {"conditional_days": ", ".join(facts.estimated_from)} if facts.estimated_from else {}
    # the ledger's rows contain both the leakage bound and the draws
    public_model = {key: part for key, part in (facts.model or {}).items() if key not in ("envelope", "draws")}
    statement = document.Statement(
        schema=document.SCHEMA,
        rehearsal=1 if is_rehearsal else 0,
        population=facts.contract.population.name,
        days=document.ReleasedDays(
            first=min(facts.days, default=""),
            last=max(facts.days, default=""),
            released=len(facts.days),
            skipped=list(facts.skipped),
        ),
        published=document.PublicationDates(
            first=min(facts.published_on, default=""), last=max(facts.published_on, default="")
        ),
        contract=facts.contract,
        version=len(facts.versions),
        versions=list(facts.versions),
        protects=_protects(facts),
        from_whom=FACTS.from_whom,
        not_protected=_not_protected(facts),
        figures=[
            state_bound(bound, facts.limits).model_copy(update=conditional_days)
            for bound in note_texts.in_statement_order(facts.bounds)
        ],
        ending=_ending(facts),
        second_population=_second_population(facts),
        model=document.StatedModel.model_validate(public_model),
        warnings=list(_warnings(facts)),
        notes=[*filter(None, [facts.opening, NOTES.rehearsal if is_rehearsal else ""]), *facts.notes],
        ledger=document.LedgerPlace(id=facts.ledger_id, head=facts.head),
        software=dict(facts.software),
    )
    optional: dict[str, object] = {
        **facts.title,
        "draws": list(facts.draws),
        "household_account": _stated_account(facts),
        "accuracy": list(facts.accuracy),
        "together": _together(facts.bounds),
        "signed_by": facts.signed_by,
    }
    return statement.model_copy(update={key: value for key, value in optional.items() if value})


def _together(bounds: Sequence[LossBound]) -> list[document.LossTogether]:
    """Return the losses of several households together, each the pure losses of one so many times."""
    pure = {bound.name: bound.value for bound in bounds if bound.kind == ASSUMPTION_FREE}
    day, total = max(pure.get(name) or 0 for name in (DAY_BOUND, CALIBRATION_DAY_BOUND)), pure.get(TOTAL_BOUND)
    return [
        document.LossTogether(households=number, day=format_epsilon(number * day), total=format_epsilon(number * total))
        for number in note_texts.TOGETHER
        if total is not None
    ]


def _protects(facts: StatementFacts) -> str:
    text = FACTS.protects
    if facts.estimated_from or facts.draws:
        text = note_texts.protects(facts.envelope_days, has_draws=bool(facts.draws))
    if not facts.promised_spans:
        return text
    days = " and on ".join(note_texts.scope_days(bound.about) for bound in facts.promised_spans)
    return text + NOTES.protected_spans.format(days=days, aside=note_texts.aside(facts.envelope_days))


def _not_protected(facts: StatementFacts) -> list[str]:
    days = facts.envelope_days
    past, habits, moved_out, *others = FACTS.several("not_protected")
    notions = {contract.promise.notion for contract in facts.contracts}
    past = " ".join(filter(None, [past, *(notion.TEXT.past for notion in NOTIONS if notion.name in notions)]))
    if not days:
        return [past, habits, moved_out, *others]
    beside = (NOTES.habits_beside_envelope, NOTES.moved_out_beside_envelope)
    return [past, *beside, *others, NOTES.not_protected_from_envelope.format(days=days)]


def _stated_account(facts: StatementFacts) -> document.StatedAccount | None:
    account = facts.account
    if account is None:
        return None
    amounts = {"day": format_epsilon(account.day), "total": format_epsilon(account.total), "since": account.since}
    text = NOTES.household_account.format(**amounts, aside=note_texts.aside(facts.envelope_days))
    return document.StatedAccount(**amounts, text=text + (NOTES.account_without_delta if facts.has_spans else ""))


def _warnings(facts: StatementFacts) -> Iterator[str]:
    if facts.estimated_from or facts.draws:
        yield note_texts.always(facts.envelope_days, has_draws=bool(facts.draws))
    else:
        yield from FACTS.several("always")
    if facts.has_spans:
        text = NOTES.promised_spans if facts.promised_spans else NOTES.spans
        yield text.format(aside=note_texts.aside(facts.envelope_days))
    yield from note_texts.large_delta_warnings(
        facts.contract, min(contract.population.min_households for contract in facts.contracts)
    )
    if facts.model is not None:
        if note_texts.is_private(facts.model):
            yield from note_texts.selection_texts(facts.model)
        yield from FACTS.several("with_model")
        if facts.beyond_states:
            yield FACTS.beyond_states
    if facts.estimated_from or (
        facts.model is not None and facts.model["source"] == "estimated" and not note_texts.is_private(facts.model)
    ):
        yield FACTS.estimated
    if facts.estimated_from:
        yield NOTES.envelope.format(days=facts.envelope_days)
    if facts.represented:
        yield FACTS.represented
    for loss_bound in note_texts.in_statement_order(facts.bounds) if len(facts.versions) > 1 else ():
        limit = facts.limits.get(loss_bound.name)
        if limit is not None and loss_bound.value is not None and loss_bound.value > limit:
            yield NOTES.beyond.format(
                name=loss_bound.name, said=format_epsilon(loss_bound.value), bound=format_epsilon(limit)
            )
    if any(series.statistic == "mean" for contract in facts.contracts for series in contract.series.values()):
        yield NOTES.smoothing


def state_bound(bound: LossBound, limits: Mapping[str, int | None]) -> document.StatedBound:
    """Return a bound as a statement contains it."""
    stated = document.StatedBound(
        name=bound.name,
        epsilon="infinite" if bound.value is None else format_epsilon(bound.value),
        factor=_factor_text(bound),
        limit=_limit_text(bound, limits) if bound.name in limits else "",
        kind=bound.kind,
        about=bound.about,
        assumption=bound.assumption,
    )
    return stated.model_copy(update=_delta_key(bound.delta))


def _delta_key(delta: Decimal | None) -> dict[str, str]:
    return {} if delta is None else {"delta": exact_text(delta)}


def _factor_text(bound: LossBound) -> str:
    if not bound.odds or bound.delta is not None:
        return ""
    return "infinite" if bound.value is None else note_texts.odds_factor(bound.value)


def _limit_text(bound: LossBound, limits: Mapping[str, int | None]) -> str:
    limit = limits[bound.name]
    if limit is None and any(name.startswith(f"{bound.name} (delta ") for name in limits):
        return ""  # the promise limits the bound at its delta
    if limit is None or bound.value is None:
        return "unlimited"
    return format_epsilon(max(limit, bound.value))


def _ending(facts: StatementFacts) -> document.Ending:
    cap, delta = facts.ending.total, facts.ending.delta
    total = name_at_delta(TOTAL_BOUND, delta)
    spent = max((bound.value or 0 for bound in facts.bounds if bound.name == total), default=0)
    ending = document.Ending(
        spent=format_epsilon(spent),
        left="unlimited" if cap is None else format_epsilon(max(0, cap - spent)),
        last_day=facts.ending.last_day,
        because=facts.ending.reason,
    )
    return ending.model_copy(update=_delta_key(delta))


def _second_population(facts: StatementFacts) -> document.SecondPopulation:
    delta = facts.ending.delta
    day, total = (
        "unlimited" if limit is None else format_epsilon(limit)
        for limit in (facts.limits[DAY_BOUND], facts.limits[name_at_delta(TOTAL_BOUND, delta)])
    )
    adds = document.AddedLoss(day=day, total=total).model_copy(update=_delta_key(delta))
    text = NOTES.second_population_at_delta if delta else NOTES.second_population
    if facts.account is not None:
        text = NOTES.second_population_counted_at_delta if delta else NOTES.second_population_counted
    return document.SecondPopulation(in_ledger=facts.other_populations, adds=adds, text=text)
