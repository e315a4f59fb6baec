"""No code comes from data, no command passes a shell, and SQL is composed of constants alone."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYERS = ("domain", "projections", "application", "infrastructure", "interface")
MODULES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
PICKLES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
RUNS_TEXT = {"eval", "exec", "compile", "__import__"}
SHELLS = {"system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell"}
FOR_OTHERS = ROOT / "interface" / "importing" / "apscheduler_export.py"
"""Printed for people to run beside their own APScheduler; no process of ours imports it."""

EXECUTES = {"execute", "query", "executemany", "copy"}
OF_CONSTANTS = {
    "infrastructure/clients_transaction.py",  # a function of ours in a checked namespace
    "infrastructure/postgres/rebuild/shadow.py",  # settings of its session
}


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    return [
        (path.relative_to(ROOT), node)
        for path in MODULES
        if path != FOR_OTHERS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call | ast.Import | ast.ImportFrom)
    ]


def test_nothing_is_unpickled() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if (isinstance(node, ast.Import) and PICKLES & {a.name.split(".")[0] for a in node.names})
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PICKLES)
    ]
    assert found == []


def test_no_text_is_run_as_code_or_by_a_shell() -> None:
    found: list[str] = []
    for path, node in nodes():
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in RUNS_TEXT:
            found.append(f"{path}:{node.lineno} {called.id}")
        if isinstance(called, ast.Attribute) and called.attr in SHELLS:
            found.append(f"{path}:{node.lineno} {called.attr}")
        if any(word.arg == "shell" for word in node.keywords):
            found.append(f"{path}:{node.lineno} shell=")
    assert found == []


def test_no_statement_is_made_on_the_spot_of_what_it_is_about() -> None:
    """What varies is a parameter, or an identifier that psycopg quotes."""
    found = {
        str(path)
        for path, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in EXECUTES
        and node.args
        and (
            isinstance(node.args[0], ast.JoinedStr)
            or (isinstance(node.args[0], ast.BinOp) and isinstance(node.args[0].op, ast.Mod))
        )
    }
    assert found == OF_CONSTANTS


def test_what_is_for_others_is_imported_by_nobody() -> None:
    assert [
        str(path)
        for path, node in nodes()
        if isinstance(node, ast.ImportFrom) and FOR_OTHERS.stem in (node.module or "")
    ] == []
