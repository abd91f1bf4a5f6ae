"""Rows of a mean's layers -> what layer 1 is called, and the noise of the sum of the layers.

Layer 1 of `clamp_kwh = [10, 40]` is no mean of the households: it has little noise and leaves out what a day exceeds 10
kWh by. The mean up to 40 kWh is the sum of the layers. Their noise is independent, so its variances add.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from agedp.signal_against_noise import three_digits
from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord
from agedp_data.parameters import exact_text
from agedp_data.series.layers import layer_label, layer_number, table_name
from agedp_data.series.series import AnySeries


def sum_noises_kwh(rows: Iterable[ReleaseRecord]) -> dict[tuple[str, str], float]:
    """Return the noise of the sum of the layers by mean and day, of the smallest group [kWh per household].

    Args:
        rows: rows of all series; a day with one layer only has no sum.
    """
    layers: dict[tuple[str, str], dict[str, ReleaseRecord]] = {}
    for row in rows:
        if layer_number(row.series) and row.state == "released":
            layers.setdefault((table_name(row.series), row.day), {})[row.series] = row
    return {key: _sum_noise_kwh(by_name) for key, by_name in layers.items() if len(by_name) > 1}


def _sum_noise_kwh(layers: Mapping[str, ReleaseRecord]) -> float:
    """Return the noise of the sum of the layers of a day: the root of the sum of their variances."""
    return math.hypot(
        *(mechanisms.standard_deviation(row.scale) / (1000.0 * min(row.households)) for row in layers.values())
    )


def layer_heading(name: str, series: AnySeries) -> str:
    """Return the name of a mean in headings, with its layer.

    >>> from agedp_data.series.series import series_in
    >>> mean = series_in({"statistic": "mean", "clamp_kwh": "10", "share": "0.8"})
    >>> layer_heading("use/1", mean), layer_heading("use", mean)
    ('use, layer 1 (up to 10 kWh)', 'use')
    """
    layer = layer_label(name, exact_text(series.clamp_kwh))
    return f"{table_name(name)}, {layer}" if layer else name


def sum_heading(name: str, series: Mapping[str, AnySeries]) -> str:
    """Return the name of the sum of the layers of a mean; `series` are those of the run file.

    >>> from agedp_data.series.series import series_in
    >>> layers = {"use/1": {"clamp_kwh": "10", "share": "0.8"}}
    >>> layers["use/2"] = {"clamp_kwh": "40", "above_kwh": "10", "share": "0.2"}
    >>> sum_heading("use", {of: series_in({"statistic": "mean", **terms}) for of, terms in layers.items()})
    'use, sum of its layers (up to 40 kWh)'
    """
    clamp_kwh = max(of_name.clamp_kwh for of, of_name in series.items() if table_name(of) == name)
    return f"{name}, sum of its layers (up to {exact_text(clamp_kwh)} kWh)"


def sum_noise_line(rows: Iterable[ReleaseRecord], name: str, series: Mapping[str, AnySeries]) -> list[str]:
    """Return one line on the noise of the sum of a mean's layers on its newest day, nothing without layers."""
    noises = {day: noise for (of, day), noise in sum_noises_kwh(rows).items() if of == name}
    if not noises or f"{name}/1" not in series:
        return []
    newest = max(noises)
    noise = three_digits(noises[newest])
    return [f"{sum_heading(name, series)}: noise {noise} kWh per household on {newest} (standard deviation)"]
