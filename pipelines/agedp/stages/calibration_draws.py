"""The draws of a private selection in the ledger: permitted by the promise, drawn once, adopted with a model.

A calibration opens the ledger with the checks of every run, or creates it: it may exist before the first release. The
draws of a model are charged to the population that a contract names the model for. A ledger without them, because the
model was made under another one, adopts them when it registers that contract.

Decisions:

* All draws about a population count in `epsilon_total`, those about a day to be released in `max_day_epsilon` too.
  Draws that leave nothing of either are refused before a reading is read, and again before they are drawn.
* In a rehearsal the draws have the date at which its clock starts, as its contract has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date

from agedp.calibration.member_selection import Answer, Question, model_draws
from agedp.compute.engine_settings import Engine
from agedp.ledger_session import LedgerSession
from agedp.run_context import RunContext
from agedp_data import clock
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel
from agedp_data.epsilon import format_epsilon
from agedp_data.errors import Refused
from agedp_data.ledger import canonical
from agedp_data.ledger.lifecycle import CalibrationDraw
from agedp_data.roster import Roster


def open_calibration_session(run: RunFile, roster: Roster, engine: Engine) -> LedgerSession:
    """Return a session for a private selection, whose ledger need not exist yet; nothing is created.

    Raises:
        LedgerError: the ledger is behind what was published from it, or the witness has rows that it lacks.
    """
    session = LedgerSession.open(RunContext(run, roster, None, clock.now(), None, engine))
    if session.ledger is None:
        session.check_nothing_released()
    session.check_mode_unchanged()
    return session


def population_draws(session: LedgerSession) -> tuple[CalibrationDraw, ...]:
    """Return the draws about the population of a session in its ledger, oldest first."""
    return () if session.ledger is None else session.ledger.calibration_draws(session.population)


def check_draws_permitted(session: LedgerSession, model: EstimatedModel, model_questions: Sequence[Question]) -> None:
    """Check that the promise permits the draws that are not in the ledger yet, beside all that it has.

    Raises:
        Refused: they leave nothing of a cap for releases; nothing was drawn.
    """
    first, last = (day.isoformat() for day in model.period)
    stored_keys = {draw.key for draw in population_draws(session)}
    new = [
        CalibrationDraw(session.population, first, last, canonical(question.query), (), question.loss)
        for question in model_questions
    ]
    draws = [*population_draws(session), *(draw for draw in new if draw.key not in stored_keys)]
    if len(draws) > len(stored_keys):
        _check_caps(session.run.run_file, draws)


def _check_caps(run: RunFile, draws: Iterable[CalibrationDraw]) -> None:
    """Refuse draws that leave nothing for a release: of the total, or of a day that is to be released."""
    first = run.schedule.first_day.isoformat()
    last = (run.schedule.last_day or date.max).isoformat()
    draws = list(draws)
    released = [draw for draw in draws if draw.first_day <= last and draw.last_day >= first]
    for key, cap, charged in (
        ("epsilon_total", run.promise.total_cap, draws),
        ("max_day_epsilon", run.promise.day_cap, released),
    ):
        loss = sum(draw.loss for draw in charged)
        if cap is not None and loss >= cap:
            raise Refused(
                f"{run.name}: [promise] {key} = {format_epsilon(cap)}: the draws of a private selection about the "
                f"readings of a household come to {format_epsilon(loss)}, which leaves nothing for a release. Lower "
                f"their epsilon, or raise {key}; nothing was drawn"
            )


def ledger_answer(session: LedgerSession, model: EstimatedModel) -> Answer:
    """Return how the ledger of an open session answers: from its row, or by a draw that it stores in the same step."""
    ledger, at = session.open_ledger, _draw_date(session.run.run_file)

    def answer(question: Question, draw: Callable[[], Sequence[int]]) -> Sequence[int]:
        stored = ledger.draw_once(
            population=session.population,
            period=model.period,
            query=question.query,
            loss=question.loss,
            draw=draw,
            at=at,
        )
        return stored.value

    return answer


def adopt_draws(session: LedgerSession, *, at: date) -> None:
    """Store the draws of the session's model in its ledger, unless they are there.

    Raises:
        LedgerError: the ledger has another answer to one of the questions.
    """
    for draw in model_draws(session.model, session.population):
        session.open_ledger.adopt(draw, at=at)


def _draw_date(run: RunFile) -> date:
    return run.schedule.first_day if run.schedule.mode == "rehearsal" else clock.today()
