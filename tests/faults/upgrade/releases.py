"""The release before this one, as its commit has it, to be run beside this one."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]

PREVIOUS = "6846de39357fd275b348c77ec0899846e809a5c7"
"""The commit of the release before. Moved to the release's own commit whenever one is made."""


def previous_release(folder: Path) -> Path | None:
    """Its whole tree under ``folder``; ``None`` where there is no history (an archive, a shallow
    clone)."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", PREVIOUS],
        capture_output=True,
        check=False,
    )
    if archive.returncode != 0:
        return None
    tree = folder / "previous"
    tree.mkdir()
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
    return tree


def golden_events() -> dict[str, dict[str, dict[str, Any]]] | None:
    """The shapes of each event that it knew, by topic; ``None`` as above."""
    listed = _git("ls-tree", "--name-only", PREVIOUS, "tests/domain/golden/")
    if listed is None:
        return None
    shapes: dict[str, dict[str, dict[str, Any]]] = {}
    for name in listed.splitlines():
        text = _git("show", f"{PREVIOUS}:{name}")
        assert text is not None
        shapes[Path(name).stem] = json.loads(text)
    return shapes


def _git(*arguments: str) -> str | None:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


def environment(tree: Path, place: Mapping[str, str]) -> dict[str, str]:
    """That of a process which is to run the code of ``tree`` and no other."""
    return {**os.environ, **place, "PYTHONPATH": f"{tree / 'src'}:{tree}"}


def run(tree: Path, place: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """``horolog`` of that tree with these arguments: its exit status and all that it said."""
    done = subprocess.run(
        [sys.executable, "-m", "horolog.interface.cli.main", *arguments],
        cwd=tree,
        env=environment(tree, place),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
