"""Lines of `agedp plan` on a total beside its groups: the noise of both by their shares."""

from __future__ import annotations

from collections.abc import Iterator

from agedp.ledger_session import LedgerSession
from agedp.planning.share_advice import MAX_COST, ShareAdvice, advise_shares
from agedp.stages.plan import RunForecast
from agedp_data.accounting.total_share import SharedNoise
from agedp_data.epsilon import format_delta
from agedp_flows.text.number_text import count_text


def share_lines(session: LedgerSession, plan: RunForecast) -> list[str]:
    """Return what the shares of totals and groups do; before the first release also advice for groups alone."""
    advices = advise_shares(plan.terms, plan.forecast, session.forecast_view.roster)
    return [
        line
        for advice in advices
        for line in (_total_lines(advice) if advice.total else _advice_lines(advice, is_first=not session.rows))
    ]


def _total_lines(advice: ShareAdvice) -> Iterator[str]:
    if advice.noise is not None:
        bound = _bound_text(advice) if advice.promised else "at an equal sum of losses"
        yield (
            f"Total {advice.total} beside {_groups_text(advice)}, share of the total {float(advice.noise.share):.2f}: "
            f"after least squares {_noise_text(advice.noise)}, {bound}"
        )
    if advice.best is not None:
        condition = "" if advice.promised else f" if delta = {format_delta(advice.delta)} were promised"
        bound = "" if advice.promised else f", {_bound_text(advice)}"
        yield (
            f"  best share of the total at a cost of {MAX_COST - 1:.0%} to the groups{condition}: "
            f"{float(advice.best.share):.2f} ({_noise_text(advice.best)}{bound})"
        )
    if advice.incomplete:
        yield (
            f"  released groups of {' and '.join(advice.incomplete)} leave out households on the next day: "
            "such days have no least-squares estimates of them"
        )


def _advice_lines(advice: ShareAdvice, *, is_first: bool) -> Iterator[str]:
    if advice.best is not None and is_first and not advice.incomplete:
        condition = "" if advice.promised else f"If delta = {format_delta(advice.delta)} were promised, "
        text = f"a total beside {_groups_text(advice)} could have a share of {float(advice.best.share):.2f}"
        sentence = f"{condition}{text} ({_noise_text(advice.best)}, {_bound_text(advice)})"
        yield sentence[0].upper() + sentence[1:]


def _groups_text(advice: ShareAdvice) -> str:
    return " and ".join(f"{name} ({count_text(number, 'group')})" for name, number in advice.groups.items())


def _noise_text(noise: SharedNoise) -> str:
    factors = " and ".join(f"{factor:.2f}" for factor in noise.groups)
    total = f"the total {noise.total:.2f} times that of their sum"
    return f"the groups have {factors} times the noise of groups alone, {total}"


def _bound_text(advice: ShareAdvice) -> str:
    return f"at an equal bound of {advice.days} days (delta {format_delta(advice.delta)})"
