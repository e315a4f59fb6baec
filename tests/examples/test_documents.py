"""What the documents show runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIECES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "time.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("piece", PIECES, ids=range(len(PIECES)))
def test_the_python_of_the_document_on_time_runs(piece: str) -> None:
    subprocess.run([sys.executable, "-c", piece], check=True)


def test_the_commands_of_the_document_on_time_that_need_no_server_run() -> None:
    horolog = [sys.executable, "-m", "horolog.interface.cli.main"]
    asked = "schedule preview --zone America/New_York --after 2027-03-12T00:00:00Z --month --cron"
    done = subprocess.run(
        [*horolog, *asked.split(), "30 2 * * *"], check=True, capture_output=True, text=True
    )
    assert "clock change" in done.stdout
