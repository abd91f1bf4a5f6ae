"""The datasets by name: those whose layout is fixed, and "long", whose layout the run file describes.

Code that needs the datasets, or their keys in a run file, iterates over `LAYOUTS` and names none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.london import London
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.nem12 import Nem12
from agedp_data.datasets.validation import INTERVAL_MINUTES, NamedColumns
from agedp_data.errors import InputError

LAYOUTS: dict[str, Layout] = {
    London.name: London(),
    Ausgrid.name: Ausgrid(),
    Nem12.name: Nem12(),
}
DATASETS = (*LAYOUTS, Long.name)


def layout_of(
    dataset: str, columns: NamedColumns | Mapping[str, Any] | None = None, interval_minutes: int = INTERVAL_MINUTES
) -> Layout:
    """Return the layout of a dataset.

    `columns`, as in the run file or a contract, are for "long" only, as is an `interval_minutes` other than 30.

    >>> layout_of("london").day_zone
    'GMT'

    Raises:
        InputError: an unknown dataset, "long" without columns, or another dataset with columns or another interval.
    """
    if dataset not in DATASETS:
        raise InputError(f'dataset "{dataset}" is not one of {", ".join(DATASETS)}')
    if (columns is not None) != (dataset == Long.name):
        raise InputError('[input.columns] goes with dataset = "long", and dataset = "long" with [input.columns]')
    if columns is None:
        if interval_minutes != LAYOUTS[dataset].interval_minutes:
            raise InputError(f'[input] interval_minutes = {interval_minutes} goes with dataset = "long"')
        return LAYOUTS[dataset]
    return _long(columns if isinstance(columns, NamedColumns) else NamedColumns.from_keys(columns), interval_minutes)


_long = lru_cache(maxsize=64)(Long)
