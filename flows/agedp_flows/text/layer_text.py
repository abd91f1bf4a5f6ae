"""Lines of `agedp plan` and `agedp run` on the upper layers of a mean, which are no means by themselves."""

from __future__ import annotations

from collections.abc import Mapping

from agedp_data.parameters import exact_text
from agedp_data.series.layers import mean_name
from agedp_data.series.series import AnySeries, Layer


def layer_lines(series: Mapping[str, AnySeries]) -> list[str]:
    """Return one line for each upper layer: what it counts, and what it is added to.

    >>> from agedp_data.series.series import series_in
    >>> terms = {"statistic": "mean", "clamp_kwh": "75", "above_kwh": "30", "share": "0.23"}
    >>> layer_lines({"use/2": series_in(terms)})[0].partition(". ")[0]
    'use/2 is an upper layer of use: daily use above 30 and up to 75 kWh'
    """
    return [
        f"{name} is an upper layer of {mean_name(name)}: daily use above {exact_text(layer.above_kwh)} and up to "
        f"{exact_text(layer.clamp_kwh)} kWh. Add it to the layers below; one day is mostly noise."
        for name, layer in series.items()
        if isinstance(layer, Layer)
    ]
