"""The one recursion equals its equation written out, in whole nano-epsilon, in floats and for a stack of households."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

from agedp_data.accounting.composition import Composition, SumComposition
from agedp_data.accounting.temporal_recursion import OneSidedRecursion, Recursion

NANO = 10**9


def kept(share: int, gap: int, loss: int) -> int:
    """A leakage function in whole numbers: share/16 of a loss per step, rounded up."""
    return -(-loss * share**gap // 16**gap)


Releases = Sequence[tuple[int, int]]


def written_out(releases: Releases, at: int, orders: set[int], step: Callable, day: Callable | None = None) -> int:
    """min over j of the j - 1 newest losses and L of what the others compose to, each term as the equation has it."""
    if not releases:
        return 0
    terms = []
    for j in sorted(orders):
        if j <= len(releases):
            earlier, (instant, loss) = releases[: len(releases) - j], releases[-j]
            composed = loss + written_out(earlier, instant, orders, step)
            terms.append(sum(e for _, e in releases[len(releases) - j + 1 :]) + (day or step)(at - instant, composed))
    return min(terms)


def stories(seed: int, count: int = 150):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        instants = sorted(rng.choice(15, size=rng.integers(1, 7), replace=False).tolist())
        losses = [int(e) for e in rng.choice([0, 1, 7, 10**3, NANO, 3 * NANO + 1], size=len(instants))]
        orders = {1, *rng.choice([2, 3, 5], size=rng.integers(0, 4)).tolist()}
        yield rng, list(zip(instants, losses, strict=True)), orders, int(rng.integers(0, 17)), int(rng.integers(1, 5))


@pytest.mark.parametrize("seed", range(2))
def test_releases_in_any_order_compose_as_written(seed):
    for rng, releases, orders, share, later in stories(seed):
        step, day = partial(kept, share), partial(kept, min(share + 3, 16))
        step_at, day_at = (lambda gap, through=through: partial(through, gap) for through in (step, day))
        composition = Composition(step_at, day_leakage_at=day_at, orders=orders)
        for i in rng.permutation(len(releases)):
            composition.add(*releases[i])
        at = releases[-1][0] + later
        assert composition.leakage(at) == written_out(releases, at, orders, step, day)
        for k, (instant, loss) in enumerate(releases):
            assert composition.leakages[k] == written_out(releases[:k], instant, orders, step, day)
            assert composition.composed[k] == loss + written_out(releases[:k], instant, orders, step)
            assert composition.leakage(at, count=k) == written_out(releases[:k], at, orders, step, day)


@pytest.mark.parametrize("seed", range(2))
def test_replaced_releases_leave_nothing_behind(seed):
    composition = None
    for rng, releases, _, share, later in stories(seed):
        if composition is None or rng.random() < 0.1:
            step = partial(kept, share)
            composition = Composition(lambda gap, step=step: partial(step, gap), orders={1, 2})
        composition.replace([instant for instant, _ in releases], [loss for _, loss in releases])
        at = releases[-1][0] + later
        new = next(instant for instant in range(16) if instant not in dict(releases))
        further, later_at = sorted([*releases, (new, 5)]), max(at, new + 1)
        assert composition.leakage_with(new, 5, later_at) == written_out(further, later_at, {1, 2}, step)
        assert composition.leakage(at) == written_out(releases, at, {1, 2}, step)


def test_a_release_that_was_only_tried_is_forgotten_before_others_come():
    """Nobody asks between the attempt, in the middle, and the further release."""
    step, known = partial(kept, 12), [(0, NANO), (2, NANO), (4, NANO)]
    composition = Composition(lambda gap: partial(step, gap))
    composition.replace(*zip(*known, strict=True))
    tried = sorted([*known, (1, 3 * NANO)])
    assert composition.leakage_with(1, 3 * NANO, 6) == written_out(tried, 6, {1}, step)
    further = [*known, (5, NANO)]
    composition.replace(*zip(*further, strict=True))
    assert composition.leakage(6) == written_out(further, 6, {1}, step)


def saturating(gap: int, loss: int) -> int:
    """A leakage that ends at 10 over one step and is a tenth over two: an order of two sees past the first."""
    return min(loss, 10) if gap == 1 else -(-loss // 10)


@pytest.mark.parametrize("past", [None, (NANO, 3 * NANO)], ids=["first", "endless"])
@pytest.mark.parametrize("orders", [{1}, {1, 2}, {1, 3, 5}], ids=str)
@pytest.mark.parametrize("step", [saturating, *(partial(kept, share) for share in (0, 3, 12, 16))])
def test_a_release_set_changed_or_taken_back_leaves_what_a_composition_made_anew_has(step, orders, past):
    rng = np.random.default_rng(7)
    grown = Composition(lambda gap: partial(step, gap), orders=orders, past=past)
    losses: dict[int, int | None] = {}
    for _ in range(120):
        instant = int(rng.integers(0, 60))
        loss = None if rng.random() < 0.25 else int(rng.choice([0, 1, 7, NANO, 3 * NANO + 1]))
        grown.set(instant, loss)
        losses[instant] = loss
        if rng.random() < 0.6:
            anew = Composition(lambda gap: partial(step, gap), orders=orders, past=past)
            releases = [(each, losses[each]) for each in sorted(losses) if losses[each] is not None]
            anew.replace([each for each, _ in releases], [loss for _, loss in releases])
            assert (grown.composed, grown.leakages) == (anew.composed, anew.leakages)
            assert grown.leakage(60) == anew.leakage(60)


@pytest.mark.parametrize("orders", [{1}, {1, 2}, {1, 3, 5}], ids=str)
@pytest.mark.parametrize("step", [saturating, *(partial(kept, share) for share in (0, 3, 12, 16))])
def test_a_series_of_equal_losses_grows_at_either_end_as_written(step, orders):
    """The recursion of the equation, from the oldest release on, after each day that comes or goes."""
    rng, losses = np.random.default_rng(11), dict[int, int]()
    grown, first, last = Composition(lambda gap: partial(step, gap), orders=orders), 0, -1
    for turn in range(150):
        end, gap, usual = rng.random(), 2 if turn // 25 % 3 == 2 else 1, (NANO, 3)[turn // 40 % 2]
        loss = usual if rng.random() < 0.97 else 7
        if end < 0.15 and losses:
            day, loss = (first, 0) if end < 0.1 else (last, 0)
        else:
            day = first - gap if end < 0.75 else last + gap
        grown.set(day, loss or None)
        losses = {each: part for each, part in sorted({**losses, day: loss}.items()) if part}
        first, last = min(losses, default=0), max(losses, default=-1)
        if rng.random() < 0.1:
            continue  # nobody asks before the next change
        composed: list[int] = []
        days, parts, leakages = list(losses), list(losses.values()), []
        for place, at in enumerate(days):
            steps = (sum(parts[place - j + 1 : place]) + step(at - days[place - j], composed[-j])
                     for j in orders if j <= place)  # fmt: skip
            leakages.append(min(steps, default=0))
            composed.append(parts[place] + leakages[-1])
        assert (grown.composed, grown.leakages) == (composed, leakages), turn


def test_floats_and_stacks_compose_as_whole_numbers_do():
    for _, releases, orders, share, later in stories(9, 100):
        at, shares = releases[-1][0] + later, [share, 16 - share]
        expected = [written_out(releases, at, orders, partial(kept, each)) / NANO for each in shares]
        factors = np.array(shares) / 16
        stack = Composition(lambda gap, f=factors: lambda z: z * f**gap, orders=orders)
        for instant, loss in releases:
            stack.add(instant, np.asarray(loss / NANO))
        np.testing.assert_allclose(stack.leakage(at), expected, atol=20 / NANO)


class Share:
    """So many sixteenths of a loss, in whole numbers or floats; the supremum by iteration or in closed form."""

    def __init__(self, share: int, days: int) -> None:
        self.share, self.days = share, days

    def __call__(self, loss):
        if isinstance(loss, int):
            return kept(self.share, self.days, loss)
        return np.asarray(loss) * (self.share / 16) ** self.days

    def supremum(self, loss):
        if self.share == 16:
            return None if isinstance(loss, int) else np.where(loss > 0, np.inf, 0.0)
        if isinstance(loss, int):  # the least x with x = loss + ceil(f x)
            x, before = loss, -1
            while x != before:
                x, before = loss + self(x), x
            return x
        return np.asarray(loss) / (1 - (self.share / 16) ** self.days)


@pytest.mark.parametrize("share", [4, 12])
@pytest.mark.parametrize("orders", [{1}, {1, 2}])
def test_an_endless_past_is_the_limit_of_a_long_one(share, orders):
    side = OneSidedRecursion(lambda days: Share(share, days), orders=orders)
    long = side.composition()
    for day in range(-200, 0):
        long.add(day, NANO)
    assert abs(side.endless_leakage(NANO) - long.leakage(0)) <= 8
    assert abs(float(side.endless_leakage(np.asarray(1.0))) - long.leakage(0) / NANO) <= 8e-9
    both = Recursion(side, side)
    assert both.endless_total(NANO) == NANO + 2 * side.endless_leakage(NANO)
    assert abs(both.total_supremum(1.0) - (1 + 2 * share / (16 - share))) <= 1e-9


def test_without_a_model_the_largest_old_loss_ages_alone():
    composition = SumComposition(lambda gap: lambda loss: loss // 2**gap)
    assert composition.leakage(3) == 0
    for instant, loss in ((2, 8), (0, 6), (1, 8)):
        composition.add(instant, loss)
    assert composition.leakage(3) == min(6 // 8 + 16, 14 + 8 // 4, 14 + 8 // 2)
    assert composition.leakage(3, count=1) == 0
