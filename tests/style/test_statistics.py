"""A statistic is known to its own file: few others import its class, compare a kind with its name or list them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agedp_data.series.layered_mean import Layer, LayeredMean
from agedp_data.series.series import STATISTICS
from tests.style.test_names import files, module_of

CLASSES = frozenset({statistic.__name__ for statistic in (*STATISTICS, Layer, LayeredMean)})
KINDS = frozenset(statistic.KIND for statistic in STATISTICS)
OWN = ("agedp_data.series", "agedp.setup")
"""A statistic's own file and the registry; the proposals of `agedp init`."""
KNOWN = frozenset(
    {
        "agedp.synthetic_worlds",
        "agedp_data.config.contract",
        "agedp_data.statement.facts",
    }
)
"""Layers of a contract; the note on a mean's lost days; the counts of an
audit, which are independent of the statistic's own."""


def named(tree: ast.Module) -> Iterator[str]:
    """Yield the statistics that a module names: their classes, and their kinds in comparisons and tables of several."""
    modules = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "agedp_data.series"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agedp_data.series"):
            yield from {alias.name for alias in node.names} & CLASSES
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield from {node.attr} & CLASSES
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Attribute) and side.attr in ("kind", "statistic") for side in sides):
                texts = (one.value for side in sides for one in ast.walk(side) if isinstance(one, ast.Constant))
                yield from (text for text in texts if text in KINDS)
        elif isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and key.value in KINDS]
            yield from keys if len(keys) > 1 else ()


def test_few_files_name_a_statistic() -> None:
    trees = {module_of(path): ast.parse(path.read_text("utf-8")) for path in files()}
    found = {name for name, tree in trees.items() if not name.startswith(OWN) and any(named(tree))}
    assert found <= KNOWN
    assert found == KNOWN, "fewer than the list says: shorten it"
