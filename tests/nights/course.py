"""The events of a year of nights: deliveries, customers, amendments, a week without a run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.nights.deliveries import Parcel

NEVER = 10**9


@dataclass(frozen=True)
class Terms:
    """The content of the run file from some night on."""

    promise: str
    clamp_kwh: int = 40
    model: str = ""
    marker: bool = False


@dataclass
class Course:
    """Nights are numbered from 0, the first day; in night n the clock shows FIRST + n, 00:00 UTC."""

    homes: int
    days: int
    terms: dict[int, Terms]
    parcels: list[Parcel] = field(default_factory=list)
    joins: dict[int, int] = field(default_factory=dict)
    leaves: dict[int, int] = field(default_factory=dict)
    no_run: frozenset[int] = frozenset()
    cleared: frozenset[int] = frozenset()
    markers: dict[int, int] = field(default_factory=dict)

    def terms_at(self, night: int) -> Terms:
        return self.terms[max(begin for begin in self.terms if begin <= night)]


_AGED = 'notion = "age-dependent"\nsecret = "day"\n'
NOTIONS = {
    "age-dependent": (
        f'{_AGED}method = "total_variation"\nmax_day_epsilon = 0.5\nepsilon_per_day = ',
        ("0.5", "0.4"), ("slow", "fast"),
    ),
    "risk": (f'{_AGED}method = "tight"\nmax_day_epsilon = 0.9\nrisk = ', ("0.6", "0.5"), ("sticky", "loose")),
    "w-event": (
        'notion = "w-event"\nwindow_days = 3\nspend = "even"\nmax_day_epsilon = 0.5\nepsilon_per_window = ',
        ("1.5", "1.2"), ("slow", "fast"),
    ),
}  # fmt: skip
"""Promise, its epsilon at first and after an amendment, model at first and after an amendment."""
_CURVE = '[model]\nsource = "declared"\ncurve = "{}.csv"\nbasis = "made up"\nassume = "curve"\n'
_KERNEL = '[model]\nsource = "declared"\nkernel = "{}.csv"\nbasis = "made up"\nassume = "markov"\n'
FILES = {
    "slow.csv": "age_days,total_variation\n1,0.9\n3,0.8\n30,0.5\n",
    "fast.csv": "age_days,total_variation\n1,0.7\n3,0.4\n30,0.1\n",
    "sticky.csv": "0.9,0.1\n0.1,0.9\n",
    "loose.csv": "0.7,0.3\n0.3,0.7\n",
}
STAY = {"sticky": 0.9, "loose": 0.7}


def terms_of(notion: str, nights: tuple[int, int, int, int, int], *, days: int) -> dict[int, Terms]:
    """Return the terms of a course: two amendments, another model, markers for a while, and no markers again.

    The window needs no model: there the model is declared by one amendment and replaced by another.
    """
    shape, epsilons, models = NOTIONS[notion]
    first, after = ((_KERNEL if notion == "risk" else _CURVE).format(model) for model in models)
    begun, lower, wide = (
        f"{shape}{epsilon}\nage_days = {age}\nepsilon_total = {days}\n"
        for epsilon, age in ((epsilons[0], 1), (epsilons[1], 1), (epsilons[1], 2))
    )
    terms = (
        Terms(begun, model="" if notion == "w-event" else first),
        Terms(lower, model=first),
        Terms(wide, clamp_kwh=50, model=first),
        Terms(wide, clamp_kwh=50, model=after),
        Terms(wide, clamp_kwh=50, model=after, marker=True),
        Terms(wide, clamp_kwh=50, model=after),
    )
    return dict(zip((0, *nights), terms, strict=True))


def parcels(days: int, *, seed: int, every: int = 7) -> list[Parcel]:
    """Return the files of all days: most the next morning; of `every` days one each late, corrected, again, turned.

    A late day has half its homes in time and the other half after it was released (at an age of up to two days).
    """
    rng = np.random.default_rng(seed)
    found: list[Parcel] = []
    for day in range(days):
        number, next_night = 10 * day + 1, day + 1
        match day % every:
            case 1:  # half of it comes days after it was released
                late = next_night + int(rng.integers(4, 8))
                found += [Parcel(number, next_night, day, "even"), Parcel(number + 1, late, day, "odd")]
            case 2:  # corrected before it is due
                found += [Parcel(number, next_night, day), Parcel(number + 1, next_night + 1, day, "even", 200)]
            case 3:  # corrected when it is too late
                found += [Parcel(number, next_night, day), Parcel(number + 1, next_night + 5, day, "odd", 300)]
            case 4:  # corrected, and then the first version sent again
                found += [Parcel(number, next_night, day), Parcel(number + 1, next_night, day, "all", 400)]
                found.append(Parcel(number + 2, next_night + 1, day, again=number))
            case 5:  # the correction overtakes what it corrects, and the day the one behind it
                found += [Parcel(number + 1, next_night, day, "even", 100), Parcel(number, next_night + 1, day)]
            case _:
                found.append(Parcel(number, next_night, day))
    return found


def week_course() -> Course:
    """Return ten days with what the three weeks have, each event once."""
    days = 10
    return Course(
        homes=8,
        days=days,
        terms=terms_of("age-dependent", (3, 4, 5, 7, 12), days=days),
        parcels=parcels(days, seed=3),
        joins={2: 2},
        leaves={3: 4},
        no_run=frozenset({9, 10}),
        cleared=frozenset({3}),
        markers={day: day + 1 for day in range(12)} | {4: NEVER},
    )


def sample_course(notion: str) -> Course:
    """Return three weeks with a little of everything."""
    days = 22
    return Course(
        homes=8,
        days=days,
        terms=terms_of(notion, (5, 8, 11, 14, 23), days=days),
        parcels=parcels(days, seed=3),
        joins={4: 4, 12: 13},
        leaves={9: 9, 15: 16},
        no_run=frozenset(range(16, 22)),
        cleared=frozenset({6, 13}),
        markers={day: day + 1 for day in range(10, 24)} | {11: 15, 13: NEVER},
    )


def year_course() -> Course:
    """Return a year of 300 homes: a missed week, forty customers who come or go."""
    days = 365
    return Course(
        homes=300,
        days=days,
        terms=terms_of("age-dependent", (70, 120, 190, 240, 290), days=days),
        parcels=parcels(days, seed=12),
        joins={night: night for night in range(7, 350, 17)},
        leaves={night: night + 1 for night in range(9, 350, 19)},
        no_run=frozenset(range(150, 157)),
        cleared=frozenset(range(30, 365, 30)),
        markers={day: day + 1 + (day % 9 == 0) * 3 for day in range(236, 300)} | {260: NEVER},
    )
