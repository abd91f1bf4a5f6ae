"""What ledger rows come to, recomputed from their text alone and compared with what their contracts promise.

Nothing of `agedp_data.notions` or `agedp_data.markov` is used: sums are fractions of the recorded losses, windows
and the days of an exponential discount are tried one by one, and the risk and the temporal leakage under a declared
kernel of two states are the recursions of docs/mathematics.md with the closed form of a two-state chain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from fractions import Fraction

from agedp_data.ledger import ReleaseRecord


def exceeded(
    rows: Sequence[ReleaseRecord], promises: Mapping[str, dict[str, object]], *, kernel: Kernel | None = None
) -> list[str]:
    """Return every promise that is broken, `promises` saying under which each row is judged (by its contract)."""
    found: list[str] = []
    losses: dict[date, Fraction] = {}
    small: dict[date, Fraction] = {}
    for row in rows:
        if row.state != "released":
            found += [f"{row.day}: skipped and yet {row.loss}"] if row.loss or row.values else []
            continue
        day, promise = date.fromisoformat(row.day), promises[row.contract]
        losses[day] = losses.get(day, Fraction(0)) + Fraction(row.loss, 10**9)
        part = _part(row, promise) * Fraction(row.sensitivity) / Fraction(row.scale)
        small[day] = small.get(day, Fraction(0)) + part
        found += [f"{row.day}: {what}" for what in _exceeded(promise, losses, small, day)]
        found += [f"{row.day}: too young"] * (_age_days(row) < int(str(promise.get("age_days", 0))))
        if kernel is not None:
            spent = {each: float(loss) for each, loss in losses.items()}
            if "alpha" in promise and kernel.leakage(spent) > float(str(promise["alpha"])):
                found.append(f"{row.day}: leakage {kernel.leakage(spent)}")
            if "risk" in promise and kernel.risk(spent, age=_age_days(row)) > float(str(promise["risk"])) + 1e-9:
                found.append(f"{row.day}: risk {kernel.risk(spent, age=_age_days(row))}")
    return found


def _part(row: ReleaseRecord, promise: dict[str, object]) -> Fraction:
    """Return which part of the cost of any change a protected one has: of counts all of it, of a sum delta/clamp."""
    delta_wh = int(Fraction(str(promise.get("delta_kwh", 10**6))) * 1000)
    return Fraction(min(delta_wh, row.sensitivity), row.sensitivity)


def _exceeded(
    promise: dict[str, object], losses: dict[date, Fraction], small: dict[date, Fraction], day: date
) -> list[str]:
    bounds = {"epsilon_per_day": losses[day], "max_day_epsilon": losses[day], "epsilon_total": sum(losses.values())}
    if "discount" in promise:
        bounds["epsilon"] = heaviest(losses, day, rate=Fraction(str(promise["rate"])))
    if "window_days" in promise:
        of = small if "delta_kwh" in promise else losses
        bounds["epsilon_per_window"] = fullest(of, day, days=int(str(promise["window_days"])))
    return [
        f"{key} = {promise[key]}, spent {float(spent)}"
        for key, spent in bounds.items()
        if promise.get(key, "unlimited") != "unlimited" and spent > Fraction(str(promise[key]))
    ]


def fullest(losses: Mapping[date, Fraction], day: date, *, days: int) -> Fraction:
    """Return the largest sum over the windows of so many days that contain `day`, each of them tried."""
    starts = [day - timedelta(days=back) for back in range(days)]
    return max(
        sum((losses.get(start + timedelta(days=i), Fraction(0)) for i in range(days)), Fraction(0)) for start in starts
    )


def heaviest(losses: Mapping[date, Fraction], day: date, *, rate: Fraction) -> Fraction:
    """Return the largest sum on `day` or later in which a loss j days of the data ago counts rate^j, each day tried."""
    return max(
        sum((loss * rate ** (now - then).days for then, loss in losses.items() if then <= now), Fraction(0))
        for now in losses
        if now >= day
    )


def _age_days(row: ReleaseRecord) -> int:
    """Return how many whole days old a day was at the first instant of its publication date; it ends at midnight."""
    return (date.fromisoformat(row.published_on) - date.fromisoformat(row.day)).days - 1


class Kernel:
    """A two-state chain by days, stay = probability of staying in either state (so its own reverse)."""

    def __init__(self, stay: float) -> None:
        self.stay = stay

    def passed(self, days: int, loss: float) -> float:
        """Return L(loss) after so many days: ln((1 + p(e^loss - 1))/(1 + q(e^loss - 1))), p + q = 1 here."""
        apart = (2 * self.stay - 1) ** days
        p, q, grown = (1 + apart) / 2, (1 - apart) / 2, math.expm1(loss)
        return math.log((1 + p * grown) / (1 + q * grown))

    def risk(self, losses: dict[date, float], *, age: int) -> float:
        """Return what days with these losses say about the present, the newest of them `age` days old."""
        carried, before = 0.0, None
        for day in sorted(losses):
            carried = losses[day] + (0.0 if before is None else self.passed((day - before).days, carried))
            before = day
        return self.passed(age, carried)

    def leakage(self, losses: dict[date, float]) -> float:
        """Return the most that days with these losses say about any day from the first to the last of them."""
        first, last = min(losses), max(losses)
        every = [first + timedelta(days=i) for i in range((last - first).days + 1)]
        return max(
            losses.get(day, 0.0) + self._from([each for each in sorted(losses) if each < day], losses, day)
            + self._from([each for each in sorted(losses, reverse=True) if each > day], losses, day)
            for day in every
        )  # fmt: skip

    def _from(self, days: Sequence[date], losses: dict[date, float], to: date) -> float:
        carried, before = 0.0, to
        for day in days:
            carried = losses[day] + self.passed(abs((day - before).days), carried)
            before = day
        return self.passed(abs((to - before).days), carried)
