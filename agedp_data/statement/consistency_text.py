"""Sentence of STATEMENT.md on estimates in which groups add up to a total; its wording never changes."""

from __future__ import annotations

from agedp_data.config.contract_document import Contract
from agedp_data.series.quantities import totals_with_groups
from agedp_data.series.series import series_in

_CONSISTENT = (
    "`consistent_daily_averages.parquet` contains least-squares estimates in which the groups of {groups} add up to "
    "{total}. They are computed from the released values alone, add no privacy loss and replace no released value; "
    "where the released groups of a day leave out households, the released value is repeated."
)


def consistency_texts(contract: Contract) -> list[str]:
    """Return one sentence for each quantity of which a contract releases a total and groups."""
    series = {name: series_in(terms.content()) for name, terms in contract.series.items()}
    texts = []
    for names in totals_with_groups(series):
        by_kind = [[name for name in names if (series[name].by is None) == is_total] for is_total in (True, False)]
        total, groups = (" and ".join(kind) for kind in by_kind)
        texts.append(_CONSISTENT.format(groups=groups, total=total))
    return texts
