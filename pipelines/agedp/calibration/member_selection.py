r"""How the households of a period mix -> a member of a public family of bounds, drawn privately.

Each household has the smallest member above its own chain at every age (`nested_family.smallest_members`), from its own
readings alone. The number of households at or below each member is what the selection sees; its loss is about all
readings of a household in the period.

A question is asked once. What it asks, and how the answer is computed, is public text (`Question.query`): everything
that the answer depends on except the readings, and no path. A ledger answers an equal question from its row.

    {"ask": "member", "coverage": "0.95", ..., "households": 5566, "input": {"dataset": "london", ...}, "states": 12}

Decisions:

* What can be refused is refused before a reading is read: a roster too small for the coverage, and losses that the caps
  of the promise do not permit.
* A selected bound is tabulated at the ages of [model] only, so a gap below the smallest of them is credited no age. An
  envelope has the gap of one half-hour too, from the end of a day to the next; a member above every chain there, where
  no chain has mixed yet, would be slow at all other ages.
* The draws are part of the model's public part. A ledger that does not have them adopts them with the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from agedp.calibration.leakage_bounds import HouseholdMixing, composes, model_ages, steps_per_day
from agedp_data import mechanisms
from agedp_data.config.model_section import EstimatedModel, SelectionTerms
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.epsilon import NANO, ceil_nano
from agedp_data.errors import RunFileError
from agedp_data.leakage.nested_family import (
    NestedFamily,
    required_households,
    required_loss,
    selection_margin,
    selection_scores,
    selection_target,
    smallest_members,
)
from agedp_data.ledger import canonical
from agedp_data.model import Model, model_settings, public_text, read_family
from agedp_data.roster import RosterRows


@dataclass(frozen=True, slots=True)
class Question:
    """A private question about the readings of a period: its public text, and the loss of its answer [nano-epsilon]."""

    query: Mapping[str, Any]
    loss: int


Answer = Callable[[Question, Callable[[], Sequence[int]]], Sequence[int]]
"""Returns the answer to a question: the stored one, or what the second argument draws."""


def draw_anew(_: Question, draw: Callable[[], Sequence[int]]) -> Sequence[int]:
    """Return an answer that no ledger stores: it travels with the model until a ledger adopts it."""
    return draw()


@dataclass(frozen=True, slots=True)
class SelectedMember:
    """A private selection, with what it was drawn from (confidential).

    Attributes:
        member: the selected member, from 1 to the size of the family; public.
        family: the family; public.
        target: T, the number of households that the selection aims at; a function of public numbers.
        members: the smallest member above each household, shape (h,); confidential.
        loss: the loss of the draw [nano-epsilon]; public.
    """

    member: int
    family: NestedFamily
    target: int
    members: Ints
    loss: int

    @property
    def counts(self) -> Ints:
        """Return c_k, the number of households at or below each member, shape (m,); confidential."""
        return member_counts(self.members, self.family)


@dataclass(frozen=True, slots=True)
class DrawSummary:
    """The draws of a calibration: number of answers that were drawn now and that the ledger had, and all that it has.

    `ledger_loss` is the loss of all draws about the population in the ledger [nano-epsilon].
    """

    drawn: int
    stored: int
    ledger_draws: int
    ledger_loss: int


def member_counts(members: Ints, family: NestedFamily) -> Ints:
    """Return the number of households whose smallest member is at most k, for k from 1 to m."""
    return np.bincount(members, minlength=family.size + 1)[1:].cumsum()


def is_on_roster(roster: RosterRows, period: tuple[date, date]) -> Flags:
    """Return which households are on the roster on some day of a period, shape (households,)."""
    first, last = map(day_number, period)
    flags = np.zeros(len(roster.ids), bool)
    flags[roster.household[(roster.first <= last) & (roster.last >= first)]] = True
    return flags


def check_selection_possible(model: EstimatedModel, households: int) -> None:
    """Check that a selection among this many households can reach its coverage; reads no reading.

    Raises:
        RunFileError: it cannot; the message names the smallest roster, and the smallest loss, with which it can.
    """
    terms = model.selection
    if terms is None:
        return
    choices = read_family(model).size
    target, margin = _target(terms, choices, households)
    if target <= households:
        return
    needed = required_households(coverage=terms.coverage, margin=margin)
    remedy = f"It needs {needed:,} households"
    if households:
        loss = required_loss(
            households, choices=choices, coverage=terms.coverage, failure_probability=terms.failure_probability
        )
        remedy += f", or selection_epsilon = {loss} with these"
    raise RunFileError(
        f"[model] coverage = {terms.coverage:f}: a private selection with selection_epsilon = {terms.epsilon:f} and "
        f"failure_probability = {terms.failure_probability:f} aims at {target:,} households, and the roster of the "
        f"period has {households:,}. {remedy}. Nothing was drawn"
    )


def _target(terms: SelectionTerms, choices: int, households: int) -> tuple[int, Decimal]:
    """Return the number of households that the selection aims at, and its margin."""
    margin = selection_margin(choices=choices, failure_probability=terms.failure_probability, loss=terms.epsilon)
    return selection_target(households, coverage=terms.coverage, margin=margin), margin


def member_question(model: EstimatedModel, input_terms: Mapping[str, Any], households: int) -> Question:
    """Return the question which member of the model's family is published.

    Args:
        model: a model with publish = "private".
        input_terms: the rules for reading the input files, as a contract contains them.
        households: number of households on the roster in the period.
    """
    settings, terms = model_settings(model), _terms(model)
    omitted = ("source", "period", "publish")  # the period has columns of its own in the ledger
    member = {key: value for key, value in settings.items() if key not in omitted}
    asked = {**member, "households": households, "input": dict(input_terms), "ask": "member"}
    return Question(asked, ceil_nano(terms.epsilon))


def select_member(
    mixing: HouseholdMixing, model: EstimatedModel, input_terms: Mapping[str, Any], answer: Answer, *, population: str
) -> tuple[Model, SelectedMember]:
    """Draw a member of the model's family, and return the model that is published.

    Args:
        mixing: how each household on the roster mixes, at the ages of [model].
        model: a model with publish = "private".
        input_terms: the rules for reading the input files, as a contract contains them.
        answer: how a question is answered once.
        population: name of the population that the model is about; "" for a table in memory, which has none.

    Raises:
        RunFileError: as `check_selection_possible`.
    """
    family, ages, households = read_family(model), model_ages(model), len(mixing.mixes)
    check_selection_possible(model, households)
    target, _ = _target(_terms(model), family.size, households)
    members = smallest_members(mixing.distances, family.distances(ages, steps_per_day=steps_per_day(model)))
    question = member_question(model, input_terms, households)
    scores, loss = selection_scores(member_counts(members, family), target), Fraction(question.loss, NANO)
    [member] = answer(question, lambda: [1 + mechanisms.exponential_mechanism(scores, loss=loss)])
    bound = family.member_bound(
        member, ages, steps_per_day=steps_per_day(model), assume=model.assume, forward=composes(model)
    )
    draw = {"query": canonical(question.query), "value": [member], "loss": question.loss}
    public = {**model_settings(model), "households": households, "member": member, "draws": [draw]}
    text = public_text(public | ({"population": population} if population else {}), bound)
    return Model(text, bound), SelectedMember(member, family, target, members, question.loss)


def _terms(model: EstimatedModel) -> SelectionTerms:
    if model.selection is None:
        raise RuntimeError("a model without a private selection has no question")
    return model.selection
