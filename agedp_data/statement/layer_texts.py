"""Sentences of STATEMENT.md on the layers of a mean with a list of clamps, made from the contract."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from agedp_data.config.contract_document import ContractDocument, SeriesTerms
from agedp_data.notions import Neighbourhood
from agedp_data.parameters import exact_text
from agedp_data.roster import columns_text
from agedp_data.series.series_terms import layer_number, mean_name

_LAYERS = (
    "{names} are layers of one mean. Before noise, the layers of a household's day add up to its daily total, at most "
    "{clamp} kWh. So their published values of a day add up to an estimate of the mean up to {clamp} kWh, with the "
    "noise of all of them. A layer above the first is a part of a mean and none by itself. What a household uses above "
    "{clamp} kWh is in no layer. One household's day can change every layer by its width at once: the losses of the "
    "layers add, and every bound counts all of them."
)
_SMALL = (
    " A change of at most {delta_kwh} kWh is counted in every layer as far as its width permits. No household can "
    "attain this in all layers at once, so the bounds on such changes are upper bounds."
)


def layer_series_text(name: str, series: SeriesTerms) -> str:
    """Return what a layer counts, up to the rule for missing days."""
    above, clamp = series.above_kwh or "0", series.clamp_kwh or "0"
    width = exact_text(Decimal(clamp) - Decimal(above))
    by = f", by {columns_text(series.by)} of the roster" if series.by is not None else ""
    if series.above_kwh is None:
        return (
            f"{name}: mean daily use of the households up to {clamp} kWh, layer {layer_number(name)} of "
            f"{mean_name(name)}{by}; a household's daily total counts at most {clamp} kWh (clamp)"
        )
    return (
        f"{name}: mean daily use of the households above {above} and up to {clamp} kWh, a layer of {mean_name(name)}"
        f"{by}; a household's day counts at most {width} kWh (width)"
    )


def layers_texts(contract: ContractDocument) -> Iterator[str]:
    """Yield the sentences on each mean of a contract that has layers."""
    by_table: dict[str, list[str]] = {}
    for name in sorted(contract.series):
        if layer_number(name):
            by_table.setdefault(mean_name(name), []).append(name)
    promise = contract.terms.promise
    small = _SMALL.format(delta_kwh=exact_text(promise.delta_kwh)) if isinstance(promise, Neighbourhood) else ""
    for names in by_table.values():
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        yield _LAYERS.format(names=listed, clamp=contract.series[names[-1]].clamp_kwh) + small
