"""What a report shows of the model: how much of a loss is left as data age, from its public part alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agedp_data.chains.envelope import LeakageBound
from agedp_data.chains.spectrum import MIXING_NAMES
from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import to_float
from agedp_data.notions.aged import AgedLeakage
from agedp_data.notions.notion import Method, day_losses
from agedp_data.pictures.chart import Line, chart
from agedp_data.pictures.page import table
from agedp_data.pictures.scales import Scale, linear, logarithmic, short

_MAX_AGE_DAYS = 400
_MAX_ROWS, _LOGARITHMIC_RATIO = 8, 30
_METHODS: Mapping[str, str] = {
    "tight": "exact",
    **MIXING_NAMES,
}


def model_parts(envelope: LeakageBound, rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield what is left of one day's loss by age and method, and of all days together by the sharpest method."""
    losses = day_losses(rows)
    if not losses:
        return
    ages = _ages(envelope)
    largest = max(losses.values())
    by_method = {name: AgedLeakage(envelope, method=name) for name in _methods(envelope)}
    alone = {
        _METHODS.get(name, name): [to_float(left(age * envelope.steps_per_day, largest)) for age in ages]
        for name, left in by_method.items()
    }
    yield '<div class="two">'
    yield _age_chart(f"What is left of one day's loss of {short(to_float(largest))}", ages, alone)
    name, left = next(iter(by_method.items()))
    together = left.of(losses)
    every = [to_float(together.risk(age * envelope.steps_per_day)) for age in ages]
    yield _age_chart("What all released days say about the present", ages, {_METHODS.get(name, name): every})
    yield "</div>"
    shown = _ages_with_changes(ages, [*alone.values(), every])
    rows_of = [(f"{age}", *(short(values[ages.index(age)]) for values in [*alone.values(), every])) for age in shown]
    columns = ("age, days", *(f"one day, {name}" for name in alone), f"all days, {_METHODS.get(name, name)}")
    yield table("The same in numbers: epsilon that is left at an age", columns, rows_of)


def _methods(envelope: LeakageBound) -> list[Method]:
    known: tuple[Method, ...] = ("tight", "total_variation", "spectral", "reversibilised")
    return [name for name in known if name in envelope.methods]


def _ages(envelope: LeakageBound) -> list[int]:
    furthest = -(-int(envelope.ages[-1]) // envelope.steps_per_day)
    return list(range(min(max(furthest, 2) * 5 // 4 + 1, _MAX_AGE_DAYS)))


def _ages_with_changes(ages: Sequence[int], curves: Sequence[Sequence[float]]) -> list[int]:
    """Return a few ages at which something changes, the first and the last included."""
    changes = [0, *(i for i in range(1, len(ages)) if any(curve[i] != curve[i - 1] for curve in curves)), len(ages) - 1]
    places = sorted(set(changes))
    count = min(_MAX_ROWS, len(places))
    return [ages[places[round(i * (len(places) - 1) / max(1, count - 1))]] for i in range(count)]


def _age_chart(title: str, ages: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    lines = [
        Line(
            name,
            [float(age) for age in ages],
            values,
            style=place,
            steps=True,
            letter="" if len(curves) < 2 else str(place + 1),
        )
        for place, (name, values) in enumerate(curves.items())
    ]
    said = "; ".join(
        f"{name}: {short(values[0])} fresh, {short(values[-1])} after {ages[-1]} days"
        for name, values in curves.items()
    )
    every = [value for values in curves.values() for value in values]
    steep = min(every) < max(every) / _LOGARITHMIC_RATIO
    y = logarithmic(every, decades=4) if steep else linear(every, zero=True)
    return chart(
        title,
        f"Epsilon by age of the newest data. {said}.",
        lines,
        x=_age_axis(ages),
        y=y,
        y_title="epsilon (each step: ten times)" if steep else "epsilon",
        height=190,
    )


def _age_axis(ages: Sequence[int]) -> Scale:
    found = linear([float(age) for age in ages], zero=True)
    last = float(ages[-1])
    return Scale(0.0, last, tuple((value, f"{text} d") for value, text in found.ticks if value <= last))
