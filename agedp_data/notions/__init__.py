"""The six notions of privacy; whoever needs them goes over `NOTIONS` and knows none by name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator

from agedp_data.notions.age_dependent import AgeDependent
from agedp_data.notions.classical import Classical
from agedp_data.notions.discounted import Discounted
from agedp_data.notions.neighbourhood import Neighbourhood
from agedp_data.notions.notion import Promise
from agedp_data.notions.temporal import Temporal
from agedp_data.notions.w_event import WEvent

NOTIONS: tuple[type[Promise], ...] = (Classical, WEvent, AgeDependent, Temporal, Discounted, Neighbourhood)

AnyPromise = Annotated[
    Classical | WEvent | AgeDependent | Temporal | Discounted | Neighbourhood, Discriminator("notion")
]

__all__ = [
    "NOTIONS",
    "AgeDependent",
    "AnyPromise",
    "Classical",
    "Discounted",
    "Neighbourhood",
    "Promise",
    "Temporal",
    "WEvent",
]
