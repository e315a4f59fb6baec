"""What is true and what is known depend on arguments alone: on no clock, no chance and no I/O.

That is why a simulation and a property test can reach every rule. The contracts of the layers name
what must not be imported; this names all that may be, and what may not be called.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.structure.test_layers import imported, modules

PURE = ("domain", "projections")

FROM_OUTSIDE = {"pydantic", "croniter", "dateutil"}
FROM_THE_LIBRARY = {
    "abc", "bisect", "calendar", "collections", "contextlib", "dataclasses", "datetime", "difflib",
    "functools", "hashlib", "heapq", "itertools", "json", "math", "re", "struct", "typing", "uuid",
    "zoneinfo",
}  # fmt: skip

THE_ZONES = Path("domain/schedule/zone_data.py")
"""Reads the one thing that is no argument: the zones of the package ``tzdata``, which are the same
wherever that version is installed."""

OF_THE_ZONES = {"importlib", "io", "read_bytes", "read_text"}

CLOCKS_AND_CHANCE = {"now", "utcnow", "today", "uuid1", "uuid4", "uuid7"}
IN_AND_OUT = {"open", "print", "input", "exec", "eval", "read_bytes", "read_text", "write_text"}


def of_ours(layer: str) -> Iterator[tuple[Path, set[str]]]:
    """Each module with what it may have beyond the others."""
    for path in modules(layer):
        yield path, OF_THE_ZONES if path.match(str(THE_ZONES)) else set()


def called(path: Path) -> Iterator[tuple[int, str]]:
    """Line and last name of everything that a file calls."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(attr=name) | ast.Name(id=name):
                    yield node.lineno, name
                case _:
                    pass


@pytest.mark.parametrize("layer", PURE)
def test_a_pure_layer_imports_what_computes_and_nothing_else(layer: str) -> None:
    known = FROM_OUTSIDE | FROM_THE_LIBRARY | {"horolog"}
    strangers = [
        f"{path}:{line} imports {name}"
        for path, more in of_ours(layer)
        for line, name in imported(path)
        if name.partition(".")[0] not in known | more
    ]
    assert strangers == []


@pytest.mark.parametrize("layer", PURE)
def test_a_pure_layer_asks_no_clock_draws_nothing_and_reads_nothing(layer: str) -> None:
    calls = [
        f"{path}:{line} calls {name}"
        for path, more in of_ours(layer)
        for line, name in called(path)
        if name in (CLOCKS_AND_CHANCE | IN_AND_OUT) - more
    ]
    assert calls == []


def test_the_library_is_meant_where_it_is_named() -> None:
    assert sys.stdlib_module_names >= FROM_THE_LIBRARY
