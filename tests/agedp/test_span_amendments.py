"""Amending a promise at a delta: a smaller one or none tightens it, and what is released must fit."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from agedp.stages.amend import amend, preview_amendment
from agedp_data.config.amendment import amendment
from agedp_data.epsilon import NANO
from agedp_data.errors import ContractChanged, Refused
from tests.laws.test_spans import figure

FIRST = date(2013, 1, 1)
DAYS = 9
TODAY = FIRST + timedelta(days=DAYS)
CAPS = "max_day_epsilon = 0.5\nepsilon_total = {total}\n{delta}"
PROMISES = {
    "classical": 'notion = "classical"\nepsilon_per_day = 0.3\n' + CAPS,
    "w-event": 'notion = "w-event"\nwindow_days = {days}\nepsilon_per_window = {window}\nspend = "even"\n' + CAPS,
    "temporal": 'notion = "temporal"\nalpha = {alpha}\nhorizon_days = 12\nbudget = "even"\n' + CAPS,
}
AT_FIRST = {"delta": "0.2", "total": "3", "days": "3", "window": "0.9", "alpha": "2.5"}


def promise(notion: str, **keys: str | None) -> str:
    terms = AT_FIRST | keys
    delta = "" if terms["delta"] is None else f'delta = "{terms["delta"]}"\n'
    return PROMISES[notion].format(**terms | {"delta": delta})


@pytest.fixture(scope="module")
def worlds(houses, tmp_path_factory):
    """Three homes of which nine days are released, by notion, and the loss of all of them by delta."""
    made = {}
    for notion in PROMISES:
        house = houses(tmp_path_factory.mktemp("span"))
        house.fill([FIRST + timedelta(days=number) for number in range(12)])
        house.write(FIRST, FIRST + timedelta(days=11), clamp="0.03", promise=promise(notion))
        house.run(today=TODAY)
        assert len(house.rows()) == DAYS
        made[notion] = house
    return made


def spent(house, delta: str, days: int = DAYS) -> float:
    return figure(house.rows()[:days], (), Decimal(delta)) / NANO


def verdicts(house, notion: str, **keys: str | None) -> dict[str, str]:
    house.write(FIRST, FIRST + timedelta(days=11), clamp="0.03", promise=promise(notion, **keys))
    return {change.key: change.verdict for change in preview_amendment(house.session()).changes}


JUST = Decimal("0.00001")
"""Added to what is spent, it fits; subtracted, it does not."""


@pytest.mark.parametrize("delta", ["0.2", "0.05", None])
def test_what_is_released_must_fit_the_smaller_delta_or_total(worlds, delta):
    """Nine days of .3 are 2.7 by pure losses, and less at a delta."""
    house = worlds["classical"]
    total = Decimal(str(spent(house, delta))) if delta else Decimal(sum(row.loss for row in house.rows())) / NANO
    assert delta is None or total < Decimal("2.6")
    key = "promise.epsilon_total" if delta == "0.2" else "promise.delta"
    fits, exceeds = (verdicts(house, "classical", delta=delta, total=f"{total + side:.7f}") for side in (JUST, -JUST))
    assert set(fits.values()) == {"allowed"}
    assert exceeds[key] == "refused"


def test_a_larger_delta_is_refused_and_so_is_one_that_was_not_there(worlds):
    house = worlds["classical"]
    assert verdicts(house, "classical", delta="0.25")["promise.delta"] == "refused"
    old, new = ({"promise": {"delta": value} if value else {}} for value in (None, "0.000001"))
    [added], [removed] = amendment(old, new), amendment(new, old)
    assert (added.verdict, removed.verdict) == ("refused", "allowed")
    for value in ("unlimited", "NaN", "1e-9", "0", "-0.1", 0.01, [], None):
        changed = amendment(new, {"promise": {"delta": value}})
        assert [change.verdict for change in changed] == ["allowed" if value in ("0", "-0.1") else "refused"]


def test_a_wider_or_smaller_window_must_fit_what_is_released(worlds):
    house = worlds["w-event"]
    in_all = spent(house, "0.2")
    assert in_all > 1
    assert verdicts(house, "w-event", days="9")["promise.window_days"] == "refused"
    for window, delta in (("0.7", "0.2"), ("0.6", "0.2"), ("0.9", "0.1")):
        verdict = "allowed" if spent(house, delta, 3) <= float(window) else "refused"
        assert verdicts(house, "w-event", window=window, delta=delta) == {
            "promise.delta" if delta != "0.2" else "promise.epsilon_per_window": verdict
        }


def test_alpha_must_fit_what_is_released(worlds):
    house = worlds["temporal"]
    leakage = Decimal(str(spent(house, "0.2")))
    for side, verdict in ((JUST, "allowed"), (-JUST, "refused")):
        assert verdicts(house, "temporal", alpha=f"{leakage + side:.7f}") == {"promise.alpha": verdict}


def test_alpha_must_fit_under_the_chain_where_delta_is_removed(house):
    """Days that hardly change tell each other nearly in full: nine of them come to more than alpha by the chain."""
    chain = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "kernel.csv"\nstep = "day"\n'
    (house.folder / "kernel.csv").write_text("0.999,0.001\n0.001,0.999\n")
    house.fill([FIRST + timedelta(days=number) for number in range(DAYS)])
    for delta in ("0.2", None):
        text = promise("temporal", delta=delta, total="9")
        house.write(FIRST, FIRST + timedelta(days=11), clamp="0.03", promise=text, rest=chain)
        if delta == "0.2":
            house.run(today=TODAY)
        else:
            [change] = preview_amendment(house.session()).changes
            assert (change.key, change.verdict) == ("promise.delta", "refused")
            assert "alpha = 2.5 is below" in change.why


def test_a_promise_with_a_lower_delta_goes_on_under_it(worlds):
    house = worlds["classical"]
    house.write(
        FIRST, FIRST + timedelta(days=11), clamp="0.03", promise=promise("classical", delta="0.05", total="1.7")
    )
    with pytest.raises(ContractChanged):
        house.run(today=TODAY)
    amend(house.context(today=TODAY))
    with pytest.raises(Refused, match=r"\(delta 5e-2\)|epsilon_total"):
        house.run(today=FIRST + timedelta(days=12))
    rows = house.rows()
    assert len(rows) > DAYS
    assert figure(rows, (), Decimal("0.05")) <= 1.7 * NANO < figure((*rows, rows[-1]), (), Decimal("0.05"))
