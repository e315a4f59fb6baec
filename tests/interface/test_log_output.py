"""A process's log as JSON lines: what was said, what was given beside it, and in which run."""

import json
import logging
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest

from horolog.application.worker.current import current_run
from horolog.application.worker.run import Run
from horolog.interface.cli.log_output import log_to_stderr


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)


def test_a_line_has_what_was_given_and_the_run_it_belongs_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_to_stderr(level="INFO", as_json=True)
    run = SimpleNamespace(key="k", attempt=2, job_id=UUID(int=1))
    token = current_run.set(cast("Run", run))
    log = logging.getLogger("shop")
    log.warning("paid %s", "twice", extra={"order": 7, "at_once": datetime(2026, 1, 1, tzinfo=UTC)})
    current_run.reset(token)
    try:
        raise ValueError("no")
    except ValueError:
        log.exception("broken")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first["message"] == "paid twice"
    assert (first["run"], first["attempt"], first["job"]) == ("k", 2, str(UUID(int=1)))
    assert (first["order"], first["at_once"][:4]) == (7, "2026")
    assert "ValueError: no" in second["exception"]
    assert "run" not in second
