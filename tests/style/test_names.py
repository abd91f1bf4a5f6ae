"""Names, structure, sources and references of the product, read off its syntax trees."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from agedp_data.notions import NOTIONS
from agedp_data.series.layered_mean import Layer, LayeredMean
from agedp_data.series.series import STATISTICS
from tests.references import KEY, NOTES, unresolved
from tests.source_path import ROOT

# Names, structure and sources of the product, read off its syntax trees.

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


@cache
def parsed() -> dict[Path, ast.Module]:
    """The syntax trees of all files, parsed once for all tests."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in files()}


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
    return parsed()


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


# A statistic is known to its own file: few others import its class, compare a kind with its name or list them.

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
    trees = {module_of(path): tree for path, tree in parsed().items()}
    found = {name for name, tree in trees.items() if not name.startswith(OWN) and any(named(tree))}
    assert found <= KNOWN
    assert found == KNOWN, "fewer than the list says: shorten it"


# Links of docstrings to the literature: each DOI is a known one and stands beside its own work.

WORKS = {
    "10.1109/TIT.2023.3340147": r"\[A\]",
    "10.1109/TKDE.2018.2824328": r"\[T\]",
    "10.48550/arXiv.1908.03995": r"\[F\]",
    "10.14778/2732977.2732989": r"Kellaris",
    "10.1007/11681878_14": r"Dwork",
    "10.1145/1536414.1536464": r"Ghosh",
    "10.1109/FOCS.2007.66": r"\[MT\]",
    "10.48550/arXiv.1807.01647": r"Balle",
    "10.1145/1989323.1989345": r"Kifer",
    "10.48550/arXiv.2305.08846": r"Steinke",
    "10.1093/biomet/26.4.404": r"Clopper",
    "10.3150/14-BEJ603": r"Bentkus, Dzindzalieta",
    "10.1017/CBO9780511804441": r"Boyd",
    "10.1287/mnsc.13.7.492": r"Dinkelbach",
    "10.1137/1.9780898718027": r"\[H\]",
    "10.1145/93542.93559": r"Steele",
    "10.1007/PL00009321": r"Shewchuk",
    "10.1145/3230636": r"Lemire",
    "10.1038/s41592-019-0686-2": r"SciPy",
    "10.1038/s41586-020-2649-2": r"numpy",
    "10.1214/aoms/1177707039": r"Anderson, Goodman",
    "10.1063/1.4934536": r"Trendelkamp-Schroer",
    "10.1214/09-EJS521": r"Bach",
    "10.1109/5.18626": r"Rabiner",
    "10.1214/aoms/1177697196": r"Baum, Petrie",
    "10.1214/aoap/1177005981": r"Fill",
    "10.1287/opre.33.5.1107": r"Grassmann",
    "10.1017/CBO9780511802843": r"Davison, Hinkley",
    "10.1090/mbk/107": r"Levin, Peres",
    "10.1109/CSF.2017.11": r"\[M\]",
    "10.48550/arXiv.2004.00010": r"\[CKS\]",
    "10.48550/arXiv.1311.0776": r"\[KOV\]",
    "10.48550/arXiv.1906.03049": r"\[KJH\]",
    "10.14778/1920841.1920970": r"\[HRMS\]",
    "10.1093/acprof:oso/9780199641178.001.0001": r"\[DK\]",
    "10.7551/mitpress/3206.001.0001": r"\[RW\]",
    "10.1201/9780203492024": r"\[RH\]",
}
"""DOI and what stands beside it. Add a DOI only after a look-up; otherwise cite author, title, venue and year."""
LINK = re.compile(r"https://doi\.org/(\S+?)[.,)]?(?=\s|$)")


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def citations(text: str) -> Iterator[tuple[str, str]]:
    """DOI and its reference: what stands before the link since the last one, at most three lines."""
    end = 0
    for link in LINK.finditer(text):
        yield link[1], "\n".join(text[end : link.start()].splitlines()[-3:])
        end = link.end()


def wrong_citations(text: str) -> list[str]:
    return [doi for doi, reference in citations(text) if doi not in WORKS or not re.search(WORKS[doi], reference)]


def test_every_doi_stands_beside_its_own_work() -> None:
    wrong: dict[Path, list[str]] = {}
    count = 0
    for path, tree in parsed().items():
        for text in docstrings(tree):
            count += len(list(citations(text)))
            if unfit := wrong_citations(text):
                wrong.setdefault(path, []).extend(unfit)
    assert count > 100
    assert wrong == {}


# No stored page or picture, and no text in the sources, refers to what its reader does not have.

PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "docs/**/*.svg",
    "docs/**/*.ipynb",
)
TEMPLATES = (".html", ".toml", ".css", ".json", ".md")


def texts(path: Path) -> Iterator[tuple[str, bool]]:
    """The texts of a Python file, each with whether it is a docstring."""
    content = path.read_text(encoding="utf-8")
    if not (NOTES.search(content) or KEY.search(content)):
        return
    tree = ast.parse(content)
    bodies = [node.body for node in ast.walk(tree) if hasattr(node, "body") and isinstance(node.body, list)]
    free = {id(line.value) for body in bodies for line in body if isinstance(line, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, id(node) in free


def unresolved_texts(path: Path) -> list[str]:
    """Notes in any text of a file; keys of papers in texts that are printed, since docstrings have the glossary."""
    return [
        found
        for text, is_docstring in texts(path)
        for found in (NOTES.findall(text) if is_docstring else unresolved(text))
    ]


def test_stored_pages_and_pictures_resolve_their_references() -> None:
    paths = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern)) if "_build" not in path.parts]
    assert len([path for path in paths if path.suffix == ".svg"]) > 25
    lost = {str(path.relative_to(ROOT)): found for path in paths if (found := unresolved(path.read_text("utf-8")))}
    assert lost == {}


def test_texts_of_the_sources_resolve_their_references() -> None:
    sources = [*files(), *sorted((ROOT / "docs").rglob("*.py"))]
    lost = {str(path.relative_to(ROOT)): found for path in sources if (found := unresolved_texts(path))}
    packages = [ROOT / "agedp_data", ROOT / "pipelines", ROOT / "flows", ROOT / "container"]
    templates = [path for folder in packages for path in sorted(folder.rglob("*")) if path.suffix in TEMPLATES]
    assert len(templates) > 10
    lost |= {str(path.relative_to(ROOT)): found for path in templates if (found := unresolved(path.read_text("utf-8")))}
    assert lost == {}


def test_sentences_are_capitalised_without_changing_units_and_names() -> None:
    # "2 kWh".capitalize() is "2 kwh", and "[A, eq. 55]" became "[a, eq. 55]": `messages.sentence_start` keeps the rest
    assert [str(path) for path in files() if ".capitalize(" in path.read_text("utf-8")] == []
