"""The datasets by name."""

from __future__ import annotations

from agedp_data.readers.ausgrid import Ausgrid
from agedp_data.readers.layout import Layout
from agedp_data.readers.london import London

LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (London(), Ausgrid())}
