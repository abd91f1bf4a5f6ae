"""Plans of ten years: what `agedp plan` takes, start-up included, under each notion that plans ahead.

The chain is declared and mixes slowly, so that the noise of every day depends on that of all others.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

from benchmarks.measuring import Measured, measure, settled
from benchmarks.scenes import MEAN, run_text, write_roster

DAYS, FIRST = 3_650, date(2020, 1, 1)
PLANS = {
    "temporal": f'alpha = 30\nhorizon_days = {DAYS}\nbudget = "best"',
    "discounted": f'discount = "hyperbolic"\nrate = 0.1\nepsilon = 10\nschedule = "optimal"\nhorizon_days = {DAYS}\n'
    'clock = "data-day"',
    "age-dependent": 'risk = 0.9\nmethod = "tight"\nsecret = "day"',
}
_KERNEL = "0.97,0.03\n0.03,0.97\n"
_MODEL = '[model]\nsource = "declared"\nassume = "markov"\nkernel = "kernel.csv"\nbasis = "example"\n'
_CLASSICAL = ('notion = "classical"', "epsilon_per_day = 50\n")
_ROUNDS = 2


def plans(folder: Path) -> list[Measured]:
    """Return what the plan of each notion takes; the best of two rounds."""
    made = folder / "plans"
    made.mkdir(exist_ok=True)
    write_roster(made / "roster.csv", 1_000, str(FIRST))
    (made / "kernel.csv").write_text(_KERNEL)
    text = run_text(first=FIRST, last=FIRST + timedelta(days=DAYS - 1), statistic=MEAN.format(clamp=50), age_days=2)
    text = text.replace('mode = "archive"', 'mode = "rehearsal"\nrehearsal_on = "synthetic"') + _MODEL
    found = []
    for notion, promise in PLANS.items():
        words, epsilon = _CLASSICAL
        path = made / f"{notion}.toml"
        path.write_text(text.replace(words, f'notion = "{notion}"\n{promise}').replace(epsilon, ""))
        rounds = []
        for _ in range(_ROUNDS):
            settled()
            name = f"plan of ten years, {notion}"
            rounds.append(measure(name, path, rows=0, module="benchmarks.command", words=("plan",)))
        least = min(rounds, key=lambda one: (bool(one.failed), one.cpu))
        found.append(replace(least, peak_mb=max(one.peak_mb for one in rounds)))
    return found
