"""The example of a damaged index runs: found by verify, put right by rebuild."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "broken_projection.py"


def test_a_damaged_index_is_found_and_put_right(database_url: str, namespace: str) -> None:
    environment = os.environ | {
        "HOROLOG_DATABASE_URL": database_url,
        "HOROLOG_NAMESPACE": namespace,
    }
    done = subprocess.run(
        [sys.executable, EXAMPLE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert "4 differences: horolog projection rebuild" in said
    assert said.count(": due_at is ") == 3 * 2
    assert said.count(" is missing") == 1 * 2, "verify and rebuild name it"
    assert "rebuilt and in use: next_runs; 4 rows were not what the log says" in said
    assert "next_runs: as the log says" in said
    assert "the log was right all the time" in said
