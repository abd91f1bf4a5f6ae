"""The chart library whose script is in explore.html: BokehJS, from the installed package, or as a page contains it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import Final

from agedp_data.errors import InputError

_SCRIPTS: Final = ("bokeh.min.js", "bokeh-api.min.js")
_IN_PAGE: Final = re.compile(r'<script id="library" data-version="([^"<>]*)">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChartLibrary:
    """A version of BokehJS and its script."""

    version: str
    script: str


def installed_library() -> ChartLibrary:
    """Return the installed library.

    Raises:
        InputError: it is not installed.
    """
    try:
        folder = files("bokeh") / "server" / "static" / "js"
        return ChartLibrary(version("bokeh"), "\n".join((folder / name).read_text("utf-8") for name in _SCRIPTS))
    except (ImportError, OSError):
        problem = "[output] explore = true: explore.html needs bokeh, which is not installed"
        raise InputError(f"{problem}. Install it: pip install 'agedp[explore]', in a clone '.[explore]'") from None


def library_in(page: str) -> ChartLibrary:
    """Return the library that a page contains, an empty one of a page without.

    >>> library_in('<script id="library" data-version="3.9.2">1;</script>')
    ChartLibrary(version='3.9.2', script='1;')
    """
    match = _IN_PAGE.search(page)
    return ChartLibrary("", "") if match is None else ChartLibrary(match[1], match[2])
