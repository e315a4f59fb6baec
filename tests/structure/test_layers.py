"""The layers hold: imports point downwards only, and nobody makes a second copy of a module."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = ("domain", "projections", "application", "infrastructure", "interface")
TOP_ONLY = {"click": "interface", "rich": "interface"}
INFRASTRUCTURE_ONLY = {"psycopg", "psycopg_pool", "nats", "eventsourcing"}


def modules(layer: str) -> list[Path]:
    return sorted((ROOT / layer).rglob("*.py"))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def test_the_contracts_of_the_layers_hold() -> None:
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("layer", [*LAYERS, "tests"])
def test_our_modules_are_imported_by_their_full_names(layer: str) -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(layer)
        for line, name in imported(path)
        if name.startswith(".") or name.partition(".")[0] in LAYERS
    ]
    assert bare == []


@pytest.mark.parametrize("layer", LAYERS)
def test_drivers_and_terminals_stay_in_their_layers(layer: str) -> None:
    strangers = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(layer)
        for line, name in imported(path)
        if (top := name.partition(".")[0])
        and (
            TOP_ONLY.get(top, layer) != layer
            or (top in INFRASTRUCTURE_ONLY and layer != "infrastructure")
        )
    ]
    assert strangers == []


@pytest.mark.parametrize("layer", LAYERS)
def test_each_module_says_which_piece_it_is(layer: str) -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in modules(layer)
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


@pytest.mark.parametrize("layer", LAYERS)
def test_each_folder_is_a_package(layer: str) -> None:
    bare = sorted(
        {
            str(path.parent.relative_to(ROOT))
            for path in modules(layer)
            if not (path.parent / "__init__.py").exists()
        }
    )
    assert bare == [], "a wheel would leave them out"


@pytest.mark.parametrize("layer", LAYERS)
def test_the_package_leads_to_the_layer(layer: str) -> None:
    link = ROOT / "src" / "horolog" / layer
    assert link.is_symlink(), f"{link} is no link: was the repository cloned without them?"
    assert link.resolve() == ROOT / layer
