"""The draws of a private selection in the ledger: permitted by the promise, drawn once, adopted with a model.

A calibration opens the ledger with the checks of every run, or creates it: it may exist before the first release. The
draws of a model are charged to the population that a contract names the model for. A ledger without them, because the
model was made under another one, adopts them when it registers that contract.

Decisions:

* Draws that leave the promise nothing to release are refused before a reading is read, and again before they are drawn.
* In a rehearsal the draws have the date at which its clock starts, as its contract has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from agedp.budget import check_charges_fit
from agedp.compute.engine_settings import Engine
from agedp.ledger_session import LedgerSession, draws_with_model
from agedp.run_context import RunContext
from agedp_data import clock
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.withdrawn import check_nothing_withdrawn
from agedp_data.ledger import Ledger, canonical
from agedp_data.ledger.lifecycle import CalibrationDraw, charges_of
from agedp_data.model import Model
from agedp_data.roster import Roster

if TYPE_CHECKING:
    from agedp.calibration.member_selection import Answer, Question


def open_calibration_session(run: RunFile, roster: Roster, engine: Engine) -> LedgerSession:
    """Return a session for a private selection, whose ledger need not exist yet; nothing is created.

    Raises:
        LedgerError: the ledger is behind what was published from it, or the witness has rows that it lacks.
        RunFileError: the witness of a new population is a table, which is withdrawn.
    """
    session = LedgerSession.open(RunContext(run, roster, None, clock.now(), None, engine))
    check_nothing_withdrawn(run, session.history.in_force)
    if session.ledger is None:
        session.check_nothing_released()
    return session


def check_draws_permitted(session: LedgerSession, model: EstimatedModel, question: Question) -> None:
    """Check that the promise permits a draw that is not in the ledger yet, beside all that it has.

    Raises:
        Refused: it leaves nothing of a cap for releases; nothing was drawn.
    """
    planned, history = planned_draw(session.run.population, model, question), session.history
    if planned.key not in {draw.key for draw in history.draws}:
        check_charges_fit(session.terms(), history.rows, charges_of([planned]))


def ledger_answer(session: LedgerSession, model: EstimatedModel) -> Answer:
    """Return how the ledger of an open session answers: from its row, or by a draw that it stores in the same step.

    A draw is charged to the households on the roster in its period before it is drawn.
    """
    ledger, population, schedule = session.open_ledger, session.run.population, session.run.run_file.schedule
    at = schedule.first_day if schedule.mode == "rehearsal" else clock.today()

    def answer(question: Question, draw: Callable[[], Sequence[int]]) -> Sequence[int]:
        planned = planned_draw(population, model, question)

        def charged_draw() -> Sequence[int]:
            if session.accounts is not None:
                session.accounts.charge([planned], ledger)
            return draw()

        of_population = partial(ledger.draw_once, population=population, period=model.period, at=at)
        return of_population(query=question.query, loss=question.loss, draw=charged_draw).value

    return answer


def planned_draw(population: str, model: EstimatedModel, question: Question) -> CalibrationDraw:
    """Return the draw that answers a question, before it is drawn."""
    first, last = (day.isoformat() for day in model.period)
    return CalibrationDraw(population, first, last, canonical(question.query), (), question.loss)


def register_model(ledger: Ledger, model: Model | None, population: str, *, at: date) -> None:
    """Store a model in a ledger, and its draws as charged to the population, unless they are there.

    Raises:
        LedgerError: the ledger has another answer to one of the questions.
    """
    for draw in draws_with_model(model, population):
        ledger.adopt(draw, at=at)
    if model is not None:
        ledger.register_model(model.text, at=at)
