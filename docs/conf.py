"""How the documents become a site: Sphinx with MyST and Furo; `make docs`.

Decisions. Sphinx, because it reads Markdown and Python alike, checks every internal link and is looked after; MkDocs 1
is not any more, and its theme Material ends in November 2026. Formulas become MathML when the site is built, so
that a page asks for no script, font or server. Commands and keys are written into
their pages from the code (`_ext/reference.py`).
"""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "agedp"
author = "agedp contributors"
version = release = installed("agedp")
html_title = "agedp"
project_copyright = "agedp contributors, Apache-2.0"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "docstrings",
    "mathml",
    "made",
]
exclude_patterns = ["_build", "examples", "papers"]
myst_enable_extensions = ["dollarmath", "deflist", "attrs_block"]
myst_heading_anchors = 4
myst_number_code_blocks: list[str] = []
math_numfig = False

autosummary_generate = False  # tables of names; the entries are written where they belong
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Floats", "Ints", "Flags", "NDArray")}
python_use_unqualified_type_names = True
default_role = "code"
smartquotes = False  # quotes and dashes as written: they are code more often than speech

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
html_show_search_summary = False  # it would be fetched, which a page opened from a disk may not
pygments_style = "tango"
pygments_dark_style = "monokai"
