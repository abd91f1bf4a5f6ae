"""Formulas as MathML, rendered when the site is built: readers need no script, no font and no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: Element) -> None:  # noqa: ANN401  (Sphinx gives it no type)
    writer.body.append(convert(node.astext()))
    raise SkipNode


def _block(writer: Any, node: Element) -> None:  # noqa: ANN401
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode
