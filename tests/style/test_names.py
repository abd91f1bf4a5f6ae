"""Names, structure and sources of the product, read off its syntax trees."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from agedp_data.notions import NOTIONS
from tests.source_path import ROOT

PACKAGES = {"agedp_data": ROOT, "agedp": ROOT / "pipelines", "agedp_flows": ROOT / "flows"}

WORD = re.compile(r"\w+")
BANNED = frozenset(
    WORD.findall(
        "found told said made kept asked known there own one each others lacking whole here stands lies behind beside "
        "goes left other"
    )
)
"""Pronouns, participles and adverbs: a name says what the thing is."""
PAIRED = frozenset({"left", "right", "other"})
"""Permitted as the two sides of a comparison."""
COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__or__", "__and__"})
MOST_BANNED = 0.008

REPEATED_MODULES = frozenset({"__init__", "__main__", "london", "ausgrid"})
PUBLIC_API = frozenset(
    WORD.findall(
        "read quantize estimate calibrate plan release sanitise open_release verify audit compare smooth load_model"
    )
)
SOURCED = ("markov", "leakage", "accounting", "notions")
SOURCE = re.compile(r"^ *(?:Source: \S|References:$)", re.MULTILINE)
"""A line of its own, not a mention of a paper in passing."""
SECTION = re.compile(r"^ *(?:Args|Attributes|Returns|Yields):$", re.MULTILINE)
UNIT = re.compile(r"\[(?![A-Z]{1,4}\])[^\]\n]+\]|\b[Ss]hape\b")
"""A unit in brackets, which a key of a paper such as [A] is not, or the shape of an array."""
PLUMBING = frozenset({"Protocol", "ABC"})


def files() -> list[Path]:
    return [path for name, folder in PACKAGES.items() for path in sorted((folder / name).rglob("*.py"))]


def module_of(path: Path) -> str:
    folder = next(folder for name, folder in PACKAGES.items() if path.is_relative_to(folder / name))
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def bound_names(tree: ast.AST) -> Counter[str]:
    """Variables, parameters, targets, attributes assigned to, functions and methods."""
    names: Counter[str] = Counter()
    pairs: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            arguments = [*node.args.args, *node.args.kwonlyargs]
            is_comparison = not isinstance(node, ast.Lambda) and node.name in COMPARISONS
            if is_comparison or {"left", "right"} <= {argument.arg for argument in arguments}:
                pairs |= {id(argument) for argument in arguments}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names[node.name] += 1
        elif isinstance(node, ast.arg) and not (id(node) in pairs and node.arg in PAIRED):
            names[node.arg] += 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] += 1
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names[node.attr] += 1
    return names


def banned_in(trees: dict[Path, ast.Module]) -> tuple[Counter[str], int]:
    counts = sum((bound_names(tree) for tree in trees.values()), Counter[str]())
    return Counter({name: count for name, count in counts.items() if name in BANNED}), counts.total()


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in files()}


def test_names_are_nouns_and_verbs_not_pronouns(trees: dict[Path, ast.Module]) -> None:
    banned, names = banned_in(trees)
    assert names > 15_000
    assert banned.total() / names < MOST_BANNED, banned.most_common()


def test_no_two_classes_or_modules_share_a_name(trees: dict[Path, ast.Module]) -> None:
    places = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module_of(path))
    promises = {cls.__name__ for cls in NOTIONS}  # `agedp.Classical` is the promise that a notion checks
    assert {name: where for name, where in places.items() if len(where) > 1 and name not in promises} == {}
    stems = Counter(path.stem for path in files())
    assert {stem for stem, count in stems.items() if count > 1} <= REPEATED_MODULES
    submodules = {path.stem for path in (PACKAGES["agedp"] / "agedp").iterdir()}
    assert submodules & PUBLIC_API == set()


def imported_modules(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """Modules of the product that a file imports anywhere: at its top, for types, or inside a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import themselves by way of others."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            name = waiting.pop()
            if name in graph and name not in seen:
                seen.add(name)
                waiting += graph[name]
        return seen

    return sorted(name for name in graph if name in reached(name))


def test_no_module_imports_itself_by_way_of_others(trees: dict[Path, ast.Module]) -> None:
    modules = {module_of(path) for path in trees}
    graph = {module_of(path): set(imported_modules(tree, modules)) & modules for path, tree in trees.items()}
    for path in trees:  # a package that only collects the names of its own modules closes no circle
        if path.stem == "__init__":
            graph.pop(module_of(path))
    assert circles(graph) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == ["a", "b", "c"]


Documented = ast.FunctionDef | ast.ClassDef


def docstring(node: Documented) -> str:
    return ast.get_docstring(node) or ""


def is_public(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")


def public_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    yield from (node for node in tree.body if isinstance(node, ast.FunctionDef) and is_public(node))


def mathematical_classes(tree: ast.Module, package: str) -> Iterator[ast.ClassDef]:
    """Public classes; of the notions only what computes bounds: the promises and the accountants."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and is_public(node):
            methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            if package != "notions" or ("bounds" in methods and not bases & PLUMBING):
                yield node


def formulas(tree: ast.Module) -> Iterator[tuple[str, Documented]]:
    """Functions, methods and classes whose docstring has an equation, private ones among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ".. math::" in docstring(node):
            yield node.name, node


def is_measured(node: Documented) -> bool:
    """Whether units or shapes stand beside an equation; those of a function have their own sections."""
    text = docstring(node)
    return bool(UNIT.search(text)) and (isinstance(node, ast.ClassDef) or bool(SECTION.search(text)))


def trees_of(package: str, trees: dict[Path, ast.Module]) -> dict[str, ast.Module]:
    folder = ROOT / "agedp_data" / package
    return {module_of(path): tree for path, tree in trees.items() if path.is_relative_to(folder)}


@pytest.mark.parametrize("package", SOURCED)
def test_every_public_function_and_class_of_the_mathematics_names_its_source(
    package: str, trees: dict[Path, ast.Module]
) -> None:
    own = trees_of(package, trees).items()
    functions = {f"{module}.{node.name}": docstring(node) for module, tree in own for node in public_functions(tree)}
    classes = {
        f"{module}.{node.name}": docstring(node) for module, tree in own for node in mathematical_classes(tree, package)
    }
    assert len(functions) > 5
    assert len(classes) >= 1
    assert [name for name, text in (functions | classes).items() if not SOURCE.search(text)] == []


@pytest.mark.parametrize("package", SOURCED)
def test_every_equation_has_units_or_shapes_beside_it(package: str, trees: dict[Path, ast.Module]) -> None:
    equations = [
        (f"{module}.{name}", node) for module, tree in trees_of(package, trees).items() for name, node in formulas(tree)
    ]
    assert len(equations) >= 10
    assert [name for name, node in equations if not is_measured(node)] == []
