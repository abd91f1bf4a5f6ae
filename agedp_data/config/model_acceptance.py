"""[model] accept_unverified_model: a promise of `risk` on an estimated model is accepted knowingly, once.

`agedp calibrate` compares the model with the readings, and its verdict is confidential: a refusal that depended on it
would publish it. So the key is required whatever the verdict, when the promise is first registered or amended to
another estimated model. It is free: no contract contains it, and a series that began without it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from agedp_data.config.model_section import AnyModel, EstimatedModel
from agedp_data.notions import AnyPromise
from agedp_data.notions.age_dependent import AgeDependent
from agedp_data.parameters import exact_text


def missing_acceptance(promise: AnyPromise, model: AnyModel | None) -> str:
    """Return why a new registration is refused without the key, as text for a message; "" if it is not."""
    risk = _estimated_risk(promise, model)
    if risk is None or (isinstance(model, EstimatedModel) and model.accept_unverified_model):
        return ""
    return (
        f"[model] accept_unverified_model is missing: risk = {exact_text(risk)} rests on an estimated model, which one "
        "dataset can contradict but never verify. Write accept_unverified_model = true, or promise epsilon_per_day."
    )


def acceptance_problems(promise: AnyPromise, model: AnyModel | None) -> Iterator[str]:
    """Yield what is wrong with the key in a few words: it is unused without a promise of `risk`."""
    is_accepted = isinstance(model, EstimatedModel) and model.accept_unverified_model
    if is_accepted and _estimated_risk(promise, model) is None:
        yield "is used only by a [promise] with risk; remove it"


def accepted(model: AnyModel | None) -> AnyModel | None:
    """Return a model as a run file that accepts it as unverified has it, for releases of synthetic households.

    An audit registers the promise in a ledger of its own, and draws nothing about anybody.
    """
    if not isinstance(model, EstimatedModel):
        return model
    return model.model_copy(update={"accept_unverified_model": True})


def _estimated_risk(promise: AnyPromise, model: AnyModel | None) -> Decimal | None:
    """Return the promised risk that rests on an estimated model, None without one."""
    return promise.risk if isinstance(promise, AgeDependent) and isinstance(model, EstimatedModel) else None
