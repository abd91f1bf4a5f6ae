"""The six notions of privacy; callers go over `NOTIONS` and know none by name.

A further notion is one file in this package and its line in `NOTIONS` (with the import).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Discriminator

from agedp_data.notions.age_dependent import AgeDependent
from agedp_data.notions.classical import Classical
from agedp_data.notions.discounted import Discounted
from agedp_data.notions.enforcement import EnforcedPromise
from agedp_data.notions.neighbourhood import Neighbourhood
from agedp_data.notions.notion import Promise
from agedp_data.notions.temporal import Temporal
from agedp_data.notions.w_event import WEvent

NOTIONS: tuple[type[EnforcedPromise], ...] = (
    Classical,
    WEvent,
    AgeDependent,
    Temporal,
    Discounted,
    Neighbourhood,
)

if TYPE_CHECKING:
    AnyPromise = EnforcedPromise
else:
    AnyPromise = Annotated[Union[NOTIONS], Discriminator("notion")]  # noqa: UP007  (a tuple, not two types)

__all__ = [
    "NOTIONS",
    "AgeDependent",
    "AnyPromise",
    "Classical",
    "Discounted",
    "EnforcedPromise",
    "Neighbourhood",
    "Promise",
    "Temporal",
    "WEvent",
]
