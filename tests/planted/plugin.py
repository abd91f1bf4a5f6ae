"""Pytest plug-in that replaces one function of the product by a faulty one: `-p tests.planted.plugin --planted NAME`.

The function is replaced wherever a module of the product has it under a name, so that `from ... import` is no shelter.
A class is patched in place. Modules that are imported later take the replacement from its home.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import ModuleType
from typing import Any

import pytest

from tests.planted.faults import FAULTS

PRODUCT = ("agedp_data", "agedp", "agedp_flows")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--planted", metavar="NAME", help="name of the fault, a key of tests.planted.faults.FAULTS")


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--planted")
    if name is not None:
        plant(name)


def plant(name: str) -> None:
    """Replace the function of a fault in every module of the product."""
    fault = FAULTS[name]
    home, _, path = fault.target.partition(":")
    module = importlib.import_module(home)
    owner, attribute = owner_of(module, path)
    original = vars(owner)[attribute]
    replacement = _replaced(original, fault.replace)
    setattr(owner, attribute, replacement)
    if owner is module:
        for imported in _imported_modules():
            for key, value in list(vars(imported).items()):
                if value is original:
                    setattr(imported, key, replacement)


def _replaced(original: Any, replace: Any) -> Any:
    """Return the faulty form of a function, property or class method."""
    if isinstance(original, property):
        assert original.fget is not None
        return property(functools.wraps(original.fget)(replace(original.fget)))
    if isinstance(original, (classmethod, staticmethod)):
        return type(original)(functools.wraps(original.__func__)(replace(original.__func__)))
    return functools.wraps(original)(replace(original))


def owner_of(module: ModuleType, path: str) -> tuple[Any, str]:
    *classes, attribute = path.split(".")
    owner: Any = module
    for name in classes:
        owner = getattr(owner, name)
    if attribute not in vars(owner):
        raise LookupError(f"{module.__name__} does not define {path}")
    return owner, attribute


def _imported_modules() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in PRODUCT]
