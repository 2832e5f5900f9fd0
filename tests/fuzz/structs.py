"""Finds the classes of a package, so that nobody has to list them."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import msgspec


def classes_below(package: ModuleType) -> Iterator[type]:
    """Every class that a module of the package defines."""
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        module = importlib.import_module(info.name)
        for one in vars(module).values():
            if isinstance(one, type) and one.__module__ == module.__name__:
                yield one


def structs_below(package: ModuleType) -> Iterator[type[msgspec.Struct]]:
    """Those that describe a wire format."""
    for one in classes_below(package):
        if issubclass(one, msgspec.Struct):
            yield one
